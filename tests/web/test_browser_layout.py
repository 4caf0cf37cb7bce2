"""Every page fits a phone, can be read in dark mode, and logs no error to the console."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, expect

from browser_pages import PHONE, open_page, open_path, overflow_width
from judge_gym.web.pages.suite_evals import TITLES
from lab_server import ServedLab
from made_runs import SLUG
from suite_pages import hostile_pages, of_run, suites_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]
PATHS = [
    "/",
    "/experiments",
    "/new",
    "/evidence",
    "/windows/1",
    "/evidence/1",
    "/experiments/pilot",
    "/samples/1",
    "/compare?tag=pilot&tag=pilot/strict&tag=later",
    "/usage",
    "/suites",
    "/suites/new",
    of_run(),
    f"{of_run()}/report",
    f"{of_run()}/{SLUG.category}",
    *(f"{of_run()}/{SLUG.path}?tab={tab}" for tab in TITLES),
    "/calls/1",
    *hostile_pages(),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with suites_lab(tmp_path_factory.mktemp("layout")) as opened:
        opened.lab.runs.run("pilot")
        opened.lab.runs.run("pilot/strict", samples=2)
        yield opened


@pytest.mark.parametrize(
    "look", [{"viewport": PHONE}, {"color_scheme": "dark"}], ids=["phone", "dark"]
)
def test_pages_fit_their_window_and_can_be_read(
    browser: Browser, lab: ServedLab, look: dict[str, Any]
) -> None:
    with open_page(browser, lab, **look) as page:
        for path in PATHS:
            open_path(page, lab, path)
            assert overflow_width(page) <= 0, path
            ink, ground = page.evaluate(
                "[getComputedStyle(document.querySelector('main')).color,"
                " getComputedStyle(document.body).backgroundColor]"
            )
            assert ink != ground


def test_the_first_tab_skips_to_the_content(browser: Browser, lab: ServedLab) -> None:
    with open_page(browser, lab) as page:
        open_path(page, lab, "/")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
