"""The true values of all estimates: means over the kinds of items that a population consists of.

An item enters an estimate only if enough of its verdicts are scored, so each kind is weighted by
the probability that it does. Nothing here is shared with the analysis that is calibrated: an error
that both made would go unnoticed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from judge_gym.records import digest

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
STATED_SHARES = (0.05, 0.85)
"""The bounds of the share that a simulated probe is based on."""
STATED_NOISE = 0.25
"""The spread of a simulated probe, in log-odds."""
HUNDREDTHS = np.arange(101) / 100
"""The probabilities that a simulated probe may state."""


def generator(*key: object) -> np.random.Generator:
    """Returns a random generator whose seed depends on the key alone."""
    return np.random.default_rng(int(digest(list(key))[:16], 16))


def answer(kind: int, scale: int, kinds: int) -> int:
    """Returns the stage of a kind of item, as a known answer."""
    return kind * scale // kinds + 1


@dataclass(frozen=True)
class VerdictDistribution:
    """The distribution of a judge's verdicts on each kind of item of the population."""

    mass: FloatArray
    """The chance of each chosen mask (0: nothing is scored): kinds by displays by masks."""
    first: FloatArray
    """The weight that each mask gives to the stage shown first: displays by masks."""
    named: FloatArray
    """The weight that each mask gives to the stage with the first label: displays by masks."""
    stated_as: FloatArray
    """The chance of each stated probability: kinds by displays by masks by hundredths."""
    abstained: FloatArray
    """The chance of an abstention."""
    complete: FloatArray | None = None
    """The mean normalised stage if no verdict were missing; None if missing ones have no stage."""

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
        """The distribution of scored verdicts: kinds by masks."""
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
    def middle(self) -> FloatArray:
        """The weight of the two stages in the middle of four."""
        held: FloatArray = spread(self.frame)[:, 1:3].sum(axis=1)
        return self.share @ held

    @property
    def gap(self) -> FloatArray:
        """The mean over stages of plausibility minus belief."""
        sizes = _sizes(self.frame)
        return self.share @ np.where(sizes > 1, sizes, 0.0) / self.frame

    @property
    def right(self) -> FloatArray:
        """The weight of the stage that is the known answer."""
        kinds = len(self.share)
        stages = [answer(kind, self.frame, kinds) - 1 for kind in range(kinds)]
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
        """The mean probability stated of each mask: kinds by displays by masks."""
        return self.stated_as @ HUNDREDTHS

    @property
    def stated(self) -> FloatArray:
        """The mean stated probability."""
        return self._held(self.stated_of)

    def _held(self, values: FloatArray) -> FloatArray:
        """Returns the mean over scored verdicts of values by display and mask."""
        held: FloatArray = (self.mass * values)[..., 1:].sum(axis=2).mean(axis=1)
        return held / self.scored


