// Sums and figure are made by the server while the page is there already.
"use strict";

for (const place of document.querySelectorAll("[data-from]")) {
  fetch(place.dataset.from).then(async (answer) => {
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    place.innerHTML = await answer.text(); // of our own templates and figures, which escape
    place.hidden = !place.innerHTML;
  }).catch((fault) => {
    place.textContent = fault.message;
  }).finally(() => place.removeAttribute("aria-busy"));
}
