"""A lab's pages in a real browser."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from lab_server import ServedLab

WAIT = 120_000
"""Milliseconds that a busy machine may take."""
PHONE: ViewportSize = {"width": 390, "height": 844}


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; one at a time."""
    expect.set_options(timeout=WAIT)
    with sync_playwright() as play:
        program = shutil.which("chromium")
        yield play.chromium.launch(executable_path=program, args=["--no-sandbox"])


@contextmanager
def open_page(browser: Browser, lab: ServedLab, **options: Any) -> Iterator[Page]:
    """A page of a browser that has shown its token; errors on its console fail the test.

    Args:
        browser: the browser.
        lab: the lab that is served.
        **options: of the browser's context, such as a viewport or a colour scheme.
    """
    faults: list[str] = []
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(WAIT)
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.on("console", lambda message: faults.extend(errors_in(message)))
    page.goto(f"{lab.url}/?token={lab.local}")
    yield page
    context.close()
    assert faults == []


def errors_in(message: ConsoleMessage) -> list[str]:
    """Returns a console message if it is an error; a refused request is none.

    The form of a new study asks for a plan while it is incomplete, and shows the refusal.
    """
    refused = "the server responded with a status of 4" in message.text
    return [message.text] if message.type == "error" and not refused else []


def open_path(page: Page, lab: ServedLab, path: str) -> Page:
    """Open a page, and wait for what comes after it."""
    page.goto(f"{lab.url}{path}")
    expect(page.locator("[data-load]:not([data-loaded]), [data-loading]")).to_have_count(0)
    return page


def experiment_path(tag: str) -> str:
    """The address of an experiment."""
    return f"/experiments/{quote(tag)}"


def overflow_width(page: Page) -> int:
    """By how much a page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return wide


def violations(page: Page) -> list[str]:
    """The accessibility rules that a page breaks, each with its first place.

    The page's context must ignore the policy that forbids foreign scripts (`bypass_csp`).
    """
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def count_figures(page: Page) -> int:
    """How many figures a page has; each is a picture that could be drawn."""
    pictures = page.locator("figure img")
    for number in range(pictures.count()):
        one = pictures.nth(number)
        one.scroll_into_view_if_needed()
        expect(one).to_have_js_property("complete", True)
        assert one.evaluate("picture => picture.naturalWidth") > 100
    return pictures.count()


class Visit:
    """A page of a lab, and whatever went wrong on it; refusals are none of that.

    Args:
        browser: a browser.
        lab: what it looks at.
        token: whose eyes; by default those of whoever started the server.
    """

    def __init__(self, browser: Browser, lab: ServedLab, token: str | None = None) -> None:
        self.lab = lab
        self.faults: list[str] = []
        self.page: Page = browser.new_page()
        self.page.set_default_timeout(WAIT)
        self.page.on("pageerror", lambda fault: self.faults.append(f"error: {fault}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("console", lambda message: self.faults.extend(errors_in(message)))
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
        return overflow_width(self.page) <= 0

    def close(self) -> None:
        """Leave, if nothing went wrong."""
        self.page.context.close()
        assert self.faults == []

    def _dismiss(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()