def stated_chances(share: FloatArray, overconfidence: float) -> FloatArray:
    """Returns the chance of each probability that a judge may state of a share of verdicts."""
    q = np.clip(share, *STATED_SHARES)
    majority = 3 * q**2 - 2 * q**3
    centre = np.log(majority / (1 - majority)) + overconfidence
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
    "stage", "jitter", "size", "singleton", "middle", "gap", "right", "position", "label", "stated"
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
    """The true values of estimates on panels of one world; conditions are given by name."""

    of: Callable[[str], VerdictDistribution]
    """Returns the distribution of a condition."""
    replicates: int

    def _mean(self, values: FloatArray, names: Sequence[str], needed: int) -> float:
        """Returns the mean over kinds, weighted by the chance of enough scored verdicts."""
        weights = np.ones(len(values))
        for name in set(names):
            weights *= stats.binom.sf(needed - 1, self.replicates, self.of(name).scored)
        return float(np.average(values, weights=weights))

    def endpoint(self, endpoint: Endpoint, name: str, minus: str | None = None) -> float:
        """Returns the mean of an endpoint, or its difference from another condition."""
        values: FloatArray = getattr(self.of(name), endpoint)
        if minus is None:
            return self._mean(values, [name], 2 if endpoint == "jitter" else 1)
        return self._mean(values - getattr(self.of(minus), endpoint), [name, minus], 1)

    def complete(self, name: str, minus: str | None = None) -> float:
        """Returns the mean stage if no verdict were missing, or its difference."""
        values = [self.of(one).complete for one in (name, minus) if one is not None]
        means = [float(np.mean(one)) for one in values if one is not None]
        return means[0] - sum(means[1:])

    def abstention(self, name: str) -> float:
        """Returns the share of abstentions among all verdicts."""
        return float(self.of(name).abstained.mean())

    def unreadable(self, name: str) -> float:
        """Returns the share of verdicts that are neither scored nor abstentions."""
        judge = self.of(name)
        return float((1 - judge.scored - judge.abstained).mean())

    def answered(self, name: str) -> float:
        """Returns the share of verdicts with a score."""
        return float(self.of(name).scored.mean())

    def accuracy(self, name: str) -> float:
        """Returns the share of right verdicts among all that were asked for."""
        return float((self.of(name).right * self.of(name).scored).mean())

    def repeated(self, name: str) -> float:
        """Returns the chance that two readable verdicts on an item are equal."""
        judge = self.of(name)
        readable = judge.scored + judge.abstained
        equal = (judge.share * judge.scored[:, None] / readable[:, None]) ** 2
        silent = (judge.abstained / readable) ** 2
        return float(np.average(equal.sum(axis=1) + silent, weights=readable**2))

    def agreement_with(self, name: str, people: str) -> float:
        """Returns the chance that a verdict, if any, is the stage that a rater gives."""
        judge, rater = self.of(name), self.of(people)
        equal = (judge.share * judge.scored[:, None] * rater.share).sum(axis=1)
        return float(equal.mean())

    def singletons(self, name: str) -> float:
        """Returns the share of verdicts of one stage among scored ones and abstentions."""
        judge = self.of(name)
        answered = judge.scored + judge.abstained
        values = judge.singleton * judge.scored / answered
        weights = stats.binom.sf(0, self.replicates, np.minimum(answered, 1.0))
        return float(np.average(values, weights=weights))

    def consistency(self, name: str) -> float:
        """Returns the intraclass correlation: the share of variance between kinds."""
        between = float(self.of(name).stage.var())
        return between / (between + float(self.of(name).jitter.mean()))

    def conflict(self, ours: str, theirs: str) -> float:
        """Returns the chance that verdicts of two conditions share no stage."""
        masks = np.arange(self.of(ours).share.shape[1])
        apart = (masks[:, None] & masks) == 0
        values = np.einsum("ka,ab,kb->k", self.of(ours).share, apart, self.of(theirs).share)
        return self._mean(values, [ours, theirs], 1)

    def distance(self, ours: str, theirs: str) -> float:
        """Returns the squared Jousselme distance of two conditions."""
        values = squared_distance(self.of(ours), self.of(theirs))
        return self._mean(values, [ours, theirs], 2)

    def distance_gap(self, pair: tuple[str, str], other: tuple[str, str]) -> float:
        """Returns the difference between the distances of two pairs of conditions."""
        gap = squared_distance(*map(self.of, pair)) - squared_distance(*map(self.of, other))
        return self._mean(gap, [*pair, *other], 2)

    def overconfidence(self, name: str, others: Sequence[str]) -> float:
        """Returns the stated probability minus its reference from the other judges' verdicts."""
        reference = (self.of(name).share * self._warranted(name, others)).sum(axis=1)
        return self._mean(self.of(name).stated - reference, [name], 1)

    def brier(self, name: str, others: Sequence[str]) -> float:
        """Returns the mean of p^2 - 2py + y, of stated p and reference y."""
        return self._mean(self._stated(name, others, _brier).sum(axis=1), [name], 1)

    def calibration_error(self, name: str, others: Sequence[str]) -> float:
        """Returns the expected calibration error over tenths of p."""
        gaps = self._stated(name, others, lambda p, y: p - y)
        bins = np.minimum(np.arange(gaps.shape[1]) // 10, 9)
        weights = self.of(name).scored / self.of(name).scored.sum()
        return float(np.abs(np.bincount(bins, weights @ gaps)).sum())

    def entrenchment(self, *names: str) -> float:
        """Returns the divergence of two judges above chance, times their stated probability."""
        return self._drawn("entrenchment", names, lambda above, sure: above * sure.mean(axis=1))

    def polarization(self, *names: str) -> float:
        """Returns raw P minus that of permuted verdicts, at this number of replicates.

        It has no closed form: items are drawn from the exact distributions.
        """
        bound = float(np.log2(min(len(names), self.of(names[0]).frame)))
        return self._drawn("polarization", names, lambda above, _: above / bound)

    def _drawn(self, what: str, names: Sequence[str], of: _OfItem) -> float:
        """Returns the mean over items drawn from the exact distributions of each kind."""
        rng = generator("calibrate", what, *names, self.replicates)
        judges = [self.of(name) for name in names]
        kinds = len(judges[0].mass)
        values, weights = np.zeros(kinds), np.zeros(kinds)
        for kind in range(kinds):
            display, chosen = _items(judges, kind, self.replicates, rng)
            whole = ((chosen > 0).sum(axis=1) > 0).all(axis=1)
            display, chosen = display[whole], chosen[whole]
            above = _divergence(chosen) - _divergence(_permuted(chosen, rng))
            stated = [judge.stated_of[kind] for judge in judges]
            sure = np.stack(
                [of[display % len(of), chosen[..., n]] for n, of in enumerate(stated)], axis=-1
            )
            scored = chosen > 0
            sure = np.where(scored, sure, 0.0).sum(axis=1) / scored.sum(axis=1)
            values[kind] = of(above, sure).mean() if whole.any() else 0.0
            weights[kind] = whole.mean()
        return float(np.average(values, weights=weights))

    def _warranted(self, name: str, others: Sequence[str]) -> FloatArray:
        """Returns the chance that most of three other verdicts fall into a mask: kinds by masks."""
        pooled = np.sum(
            [self.of(other).share * self.of(other).scored[:, None] for other in others], axis=0
        )
        pooled /= pooled.sum(axis=1, keepdims=True)
        masks = np.arange(self.of(name).mass.shape[2])
        size = np.maximum(1, np.bitwise_count(masks))
        agreed = pooled @ (np.bitwise_count(masks[:, None] & masks) / size).T
        chances: FloatArray = 3 * agreed**2 - 2 * agreed**3
        return chances

    def _stated(self, name: str, others: Sequence[str], of: _OfStated) -> FloatArray:
        """Returns values of p and y, weighted by the chance of each p: kinds by hundredths."""
        judge, y = self.of(name), self._warranted(name, others)
        # A display changes p and the verdict jointly; y comes from other displays.
        joint = np.einsum("kdm,kdmh->kmh", judge.mass[..., 1:], judge.stated_as[:, :, 1:])
        joint /= judge.mass.shape[1] * judge.scored[:, None, None]
        values: FloatArray = (joint * of(HUNDREDTHS, y[:, 1:, None])).sum(axis=1)
        return values

    # --- ratings that summarise the replicates of an item ---

    def entropy(self, name: str, *, missing: bool = False) -> float:
        """Returns the expected entropy, in bits, of the verdicts of an item.

        If `missing`, verdicts without a score are one more outcome.
        """
        counts, chances = self._counts(name)
        outcomes = counts if missing else counts[:, 1:]
        n = outcomes.sum(axis=1, keepdims=True)
        bits = special.entr(outcomes / np.maximum(n, 1)).sum(axis=1) / np.log(2)
        known = n[:, 0] > 0
        return float((chances[:, known] @ bits[known]).sum() / chances[:, known].sum())

    def agreement(self, measure: str, ours: str, theirs: str) -> float:
        """Returns an agreement of two judges in the limit of many items."""
        if measure == "icc":
            return self._concordance(ours, theirs)
        nominal = measure in ("alpha_nominal", "fleiss_kappa", "cohen_kappa")
        ratings = [self._ratings(name, "most" if nominal else "median") for name in (ours, theirs)]
        joint = np.einsum("ka,kb->ab", *ratings)
        joint = joint / joint.sum()
        rows, columns = joint.sum(axis=1), joint.sum(axis=0)
        stage = np.arange(len(joint))
        gap = np.abs(stage[:, None] - stage).astype(float)
        if measure in ("cohen_kappa", "kappa_linear", "kappa_quadratic"):
            power = {"cohen_kappa": 0, "kappa_linear": 1, "kappa_quadratic": 2}[measure]
            weight = (gap > 0) * gap**power
            return 1 - float((joint * weight).sum() / (np.outer(rows, columns) * weight).sum())
        both = (rows + columns) / 2
        if measure == "alpha_ordinal":
            middle = both.cumsum() - both / 2
            gap = middle[:, None] - middle
        weight = (gap != 0) * (gap**2 if measure == "alpha_ordinal" else 1.0)
        return 1 - float((joint * weight).sum() / (np.outer(both, both) * weight).sum())

    def self_agreement(self, name: str) -> float:
        """Returns Krippendorff's ordinal alpha of the replicates of one judge."""
        judge = self.of(name)
        single = judge.share[:, 1 << np.arange(judge.frame)]
        n = np.arange(self.replicates + 1)
        held = stats.binom.pmf(n, self.replicates, judge.scored[:, None]) @ np.where(n > 1, n, 0)
        joint = np.einsum("k,ka,kb->ab", held, single, single) / held.sum()
        given = joint.sum(axis=0)
        middle = given.cumsum() - given / 2
        weight = (middle[:, None] - middle) ** 2
        return 1 - float((joint * weight).sum() / (np.outer(given, given) * weight).sum())

    def _concordance(self, ours: str, theirs: str) -> float:
        """Returns the limit of ICC(2,1) of two judges' expected stages: Lin's concordance."""
        first, second = [], []
        for name in (ours, theirs):
            counts, chances = self._counts(name)
            n = counts[:, 1:].sum(axis=1)
            mean = counts[:, 1:] @ np.arange(counts.shape[1] - 1) / np.maximum(n, 1)
            first.append(chances @ np.where(n > 0, mean, 0.0))
            second.append(chances @ np.where(n > 0, mean**2, 0.0))
        # Judges are independent given the kind of item; hardly any item lacks a score.
        means = [float(one.mean()) for one in first]
        spreads = [float(two.mean()) - mean**2 for two, mean in zip(second, means, strict=True)]
        shared = float((first[0] * first[1]).mean()) - means[0] * means[1]
        return 2 * shared / (sum(spreads) + (means[0] - means[1]) ** 2)

    def _ratings(self, name: str, rating: Literal["most", "median"]) -> FloatArray:
        """Returns the chance of each stage as an item's rating: kinds by stages; ties have none."""
        counts, chances = self._counts(name)
        given = counts[:, 1:]
        table = np.zeros(given.shape)
        n = given.sum(axis=1)
        if rating == "most":
            top = given == given.max(axis=1, keepdims=True)
            clear = (n > 0) & (top.sum(axis=1) == 1)
            table[clear] = top[clear]
        else:
            reached = given.cumsum(axis=1) * 2 >= n[:, None]
            table[np.flatnonzero(n > 0), reached.argmax(axis=1)[n > 0]] = 1.0
        return chances @ table

    def majority(self, name: str, people: str, raters: int, *, missing: bool = False) -> float:
        """Returns the judge's share on the stage that most raters gave, if raters do not tie.

        If `missing`, verdicts without a score count as not on that stage.
        """
        most = replace(self, replicates=raters)._ratings(people, "most")
        judge = self.of(name)
        single = judge.share[:, 1 << np.arange(judge.frame)]
        if missing:
            return float((most * single * judge.scored[:, None]).sum() / most.sum())
        weights = stats.binom.sf(0, self.replicates, judge.scored)
        return float((weights @ (most * single)).sum() / (weights @ most).sum())

    def _counts(self, name: str) -> tuple[IntArray, FloatArray]:
        """Returns all counts of an item's verdicts by outcome, and the chance of each by kind.

        The first outcome is a missing score, the others are the stages; verdicts are single stages.
        """
        judge = self.of(name)
        outcomes = judge.frame + 1
        single = judge.mass.mean(axis=1)[:, [0, *(1 << np.arange(judge.frame))]]
        counts = compositions(self.replicates, outcomes)
        ways = special.factorial(self.replicates) / special.factorial(counts).prod(axis=1)
        powers = (single[:, None, :] ** counts).prod(axis=2)
        return counts, powers * ways


@cache
def compositions(total: int, parts: int) -> IntArray:
    """Returns all ways to write a number as a sum of so many parts, one per row.

    >>> compositions(2, 2).tolist()
    [[2, 0], [1, 1], [0, 2]]
    """
    chosen = list(combinations_with_replacement(range(parts), total))
    return np.array([[row.count(part) for part in range(parts)] for row in chosen])


def _brier(p: FloatArray, y: FloatArray) -> FloatArray:
    return p**2 - 2 * p * y + y


def jaccard(frame: int) -> FloatArray:
    """Returns the share of stages that two masks have in common: masks by masks."""
    held = np.arange(1 << frame)[:, None] >> np.arange(frame) & 1
    both = held @ held.T
    size = held.sum(axis=1)
    either = size[:, None] + size - both
    return np.where(either > 0, both / np.maximum(either, 1), 1.0)


def squared_distance(ours: VerdictDistribution, theirs: VerdictDistribution) -> FloatArray:
    """Returns the squared Jousselme distance by kind of item."""
    apart = ours.share - theirs.share
    distance: FloatArray = np.einsum("ka,ab,kb->k", apart, jaccard(ours.frame), apart) / 2
    return distance


def _items(
    judges: Sequence[VerdictDistribution], kind: int, replicates: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Returns displays by item and replicate, and verdicts by item, replicate and judge."""
    masses = [judge.mass[kind] for judge in judges]
    display = rng.integers(max(map(len, masses)), size=(DRAWS, replicates))
    last = masses[0].shape[1] - 1
    chosen = [
        (rng.random((*display.shape, 1)) > mass[:, :last].cumsum(axis=1)[display % len(mass)]).sum(
            axis=-1
        )
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
