"""What was spent is shown by day, model and study, and is what the ledger says."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

pytest.importorskip("playwright")

from playwright.sync_api import Browser, expect

from browser_pages import PHONE, Visit
from judge_gym.records.numbers import dollars
from judge_gym.store import tables as t
from lab_server import ServedLab, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """A lab whose attempts cost something, in two studies and on two days."""
    with serve_lab(tmp_path_factory.mktemp("paid")) as opened:
        a = t.attempts.c
        with opened.lab.store.database.begin() as connection:
            strict = a.tag == "pilot/strict"
            connection.execute(t.attempts.update().values(usd=0.25, study="cheap"))
            dear = t.attempts.update().where(strict)
            connection.execute(dear.values(usd=1.5, study="dear", at=sa.func.date("2026-01-02")))
        yield opened


def test_sums_are_those_of_the_ledger(browser: Browser, lab: ServedLab) -> None:
    visit = Visit(browser, lab)
    page = visit.open("/usage")
    costs = {
        row["study"]: dollars(row["usd"] or 0.0) for row in lab.lab.reports.usage(by=["study"])
    }
    for name, cost in costs.items():
        row = page.locator("tr", has=page.locator(f"a[href='/usage?study={name}']"))
        expect(row).to_contain_text(cost)
    bars = page.locator("svg.days rect title").all_text_contents()
    assert any(bar.startswith("2026-01-02, sim:strict: $") for bar in bars)
    total = sum(row["usd"] or 0 for row in lab.lab.reports.usage(by=["study"]))
    expect(page.locator(".figures b").first).to_have_text(dollars(total))
    page.set_viewport_size(PHONE)
    assert visit.fits()
    visit.close()


def test_a_lab_without_a_call_says_so(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with serve_lab(tmp_path_factory.mktemp("unpaid"), run=False) as lab:
        visit = Visit(browser, lab)
        page = visit.open("/usage")
        expect(page.locator(".empty")).to_contain_text("No calls yet")
        expect(page.locator("figure")).to_have_count(0)
        visit.close()
