// The form of a new study: writes it as a study file, line by line, and estimates the file whenever it changes.
"use strict";

const form = document.getElementById("form");
const yaml = document.getElementById("yaml");
const at = (id) => document.getElementById(id);
const start = at("start");
const steps = [...form.querySelectorAll(".step")];
const WAIT = 350; // ms after the last change
const KEPT = `new study ${location.search}`; // what was typed is kept for the tab, by address
let owners = []; // for every line of the file, the part of the form that it comes from
let edited = false; // by hand: then the text counts instead of the form
let asked = 0, timer = 0, planned = null;
const NOTHING = { ask: "", items: [], columns: [], raters: [], stages: [], questions: [], notes: [], error: "", table: false, certain: true, ordered: true };
let pasted = NOTHING; // what the server read of the pasted texts
let reading = ""; // the request whose answer is awaited, if any

// --- the file ------------------------------------------------------------------------------------

const RESERVED = /^(true|false|null|yes|no|on|off|y|n)$/i;
/** Returns a text as YAML: bare where that is safe, else as JSON, which YAML reads. */
const word = (text) => (/^[A-Za-z][\w.-]*$/.test(text) && !RESERVED.test(text) ? text : JSON.stringify(text));
const number = (text) => (/^-?\d+(\.\d+)?$/.test(text) ? text : word(text));
const writers = { text: word, number, flag: (text) => text };
const list = (items) => `[${items.join(", ")}]`;
const map = (entries) => `{${entries.map(([name, value]) => `${word(name)}: ${value}`).join(", ")}}`;
const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const field = (name) => form.elements[name];
const chosen = (name) => new FormData(form).get(name);
const tasks = () => [...form.querySelectorAll(".task")].map((row) => Object.fromEntries(
  [...row.querySelectorAll("[name]")].map((input) => [input.name.slice("task.".length), input.value.trim()])));
const judges = () => { const values = new FormData(form); return [...values.getAll("judge"), ...lines(values.get("judges") || "")]; };
const pairs = () => pasted.items.some((item) => item.responses);

/** Returns an item as YAML: a bare text, or a map of its fields. */
function itemLine(item) {
  if (Object.keys(item).length === 1) return JSON.stringify(item.text);
  return map(Object.entries(item).map(([name, value]) => [name, Array.isArray(value) ? list(value.map((text) => JSON.stringify(text))) : JSON.stringify(value)]));
}

/** Returns answers as a rubric; those of a table without an order are options. */
function rubricOf(stages) {
  const same = stages.map((stage) => stage.split(":")[0].trim()).sort().join("\n") === [...pasted.stages].sort().join("\n");
  if (pasted.ordered || !same) return list(stages.map((stage) => JSON.stringify(stage)));
  const options = stages.map((stage) => { const [label, ...rest] = stage.split(":"); return [label.trim(), rest.join(":").trim() || label.trim()]; });
  return map([["kind", "nominal"], ["stages", list(options.map(([label, text]) => map([["label", JSON.stringify(label)], ["criteria", list([JSON.stringify(text)])]])))]]);
}

const OPTIONS = [["first", "The first response is better."], ["second", "The second response is better."], ["tie", "Both are equally good."]];
const PAIR_RUBRIC = map([["kind", "nominal"], ["stages", list(OPTIONS.map(([label, text]) => map([["label", label], ["criteria", list([JSON.stringify(text)])]])))]]);

