"""Suite runs in a browser: started, watched, paused, resumed, and read to the call of a failure."""

from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, expect

from browser_pages import open_page, open_path
from judge_gym.records.actors import machine_user
from lab_server import serve_lab
from suite_folders import known_by, write_suite

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]
EVALS = 150


def test_a_run_is_started_watched_paused_resumed_and_read(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = f"sim:{known_by(write_suite(tmp_path / 'tiny', EVALS), logic=1, syntax=0, missing=0)}"
    with serve_lab(tmp_path, run=False, work=True) as lab, open_page(browser, lab) as page:
        open_path(page, lab, "/suites")
        page.get_by_role("link", name="New run").click()
        page.wait_for_url("**/suites/new")
        page.locator("select[name=suite]").select_option("tiny")
        page.wait_for_url("**/suites/new?suite=tiny*")
        page.get_by_label("Model").fill("sim:strict")
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("alert")).to_contain_text("writes no code")
        page.get_by_label("Model").fill(model)
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/run/1")
        # At once, while its worker starts: a fast machine would end the run before a later click.
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("h1")).to_have_text("Run 1 complete")
        expect(page.get_by_role("region", name="Log")).to_contain_text(
            f"Paused by {machine_user()} in the browser"
        )
        expect(page.locator("tr[data-eval]")).to_have_count(EVALS)

        page.get_by_role("link", name=f"{EVALS} failed").click()
        page.locator("tr[data-eval] a").first.click()
        expect(page.locator(".banner")).to_contain_text("Failed at tests")
        page.get_by_role("link", name="Diff", exact=True).click()
        expect(page.locator("tr.removed")).to_contain_text("VALUE = 1000")
        page.get_by_role("link", name="Next failed").click()
        expect(page.locator("tr.removed")).to_contain_text("VALUE = 1001")
        page.get_by_role("link", name="with its transcript").click()
        expect(page.locator("main")).to_contain_text("VALUE = 1001")
