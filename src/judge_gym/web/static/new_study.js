// The form of a new study: its steps, presets, questions and file. What follows from it, the server returns (/new/plan).
"use strict";

const form = document.getElementById("form");
const at = (id) => document.getElementById(id);
const field = (name) => form.elements[name];
const steps = [...form.querySelectorAll(".step")];
const KEPT = `new study ${location.search}`; // what was typed is kept for the tab, by address
const edited = () => field("edited").value === "true"; // by hand: then the text counts instead of the form

let changes = 0, sent = 0; // the number of changes, and how many of them the last request knew of

/** Asks the server for all that follows from the form; until it answers, nothing can be started. */
function changed(now) {
  changes += 1;
  form.dataset.pending = "true";
  awaitAnswer();
  showLevels();
  if (now) htmx.trigger(form, "replan");
}
function awaitAnswer() {
  if (at("start")) { at("start").disabled = true; at("reason").textContent = "Estimating …"; }
}
document.addEventListener("htmx:before:request", () => { sent = changes; });
document.addEventListener("htmx:before:swap", (event) => { if (sent !== changes) event.preventDefault(); }); // an answer to an older form
document.addEventListener("htmx:after:swap", () => {
  if (sent === changes) delete form.dataset.pending;
  else awaitAnswer();
  markStep();
  keep();
});

// --- what the form shows -------------------------------------------------------------------------

function showLevels() {
  field("points").closest("label").hidden = field("sweep").value !== "sample";
  for (const place of form.querySelectorAll("[data-source]")) place.hidden = place.dataset.source !== new FormData(form).get("source") && !edited();
  for (const place of form.querySelectorAll("[data-protocol]")) place.hidden = !field("protocol").value;
  for (const knob of form.querySelectorAll(".knob")) {
    const varies = field(`vary:${knob.dataset.path}`).checked;
    knob.querySelector(".levels").hidden = !varies;
    if (varies) knob.closest("details").open = true;
  }
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

function markStep() {
  const current = steps.find((step) => !step.hidden).dataset.step;
  for (const link of document.querySelectorAll(".steps [data-step]")) {
    if (link.dataset.step === current) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
}

function showStep(moves) {
  const current = steps.find((step) => step.dataset.step === location.hash.slice(1)) || steps[edited() ? steps.length - 1 : 0];
  for (const step of steps) step.hidden = step !== current;
  markStep();
  if (!moves) return;
  (current.querySelector('[name="task.concept"]:placeholder-shown') || current.querySelector("h2")).focus({ preventScroll: true });
  scrollTo(0, 0);
}

function addTask() {
  const rows = at("tasks"), row = rows.lastElementChild.cloneNode(true);
  for (const hidden of row.querySelectorAll("[type=hidden]")) hidden.remove();
  row.querySelector("[id]")?.removeAttribute("id");
  for (const input of row.querySelectorAll("input, textarea")) input.value = "";
  row.querySelector("details").open = false;
  rows.append(row);
  return row;
}

function setEdited(on) {
  field("edited").value = on ? "true" : "";
  at("edited").hidden = !on;
  if (on) { at("yaml-card").open = true; at("yaml").name = "yaml"; }
  else at("yaml").removeAttribute("name");
  form.querySelector("fieldset").disabled = on;
}

// --- what was typed is kept ----------------------------------------------------------------------

const stored = { // a browser may refuse to store anything
  get: () => { try { return sessionStorage.getItem(KEPT); } catch { return null; } },
  set: (text) => { try { sessionStorage.setItem(KEPT, text); } catch { /* too large, or refused */ } },
  remove: () => { try { sessionStorage.removeItem(KEPT); } catch { /* refused */ } },
};
const inputs = () => [...form.elements].filter((input) => input.name && input.type !== "file");

function keep() {
  const values = inputs().map((input) => [input.name, /checkbox|radio/.test(input.type) ? input.checked : input.value]);
  stored.set(JSON.stringify({ tasks: form.querySelectorAll(".task").length, values }));
}

/** Brings back what was typed before the page was left or reloaded; returns whether there was any. */
function restore() {
  const kept = JSON.parse(stored.get() || "null");
  if (!kept) return false;
  while (form.querySelectorAll(".task").length < Math.min(kept.tasks, 100)) addTask();
  const places = new Map(), by = kept.values.find(([name]) => name === "edited")[1] === "true";
  if (by) setEdited(true);
  for (const [name, value] of kept.values) {
    const place = places.get(name) || 0, input = inputs().filter((each) => each.name === name)[place];
    places.set(name, place + 1);
    if (!input) { // what was said about a table, before the server has read it again
      const said = Object.assign(document.createElement("input"), { type: "hidden", name, value: value === true ? "true" : value });
      if (value !== false && (name === "accept" || name === "layout" || name.startsWith("role:"))) at("read").append(said);
    } else if (typeof value === "boolean") input.checked = value;
    else input.value = value;
  }
  return true;
}

function loadAddress() {
  if (edited()) { setEdited(true); return; }
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (name === "task.evidence" || name === "pool") { form.querySelector("[name=source][value=pool]").checked = true; field("pool").value = value; }
    else for (const input of inputs().filter((each) => each.name === name)) {
      if (/checkbox|radio/.test(input.type)) input.checked ||= input.value === value;
      else input.value = value;
      if (name === "preset") applyPreset();
    }
  }
}

/** Returns the text of a file in UTF-8, UTF-16 or Windows-1252. */
function decode(bytes) {
  const [first, second] = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return new TextDecoder(first === 0xff ? "utf-16le" : "utf-16be").decode(bytes);
  try { return new TextDecoder("utf-8", { fatal: true }).decode(bytes); } catch { return new TextDecoder("windows-1252").decode(bytes); }
}

// --- what the user does --------------------------------------------------------------------------

form.addEventListener("input", (event) => {
  if (event.target.type === "file") { event.stopPropagation(); return; }
  if (event.target.name === "preset") applyPreset();
  if (event.target.name === "protocol") followProtocol();
  changed();
}, { capture: true });
form.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => showStep(true));
at("file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  field("texts").value = decode(await file.arrayBuffer());
  changed(true);
});
document.addEventListener("input", (event) => { if (event.target.id === "yaml") { setEdited(true); changed(true); } });

const clicks = {
  more() { addTask().querySelector("input").focus(); changed(true); },
  back() { setEdited(false); changed(true); },
  clear() { stored.remove(); location.assign(location.pathname); },
  save() {
    const text = at("yaml").value, link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
    link.download = `${at("start")?.dataset.study || "study"}.yaml`;
    link.click();
    URL.revokeObjectURL(link.href);
  },
  async start(button) {
    const { study } = button.dataset;
    button.disabled = true;
    at("reason").textContent = "Starting …";
    try {
      await lab.ask("POST", "/api/runs", { study: at("yaml").value });
      stored.remove();
      location.assign(`/studies/${encodeURIComponent(study)}/runs`);
    } catch (error) {
      at("refused").textContent = error.message;
      button.disabled = false;
    }
  },
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button && button.id in clicks) clicks[button.id](button);
  else if (button && "drop" in button.dataset && form.querySelectorAll(".task").length > 1) { button.closest(".task").remove(); changed(true); }
});

document.addEventListener("DOMContentLoaded", () => {
  if (!restore()) { applyPreset(); loadAddress(); }
  followProtocol();
  showStep(false);
  if (!location.hash && !edited()) field("texts").focus({ preventScroll: true });
  changed();
  htmx.ajax("POST", form.getAttribute("hx-post"), { source: form, target: "#plan", swap: "outerHTML" });
});