function build() {
  const file = [], values = new FormData(form);
  const get = (name) => (values.get(name) || "").trim();
  const say = (text, owner) => file.push([text, owner]);
  const part = (name) => form.querySelector(`[data-part="${name}"]`);

  say(`study: ${word(get("study"))}`, part("study"));
  say(`seed: ${number(get("seed"))}`, part("study"));
  say(`samples: ${number(get("samples"))}`, part("judges"));

  const asks = tasks(), pastes = get("source") === "paste", { raters } = pasted;
  const pool = (task) => task.evidence || (pastes ? "texts" : get("pool"));
  say("evidence:", part("evidence"));
  for (const name of new Set(asks.map(pool))) {
    if (name !== "texts" || !pastes) { say(`  ${word(name)}: {pool: ${word(name)}}`, part("evidence")); continue; }
    say("  texts:", part("evidence"));
    say("    items:", part("evidence"));
    for (const item of pasted.items) say(`      - ${itemLine(item)}`, part("evidence"));
    if (raters.length) say(`    labels: ${list(raters.map(word))}`, part("evidence"));
    if (get("protocol") && get("country")) say(`    window: {country: ${word(get("country"))}}`, part("evidence"));
  }
  if (get("protocol")) say(`protocol: ${get("protocol")}`, part("study"));
  say("tasks:", part("tasks"));
  for (const task of asks) {
    const fields = [["concept", word(task.concept)], ["evidence", word(pool(task))]], stages = lines(task.stages);
    if (task.type) fields.unshift(["type", task.type]);
    if (task.dose) fields.push(["dose", number(task.dose)]);
    if (task.rubric) fields.push(["rubric", word(task.rubric)]);
    else if (pastes && pairs() && pool(task) === "texts") fields.push(["rubric", PAIR_RUBRIC]);
    else if (stages.length) fields.push(["rubric", pastes ? rubricOf(stages) : list(stages.map((stage) => JSON.stringify(stage)))]);
    if (task.value || task.source) fields.push(["truth", map([["source", word(task.source)], ["value", number(task.value)]])]);
    say(`  - ${map(fields)}`, part("tasks"));
  }
  say(`judges: ${list(judges().map(word))}`, part("judges"));
  if (get("assistant") && needsAssistant()) say(`assistant: ${word(get("assistant"))}`, part("judges"));

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
  if (get("sweep") === "sample") say(`sweep: {sample: ${number(get("points"))}}`, part("design"));
  else if (get("sweep") !== "grid") say(`sweep: ${get("sweep")}`, part("design"));
  if (get("swap") !== "none") say(`swap: ${get("swap")}`, part("design"));
  if (!values.has("probe")) say("probe: false", part("design"));

  const caps = [...values].filter(([name, value]) => name.startsWith("budget.") && value.trim());
  const limits = caps.map(([name, value]) => `${name.slice("budget.".length)}: ${number(value.trim())}`);
  if (limits.length) say(`budget: {${limits.join(", ")}}`, part("budget"));
  if (get("tolerance") !== field("tolerance").defaultValue) say(`tolerance: ${number(get("tolerance"))}`, part("budget"));

  owners = file.map(([, owner]) => owner);
  yaml.value = file.map(([text]) => text).join("\n") + "\n";
}

// --- what is still needed ------------------------------------------------------------------------

/** Returns what each step still lacks, in words; a step that is complete is left out. */
function lacking() {
  const lacks = {};
  if (chosen("source") === "paste") {
    if (pasted.error) lacks.evidence = "a table that can be read";
    else if (pasted.questions.length) lacks.evidence = "a look at the columns of the table";
    else if (!pasted.items.length) lacks.evidence = "texts";
    else if (chosen("protocol") && !chosen("country").trim()) lacks.evidence = "the country that the texts are about";
  } else if (!chosen("pool")) lacks.evidence = "a pool";
  if (tasks().some((task) => !task.concept)) lacks.question = "a question";
  if (!judges().length) lacks.judges = "a judge";
  return lacks;
}

/** Returns the keys that chosen models need and that are not set. */
function missingKeys() {
  const used = [...judges(), ...(needsAssistant() ? [chosen("assistant")] : [])];
  return [...form.querySelectorAll("[data-provider]")].filter((group) => group.dataset.missing && used.some((id) => id.startsWith(`${group.dataset.provider}:`)))
    .map((group) => `${group.dataset.missing} is not set, so ${group.dataset.provider} cannot be called. Set it where the lab runs, or choose other models.`);
}

const needsAssistant = () => Boolean(chosen("protocol")) || chosen("base:evidence.view") !== "raw" || new FormData(form).has("vary:evidence.view");

/** Sets the assistant to a model of the first judge's provider that is no judge, until the user names one. */
function followJudges() {
  const assistant = field("assistant"), judging = judges();
  assistant.closest("label").hidden = !needsAssistant();
  if (assistant.value && assistant.value !== assistant.dataset.followed) return;
  const provider = (judging[0] || "").split(":")[0];
  const models = [...document.querySelectorAll("#models option")].map((option) => option.value).filter((id) => id.startsWith(`${provider}:`));
  const free = models.filter((id) => !judging.includes(id));
  assistant.value = assistant.dataset.followed = free[0] || "";
}

