"""`plan --power` and `plan --next`: what tests find, and what to buy next."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import TEXTS, Call, succeed

Write = Callable[..., Path]
JUDGES = ["sim:judge?noise=0.4&abstain=0", "sim:strict?noise=0.4&abstain=0"]


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


def test_power_needs_no_data_and_takes_components_from_a_pilot(
    call: Call, write_study: Write
) -> None:
    study = write_study(
        judges=JUDGES, samples=4, probe=False, vary={"presentation.first": ["rubric", "evidence"]}
    )
    planned = succeed(call("plan", study, "--power", "0.1", "--json")).json
    assert planned["pilot"] == "" and {row["source"] for row in planned["endpoints"]} == {"default"}
    found = {row["endpoint"]: row for row in planned["endpoints"]}
    assert {*found} == {"stage", "abstention", "entropy"}
    assert found["stage"]["planned"] == len(TEXTS) and found["stage"]["needed_80"] > 5
    missing = call("plan", study, "--power", "0.1", "--pilot", "nothing")
    assert missing.code == 2 and "nothing" in missing.err
    succeed(call("run", study))
    small = succeed(call("plan", study, "--power", "0.02")).out
    assert "in at least 80 % of studies" in small or "Too few items" in small
    assert "variances assumed" in small


def test_the_first_hypothesis_is_planned_over_concepts_and_beside_it_over_items(
    call: Call, write_study: Write
) -> None:
    tasks = [
        {"type": kind, "concept": concept, "evidence": "here"}
        for kind, concept in (("ecc", "fascism"), ("ecc", "populism"), ("control", "growth"))
    ]
    study = write_study(judges=JUDGES, tasks=tasks)
    planned = succeed(call("plan", study, "--power", "0.1", "--json")).json
    rows = {row["endpoint"]: row for row in planned["endpoints"]}
    first, here = rows["H1 entrenchment"], rows["H1 on these concepts"]
    assert (first["unit"], first["planned"]) == ("concepts per arm", 1)
    assert first["note"] == "1 concept per arm, 4 are needed" and first["power"] is None
    assert (here["unit"], here["planned"]) == ("items per arm", 3 * len(TEXTS) // 2)


@pytest.mark.parametrize(("effect", "says"), [("0", "an effect of 0"), ("x", "a valid number")])
def test_an_effect_is_a_number_other_than_zero(
    call: Call, finished: Path, effect: str, says: str
) -> None:
    said = call("plan", finished, "--power", effect)
    assert said.code == 2
    assert says in said.err
