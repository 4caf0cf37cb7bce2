"""When a knob cannot act: declared on the knob, and read by all that must know it."""

from pathlib import Path
from typing import Any, get_args

import pytest

from added_axes import ask_with_group
from judge_gym.axes import TASK, Design, TaskTrait, inactive_knobs
from tables import each_row

CONDITIONS = [
    (path, name, level)
    for path, knob in Design.knobs().items()
    for name, levels in knob.inactive.items()
    for level in levels
]


@each_row(("path", "name", "level"), CONDITIONS)
def test_a_condition_names_a_level_of_another_knob_or_a_trait_of_a_task(
    path: str, name: str, level: Any
) -> None:
    if name == TASK:
        assert level in get_args(TaskTrait)
        return
    assert name != path
    assert Design.of({"judge.model": "sim:balanced", name: level}).values()[name] == level


@pytest.mark.parametrize("unset", [None, "", float("nan")])
def test_an_unset_level_is_none_in_a_design_and_empty_in_a_frame(unset: Any) -> None:
    slot = Design.knobs()["prompt.slots.critic.framing"]
    assert slot.is_inactive({"rubric.critic": unset})
    assert not slot.is_inactive({"rubric.critic": "sim:critic"})
    assert not Design.knobs()["evidence.editor"].is_inactive({"evidence.view": unset})


def test_what_is_unknown_of_design_and_task_makes_no_knob_inactive() -> None:
    assert inactive_knobs({}) == set()
    assert inactive_knobs({}, ["single texts"]) == {"presentation.pair_order"}


TONE = """
from typing import Literal

from judge_gym.axes._knobs import TASK, Axes, knob


class ToneAxes(Axes):
    tone: Literal["plain", "stern"] = knob("plain", question="Does tone matter?")
    degree: Literal["little", "much"] = knob(
        "little",
        question="How stern?",
        inactive={"tone.tone": ("plain",), TASK: ("pairs",)},
    )
    adviser: str | None = knob(
        None,
        question="Who says how stern?",
        examples=("sim:adviser",),
        inactive={"tone.tone": ("plain",)},
    )
"""
ASK = """
import json

import pandas as pd

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.setups import setups_of
from judge_gym.analysis.stats.contrasts import changed_knobs, find_contrasts, ranking
from judge_gym.axes import Design
from judge_gym.lab.sample_frames import annotations
from judge_gym.records import Evidence, Pool
from judge_gym.studies import Experiment, Task, resolve_design

TONE, DEGREE, ADVISER = "tone.tone", "tone.degree", "tone.adviser"
texts, pairs = Evidence("t", "x"), Evidence("t", "x", responses=("a", "b"))


def resolved(tone, degree, item):
    task = Task("", "concept", "pool", Pool((item,)))
    chosen = {"judge.model": "sim:a", "rubric.author": "sim:b", TONE: tone, DEGREE: degree}
    design, active = resolve_design(task, chosen)
    return [design.tone.degree, DEGREE in active, Experiment("tag", task, design, 1).digest]


def rows(tone, degree, pair):
    return [
        {
            "judge.model": "sim:a", "evidence": f"{pair} {item}", "replicate": 0,
            "status": "scored", "stages": str(1 + item % 2), "n_stages": 2,
            "rubric_kind": "nominal" if pair else "ordinal", "pair": pair,
            "concept": "pairs" if pair else "texts", TONE: tone, DEGREE: degree,
        }
        for item in range(4)
    ]


def described(samples):
    return [
        [setup.name, setup.knobs.get(DEGREE), len(setup.index)] for setup in setups_of(samples)
    ]


nested = tidy(pd.DataFrame([*rows("plain", "little", False), *rows("stern", "much", False)]))
mixed = tidy(pd.DataFrame([
    *rows("stern", "little", False), *rows("stern", "much", False), *rows("stern", "little", True),
]))
designs = [("plain", None), ("plain", "sim:old"), ("stern", None), ("stern", "sim:other")]
stored = [
    {"tag": str(number), "truth": None, "design": {"judge.model": "sim:a", TONE: t, ADVISER: a}}
    for number, (t, a) in enumerate(designs)
]
advisers = annotations(stored)[ADVISER].astype(object)
print(json.dumps({
    "sweep": [
        [resolved(tone, degree, item) for degree in ("little", "much")]
        for tone, item in (("plain", texts), ("stern", texts), ("stern", pairs))
    ],
    "changed": [
        changed_knobs({TONE: "plain", DEGREE: "little"}, {TONE: "stern", DEGREE: "much"}),
        changed_knobs({TONE: "stern", DEGREE: "little"}, {TONE: "stern", DEGREE: "much"}),
    ],
    "contrasts": [contrast.knob for contrast in find_contrasts(nested)],
    "ranked": sorted({*ranking(nested)["knob"]}),
    "nested": described(nested),
    "mixed": described(mixed),
    "advisers": advisers.where(advisers.notna(), None).tolist(),
}))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every reader of the declaration says of two knobs that judge-gym does not have."""
    folder: Path = tmp_path_factory.mktemp("package")
    return ask_with_group(folder, "tone", TONE, ASK)


def test_a_study_gives_an_inactive_knob_its_default_and_no_digest(answers: dict[str, Any]) -> None:
    plain, stern, on_pairs = answers["sweep"]
    for little, much in (plain, on_pairs):
        assert little == much and little[:2] == ["little", False]
    assert [row[:2] for row in stern] == [["little", True], ["much", True]]
    assert stern[0][2] != stern[1][2]


def test_contrasts_and_ranks_ignore_a_difference_in_an_inactive_knob(
    answers: dict[str, Any],
) -> None:
    assert answers["changed"] == [["tone.tone"], ["tone.degree"]]
    assert answers["contrasts"] == ["tone.tone"]
    assert "tone.tone" in answers["ranked"]


def test_samples_belong_to_every_setup_that_differs_in_an_inactive_knob_alone(
    answers: dict[str, Any],
) -> None:
    assert answers["nested"] == [["a", None, 4], ["a, tone stern, degree much", "much", 4]]
    # Those on pairs, where the degree is inactive, belong to both setups.
    assert answers["mixed"] == [["a", "little", 8], ["a, degree much", "much", 8]]
