// A suite run, live: each event loads the page again; what it shows of the run is replaced if it changed.
"use strict";

const run = document.getElementById("run");
let loading = false, again = false, shown = run.innerHTML;

function announce(text) {
  const place = run.querySelector("[data-live]");
  if (place) place.textContent = text;
}

async function refresh() {
  if (loading) { again = true; return; }
  loading = true;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.ok) {
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("run");
      if (fresh.innerHTML === shown) return;
      shown = fresh.innerHTML;
      const focused = run.contains(document.activeElement) ? document.activeElement.id : "";
      run.replaceChildren(...fresh.childNodes);
      if (focused) document.getElementById(focused)?.focus();
      announce("Updates automatically.");
    }
  } finally {
    loading = false;
    if (again) { again = false; setTimeout(refresh, 500); }
  }
}

document.addEventListener("submit", async (event) => {
  if (event.target.id !== "analyze") return;
  event.preventDefault();
  const form = event.target, error = form.parentElement.querySelector(".error");
  const judges = form.elements.judges.value.split(",").map((name) => name.trim()).filter(Boolean);
  try {
    await lab.ask("POST", "/api/analyses", { run: form.dataset.run, judges });
    await refresh();
  } catch (problem) {
    error.textContent = problem.message;
  }
});

// An analysis has no events.
setInterval(() => { if (run.querySelector("[data-poll]")) refresh(); }, 2000);

document.addEventListener("DOMContentLoaded", () => {
  if (!run.dataset.target) return;
  const source = lab.follow(run.dataset.target, { status: refresh, event: refresh, end: refresh });
  source.onopen = () => announce("Updates automatically.");
  source.onerror = () => announce("Connection lost. Reconnecting …");
});
