// A study, live: updates rows, totals and the log; its buttons control the runs.
"use strict";

const page = document.getElementById("study");
const study = page.dataset.study;
const at = (id) => document.getElementById(id);
const experiments = new Map(); // tag -> its latest status
const rows = new Map([...document.querySelectorAll("#rows tr[data-tag]")].map((row) => [row.dataset.tag, row]));
const NO_RUN = { targets: {}, done: {}, failed: {}, message: "" };
let newest = Number(page.dataset.newest);
let costLoaded = 0; // when the cost was last loaded
let drawing = false;

const ACTIVE = ["pending", "evidence-done", "rubric-done", "scoring", "probing"];
const STOPPED = ["paused", "over-budget", "failed"];
const MINUTE = 60_000;
const seen = []; // [time, steps done] of the last minute, from which the rate follows

function duration(seconds) {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function drawRow(row, experiment, run) {
  const targets = lab.sum(run.targets), bar = row.querySelector("progress");
  row.querySelector("[data-status]").replaceChildren(lab.pill(experiment.status));
  bar.hidden = !targets;
  if (targets) Object.assign(bar, { max: targets, value: lab.sum(run.done) });
  row.querySelector(".stages").textContent = Object.entries(run.targets).filter(([, count]) => count)
    .map(([stage, count]) => `${stage} ${run.done[stage]}/${count}`).join(" · ");
  row.querySelector(".message").textContent = run.message;
  row.querySelector("a.done").textContent = targets ? lab.count(lab.sum(run.done)) : "not started";
  row.querySelector(".of").hidden = !targets;
  row.querySelector(".targets").textContent = lab.count(targets);
  const failed = row.querySelector("[data-failed]");
  failed.textContent = targets ? lab.count(lab.sum(run.failed)) : "–";
  failed.classList.toggle("failed", lab.sum(run.failed) > 0);
}

/** Shows the totals once every experiment is known, so that their sum does not grow while it loads. */
function drawTotals() {
  drawing = false;
  if (experiments.size < Number(page.dataset.experiments)) return;
  const totals = { targets: 0, done: 0, failed: 0 };
  const statuses = new Map(), messages = new Set();
  for (const experiment of experiments.values()) {
    const run = experiment.runs.at(-1) || NO_RUN;
    for (const name of Object.keys(totals)) totals[name] += lab.sum(run[name]);
    statuses.set(experiment.status, (statuses.get(experiment.status) || 0) + 1);
    if (run.message) messages.add(run.message);
  }
  for (const [name, total] of Object.entries(totals)) at(name).textContent = lab.count(total);
  if (totals.targets) Object.assign(at("progress"), { max: totals.targets, value: totals.done });
  at("failed-share").textContent = totals.done ? `${(100 * totals.failed / totals.done).toFixed(1)} %` : "–";
  at("statuses").replaceChildren(...[...statuses].flatMap(([status, count]) => [lab.pill(status, count), " "]));
  at("messages").hidden = !messages.size;
  at("messages").replaceChildren(...[...messages].slice(0, 5).map((message) => Object.assign(document.createElement("li"), { textContent: message })));
  const has = (kinds) => kinds.some((status) => statuses.has(status));
  const active = has(ACTIVE) && totals.targets > 0;
  drawPace(totals, active);
  drawState(totals, active, statuses, messages);
  showButtons({
    pause: active, cancel: active || has(["paused", "over-budget"]), resume: !active && (has(["paused", "over-budget"]) || (has(["failed"]) && totals.done < totals.targets)),
    retry: !active && totals.failed > 0, start: !active && has(["cancelled"]),
  });
}

/** Shows the rate over the last minute and the time that is left at it. */
function drawPace(totals, active) {
  const now = Date.now();
  seen.push([now, totals.done]);
  while (now - seen[0][0] > MINUTE) seen.shift();
  const [then, done] = seen[0];
  const perMinute = now - then > 2000 ? (totals.done - done) * MINUTE / (now - then) : null;
  for (const id of ["rate", "left"]) at(id).parentElement.hidden = !active;
  at("rate").textContent = perMinute === null ? "…" : lab.count(Math.round(perMinute));
  at("left").textContent = perMinute ? duration((totals.targets - totals.done) / perMinute * 60) : "…";
}

function drawState(totals, active, statuses, messages) {
  const share = totals.targets ? `${Math.floor(100 * totals.done / totals.targets)} %` : "";
  const complete = totals.targets && !active && [...statuses.keys()].every((status) => status.startsWith("complete"));
  const stopped = [...STOPPED, "cancelled"].filter((status) => statuses.has(status)).map((status) => status.replaceAll("-", " "));
  at("state").textContent = active ? (messages.size ? `Waiting at ${share}` : `Running: ${share} done`)
    : complete ? "Complete" : stopped.length ? `Stopped at ${share}: ${stopped.join(", ")}` : "Not started";
  at("findings").classList.toggle("main", Boolean(complete));
  at("findings").textContent = complete ? "See the findings" : "Findings";
}

/** Shows the buttons that can act now. */
function showButtons(can) {
  for (const button of document.querySelectorAll("[data-verb]")) button.hidden = !can[button.dataset.verb];
}

function drawEvent(event) {
  if (event.id <= newest || page.dataset.latest !== "true") return;
  newest = event.id;
  const row = at("log").tBodies[0].insertRow(0);
  const time = row.insertCell();
  time.className = "tight";
  time.textContent = event.at.slice(0, 19).replace("T", " ");
  row.insertCell().append(lab.pill(event.kind), ` ${event.message}`);
  const where = row.insertCell(), link = document.createElement("a");
  where.className = "long";
  link.href = `/experiments/${event.tag.split("/").map(encodeURIComponent).join("/")}`;
  link.textContent = event.tag;
  where.append(link);
}

async function drawCost(minimumAge = 5000) {
  if (Date.now() - costLoaded < minimumAge) return;
  costLoaded = Date.now();
  const paid = await lab.ask("GET", `/studies/${encodeURIComponent(study)}/paid`).catch(() => null);
  if (!paid) return;
  const { usd, calls } = paid;
  at("cost").textContent = usd === null ? "–" : `$${usd.toFixed(usd && usd < 1 ? 4 : 2)}`;
  at("calls").textContent = lab.count(calls);
  if (at("spent")) Object.assign(at("spent"), { value: usd || 0, hidden: usd === null });
  at("models").closest("div").hidden = !paid.models.length;
  at("models").tBodies[0].replaceChildren(...paid.models.map((model) => {
    const row = document.createElement("tr");
    const cells = [[model.model, "anywhere"], [lab.count(model.answered), "n"], [lab.count(model.in_flight), "n"], [lab.count(model.last_minute), "n"], [model.last_error || "–", "long"]];
    for (const [text, kind] of cells) Object.assign(row.insertCell(), { textContent: text, className: kind });
    return row;
  }));
}

document.addEventListener("DOMContentLoaded", () => {
  const source = lab.follow(study, {
    status(experiment) {
      experiments.set(experiment.tag, experiment);
      if (rows.has(experiment.tag)) drawRow(rows.get(experiment.tag), experiment, experiment.runs.at(-1) || NO_RUN);
      if (!drawing) { drawing = true; setTimeout(drawTotals, 50); }
      at("live").textContent = "In progress. Updates automatically.";
      drawCost();
    },
    event: drawEvent,
    end() {
      at("live").textContent = "Idle. Updates automatically.";
      setTimeout(() => drawCost(0), 200);
    },
  });
  source.onerror = () => { at("live").textContent = "Connection lost. Reconnecting …"; };
  drawCost(0);
  setInterval(() => { if (experiments.size) drawTotals(); }, 5000); // the rate falls where nothing comes
});

const DONE = { pause: "paused", cancel: "cancelled", resume: "started", retry: "started", start: "started" };
const PATHS = { start: "/api/runs" };
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-verb]");
  if (!button) return;
  const verb = button.dataset.verb;
  lab.act(button, async () => {
    const tags = (await lab.ask("POST", PATHS[verb] || `/api/runs/${verb}`, { target: study }))[DONE[verb]];
    lab.say(tags.length ? `${DONE[verb]}: ${tags.length} experiments` : `Nothing to ${verb}.`);
  });
});

const retune = at("retune");
if (retune) retune.addEventListener("submit", async (event) => {
  event.preventDefault();
  const error = retune.querySelector(".error");
  const body = { target: study, limits: {}, budget: {} };
  for (const input of retune.querySelectorAll("input")) {
    const [group, name] = input.name.split("."), text = input.value.trim();
    if (text !== input.defaultValue) body[group][name] = text === "" ? null : Number(text);
    if (Number.isNaN(body[group][name])) { error.textContent = `${name} must be a number, not ${text}`; return; }
  }
  try {
    await lab.ask("POST", "/api/runs/retune", body);
    error.textContent = "";
    for (const input of retune.querySelectorAll("input")) {
      if (input.name.startsWith("limits.")) input.value = "";
      else input.defaultValue = input.value.trim();
    }
    lab.say("Changed.");
  } catch (problem) {
    error.textContent = problem.message;
  }
});
