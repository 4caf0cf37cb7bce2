// What every page can do: ask the API, say what came of it, and follow what goes on.
"use strict";

const lab = {
  /** Ask the API; the JSON that it answers, or an Error with its message. */
  async ask(method, path, body) {
    const headers = { Accept: "application/json" };
    const csrf = document.querySelector('meta[name="csrf"]');
    if (csrf) headers["X-CSRF-Token"] = csrf.content;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(told.error ? told.error.message : `the server answered ${answer.status}`);
    return told;
  },

  /** Say something in the corner for a while. */
  say(text, seconds = 8) {
    const place = document.getElementById("said");
    place.textContent = text;
    clearTimeout(lab.saying);
    lab.saying = setTimeout(() => { place.textContent = ""; }, seconds * 1000);
  },

  /** Follow a target's events: handlers by the name of the event. Returns the source, to close. */
  follow(target, handlers) {
    const query = target ? `?target=${encodeURIComponent(target)}` : "";
    const source = new EventSource(`/api/events${query}`);
    for (const [name, handler] of Object.entries(handlers))
      source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
    return source;
  },
};

// <button data-post="/api/runs/pause" data-body='{"target": "x"}' data-confirm="..."> needs no script of its own.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-post]");
  if (!button) return;
  event.preventDefault();
  if (button.dataset.confirm && !window.confirm(button.dataset.confirm)) return;
  button.disabled = true;
  try {
    await lab.ask("POST", button.dataset.post, JSON.parse(button.dataset.body || "{}"));
    lab.say(button.dataset.done || "Done.");
    if (button.dataset.then) location.assign(button.dataset.then);
  } catch (fault) {
    lab.say(fault.message, 20);
  } finally {
    button.disabled = false;
  }
});
