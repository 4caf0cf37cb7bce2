"""A lab's pages in a real browser."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, Page, expect, sync_playwright

from served import Served

WAIT = 120_000
"""Milliseconds that a busy machine may take."""
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; one at a time."""
    expect.set_options(timeout=WAIT)
    with sync_playwright() as play:
        program = shutil.which("chromium")
        yield play.chromium.launch(executable_path=program, args=["--no-sandbox"])


@contextmanager
def browsing(browser: Browser, lab: Served, **options: Any) -> Iterator[Page]:
    """A page of a browser that has shown its token; whatever its console complains of is a fault.

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
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.goto(f"{lab.url}/?token={lab.local}")
    yield page
    context.close()
    assert faults == []


def go(page: Page, lab: Served, path: str) -> Page:
    """Open a page, and wait for what comes after it."""
    page.goto(f"{lab.url}{path}")
    expect(page.locator("[data-load]:not([data-loaded])")).to_have_count(0)
    return page


def of(tag: str) -> str:
    """The address of an experiment."""
    return f"/experiments/{quote(tag)}"


def sideways(page: Page) -> int:
    """By how much a page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return wide


def drawn(page: Page) -> int:
    """How many figures a page has; each is a picture that could be drawn."""
    pictures = page.locator("figure img")
    for number in range(pictures.count()):
        one = pictures.nth(number)
        one.scroll_into_view_if_needed()
        expect(one).to_have_js_property("complete", True)
        assert one.evaluate("picture => picture.naturalWidth") > 100
    return pictures.count()
