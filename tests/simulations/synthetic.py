"""Worlds whose verdicts are drawn as numbers, without prompts: thousands of panels in minutes.

A population consists of kinds of items. Kinds are equally frequent; items of one cluster resemble
each other by a Gaussian copula, which leaves the population as it is. A judge reads the position of
a kind with an error, and answers the stage into which that falls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from simulations.truth import (
    HUNDREDTHS,
    FloatArray,
    IntArray,
    VerdictDistribution,
    generator,
    spread,
    stated_chances,
)
from simulations.worlds import BIASED, CALLS, DRAWS, LEANING, PER_DRAW, PLAIN, Shape

KINDS, STAGES, RUBRICS = 48, 4, 40
LIMITS = np.array([-1.0, 0.0, 1.0])
"""The positions at which one stage ends and the next begins."""
Population = Literal["spread", "rare", "constant", "equal"]
CONCEPT = "concept"
USD, SECONDS = 0.002, 3.0
"""The median price and time of a verdict."""
_ORDERS = np.array(list(permutations(range(STAGES))))
"""Every order of the stages, and every way to label them."""
_FIRST, _NAMED = _ORDERS[:, 0], _ORDERS.argmin(axis=1)
"""The stage that each order shows first, and the stage that each labelling names first."""
_STAGES = np.array(
    [" ".join(str(stage + 1) for stage in range(STAGES) if mask >> stage & 1) for mask in range(16)]
)
"""How a verdict of each mask is written."""
_DISPLAYS = np.array(
    [
        [" ".join(f"{'ABCD'[labels[stage]]}={stage + 1}" for stage in order) for labels in _ORDERS]
        for order in _ORDERS
    ]
)
"""The text of each display, by order and labels."""


@cache
def positions(population: Population) -> FloatArray:
    """Returns the position of each kind of item on the scale that stages divide."""
    even = stats.norm.ppf((np.arange(KINDS) + 0.5) / KINDS)
    if population == "spread":
        return np.asarray(1.2 * even)
    if population == "rare":  # most items are at the lower end, a few anywhere
        return np.concatenate([np.full(KINDS - 8, -4.0), np.linspace(-1.0, 3.5, 8)])
    if population == "constant":  # nearly all verdicts are the first stage
        return np.concatenate([np.full(KINDS - 3, -3.0), [-1.0, -0.5, 0.0]])
    return np.zeros(KINDS)


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge under a design and a rubric."""

    model: str = PLAIN
    bias: float = 0.0
    """How far it reads items above their positions."""
    noise: float = 0.8
    logistic: bool = False
    """Whether its error is logistic, as in an ordered logit, and not normal."""
    subset: bool = False
    """Whether it may name neighbouring stages too."""
    position: float = 0.0
    label: float = 0.0
    """How much more likely it makes what is shown or labelled first, as a logarithm."""
    abstains: tuple[float, float] = (0.04, 0.04)
    """The chance of an abstention at the first and at the last stage."""
    unreadable: float = 0.02
    drawn: float = 0.0
    """The largest bias of a drawn rubric; 0 if all verdicts are under one rubric."""
    overconfidence: float = 0.6
    columns: Mapping[str, Any] = field(default_factory=dict)


LOGISTIC_BIAS = 0.8
"""The bias of a judge in log odds."""
_SUBSET = {"verdict.method": "subset"}
_CONTROL = {"task_type": "control", "concept": "another concept"}
CONDITIONS: dict[str, Judge] = {
    "plain": Judge(),
    "twin": Judge(f"{PLAIN}?family=sim-twin"),
    "biased": Judge(BIASED, 0.5),
    "much biased": Judge(BIASED, 1.2),
    "much biased down": Judge(BIASED, -1.2),
    "leaning": Judge(LEANING, position=0.8, label=0.4),
    "cautious": Judge(abstains=(0.25, 0.25)),
    "plain, subset": Judge(subset=True, columns=_SUBSET),
    "biased, subset": Judge(BIASED, 0.5, subset=True, columns=_SUBSET),
    "much biased, subset": Judge(BIASED, 1.2, subset=True, columns=_SUBSET),
    "plain, evidence first": Judge(columns={"presentation.first": "evidence"}),
    "plain, own rubric": Judge(columns={"rubric_author": PLAIN, "rubric": 2}),
    "plain, rival's rubric": Judge(
        bias=0.3,
        overconfidence=0.2,
        columns={"rubric_author": BIASED, "rubric": 3, "is_swap": True},
    ),
    "plain, control": Judge(columns=_CONTROL),
    "biased, control": Judge(BIASED, 0.1, columns=_CONTROL),
    "plain, drawn rubrics": Judge(drawn=1.0, columns={"rubric_author": PLAIN}),
    "biased, drawn rubrics": Judge(BIASED, 0.5, drawn=1.0, columns={"rubric_author": BIASED}),
    "silent at the top": Judge(abstains=(0.05, 0.6)),
    "silent at the bottom": Judge(BIASED, 0.3, abstains=(0.4, 0.05)),
    "people": Judge("people", 0.2, noise=0.5, abstains=(0.0, 0.0), unreadable=0.0),
    "logistic": Judge(logistic=True, noise=1.0),
    "logistic, biased": Judge(BIASED, LOGISTIC_BIAS, logistic=True, noise=1.0),
}
"""Conditions by name; the name states how one differs from `plain`."""


