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
