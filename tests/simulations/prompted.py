"""The world of simulated judges whose prompts and answers pass through the real stages.

A condition is one judge under one design and one rubric. Its exact distribution of verdicts is
known from the simulated judge.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.axes import Design
from judge_gym.errors import ProviderError
from judge_gym.models.simulated import SimulatedModel, judge_profile, verdict_distribution
from judge_gym.models.simulated.judge import stage_weights
from judge_gym.models.simulated.lexicon import PUBLIC_AFFAIRS, STRAIN
from judge_gym.models.simulated.prompts import understand
from judge_gym.records import Completion, Evidence, Request, Rubric, Sample, TaskType
from judge_gym.stages import Prober, ProbeTarget, Rubricer, RubricTarget, Scorer, ScoreTarget
from simulations.truth import (
    HUNDREDTHS,
    VerdictDistribution,
    answer,
    generator,
    spread,
    stated_chances,
)
from simulations.worlds import BIASED, CALLS, DRAWS, LEANING, PER_DRAW, PLAIN, Shape

CONCEPTS: dict[TaskType, str] = {"ecc": "fascism", "control": "democracy quality"}
"""A fully contested concept, on which a judge's bias shows in full, and a hardly contested one."""
KINDS = 48
"""The number of texts in the population; an item is a fresh copy of one of them."""
SPREAD = 0.2
"""The largest distance of a text's cues from its severity."""

RUBRICS, LEANINGS = 40, 1.0
"""The number of rubrics to draw from, and the largest bias of their author."""

DISPLAYS = 400
"""The number of displays searched for those that a judge distinguishes."""
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


@dataclass(frozen=True, slots=True)
class Prompted:
    """The source of samples from real prompts and simulated answers."""

    name: str = "real prompts"

    def samples(self, condition: str, panels: Sequence[int], shape: Shape) -> pd.DataFrame:
        """Returns one row per verdict of a condition."""
        chosen = conditions()[condition]
        targets = [target for panel in panels for target in _targets(panel, chosen, shape)]
        return _judged(chosen, targets, shape)

    def distribution(self, condition: str) -> VerdictDistribution:
        """Returns the distribution of the verdicts of a condition."""
        return distribution(condition)


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
    rng = generator("calibrate", "population")
    words = [cue for cue in STRAIN if cue in PUBLIC_AFFAIRS]
    texts = []
    for kind in range(KINDS):
        about = (kind + 0.5) / KINDS
        near = [cue for cue in words if abs(STRAIN[cue] - about) < SPREAD]
        cues = rng.choice(near, size=2 + kind % 4, replace=False)
        texts.append("The report speaks of matters " + ", then ".join(map(str, cues)) + ".")
    return tuple(texts)


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


def evidence(panel: int, condition: Condition, shape: Shape) -> list[Evidence]:
    """Returns fresh copies of texts; a number in each gives it its own displays and answers."""
    texts = population()
    rng = generator("calibrate", "evidence", shape.seed, panel, condition.task)
    kinds = rng.integers(len(texts), size=shape.items)
    scale = condition.rubric.scale
    titles = [f"Report {panel}.{number} ({condition.task})" for number in range(shape.items)]
    return [
        Evidence(
            title,
            f"{title}. {texts[kind]}",
            source=f"panel {panel}",
            truth=answer(kind, scale, KINDS),
        )
        for title, kind in zip(titles, kinds, strict=True)
    ]


def _targets(panel: int, condition: Condition, shape: Shape) -> list[ScoreTarget]:
    """Returns all targets of a panel under a condition."""
    rubrics, replicates = [condition.rubric], shape.replicates
    if condition.drawn_from:
        rng = generator("calibrate", "rubrics", shape.seed, panel, condition.name)
        drawn = rng.integers(len(condition.drawn_from), size=DRAWS)
        rubrics, replicates = [condition.drawn_from[place] for place in drawn], PER_DRAW
    items = evidence(panel, condition, shape)
    # A rubric that is drawn twice gives new verdicts, so replicates are numbered over all draws.
    return [
        ScoreTarget(rubric, item, item.text, draw * replicates + number, condition.is_swap)
        for draw, rubric in enumerate(rubrics)
        for item in items
        for number in range(replicates)
    ]