def chances(judge: Judge, where: FloatArray) -> FloatArray:
    """Returns the chance of each stage at some positions, if every verdict were scored."""
    error = stats.logistic if judge.logistic else stats.norm
    below = error.cdf((LIMITS - where[..., None] - judge.bias) / judge.noise)
    found: FloatArray = np.diff(below, axis=-1, prepend=0.0, append=1.0)
    return found


def rubric_shifts(judge: Judge) -> FloatArray:
    """Returns the bias of each rubric that may be drawn."""
    return np.linspace(-judge.drawn, judge.drawn, RUBRICS if judge.drawn else 1)


@cache
def _masses(condition: str, population: Population) -> FloatArray:
    """Returns the chance of each mask: rubrics by kinds by displays by masks.

    A display is which stage is shown first, and which has the first label.
    """
    judge = CONDITIONS[condition]
    where = positions(population) + rubric_shifts(judge)[:, None]
    by_stage = chances(judge, where)
    places = np.arange(STAGES)
    shown = judge.position != 0 or judge.label != 0
    displays = [(first, named) for first in places for named in places] if shown else [(0, 0)]
    silent = np.linspace(*judge.abstains, STAGES)
    mass = np.zeros((*where.shape, len(displays), 1 << STAGES))
    for place, (first, named) in enumerate(displays):
        liked = judge.position * (places == first) + judge.label * (places == named)
        given = by_stage * np.exp(liked)
        given = given / given.sum(axis=-1, keepdims=True)
        scored = given * (1 - silent) * (1 - judge.unreadable)
        mass[..., place, 0] = np.maximum(0.0, 1 - scored.sum(axis=-1))
        for stage in range(STAGES):
            near = stage + 1 if stage + 1 < STAGES else stage - 1
            sets = {1 << stage: 1.0}
            if judge.subset:
                sets = {1 << stage: 0.6, 1 << stage | 1 << near: 0.3, (1 << STAGES) - 1: 0.1}
            for mask, share in sets.items():
                mass[..., place, mask] += share * scored[..., stage]
    return mass


