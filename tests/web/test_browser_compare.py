"""Comparing two setups: the result as the title, swapped sides, a pinned baseline, and items."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from browser_pages import open_path
from lab_server import ServedLab, create, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]
OF = "of=pilot&of=pilot/subset&of=pilot/strict"
SUBSET = "balanced, method subset"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """One judge under two methods, and another judge under one of them."""
    with serve_lab(tmp_path_factory.mktemp("compare")) as opened:
        window = opened.lab.evidence.list_windows()[0]["window"]
        create(opened.lab, window, "pilot/subset", **{"verdict.method": "subset"})
        opened.lab.runs.run("pilot/subset")
        yield opened


def test_sides_are_chosen_and_swapped_and_the_title_states_the_result(
    lab: ServedLab, page: Page
) -> None:
    open_path(page, lab, f"/compare?{OF}&a=balanced&b={SUBSET}")
    title = page.get_by_role("heading", level=2).first
    expect(title).to_contain_text(f"balanced and {SUBSET} are not told apart: 3 items")
    stage = page.get_by_role("row", name="Mean stage").locator("td").last
    before = float(stage.inner_text())
    page.get_by_role("link", name="Swap").click()
    expect(title).to_contain_text(f"{SUBSET} and balanced are not told apart")
    assert float(stage.inner_text()) == -before
    page.locator("[name=a]").select_option("strict, method subset")
    page.wait_for_url("**a=strict%2C+method+subset**")
    expect(title).to_contain_text("strict, method subset and balanced")


def test_a_pinned_baseline_is_used_until_it_is_unpinned(lab: ServedLab, page: Page) -> None:
    open_path(page, lab, f"/compare?{OF}&a=balanced&b={SUBSET}")
    pin = page.locator("[data-pin]")
    pin.click()
    expect(pin).to_have_attribute("aria-pressed", "true")
    open_path(page, lab, f"/compare?{OF}")
    expect(page.locator("[name=b]")).to_have_value(SUBSET)
    page.get_by_role("link", name="with B").first.click()
    expect(page.locator("[name=b]")).to_have_value(SUBSET)
    pin.click()
    expect(pin).to_have_attribute("aria-pressed", "false")


def test_an_item_on_which_they_differ_leads_to_the_verdicts(lab: ServedLab, page: Page) -> None:
    open_path(page, lab, f"/compare?{OF}&a=balanced&b={SUBSET}")
    rows = page.get_by_role("region", name="Items").locator("tbody tr")
    shown = rows.first.locator("td[data-name=A]")
    verdict = shown.inner_text().partition(",")[0]
    shown.get_by_role("link").click()
    page.wait_for_url("**/experiments/pilot?evidence=**")
    stages = verdict.replace("stage ", "").replace(" or ", " ")
    expect(page.locator("#sample-table")).to_contain_text(stages)