const slug = (text) => text.toLowerCase().replace(/[^\p{Letter}\p{Number}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 40);

/** Names the study after its question, with a number where the name is taken, until the user names it. */
function followQuestion() {
  const name = field("study"), taken = JSON.parse(name.dataset.taken);
  if (name.value && name.value !== name.dataset.followed) return;
  const base = slug(tasks()[0].concept) || "new-study";
  let free = base;
  for (let n = 2; taken.includes(free); n++) free = `${base}-${n}`;
  name.value = name.dataset.followed = free;
}

// --- the estimate --------------------------------------------------------------------------------

const count = (value) => value.toLocaleString("en");
function duration(seconds) {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
const dollars = (usd) => (usd === null ? "unknown" : `$${usd && usd < 1 ? usd.toFixed(4) : usd.toFixed(2)}`);

function clear() {
  for (const place of document.querySelectorAll(".error:not(#texts-read)")) place.textContent = "";
  planned = null;
  for (const id of ["experiments", "calls", "usd", "time"]) at(id).textContent = "–";
  for (const id of ["known", "warnings"]) at(id).textContent = "";
  at("parts").hidden = true;
}

/** Disables Start and says why; without a reason it can be pressed. */
function block(reason) {
  if (!start) return;
  start.disabled = Boolean(reason);
  if (reason) start.textContent = "Start";
  at("reason").textContent = reason;
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
  const step = place && place.closest(".step").dataset.step;
  at("refused").textContent = step ? `${text} (in step ${step})` : line ? `line ${line}: ${text}` : message;
  block("The study cannot be planned yet.");
}

function show(estimate) {
  const all = estimate.stages.all;
  at("experiments").textContent = count(estimate.experiments.length);
  at("calls").textContent = count(all.to_pay);
  at("usd").textContent = dollars(all.usd);
  at("time").textContent = duration(all.seconds);
  const known = [];
  if (all.in_ledger) known.push(`${count(all.in_ledger)} answers are already in the ledger and cost nothing.`);
  if (all.shared) known.push(`${count(all.shared)} calls are shared between experiments and made once.`);
  known.push(`${count(all.input_tokens)} tokens in, ${count(all.output_tokens)} tokens out.`);
  at("known").textContent = known.join(" ");
  const notes = [...estimate.warnings.filter((note) => !estimate.uncallable.includes(note)),
    ...Object.entries(estimate.duplicates).map(([tag, same]) => `${tag} is the same experiment as ${same}`),
    ...estimate.skipped_swaps.map((tag) => `no swap for ${tag}`)];
  at("warnings").replaceChildren(...notes.slice(0, 20).map((note) => Object.assign(document.createElement("li"), { textContent: note })));
  const rows = [...Object.entries(estimate.stages).filter(([name, stage]) => name !== "all" && stage.calls)
    .map(([name, stage]) => [name, stage.to_pay, stage.in_ledger]),
    ...estimate.experiments.slice(0, 50).map((row) => [row.tag, row.to_pay ?? row.calls, row.in_ledger])];
  at("parts").hidden = false;
  at("parts").querySelector("tbody").replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    cells.forEach((cell, place) => Object.assign(row.insertCell(), { className: place ? "n" : "long", textContent: place ? count(cell ?? 0) : cell }));
    return row;
  }));
  planned = estimate.study;
  block((!edited && missingKeys()[0]) || estimate.uncallable[0] || "");
  if (start && !start.disabled) start.textContent = `Start: ${count(all.to_pay)} calls, ${all.usd === null ? "cost unknown" : dollars(all.usd)}`;
}

