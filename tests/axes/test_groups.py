"""What each group's levels come to: strategies, fragments and schemas."""

import itertools
import re
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.axes import Design
from judge_gym.axes.presentation import LETTERS, OPAQUE, PresentationStrategy
from judge_gym.axes.verdict import VerdictAxes, VerdictStrategy
from judge_gym.errors import DesignError
from judge_gym.records import STAGES, StageName
from tables import each_row

Method = Literal["single", "subset"]
SHOWN = ("C", "A", "E", "B")


def design(**knobs: Any) -> Design:
    named = {name.replace("__", "."): value for name, value in knobs.items()}
    return Design.of({"judge.model": "sim:balanced", **named})


# --- evidence, rubric, probe ---------------------------------------------------------------------


def test_a_view_needs_its_editor_and_raw_evidence_needs_none() -> None:
    edited = design(evidence__editor="sim:editor", evidence__view="neutralized")
    assert edited.evidence.resolve().editor == "sim:editor"
    raw = design(evidence__editor="sim:editor", evidence__view="raw")
    assert raw.evidence.resolve().editor is None
    with pytest.raises(DesignError, match=r"needs an evidence\.editor"):
        design(evidence__view="neutralized").evidence.resolve()


@pytest.mark.parametrize(
    ("author", "writes", "criticises"),
    [
        ("own", "sim:strict", "sim:critic"),
        ("sim:third", "sim:third", "sim:critic"),
        ("provided", None, None),
    ],
)
def test_the_author_is_the_judge_a_third_party_or_none(
    author: str, writes: str | None, criticises: str | None
) -> None:
    axes = design(rubric__author=author, rubric__critic="sim:critic", rubric__draws=3).rubric
    strategy = axes.resolve("sim:strict")
    assert (strategy.author, strategy.critic, strategy.draws) == (writes, criticises, 3)


@each_row("scale", range(2, 27))
def test_only_an_odd_scale_has_a_middle_stage(scale: int) -> None:
    strategy = design(rubric__scale=scale).rubric.resolve("sim:strict")
    assert strategy.scale == scale
    if scale % 2:
        below = above = (scale - 1) // 2
        assert below + 1 + above == scale
        assert f"Stage {below + 1} " in strategy.midpoint_rule
        assert "Ambiguous / Mixed Evidence" in strategy.midpoint_rule
    else:
        assert "no middle stage" in strategy.midpoint_rule
        assert not re.search(r"\d|Ambiguous", strategy.midpoint_rule)


def test_the_probe_follows_in_the_same_context_only_where_asked() -> None:
    assert not design(probe__context="fresh").probe.resolve().same_context
    assert design(probe__context="same").probe.resolve().same_context


# --- presentation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("knobs", "expected"),
    [
        ({}, (LETTERS, True, True, True, (False, True))),
        ({"presentation__labels": "fixed"}, (LETTERS, False, True, True, (False, True))),
        ({"presentation__labels": "opaque"}, (OPAQUE, True, True, True, (False, True))),
        ({"presentation__order": "fixed"}, (LETTERS, True, False, True, (False, True))),
        ({"presentation__first": "evidence"}, (LETTERS, True, True, False, (False, True))),
        ({"presentation__pair_order": "given"}, (LETTERS, True, True, True, (False,))),
        ({"presentation__pair_order": "swapped"}, (LETTERS, True, True, True, (True,))),
    ],
)
def test_a_presentation_level_changes_its_own_part_alone(
    knobs: dict[str, str], expected: tuple[Any, ...]
) -> None:
    assert design(**knobs).presentation.resolve() == PresentationStrategy(*expected)


@pytest.mark.parametrize("names", [LETTERS, OPAQUE])
def test_there_is_a_name_for_each_of_26_stages(names: tuple[str, ...]) -> None:
    assert len(names) == len({name.casefold() for name in names}) == 26


def test_opaque_names_are_neither_letters_nor_words_nor_in_sequence() -> None:
    assert all(len(name) == 2 and not set(name) & set("AEIOU") for name in OPAQUE)
    assert list(OPAQUE[:4]) != sorted(OPAQUE[:4])
    assert list(OPAQUE) != sorted(OPAQUE)


# --- verdict -------------------------------------------------------------------------------------

COMBINATIONS = list(itertools.product(("single", "subset"), (False, True), (False, True)))


@each_row(("method", "output", "abstain"), COMBINATIONS)
def test_a_verdict_resolves_to_its_own_levels(method: Method, output: bool, abstain: bool) -> None:
    axes = VerdictAxes(method=method, output="json" if output else "suffix", abstain=abstain)
    assert axes.resolve() == VerdictStrategy(method, output, abstain)


