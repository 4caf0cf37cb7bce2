"""`plan --power`: how much evidence an effect needs, from what was judged so far."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Call, succeed

Write = Callable[..., Path]
JUDGES = ["sim:judge?noise=0.4&abstain=0", "sim:strict?noise=0.4&abstain=0"]


def test_a_difference_needs_the_more_items_the_smaller_it_is(
    call: Call, write_study: Write
) -> None:
    study = write_study(
        judges=JUDGES, samples=4, probe=False, vary={"presentation.first": ["rubric", "evidence"]}
    )
    succeed(call("run", study))
    large, small = (
        succeed(call("plan", study, "--power", effect, "--json")).json["plans"]
        for effect in ("0.3", "0.03")
    )
    assert [row["quantity"] for row in large] == [row["quantity"] for row in small]
    pairs = [
        (one["items"], other["items"])
        for one, other in zip(large, small, strict=True)
        if one["items"] and other["items"]
    ]
    assert pairs and all(one < other for one, other in pairs)
    text = succeed(call("plan", study, "--power", "0.3")).out
    assert "to detect 0.3" in text and "presentation.first" in text and "90%" in text


def test_what_to_buy_next_is_said_in_a_sentence_a_table_and_components(
    call: Call, write_study: Write
) -> None:
    study = write_study(
        judges=JUDGES,
        samples=4,
        probe=False,
        protocol=None,
        design={},
        evidence={"here": {"files": "more.jsonl"}},
        tasks=[{"concept": "harshness", "evidence": "here"}],
    )
    texts = ["calm", "harsh", "cruel and harsh", "kind", "repression", "arrests of critics"]
    lines = [json.dumps({"title": text, "text": f"A {text} report."}) for text in texts]
    study.with_name("more.jsonl").write_text("\n".join(lines))
    succeed(call("run", study))
    found = succeed(call("plan", study, "--next", "--for", "of the panel", "--json")).json
    assert found["quantity"].startswith("stage of the panel")
    assert {"items", "repeats", "judges"} <= {row["option"] for row in found["purchases"]}
    by_calls = [row for row in found["purchases"] if row["option"] == "items"]
    halves = [row["half_width"] for row in by_calls]
    assert halves == sorted(halves, reverse=True) and halves[0] < found["half_width"]
    assert [row["component"] for row in found["variance"]][:2] == ["cluster", "item"]
    text = succeed(call("plan", study, "--next", "--target", "0.01")).out
    assert "more items for" in text and "±.010" in text and "confounded with item" in text
    refused = call("plan", study, "--next", "--for", "altitude")
    assert refused.code == 2 and "no quantity contains 'altitude'; choose of: stage" in refused.err
    assert "belong to --next" in call("plan", study, "--target", "0.1").err


def test_means_are_planned_where_nothing_was_varied(call: Call, write_study: Write) -> None:
    study = write_study(judges=JUDGES, samples=4, probe=False)
    succeed(call("run", study))
    assert "items, 80%" in succeed(call("plan", study, "--power", "0.2")).out


@pytest.mark.parametrize(("effect", "says"), [("0", "an effect of 0"), ("x", "a valid number")])
def test_an_effect_is_a_number_other_than_zero(
    call: Call, finished: Path, effect: str, says: str
) -> None:
    said = call("plan", finished, "--power", effect)
    assert said.code == 2
    assert says in said.err


def test_without_samples_there_is_no_pilot(call: Call, write_study: Write) -> None:
    study = write_study(judges=JUDGES, probe=False)
    succeed(call("rubric", study))
    said = call("plan", study, "--power", "0.1")
    assert said.code == 2
    assert "no samples yet" in said.err
