"""Whether a judge can replace a rater: the alternative annotator test.

Calderon, Reichart and Dror (2025); where items are in clusters, errors are by cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from judge_gym.analysis.stats.clusters import (
    Codes,
    grouped_codes,
)
from judge_gym.analysis.stats.intervals import (
    Floats,
    item_error,
)
from judge_gym.errors import DesignError, unknown
from judge_gym.studies.declarations import EPSILON, Epsilon, epsilon_name

FALSE_DISCOVERIES = 0.05
WINNING_RATE = 0.5
MIN_ITEMS = 30
MIN_RATERS = 3


@dataclass(frozen=True, slots=True)
class AltTest:
    """The alternative annotator test of one judge: can it replace a rater?"""

    epsilon: Epsilon
    """How far the judge may be behind the rater: a number, or what kind of rater it is."""
    raters: int
    """The number of raters who have enough items."""
    omega: float
    """The share of these raters that the judge beats."""
    advantage: float
    """How often the judge is at least as close to the other raters as a rater."""
    published_omega: float
    """The share of raters beaten by the published procedure, which ignores clusters."""
    missing: str = ""
    """What the test lacks, in words; empty if it could be made."""

    @property
    def passed(self) -> bool | None:
        """Whether the judge beats at least half of the raters; None if the test lacks something."""
        return None if np.isnan(self.omega) else self.omega >= WINNING_RATE

    @property
    def published_passed(self) -> bool | None:
        """Whether it passes by the published procedure."""
        return None if np.isnan(self.published_omega) else self.published_omega >= WINNING_RATE

    def row(self) -> dict[str, Any]:
        """Returns the columns of the judge table, empty of what the test lacks."""
        return {
            "epsilon": EPSILON[self.epsilon] if isinstance(self.epsilon, str) else self.epsilon,
            "raters": self.raters,
            "omega": self.omega,
            "advantage": self.advantage,
            "passed": self.passed,
            "published_omega": self.published_omega,
            "published_passed": self.published_passed,
            "missing": self.missing,
        }

    def sentence(self, judge: str) -> str:
        """Says whether the judge passes, by which rule, and where clusters make a difference."""
        if self.raters < MIN_RATERS:
            return f"Whether {judge} can replace a rater is not known: {self.missing}."
        rule = (
            f"a judge passes if it is {epsilon_name(self.epsilon)}, for at least half of the raters"
        )

        def beaten(omega: float) -> str:
            return f"{round(omega * self.raters)} of {self.raters} raters"

        published = f"{_VERDICTS[self.published_passed]} ({beaten(self.published_omega)})"
        if self.passed is None:
            return (
                f"Whether {judge} can replace a rater is not known: {self.missing}. By the "
                f"published procedure, which takes items as independent, it {published}; {rule}."
            )
        text = (
            f"{judge} {_VERDICTS[self.passed]} the alternative annotator test: it wins against "
            f"{beaten(self.omega)}; {rule}."
        )
        if self.passed is not self.published_passed:
            text += (
                " Here items are in clusters; by the published procedure, which takes items as "
                f"independent, it {published}."
            )
        return text


_VERDICTS = {True: "passes", False: "fails", None: "is not tested"}


def alternative_annotator_test(
    stages: Floats,
    verdicts: Floats,
    clusters: Codes | None = None,
    *,
    ordered: bool,
    epsilon: Epsilon = "expert",
) -> AltTest:
    """Tests whether a judge represents the raters as well as most of them represent each other.

    One rater at a time is left out. Whichever of judge and rater is closer to the remaining raters
    wins an item; both win a tie. On ordinal scales closeness is the root mean squared distance, on
    nominal ones the share of equal labels. The judge's wins are averaged over its repeats; a repeat
    without a score is as far from every label as the scale allows.

    Args:
        stages: raters' stages by item and rater; NaN where a rater gave none.
        verdicts: the share of the judge's repeats at each stage, by item; what lacks to 1 has no
            score.
        clusters: the number of each item's cluster.
        ordered: whether stages have an order, which decides what is close.
        epsilon: how far the judge may be behind a rater.
    """
    if isinstance(epsilon, str) and epsilon not in EPSILON:
        raise DesignError(unknown("epsilon", epsilon, list(EPSILON)), choices=list(EPSILON))
    wins = _wins(stages, verdicts, ordered)
    return _test_of(
        epsilon, _rater_tests(wins, epsilon, clusters), _rater_tests(wins, epsilon, None)
    )


def _test_of(
    epsilon: Epsilon, tests: "Sequence[_RaterTest]", published: "Sequence[_RaterTest]"
) -> AltTest:
    enough = [test for test in published if test.beaten is not None]
    omega = advantage = published_omega = np.nan
    missing = ""
    if len(enough) < MIN_RATERS:
        missing = (
            f"{len(enough)} raters share at least {MIN_ITEMS} judged items with another; "
            f"{MIN_RATERS} are needed"
        )
    else:
        published_omega = float(np.mean([bool(test.beaten) for test in enough]))
        tested = [test for test in tests if test.beaten is not None]
        if len(tested) < MIN_RATERS:
            missing = f"the items of {len(enough) - len(tested)} raters lie in too few clusters"
        else:
            omega = float(np.mean([bool(test.beaten) for test in tested]))
        advantage = float(np.mean([test.advantage for test in tested or enough]))
    return AltTest(epsilon, len(enough), omega, advantage, published_omega, missing)


class _RaterTest(NamedTuple):
    items: int
    advantage: float
    difference: float
    p: float
    adjusted: float
    beaten: bool | None


def _rater_tests(wins: Floats, epsilon: Epsilon, clusters: Codes | None) -> list[_RaterTest]:
    """Tests each rater in turn, and adjusts for their number."""
    size = EPSILON[epsilon] if isinstance(epsilon, str) else epsilon
    codes = np.arange(len(wins)) if clusters is None else clusters
    tests = [_test(by_rater, size, codes) for by_rater in np.moveaxis(wins, 1, 0)]
    p = np.array([test.p for test in tests])
    adjusted = np.full(len(p), np.nan)
    if (tested := ~np.isnan(p)).any():
        from scipy import stats

        adjusted[tested] = stats.false_discovery_control(p[tested], method="by")
    return [
        _RaterTest(*test, value, None if np.isnan(value) else bool(value <= FALSE_DISCOVERIES))
        for test, value in zip(tests, adjusted.tolist(), strict=True)
    ]


class _Test(NamedTuple):
    items: int
    advantage: float
    difference: float
    p: float


def _wins(stages: Floats, verdicts: Floats, ordered: bool) -> Floats:
    """Computes the wins by item and rater: those of the rater, then those of the judge.

    Both are means over the judge's repeats; NaN if the rater gave no stage, or no other rater did.
    """
    other_stages = stages[:, None, :]  # items, the rater left out, the remaining raters
    is_compared = ~np.isnan(other_stages) & ~np.eye(stages.shape[1], dtype=bool)

    def loss(distances: Floats) -> Floats:
        each = distances**2 if ordered else (distances != 0).astype(float)
        total: Floats = np.where(is_compared, each, 0.0).sum(axis=-1)
        return total

    rater_loss = loss(stages[:, :, None] - other_stages)
    highest = verdicts.shape[1]
    # An unscored repeat is no rater's label: on a scale it lies at the end that is farther away.
    candidates = [stage - other_stages for stage in range(1, highest + 1)]
    candidates.append(np.maximum(np.maximum(other_stages - 1, highest - other_stages), 1))
    weights = np.column_stack([verdicts, 1 - verdicts.sum(axis=1)])
    wins = np.zeros((*stages.shape, 2))
    for weight, distances in zip(weights.T, candidates, strict=True):
        judge_loss = loss(distances)
        won = np.stack([rater_loss <= judge_loss, judge_loss <= rater_loss], axis=-1)
        wins += weight[:, None, None] * won
    is_defined = ~np.isnan(stages) & is_compared.any(axis=-1)
    return np.where(is_defined[..., None], wins, np.nan)


def _test(wins: Floats, epsilon: float, clusters: Codes) -> _Test:
    is_tested = ~np.isnan(wins[:, 0])
    rater, judge = wins[is_tested].T
    gap = rater - judge
    if not len(gap):
        return _Test(0, np.nan, np.nan, np.nan)
    if len(gap) < MIN_ITEMS:
        p = np.nan
    elif np.ptp(gap) == 0:  # without variance t is infinite, and p its limit
        p = 0.0 if gap[0] < epsilon else 1.0
    else:
        error, freedom = item_error(gap, grouped_codes(clusters, is_tested))
        p = float(special.stdtr(freedom, (gap.mean() - epsilon) / error))
    return _Test(len(gap), float(judge.mean()), float(gap.mean()), p)
