// Writes the form as a study file, line by line, and estimates the file whenever it changes.
"use strict";

const form = document.getElementById("form");
const yaml = document.getElementById("yaml");
const at = (id) => document.getElementById(id);
const start = at("start");
const WAIT = 350; // ms after the last change
let owners = []; // for every line of the file, the part of the form that it comes from
let edited = false; // by hand: then the text counts instead of the form
let asked = 0, timer = 0, planned = null;

// --- the file ------------------------------------------------------------------------------------

const RESERVED = /^(true|false|null|yes|no|on|off|y|n)$/i;
/** Returns a text as YAML: bare where that is safe, else as JSON, which YAML reads. */
const word = (text) => (/^[A-Za-z][\w.-]*$/.test(text) && !RESERVED.test(text) ? text : JSON.stringify(text));
const number = (text) => (/^-?\d+(\.\d+)?$/.test(text) ? text : word(text));
const writers = { text: word, number, flag: (text) => text };
const list = (items) => `[${items.join(", ")}]`;
const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

function build() {
  const file = [], values = new FormData(form);
  const get = (name) => (values.get(name) || "").trim();
  const say = (text, owner) => file.push([text, owner]);
  const part = (name) => form.querySelector(`[data-part="${name}"]`);

  say(`study: ${word(get("study"))}`, part("study"));
  say(`seed: ${number(get("seed"))}`, part("study"));
  say(`samples: ${number(get("samples"))}`, part("study"));

  const tasks = [...form.querySelectorAll(".task")].map((row) => Object.fromEntries(
    [...row.querySelectorAll("[name]")].map((input) => [input.name.slice("task.".length), input.value.trim()])));
  say("evidence:", part("tasks"));
  for (const pool of new Set(tasks.map((task) => task.evidence)))
    say(`  ${word(pool)}: {pool: ${word(pool)}}`, part("tasks"));
  if (get("protocol")) say(`protocol: ${get("protocol")}`, part("study"));
  say("tasks:", part("tasks"));
  for (const task of tasks) {
    const fields = [`concept: ${word(task.concept)}`, `evidence: ${word(task.evidence)}`];
    if (task.type) fields.unshift(`type: ${task.type}`);
    if (task.dose) fields.push(`dose: ${number(task.dose)}`);
    if (task.rubric) fields.push(`rubric: ${word(task.rubric)}`);
    if (task.value || task.source) fields.push(`truth: {source: ${word(task.source)}, value: ${number(task.value)}}`);
    say(`  - {${fields.join(", ")}}`, part("tasks"));
  }
  say(`judges: ${list([...values.getAll("judge"), ...lines(values.get("judges"))].map(word))}`, part("judges"));
  if (get("assistant")) say(`assistant: ${word(get("assistant"))}`, part("study"));

  const design = [], vary = [];
  for (const knob of form.querySelectorAll(".knob")) {
    const { path, kind } = knob.dataset, base = get(`base:${path}`), write = writers[kind];
    if (base !== knob.dataset.default) design.push([`  ${path}: ${write(base)}`, knob]);
    if (!values.has(`vary:${path}`)) continue;
    const levels = values.getAll(`level:${path}`).flatMap(lines);
    vary.push([`  ${path}: ${list(levels.map(write))}`, knob]);
  }
  if (design.length) file.push(["design:", part("design")], ...design);
  if (vary.length) file.push(["vary:", part("design")], ...vary);
  if (get("sweep") === "sample") say(`sweep: {sample: ${number(get("points"))}}`, part("study"));
  else if (get("sweep") !== "grid") say(`sweep: ${get("sweep")}`, part("study"));
  if (get("swap") !== "none") say(`swap: ${get("swap")}`, part("study"));
  if (!values.has("probe")) say("probe: false", part("study"));

  const caps = [...values].filter(([name, value]) => name.startsWith("budget.") && value.trim());
  const limits = caps.map(([name, value]) => `${name.slice("budget.".length)}: ${number(value.trim())}`);
  if (limits.length) say(`budget: {${limits.join(", ")}}`, part("budget"));
  const tolerance = form.elements.tolerance;
  if (get("tolerance") !== tolerance.defaultValue) say(`tolerance: ${number(get("tolerance"))}`, part("budget"));

  owners = file.map(([, owner]) => owner);
  yaml.value = file.map(([text]) => text).join("\n") + "\n";
}

// --- the estimate ------------------------------------------------------------------------------------

