// Home, live: the progress of studies, their costs, and the sentence that answers which judge to use.
"use strict";

document.addEventListener("DOMContentLoaded", async () => {
  const home = document.getElementById("live");
  if (!home) return;
  const cards = new Map([...home.querySelectorAll("[data-study]")].map((card) => [card.dataset.study, card]));
  const experiments = new Map(); // tag -> its latest status

  const costs = async () => {
    const paid = await lab.ask("GET", "/parts/spent");
    for (const [study, card] of cards) card.querySelector("[data-cost]").textContent = paid.studies[study] || "$0.00";
    home.querySelector("[data-cost-all]").textContent = paid.all;
  };
  let costTimer = null;
  const costsSoon = () => { costTimer ||= setTimeout(() => { costTimer = null; costs().catch(() => {}); }, 3000); };

  const draw = () => {
    const studies = new Map();
    let failures = 0;
    for (const { study, status, runs } of experiments.values()) {
      const sums = studies.get(study) || { done: 0, targets: 0, failed: 0, complete: 0, count: 0 };
      const run = runs.at(-1);
      for (const name of ["done", "targets", "failed"]) sums[name] += run ? lab.sum(run[name]) : 0;
      sums.count += 1;
      sums.complete += status.startsWith("complete");
      failures += run ? lab.sum(run.failed) : 0;
      studies.set(study, sums);
    }
    home.querySelector("[data-failed-all]").textContent = lab.count(failures);
    for (const [study, sums] of studies) {
      const card = cards.get(study);
      if (!card) continue;
      Object.assign(card.querySelector("[data-progress]"), { max: sums.targets || 1, value: sums.done });
      card.querySelector("[data-done]").textContent = `${lab.count(sums.complete)} of ${lab.count(sums.count)} experiments complete`;
      card.querySelector("[data-failed]").textContent = sums.failed ? `${lab.count(sums.failed)} failed calls` : "";
    }
  };
  let frame = null; // a thousand statuses at once are drawn once

  costs().catch((error) => lab.say(error.message));
  lab.follow(home.dataset.follow, {
    status(experiment) {
      if (experiments.has(experiment.tag)) costsSoon();
      experiments.set(experiment.tag, experiment);
      frame ||= requestAnimationFrame(() => { frame = null; draw(); });
    },
  });
  for (const place of home.querySelectorAll("[data-sentence]")) { // one after the other: each is computed
    place.dataset.load = place.dataset.sentence;
    await lab.load(place);
  }
});
