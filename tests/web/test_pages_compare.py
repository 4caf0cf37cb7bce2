"""Comparing experiments: effects of one knob, refusals of more, and where they part."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from browsed import PHONE, browsing, drawn, go, of, sideways
from judge_gym.analysis.frames import tidy
from judge_gym.analysis.stats.contrasts import contrasts
from served import Served, create, served

pytestmark = pytest.mark.needs("chromium")
QUERY = "/compare?tag=pilot&tag=pilot/subset&tag=pilot/strict&tag=later"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One judge under two methods, another judge under one of them, and one that never ran."""
    with served(tmp_path_factory.mktemp("compare")) as opened:
        window = opened.lab.evidence.list_windows()[0]["window"]
        create(opened.lab, window, "pilot/subset", **{"verdict.method": "subset"})
        opened.lab.runs.run("pilot/subset")
        yield opened


def test_without_two_experiments_one_is_told_to_choose(lab: Served, page: Page) -> None:
    go(page, lab, "/compare")
    expect(page.get_by_text("Choose two or more experiments")).to_be_visible()
    boxes = page.locator("input[name=tag]")
    boxes.nth(0).fill("pilot")
    boxes.nth(1).fill("pilot/subset")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?tag=pilot&tag=pilot%2Fsubset")
    expect(page.get_by_role("region", name="Design differences").locator("tbody tr")).to_have_text(
        "verdict.methodsinglesubset"
    )


def test_effects_are_those_of_the_analysis(lab: Served, page: Page) -> None:
    go(page, lab, "/compare?tag=pilot&tag=pilot/subset")
    table = contrasts(tidy(lab.lab.experiments.samples("pilot", "pilot/subset")))
    [expected] = table[table["endpoint"] == "stage"].to_dict("records")
    row = page.get_by_role("region", name="Effects").locator("tr.chosen td")
    assert row.nth(0).inner_text() == "verdict.method"
    assert row.nth(1).inner_text() == expected["level"]
    assert row.nth(4).inner_text() == f"{expected['value']:.3f}"
    assert row.nth(5).inner_text() == f"{expected['low']:.3f} to {expected['high']:.3f}"
    assert row.nth(6).inner_text() == str(expected["items"])


def test_pairs_that_differ_in_more_than_one_knob_are_refused_by_name(
    lab: Served, page: Page
) -> None:
    go(page, lab, QUERY)
    refused = page.locator("[data-refused]")
    expect(refused).to_have_count(1)
    expect(refused).to_contain_text("pilot/strict and pilot cannot be compared")
    expect(refused).to_contain_text("differ in judge.model, verdict.method")
    silent = page.locator(".banner", has=page.get_by_role("link", name="later", exact=True))
    expect(silent).to_contain_text("has no samples")
    knobs = {
        one.inner_text()
        for one in page.get_by_role("region", name="Effects").locator("td:first-child").all()
    }
    assert knobs == {"verdict.method", "judge.model"}


def test_the_items_furthest_apart_lead_to_the_evidence_and_its_verdicts(
    lab: Served, page: Page
) -> None:
    go(page, lab, "/compare?tag=pilot&tag=pilot/subset")
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
    page.wait_for_url(f"**{of('pilot')}?evidence={item}&swap=0#samples")
    count = int((frame[frame["tag"] == "pilot"]["evidence"] == int(item)).sum())
    expect(page.locator("#sample-table .pill.scored")).to_have_count(count)


def test_the_heat_map_and_the_other_figures_are_drawn(lab: Served, page: Page) -> None:
    go(page, lab, QUERY)
    expect(page.get_by_alt_text("Heat map.", exact=False)).to_have_count(1)
    assert drawn(page) >= 3


def test_too_many_and_unknown_experiments_are_refused(lab: Served) -> None:
    html = {"Accept": "text/html"}
    many = lab.ask("GET", "/compare", params={"tag": [str(n) for n in range(9)]}, headers=html)
    assert many.status_code == 422 and "9 experiments are too many" in many.text
    gone = lab.ask("GET", "/compare?tag=pilot&tag=nothing", headers=html)
    assert gone.status_code == 404 and "there is no experiment" in gone.text


def test_the_page_fits_a_phone(browser: Browser, lab: Served) -> None:
    with browsing(browser, lab, viewport=PHONE) as page:
        go(page, lab, QUERY)
        assert sideways(page) <= 0
