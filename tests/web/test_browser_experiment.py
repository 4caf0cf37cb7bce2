"""An experiment's page: its design, rubrics, verdicts, and the samples that one asks for."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from browser_pages import count_figures, experiment_path, open_page, open_path
from judge_gym.web import analysis_cache
from judge_gym.web.pages import experiment
from lab_server import TEXTS, ServedLab, create, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]
EVIL = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """Two judges of one design, on evidence one of whose titles is a script."""
    folder = tmp_path_factory.mktemp("experiment")
    with serve_lab(folder, run=False, work=True) as opened:
        line = {"title": EVIL, "text": f"Judges were dismissed. {EVIL}"}
        (folder / "evil.jsonl").write_text(json.dumps(line))
        window = opened.lab.create_window("2026-02-01", "2026-02-28", "Valdoria")
        texts = [{"title": name, "text": text} for name, text in TEXTS.items()]
        (folder / "more.jsonl").write_text("\n".join(map(json.dumps, texts)))
        opened.lab.load_evidence(window, ["more.jsonl", "evil.jsonl"], folder=folder)
        raw = {"evidence.view": "raw"}
        create(opened.lab, window, "judged", "sim:cautious", **raw)
        create(opened.lab, window, "judged/strict", "sim:strict", **raw)
        opened.lab.runs.run("judged", samples=6, rivals=["sim:strict"])
        opened.lab.runs.run("judged/strict", samples=4)
        yield opened


def shown(page: Page) -> list[int]:
    """The samples of the table, in its order."""
    return [int(one.inner_text()) for one in page.locator("#sample-table td:first-child").all()]


def test_the_page_says_what_the_experiment_is_and_what_sets_it_apart(
    lab: ServedLab, page: Page
) -> None:
    open_path(page, lab, experiment_path("judged"))
    expect(page.get_by_text("The judge is simulated")).to_be_visible()
    page.locator("select[name=against]").select_option("judged/strict")
    page.wait_for_url("**against=judged%2Fstrict*")
    rows = page.locator("#difference tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_have_text("judge.modelsim:cautioussim:strict")


def test_the_name_of_its_evidence_leads_to_the_items_that_it_judges(
    lab: ServedLab, page: Page
) -> None:
    [row] = lab.lab.store.experiments.rows(tags=["judged"])
    judged = {one["evidence_title"] for one in lab.lab.list_experiment_samples("judged")}
    open_path(page, lab, experiment_path("judged"))
    page.locator("dd").get_by_role("link", name=row["pool_name"], exact=True).click()
    expect(page.locator("h1")).to_contain_text("Items of judged")
    titles = page.locator("#items td.long a").all_inner_texts()
    assert judged <= set(titles) and len(titles) == len(set(titles))


def test_the_form_asks_by_the_address_and_pages_lead_on_and_back(
    lab: ServedLab, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "PAGE", 10)
    page.goto(lab.url + experiment_path("judged"))
    page.locator("select[name=status]").select_option("scored")
    page.locator("form", has=page.locator("select[name=status]")).get_by_role(
        "button", name="Filter"
    ).click()
    page.wait_for_url("**status=scored*")
    expect(page.locator("select[name=status]")).to_have_value("scored")
    first = shown(page)
    assert len(first) == 10
    page.get_by_role("link", name="Next page").click()
    page.wait_for_url("**after=*")
    second = shown(page)
    assert not set(first) & set(second)
    page.get_by_role("link", name="Previous page").click()
    page.wait_for_url("**before=*")
    assert shown(page) == first


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_drawn_for_either_ground(browser: Browser, lab: ServedLab, scheme: Any) -> None:
    with open_page(browser, lab, color_scheme=scheme) as page:
        open_path(page, lab, experiment_path("judged/strict"))
        expect(page.get_by_role("heading", name="Are judges overconfident?")).to_be_visible()
        expect(page.get_by_text("Compared with 1 other judge")).to_be_visible()
        assert count_figures(page) >= 4
        assert page.locator("figure img[alt^='Shapes of verdicts by judge']").count() == 0
        chosen = page.locator("figure img").first.evaluate("picture => picture.currentSrc")
    assert ("theme=dark" in chosen) == (scheme == "dark")
    picture = lab.ask("GET", chosen.removeprefix(lab.url))
    assert picture.headers["content-type"] == "image/svg+xml"
    assert analysis_cache.INKS[scheme] in picture.text and "currentColor" not in picture.text


def test_what_evidence_says_is_shown_as_text(lab: ServedLab, page: Page) -> None:
    rows = lab.lab.list_experiment_samples("judged")
    item = next(row["evidence"] for row in rows if row["evidence_title"] == EVIL)
    page.goto(f"{lab.url}{experiment_path('judged')}?evidence={item}")
    expect(page.locator("#sample-table").get_by_text(EVIL).first).to_be_visible()
    page.locator("#sample-table td:first-child a").first.click()
    expect(page.locator("details.turn pre").nth(1)).to_contain_text(EVIL)
    assert page.evaluate("window.pwned") is None
    heat = lab.ask("GET", "/figures/experiment/item-by-item.svg", params={"tag": "judged"})
    assert heat.status_code == 200 and "<script" not in heat.text and "<img" not in heat.text


def test_a_run_is_started_and_watched_to_its_end(lab: ServedLab, page: Page) -> None:
    open_path(page, lab, experiment_path("later"))
    page.get_by_role("button", name="Run it").click()
    expect(page.locator("#live [data-run]")).to_have_count(1)
    expect(page.locator(".head .pill")).to_have_text("complete", timeout=60_000)
    [run] = lab.lab.get_experiment_summary("later")["runs"]
    line = page.locator('[data-stage="score"]')
    expect(line.locator("[data-done]")).to_have_text(str(run["done"]["score"]))
    expect(page.locator("#sample-table tbody tr")).to_have_count(run["done"]["score"])
    expect(page.get_by_role("heading", name="Response outcomes")).to_be_visible()
