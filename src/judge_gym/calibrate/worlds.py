"""What is simulated: a population of texts, and judges with known faults.

A condition is one judge under one design and one rubric. All conditions of a panel see the same
items, so that analyses can compare them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from judge_gym.analysis.stats.intervals import seeded
from judge_gym.axes import Design
from judge_gym.errors import ProviderError
from judge_gym.models.simulated import SimulatedModel
from judge_gym.models.simulated.lexicon import SOFTWARE, STRAIN
from judge_gym.records import Completion, Request, Rubric, TaskType
from judge_gym.stages import Rubricer, RubricTarget

CONCEPTS: dict[TaskType, str] = {"ecc": "fascism", "control": "democracy quality"}
"""A fully contested concept, on which a judge's bias shows in full, and a hardly contested one."""
KINDS = 48
"""The number of texts in the population; an item is a fresh copy of one of them."""
SPREAD = 0.2
"""The largest distance of a text's cues from its severity."""

RUBRICS, LEANINGS = 40, 1.0
"""The number of rubrics to draw from, and the largest bias of their author."""

PLAIN = "sim:balanced"
BIASED = f"{PLAIN}?bias=0.5"
LEANING = f"{PLAIN}?position=1.5&label=0.5"
"""Judges: an unbiased one, one that scores higher, one that prefers the first position or label."""
THIRD, RIVAL = "sim:judge", "sim:alarmist"
"""Authors of rubrics: a neutral one, and one that applies the concept earlier."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A judge under a design and a rubric."""

    name: str
    design: Design
    rubric: Rubric
    task: TaskType = "ecc"
    probed: bool = False
    is_swap: bool = False
    drawn_from: tuple[Rubric, ...] = ()
    """The rubrics that a panel's draws come from; empty if all panels use the same one."""


@cache
def conditions() -> Mapping[str, Condition]:
    """Returns every condition by name; the name states how it differs from `plain`."""
    third, own, rival = (_rubric(n, author) for n, author in enumerate((THIRD, PLAIN, RIVAL), 1))
    tame = _rubric(4, THIRD, "control")
    listed = [
        Condition("plain", _design(PLAIN), third, probed=True),
        Condition("twin", _design(f"{PLAIN}?family=sim-twin"), third),
        Condition("biased", _design(BIASED), third, probed=True),
        Condition("leaning", _design(LEANING), third),
        Condition("cautious", _design(f"{PLAIN}?abstain=0.6"), third),
        Condition("plain, subset", _design(PLAIN, {"verdict.method": "subset"}), third),
        Condition("biased, subset", _design(BIASED, {"verdict.method": "subset"}), third),
        Condition(
            "plain, evidence first", _design(PLAIN, {"presentation.first": "evidence"}), third
        ),
        Condition("leaning, fixed order", _design(LEANING, {"presentation.order": "fixed"}), third),
        Condition("plain, own rubric", _design(PLAIN), own, probed=True),
        Condition("plain, rival's rubric", _design(PLAIN), rival, probed=True, is_swap=True),
        Condition("plain, control", _design(PLAIN), tame, "control"),
        Condition("biased, control", _design(BIASED), tame, "control"),
    ]
    for place, (name, model) in enumerate({"plain": PLAIN, "biased": BIASED}.items(), 1):
        many = _rubrics(100 * place, model)
        listed.append(Condition(f"{name}, drawn rubrics", _design(model), many[0], drawn_from=many))
    return {one.name: one for one in listed}


def _design(model: str, knobs: Mapping[str, Any] | None = None) -> Design:
    return Design.of({"judge.model": model, "evidence.view": "raw", **(knobs or {})})


def _rubrics(first: int, author: str) -> tuple[Rubric, ...]:
    """Returns rubrics of an author whose bias changes from draw to draw, so that draws matter."""
    leanings = np.linspace(-LEANINGS, LEANINGS, RUBRICS)
    return tuple(
        replace(
            _rubric(first + draw, f"{PLAIN}?bias={leaning:.3f}", draw=draw),
            author=author,
            draw=draw,
        )
        for draw, leaning in enumerate(leanings)
    )


def _rubric(number: int, author: str, task: TaskType = "ecc", draw: int = 0) -> Rubric:
    """Returns the rubric that an author writes in response to the real prompt."""
    target = RubricTarget(author, CONCEPTS[task], "", draw)
    rubricer = Rubricer(_design(author), seed=0)
    [answer] = answers(rubricer.requests([target]))
    rubric = rubricer.read(target, answer)
    assert isinstance(rubric, Rubric)
    return replace(rubric, id=number)


@cache
def population() -> tuple[str, ...]:
    """Returns the texts that evidence is drawn from, from harmless to severe, of 2 to 5 cues."""
    rng = seeded("calibrate", "population")
    words = [cue for cue in STRAIN if cue not in SOFTWARE]
    texts = []
    for kind in range(KINDS):
        about = (kind + 0.5) / KINDS
        near = [cue for cue in words if abs(STRAIN[cue] - about) < SPREAD]
        cues = rng.choice(near, size=2 + kind % 4, replace=False)
        texts.append("The report speaks of matters " + ", then ".join(map(str, cues)) + ".")
    return tuple(texts)


def answer(kind: int, scale: int) -> int:
    """Returns the stage of a text of the population, as a known answer."""
    return kind * scale // KINDS + 1


def answers(requests: Sequence[Request]) -> list[Completion | None]:
    """Returns the answers of simulated models; None if one fails."""

    async def ask(request: Request) -> Completion | None:
        try:
            return await SimulatedModel(request.model).complete(request)
        except ProviderError:
            return None

    async def ask_all() -> list[Completion | None]:
        return [await ask(request) for request in requests]

    return asyncio.run(ask_all())
