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

function drawRow(row, experiment, run) {
  row.querySelector("[data-status]").replaceChildren(lab.pill(experiment.status));
  Object.assign(row.querySelector("progress"), { max: lab.sum(run.targets) || 1, value: lab.sum(run.done) });
  row.querySelector(".stages").textContent = Object.entries(run.targets).filter(([, targets]) => targets)
    .map(([stage, targets]) => `${stage} ${run.done[stage]}/${targets}`).join(" · ");
  row.querySelector(".message").textContent = run.message;
  row.querySelector("a.done").textContent = lab.count(lab.sum(run.done));
  row.querySelector(".targets").textContent = lab.count(lab.sum(run.targets));
  row.querySelector("a.failed").textContent = lab.count(lab.sum(run.failed));
}

function drawTotals() {
  drawing = false;
  const totals = { targets: 0, done: 0, failed: 0 };
  const statuses = new Map(), messages = new Set();
  for (const experiment of experiments.values()) {
    const run = experiment.runs.at(-1) || NO_RUN;
    for (const name of Object.keys(totals)) totals[name] += lab.sum(run[name]);
    statuses.set(experiment.status, (statuses.get(experiment.status) || 0) + 1);
    if (run.message) messages.add(run.message);
  }
  at("experiments").textContent = lab.count(experiments.size);
  for (const [name, total] of Object.entries(totals)) at(name).textContent = lab.count(total);
  Object.assign(at("progress"), { max: totals.targets || 1, value: totals.done });
  at("statuses").replaceChildren(...[...statuses].flatMap(([status, count]) => [lab.pill(status, count), " "]));
  at("messages").hidden = !messages.size;
  at("messages").replaceChildren(...[...messages].slice(0, 5).map((message) => {
    const item = document.createElement("li");
    item.textContent = message;
    return item;
  }));
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
});

const DONE = { pause: "paused", cancel: "cancelled", resume: "started", retry: "started" };
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-verb]");
  if (!button) return;
  const verb = button.dataset.verb;
  lab.act(button, async () => {
    const tags = (await lab.ask("POST", `/api/runs/${verb}`, { target: study }))[DONE[verb]];
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
