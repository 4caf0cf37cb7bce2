"""People label items over links: blind, one item at a time, on a screen of any size."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Response, ViewportSize, expect
from playwright.sync_api import Error as BrowserError

from browser_pages import PHONE, WAIT, overflow_width, violations
from judge_gym.analysis.judges.label_draws import LabelDraw
from judge_gym.lab import Lab
from lab_server import ServedLab, serve_lab

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]
RATERS = ("ana", "bo")
ITEMS = 20
STUDY = """
study: replies
samples: 1
items: {replies: {files: replies.jsonl}}
tasks: [{question: quality, items: replies, rubric: rubric.json}]
judges: ["sim:balanced", "sim:hasty"]
probe: false
"""


def write_study(folder: Path) -> Path:
    lines = [
        {"title": f"reply {n}", "text": f"Reply number {n}: {'solved' if n % 2 else 'ask again'}."}
        for n in range(ITEMS)
    ]
    (folder / "replies.jsonl").write_text("\n".join(map(json.dumps, lines)))
    stages = [
        {"label": "fail", "criteria": ["does not help"]},
        {"label": "pass", "criteria": ["helps"]},
    ]
    (folder / "rubric.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    path = folder / "replies.yaml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """Twenty items that two simulated judges have judged."""
    folder = tmp_path_factory.mktemp("labelling")
    with serve_lab(folder) as opened:
        opened.lab.runs.run(write_study(folder))
        yield opened


def link(lab: Lab, url: str, rater: str) -> str:
    """A rater's link; both label every item."""
    queue = lab.labelling.ask("replies", RATERS, LabelDraw(ITEMS), 1.0)
    return f"{url}/label?token={lab.labelling.link(queue['queue'], rater)}"


@pytest.mark.parametrize("rater", RATERS)
def test_a_rater_labels_every_item_without_seeing_a_judge(
    lab: ServedLab, browser: Browser, rater: str
) -> None:
    phone = rater == "bo"
    size: ViewportSize = PHONE if phone else {"width": 1440, "height": 900}
    context = browser.new_context(viewport=size, bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(WAIT)
    bodies: list[str] = []
    page.on("response", lambda response: bodies.append(text_of(response)))
    page.goto(link(lab.lab, lab.url, rater))
    assert "token" not in page.url
    assert violations(page) == []
    for position in range(1, ITEMS + 1):
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"Item {position} of {ITEMS}")
        assert overflow_width(page) <= 0
        said = page.get_by_role("article").inner_text()
        choice = "pass" if "solved" in said else "fail"
        if position % 5 == 0 and not phone:
            page.keyboard.press("2" if choice == "pass" else "1")
        else:
            page.get_by_role("button", name=choice).click()
        page.wait_for_url(f"**/label?item={position + 1}" if position < ITEMS else "**/label/done")
    assert "balanced" not in "".join(bodies) and "hasty" not in "".join(bodies)
    page.get_by_role("link", name="Show what the judges said").click()
    expect(page.get_by_text("balanced").first).to_be_visible()
    assert violations(page) == []
    context.close()


def text_of(response: Response) -> str:
    """What a page received; of a redirect, or of a page that was left, nothing."""
    try:
        return response.text()
    except BrowserError:
        return ""


def test_a_label_is_undone_by_a_key_and_its_history_stays(lab: ServedLab, page: Page) -> None:
    url = link(lab.lab, lab.url, "ana")
    page.goto(f"{url}&item=2")
    page.keyboard.press("u")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Item 1 of")
    page.get_by_role("radio", name="guess").check()
    page.get_by_label("Note (optional)").fill("not sure about the tone")
    with page.expect_response("**/label/answers"):
        page.get_by_role("button", name="Cannot judge").click()
    queue = lab.lab.labelling.queues("replies")[0]["queue"]
    first = [row for row in lab.lab.labelling.export(queue) if row["rater"] == "ana"]
    last = first[-1]
    assert (last["stage"], last["confidence"], last["note"]) == (
        "",
        "guess",
        "not sure about the tone",
    )
    earlier = [row["stage"] for row in first if row["item"] == last["item"]]
    assert len(earlier) == 2 and earlier[0] in ("pass", "fail")


def test_labels_of_links_count_as_peoples_labels(lab: ServedLab) -> None:
    status = lab.lab.labels.status("replies")
    assert status["raters"] == {"ana": ITEMS - 1, "bo": ITEMS}
    table = lab.lab.reports.judges("replies")
    assert table["kind"] == "agreement"
    assert table["people"] is not None
    assert table["people"]["measures"]["exact"]["value"] == 1
