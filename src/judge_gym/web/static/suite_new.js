// The form that starts a suite run.
"use strict";

const form = document.getElementById("new-run");
const field = (name) => form.elements[name].value.trim();

form.elements.suite.addEventListener("change", () => {
  const query = new URLSearchParams({ suite: field("suite"), model: field("model"), series: field("series") });
  location.assign(`/suites/new?${query}`);
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const error = form.querySelector(".error"), button = form.querySelector("button");
  const boxes = [...form.querySelectorAll('input[name="category"]')], ticked = boxes.filter((box) => box.checked);
  if (boxes.length && !ticked.length) { error.textContent = "Choose at least one category."; return; }
  const body = {
    suite: field("suite"), model: field("model"), condition: field("condition"), series: field("series"),
    replicates: Number(field("replicates")),
    category: ticked.length < boxes.length ? ticked.map((box) => box.value) : [],
  };
  if (form.elements.failed_of) body.failed_of = Number(field("failed_of"));
  const usd = field("usd");
  if (usd !== form.elements.usd.defaultValue) body.budget = { usd: usd === "" ? null : Number(usd) };
  error.textContent = "";
  button.disabled = true;
  try {
    const run = await lab.ask("POST", "/api/suites/start", body);
    location.assign(`/model/${encodeURIComponent(run.model)}/run/${run.run}`);
  } catch (problem) {
    error.textContent = problem.message;
    button.disabled = false;
  }
});