def _judged(condition: Condition, targets: Sequence[ScoreTarget], shape: Shape) -> pd.DataFrame:
    """Returns one row per verdict, from real prompts and simulated answers."""
    scorer = Scorer(condition.design, shape.seed, str(shape.seed))
    given = answers(scorer.requests(targets))
    samples = [scorer.read(*pair) for pair in zip(targets, given, strict=True)]
    per_draw = PER_DRAW if condition.drawn_from else shape.replicates
    first = list(conditions()).index(condition.name) * CALLS
    return pd.DataFrame([_row(sample) for sample in samples]).assign(
        probe=_probes(condition, samples, shape) if condition.probed else np.nan,
        call_id=np.arange(first, first + len(samples)),
        condition=condition.name,
        concept=CONCEPTS[condition.task],
        task_type=condition.task,
        series=str(shape.seed),
        n_stages=condition.rubric.scale,
        rubric=[target.rubric.id for target in targets],
        rubric_draw=[target.replicate // per_draw for target in targets],
        rubric_author=condition.rubric.author,
        is_swap=condition.is_swap,
        **{knob: condition.design.values()[knob] for knob in _knobs()},
    )


def _row(sample: Sample) -> dict[str, Any]:
    shown = zip(sample.display.labels, sample.display.stages, strict=True)
    return {
        "evidence": sample.evidence.title,
        "pool": sample.evidence.source,
        "replicate": sample.replicate,
        "status": sample.status,
        "truth": sample.evidence.truth,
        "stages": " ".join(map(str, sample.stages)),
        "display": " ".join(f"{label}={stage}" for label, stage in shown),
    }


def _probes(condition: Condition, samples: Sequence[Sample], shape: Shape) -> np.ndarray:
    """Returns the stated probability of each scored verdict; NaN if not asked or unreadable."""
    prober = Prober(condition.design, shape.seed, str(shape.seed))
    places = [place for place, sample in enumerate(samples) if sample.status == "scored"]
    targets = [ProbeTarget(samples[place], samples[place].evidence.text) for place in places]
    given = answers(prober.requests(targets))
    stated = [prober.read(*pair).probability for pair in zip(targets, given, strict=True)]
    found = np.full(len(samples), np.nan)
    found[places] = np.array(stated, dtype=float)
    return found


@cache
def _knobs() -> list[str]:
    """Returns the knobs in which conditions differ, including the judge."""
    designs = [one.design.values() for one in conditions().values()]
    return [
        knob for knob in Design.knobs() if any(one[knob] != designs[0][knob] for one in designs)
    ]


# --- the distribution of verdicts ----------------------------------------------------------------


@cache
def distribution(name: str) -> VerdictDistribution:
    """Returns the distribution of a condition; if rubrics are drawn, the mean over them."""
    condition = conditions()[name]
    if not condition.drawn_from:
        return _distribution(condition, condition.rubric)
    distributions = [_distribution(condition, rubric) for rubric in condition.drawn_from]
    mass = np.mean([one.mass for one in distributions], axis=0)
    return replace(
        distributions[0],
        mass=mass,
        abstained=np.mean([one.abstained for one in distributions], axis=0),
    )


def _distribution(condition: Condition, rubric: Rubric) -> VerdictDistribution:
    """Returns the distribution of a condition under a rubric."""
    scorer, item = Scorer(condition.design, seed=0, series="0"), Evidence("any", "any")
    profile = judge_profile(condition.design.judge.model.partition(":")[2])
    frame = rubric.scale
    spreads = spread(frame)
    masks = spreads > 0
    shown = _displays(scorer, item, rubric)
    if condition.drawn_from:  # these judges ignore the display, so that one is enough
        shown = dict(list(shown.items())[:1])
    shape = (len(population()), len(shown), 1 << frame)
    mass, abstained = np.zeros(shape), np.zeros(shape[0])
    stated = np.full((*shape, len(HUNDREDTHS)), np.nan)
    for kind, text in enumerate(population()):
        targets = [ScoreTarget(rubric, item, text, number) for number in shown.values()]
        for place, request in enumerate(scorer.requests(targets)):
            display = scorer.display(targets[place])
            for verdict, chance in verdict_distribution(request).items():
                mass[
                    kind, place, sum(1 << stage - 1 for stage in display.decode(verdict.labels))
                ] += chance
                abstained[kind] += chance * (verdict.status == "abstained") / len(shown)
            weights = stage_weights(profile, understand(request.messages))
            by_stage = sorted(zip(display.stages, display.labels, strict=True))
            held = masks @ np.array([weights[label] for _, label in by_stage])
            stated[kind, place] = stated_chances(held, profile.overconfidence)
    first, named = np.array(list(shown)).T - 1
    return VerdictDistribution(mass, spreads[:, first].T, spreads[:, named].T, stated, abstained)


def _displays(scorer: Scorer, item: Evidence, rubric: Rubric) -> dict[tuple[int, int], int]:
    """Returns a replicate of each display that a judge distinguishes; all are equally likely.

    A simulated judge depends only on the stage shown first and on the stage with the first label.
    """
    found: dict[tuple[int, int], int] = {}
    for number in range(DISPLAYS):
        display = scorer.display(ScoreTarget(rubric, item, "", number))
        named_first = display.stages[display.labels.index(min(display.labels))]
        found.setdefault((display.stages[0], named_first), number)
    return found
