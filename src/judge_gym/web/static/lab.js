// What every page can do: call the API, show a message, and follow live events.
"use strict";

const lab = {
  /** Returns the JSON of a response, or throws an Error with the server's message. */
  async json(response) {
    const body = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(body.error ? body.error.message : `the server answered ${response.status}`);
    return body;
  },

  /** Calls the API. */
  async ask(method, path, body) {
    const headers = { Accept: "application/json" };
    const csrf = document.querySelector('meta[name="csrf"]');
    if (csrf) headers["X-CSRF-Token"] = csrf.content;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    return lab.json(await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }));
  },

  /** Shows a message in the corner for some seconds. */
  say(text, seconds = 8) {
    const toast = document.getElementById("toast");
    toast.textContent = text;
    clearTimeout(lab.toastTimer);
    lab.toastTimer = setTimeout(() => { toast.textContent = ""; }, seconds * 1000);
  },

  /** Runs an action while a button is disabled, and shows its error. */
  async act(button, action) {
    if (button.dataset.confirm && !window.confirm(button.dataset.confirm)) return;
    button.disabled = true;
    try {
      await action();
    } catch (error) {
      lab.say(error.message, 20);
    } finally {
      button.disabled = false;
    }
  },

  /** Follows a target's events with handlers by the event's name. Returns the source, to close. */
  follow(target, handlers) {
    const query = target ? `?target=${encodeURIComponent(target)}` : "";
    const source = new EventSource(`/api/events${query}`);
    for (const [name, handler] of Object.entries(handlers))
      source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
    return source;
  },
};

// <button data-post="/api/runs/pause" data-body='{"target": "x"}' data-confirm="..."> needs no script of its own.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-post]");
  if (!button) return;
  event.preventDefault();
  lab.act(button, async () => {
    await lab.ask("POST", button.dataset.post, JSON.parse(button.dataset.body || "{}"));
    lab.say(button.dataset.done || "Done.");
    if (button.dataset.then) location.assign(button.dataset.then);
    else document.body.dispatchEvent(new CustomEvent("changed"));
  });
});

// <form data-send="/api/runs/retune" data-target="x"> sends what was changed in its fields, under their names: "budget.usd"
// is a key of `budget`. A field with data-number is a number, or null when it is emptied.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-send]");
  if (!form) return;
  event.preventDefault();
  const error = form.querySelector(".error");
  const body = form.dataset.target ? { target: form.dataset.target } : {};
  error.textContent = "";
  for (const field of form.querySelectorAll("[name]")) {
    const text = field.value.trim(), path = field.name.split("."), name = path.pop();
    if (field.type === "checkbox" ? !field.checked : !("always" in field.dataset) && text === (field.defaultValue ?? "")) continue;
    if ("number" in field.dataset && Number.isNaN(Number(text))) { error.textContent = `${name} must be a number, not ${text}`; return; }
    const place = path.reduce((inner, key) => (inner[key] ??= {}), body);
    place[name] = "number" in field.dataset ? (text === "" ? null : Number(text)) : field.type === "checkbox" ? true : text;
  }
  const button = form.querySelector("button:not([type=button])");
  button.disabled = true;
  lab.ask("POST", form.dataset.send, body).then((result) => {
    if (form.dataset.then) { location.assign(form.dataset.then); return; }
    for (const field of form.querySelectorAll("input[data-number]")) field.name.startsWith("limits.") ? field.value = "" : field.defaultValue = field.value.trim();
    lab.say(form.dataset.done || "Done.");
    form.dispatchEvent(new CustomEvent("sent", { bubbles: true, detail: result }));
    document.body.dispatchEvent(new CustomEvent("changed"));
  }).catch((problem) => { error.textContent = problem.message; }).finally(() => { button.disabled = false; });
});

// <button data-dialog="ID"> opens a dialog; its own buttons and Escape close it.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
});
