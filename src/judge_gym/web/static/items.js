// The grid of items: opens an item in the drawer without leaving the page, and moves between items by keyboard.
"use strict";

const drawer = document.getElementById("drawer");
let opener = null; // what had the focus before the drawer opened

async function load(address) {
  const query = new URL(address, location.href).search.slice(1);
  const response = await fetch(drawer.dataset.part + query, { headers: { Accept: "application/json" } });
  if (!response.ok) await lab.json(response);
  drawer.innerHTML = await response.text(); // from our own templates, which escape
}

async function open(address, push = true) {
  try {
    await load(address);
  } catch (error) {
    lab.say(error.message, 20);
    return;
  }
  if (!drawer.matches(":modal")) {
    opener = document.activeElement;
    drawer.close(); // one that the server had opened
    drawer.showModal();
  }
  drawer.scrollTop = 0;
  drawer.querySelector("[data-close]").focus();
  if (push) history.pushState(null, "", address);
  const [of, item] = ["of", "item"].map((name) => new URL(address, location.href).searchParams.get(name));
  for (const link of document.querySelectorAll("#items a[data-item]")) {
    const there = new URL(link.href).searchParams;
    link.closest("tr").classList.toggle("chosen", there.get("of") === of && there.get("item") === item);
  }
}

function close(push = true) {
  const link = drawer.querySelector("[data-close]");
  drawer.close();
  if (push && link) history.pushState(null, "", link.href);
  drawer.replaceChildren();
  opener?.focus();
}

/** Asks a judge again, and shows its fresh verdict when it has arrived. */
async function rerun(button) {
  const address = location.href, { setup } = button.closest("[data-setup]").dataset;
  const fresh = () => drawer.querySelectorAll("[data-fresh]").length, before = fresh();
  await lab.ask("POST", "/api/runs/sample", { sample: Number(button.dataset.rerun) });
  lab.say("Asked. The fresh verdict appears here when it has arrived.", 60);
  while (fresh() <= before) {
    await new Promise((resume) => setTimeout(resume, 1500));
    if (!drawer.open || location.href !== address) return;
    await load(address);
    drawer.querySelector(`[data-setup="${CSS.escape(setup)}"] details`).open = true;
  }
  [...drawer.querySelectorAll(`[data-setup="${CSS.escape(setup)}"] [data-fresh]`)].at(-1)?.scrollIntoView({ block: "center" });
  lab.say("The fresh verdict has arrived.");
}

document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.target.closest("a[data-item]"), leave = event.target.closest("a[data-close]");
  const copy = event.target.closest("[data-copy]"), again = event.target.closest("[data-rerun]");
  if (again) lab.act(again, () => rerun(again));
  if (link) { event.preventDefault(); open(link.href); }
  if (leave) { event.preventDefault(); close(); }
  if (copy) {
    const address = new URL(copy.dataset.copy, location.href).href;
    (navigator.clipboard ? navigator.clipboard.writeText(address) : Promise.reject())
      .then(() => lab.say("Link copied."), () => window.prompt("Copy this link:", address));
  }
});

drawer.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-pair]")) return;
  event.preventDefault();
  open(`${event.target.action}?${new URLSearchParams(new FormData(event.target))}`);
});
drawer.addEventListener("change", (event) => { event.target.closest("[data-pair]")?.requestSubmit(); });

document.addEventListener("keydown", (event) => {
  if (!drawer.open || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.target.closest("input, select, textarea")) return;
  const rel = { ArrowLeft: "prev", k: "prev", ArrowRight: "next", j: "next" }[event.key];
  const link = rel && drawer.querySelector(`a[rel="${rel}"]`);
  if (link) { event.preventDefault(); open(link.href); }
});

drawer.addEventListener("cancel", (event) => { event.preventDefault(); close(); }); // Escape
drawer.addEventListener("click", (event) => { if (event.target === drawer && event.clientX < drawer.getBoundingClientRect().left) close(); });
if (drawer.open) { drawer.close(); drawer.showModal(); } // the address names an item

window.addEventListener("popstate", () => {
  if (new URL(location.href).searchParams.has("item")) open(location.href, false);
  else if (drawer.open) close(false);
});
