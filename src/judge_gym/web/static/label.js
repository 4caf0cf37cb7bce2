// A rater's page: a click or a key saves a label at once and opens the next item.
"use strict";

const page = document.querySelector(".label-page");

async function give(button) {
  const form = button.closest("form");
  for (const other of form.querySelectorAll(".label-choice"))
    other.setAttribute("aria-pressed", String(other === button));
  const confidence = form.querySelector("input[name=confidence]:checked");
  await lab.act(button, async () => {
    const answer = await lab.ask("POST", "/label/answers", {
      position: Number(page.dataset.position),
      stage: button.dataset.stage || null,
      confidence: confidence ? confidence.value : null,
      note: form.querySelector("textarea").value,
    });
    location.assign(answer.next === null ? "/label/done" : `/label?item=${answer.next}`);
  });
}

document.addEventListener("click", (event) => {
  const choice = event.target.closest(".label-choice");
  if (choice) give(choice);
  const review = event.target.closest("[data-review]");
  if (review)
    lab.act(review, async () => {
      await lab.ask("POST", `/label/reviews/${review.dataset.review}`, { sound: review.dataset.sound === "true" });
      for (const other of review.parentElement.querySelectorAll("[data-review]"))
        other.setAttribute("aria-pressed", String(other === review));
      lab.say("Recorded.");
    });
});

document.addEventListener("keydown", (event) => {
  if (event.target.closest("textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "u") document.getElementById("previous")?.click();
  const choice = document.querySelector(`.label-choice[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!choice) return;
  event.preventDefault();
  give(choice);
});
