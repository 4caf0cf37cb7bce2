"""Rubrics: what authors and critics are asked, and how what they write is read."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.axes import Design
from judge_gym.records import (
    Completion,
    Finish,
    NominalRubric,
    OrdinalRubric,
    RubricStage,
    Status,
)
from judge_gym.stages import Critic, Rubricer, RubricTarget
from judge_gym.stages.rubric import parse_rubric
from tables import each_row

TARGET = RubricTarget("sim:strict", "fascism", "Valdoria", draw=2)
THREE = (
    RubricStage("Calm", ("quiet streets", "open courts")),
    RubricStage("Mixed", ("some fines",)),
    RubricStage("Harsh", ("bans", "arrests")),
)
PLAIN = """STAGE 1: Calm
- quiet streets
- open courts
STAGE 2: Mixed
- some fines
STAGE 3: Harsh
- bans
- arrests
REASONING: They rise."""


def rubricer(scale: int = 3, /, **knobs: Any) -> Rubricer:
    return Rubricer(Design.of({"judge.model": "sim:strict", "rubric.scale": scale, **knobs}), 7)


def completion(text: str, finish: Finish = "stop") -> Completion:
    return Completion(text, finish, "m", 1, 1, 0.0)


# --- asking --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [2, 3, 4, 5, 10, 26])
def test_the_author_is_asked_for_the_number_of_stages_of_the_scale(scale: int) -> None:
    [request] = rubricer(scale).requests([TARGET])
    user = request.messages[1].content
    assert f"Exactly {scale} stages" in user and f"STAGE {scale}" in user
    assert set(re.findall(r"(\d+) stages", user)) == {str(scale)}
    assert '"fascism" in Valdoria' in user


@pytest.mark.parametrize(("scale", "middle"), [(3, 2), (5, 3), (7, 4), (25, 13)])
def test_an_odd_scale_has_the_midpoint_rule(scale: int, middle: int) -> None:
    [request] = rubricer(scale).requests([TARGET])
    said = f'Stage {middle} is the middle and is labelled "Ambiguous / Mixed Evidence"'
    assert said in request.messages[1].content


@pytest.mark.parametrize("scale", [2, 4, 10, 26])
def test_an_even_scale_has_no_middle(scale: int) -> None:
    [request] = rubricer(scale).requests([TARGET])
    user = request.messages[1].content
    assert "There is no middle stage" in user
    assert "Ambiguous" not in user and "is the middle" not in user


def test_a_rubric_prompt_does_not_say_how_many_stages_a_judge_may_choose() -> None:
    [request] = rubricer().requests([TARGET])
    said = " ".join(message.content.lower() for message in request.messages)
    assert "exactly one" not in said and "only one" not in said and "verdict" not in said


def test_without_a_country_the_prompt_names_no_place() -> None:
    [request] = rubricer().requests([RubricTarget("sim:strict", "severity", "")])
    assert 'reflects "severity".' in request.messages[1].content


def test_the_draw_is_the_seed_the_draw_number_and_the_ask() -> None:
    targets = [RubricTarget("sim:a", "c", "", draw, ask) for draw in (0, 1) for ask in (0, 1, 2)]
    asked = rubricer().requests(targets)
    assert {request.model for request in asked} == {"sim:a"}
    draws = [(request.draw.series, request.draw.index, request.draw.ask) for request in asked]
    assert draws == [("7", draw, ask) for draw in (0, 1) for ask in (0, 1, 2)]
    assert len({request.messages for request in asked}) == 1
    keys = [rubricer().key(target) for target in targets]
    assert len(set(keys)) == 2, "a re-ask is for the same rubric, another draw for another"


@each_row(
    "knobs",
    [
        {"verdict.method": "subset"},
        {"verdict.abstain": False},
        {"presentation.labels": "opaque"},
        {"judge.model": "sim:other"},
        {"judge.temperature": 0.0},
        {"rubric.critic": "sim:critic"},
        {"rubric.draws": 3},
        {"evidence.view": "raw"},
    ],
)
def test_variants_share_a_rubric(knobs: dict[str, Any]) -> None:
    assert rubricer(**knobs).key(TARGET) == rubricer().key(TARGET)


@pytest.mark.parametrize(
    "other",
    [
        rubricer(4).key(TARGET),
        Rubricer(rubricer().design, 8).key(TARGET),
        rubricer(3, **{"prompt.slots.rubricer.persona": "a nurse"}).key(TARGET),
        rubricer().key(RubricTarget("sim:other", "fascism", "Valdoria", 2)),
        rubricer().key(RubricTarget("sim:strict", "order", "Valdoria", 2)),
        rubricer().key(RubricTarget("sim:strict", "fascism", "Norvessa", 2)),
        rubricer().key(RubricTarget("sim:strict", "fascism", "Valdoria", 3)),
    ],
    ids=["scale", "seed", "slots", "author", "concept", "country", "draw"],
)
def test_scale_seed_slots_and_target_each_make_another_rubric(other: str) -> None:
    assert other != rubricer().key(TARGET)


# --- reading -------------------------------------------------------------------------------------


def test_a_rubric_keeps_its_stages_reasons_and_origin() -> None:
    assert rubricer().read(TARGET, completion(PLAIN)) == OrdinalRubric(
        THREE, "sim:strict", "fascism", "Valdoria", draw=2, reasoning="They rise."
    )


DECORATED = {
    "plain": PLAIN,
    "preamble": f"Here is the rubric.\n\n{PLAIN}",
    "blank lines": PLAIN.replace("\n", "\n\n"),
    "windows lines": PLAIN.replace("\n", "\r\n"),
    "fenced": f"```\n{PLAIN}\n```",
    "fenced text": f"Sure:\n```text\n{PLAIN}\n```\n",
    "bold stages": re.sub(r"(?m)^(STAGE \d: \w+)$", r"**\1**", PLAIN),
    "bold words": re.sub(r"(?m)^(STAGE \d):", r"**\1:**", PLAIN),
    "headings": re.sub(r"(?m)^STAGE", "### Stage", PLAIN).replace("REASONING", "### REASONING"),
    "quoted labels": re.sub(r"(?m)^(STAGE \d): (\w+)$", r'\1: "\2"', PLAIN),
    "dashes": PLAIN.replace(": Calm", " - Calm").replace(": Harsh", " — Harsh"),
    "lower case": PLAIN.replace("STAGE", "Stage").replace("REASONING", "Reasoning"),
    "bullets": PLAIN.replace("\n- ", "\n  • "),
    "stars": PLAIN.replace("\n- ", "\n* "),
    "indented": PLAIN.replace("\n- ", "\n    - "),
    "numbered": PLAIN.replace("- quiet", "1. quiet").replace("- open", "2) open"),
    "bold criteria": PLAIN.replace("- bans", "- **bans**"),
    "criteria headings": re.sub(r"(?m)^(STAGE .*)$", r"\1\n**Criteria:**", PLAIN),
    "packed": re.sub(r"\n- (.*)\n- (.*)", r"\nCriteria: \1; \2.", PLAIN),
    "packed in bold": re.sub(r"\n- (.*)\n- (.*)", r"\n**Criteria:** \1; \2", PLAIN),
    "bold reasoning": PLAIN.replace("REASONING:", "**REASONING:**"),
    "zero width": PLAIN.replace("STAGE", "\u200bSTAGE"),
    "rule between": PLAIN.replace("STAGE 2", "---\nSTAGE 2"),
}


@each_row("form", DECORATED)
def test_a_decorated_rubric_reads_as_the_plain_one(form: str) -> None:
    read = rubricer().read(TARGET, completion(DECORATED[form]))
    assert isinstance(read, OrdinalRubric), read
    assert read.stages == THREE
    assert read.reasoning.removesuffix("```").strip() == "They rise."


@pytest.mark.parametrize(
    ("line", "criteria"),
    [
        ("Criteria: bans; fines", ("bans", "fines")),
        ("Criteria: bans (press; radio); fines", ("bans (press; radio)", "fines")),
        ("Criteria: bans [a; (b; c)]; fines (d; e)", ("bans [a; (b; c)]", "fines (d; e)")),
        ("**Criteria**: bans; ; fines;", ("bans", "fines")),
        ("- **Criteria:** bans; fines", ("bans", "fines")),
        ("- bans (press; radio); and fines", ("bans (press; radio); and fines",)),
        ("Criteria: bans (press; fines", ("bans (press; fines",)),
    ],
)
def test_packed_criteria_are_split_outside_brackets(line: str, criteria: tuple[str, ...]) -> None:
    stages, _ = parse_rubric(f"STAGE 1: One\n{line}\nSTAGE 2: Two\n- x")
    assert stages == (RubricStage("One", criteria), RubricStage("Two", ("x",)))


def test_no_word_of_comma_packed_criteria_is_lost() -> None:
    stages, _ = parse_rubric("STAGE 1: One\nCriteria: bans, fines, arrests\nSTAGE 2: Two\n- x")
    said = " ".join(stages[0].criteria)
    assert all(word in said for word in ("bans", "fines", "arrests"))


def test_a_criterion_that_runs_over_two_lines_is_not_cut() -> None:
    text = PLAIN.replace("- quiet streets", "- quiet streets\n  after dark")
    read = rubricer().read(TARGET, completion(text))
    assert isinstance(read, OrdinalRubric)
    assert read.stages[0].criteria == ("quiet streets after dark", "open courts")


def test_reasons_may_speak_of_stages() -> None:
    text = f"{PLAIN}\nStage 1: calm enough.\n- and so on\nSTAGE 9: no."
    read = rubricer().read(TARGET, completion(text))
    assert isinstance(read, OrdinalRubric) and read.stages == THREE
    assert read.reasoning.splitlines()[0] == "They rise." and "STAGE 9" in read.reasoning


def test_reasons_may_be_left_out() -> None:
    read = rubricer().read(TARGET, completion(PLAIN.partition("REASONING")[0]))
    assert isinstance(read, OrdinalRubric) and read.reasoning == ""


UNREADABLE = {
    "nothing": "",
    "prose": "I would rather not write a rubric about this.",
    "too few": PLAIN.partition("STAGE 3")[0],
    "too many": PLAIN.replace("REASONING", "STAGE 4: Worse\n- war\nREASONING"),
    "a number left out": PLAIN.replace("STAGE 2", "STAGE 4"),
    "a number twice": PLAIN.replace("STAGE 3", "STAGE 2"),
    "from zero": PLAIN.replace("STAGE 1", "STAGE 0"),
    "backwards": PLAIN.replace("STAGE 1", "STAGE x").replace("STAGE 3", "STAGE 1"),
    "a stage without criteria": PLAIN.replace("- some fines\n", ""),
    "a last stage without criteria": PLAIN.replace("- bans\n- arrests\n", ""),
    "an empty criterion": PLAIN.replace("- some fines", "- "),
    "a stage without a label": PLAIN.replace("STAGE 2: Mixed", "STAGE 2:"),
    "two rubrics": f"{PLAIN.partition('REASONING')[0]}{PLAIN}",
    "the template": (
        "STAGE 1: label\n- criterion\n(and so on, up to STAGE 3)\nREASONING: your reasons"
    ),
}


@each_row("form", UNREADABLE)
def test_a_rubric_without_exactly_its_stages_is_unreadable(form: str) -> None:
    assert rubricer().read(TARGET, completion(UNREADABLE[form])) == "parse_failed"


@pytest.mark.parametrize("scale", [2, 4, 26])
def test_the_number_of_stages_is_that_of_the_scale(scale: int) -> None:
    assert rubricer(scale).read(TARGET, completion(PLAIN)) == "parse_failed"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (completion(PLAIN, "length"), "truncated"),
        (completion(PLAIN, "refusal"), "refused"),
        (None, "provider_error"),
    ],
)
def test_a_cut_refused_or_missing_rubric_has_its_status(
    answer: Completion | None, status: Status
) -> None:
    assert rubricer().read(TARGET, answer) == status


@given(
    st.lists(
        st.sampled_from(["STAGE 1: a", "STAGE 2: b", "Stage 3 - c", "- x", "REASONING: r", "\n"])
        | st.text(max_size=12),
        max_size=14,
    ).map("\n".join)
)
def test_any_text_is_read_without_error_and_stages_are_whole(text: str) -> None:
    stages, _ = parse_rubric(text)
    assert all(stage.label and stage.criteria and all(stage.criteria) for stage in stages)
    read = rubricer().read(TARGET, completion(text))
    assert read == "parse_failed" or (isinstance(read, OrdinalRubric) and read.scale == 3)


WORDS = st.sampled_from(
    ["bans", "open courts", "2 fines (or more; see law)", "a: b, c", "Stage-like"]
)
WRITTEN = st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3))


@given(st.lists(WRITTEN, min_size=2, max_size=26))
def test_a_rubric_in_the_requested_format_round_trips(
    written: list[tuple[str, list[str]]],
) -> None:
    text = "\n".join(
        "\n".join([f"STAGE {number}: {label}", *(f"- {criterion}" for criterion in criteria)])
        for number, (label, criteria) in enumerate(written, 1)
    )
    read = rubricer(len(written)).read(TARGET, completion(f"{text}\nREASONING: so"))
    assert isinstance(read, OrdinalRubric)
    assert read.stages == tuple(RubricStage(label, tuple(c)) for label, c in written)


# --- kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "midpoint"), [(2, None), (3, 2), (4, None), (5, 3), (25, 13)])
def test_only_an_odd_ordinal_rubric_has_a_midpoint(scale: int, midpoint: int | None) -> None:
    rubric = OrdinalRubric((THREE[0],) * scale, "x", "c", "")
    assert (rubric.scale, rubric.midpoint) == (scale, midpoint)


def test_a_nominal_rubric_has_no_midpoint() -> None:
    assert not hasattr(NominalRubric(THREE, "x", "c", ""), "midpoint")


# --- the critic ----------------------------------------------------------------------------------

RUBRIC = OrdinalRubric(THREE, "sim:strict", "fascism", "Valdoria")
CRITIC = Critic(Design.of({"judge.model": "sim:strict", "rubric.critic": "sim:critic"}))


def test_the_critic_reads_every_stage_in_the_author_s_order() -> None:
    [request] = CRITIC.requests([RUBRIC])
    assert (request.model, request.draw.index, request.draw.ask) == ("sim:critic", 0, 0)
    user = request.messages[1].content
    places = [user.index(text) for stage in THREE for text in (stage.label, *stage.criteria)]
    assert places == sorted(places)
    assert "OBSERVABILITY:" in user and "DISCRIMINABILITY:" in user


def test_the_maker_of_a_critique_is_critic_wording_and_slots() -> None:
    others = [
        {"rubric.critic": "sim:other"},
        {"prompt.slots.critic.persona": "a psychometrician"},
        {"prompt.slots.critic.framing": "Be strict."},
    ]
    makers = {Critic(CRITIC.design.replace(other)).maker for other in others}
    assert len(makers | {CRITIC.maker}) == 4
    assert Critic(CRITIC.design.replace({"verdict.method": "subset"})).maker == CRITIC.maker


@pytest.mark.parametrize(
    ("text", "observability", "discriminability"),
    [
        ("Good.\nOBSERVABILITY: 0.8\nDISCRIMINABILITY: 0.65", 0.8, 0.65),
        ("**Observability:** 80%\n**Discriminability:** 7/10", 0.8, 0.7),
        ("Discriminability = 0.1\nWell.\nObservability = 1", 1.0, 0.1),
        ("OBSERVABILITY: 0\nDISCRIMINABILITY: 1.0", 0.0, 1.0),
    ],
)
def test_a_critique_has_both_scores(
    text: str, observability: float, discriminability: float
) -> None:
    read = CRITIC.read(RUBRIC, completion(text))
    assert (read.rubric, read.critic, read.status) == (RUBRIC, "sim:critic", "scored")
    assert (read.observability, read.discriminability) == (observability, discriminability)


@pytest.mark.parametrize(
    ("text", "observability", "discriminability"),
    [
        ("", None, None),
        ("A fine rubric.", None, None),
        ("OBSERVABILITY: 0.8", 0.8, None),
        ("OBSERVABILITY: high\nDISCRIMINABILITY: 0.5", None, 0.5),
        ("OBSERVABILITY: 8\nDISCRIMINABILITY: 1.2", None, None),
        ("OBSERVABILITY: a number from 0 to 1\nDISCRIMINABILITY: a number from 0 to 1", None, None),
    ],
)
def test_an_unreadable_score_is_null(
    text: str, observability: float | None, discriminability: float | None
) -> None:
    read = CRITIC.read(RUBRIC, completion(text))
    assert read.status == "parse_failed"
    assert (read.observability, read.discriminability) == (observability, discriminability)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (completion("OBSERVABILITY: 0.8\nDISCRIMINABILITY: 0.6", "length"), "truncated"),
        (completion("OBSERVABILITY: 0.8\nDISCRIMINABILITY: 0.6", "refusal"), "refused"),
        (None, "provider_error"),
    ],
)
def test_a_cut_refused_or_missing_critique_has_null_scores(
    answer: Completion | None, status: Status
) -> None:
    read = CRITIC.read(RUBRIC, answer)
    assert (read.status, read.observability, read.discriminability) == (status, None, None)
