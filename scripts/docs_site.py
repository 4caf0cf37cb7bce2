"""Builds the documentation as a site with search that works from files, without a network.

The pages are README.md, AGENTS.md and docs/*.md as they are; only links are adapted, since the
README and the guide stand beside the other pages there. Run it with `make site`; the pages are
written to `build/site/`.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "build" / "pages"
NAV = {
    "Start": ["index", "check", "install", "concepts", "studies", "own-prompt"],
    "Which judge?": [
        "labels",
        "improve",
        "judges",
        "benchmarks",
        "published",
        "importers",
        "analysis",
        "frames",
        "import",
        "evidence",
        "axes",
        "pipeline",
    ],
    "Models": ["models", "simulated"],
    "Code suites": ["suites", "analyze"],
    "Run a lab": ["operations", "deployment", "replay", "http-api", "mcp", "AGENTS"],
    "Research": ["runbook", "calibrate", "findings/coverage", "findings/recorded-judges"],
    "Reference": ["cli", "architecture", "contributing"],
}
"""The pages in the order of the menu; a page that is not listed stands at the end."""

REMOTE_SHIM = '<script src="https://unpkg.com/iframe-worker/shim" type="text/javascript"></script>'
SHIM = """if (location.protocol === "file:") window.Worker = class extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.documentElement.append(frame);
    this.inner = frame.contentWindow;
    this.inner.postMessage = data => {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    };
    const script = this.inner.document.createElement("script");
    this.ready = new Promise(loaded => { script.onload = loaded; });
    script.src = url;
    this.inner.document.documentElement.append(script);
  }
  postMessage(data) {
    this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
  }
};"""
"""Runs the search in a frame on pages that are opened as files, where browsers start no worker."""


def main() -> None:
    """Collects the pages and builds the site."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for name, copy in (("README.md", "index.md"), ("AGENTS.md", "AGENTS.md")):
        text = (ROOT / name).read_text(encoding="utf-8")
        (PAGES / copy).write_text(text.replace("](docs/", "]("), encoding="utf-8")
    for page in PAGES.glob("*.md"):
        text = page.read_text(encoding="utf-8").replace("](../AGENTS.md", "](AGENTS.md")
        text = text.replace("](../README.md", "](index.md")
        # Files that are no pages, such as examples, are named without a link.
        text = re.sub(r"(?<!!)\[([^\]]+)\]\((?:\.\./|examples/|LICENSE)[^)]*\)", r"\1", text)
        page.write_text(text, encoding="utf-8")
    config = PAGES.parent / "zensical.toml"
    config.write_text(_config(), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    subprocess.run([*command, "--config-file", str(config)], check=True, cwd=PAGES.parent)
    for page in (PAGES.parent / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(REMOTE_SHIM, f"<script>{SHIM}</script>"), encoding="utf-8")
    print(f"open {PAGES.parent}/site/index.html")


def _config() -> str:
    """Returns the settings of the generator."""
    listed = [page for pages in NAV.values() for page in pages]
    more = sorted({page.stem for page in PAGES.glob("*.md")} - {*listed})
    nav = {**NAV, "More": more} if more else NAV
    menu = ",\n".join(
        f'  {{ "{group}" = [{", ".join(f"{chr(34)}{page}.md{chr(34)}" for page in pages)}] }}'
        for group, pages in nav.items()
    )
    return f"""[project]
site_name = "judge-gym"
site_description = "A laboratory for LLM judges"
docs_dir = "pages"
site_dir = "site"
nav = [
{menu},
]

[project.theme]
font = false
features = ["navigation.sections", "navigation.top", "content.code.copy", "toc.follow"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"

[project.plugins.offline]
"""


if __name__ == "__main__":
    main()