@cache
def distribution(condition: str, population: Population) -> VerdictDistribution:
    """Returns the distribution of a condition; if rubrics are drawn, the mean over them."""
    judge = CONDITIONS[condition]
    mass = _masses(condition, population).mean(axis=0)
    where = positions(population) + rubric_shifts(judge)[:, None]
    by_stage = chances(judge, where).mean(axis=0)
    held = by_stage @ (spread(STAGES) > 0).T  # the chance that a verdict falls into each mask
    displays = np.arange(mass.shape[1])
    return VerdictDistribution(
        mass=mass,
        first=spread(STAGES)[:, displays // STAGES].T,
        named=spread(STAGES)[:, displays % STAGES].T,
        stated_as=np.repeat(
            stated_chances(held, judge.overconfidence)[:, None], len(displays), axis=1
        ),
        abstained=by_stage @ np.linspace(*judge.abstains, STAGES) * (1 - judge.unreadable),
        complete=by_stage @ np.linspace(0, 1, STAGES),
    )


@dataclass(frozen=True, slots=True)
class Synthetic:
    """The source of samples of a population, whose items and replicates may be dependent."""

    name: str
    population: Population = "spread"
    clusters: int = 0
    """The number of clusters of a panel; 0 if items are independent."""
    correlation: float = 0.0
    """The correlation of the positions of two items of one cluster."""
    sticky: float = 0.0
    """The chance that a replicate repeats the one before it."""

    def distribution(self, condition: str) -> VerdictDistribution:
        """Returns the distribution of the verdicts of a condition."""
        return distribution(condition, self.population)

    def kinds(self, panel: int, task: str, shape: Shape) -> tuple[IntArray, IntArray]:
        """Returns the kind of each item of a panel, and its cluster."""
        rng = generator("calibrate", self.name, "items", shape.seed, panel, task, shape.items)
        clusters = self.clusters or shape.items
        cluster = np.arange(shape.items) % clusters
        shared = rng.normal(size=clusters)[cluster] * np.sqrt(self.correlation)
        own = rng.normal(size=shape.items) * np.sqrt(1 - self.correlation)
        kind = (stats.norm.cdf(shared + own) * KINDS).astype(int)
        return np.minimum(kind, KINDS - 1), cluster

    def samples(self, condition: str, panels: Sequence[int], shape: Shape) -> pd.DataFrame:
        """Returns one row per verdict of a condition."""
        judge, place = CONDITIONS[condition], list(CONDITIONS).index(condition)
        parts = [self._panel(condition, panel, shape) for panel in panels]
        samples = pd.concat(parts, ignore_index=True)
        constant = {
            **{"condition": condition, "concept": CONCEPT, "task_type": "ecc", "series": "0"},
            **{"n_stages": STAGES, "rubric_author": "sim:author", "is_swap": False},
            **{"judge.model": judge.model, "verdict.method": "single"},
            **{"presentation.first": "rubric", **judge.columns},
        }
        first = place * CALLS + panels[0] * 10**5
        return samples.assign(call_id=np.arange(first, first + len(samples)), **constant)

    def _panel(self, condition: str, panel: int, shape: Shape) -> pd.DataFrame:
        judge, known = CONDITIONS[condition], self.distribution(condition)
        task = str(judge.columns.get("concept", CONCEPT))
        kind, cluster = self.kinds(panel, task, shape)
        draws, per_draw = (DRAWS, PER_DRAW) if judge.drawn else (1, shape.replicates)
        size = shape.items, draws * per_draw
        matched = generator("calibrate", self.name, "displays", shape.seed, panel, task, *size)
        order, labels = matched.integers(len(_ORDERS), size=(2, *size))
        rng = generator("calibrate", self.name, condition, shape.seed, panel, *size)
        rubric = rng.integers(len(rubric_shifts(judge)), size=draws).repeat(per_draw)
        masses = _masses(condition, self.population)
        display = (_FIRST[order] * STAGES + _NAMED[labels]) % masses.shape[2]
        mask = _picked(masses[rubric[None, :], kind[:, None], display], rng)
        missing = np.maximum(1 - known.scored, 1e-12)
        abstained = rng.random(size) < (known.abstained / missing)[kind][:, None]
        probe = HUNDREDTHS[_picked(known.stated_as[kind[:, None], display, mask], rng)]
        answer = np.arange(shape.items * size[1]).reshape(size)  # a text of its own for each draw
        for step in range(1, size[1] if self.sticky else 1):
            again = rng.random(shape.items) < self.sticky
            for values in (mask, abstained, probe, answer):
                values[again, step] = values[again, step - 1]
        item = np.arange(shape.items).repeat(size[1])
        chosen = mask.ravel()
        costs = generator("calibrate", self.name, "costs", condition, shape.seed, panel, *size)
        dear = 1 + 0.2 * costs.normal(size=(shape.items, 1)) + 0.1 * costs.normal(size=size)
        slow = np.exp(0.3 * costs.normal(size=shape.items))
        number = 100 * (1 + list(CONDITIONS).index(condition)) + rubric if judge.drawn else rubric
        return pd.DataFrame(
            {
                "evidence": panel * 1000 + item + 500 * (task != CONCEPT),
                "pool": f"panel {panel}",
                "tag": f"panel {panel}",
                "cluster": (panel * 1000 + cluster[item]).astype(str) if self.clusters else "",
                "replicate": np.tile(np.arange(size[1]), shape.items),
                "answer": answer.ravel().astype(str),
                "reported_model": "recorded",  # texts of simulated models say nothing
                "status": np.where(
                    chosen > 0,
                    "scored",
                    np.where(abstained.ravel(), "abstained", "parse_failed"),
                ),
                "truth": (kind * STAGES // KINDS + 1)[item],
                "stages": _STAGES[chosen],
                "display": _DISPLAYS[order.ravel(), labels.ravel()],
                "usd": USD * dear.ravel(),
                "seconds": SECONDS * slow[item],
                "probe": np.where(chosen > 0, probe.ravel(), np.nan),
                "rubric": np.tile(number, shape.items),
                "rubric_draw": np.tile(np.arange(draws).repeat(per_draw), shape.items),
            }
        )


def _picked(masses: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draws one outcome for each distribution along the last axis."""
    cumulated = masses.cumsum(axis=-1)[..., :-1]  # rounding may leave the last sum below 1
    return np.asarray((rng.random((*masses.shape[:-1], 1)) > cumulated).sum(axis=-1))
