// Parts that load after the page: <div data-load="/parts/...">; forms that submit on a change; pills and counts.
"use strict";

lab.load = async (place) => {
  try {
    const response = await fetch(place.dataset.load, { headers: { Accept: "application/json" } });
    if (!response.ok) await lab.json(response);
    place.innerHTML = await response.text(); // from our own templates, which escape
    place.hidden = !place.innerHTML;
  } catch (error) {
    const banner = document.createElement("p");
    banner.className = "banner";
    banner.textContent = error.message;
    place.replaceChildren(banner);
  }
  place.dataset.loaded = "yes";
  place.removeAttribute("aria-busy");
  for (const form of place.querySelectorAll("form[data-submits]")) lab.submits(form);
  place.dispatchEvent(new CustomEvent("loaded", { bubbles: true }));
  // The new part may have moved what the address points at.
  if (location.hash && !lab.moved) document.getElementById(location.hash.slice(1))?.scrollIntoView();
};

lab.pill = (status, count) => {
  const pill = document.createElement("span");
  pill.className = `pill ${status}`;
  pill.textContent = (count === undefined ? "" : `${lab.count(count)} `) + status.replaceAll("_", " ");
  return pill;
};

// Boxes in a menu are chosen together, so they wait for the button.
lab.submits = (form) => form.addEventListener("change", (event) => { if (!event.target.closest("details")) form.requestSubmit(); });
lab.sum = (counts) => Object.values(counts).reduce((sum, value) => sum + value, 0);
lab.count = (number) => number.toLocaleString("en");

for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"])
  document.addEventListener(kind, () => { lab.moved = true; }, { passive: true });

document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll("[data-load]")) lab.load(place);
  for (const form of document.querySelectorAll("form[data-submits]")) lab.submits(form);
});
