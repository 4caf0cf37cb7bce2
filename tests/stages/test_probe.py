"""Probes: the whole verdict, on the very text that was scored, in a fresh or the same context."""

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.axes import Design
from judge_gym.records import (
    Completion,
    Evidence,
    Finish,
    NominalRubric,
    OrdinalRubric,
    Request,
    Rubric,
    RubricStage,
    Sample,
    Status,
)
from judge_gym.stages import Prober, ProbeTarget, Scorer, ScoreTarget
from tables import each_row

STAGES = tuple(RubricStage(f"Name {n}", (f"sign {n}.",)) for n in range(1, 5))
RUBRIC = OrdinalRubric(STAGES, "sim:strict", "order", "Valdoria")
ITEM = Evidence("title", "The raw text.")
LONG = "A sentence of the view, and a second one. " * 200 + "The very last words."
ORDINALS = ("first", "second")
ANSWER = "The signs fit, I think.\nVERDICT: it stands above"


def design(**knobs: Any) -> Design:
    named = {name.replace("__", "."): value for name, value in knobs.items()}
    return Design.of({"judge.model": "sim:strict", **named})


def sampled(
    stages: tuple[int, ...] = (2,), rubric: Rubric = RUBRIC, replicate: int = 3, **knobs: Any
) -> ProbeTarget:
    target = ScoreTarget(rubric, ITEM, LONG, replicate)
    shown = Scorer(design(**knobs), 7, "7").display(target)
    return ProbeTarget(Sample(rubric, ITEM, replicate, shown, "scored", stages), LONG, ANSWER)


def ask(target: ProbeTarget, **knobs: Any) -> Request:
    [request] = Prober(design(**knobs), 7, "7").requests([target])
    return request


def labels(target: ProbeTarget) -> dict[int, str]:
    shown = target.sample.display
    return dict(zip(shown.stages, shown.labels, strict=True))


# --- asking --------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", ["fresh", "same"])
@given(stages=st.sets(st.integers(1, 4), min_size=1), replicate=st.integers(0, 30))
def test_the_whole_verdict_is_asked_about(context: str, stages: set[int], replicate: int) -> None:
    target = sampled(tuple(sorted(stages)), replicate=replicate)
    last = ask(target, probe__context=context).messages[-1].content
    review = last.partition("VERDICT UNDER REVIEW")[2]
    label_of = labels(target)
    for stage in range(1, 5):
        named = f'Stage {label_of[stage]} ("Name {stage}")' in review
        assert named == (stage in stages)
    event = re.search(r"at least two of the three choose (?:stage|one of) ([A-D, ]+)\?", review)
    assert event and set(event[1].split(", ")) == {label_of[stage] for stage in stages}


@pytest.mark.parametrize("context", ["fresh", "same"])
def test_the_event_is_a_majority_of_three_experts(context: str) -> None:
    last = ask(sampled(), probe__context=context).messages[-1].content
    assert "Three experts" in last
    assert "at least two of the three" in last
    assert last.endswith("PROBABILITY: a number from 0 to 1")


@pytest.mark.parametrize("context", ["fresh", "same"])
def test_the_panel_of_experts_is_that_of_the_study(context: str) -> None:
    knobs = {"probe__context": context, "prompt__slots__prober__panel": "senior engineers"}
    last = ask(sampled(), **knobs).messages[-1].content
    assert "Three senior engineers" in last and "political" not in last


def test_a_fresh_context_shows_rubric_text_and_verdict_but_not_the_answer() -> None:
    target = sampled()
    request = ask(target)
    assert [message.role for message in request.messages] == ["system", "user"]
    user = request.messages[1].content
    assert all(f'Stage {label}: "Name {stage}"' in user for stage, label in labels(target).items())
    assert "The signs fit, I think." not in user
    assert "Your verdict" not in user


def test_the_same_context_is_the_scorer_s_conversation_and_the_answer_before_the_question() -> None:
    target = sampled()
    chosen = design(probe__context="same")
    [scored] = Scorer(chosen, 7, "7").requests([ScoreTarget(RUBRIC, ITEM, LONG, 3)])
    request = ask(target, probe__context="same")
    *before, answer, question = request.messages
    assert tuple(before) == scored.messages
    assert (answer.role, answer.content) == ("assistant", ANSWER)
    assert question.role == "user" and "QUESTION" in question.content
    assert LONG not in question.content


@pytest.mark.parametrize("method", ["single", "subset"])
@pytest.mark.parametrize("output", ["suffix", "json"])
def test_the_same_context_repeats_what_the_scorer_asked_under_any_design(
    method: str, output: str
) -> None:
    knobs: dict[str, Any] = {
        "probe__context": "same",
        "verdict__method": method,
        "verdict__output": output,
        "presentation__first": "evidence",
        "presentation__labels": "opaque",
    }
    [scored] = Scorer(design(**knobs), 7, "7").requests([ScoreTarget(RUBRIC, ITEM, LONG, 3)])
    request = ask(sampled(**knobs), **knobs)
    assert request.messages[:2] == scored.messages
    assert request.schema is None, "a probe is answered in words"


