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
  });
});

// <button data-dialog="ID"> opens a dialog; its own buttons and Escape close it.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
});
