"""Judges compared with people: agreement, and whether a judge can replace a rater.

Labels have columns tag, evidence, rater and stage. A judge's rating of an item summarises its
replicates; swaps are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from judge_gym.analysis.frames import CELL, ITEM
from judge_gym.analysis.stats.agreement import ratings
from judge_gym.analysis.stats.clusters import (
    Codes,
    grouped_codes,
)
from judge_gym.analysis.stats.intervals import (
    Floats,
    item_error,
)
from judge_gym.analysis.verdicts import panels
from judge_gym.errors import DesignError, unknown
from judge_gym.studies.declarations import EPSILON, Epsilon, epsilon_name

COLUMNS = ("tag", "evidence", "rater", "stage")
FALSE_DISCOVERIES = 0.05
WINNING_RATE = 0.5
MIN_ITEMS = 30
MIN_RATERS = 3


def labelled(frame: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Returns people's stages with the cells that judged the same items.

    A stage outside the scale of its experiment is refused. Columns: CELL, evidence, rater, stage,
    n_stages, cluster.
    """
    for column in COLUMNS:
        if column not in labels:
            raise DesignError(
                f"labels have no column {column!r}; they need {', '.join(COLUMNS)}", choices=COLUMNS
            )
    cells = frame.groupby(["tag", *CELL], observed=True)["n_stages"].max().reset_index()
    found = labels.merge(cells, on="tag")
    outside = found[(found["stage"] < 1) | (found["stage"] > found["n_stages"])]
    if len(outside):
        row = outside.iloc[0]
        raise DesignError(
            f"stage {row['stage']} by rater {row['rater']!r}; choose 1 to {row['n_stages']}"
        )
    clusters = frame[["task", "evidence", "cluster"]].drop_duplicates()
    found = found.drop_duplicates([*ITEM, "rater"]).merge(clusters, on=["task", "evidence"])
    return found[[*ITEM, "rater", "stage", "n_stages", "cluster"]]


# --- the alternative annotator test (Calderon, Reichart and Dror 2025) ---------------------------


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
    judge: Floats,
    clusters: Codes | None = None,
    *,
    ordered: bool,
    epsilon: Epsilon = "expert",
) -> AltTest:
    """Tests whether a judge represents the raters as well as most of them represent each other.

    Args:
        stages: raters' stages by item and rater; NaN where a rater gave none.
        judge: the judge's stage of each item.
        clusters: the number of each item's cluster.
        ordered: whether stages have an order, which decides what is close.
        epsilon: how far the judge may be behind a rater.
    """
    wins = _wins(stages, judge[:, None], ordered)
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


def alt_tests(
    frame: pd.DataFrame, labels: pd.DataFrame, epsilon: Epsilon = "expert"
) -> dict[tuple[str, ...], AltTest]:
    """Makes the alternative annotator test of each configured judge with labels."""
    return {
        key: alternative_annotator_test(
            data.stages, data.judge, data.codes, ordered=data.ordered, epsilon=epsilon
        )
        for key, data in _rated_items(frame, labels, epsilon)
    }


def alt_test(
    frame: pd.DataFrame, labels: pd.DataFrame, epsilon: Epsilon = "expert"
) -> pd.DataFrame:
    """Lists the alternative annotator tests of `alt_tests`, a row per configured judge.

    Returns:
        Columns CELL, epsilon, raters (with enough items), omega (the share of them that the judge
        beats), advantage (how often it is at least as close to the others as a rater), passed,
        published_omega and published_passed (where items are taken as independent), and missing:
        what the test lacks, in words. In that case omega and passed are null.
    """
    rows = [
        {**dict(zip(CELL, key, strict=True)), **test.row()}
        for key, test in alt_tests(frame, labels, epsilon).items()
    ]
    columns = ["epsilon", "raters", "omega", "advantage", "passed"]
    columns += ["published_omega", "published_passed", "missing"]
    return pd.DataFrame(rows, columns=[*CELL, *columns])


