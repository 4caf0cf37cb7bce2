"""How studies are going: their status, what came of their verdicts, and what to do next."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge_gym.lab import Lab
from judge_gym.lab.study_states import VerdictCounts

WriteStudy = Callable[..., Path]
ITEMS = 5
RUBRIC = ["calm: it is calm", "harsh: it is harsh"]
TASK = {"concept": "tone", "evidence": "here", "rubric": RUBRIC}
PLAIN: dict[str, Any] = {"protocol": None, "design": {}, "samples": 1, "probe": False}


@pytest.fixture
def write_plain(write_study: WriteStudy) -> WriteStudy:
    def write(**changes: Any) -> Path:
        return write_study(**{**PLAIN, "tasks": [TASK], **changes})

    return write


def test_a_study_whose_calls_all_failed_is_not_done(lab: Lab, write_plain: WriteStudy) -> None:
    lab.runs.run(write_plain(judges=["sim:balanced?fail=1"]))
    state = lab.pages.study_state("small")
    items = state.counts.total
    assert state.status == "failed" and items > 0
    assert state.counts == VerdictCounts(scored=0, unscored=0, failed=items, todo=0)
    assert state.cause.startswith(f"all {items} calls failed: ")
    assert "did not answer" in state.cause
    assert state.controls == ("retry",)


def test_a_study_of_which_one_judge_failed_counts_its_calls(
    lab: Lab, write_plain: WriteStudy
) -> None:
    lab.runs.run(write_plain(judges=["sim:balanced", "sim:strict?fail=1"]))
    state = lab.pages.study_state("small")
    failed = state.by_judge["sim:strict?fail=1"]
    assert failed.failed == failed.total == state.counts.failed == state.counts.total / 2
    assert state.by_judge["sim:balanced"].failed == 0
    assert state.cause.startswith(f"{failed.total} of {state.counts.total} calls failed")


def test_an_unfinished_study_says_what_it_rests_on_and_who_is_missing(
    lab: Lab, write_plain: WriteStudy
) -> None:
    lab.runs.run(write_plain(), budget={"calls": 2})
    state = lab.pages.study_state("small")
    done = state.counts.total - state.counts.todo
    assert state.status == "over-budget" and 0 < done < state.counts.total
    assert f" of the verdicts, {done} of {state.counts.total}: " in state.unfinished
    assert "none of sim:" in state.unfinished
    assert state.controls[0] == "resume"
    assert "budget" in state.cause


def test_a_study_that_was_only_queued_waits_for_a_worker(lab: Lab, write_plain: WriteStudy) -> None:
    lab.runs.start(write_plain())
    state = lab.pages.study_state("small")
    assert state.status == "waiting" and "no worker is running" in state.cause
    assert state.counts.todo == state.counts.total > 0
    assert "none of sim:balanced, none of sim:strict" in state.unfinished


def test_a_complete_study_has_no_cause_and_nothing_unfinished(
    lab: Lab, write_plain: WriteStudy
) -> None:
    lab.runs.run(write_plain())
    state = lab.pages.study_state("small")
    assert (state.status, state.cause, state.unfinished, state.controls) == ("complete", "", "", ())


def test_answers_without_a_verdict_are_not_counted_as_scored(
    lab: Lab, write_plain: WriteStudy
) -> None:
    lab.runs.run(write_plain(judges=["sim:balanced?garble=1"]))
    counts = lab.pages.study_state("small").counts
    assert counts.unscored == counts.total and counts.scored == counts.failed == 0
