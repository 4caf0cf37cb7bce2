"""The design: which knobs there are, what they default to, and what they refuse."""

from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from added_axes import ask_with_group
from judge_gym.axes import (
    CONTESTED,
    PROTOCOLS,
    Axes,
    Design,
    complete,
    defaults,
    expand,
    find_knob,
)
from judge_gym.axes._knobs import knob
from judge_gym.errors import DesignError
from judge_gym.records import StageName
from judge_gym.studies.file import MODEL_KNOBS
from tables import each_row

JUDGE = {"judge.model": "sim:balanced"}
DEFAULTS: dict[str, Any] = {
    "judge.temperature": None,
    "judge.max_tokens": 2048,
    "evidence.view": "raw",
    "evidence.editor": None,
    "rubric.scale": 4,
    "rubric.author": "own",
    "rubric.draws": 1,
    "rubric.critic": None,
    "presentation.labels": "shuffled",
    "presentation.order": "shuffled",
    "presentation.first": "rubric",
    "presentation.pair_order": "both",
    "verdict.method": "single",
    "verdict.output": "suffix",
    "verdict.abstain": True,
    "probe.context": "fresh",
    "prompt.slots.neutralizer.persona": "a clinical editor",
    "prompt.slots.neutralizer.material": "text",
    "prompt.slots.neutralizer.language": "",
    "prompt.slots.neutralizer.framing": "",
    "prompt.slots.rubricer.persona": "an expert evaluator",
    "prompt.slots.rubricer.material": "text",
    "prompt.slots.rubricer.language": "",
    "prompt.slots.rubricer.framing": "",
    "prompt.slots.critic.persona": "an auditor of measurement quality",
    "prompt.slots.critic.material": "text",
    "prompt.slots.critic.language": "",
    "prompt.slots.critic.framing": "",
    "prompt.slots.scorer.persona": "an expert evaluator",
    "prompt.slots.scorer.language": "",
    "prompt.slots.scorer.framing": "",
    "prompt.slots.prober.persona": "an expert evaluator",
    "prompt.slots.prober.panel": "experts",
    "prompt.slots.prober.language": "",
    "prompt.slots.prober.framing": "",
    "evidence.fields": "all",
    "prompt.template": "none",
}
"""On which the digests and the stored designs of experiments rest."""
BLUEPRINT: dict[str, Any] = {
    "evidence.view": "neutralized",
    "prompt.slots.neutralizer.material": "news article",
    "prompt.slots.rubricer.persona": "a political scientist",
    "prompt.slots.rubricer.material": "news reporting",
    "prompt.slots.critic.material": "news reporting",
    "prompt.slots.scorer.persona": "an expert political scientist",
    "prompt.slots.prober.persona": "an expert political scientist",
    "prompt.slots.prober.panel": "political science experts",
}
"""The levels of the blueprint's protocol that replace defaults."""
CLOSED: dict[str, tuple[Any, ...]] = {
    "evidence.view": ("raw", "neutralized"),
    "presentation.labels": ("shuffled", "fixed", "opaque"),
    "presentation.order": ("shuffled", "fixed"),
    "presentation.first": ("rubric", "evidence"),
    "presentation.pair_order": ("both", "given", "swapped"),
    "verdict.method": ("single", "subset"),
    "verdict.output": ("suffix", "json"),
    "verdict.abstain": (True, False),
    "probe.context": ("fresh", "same"),
}


# --- what there is -------------------------------------------------------------------------------


def test_a_design_that_names_only_its_judge_has_the_pinned_defaults() -> None:
    values = Design.of(JUDGE).values()
    assert {path: values[path] for path in JUDGE | DEFAULTS} == JUDGE | DEFAULTS


def test_the_blueprints_protocol_has_its_words_and_its_view() -> None:
    usual = defaults(CONTESTED)
    assert {path: usual[path] for path in DEFAULTS} == DEFAULTS | BLUEPRINT
    chosen = Design.of({**defaults(CONTESTED), **JUDGE}).chosen(CONTESTED)
    assert chosen == JUDGE


def test_no_default_names_a_hosted_model() -> None:
    for protocol in PROTOCOLS:
        usual = defaults(protocol)
        assert [usual[knob] for knob in MODEL_KNOBS] == [None, None, None, "own"]


def test_a_knob_states_the_default_that_a_design_has() -> None:
    stated = {path: knob.default for path, knob in Design.knobs().items()}
    assert stated == Design.of(JUDGE).values() | {"judge.model": None}


def test_closed_knobs_list_the_documented_levels_with_the_default_first() -> None:
    knobs = Design.knobs()
    assert not any(knobs[path].open for path in CLOSED)
    assert {path: knobs[path].levels[: len(levels)] for path, levels in CLOSED.items()} == CLOSED