async function plan() {
  const number = ++asked;
  if (reading && !edited) return; // planned when the texts are read
  const lacks = edited ? [] : Object.values(lacking());
  if (!start || lacks.length) {
    clear();
    block(lacks.length ? `Still needed: ${lacks.join(", ")}.` : "");
    return;
  }
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
  if (!edited) {
    read();
    followJudges();
    followQuestion();
    showLevels();
    build();
    summarize();
  }
  markSteps();
  asked += 1; // a pending answer is for an older text
  block((edited ? "" : missingKeys()[0]) || "Estimating …");
  keep();
  clearTimeout(timer);
  timer = setTimeout(plan, WAIT);
}

// --- what the form shows -------------------------------------------------------------------------

/** What a column may be taken for; the server proposes, the user corrects. */
const ROLES = [["", "not used"], ["text", "the text that is judged"], ["part", "a named part, such as the input"], ["response_a", "first response of a pair"], ["response_b", "second response of a pair"],
  ["person", "a person's labels"], ["truth", "known answers"], ["item", "names the item"], ["cluster", "what makes items dependent"]];

/** Has the server read the pasted texts, if they or what is said about them have changed. */
function read() {
  const texts = field("texts").value;
  const ask = texts.trim() && JSON.stringify({ texts, table: { lines: false, table: true }[chosen("layout")] ?? null, roles: JSON.parse(field("roles").value || "null"), accept: field("accept").checked });
  if (ask === (reading || pasted.ask)) return;
  reading = ask;
  if (!ask) { showPasted(NOTHING); return; }
  setTimeout(async () => {
    if (reading !== ask) return;
    const answer = await lab.ask("POST", "/new/texts", JSON.parse(ask)).catch((error) => ({ ...NOTHING, error: error.message }));
    if (reading !== ask) return; // what was typed meanwhile is read instead
    reading = "";
    showPasted({ ...answer, ask, header: texts.split("\n", 1)[0] });
    changed();
  }, WAIT);
}