def alt_test_raters(
    frame: pd.DataFrame, labels: pd.DataFrame, epsilon: Epsilon = "expert"
) -> pd.DataFrame:
    """Runs the alternative annotator test for each rater, left out in turn.

    Whichever of judge and rater is closer to the remaining raters wins an item; both win a tie. On
    ordinal rubrics closeness is the root mean squared distance, on nominal ones the share of equal
    stages; the judge's rating is its median or its most frequent stage.

    Returns:
        Columns CELL, rater, items, advantage (the judge's mean win), difference (the rater's mean
        win minus the judge's), p (one-sided, difference below epsilon), adjusted (Benjamini and
        Yekutieli), beaten. The last three are null with fewer than 30 items or too few clusters.
    """
    rows = []
    for key, data in _rated_items(frame, labels, epsilon):
        wins = _wins(data.stages, data.judge[:, None], data.ordered)
        tests = _rater_tests(wins, epsilon, data.codes)
        rows += [[*key, rater, *test] for rater, test in zip(data.raters, tests, strict=True)]
    columns = ["rater", "items", "advantage", "difference", "p", "adjusted", "beaten"]
    return pd.DataFrame(rows, columns=[*CELL, *columns])


class _RatedItems(NamedTuple):
    stages: Floats
    """By item and rater; NaN where a rater gave none."""
    judge: Floats
    codes: Codes
    ordered: bool
    raters: list[str]


def _rated_items(
    frame: pd.DataFrame, labels: pd.DataFrame, epsilon: Epsilon
) -> Iterator[tuple[tuple[str, ...], _RatedItems]]:
    """Yields the items that each configured judge and some rater rated."""
    if isinstance(epsilon, str) and epsilon not in EPSILON:
        raise DesignError(unknown("epsilon", epsilon, list(EPSILON)), choices=list(EPSILON))
    people = {key: part for key, part in labelled(frame, labels).groupby(CELL, observed=True)}
    kinds = frame.groupby(CELL, observed=True)["rubric_kind"].first()
    for verdicts in panels(frame):
        evidence = pd.Index(verdicts.units)
        for setup, judge in enumerate(verdicts.setups):
            key = (*verdicts.key.values(), judge)
            if key not in people:
                continue
            table = people[key].pivot(index="evidence", columns="rater", values="stage")
            ordered = kinds[key] != "nominal"
            rated = ratings(verdicts, "median" if ordered else "most")[:, setup]
            both = np.isin(evidence, table.index) & ~np.isnan(rated)
            yield (
                tuple(map(str, key)),
                _RatedItems(
                    stages=table.reindex(evidence[both]).to_numpy(float),
                    judge=rated[both],
                    codes=verdicts.clusters[both],
                    ordered=ordered,
                    raters=[str(rater) for rater in table.columns],
                ),
            )


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


def _wins(given: Floats, judge: Floats, ordered: bool) -> Floats:
    """Returns wins by item and rater: the rater's win, then the judge's.

    They are NaN if the rater gave no stage, or no other rater did.
    """
    other = given[:, None, :]  # items, the rater left out, the remaining raters
    remain = ~np.isnan(other) & ~np.eye(given.shape[1], dtype=bool)

    def loss(stage: Floats) -> Floats:
        apart = stage[:, :, None] - other
        each = apart**2 if ordered else (apart != 0).astype(float)
        lost: Floats = np.where(remain, each, 0.0).sum(axis=-1)
        return lost

    rater, judged = loss(given), loss(np.broadcast_to(judge, given.shape))
    won = np.stack([rater <= judged, judged <= rater], axis=-1).astype(float)
    defined = ~np.isnan(given) & remain.any(axis=-1)
    return np.where(defined[..., None], won, np.nan)


def _test(wins: Floats, epsilon: float, clusters: Codes) -> _Test:
    known = ~np.isnan(wins[:, 0])
    rater, judge = wins[known].T
    gap = rater - judge
    if not len(gap):
        return _Test(0, np.nan, np.nan, np.nan)
    if len(gap) < MIN_ITEMS:
        p = np.nan
    elif np.ptp(gap) == 0:  # without variance t is infinite, and p its limit
        p = 0.0 if gap[0] < epsilon else 1.0
    else:
        error, freedom = item_error(gap, grouped_codes(clusters, known))
        p = float(special.stdtr(freedom, (gap.mean() - epsilon) / error))
    return _Test(len(gap), float(judge.mean()), float(gap.mean()), p)
