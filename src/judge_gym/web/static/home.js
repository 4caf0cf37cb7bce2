// Home, live: statuses and progress as they come, costs once the page is shown.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const home = document.getElementById("live");
  if (!home) return;
  const rows = new Map([...home.querySelectorAll("[data-tag]")].map((row) => [row.dataset.tag, row]));
  const cards = new Map([...home.querySelectorAll("[data-study]")].map((card) => [card.dataset.study, card]));
  const seen = new Map(); // tag -> the status last told

  const costs = async () => {
    const query = new URLSearchParams([...rows.keys()].map((tag) => ["tag", tag]));
    const told = await lab.ask("GET", `/parts/spent?${query}`);
    for (const [tag, row] of rows) row.querySelector("[data-cost]").textContent = told.tags[tag];
    for (const [study, card] of cards) card.querySelector("[data-cost]").textContent = told.studies[study] || "$0.00";
    home.querySelector("[data-cost-all]").textContent = told.all;
  };
  let asked = null;
  const costsSoon = () => { asked ||= setTimeout(() => { asked = null; costs().catch(() => {}); }, 3000); };

  const failed = (told) => (told.runs.length ? lab.sum(told.runs.at(-1).failed) : 0);

  const glance = () => {
    const studies = new Map();
    let lost = 0;
    for (const told of seen.values()) {
      lost += failed(told);
      const counts = studies.get(told.study) || studies.set(told.study, new Map()).get(told.study);
      counts.set(told.status, (counts.get(told.status) || 0) + 1);
    }
    home.querySelector("[data-failed-all]").textContent = lab.count(lost);
    for (const [study, counts] of studies) {
      const place = cards.get(study)?.querySelector("[data-counts]");
      if (!place) continue;
      place.replaceChildren(...[...counts].sort().map(([status, count]) => {
        const pill = lab.pill(status);
        pill.textContent = `${lab.count(count)} ${pill.textContent}`;
        return pill;
      }));
    }
  };
  let drawn = null; // a thousand statuses at once are drawn once
  const glanceSoon = () => { drawn ||= requestAnimationFrame(() => { drawn = null; glance(); }); };

  costs().catch((fault) => lab.say(fault.message));
  lab.follow(home.dataset.follow, {
    status(told) {
      const before = seen.get(told.tag);
      seen.set(told.tag, told);
      glanceSoon();
      if (before) costsSoon();
      const row = rows.get(told.tag);
      if (!row) return;
      row.querySelector("[data-status]").replaceChildren(lab.pill(told.status));
      if (!told.runs.length) return;
      const run = told.runs.at(-1);
      const [done, wanted] = [lab.sum(run.done), lab.sum(run.wanted)];
      Object.assign(row.querySelector("progress"), { max: wanted || 1, value: done });
      row.querySelector("[data-done]").textContent = lab.count(done);
      row.querySelector("[data-wanted]").textContent = lab.count(wanted);
      row.querySelector("[data-failed]").textContent = lab.count(failed(told));
      row.querySelector("[data-said]").textContent = run.said;
    },
  });
});
