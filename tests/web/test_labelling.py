"""Labels over links: what a link opens, what is recorded, how raters share and settle items."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from judge_gym.analysis.judges.label_draws import LabelDraw
from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.lab.labelling import LabelPage
from lab_server import ServedLab, serve_lab

ITEMS = 8
HTML = {"Accept": "text/html"}


def write_study(folder: Path) -> Path:
    """A study of single texts and one of pairs, under two labels."""
    texts = [{"title": f"reply {n}", "text": f"Text {n}."} for n in range(ITEMS)]
    (folder / "replies.jsonl").write_text("\n".join(map(json.dumps, texts)))
    pairs = [
        {"title": f"pair {n}", "text": f"Question {n}", "responses": [f"one {n}", f"two {n}"]}
        for n in range(ITEMS)
    ]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    stages = [{"label": word, "criteria": [f"it may {word}"]} for word in ("fail", "pass")]
    (folder / "rubric.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    better = [{"label": word, "criteria": [f"{word} it is"]} for word in ("first", "second", "tie")]
    (folder / "better.json").write_text(json.dumps({"kind": "nominal", "stages": better}))
    for name, rubric in (("replies", "rubric"), ("pairs", "better")):
        study = {
            "study": name,
            "samples": 1,
            "items": {name: {"files": f"{name}.jsonl"}},
            "tasks": [{"question": "quality", "items": name, "rubric": f"{rubric}.json"}],
            "judges": ["sim:balanced", "sim:hasty"],
            "probe": False,
        }
        (folder / f"{name}.yaml").write_text(json.dumps(study))
    return folder


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    folder = write_study(tmp_path_factory.mktemp("labelling"))
    with serve_lab(folder, run=False) as opened:
        for name in ("replies", "pairs"):
            opened.lab.runs.run(folder / f"{name}.yaml")
        yield opened


def ask(lab: ServedLab, study: str, *raters: str, seed: int = 0, overlap: float = 0.0) -> int:
    """A queue of all items."""
    queue = lab.lab.labelling.ask(study, raters, LabelDraw(ITEMS, seed=seed), overlap)
    return queue["queue"]


def shown(lab: ServedLab, queue: int, rater: str, position: int | None = None) -> LabelPage:
    page = lab.lab.labelling.page(queue, rater, position)
    assert page is not None
    return page


def test_a_raters_link_opens_nothing_but_the_own_items(lab: ServedLab) -> None:
    token = lab.lab.labelling.link(ask(lab, "replies", "ana"), "ana")
    page = lab.ask("GET", "/label", token, headers=HTML)
    assert page.status_code == 200
    assert "balanced" not in page.text and "sim:" not in page.text
    paths = [
        "/",
        "/studies/replies",
        "/api/samples?tag=replies",
        "/api/labels",
        "/api/environment",
        "/api/query?sql=select+1",
        "/api/session",
        "/labels",
    ]
    for path in paths:
        assert lab.ask("GET", path, token).status_code == 403, path
    refused = lab.ask("POST", "/api/labels", token, json={"labels": []})
    assert refused.status_code == 403
    assert "for labelling items" in refused.json()["error"]["message"]
    # Nobody else's token labels in a rater's name.
    for other in (lab.local, lab.read):
        assert lab.ask("GET", "/label", other).status_code == 403
        given = lab.ask("POST", "/label/answers", other, json={"position": 1, "stage": "pass"})
        assert given.status_code == 403


def test_a_link_in_a_mail_leaves_the_address_and_writes_only_from_its_own_pages(
    lab: ServedLab,
) -> None:
    token = lab.lab.labelling.link(ask(lab, "replies", "ben"), "ben")
    opened = lab.ask("GET", f"/label?token={token}", "", headers=HTML, follow_redirects=False)
    assert (opened.status_code, opened.headers["location"]) == (303, "/label")
    cookie = opened.headers["set-cookie"]
    assert "Path=/label" in cookie and "HttpOnly" in cookie and "SameSite=lax" in cookie
    assert opened.headers["referrer-policy"] == "no-referrer"
    session = {"Cookie": cookie.partition(";")[0], **HTML}
    answer = {"position": 1, "stage": "pass"}
    forged = lab.ask("POST", "/label/answers", "", headers=session, json=answer)
    assert forged.status_code == 403
    page = lab.ask("GET", "/label", "", headers=session).text
    csrf = page.partition('name="csrf" content="')[2].partition('"')[0]
    given = lab.ask(
        "POST", "/label/answers", "", headers={**session, "X-CSRF-Token": csrf}, json=answer
    )
    assert given.json() == {"next": 2}


def test_a_link_ends_when_it_expires_is_revoked_or_is_made_anew(lab: ServedLab) -> None:
    labelling, queue = lab.lab.labelling, ask(lab, "replies", "cem")
    first, second = labelling.link(queue, "cem"), labelling.link(queue, "cem")
    assert lab.ask("GET", "/label", first).status_code == 401
    assert lab.ask("GET", "/label", second).status_code == 200
    lab.lab.tokens.revoke(f"label {queue} cem")
    assert lab.ask("GET", "/label", second).status_code == 401
    past = datetime.now(UTC) - timedelta(seconds=1)
    expired = lab.lab.tokens.create_link(queue, "cem", past)
    assert lab.ask("GET", "/label", expired).status_code == 401
    with pytest.raises(NotFoundError, match="rater"):
        labelling.link(queue, "nobody")


def test_what_no_rater_can_say_is_refused_and_nothing_is_recorded(lab: ServedLab) -> None:
    queue = ask(lab, "replies", "dan")
    token = lab.lab.labelling.link(queue, "dan")
    wrong: list[dict[str, Any]] = [
        {"position": 1, "stage": "maybe"},
        {"position": 99, "stage": "pass"},
        {"position": 1, "stage": "pass", "confidence": "very"},
        {"position": 0, "stage": "pass"},
    ]
    for body in wrong:
        assert lab.ask("POST", "/label/answers", token, json=body).status_code in (404, 422), body
    assert shown(lab, queue, "dan").labelled == 0


def test_the_same_question_continues_and_labels_of_another_queue_count(lab: ServedLab) -> None:
    queue = ask(lab, "replies", "eve")
    for position in range(1, ITEMS):
        lab.lab.labelling.give(queue, "eve", position, "pass")
    assert ask(lab, "replies", "eve") == queue
    # A later draw asks again only about what she has not labelled.
    later = ask(lab, "replies", "eve", seed=1)
    assert later != queue
    assert shown(lab, later, "eve").labelled == ITEMS - 1
    assert lab.lab.labelling.give(later, "eve", shown(lab, later, "eve").position, None) is None
    assert lab.lab.labelling.page(later, "eve") is None


def test_a_pair_is_labelled_as_shown_and_recorded_by_response(lab: ServedLab) -> None:
    queue, orders = ask(lab, "pairs", "ana"), set()
    for position in range(1, ITEMS + 1):
        page = shown(lab, queue, "ana", position)
        first = dict(page.sections)["First response"]
        orders.add(first.partition(" ")[0])
        # She always prefers the response that begins with "one".
        stage = "first" if first.startswith("one") else "second"
        lab.lab.labelling.give(queue, "ana", position, stage)
        assert shown(lab, queue, "ana", position).stage == stage
    assert orders == {"one", "two"}
    assert {row["stage"] for row in lab.lab.labelling.export(queue)} == {"first"}


def test_judges_are_revealed_only_after_the_last_item_and_reviews_stay_apart(
    lab: ServedLab,
) -> None:
    queue = ask(lab, "replies", "fay")
    token = lab.lab.labelling.link(queue, "fay")
    for position in range(1, ITEMS):
        lab.lab.labelling.give(queue, "fay", position, "fail")
    with pytest.raises(ConflictError, match="after the last item"):
        lab.lab.labelling.reveal(queue, "fay")
    early = lab.ask("GET", "/label/done?reveal=yes", token, follow_redirects=False)
    assert early.status_code == 303
    lab.lab.labelling.give(queue, "fay", ITEMS, "fail")
    revealed = lab.lab.labelling.reveal(queue, "fay")
    sample = revealed[0]["answers"][0]["sample"]
    labels = len(lab.lab.labels.list())
    assert lab.ask("POST", f"/label/reviews/{sample}", token, json={"sound": False}).is_success
    assert lab.ask("POST", "/label/reviews/999999", token, json={"sound": True}).status_code == 404
    reviews = lab.lab.store.label_queues.reviews(queue)
    assert reviews == [{"rater": "fay", "sample": sample, "sound": False}]
    assert len(lab.lab.labels.list()) == labels


def test_one_who_decides_sees_both_labels_and_overwrites_neither(lab: ServedLab) -> None:
    queue = ask(lab, "pairs", "gil", "hal", overlap=1.0)
    for rater, stage in (("gil", "tie"), ("hal", "tie")):
        for position in range(1, ITEMS + 1):
            lab.lab.labelling.give(queue, rater, position, stage)
    # Ana preferred a response of each pair.
    decide = lab.lab.labelling.ask_about_disagreements("pairs", "ida")["queue"]
    page = shown(lab, decide, "ida")
    assert page.total == ITEMS
    assert dict(page.others)["gil"] == "tie" and len(page.others) == 3
    before = lab.lab.labels.status("pairs")["raters"]
    for position in range(1, ITEMS + 1):
        lab.lab.labelling.give(decide, "ida", position, "tie")
    after = lab.lab.labels.status("pairs")["raters"]
    assert after == {**before, "ida": ITEMS}
    with pytest.raises(DesignError, match="differ on no item"):
        lab.lab.labelling.ask_about_disagreements("pairs", "ida")


def test_disputed_items_are_no_part_of_any_estimate(lab: ServedLab) -> None:
    setups = lab.lab.reports.judges("replies")
    draw = LabelDraw(2, hard=3, seed=5)
    queue = lab.lab.labelling.ask("replies", ["kim"], draw, None)
    chances = lab.lab.store.label_queues.probabilities("replies")
    assert queue["draw"]["hard"] == 3
    assert setups["kind"] == "agreement"
    # All of them were drawn by another queue, too, whose chance they keep.
    assert None not in chances.values()
