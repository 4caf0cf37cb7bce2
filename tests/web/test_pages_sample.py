"""A sample's page: what the judge saw and wrote, and how its verdict was read."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from browsed import PHONE, browsing, go, of, sideways
from served import Served, served

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("sample")) as opened:
        yield opened


def test_the_transcript_is_what_was_asked_and_answered(lab: Served, page: Page) -> None:
    row = lab.lab.list_experiment_samples("pilot")[0]
    call = lab.get(f"/api/calls/{row['call_id']}")
    go(page, lab, f"/samples/{row['sample']}")
    turns = page.locator("details.turn pre")
    told = [turn.text_content() for turn in turns.all()[: len(call["messages"])]]
    assert told == [message["content"] for message in call["messages"]]
    answer = str(page.locator("#answer").text_content())
    assert answer.strip() == call["attempts"][-1]["body"].strip()
    probe = lab.get(f"/api/calls/{row['probe_call_id']}")
    expect(page.get_by_text(probe["attempts"][-1]["body"].splitlines()[-1])).to_be_visible()
    expect(page.get_by_role("link", name=f"Call {row['call_id']} as JSON")).to_be_visible()


def test_the_line_that_decides_is_marked_and_decoded(lab: Served, page: Page) -> None:
    rows = [row for row in lab.lab.list_experiment_samples("pilot") if row["status"] == "scored"]
    row = rows[-1]
    go(page, lab, f"/samples/{row['sample']}")
    mark = page.locator("#answer mark")
    expect(mark).to_have_count(1)
    label = mark.inner_text().removeprefix("VERDICT:").strip()
    behind = dict(pair.split("=") for pair in row["display"].split())
    assert behind[label] == row["stages"]
    chosen = page.locator("#display tr.chosen td")
    assert chosen.nth(1).inner_text() == label and chosen.nth(2).inner_text() == row["stages"]
    places = [one.inner_text() for one in page.locator("#display tbody td:nth-child(2)").all()]
    assert places == list(behind)
    expect(page.locator("#verdict")).to_contain_text(f"stage {row['stages']}")


def test_next_and_previous_stay_within_what_was_asked(lab: Served, page: Page) -> None:
    rows = lab.lab.list_experiment_samples("pilot")
    item = rows[0]["evidence"]
    meant = {row["sample"] for row in rows if row["evidence"] == item}
    page.goto(f"{lab.url}{of('pilot')}?evidence={item}")
    ids = [int(one.inner_text()) for one in page.locator("#sample-table td:first-child").all()]
    assert set(ids) == meant
    page.locator("#sample-table td:first-child a").first.click()
    walked = []
    for number, id in enumerate(ids):
        page.wait_for_url(f"**/samples/{id}?*evidence={item}*")
        walked.append(id)
        expect(page.locator('a[rel="next"]')).to_have_count(int(number < len(ids) - 1))
        if number < len(ids) - 1:
            page.locator('a[rel="next"]').click()
    assert walked == ids
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(f"**/samples/{ids[-2]}?*")
    page.get_by_role("link", name="All matching samples").click()
    page.wait_for_url(f"**{of('pilot')}?evidence={item}#samples")


def test_a_sample_that_is_not_there_is_said(lab: Served) -> None:
    html = {"Accept": "text/html"}
    gone = lab.ask("GET", "/samples/999999", headers=html)
    assert gone.status_code == 404 and "there is no sample 999999" in gone.text
    assert lab.ask("GET", "/samples/0", headers=html).status_code == 422


def test_the_page_fits_a_phone(browser: Browser, lab: Served) -> None:
    row = lab.lab.list_experiment_samples("pilot")[0]
    with browsing(browser, lab, viewport=PHONE) as page:
        go(page, lab, f"/samples/{row['sample']}")
        assert sideways(page) <= 0
