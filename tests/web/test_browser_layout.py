"""Every page fits a phone, breaks no rule of accessibility, and logs no error to the console."""

import shutil
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, expect

from browser_pages import PHONE, open_page, open_path, overflow_width, violations
from judge_gym.cli.own_study import own_study
from judge_gym.recorded import read_file
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
    "/styleguide",
    *(
        f"/studies/replies/{tab}"
        for tab in ("items", "judges", "runs", "design", "answers", "next")
    ),
    "/studies/replies",
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
        run_replies(opened)
        yield opened


def run_replies(lab: ServedLab) -> None:
    """Runs the study of README: replies to customers, with labels of three people."""
    with as_file(files("judge_gym.demo")) as demo:
        for file in ("replies.csv", "helpfulness.json"):
            shutil.copy(demo / file, lab.folder / file)
    reading = read_file(lab.folder / "replies.csv", judged=False)
    study = own_study(reading, "quality", Path("helpfulness.json"), [])
    lab.lab.runs.run(str(study.write(lab.folder)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_break_no_rule_of_accessibility(
    browser: Browser, lab: ServedLab, scheme: Any
) -> None:
    found = {}
    with open_page(browser, lab, color_scheme=scheme, bypass_csp=True) as page:
        for path in PATHS:
            open_path(page, lab, path)
            found[path] = violations(page)
        open_path(page, lab, "/studies/replies/items").locator("#items a[data-item]").first.click()
        expect(page.locator("#drawer h2")).to_be_visible()
        found["drawer"] = violations(page)
    assert {path: broken for path, broken in found.items() if broken} == {}


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
