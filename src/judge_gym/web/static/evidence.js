// Adds texts and freezes pools, then opens the page of the result.
"use strict";

/** Returns the items of a file: one per line of .jsonl, else the whole text under the file's name. */
async function itemsOf(file) {
  const text = await file.text();
  if (!file.name.endsWith(".jsonl")) return [{ title: file.name.replace(/\.[^.]*$/, ""), text }];
  return text.split("\n").flatMap((line, number) => {
    if (!line.trim()) return [];
    try {
      const item = JSON.parse(line);
      return [{ ...item, title: item.title || `${file.name}:${number + 1}` }];
    } catch {
      throw new Error(`${file.name}:${number + 1} is not valid JSON`);
    }
  });
}

/** Handles a form's submission; the action returns the address to open. */
function onSubmit(id, action) {
  const form = document.getElementById(id);
  if (!form) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const error = form.querySelector(".error"), button = form.querySelector("button");
    error.textContent = "";
    button.disabled = true;
    try {
      location.assign(await action(new FormData(form), form));
    } catch (problem) {
      error.textContent = problem.message;
      button.disabled = false;
    }
  });
}

onSubmit("add", async (values) => {
  const items = (await Promise.all(values.getAll("files").filter((file) => file.size).map(itemsOf))).flat();
  const fields = ["title", "text", "source", "url", "date"].map((name) => [name, values.get(name).trim()]);
  const entered = Object.fromEntries(fields.filter(([, value]) => value));
  if (entered.text) items.push({ title: entered.text.split("\n")[0].slice(0, 80), ...entered });
  if (!items.length) throw new Error("choose files or enter a text");
  let window_id = values.get("window");
  if (!window_id) {
    const fresh = Object.fromEntries(["country", "start_date", "end_date"].map((name) => [name, values.get(name).trim()]));
    if (Object.values(fresh).some((value) => !value)) throw new Error("a new window needs a country and two dates");
    ({ window_id } = await lab.ask("POST", "/api/windows", fresh));
  }
  await lab.ask("POST", `/api/windows/${window_id}/evidence`, { items });
  return `/windows/${window_id}`;
});

onSubmit("freeze", async (values, form) => {
  const name = values.get("name").trim();
  await lab.ask("POST", "/api/pools", { name, window_id: Number(form.dataset.window) });
  return `/pools/${name.split("/").map(encodeURIComponent).join("/")}`;
});
