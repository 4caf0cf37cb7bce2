"""Comparing experiments: effects of one knob, refusals of more, and where they part."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from browser_pages import count_figures, experiment_path, open_path
from lab_server import ServedLab, create, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]
QUERY = "/compare?tag=pilot&tag=pilot/subset&tag=pilot/strict&tag=later"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """One judge under two methods, another judge under one of them, and one that never ran."""
    with serve_lab(tmp_path_factory.mktemp("compare")) as opened:
        window = opened.lab.evidence.list_windows()[0]["window"]
        create(opened.lab, window, "pilot/subset", **{"verdict.method": "subset"})
        opened.lab.runs.run("pilot/subset")
        yield opened


def test_without_two_experiments_one_is_told_to_choose(lab: ServedLab, page: Page) -> None:
    open_path(page, lab, "/compare")
    expect(page.get_by_text("Choose two or more experiments")).to_be_visible()
    boxes = page.locator("input[name=tag]")
    boxes.nth(0).fill("pilot")
    boxes.nth(1).fill("pilot/subset")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?tag=pilot&tag=pilot%2Fsubset")
    expect(page.get_by_role("region", name="Design differences").locator("tbody tr")).to_have_text(
        "verdict.methodsinglesubset"
    )


def test_the_items_furthest_apart_lead_to_the_evidence_and_its_verdicts(
    lab: ServedLab, page: Page
) -> None:
    open_path(page, lab, "/compare?tag=pilot&tag=pilot/subset")
    frame = lab.lab.experiments.samples("pilot", "pilot/subset").query("status == 'scored'")

    def place(stages: str) -> float:
        named = [int(stage) for stage in stages.split()]
        return (sum(named) / len(named) - 1) / 3

    means = frame.assign(place=frame["stages"].map(place)).groupby(["evidence", "tag"])["place"]
    table = means.mean().unstack()
    spans = (table.max(axis=1) - table.min(axis=1)).sort_values(ascending=False)
    rows = page.get_by_role("region", name="Items").locator("tbody tr")
    expect(rows).to_have_count(len(spans))
    told = [float(row.locator("td").nth(1).inner_text()) for row in rows.all()]
    assert told == pytest.approx(list(spans), abs=0.006)
    top = rows.first
    item = str(top.locator("td a").first.get_attribute("href")).removeprefix("/evidence/")
    assert spans[int(item)] == pytest.approx(spans.iloc[0])
    top.locator("td").nth(2).get_by_role("link").click()
    page.wait_for_url(f"**{experiment_path('pilot')}?evidence={item}&swap=0#samples")
    count = int((frame[frame["tag"] == "pilot"]["evidence"] == int(item)).sum())
    expect(page.locator("#sample-table .pill.scored")).to_have_count(count)


def test_the_heat_map_and_the_other_figures_are_drawn(lab: ServedLab, page: Page) -> None:
    open_path(page, lab, QUERY)
    expect(page.get_by_alt_text("Heat map.", exact=False)).to_have_count(1)
    assert count_figures(page) >= 3