/** Says what was read, with what each column was taken for. */
function showPasted(answer) {
  pasted = answer;
  const known = pasted.items.filter((item) => item.truth !== undefined).length, noun = pairs() ? "pair" : "text";
  const parts = [`${count(pasted.items.length)} ${noun}${pasted.items.length === 1 ? "" : "s"}`];
  if (known) parts.push(`${count(known)} with a known answer`);
  if (pasted.raters.length) parts.push(`labels of ${pasted.raters.join(", ")}`);
  at("texts-read").className = pasted.error ? "error" : "note";
  at("texts-read").textContent = pasted.error || (pasted.items.length ? `Read: ${parts.join(", ")}.` : "");
  at("layout").hidden = pasted.certain && !chosen("layout");
  at("columns").hidden = !pasted.columns.length;
  at("columns").querySelector("tbody").replaceChildren(...pasted.columns.map(columnRow));
  at("texts-notes").replaceChildren(...pasted.notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
  at("questions").hidden = !pasted.questions.length && !field("accept").checked;
  at("questions").querySelector("ul").replaceChildren(...pasted.questions.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  suggestStages();
}

function columnRow(column) {
  const row = document.createElement("tr"), select = document.createElement("select");
  const roles = ROLES.some(([role]) => role === column.role) ? ROLES : [...ROLES, [column.role, column.role]];
  select.append(...roles.map(([role, words]) => new Option(words, role, role === column.role, role === column.role)));
  select.setAttribute("aria-label", `What ${column.name} is`);
  select.dataset.column = column.name;
  row.insertCell().textContent = column.name;
  row.insertCell().append(select);
  Object.assign(row.insertCell(), { className: "note", textContent: column.certain ? column.reason : `${column.reason}: please check` });
  return row;
}

/** Offers the answers that occur in the table as the answers to choose from, until the user writes some. */
function suggestStages() {
  const stages = form.querySelector("[name='task.stages']");
  if (stages.value && stages.value !== stages.dataset.followed) return;
  stages.value = stages.dataset.followed = !pairs() && pasted.stages.length > 1 ? pasted.stages.join("\n") : "";
}

function showLevels() {
  field("points").closest("label").hidden = chosen("sweep") !== "sample";
  for (const place of form.querySelectorAll("[data-source]")) place.hidden = place.dataset.source !== chosen("source");
  for (const place of form.querySelectorAll("[data-protocol]")) place.hidden = !chosen("protocol");
  for (const knob of form.querySelectorAll(".knob")) {
    const varies = field(`vary:${knob.dataset.path}`).checked;
    knob.querySelector(".levels").hidden = !varies;
    if (varies) knob.closest("details").open = true;
  }
}

function summarize() {
  const varied = [...form.querySelectorAll(".knob")].map((knob) => knob.dataset.path).filter((path) => field(`vary:${path}`).checked);
  const facts = [
    ["Evidence", chosen("source") === "paste" ? at("texts-read").textContent.replace("Read: ", "") || "–" : chosen("pool")],
    ["Question", tasks().map((task) => task.concept).filter(Boolean).join(", ") || "–"],
    ["Judges", judges().join(", ") || "–"],
    ["Repeats per item", chosen("samples")],
    ["Varied", varied.join(", ") || "nothing"],
  ];
  at("summary").replaceChildren(...facts.flatMap(([name, text]) => [Object.assign(document.createElement("dt"), { textContent: name }), Object.assign(document.createElement("dd"), { textContent: text })]));
}

/** Shows the defaults of the chosen protocol wherever a default was shown before. */
function followProtocol() {
  const replaced = JSON.parse(field("protocol").selectedOptions[0].dataset.defaults);
  for (const knob of form.querySelectorAll(".knob")) {
    const { path } = knob.dataset, base = field(`base:${path}`);
    knob.dataset.neutral ??= knob.dataset.default;
    const usual = replaced[path] ?? knob.dataset.neutral;
    if (base.value === knob.dataset.default) base.value = usual;
    knob.dataset.default = usual;
  }
}

/** Sets what a preset is about; what other presets set returns to its default. */
function applyPreset() {
  const all = [...form.querySelectorAll("[name=preset]")].map((input) => JSON.parse(input.dataset.sets));
  const sets = JSON.parse(form.querySelector("[name=preset]:checked").dataset.sets);
  for (const name of new Set(all.flatMap(Object.keys))) {
    const input = form.querySelector(`[name="${name}"]`);
    if (input.type === "checkbox") input.checked = sets[name] ?? input.defaultChecked;
    else if (input.tagName === "SELECT") input.value = sets[name] ?? input.options[0].value;
    else input.value = sets[name] ?? input.defaultValue;
  }
  followProtocol();
}

// --- steps ---------------------------------------------------------------------------------------

function markSteps() {
  const lacks = edited ? {} : lacking(), current = steps.find((step) => !step.hidden).dataset.step;
  for (const link of document.querySelectorAll(".steps [data-step]")) {
    const { step } = link.dataset, done = !lacks[step] && ["evidence", "question", "judges"].includes(step);
    if (step === current) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
    link.classList.toggle("done", done);
    link.querySelector("[data-done]").textContent = done ? " (complete)" : "";
  }
}

function showStep(moves) {
  const name = location.hash.slice(1);
  const current = steps.find((step) => step.dataset.step === name) || steps[edited ? steps.length - 1 : 0];
  for (const step of steps) step.hidden = step !== current;
  markSteps();
  if (!moves) return;
  (current.querySelector('[name="task.concept"]:placeholder-shown') || current.querySelector("h2")).focus({ preventScroll: true });
  scrollTo(0, 0);
}

// --- what was typed is kept ----------------------------------------------------------------------

const stored = { // a browser may refuse to store anything
  get: () => { try { return sessionStorage.getItem(KEPT); } catch { return null; } },
  set: (text) => { try { sessionStorage.setItem(KEPT, text); } catch { /* too large, or refused */ } },
  remove: () => { try { sessionStorage.removeItem(KEPT); } catch { /* refused */ } },
};
const inputs = () => [...form.elements].filter((input) => input.name && input.type !== "file");

function keep() {
  const values = inputs().map((input) => [input.name, /checkbox|radio/.test(input.type) ? input.checked : input.value, input.dataset.followed]);
  stored.set(JSON.stringify({ tasks: form.querySelectorAll(".task").length, values, yaml: edited ? yaml.value : null }));
}

/** Brings back what was typed before the page was left or reloaded; returns whether there was any. */
function restore() {
  const kept = JSON.parse(stored.get() || "null");
  if (!kept) return false;
  while (form.querySelectorAll(".task").length < Math.min(kept.tasks, 100)) addTask();
  const fill = () => {
    const places = new Map();
    for (const [name, value, followed] of kept.values) {
      const place = places.get(name) || 0, input = inputs().filter((each) => each.name === name)[place];
      places.set(name, place + 1);
      if (!input) continue;
      if (followed !== undefined) input.dataset.followed = followed;
      if (typeof value === "boolean") input.checked = value;
      else input.value = value;
    }
  };
  fill();
  if (kept.yaml !== null) { yaml.value = kept.yaml; setEdited(true); }
  return true;
}

function loadAddress() {
  const query = new URLSearchParams(location.search);
  if (yaml.dataset.given === "true") { setEdited(true); return; }
  for (const [name, value] of query) {
    if (name === "task.evidence" || name === "pool") { form.querySelector("[name=source][value=pool]").checked = true; field("pool").value = value; }
    else for (const input of inputs().filter((each) => each.name === name)) {
      if (/checkbox|radio/.test(input.type)) input.checked ||= input.value === value;
      else input.value = value;
    }
  }
}

// --- what the user does --------------------------------------------------------------------------

/** Forgets what was said about columns, if the header is another one: it was about another table. */
function forgetColumns() {
  field("accept").checked = false;
  if (field("texts").value.split("\n", 1)[0] === pasted.header) return;
  field("layout").value = "";
  field("roles").value = "";
}

/** Returns the text of a file in UTF-8, UTF-16 or Windows-1252. */
function decode(bytes) {
  const [first, second] = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return new TextDecoder(first === 0xff ? "utf-16le" : "utf-16be").decode(bytes);
  try { return new TextDecoder("utf-8", { fatal: true }).decode(bytes); } catch { return new TextDecoder("windows-1252").decode(bytes); }
}

function addTask() {
  const rows = at("tasks"), row = rows.lastElementChild.cloneNode(true);
  for (const input of row.querySelectorAll("input, textarea")) { input.value = ""; delete input.dataset.followed; }
  row.querySelector("details").open = false;
  rows.append(row);
  return row;
}

function setEdited(on) {
  edited = on;
  at("edited").hidden = !on;
  if (on) at("yaml-card").open = true;
  form.querySelector("fieldset").disabled = on;
}

form.addEventListener("input", (event) => {
  at("clear").hidden = false;
  if (event.target.name === "texts") forgetColumns();
  if (event.target.name === "layout") field("roles").value = "";
  if (event.target.dataset.column !== undefined)
    field("roles").value = JSON.stringify(Object.fromEntries([...at("columns").querySelectorAll("select")].map((select) => [select.dataset.column, select.value])));
  if (event.target.name === "preset") applyPreset();
  if (event.target.name === "protocol") followProtocol();
  if (event.target.type !== "file") changed();
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("click", (event) => {
  const drop = event.target.closest("[data-drop]");
  if (drop && form.querySelectorAll(".task").length > 1) drop.closest(".task").remove();
  else if (event.target.id === "more") addTask().querySelector("input").focus();
  else return;
  changed();
});
at("file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  field("texts").value = decode(await file.arrayBuffer());
  forgetColumns();
  changed();
});
yaml.addEventListener("input", () => { at("clear").hidden = false; setEdited(true); changed(); });
at("back").addEventListener("click", () => { setEdited(false); changed(); });
at("clear").addEventListener("click", () => { stored.remove(); location.assign(location.pathname); });
window.addEventListener("hashchange", () => showStep(true));

at("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([yaml.value], { type: "application/yaml" }));
  link.download = `${planned || "study"}.yaml`;
  link.click();
  URL.revokeObjectURL(link.href);
});

if (start) start.addEventListener("click", async () => {
  const name = planned;
  block("Starting …");
  try {
    await lab.ask("POST", "/api/runs", { study: yaml.value });
    stored.remove();
    location.assign(`/studies/${encodeURIComponent(name)}/runs`);
  } catch (error) {
    refuse(error.message);
    start.disabled = false;
  }
});

if (restore()) at("clear").hidden = false;
else {
  applyPreset();
  loadAddress();
}
followProtocol();
showStep(false);
changed();
if (!location.hash && !edited) field("texts").focus({ preventScroll: true });
