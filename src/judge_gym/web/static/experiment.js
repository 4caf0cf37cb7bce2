// An experiment, live: updates its runs while they are in progress, and its results when they end.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const live = document.getElementById("live");
  const heading = document.querySelector(".head [data-status]");
  const place = location.pathname;
  let changed = false; // whether anything has happened since the page was rendered

  const show = (card, run) => {
    card.querySelector("[data-run-status]").replaceChildren(lab.pill(run.status));
    card.querySelector("[data-message]").textContent = run.message;
    for (const [stage, targets] of Object.entries(run.targets)) {
      let line = card.querySelector(`[data-stage="${stage}"]`);
      if (!line && !targets) continue;
      if (!line) { // a step that was not due when the page was rendered
        line = document.createElement("div");
        line.dataset.stage = stage;
        line.innerHTML = '<span></span> <progress></progress> <span class="note"><span data-done></span> of <span data-targets></span></span>';
        line.firstChild.textContent = stage;
        card.querySelector(".stages").append(line);
      }
      Object.assign(line.querySelector("progress"), { max: targets || 1, value: run.done[stage] });
      line.querySelector("[data-done]").textContent = lab.count(run.done[stage]);
      line.querySelector("[data-targets]").textContent = lab.count(targets);
    }
    card.querySelector("[data-statuses]").replaceChildren(...Object.entries(run.verdicts).map(([status, count]) => {
      const link = document.createElement("a");
      link.href = `${place}?run=${run.run}&status=${status}#samples`;
      link.append(lab.pill(status), ` ${lab.count(count)}`);
      return link;
    }));
  };

  // Replaces the parts that grow with a run by what the server shows now.
  const refresh = async () => {
    const text = await (await fetch(location.href)).text();
    const now = new DOMParser().parseFromString(text, "text/html");
    for (const id of ["rubric-list", "sample-list"])
      document.getElementById(id).replaceWith(now.getElementById(id));
  };

  let latest = null;
  lab.follow(live.dataset.follow, {
    status(row) {
      if (row.tag !== live.dataset.follow) return;
      const pill = lab.pill(row.status);
      changed ||= latest !== null || heading.textContent !== pill.textContent;
      latest = row;
      heading.replaceChildren(pill);
      for (const run of row.runs) {
        const card = live.querySelector(`[data-run="${run.run}"]`);
        if (card) show(card, run);
        else location.reload(); // a run that was started since
      }
    },
    end() {
      if (!changed) return;
      changed = false;
      for (const part of document.querySelectorAll("[data-load]")) lab.load(part);
      refresh().catch((error) => lab.say(error.message));
    },
  });
});
