"""The exact behaviour of each condition, from what its simulated judge publishes."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy import stats

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.belief.sets import bits
from judge_gym.calibrate.worlds import conditions, population
from judge_gym.models.simulated import Temper, temper, verdict_distribution
from judge_gym.models.simulated.judging import stage_weights
from judge_gym.models.simulated.prompts import understand
from judge_gym.records import Evidence, Rubric
from judge_gym.stages import Scorer, ScoreTarget

STATED_SHARES = (0.05, 0.85)
"""The least and the greatest share that a simulated probe goes by."""
STATED_NOISE = 0.25
"""The spread of a simulated probe, in log-odds."""
DISPLAYS = 400
"""So many displays are looked through for those that a judge can tell apart."""


@dataclass(frozen=True)
class Law:
    """What a judge does with each text of the population; per text unless it says otherwise."""

    mass: FloatArray
    """The chance of each chosen mask (0: nothing is scored): texts by displays by masks."""
    first: FloatArray
    """The weight that each mask gives to the stage shown first: displays by masks."""
    stated_of: FloatArray
    """The mean probability stated of each mask: texts by displays by masks."""
    abstained: FloatArray
    """The chance of an abstention."""

    @property
    def frame(self) -> int:
        """The number of stages."""
        return self.mass.shape[2].bit_length() - 1

    @cached_property
    def scored(self) -> FloatArray:
        """The chance of a scored verdict."""
        return 1 - self.mass[..., 0].mean(axis=1)

    @cached_property
    def share(self) -> FloatArray:
        """The distribution of scored verdicts: texts by masks."""
        chosen = self.mass.mean(axis=1)
        chosen[:, 0] = 0.0
        return chosen / self.scored[:, None]

    @property
    def stage(self) -> FloatArray:
        """The mean normalised stage."""
        return self.share @ (spread(self.frame) @ np.linspace(0, 1, self.frame))

    @property
    def size(self) -> FloatArray:
        """The mean number of stages in a verdict."""
        return self.share @ np.bitwise_count(np.arange(1 << self.frame)).astype(float)

    @property
    def position(self) -> FloatArray:
        """The weight of the stage shown first, beyond an even share."""
        held = (self.mass * self.first).sum(axis=2).mean(axis=1)
        return held / self.scored - 1 / self.frame

    @property
    def stated(self) -> FloatArray:
        """The mean probability that is stated."""
        held = (self.mass * self.stated_of)[..., 1:].sum(axis=2).mean(axis=1)
        return held / self.scored


@cache
def law(name: str) -> Law:
    """The law of a condition."""
    condition = conditions()[name]
    scorer, item = Scorer(condition.design, seed=0, series="0"), Evidence("any", "any")
    character = temper(condition.design.judge.model.partition(":")[2])
    frame = condition.rubric.scale
    spreads = spread(frame)
    masks = spreads > 0
    shown = _displays(scorer, item, condition.rubric)
    shape = (len(population()), len(shown), 1 << frame)
    mass, stated, abstained = np.zeros(shape), np.full(shape, np.nan), np.zeros(shape[0])
    for kind, text in enumerate(population()):
        targets = [ScoreTarget(condition.rubric, item, text, number) for number in shown]
        for place, request in enumerate(scorer.requests(targets)):
            display = scorer.display(targets[place])
            for verdict, chance in verdict_distribution(request).items():
                mass[kind, place, bits(display.decode(verdict.labels))] += chance
                abstained[kind] += chance * (verdict.status == "abstained") / len(shown)
            weights = stage_weights(character, understand(request.messages))
            by_stage = sorted(zip(display.stages, display.labels, strict=True))
            held = masks @ np.array([weights[label] for _, label in by_stage])
            stated[kind, place] = stated_probability(held, character)
    firsts = [scorer.display(target).stages[0] for target in targets]
    return Law(mass, spreads[:, np.array(firsts) - 1].T, stated, abstained)


def _displays(scorer: Scorer, item: Evidence, rubric: Rubric) -> list[int]:
    """Replicates whose displays a judge can tell apart, each as likely as the others.

    A simulated judge minds what is shown first and what is named first, and nothing else.
    """
    found: dict[tuple[int, int], int] = {}
    for number in range(DISPLAYS):
        display = scorer.display(ScoreTarget(rubric, item, "", number))
        named_first = display.stages[display.labels.index(min(display.labels))]
        found.setdefault((display.stages[0], named_first), number)
    return list(found.values())


def stated_probability(share: FloatArray, character: Temper) -> FloatArray:
    """The mean of what a simulated judge states of a verdict to which it gives this share."""
    q = np.clip(share, *STATED_SHARES)
    majority = 3 * q**2 - 2 * q**3
    centre = np.log(majority / (1 - majority)) + character.overconfidence
    # It states hundredths: the mean of k/100 is a sum over the chances to reach each k.
    steps = (np.arange(1, 101) - 0.5) / 100
    reached = stats.norm.sf((np.log(steps / (1 - steps)) - centre[..., None]) / STATED_NOISE)
    mean: FloatArray = reached.sum(axis=-1) / 100
    return mean


def spread(frame: int) -> FloatArray:
    """How each mask spreads its weight over the stages: masks by stages."""
    held = (np.arange(1 << frame)[:, None] >> np.arange(frame) & 1).astype(float)
    shares: FloatArray = held / np.maximum(1, held.sum(axis=1, keepdims=True))
    return shares