@each_row("path", Design.knobs())
def test_a_knob_asks_a_question_and_offers_another_level(path: str) -> None:
    knob = Design.knobs()[path]
    assert knob.question.strip()
    assert any(level != knob.default for level in knob.levels)
    for level in knob.levels:
        assert Design.of({**JUDGE, path: level}).values()[path] == level


@pytest.mark.parametrize("scale", [2, 3, 25, 26])
def test_every_scale_up_to_the_alphabet_is_accepted(scale: int) -> None:
    assert Design.of({**JUDGE, "rubric.scale": scale}).rubric.scale == scale


def test_the_json_schema_describes_every_knob() -> None:
    schema = Design.model_json_schema()
    for path, described in Design.knobs().items():
        node = schema
        for name in path.split("."):
            node = node["properties"][name]
            if "$ref" in node:
                node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        assert node["description"] == described.question
        if path != "judge.model":
            assert node["default"] == described.default
        if not described.open and path != "verdict.abstain":
            assert set(node["enum"]) == set(described.levels)


# --- what is refused -----------------------------------------------------------------------------


def test_an_unknown_level_is_refused_with_value_and_choices() -> None:
    with pytest.raises(DesignError) as refused:
        Design.of({**JUDGE, "verdict.method": "singel"})
    words = "unknown level 'singel' for verdict.method; choose 'single' or 'subset'"
    assert refused.value.message == words
    assert refused.value.choices == ("single", "subset")


@each_row(
    ("path", "value"),
    [(path, value) for path in CLOSED for value in ("", "other", None, 3, [CLOSED[path][0]])]
    + [("verdict.abstain", value) for value in ("true", "false", "yes", 0, 1)],
)
def test_a_closed_knob_refuses_anything_but_its_levels(path: str, value: Any) -> None:
    with pytest.raises(DesignError) as refused:
        Design.of({**JUDGE, path: value})
    levels = [
        str(level).lower() if isinstance(level, bool) else str(level) for level in CLOSED[path]
    ]
    assert list(refused.value.choices) == levels
    assert path in refused.value.message and repr(value) in refused.value.message
    assert all(level in refused.value.message for level in levels)


@each_row(
    ("path", "value", "choices"),
    [
        *(("rubric.scale", value, "from 2 to 26") for value in (1, 27, 0, -4, 4.0, "4", True)),
        *(("rubric.draws", value, "from 1 to") for value in (0, -1, 1.5, "1")),
        *(("judge.temperature", value, "from 0.0 to 2.0") for value in (-0.1, 2.1, "hot", True)),
        ("judge.temperature", float("nan"), "from 0.0 to 2.0"),
        *(("judge.max_tokens", value, "from 1 to") for value in (0, -1, 1.5, None)),
        *(("judge.model", value, "text") for value in ("", 4, None)),
        *(("evidence.editor", value, "text") for value in ("", 4)),
        *(("rubric.author", value, "text") for value in ("", None)),
        ("prompt.slots.scorer.persona", 7, "text"),
    ],
)
def test_an_open_knob_refuses_what_is_out_of_range(path: str, value: Any, choices: str) -> None:
    with pytest.raises(DesignError) as refused:
        Design.of({**JUDGE, path: value})
    message = refused.value.message
    assert path in message and repr(value) in message and choices in message


@pytest.mark.parametrize(
    ("path", "choices"),
    [
        ("verdict.metod", ["verdict.method", "verdict.output", "verdict.abstain"]),
        ("probe.fresh", ["probe.context"]),
        (
            "prompt.slots.prober.persna",
            ["prompt.slots.prober.persona", "prompt.slots.prober.panel"],
        ),
        ("verdit.method", ["verdict.*", "judge.*", "prompt.*"]),
        ("scale", ["rubric.*"]),
        ("", ["rubric.*"]),
        ("verdict", ["verdict.*"]),
    ],
)
def test_an_unknown_knob_is_refused_with_the_nearest_choices(path: str, choices: list[str]) -> None:
    for refuse in (find_knob, lambda path: Design.of({**JUDGE, path: 1}), lambda p: expand(p, 1)):
        with pytest.raises(DesignError, match="unknown knob") as refused:
            refuse(path)
        assert set(choices) <= set(refused.value.choices)
        assert all(choice in refused.value.message for choice in choices)


def test_a_design_without_a_judge_is_refused() -> None:
    with pytest.raises(DesignError, match=r"judge\.model is not given"):
        Design.of({"verdict.method": "subset"})
    with pytest.raises(DesignError, match=r"judge\.model is not given"):
        Design.of({"judge.temperature": 0.0})