@each_row(("method", "output", "abstain"), COMBINATIONS)
def test_abstaining_is_mentioned_only_if_allowed(
    method: Method, output: bool, abstain: bool
) -> None:
    strategy = VerdictStrategy(method, output, abstain)
    asked = " ".join(strategy.steps)
    closing, schema = strategy.closing(SHOWN), str(strategy.schema(SHOWN))
    assert ("abstain" in asked.lower()) == abstain
    assert ("ABSTAIN" in closing) == abstain
    assert ("ABSTAIN" in schema) == (abstain and output)
    assert "abstain" not in closing.replace("ABSTAIN", "").lower()


def test_the_gate_precedes_the_reasoning() -> None:
    gate, reason, conclude = VerdictStrategy("single", False, True).steps
    assert "abstain" in gate and "step by step" in reason and "Conclude" in conclude
    assert len(VerdictStrategy("single", False, False).steps) == 2


@pytest.mark.parametrize("abstain", [True, False])
@pytest.mark.parametrize("output", [True, False])
def test_a_single_verdict_asks_for_one_label_and_a_subset_for_several(
    output: bool, abstain: bool
) -> None:
    single = VerdictStrategy("single", output, abstain)
    subset = VerdictStrategy("subset", output, abstain)
    one, many = single.steps[-1].lower(), subset.steps[-1].lower()
    assert "the one label" in one and "more than one" not in one
    assert "every label" in many and "more than one only where" in many
    assert "one or more" in subset.closing(SHOWN)
    assert "one or more" not in single.closing(SHOWN)
    assert single.steps[:-1] == subset.steps[:-1]


@pytest.mark.parametrize(
    ("method", "abstain", "line"),
    [
        ("single", True, "VERDICT: [C/A/E/B] or ABSTAIN"),
        ("single", False, "VERDICT: [C/A/E/B]"),
        ("subset", True, "VERDICT: [one or more of C, A, E, B, separated by commas] or ABSTAIN"),
        ("subset", False, "VERDICT: [one or more of C, A, E, B, separated by commas]"),
    ],
)
def test_a_free_answer_ends_in_a_verdict_line(method: Method, abstain: bool, line: str) -> None:
    closing = VerdictStrategy(method, False, abstain).closing(SHOWN)
    assert closing.splitlines()[-1] == line
    assert "End your response exactly like this" in closing


@given(
    st.integers(2, 26).flatmap(lambda n: st.permutations(LETTERS[:n])),
    st.sampled_from(COMBINATIONS),
)
def test_the_answer_line_lists_the_labels_shown_and_no_others(
    labels: list[str], combination: tuple[Method, bool, bool]
) -> None:
    closing = VerdictStrategy(*combination).closing(labels)
    assert re.findall(r"\b[A-Z]\b", closing) == labels


@pytest.mark.parametrize(
    ("method", "abstain", "verdict"),
    [
        ("single", False, {"type": "string", "enum": ["C", "A"]}),
        (
            "subset",
            False,
            {"type": "array", "items": {"type": "string", "enum": ["C", "A"]}, "minItems": 1},
        ),
        (
            "single",
            True,
            {
                "anyOf": [
                    {"type": "string", "enum": ["C", "A"]},
                    {"type": "string", "enum": ["ABSTAIN"]},
                ]
            },
        ),
        (
            "subset",
            True,
            {
                "anyOf": [
                    {
                        "type": "array",
                        "items": {"type": "string", "enum": ["C", "A"]},
                        "minItems": 1,
                    },
                    {"type": "string", "enum": ["ABSTAIN"]},
                ]
            },
        ),
    ],
)
def test_json_has_a_schema_of_the_labels_shown(
    method: Method, abstain: bool, verdict: dict[str, Any]
) -> None:
    schema = VerdictStrategy(method, True, abstain).schema(("C", "A"))
    assert schema is not None
    assert schema["properties"]["verdict"] == verdict
    assert schema["required"] == ["reasoning", "verdict"]
    assert list(schema["properties"]) == ["reasoning", "verdict"], "reasoning comes before it"
    assert schema["additionalProperties"] is False
    assert VerdictStrategy(method, False, abstain).schema(("C", "A")) is None


# --- prompt --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", STAGES)
def test_a_language_and_a_framing_reach_only_their_stage(stage: StageName) -> None:
    given = {
        f"prompt.slots.{stage}.framing": "One of many.",
        f"prompt.slots.{stage}.language": "Write in Dutch.",
    }
    chosen = Design.of({"judge.model": "sim:balanced", **given})
    assert chosen.notes(stage) == ("One of many.", "Write in Dutch.")
    assert all(chosen.notes(other) == () for other in STAGES if other != stage)


@pytest.mark.parametrize("stage", STAGES)
def test_the_defaults_add_nothing_to_the_instructions(stage: StageName) -> None:
    assert design().notes(stage) == ()