const count = (value) => value.toLocaleString("en");
function duration(seconds) {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function clear() {
  for (const place of document.querySelectorAll(".error")) place.textContent = "";
  planned = null;
  if (start) { start.disabled = true; start.textContent = "Start"; }
}

/** Shows an error beside the part of the form that its line in the file comes from. */
function refuse(message) {
  const [, line, text] = message.match(/^study:(\d+): ([^]*)$/) || [];
  const owner = line && !edited ? owners[Number(line) - 1] : null;
  const place = owner && owner.querySelector(":scope > .error");
  if (place) {
    place.textContent = text;
    const folded = place.closest("details");
    if (folded) folded.open = true;
  }
  at("refused").textContent = line ? `line ${line}: ${text}` : message;
  for (const id of ["experiments", "calls", "usd", "time"]) at(id).textContent = "–";
  for (const id of ["known", "warnings"]) at(id).textContent = "";
  at("parts").hidden = true;
}

function show(estimate) {
  const all = estimate.stages.all;
  at("experiments").textContent = count(estimate.experiments.length);
  at("calls").textContent = count(all.to_pay);
  at("usd").textContent = all.usd === null ? "unknown" : `$${all.usd.toFixed(2)}`;
  at("time").textContent = duration(all.seconds);
  const known = [];
  if (all.in_ledger) known.push(`${count(all.in_ledger)} answers are already in the ledger and cost nothing.`);
  if (all.shared) known.push(`${count(all.shared)} calls are shared between experiments and made once.`);
  known.push(`${count(all.input_tokens)} tokens in, ${count(all.output_tokens)} tokens out.`);
  at("known").textContent = known.join(" ");
  const notes = [...estimate.warnings,
    ...Object.entries(estimate.duplicates).map(([tag, same]) => `${tag} is the same experiment as ${same}`),
    ...estimate.skipped_swaps.map((tag) => `no swap for ${tag}`)];
  at("warnings").replaceChildren(...notes.slice(0, 20).map((note) => {
    const item = document.createElement("li");
    item.textContent = note;
    return item;
  }));
  const rows = [...Object.entries(estimate.stages).filter(([name, stage]) => name !== "all" && stage.calls)
    .map(([name, stage]) => [name, stage.to_pay, stage.in_ledger]),
    ...estimate.experiments.slice(0, 50).map((row) => [row.tag, row.to_pay ?? row.calls, row.in_ledger])];
  at("parts").hidden = false;
  at("parts").querySelector("tbody").replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    cells.forEach((cell, place) => {
      const added = row.insertCell();
      added.className = place ? "n" : "long";
      added.textContent = place ? count(cell ?? 0) : cell;
    });
    return row;
  }));
  planned = estimate.study;
  if (start) { start.disabled = false; start.textContent = `Start: ${count(all.to_pay)} calls`; }
}

async function plan() {
  const number = ++asked;
  if (!start) return;
  at("plan").setAttribute("aria-busy", "true");
  try {
    const estimate = await lab.ask("POST", "/api/plan", { study: yaml.value });
    if (number !== asked) return;
    clear();
    show(estimate);
  } catch (error) {
    if (number !== asked) return;
    clear();
    refuse(error.message);
  }
  at("plan").removeAttribute("aria-busy");
}

function changed() {
  if (!edited) build();
  if (start) start.disabled = true;
  asked += 1; // a pending answer is for an older text
  saveAddress();
  clearTimeout(timer);
  timer = setTimeout(plan, WAIT);
}

// --- the address ---------------------------------------------------------------------------------

const encoded = (values, name) => JSON.stringify(values.getAll(name));
const defaults = new FormData(form);

/** Stores in the address what differs from an empty form, or the text that was edited by hand. */
function saveAddress() {
  const query = new URLSearchParams(), values = new FormData(form);
  if (edited) query.set("yaml", yaml.value);
  else for (const name of new Set([...values.keys(), ...defaults.keys()]))
    if (encoded(values, name) !== encoded(defaults, name))
      for (const value of values.has(name) ? values.getAll(name) : [""]) query.append(name, value);
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
}

function loadAddress() {
  const query = new URLSearchParams(location.search);
  if (query.has("yaml") || yaml.dataset.given === "true") {
    yaml.value = query.get("yaml") ?? yaml.value;
    setEdited(true);
    return;
  }
  while (form.querySelectorAll(".task").length < Math.min(query.getAll("task.type").length, 100)) addTask();
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name);
    [...form.elements].filter((input) => input.name === name).forEach((input, place) => {
      if (input.type === "checkbox") input.checked = values.includes(input.value);
      else if (values[place] !== undefined) input.value = values[place];
    });
  }
}

// --- what the user does --------------------------------------------------------------------------

function addTask() {
  const rows = at("tasks"), row = rows.lastElementChild.cloneNode(true);
  for (const input of row.querySelectorAll("input")) input.value = "";
  rows.append(row);
}

function showLevels() {
  form.elements.points.closest("label").hidden = form.elements.sweep.value !== "sample";
  for (const knob of form.querySelectorAll(".knob")) {
    const varies = form.elements[`vary:${knob.dataset.path}`].checked;
    knob.querySelector(".levels").hidden = !varies;
    if (varies) knob.closest("details").open = true;
  }
}

/** Shows the defaults of the chosen protocol wherever a default was shown before. */
function followProtocol() {
  const replaced = JSON.parse(form.elements.protocol.selectedOptions[0].dataset.defaults);
  for (const knob of form.querySelectorAll(".knob")) {
    const { path } = knob.dataset, base = form.elements[`base:${path}`];
    knob.dataset.neutral ??= knob.dataset.default;
    const usual = replaced[path] ?? knob.dataset.neutral;
    if (base.value === knob.dataset.default) base.value = usual;
    knob.dataset.default = usual;
  }
}

function setEdited(on) {
  edited = on;
  at("edited").hidden = !on;
  form.querySelector("fieldset").disabled = on;
}

form.addEventListener("input", (event) => {
  if (event.target.name === "protocol") followProtocol();
  showLevels();
  changed();
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("click", (event) => {
  const drop = event.target.closest("[data-drop]");
  if (drop && form.querySelectorAll(".task").length > 1) drop.closest(".task").remove();
  else if (event.target.id === "more") addTask();
  else return;
  changed();
});
yaml.addEventListener("input", () => { setEdited(true); changed(); });
at("back").addEventListener("click", () => { setEdited(false); changed(); });

at("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([yaml.value], { type: "application/yaml" }));
  link.download = `${planned || "study"}.yaml`;
  link.click();
  URL.revokeObjectURL(link.href);
});

if (start) start.addEventListener("click", async () => {
  start.disabled = true;
  const name = planned;
  try {
    await lab.ask("POST", "/api/runs", { study: yaml.value });
    location.assign(`/studies/${encodeURIComponent(name)}/runs`);
  } catch (error) {
    refuse(error.message);
    start.disabled = false;
  }
});

loadAddress();
followProtocol();
showLevels();
changed();
