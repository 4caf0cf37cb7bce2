"""The true values of all estimates: means over the population of texts.

An item enters an estimate only if enough of its verdicts are scored, so each text is weighted by
the probability that it does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np
from scipy import special, stats

from judge_gym.analysis.belief.disagreement import jaccard
from judge_gym.analysis.belief.masses import FloatArray, IntArray, bits
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.calibrate.worlds import Condition, Shape, answer, conditions, population
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
    """Returns the chance of each probability that a judge may state of a share of verdicts."""
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


Endpoint = Literal[
    "stage", "jitter", "size", "singleton", "gap", "right", "position", "label", "stated"
]
"""The properties of a distribution that are given for each text."""
_OfItem = Callable[[FloatArray, FloatArray], FloatArray]
"""Maps divergence above chance and stated probabilities to a value, by item."""
_OfStated = Callable[[FloatArray, FloatArray], FloatArray]
"""Maps the stated probability and its reference to a value."""
DRAWS = 2000
"""The number of items drawn per text for quantities without a closed form."""


@dataclass(frozen=True, slots=True)
class TrueValues:
    """The true values of estimates on panels of one shape; conditions are given by name."""

    shape: Shape

    def _mean(self, values: FloatArray, names: Sequence[str], needed: int) -> float:
        """Returns the mean over texts, weighted by the chance of enough scored verdicts."""
        weights = np.ones(len(values))
        for name in set(names):
            weights *= stats.binom.sf(needed - 1, self.shape.replicates, distribution(name).scored)
        return float(np.average(values, weights=weights))

    def endpoint(self, endpoint: Endpoint, name: str, minus: str | None = None) -> float:
        """Returns the mean of an endpoint, or its difference from another condition."""
        values: FloatArray = getattr(distribution(name), endpoint)
        if minus is None:
            return self._mean(values, [name], 2 if endpoint == "jitter" else 1)
        return self._mean(values - getattr(distribution(minus), endpoint), [name, minus], 1)

    def abstention(self, name: str) -> float:
        """Returns the share of abstentions among all verdicts."""
        return float(distribution(name).abstained.mean())

    def consistency(self, name: str) -> float:
        """Returns the intraclass correlation: the share of variance between texts."""
        between = float(distribution(name).stage.var())
        return between / (between + float(distribution(name).jitter.mean()))

    def conflict(self, ours: str, theirs: str) -> float:
        """Returns the chance that verdicts of two conditions share no stage."""
        masks = np.arange(distribution(ours).share.shape[1])
        apart = (masks[:, None] & masks) == 0
        values = np.einsum(
            "ka,ab,kb->k", distribution(ours).share, apart, distribution(theirs).share
        )
        return self._mean(values, [ours, theirs], 1)

    def distance(self, ours: str, theirs: str) -> float:
        """Returns the squared Jousselme distance of two conditions."""
        return self._mean(_distance(ours, theirs), [ours, theirs], 2)

    def distance_gap(self, pair: tuple[str, str], other: tuple[str, str]) -> float:
        """Returns the difference between the distances of two pairs of conditions."""
        return self._mean(_distance(*pair) - _distance(*other), [*pair, *other], 2)

    def overconfidence(self, name: str, others: Sequence[str]) -> float:
        """Returns the stated probability minus its reference from the other judges' verdicts."""
        reference = (distribution(name).share * _warranted(name, others)).sum(axis=1)
        return self._mean(distribution(name).stated - reference, [name], 1)

    def brier(self, name: str, others: Sequence[str]) -> float:
        """Returns the mean of p^2 - 2py + y, of stated p and reference y."""
        return self._mean(_stated(name, others, _brier).sum(axis=1), [name], 1)

    def calibration_error(self, name: str, others: Sequence[str]) -> float:
        """Returns the expected calibration error over tenths of p."""
        gaps = _stated(name, others, lambda p, y: p - y)
        bins = np.minimum(np.arange(gaps.shape[1]) // 10, 9)
        weights = distribution(name).scored / distribution(name).scored.sum()
        return float(np.abs(np.bincount(bins, weights @ gaps)).sum())

    def entrenchment(self, *names: str) -> float:
        """Returns the divergence of two judges above chance, times their stated probability."""
        return self._drawn("entrenchment", names, lambda above, sure: above * sure.mean(axis=1))

    def polarization(self, *names: str) -> float:
        """Returns raw P minus that of permuted verdicts, at this number of replicates.

        It has no closed form: items are drawn from the exact distributions.
        """
        bound = float(np.log2(min(len(names), distribution(names[0]).frame)))
        return self._drawn("polarization", names, lambda above, _: above / bound)

    def _drawn(self, what: str, names: Sequence[str], of: _OfItem) -> float:
        """Returns the mean over items drawn from the exact distributions of each text."""
        rng = seeded("calibrate", what, *names, self.shape.replicates)
        texts = len(distribution(names[0]).mass)
        values, weights = np.zeros(texts), np.zeros(texts)
        for kind in range(texts):
            display, chosen = _items(names, kind, self.shape.replicates, rng)
            whole = ((chosen > 0).sum(axis=1) > 0).all(axis=1)
            display, chosen = display[whole], chosen[whole]
            above = _divergence(chosen) - _divergence(_permuted(chosen, rng))
            stated = [distribution(name).stated_of[kind] for name in names]
            sure = np.stack([of[display, chosen[..., n]] for n, of in enumerate(stated)], axis=-1)
            scored = chosen > 0
            sure = np.where(scored, sure, 0.0).sum(axis=1) / scored.sum(axis=1)
            values[kind] = of(above, sure).mean() if whole.any() else 0.0
            weights[kind] = whole.mean()
        return float(np.average(values, weights=weights))


def _warranted(name: str, others: Sequence[str]) -> FloatArray:
    """Returns the chance that most of three other verdicts fall into a mask: texts by masks."""
    pooled = np.sum(
        [distribution(other).share * distribution(other).scored[:, None] for other in others],
        axis=0,
    )
    pooled /= pooled.sum(axis=1, keepdims=True)
    masks = np.arange(distribution(name).mass.shape[2])
    size = np.maximum(1, np.bitwise_count(masks))
    agreed = pooled @ (np.bitwise_count(masks[:, None] & masks) / size).T
    chances: FloatArray = 3 * agreed**2 - 2 * agreed**3
    return chances


def _stated(name: str, others: Sequence[str], of: _OfStated) -> FloatArray:
    """Returns values of p and y, weighted by the chance of each p: texts by hundredths."""
    judge, y = distribution(name), _warranted(name, others)
    # A display changes p and the verdict jointly; y comes from other displays.
    joint = np.einsum("kdm,kdmh->kmh", judge.mass[..., 1:], judge.stated_as[:, :, 1:])
    joint /= judge.mass.shape[1] * judge.scored[:, None, None]
    values: FloatArray = (joint * of(HUNDREDTHS, y[:, 1:, None])).sum(axis=1)
    return values


def _brier(p: FloatArray, y: FloatArray) -> FloatArray:
    return p**2 - 2 * p * y + y


def _distance(ours: str, theirs: str) -> FloatArray:
    apart = distribution(ours).share - distribution(theirs).share
    masks = np.arange(apart.shape[1])
    alike = jaccard(masks[:, None], masks)
    distance: FloatArray = np.einsum("ka,ab,kb->k", apart, alike, apart) / 2
    return distance


def _items(
    names: Sequence[str], kind: int, replicates: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Returns displays by item and replicate, and verdicts by item, replicate and judge."""
    masses = [distribution(name).mass[kind] for name in names]
    display = rng.integers(len(masses[0]), size=(DRAWS, replicates))
    last = masses[0].shape[1] - 1
    chosen = [
        (rng.random((*display.shape, 1)) > mass[:, :last].cumsum(axis=1)[display]).sum(axis=-1)
        for mass in masses
    ]
    return display, np.stack(chosen, axis=-1)


def _permuted(chosen: IntArray, rng: np.random.Generator) -> IntArray:
    """Returns the scored verdicts of each replicate, permuted among the judges that have one."""
    none = chosen == 0
    order = np.argsort(none + rng.random(chosen.shape), axis=-1)
    dealt = np.zeros_like(chosen)
    places = np.argsort(none, axis=-1, kind="stable")
    np.put_along_axis(dealt, places, np.take_along_axis(chosen, order, -1), -1)
    return dealt


def _divergence(chosen: IntArray) -> FloatArray:
    """Returns the Jensen-Shannon divergence of the judges on each item, in bits."""
    share = spread(int(chosen.max(initial=1)).bit_length())[chosen].sum(axis=1)
    share /= (chosen > 0).sum(axis=1)[..., None]
    mixed = special.entr(share.mean(axis=1)).sum(axis=-1)
    divergence: FloatArray = (mixed - special.entr(share).sum(axis=-1).mean(axis=-1)) / np.log(2)
    return divergence
