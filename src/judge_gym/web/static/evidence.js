// Adding texts, freezing pools, dropping items; then the page shows how it is now.
"use strict";

/** The items in a file: a line each of .jsonl, else the whole text under the file's name. */
async function itemsOf(file) {
  const text = await file.text();
  if (!file.name.endsWith(".jsonl")) return [{ title: file.name.replace(/\.[^.]*$/, ""), text }];
  return text.split("\n").flatMap((line, number) => {
    if (!line.trim()) return [];
    try {
      const item = JSON.parse(line);
      return [{ ...item, title: item.title || `${file.name}:${number + 1}` }];
    } catch {
      throw new Error(`${file.name}:${number + 1} is no JSON`);
    }
  });
}

async function submit(form, action) {
  const said = form.querySelector(".fault"), button = form.querySelector("button");
  said.textContent = "";
  button.disabled = true;
  try {
    location.assign(await action(new FormData(form)));
  } catch (fault) {
    said.textContent = fault.message;
    button.disabled = false;
  }
}

const add = document.getElementById("add");
if (add) add.addEventListener("submit", (event) => {
  event.preventDefault();
  submit(add, async (values) => {
    const items = (await Promise.all(values.getAll("files").filter((file) => file.size).map(itemsOf))).flat();
    const given = ["title", "text", "source", "url", "date"].map((name) => [name, values.get(name).trim()]);
    const written = Object.fromEntries(given.filter(([, value]) => value));
    if (written.text) items.push({ title: written.text.split("\n")[0].slice(0, 80), ...written });
    if (!items.length) throw new Error("there is no text yet: choose files or write one");
    let window_id = values.get("window");
    if (!window_id) {
      const named = Object.fromEntries(["country", "start_date", "end_date"].map((name) => [name, values.get(name).trim()]));
      if (Object.values(named).some((value) => !value)) throw new Error("a new window has a country and two dates");
      ({ window_id } = await lab.ask("POST", "/api/windows", named));
    }
    await lab.ask("POST", `/api/windows/${window_id}/evidence`, { items });
    return `/windows/${window_id}`;
  });
});

const freeze = document.getElementById("freeze");
if (freeze) freeze.addEventListener("submit", (event) => {
  event.preventDefault();
  submit(freeze, async (values) => {
    const name = values.get("name").trim();
    await lab.ask("POST", "/api/pools", { name, window_id: Number(freeze.dataset.window) });
    return `/pools/${name.split("/").map(encodeURIComponent).join("/")}`;
  });
});
