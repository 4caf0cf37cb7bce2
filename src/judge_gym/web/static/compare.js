// Compare: keeps a pinned baseline in this browser, by study, and uses it where the address names no baseline.
"use strict";

const place = document.querySelector("[data-pinnable]");
const key = place && `baseline ${place.dataset.of}`;
const pinned = { // a browser may refuse to store anything
  get: () => { try { return localStorage.getItem(key); } catch { return null; } },
  set: (name) => { try { if (name) localStorage.setItem(key, name); else localStorage.removeItem(key); } catch { lab.say("This browser stores nothing."); } },
};

function showPin() {
  const button = document.querySelector("[data-pin]");
  if (!button) return;
  const on = pinned.get() === button.dataset.pin;
  button.setAttribute("aria-pressed", on);
  button.textContent = on ? "B is pinned" : "Pin B";
}

// Before live.js loads the part: its script runs first, its listener later.
if (place && place.dataset.pinnable === "true" && pinned.get()) place.dataset.load += `&b=${encodeURIComponent(pinned.get())}`;
document.addEventListener("loaded", (event) => {
  if (event.target !== place) return;
  if (pinned.get() && !document.querySelector("[data-pin]") && place.dataset.pinnable === "true") { // the setup is gone
    pinned.set(null);
    location.reload();
    return;
  }
  const title = place.querySelector("h1");
  if (title) document.title = `${title.textContent} · judge-gym`;
  showPin();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-pin]");
  if (!button) return;
  pinned.set(pinned.get() === button.dataset.pin ? null : button.dataset.pin);
  showPin();
});
