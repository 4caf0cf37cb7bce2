// Gives the frame that shows the report the height of its content; no script runs inside the frame.
"use strict";

const frame = document.getElementById("report");
if (frame) {
  const fit = () => {
    const page = frame.contentDocument && frame.contentDocument.documentElement;
    if (page && page.querySelector("main")) frame.height = page.querySelector("main").offsetHeight + 40;
  };
  frame.addEventListener("load", () => {
    fit();
    for (const part of frame.contentDocument.querySelectorAll("details")) part.addEventListener("toggle", fit);
  });
  window.addEventListener("resize", fit);
  if (frame.contentDocument && frame.contentDocument.readyState === "complete") fit();
}

// While a report is built: shows the step, and loads the page anew when there is something to show.
const building = document.getElementById("building");
if (building) {
  const bar = building.querySelector("progress");
  const poll = async () => {
    const now = await lab.ask("GET", building.dataset.progress).catch(() => null);
    if (now) {
      if ((now.built || "") !== building.dataset.built) { location.reload(); return; }
      if (!now.building) {
        building.remove();
        document.querySelector("[data-zip]")?.removeAttribute("hidden");
        return;
      }
      if (now.step) {
        building.querySelector("[data-step]").textContent = `${now.step.name} …`;
        if (bar && now.step.done < now.step.of) Object.assign(bar, { max: now.step.of, value: now.step.done });
        else bar?.removeAttribute("value"); // the last step, whose length is unknown
      }
    }
    setTimeout(poll, 1000);
  };
  poll();
}
