// Home, live: updates statuses and progress, and loads costs once the page is shown.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const home = document.getElementById("live");
  if (!home) return;
  const rows = new Map([...home.querySelectorAll("[data-tag]")].map((row) => [row.dataset.tag, row]));
  const cards = new Map([...home.querySelectorAll("[data-study]")].map((card) => [card.dataset.study, card]));
  const experiments = new Map(); // tag -> its latest status

  const costs = async () => {
    const query = new URLSearchParams([...rows.keys()].map((tag) => ["tag", tag]));
    const paid = await lab.ask("GET", `/parts/spent?${query}`);
    for (const [tag, row] of rows) row.querySelector("[data-cost]").textContent = paid.tags[tag];
    for (const [study, card] of cards) card.querySelector("[data-cost]").textContent = paid.studies[study] || "$0.00";
    home.querySelector("[data-cost-all]").textContent = paid.all;
  };
  let costTimer = null;
  const costsSoon = () => { costTimer ||= setTimeout(() => { costTimer = null; costs().catch(() => {}); }, 3000); };

  const failed = (experiment) => (experiment.runs.length ? lab.sum(experiment.runs.at(-1).failed) : 0);

  const drawTotals = () => {
    const studies = new Map();
    let failures = 0;
    for (const experiment of experiments.values()) {
      failures += failed(experiment);
      const counts = studies.get(experiment.study) || studies.set(experiment.study, new Map()).get(experiment.study);
      counts.set(experiment.status, (counts.get(experiment.status) || 0) + 1);
    }
    home.querySelector("[data-failed-all]").textContent = lab.count(failures);
    for (const [study, counts] of studies)
      cards.get(study)?.querySelector("[data-counts]")
        .replaceChildren(...[...counts].sort().map(([status, count]) => lab.pill(status, count)));
  };
  let frame = null; // a thousand statuses at once are drawn once
  const drawTotalsSoon = () => { frame ||= requestAnimationFrame(() => { frame = null; drawTotals(); }); };

  costs().catch((error) => lab.say(error.message));
  lab.follow(home.dataset.follow, {
    status(experiment) {
      const known = experiments.has(experiment.tag);
      experiments.set(experiment.tag, experiment);
      drawTotalsSoon();
      if (known) costsSoon();
      const row = rows.get(experiment.tag);
      if (!row) return;
      row.querySelector("[data-status]").replaceChildren(lab.pill(experiment.status));
      if (!experiment.runs.length) return;
      const run = experiment.runs.at(-1);
      const [done, targets] = [lab.sum(run.done), lab.sum(run.targets)];
      Object.assign(row.querySelector("progress"), { max: targets || 1, value: done });
      row.querySelector("[data-done]").textContent = lab.count(done);
      row.querySelector("[data-targets]").textContent = lab.count(targets);
      row.querySelector("[data-failed]").textContent = lab.count(failed(experiment));
      row.querySelector("[data-message]").textContent = run.message;
    },
  });
});
