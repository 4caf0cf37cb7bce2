// The list of experiments, live: updates statuses and progress, and loads costs once the page is shown.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("live");
  if (!list) return;
  const rows = new Map([...list.querySelectorAll("[data-tag]")].map((row) => [row.dataset.tag, row]));
  const known = new Set();

  const costs = async () => {
    const query = new URLSearchParams([...rows.keys()].map((tag) => ["tag", tag]));
    const paid = await lab.ask("GET", `/parts/spent?${query}`);
    for (const [tag, row] of rows) row.querySelector("[data-cost]").textContent = paid.tags[tag];
  };
  let timer = null;
  const costsSoon = () => { timer ||= setTimeout(() => { timer = null; costs().catch(() => {}); }, 3000); };

  costs().catch((error) => lab.say(error.message));
  lab.follow(list.dataset.follow, {
    status(experiment) {
      if (known.has(experiment.tag)) costsSoon();
      known.add(experiment.tag);
      const row = rows.get(experiment.tag);
      if (!row) return;
      row.querySelector("[data-status]").replaceChildren(lab.pill(experiment.status));
      if (!experiment.runs.length) return;
      const run = experiment.runs.at(-1);
      const [done, targets] = [lab.sum(run.done), lab.sum(run.targets)];
      Object.assign(row.querySelector("progress"), { max: targets || 1, value: done });
      row.querySelector("[data-done]").textContent = lab.count(done);
      row.querySelector("[data-targets]").textContent = lab.count(targets);
      row.querySelector("[data-failed]").textContent = lab.count(lab.sum(run.failed));
      row.querySelector("[data-message]").textContent = run.message;
    },
  });
});