@pytest.mark.parametrize("context", ["fresh", "same"])
def test_the_probe_shows_the_scored_text_in_full(context: str) -> None:
    said = "\n".join(m.content for m in ask(sampled(), probe__context=context).messages)
    assert said.count(LONG) == 1
    assert "The raw text." not in said, "the view was scored, not the raw text"


def test_a_note_of_the_prober_reaches_it_in_either_context() -> None:
    knobs = {"prompt__slots__prober__framing": "Experts often disagree."}
    fresh = ask(sampled(), **knobs).messages
    same = ask(sampled(), **knobs, probe__context="same").messages
    assert "Experts often disagree." in fresh[0].content
    assert "Experts often disagree." in same[-1].content
    assert all("Experts often disagree." not in message.content for message in same[:-1])


def test_a_nominal_verdict_is_an_option() -> None:
    target = sampled((1,), NominalRubric(STAGES, "x", "winner", ""))
    user = ask(target).messages[1].content
    assert f"choose option {labels(target)[1]}?" in user and "stage" not in user.lower()


def test_a_verdict_on_a_reversed_pair_is_reviewed_as_the_judge_saw_it() -> None:
    options = tuple(RubricStage(f"The {place} response is better", ("c",)) for place in ORDINALS)
    rubric = NominalRubric(options, "x", "better response", "")
    pair = Evidence("title", "The question.", responses=("Response one.", "Response two."))
    target = ScoreTarget(rubric, pair, pair.text, 3, flipped=True)
    scorer = Scorer(design(), 7, "7")
    [asked] = scorer.requests([target])
    shown = asked.messages[1].content
    # The judge names the option for the response that it was shown first, which is the second.
    named = re.search(r"Option (\w+): \"The first response is better\"", shown)
    assert named is not None
    sample = scorer.read(target, Completion(f"VERDICT: {named[1]}", "stop", "m", 1, 1, 0.0))
    assert sample.stages == (2,)
    probed = ask(ProbeTarget(sample, pair.text)).messages[1].content
    assert f'judged to be at: Option {named[1]} ("The first response is better").' in probed
    assert probed.index("Response two.") < probed.index("Response one.")
    options_shown = [line for line in shown.splitlines() if line.startswith("Option ")]
    assert [line for line in probed.splitlines() if line.startswith("Option ")] == options_shown


def test_the_judge_is_asked_with_the_draw_of_the_sample() -> None:
    request = ask(sampled(), judge__temperature=0.2, judge__max_tokens=77)
    assert (request.model, request.temperature, request.max_tokens) == ("sim:strict", 0.2, 77)
    assert (request.draw.series, request.draw.index, request.draw.ask) == ("7", 3, 0)


# --- reading -------------------------------------------------------------------------------------


def read(text: str, finish: Finish = "stop") -> tuple[Status, float | None]:
    target = sampled()
    probe = Prober(design(), 7, "7").read(target, Completion(text, finish, "m", 1, 1, 0.0))
    assert probe.sample is target.sample
    return probe.status, probe.probability


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The neighbour fits as well.\nPROBABILITY: 0.65", 0.65),
        ("PROBABILITY: 10%", 0.1),
        ("PROBABILITY: 85%", 0.85),
        ("PROBABILITY: 7 out of 10", 0.7),
        ("PROBABILITY: 2/3", 2 / 3),
        ("PROBABILITY: 0", 0.0),
    ],
)
def test_a_probability_is_read(text: str, expected: float) -> None:
    status, probability = read(text)
    assert status == "scored" and probability is not None and math.isclose(probability, expected)


@each_row(
    "text",
    [
        "",
        "I would say 0.7.",
        "85%",
        "PROBABILITY: 0.6 to 0.8",
        "PROBABILITY: 1.5",
        "PROBABILITY: 85",
        "PROBABILITY: high",
        "PROBABILITY: a number from 0 to 1",
        "PROBABILITY: 0.0 to 1.0 scale: 0.75",
        "VERDICT: B",
    ],
)
def test_an_unreadable_answer_is_null(text: str) -> None:
    assert read(text) == ("parse_failed", None)


@pytest.mark.parametrize(("finish", "status"), [("length", "truncated"), ("refusal", "refused")])
def test_a_cut_or_refused_answer_is_null(finish: Finish, status: Status) -> None:
    assert read("PROBABILITY: 0.7", finish) == (status, None)


def test_a_call_without_a_completion_is_null() -> None:
    probe = Prober(design(), 7, "7").read(sampled(), None)
    assert (probe.status, probe.probability) == ("provider_error", None)


@given(st.text() | st.text().map("PROBABILITY: {}".format))
def test_any_answer_is_null_or_a_probability(text: str) -> None:
    status, probability = read(text)
    if probability is None:
        assert status == "parse_failed"
    else:
        assert status == "scored" and 0.0 <= probability <= 1.0
