"""A browser at a served lab, for tests of its pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, expect, sync_playwright

from served import Served

PATIENCE = 120_000
"""Milliseconds that a page may take on a busy machine."""
PHONE = {"width": 390, "height": 844}
expect.set_options(timeout=PATIENCE)


@contextmanager
def a_browser() -> Iterator[Browser]:
    """The browser of this machine, without a window."""
    with sync_playwright() as playwright:
        found = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page of a lab, and whatever went wrong on it.

    Args:
        browser: a browser.
        lab: what it looks at.
        token: whose eyes; by default those of whoever started the server.
    """

    def __init__(self, browser: Browser, lab: Served, token: str | None = None) -> None:
        self.lab = lab
        self.faults: list[str] = []
        self.page: Page = browser.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("pageerror", lambda fault: self.faults.append(f"error: {fault}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("console", self._hear)
        self.page.goto(f"{lab.url}/api/health")
        self.page.goto(f"{lab.url}/usage?token={token or lab.local}")

    def open(self, path: str) -> Page:
        """A page of the lab."""
        answer = self.page.goto(self.lab.url + path)
        assert answer is not None and answer.status == 200, (path, answer and answer.status)
        assert len(answer.body()) < 1_000_000
        return self.page

    def fits(self) -> bool:
        """Whether the page itself does not scroll sideways."""
        wide: bool = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return not wide

    def close(self) -> None:
        """Leave, if nothing went wrong."""
        self.page.context.close()
        assert self.faults == []

    def _dismiss(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _hear(self, message: ConsoleMessage) -> None:
        refused = "the server responded with a status of 4" in message.text
        if message.type == "error" and not refused:
            self.faults.append(message.text)