def test_a_design_and_its_groups_are_frozen_and_forbid_extras() -> None:
    design = Design.of(JUDGE)
    with pytest.raises(ValidationError):
        design.verdict = design.verdict  # type: ignore[misc]
    with pytest.raises(ValidationError):
        design.verdict.method = "subset"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        type(design.verdict).model_validate({"methods": "single"})
    with pytest.raises(ValidationError):
        Design.model_validate({"judge": {"model": "sim:balanced"}, "verdicts": {}})


# --- what is kept --------------------------------------------------------------------------------

LEVELS = st.fixed_dictionaries(
    {"judge.model": st.sampled_from(["sim:balanced", "sim:strict"])},
    optional={
        path: st.sampled_from([*knob.levels, *([knob.default] if path != "judge.model" else [])])
        for path, knob in Design.knobs().items()
        if path != "judge.model"
    },
)


@given(LEVELS)
def test_chosen_returns_the_knobs_off_their_default_and_rebuilds_the_design(
    values: dict[str, Any],
) -> None:
    design = Design.of(values)
    assert design.chosen() == {
        path: value
        for path, value in values.items()
        if path == "judge.model" or value != defaults()[path]
    }
    assert design.identity() == design.chosen()
    again = Design.of(design.chosen())
    assert again == design and hash(again) == hash(design)


@given(LEVELS)
def test_a_stored_design_is_completed_with_the_defaults_of_later_knobs(
    values: dict[str, Any],
) -> None:
    stored = {k: v for k, v in values.items() if k == "judge.model" or v != defaults()[k]}
    assert complete(stored) == defaults() | values
    assert Design.of(complete(stored)).identity() == stored


@given(LEVELS, LEVELS)
def test_replace_changes_what_is_named_and_nothing_else(
    values: dict[str, Any], others: dict[str, Any]
) -> None:
    design = Design.of(values)
    before = design.values()
    assert design.replace(others).values() == before | others
    assert design.values() == before


def test_designs_with_different_knobs_are_different_keys() -> None:
    designs = {Design.of({**JUDGE, "verdict.method": method}) for method in ("single", "subset")}
    assert len(designs) == 2


# --- the blueprint's names -----------------------------------------------------------------------

ALIASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("modelId", "sim:strict", {"judge.model": "sim:strict"}),
    ("scaleSize", 5, {"rubric.scale": 5}),
    ("rubricOwner", "own", {"rubric.author": "own"}),
    ("rubricOwner", "sim:strict", {"rubric.author": "sim:strict"}),
    (
        "randomizeLabels",
        True,
        {"presentation.labels": "shuffled", "presentation.order": "shuffled"},
    ),
    ("randomizeLabels", False, {"presentation.labels": "fixed", "presentation.order": "fixed"}),
    ("neutralizeEvidence", True, {"evidence.view": "neutralized"}),
    ("neutralizeEvidence", False, {"evidence.view": "raw"}),
    ("promptOrdering", "rubric-first", {"presentation.first": "rubric"}),
    ("promptOrdering", "evidence-first", {"presentation.first": "evidence"}),
    ("abstainEnabled", True, {"verdict.abstain": True}),
    ("abstainEnabled", False, {"verdict.abstain": False}),
    ("freshWindowProbe", True, {"probe.context": "fresh"}),
    ("freshWindowProbe", False, {"probe.context": "same"}),
    (
        "scoringMethod",
        "freeform-suffix-single",
        {"verdict.method": "single", "verdict.output": "suffix"},
    ),
    (
        "scoringMethod",
        "freeform-suffix-subset",
        {"verdict.method": "subset", "verdict.output": "suffix"},
    ),
    ("scoringMethod", "structured-json", {"verdict.method": "single", "verdict.output": "json"}),
]


@each_row(("name", "value", "knobs"), ALIASES)
def test_a_blueprint_name_means_its_knobs(name: str, value: Any, knobs: dict[str, Any]) -> None:
    assert expand(name, value) == knobs
    values = Design.of(JUDGE | knobs).values()
    assert {path: values[path] for path in knobs} == knobs


@pytest.mark.parametrize(
    ("name", "value", "choice"),
    [
        ("scoringMethod", "freeform", "freeform-suffix-subset"),
        ("promptOrdering", "rubric", "evidence-first"),
        ("randomizeLabels", "yes", "True"),
        ("neutralizeEvidence", "raw", "False"),
        ("freshWindowProbe", None, "True"),
    ],
)
def test_a_blueprint_name_refuses_an_unknown_value(name: str, value: Any, choice: str) -> None:
    with pytest.raises(DesignError) as refused:
        expand(name, value)
    assert name in refused.value.message
    assert choice.lower() in [known.lower() for known in refused.value.choices]


