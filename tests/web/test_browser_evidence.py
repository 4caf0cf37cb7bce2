"""Evidence is added, frozen, compared and read beside its views, in a real browser."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from browser_pages import PHONE, Visit
from judge_gym.web.pages.evidence import ROWS
from lab_server import TEXTS, ServedLab, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("read")) as opened:
        yield opened


def test_texts_are_added_to_a_new_window_frozen_and_compared(
    visit: Visit, lab: ServedLab, tmp_path: Path
) -> None:
    lines = [{"title": "one", "text": "The first text of all."}, {"text": "A text without title."}]
    file = tmp_path / "more.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    page = visit.open("/evidence")
    page.click("#adding summary")
    page.click("#add button")
    expect(page.locator("#add .error")).to_contain_text("choose files or enter a text")
    page.set_input_files("[name=files]", file)
    page.fill("[name=title]", "by hand")
    page.fill("[name=text]", "Written into the form.")
    page.fill("[name=country]", "Norvessa")
    page.fill("[name=start_date]", "2026-02-01")
    page.fill("[name=end_date]", "2026-02-28")
    page.click("#add button")
    page.wait_for_url("**/windows/*")
    titles = page.locator("#items tbody tr td:nth-child(2)").all_text_contents()
    assert titles == ["one", "more.jsonl:2", "by hand"]
    page.fill("[name=name]", "february/all")
    page.click("#freeze button")
    page.wait_for_url("**/pools/february/all")
    expect(page.locator("#items tbody tr")).to_have_count(3)

    page = visit.open(f"/windows/{lab.lab.evidence.list_windows()[-1]['window']}")
    page.click("button:has-text('Drop') >> nth=0")
    expect(page.locator("#items tbody tr").first).to_contain_text("dropped")
    page.fill("[name=name]", "february")
    page.click("#freeze button")
    page.wait_for_url("**/pools/february")
    page.select_option("[name=against]", "february/all")
    page.click("button:has-text('Compare')")
    expect(page.locator(".card")).to_contain_text("2 items in both")
    expect(page.locator(".card")).to_contain_text("1 only in the other pool")
    page.click("text=Use in a new study")
    page.wait_for_url("**/new?**")
    expect(page.locator("[name=pool]")).to_have_value("february")
    expect(page.get_by_label("A pool of this lab")).to_be_checked()


def test_a_text_is_read_beside_its_view(visit: Visit, lab: ServedLab) -> None:
    [item] = [row for row in lab.lab.evidence.list(1) if row["title"] == "harsh"]
    page = visit.open(f"/evidence/{item['id']}")
    expect(page.locator("section").nth(0).locator(".text")).to_have_text(TEXTS["harsh"])
    [view] = lab.lab.evidence.show(item["id"])["views"]
    expect(page.locator("section").nth(1).locator(".text")).to_have_text(view["text"] or "")
    expect(page.locator("section").nth(1)).to_contain_text("sim:editor")
    expect(page.locator("a", has_text="pilot/strict")).to_have_attribute(
        "href", f"/experiments/pilot/strict?evidence={item['id']}"
    )
    page.click("text=every word that differs")
    shown = page.locator("section").nth(0).locator(".text")
    expect(shown).to_have_text(TEXTS["harsh"])
    page.set_viewport_size(PHONE)
    assert visit.fits()


def test_a_pair_is_shown_as_a_pair(visit: Visit, lab: ServedLab) -> None:
    made = lab.post("/api/windows", start_date="2026-03-01", end_date="2026-03-31", country="X")
    pair = {"title": "a pair", "text": "Which is right?", "responses": ["It is 4.", "It is 5."]}
    lab.post(f"/api/windows/{made['window_id']}/evidence", items=[pair])
    page = visit.open(f"/windows/{made['window_id']}")
    expect(page.locator("#items tbody tr")).to_contain_text("pair")
    page.click("#items tbody a >> nth=1")
    expect(page.locator("section")).to_have_count(2)
    expect(page.locator("section").nth(0)).to_contain_text("First response")
    expect(page.locator("section").nth(1).locator(".text")).to_have_text("It is 5.")


def test_many_items_come_in_pages_that_are_small(visit: Visit, lab: ServedLab) -> None:
    made = lab.post("/api/windows", start_date="2026-04-01", end_date="2026-04-30", country="Y")
    count, long = ROWS + 7, "w " * 400_000
    items = [{"title": f"item {n}", "text": f"Text number {n}."} for n in range(count - 1)]
    path = f"/api/windows/{made['window_id']}/evidence"
    lab.post(path, items=[*items, {"title": "long", "text": long}])
    page = visit.open(f"/windows/{made['window_id']}")
    expect(page.locator("#items tbody tr")).to_have_count(ROWS)
    page.click("text=More")
    expect(page.locator("#items tbody tr")).to_have_count(7)
    expect(page.locator("#items tbody tr").last).to_contain_text("400,000")
    page.click("text=long")
    expect(page.locator(".banner")).to_contain_text("too long for this page")
    visit.open(page.url.removeprefix(lab.url))  # under a megabyte
