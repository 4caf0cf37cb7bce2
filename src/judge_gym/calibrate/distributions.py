"""The exact distribution of verdicts under each condition, from the simulated judges' own code."""

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from scipy import stats

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.belief.sets import bits
from judge_gym.calibrate.worlds import Condition, answer, conditions, population
from judge_gym.models.simulated import JudgeProfile, judge_profile, verdict_distribution
from judge_gym.models.simulated.judge import stage_weights
from judge_gym.models.simulated.prompts import understand
from judge_gym.records import Evidence, Rubric
from judge_gym.stages import Scorer, ScoreTarget

STATED_SHARES = (0.05, 0.85)
"""The bounds of the share that a simulated probe is based on."""
STATED_NOISE = 0.25
"""The spread of a simulated probe, in log-odds."""
HUNDREDTHS = np.arange(101) / 100
"""The probabilities that a simulated probe may state."""
DISPLAYS = 400
"""The number of displays searched for those that a judge distinguishes."""


@dataclass(frozen=True)
class VerdictDistribution:
    """The distribution of a judge's verdicts on each text of the population."""

    mass: FloatArray
    """The chance of each chosen mask (0: nothing is scored): texts by displays by masks."""
    first: FloatArray
    """The weight that each mask gives to the stage shown first: displays by masks."""
    named: FloatArray
    """The weight that each mask gives to the stage with the first label: displays by masks."""
    stated_as: FloatArray
    """The chance of each stated probability: texts by displays by masks by hundredths."""
    abstained: FloatArray
    """The chance of an abstention."""

    @property
    def frame(self) -> int:
        """The number of stages."""
        return int(self.mass.shape[2]).bit_length() - 1

    @cached_property
    def scored(self) -> FloatArray:
        """The chance of a scored verdict."""
        chances: FloatArray = 1 - self.mass[..., 0].mean(axis=1)
        return chances

    @cached_property
    def share(self) -> FloatArray:
        """The distribution of scored verdicts: texts by masks."""
        chosen: FloatArray = self.mass.mean(axis=1)
        chosen[:, 0] = 0.0
        chosen /= self.scored[:, None]
        return chosen

    @property
    def stage(self) -> FloatArray:
        """The mean normalised stage."""
        return self.share @ places(self.frame)

    @property
    def jitter(self) -> FloatArray:
        """The variance of the normalised stage."""
        return self.share @ places(self.frame) ** 2 - self.stage**2

    @property
    def size(self) -> FloatArray:
        """The mean number of stages in a verdict."""
        return self.share @ _sizes(self.frame)

    @property
    def singleton(self) -> FloatArray:
        """The share of verdicts of one stage."""
        return self.share @ np.where(_sizes(self.frame) == 1, 1.0, 0.0)

    @property
    def gap(self) -> FloatArray:
        """The mean over stages of plausibility minus belief."""
        sizes = _sizes(self.frame)
        return self.share @ np.where(sizes > 1, sizes, 0.0) / self.frame

    @property
    def right(self) -> FloatArray:
        """The weight of the stage that is the known answer."""
        stages = [answer(kind, self.frame) - 1 for kind in range(len(self.share))]
        held: FloatArray = (self.share * spread(self.frame)[:, stages].T).sum(axis=1)
        return held

    @property
    def position(self) -> FloatArray:
        """The weight of the stage shown first, minus an even share."""
        return self._held(self.first) - 1 / self.frame

    @property
    def label(self) -> FloatArray:
        """The weight of the stage with the first label, minus an even share."""
        return self._held(self.named) - 1 / self.frame

    @cached_property
    def stated_of(self) -> FloatArray:
        """The mean probability stated of each mask: texts by displays by masks."""
        return self.stated_as @ HUNDREDTHS

    @property
    def stated(self) -> FloatArray:
        """The mean stated probability."""
        return self._held(self.stated_of)

    def _held(self, values: FloatArray) -> FloatArray:
        """Returns the mean over scored verdicts of values by display and mask."""
        held: FloatArray = (self.mass * values)[..., 1:].sum(axis=2).mean(axis=1)
        return held / self.scored


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
                mass[kind, place, bits(display.decode(verdict.labels))] += chance
                abstained[kind] += chance * (verdict.status == "abstained") / len(shown)
            weights = stage_weights(profile, understand(request.messages))
            by_stage = sorted(zip(display.stages, display.labels, strict=True))
            held = masks @ np.array([weights[label] for _, label in by_stage])
            stated[kind, place] = stated_chances(held, profile)
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


def stated_chances(share: FloatArray, profile: JudgeProfile) -> FloatArray:
    """Returns the chance of each probability that a simulated judge may state of a verdict.

    Args:
        share: the share that the judge gives to the verdict.
        profile: the judge's faults.
    """
    q = np.clip(share, *STATED_SHARES)
    majority = 3 * q**2 - 2 * q**3
    centre = np.log(majority / (1 - majority)) + profile.overconfidence
    steps = (np.arange(1, 101) - 0.5) / 100
    below = stats.norm.cdf((np.log(steps / (1 - steps)) - centre[..., None]) / STATED_NOISE)
    chances: FloatArray = np.diff(below, axis=-1, prepend=0.0, append=1.0)
    return chances


def spread(frame: int) -> FloatArray:
    """Returns how each mask spreads its weight over the stages: masks by stages."""
    held = (np.arange(1 << frame)[:, None] >> np.arange(frame) & 1).astype(float)
    shares: FloatArray = held / np.maximum(1, held.sum(axis=1, keepdims=True))
    return shares


def places(frame: int) -> FloatArray:
    """Returns the mean normalised stage of each mask."""
    return spread(frame) @ np.linspace(0, 1, frame)


def _sizes(frame: int) -> FloatArray:
    return np.bitwise_count(np.arange(1 << frame)).astype(float)