@each_row("name", ["randomizeLabels", "neutralizeEvidence", "freshWindowProbe"])
@each_row("value", ["True", "False", 1, 0])
def test_a_blueprint_flag_refuses_text_and_numbers(name: str, value: Any) -> None:
    with pytest.raises(DesignError, match=name):
        expand(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prompt.slots.scorer.persona", "a nurse"),
        ("prompt.slots", {"scorer.persona": "a nurse"}),
        ("prompt.slots", {"scorer": {"persona": "a nurse"}}),
        ("prompt.slots.scorer", {"persona": "a nurse"}),
        ("prompt", {"slots": {"scorer": {"persona": "a nurse"}}}),
    ],
)
def test_a_slot_is_given_by_path_or_as_a_mapping(name: str, value: Any) -> None:
    assert expand(name, value) == {"prompt.slots.scorer.persona": "a nurse"}


def test_a_group_may_be_given_as_a_mapping() -> None:
    assert expand("verdict", {"method": "subset", "abstain": False}) == {
        "verdict.method": "subset",
        "verdict.abstain": False,
    }


# --- a new axis ----------------------------------------------------------------------------------


class ToneAxes(Axes):
    """A group that judge-gym does not have, whose default is what is done without it."""

    tone: Literal["plain", "stern"] = knob("plain", question="Does a stern tone matter?")

    def remarks(self, stage: StageName) -> tuple[str, ...]:
        return ("Be stern.",) if self.tone == "stern" and stage == "scorer" else ()


class WiderDesign(Design):
    """A design with one more line."""

    tone: ToneAxes = ToneAxes()


def test_a_new_group_shows_up_among_the_knobs_and_in_the_instructions() -> None:
    plain = WiderDesign.model_validate({"judge": {"model": "sim:balanced"}})
    stern = WiderDesign.model_validate(
        {"judge": {"model": "sim:balanced"}, "tone": {"tone": "stern"}}
    )
    assert WiderDesign.knobs()["tone.tone"].levels == ("plain", "stern")
    assert set(WiderDesign.knobs()) - set(Design.knobs()) == {"tone.tone"}
    assert plain.chosen() == JUDGE
    assert stern.chosen() == JUDGE | {"tone.tone": "stern"}
    assert plain.notes("scorer") == ()
    assert stern.notes("scorer") == ("Be stern.",)
    assert stern.notes("critic") == ()


def test_a_new_knob_does_not_change_the_identity_of_earlier_designs() -> None:
    plain = WiderDesign.model_validate({"judge": {"model": "sim:balanced"}})
    stern = WiderDesign.model_validate(
        {"judge": {"model": "sim:balanced"}, "tone": {"tone": "stern"}}
    )
    earlier = Design.of(JUDGE).identity()
    assert plain.identity() == earlier
    assert stern.identity() == earlier | {"tone.tone": "stern"}


TONE = '''"""A stern tone."""

from typing import Literal

from judge_gym.axes._knobs import Axes, knob
from judge_gym.records import StageName


class ToneAxes(Axes):
    """A stern tone."""

    tone: Literal["plain", "stern"] = knob(
        "plain", question="Does a stern tone matter?"
    )

    def remarks(self, stage: StageName) -> tuple[str, ...]:
        """What a stern tone adds."""
        return ("Be stern.",) if self.tone == "stern" and stage == "scorer" else ()
'''
ASK = """
import json
from judge_gym.axes import Design, complete, expand
from judge_gym.records import Evidence, OrdinalRubric, RubricStage
from judge_gym.stages import Scorer, ScoreTarget
rubric = OrdinalRubric((RubricStage("low", ("a",)), RubricStage("high", ("b",))), "x", "c", "")
design = Design.of({"judge.model": "sim:balanced", **expand("tone.tone", "stern")})
[request] = Scorer(design, 1, "1").requests([ScoreTarget(rubric, Evidence("t", "x"), "x", 0)])
print(json.dumps({
    "knobs": [path for path in Design.knobs() if path.startswith("tone")],
    "schema": "tone" in Design.model_json_schema()["properties"],
    "system": request.messages[0].content,
    "stored": complete({"judge.model": "sim:balanced"})["tone.tone"],
}))
"""


def test_a_group_is_added_with_one_file_and_one_line(tmp_path: Path) -> None:
    answers = ask_with_group(tmp_path, "tone", TONE, ASK)
    assert answers["knobs"] == ["tone.tone"] and answers["schema"]
    assert answers["system"].endswith("Be stern.")
    assert answers["stored"] == "plain"
