"""Home and the list of experiments show what is in the lab, live."""

import re
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from browser_pages import experiment_path, open_path
from judge_gym.store import tables as t
from judge_gym.web.pages.home import PAGE
from lab_server import ServedLab, create, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """A lab with more experiments than a page holds, one of them with failures."""
    with serve_lab(tmp_path_factory.mktemp("home"), work=True) as opened:
        window = opened.lab.evidence.list_windows()[0]["window"]
        for number in range(PAGE):
            judge = ("sim:alarmist", "sim:cautious")[number % 2]
            create(
                opened.lab, window, f"sweep/{number:02}", judge, **{"rubric.scale": 3 + number % 4}
            )
        with opened.lab.store.database.begin() as connection:
            [run] = opened.lab.get_experiment_summary("pilot/strict")["runs"]
            some = sa.and_(t.samples.c.run_id == run["run"], t.samples.c.replicate == 1)
            lost = {"status": "provider_error", "stages": ""}
            connection.execute(sa.update(t.samples).where(some).values(lost))
        yield opened


def tags(page: Page) -> list[str]:
    return [str(row.get_attribute("data-tag")) for row in page.locator("tr[data-tag]").all()]


def test_every_experiment_stands_on_one_page_and_filters_are_in_the_address(
    lab: ServedLab, page: Page
) -> None:
    every = {row["tag"]: row["judge"] for row in lab.lab.list_experiments()}
    open_path(page, lab, "/experiments")
    seen = tags(page)
    assert len(seen) == PAGE
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_role("link", name="First page")).to_be_visible()
    page.get_by_role("link", name="Previous page").click()
    expect(page.get_by_role("link", name="Previous page")).to_have_count(0)
    assert tags(page) == seen
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_role("link", name="First page")).to_be_visible()
    page.wait_for_load_state("load")  # the form listens from then on
    assert seen + tags(page) == sorted(every)
    page.locator("select[name=judge]").select_option("sim:cautious")
    page.wait_for_url("**judge=sim%3Acautious*")
    assert tags(page) == sorted(tag for tag, judge in every.items() if judge == "sim:cautious")
    page.reload()
    expect(page.locator("select[name=judge]")).to_have_value("sim:cautious")
    open_path(page, lab, "/experiments?task_type=benchmark")
    expect(page.get_by_text("No experiments match.")).to_be_visible()


def test_failures_and_costs_are_seen_at_a_glance_and_lead_to_their_rows(
    lab: ServedLab, page: Page
) -> None:
    open_path(page, lab, "/experiments")
    row = page.locator('tr[data-tag="pilot/strict"]')
    summary = lab.lab.get_experiment_summary("pilot/strict")
    lost = sum(summary["runs"][-1]["failed"].values())
    assert lost > 0
    expect(row.locator("[data-failed]")).to_have_text(str(lost))
    expect(row.locator("[data-cost]")).to_have_text("$0")  # simulated judges are free
    row.locator("[data-failed]").click()
    page.wait_for_url(f"**{experiment_path('pilot/strict')}?status=provider_error#samples")
    expect(page.locator("#sample-table .pill.provider_error")).to_have_count(lost)
    open_path(page, lab, "/")
    expect(page.locator("[data-failed-all]")).to_have_text(str(lost))
    expect(page.locator("[data-cost-all]")).to_have_text("$0")


def test_a_run_is_watched_to_its_end_without_a_reload(lab: ServedLab, page: Page) -> None:
    open_path(page, lab, "/experiments")
    row = page.locator('tr[data-tag="later"]')
    expect(row.locator(".pill")).to_have_text("pending")
    page.evaluate("window.stayed = true")
    lab.post("/api/runs", target="later", samples=3)
    expect(row.locator(".pill")).to_have_text("complete", timeout=60_000)
    [run] = lab.lab.get_experiment_summary("later")["runs"]
    scored = run["verdicts"]["scored"]
    expect(row.locator(".outcomes")).to_have_attribute(
        "aria-label", re.compile(f"^{scored} scored")
    )
    assert page.evaluate("window.stayed") is True
