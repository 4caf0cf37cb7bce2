"""The true values of all estimates: means over the population of texts.

An item enters an estimate only if enough of its verdicts are scored, so each text is weighted by
the probability that it does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special, stats

from judge_gym.analysis.belief.disagreement import jaccard
from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.calibrate.distributions import HUNDREDTHS, distribution, spread
from judge_gym.calibrate.panels import Shape

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
