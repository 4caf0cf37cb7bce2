// A study live: rows, sums and the log follow the events; buttons steer what goes on.
"use strict";

const place = document.getElementById("study");
const study = place.dataset.study;
const at = (id) => document.getElementById(id);
const count = (value) => value.toLocaleString("en");
const total = (counts) => Object.values(counts).reduce((sum, one) => sum + one, 0);
const experiments = new Map(); // tag -> what was told of it last
const rows = new Map([...document.querySelectorAll("#rows tr[data-tag]")].map((row) => [row.dataset.tag, row]));
const NONE = { wanted: {}, done: {}, failed: {}, said: "" };
let newest = Number(place.dataset.newest);
let counted = 0; // when the cost was last asked for
let drawing = false;

function pill(status, text = status) {
  const made = document.createElement("span");
  made.className = `pill ${status}`;
  made.textContent = text;
  return made;
}

function drawRow(row, told, run) {
  row.querySelector(".pill").replaceWith(pill(told.status));
  const bar = row.querySelector("progress");
  bar.max = total(run.wanted) || 1;
  bar.value = total(run.done);
  row.querySelector(".stages").textContent = Object.entries(run.wanted).filter(([, wanted]) => wanted)
    .map(([stage, wanted]) => `${stage} ${run.done[stage]}/${wanted}`).join(" · ");
  row.querySelector(".said").textContent = run.said;
  row.querySelector("a.done").textContent = count(total(run.done));
  row.querySelector(".wanted").textContent = count(total(run.wanted));
  row.querySelector("a.failed").textContent = count(total(run.failed));
}

function drawSums() {
  drawing = false;
  const sums = { wanted: 0, done: 0, failed: 0 };
  const statuses = new Map(), waits = new Set();
  for (const told of experiments.values()) {
    const run = told.runs.at(-1) || NONE;
    for (const name of Object.keys(sums)) sums[name] += total(run[name]);
    statuses.set(told.status, (statuses.get(told.status) || 0) + 1);
    if (run.said) waits.add(run.said);
  }
  at("experiments").textContent = count(experiments.size);
  for (const [name, sum] of Object.entries(sums)) at(name).textContent = count(sum);
  at("progress").max = sums.wanted || 1;
  at("progress").value = sums.done;
  at("statuses").replaceChildren(...[...statuses].flatMap(([status, many]) => [pill(status, `${many} ${status}`), " "]));
  at("waits").hidden = !waits.size;
  at("waits").replaceChildren(...[...waits].slice(0, 5).map((said) => {
    const item = document.createElement("li");
    item.textContent = said;
    return item;
  }));
}

function drawEvent(event) {
  if (event.id <= newest || place.dataset.latest !== "true") return;
  newest = event.id;
  const row = at("log").tBodies[0].insertRow(0);
  const when = row.insertCell();
  when.className = "tight";
  when.textContent = event.at.slice(0, 19).replace("T", " ");
  row.insertCell().append(pill(event.kind), ` ${event.said}`);
  const where = row.insertCell(), link = document.createElement("a");
  where.className = "long";
  link.href = `/experiments/${event.tag.split("/").map(encodeURIComponent).join("/")}`;
  link.textContent = event.tag;
  where.append(link);
}

async function drawCost(patience = 5000) {
  if (Date.now() - counted < patience) return;
  counted = Date.now();
  const told = await lab.ask("GET", `/studies/${encodeURIComponent(study)}/paid`).catch(() => null);
  if (!told) return;
  const { usd, calls } = told;
  at("cost").textContent = usd === null ? "–" : `$${usd.toFixed(usd && usd < 1 ? 4 : 2)}`;
  at("calls").textContent = count(calls);
}

const source = lab.follow(study, {
  status(told) {
    experiments.set(told.tag, told);
    if (rows.has(told.tag)) drawRow(rows.get(told.tag), told, told.runs.at(-1) || NONE);
    if (!drawing) { drawing = true; setTimeout(drawSums, 50); }
    at("live").textContent = "Live.";
    drawCost();
  },
  event(event) { drawEvent(event); },
  end() {
    at("live").textContent = "Nothing goes on now; this page follows if something is started.";
    setTimeout(() => drawCost(0), 200);
  },
});
source.onerror = () => { at("live").textContent = "The connection is away; trying again."; };
drawCost(0);

const DONE = { pause: "paused", cancel: "cancelled", resume: "started", retry: "started" };
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-verb]");
  if (!button || (button.dataset.confirm && !window.confirm(button.dataset.confirm))) return;
  button.disabled = true;
  try {
    const verb = button.dataset.verb;
    const told = await lab.ask("POST", `/api/runs/${verb}`, { target: study });
    const tags = told[DONE[verb]];
    lab.say(tags.length ? `${DONE[verb]}: ${tags.length} experiments` : `there was nothing to ${verb}`);
  } catch (fault) {
    lab.say(fault.message, 20);
  } finally {
    button.disabled = false;
  }
});

const retune = at("retune");
if (retune) retune.addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = retune.querySelector(".fault");
  const body = { target: study, limits: {}, budget: {} };
  for (const input of retune.querySelectorAll("input")) {
    const [group, name] = input.name.split("."), text = input.value.trim();
    if (text !== input.defaultValue) body[group][name] = text === "" ? null : Number(text);
    if (Number.isNaN(body[group][name])) { said.textContent = `${name} is a number, not ${text}`; return; }
  }
  try {
    await lab.ask("POST", "/api/runs/retune", body);
    said.textContent = "";
    for (const input of retune.querySelectorAll("input")) {
      if (input.name.startsWith("limits.")) input.value = "";
      else input.defaultValue = input.value.trim();
    }
    lab.say("Changed.");
  } catch (fault) {
    said.textContent = fault.message;
  }
});
