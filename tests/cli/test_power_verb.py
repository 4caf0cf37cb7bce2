"""`plan --power`: how much evidence an effect needs, from what was judged so far."""

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
