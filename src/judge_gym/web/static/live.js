// Parts of a page that come after it: <div data-load="/parts/...">; forms that submit on a change.
"use strict";

lab.load = async (place) => {
  try {
    const answer = await fetch(place.dataset.load, { headers: { Accept: "application/json" } });
    if (!answer.ok) {
      const told = await answer.json().catch(() => ({}));
      throw new Error(told.error ? told.error.message : `the server answered ${answer.status}`);
    }
    place.innerHTML = await answer.text();
  } catch (fault) {
    const said = document.createElement("p");
    said.className = "banner";
    said.textContent = fault.message;
    place.replaceChildren(said);
  }
  place.dataset.loaded = "yes";
  // What came may have pushed away what the address points at.
  if (location.hash && !lab.moved) document.getElementById(location.hash.slice(1))?.scrollIntoView();
};

lab.pill = (status) => {
  const pill = document.createElement("span");
  pill.className = `pill ${status}`;
  pill.textContent = status.replaceAll("_", " ");
  return pill;
};

lab.sum = (counts) => Object.values(counts).reduce((all, one) => all + one, 0);
lab.count = (number) => number.toLocaleString("en");

for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"])
  document.addEventListener(kind, () => { lab.moved = true; }, { passive: true });

document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll("[data-load]")) lab.load(place);
  for (const form of document.querySelectorAll("form[data-submits]"))
    form.addEventListener("change", () => form.requestSubmit());
});
