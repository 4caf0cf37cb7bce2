"""Tidy samples for analyses: cached results, the judges of a task as arrays, their distances."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import combinations
from typing import Any, TypeVar, Union
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.disagreement import Verdicts, squared_distances
from judge_gym.analysis.belief.masses import BoolArray, FloatArray, IntArray, Masses, sources
from judge_gym.analysis.frames import (
    JUDGE,
    PANEL,
    cluster_codes,
    first_replicates,
    first_rows,
    once_per_call,
    own_rows,
    select_rows,
)
from judge_gym.analysis.stats.intervals import (
    DISTANCE,
    MANY_DRAWS,
    Estimate,
    Scale,
    estimate,
)

Result = TypeVar("Result")
ALL_JUDGES = -1
"""The place of all judges together."""
COLUMNS = (
    *(JUDGE, "evidence", "replicate", "status", "mask", "n_stages", "call_id", "rubric"),
    *("rubric_kind", "rubric_draw", "flipped", "series", "display", "probe", "cluster"),
    "repeats",
)
"""The columns that panels are made of."""


@dataclass(frozen=True, eq=False)
class Panel:
    """The verdicts of one task and variant, each call once, without swapped rubrics."""

    key: dict[str, Any]
    """The values that identify the panel, such as task and variant."""
    judges: tuple[str, ...]
    evidence: tuple[Any, ...]
    n_stages: int
    ordinal: bool
    rows: pd.DataFrame
    """The columns of `_numbered`, of which texts are numbers."""
    judge: IntArray
    """The index of each row's judge."""
    item: IntArray
    """The index of each row's evidence item."""
    mask: IntArray
    """The chosen stages of each row, as bits."""
    clusters: IntArray
    """The number of each item's cluster."""
    lacks_draw: bool = False
    """Whether one of many draws of rubrics was left out."""

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of items and of judges."""
        return len(self.evidence), len(self.judges)

    @property
    def cell(self) -> IntArray:
        """The index of each row's cell: items, and judges within an item."""
        return self.item * len(self.judges) + self.judge

    def per_cell(self, values: FloatArray) -> FloatArray:
        """Returns the mean of row values by item and judge, ignoring missing values."""
        known = ~np.isnan(values)
        count = int(np.prod(self.size))
        sums = np.bincount(self.cell[known], values[known], count)
        n = np.bincount(self.cell[known], minlength=count)
        return ratio(sums, n).reshape(self.size)

    @cached_property
    def scored(self) -> IntArray:
        """The number of scored verdicts by item and judge."""
        count = int(np.prod(self.size))
        return np.bincount(self.cell[self.mask != 0], minlength=count).reshape(self.size)

    @cached_property
    def masses(self) -> Masses:
        """The mass function of each cell, item by item."""
        count = int(np.prod(self.size))
        return sources(self.cell, self.mask, frame=self.n_stages, cells=count).masses

    @cached_property
    def open_masses(self) -> Masses:
        """The mass function of each cell, with abstentions as mass on all stages."""
        if not self.abstained.any():
            return self.masses
        read, count = ~self.unreadable, int(np.prod(self.size))
        cell, mask = self.cell[read], self.mask[read]
        return sources(cell, mask, frame=self.n_stages, cells=count, abstentions="vacuous").masses

    @cached_property
    def shares(self) -> FloatArray:
        """The distribution over stages by item and judge."""
        return self.masses.pignistic().reshape(*self.size, self.n_stages)

    @cached_property
    def complete(self) -> BoolArray:
        """Which items every judge scored; none with fewer than two judges."""
        return np.asarray((self.scored > 0).all(axis=1) & (len(self.judges) > 1))

    @cached_property
    def distances(self) -> FloatArray:
        """The unbiased squared Jousselme distance, by item and pair of judges."""
        replicate = self.rows["repetition"].to_numpy()
        draw = self.rows["rubric_draw"].to_numpy(dtype=np.int64) if self.many_draws else None
        sides = [
            Verdicts(
                self.item[mine],
                replicate[mine],
                self.mask[mine],
                None if draw is None else draw[mine],
            )
            for mine in (self.judge == judge for judge in range(len(self.judges)))
        ]
        return squared_distances(sides, items=len(self.evidence))

    @cached_property
    def own_rubrics(self) -> bool:
        """Whether judges used different rubrics, so that they differ in judge and rubric."""
        rubrics, rubric = np.unique(self.rows["rubric"], return_inverse=True)
        used = np.unique(self.judge * len(rubrics) + rubric)
        return len(used) < len(np.unique(self.judge)) * len(rubrics)

    @cached_property
    def many_draws(self) -> bool:
        """Whether there are enough draws of rubrics to generalise beyond them."""
        return self.lacks_draw or self.rows["rubric_draw"].nunique() >= MANY_DRAWS

    @cached_property
    def without_each_draw(self) -> tuple["Panel", ...]:
        """The panel without each of its draws of rubrics in turn."""
        return tuple(self.without(draw) for draw in np.unique(self.rows["rubric_draw"]))

    def without(self, draw: int) -> "Panel":
        """Returns the panel without a draw of rubrics, if there are many draws."""
        if not self.many_draws:
            return self
        kept = (self.rows["rubric_draw"] != draw).to_numpy()
        return replace(self._kept(kept), lacks_draw=True)

    @property
    def in_blocks(self) -> bool:
        """Whether each draw of the judges' own rubrics is a block."""
        return self.own_rubrics and self.many_draws

    @cached_property
    def abstained(self) -> BoolArray:
        """Whether each row is an abstention."""
        return self.rows["abstained"].to_numpy()

    @cached_property
    def unreadable(self) -> BoolArray:
        """Whether each row is neither scored nor an abstention."""
        return self.rows["unreadable"].to_numpy()

    @property
    def rates(self) -> dict[str, float]:
        """The number of scored verdicts, and the shares of abstained and unreadable ones."""
        return self.rates_of(*range(len(self.judges)))

    def rates_of(self, *places: int) -> dict[str, float]:
        """Returns `rates` of some judges."""
        mine = np.isin(self.judge, places)
        abstained, unreadable = self.abstained[mine], self.unreadable[mine]
        return {
            "effective_n": int((~abstained & ~unreadable).sum()),
            "abstained": float(abstained.mean()),
            "unreadable": float(unreadable.mean()),
        }

    def of(self, *places: int) -> "Panel":
        """Returns the panel of some of the judges, on the same items."""
        renumbered = np.full(len(self.judges), -1)
        renumbered[list(places)] = np.arange(len(places))
        kept = self._kept(np.isin(self.judge, places))
        names = tuple(self.judges[place] for place in places)
        key = {**self.key, "judges": list(names)}
        return replace(kept, key=key, judges=names, judge=renumbered[kept.judge])

    def _kept(self, kept: BoolArray) -> "Panel":
        """Returns the panel of some of the rows, on the same items."""
        return replace(
            self,
            rows=self.rows[kept],
            judge=self.judge[kept],
            item=self.item[kept],
            mask=self.mask[kept],
        )


def panels(frame: pd.DataFrame, by: Sequence[str] = PANEL) -> Iterator[Panel]:
    """Yields the panels of a tidy frame, sorted by their keys, without swapped rubrics.

    Replicates that repeat each other count as one: the first.
    """
    # Selecting columns first makes it fast to select rows.
    own = select_rows(frame[[*dict.fromkeys([*by, *COLUMNS])]], ~frame["is_swap"])
    own = once_per_call(own, [*by, JUDGE])
    names, evidence = (pd.factorize(own[name], sort=True)[1] for name in (JUDGE, "evidence"))
    for group, part in _numbered(own).groupby([own[name] for name in by], observed=True):
        rows = first_replicates(part)
        judges, judge = np.unique(rows[JUDGE], return_inverse=True)
        items, item = np.unique(rows["evidence"], return_inverse=True)
        yield Panel(
            key=dict(zip(by, group, strict=True)),
            judges=tuple(map(str, names[judges])),
            evidence=tuple(evidence[items].tolist()),
            n_stages=int(rows["n_stages"].max()),
            ordinal=not rows["nominal"].any(),
            rows=rows,
            judge=judge,
            item=item,
            mask=rows["mask"].to_numpy(),
            clusters=pd.factorize(rows["cluster"].to_numpy()[first_rows(item)])[0],
        )


def _numbered(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns samples with numbers in place of texts, which are slow to select and to compare."""
    texts = (JUDGE, "evidence", "rubric", "series")
    display = rows["display"].where(rows["display"] != "")
    columns = {
        **{name: pd.factorize(rows[name], sort=True)[0] for name in texts},
        "repetition": rows.groupby(["series", "replicate"]).ngroup(),
        "shown": rows.groupby(["replicate", "flipped", "rubric_draw"]).ngroup(),
        "display": pd.factorize(display)[0],  # -1 if it is unknown
        "cluster": cluster_codes(rows),
        "nominal": rows["rubric_kind"] == "nominal",
        "abstained": rows["status"] == "abstained",
        "unreadable": ~rows["status"].isin(["scored", "abstained"]),
    }
    kept = ["mask", "n_stages", "rubric_draw", "flipped", "probe", "repeats"]
    return pd.DataFrame(columns | {name: rows[name] for name in kept})


def mean_over_items(
    panel: Panel,
    values: Callable[[Panel], FloatArray],
    scale: Scale = DISTANCE,
    *,
    mean_over_draws: bool = False,
) -> Estimate:
    """Returns a mean over items, with an interval that covers many draws of rubrics too.

    `values` computes one value per item of a panel; NaN if an item has none.
    """
    without = [values(part) for part in panel.without_each_draw] if panel.many_draws else []
    return estimate(
        values(panel),
        panel.clusters,
        scale=scale,
        without=without,
        mean_over_draws=mean_over_draws,
    )


def mean_of_cells(
    panel: Panel,
    cells: Callable[[Panel], FloatArray],
    scale: Scale = DISTANCE,
    place: int = ALL_JUDGES,
) -> Estimate:
    """Returns a mean over items of one judge's cells, or of the mean over all judges.

    `cells` computes one value per item and judge of a panel; `place` is the index of the judge.
    """

    def values(of: Panel) -> FloatArray:
        return row_means(cells(of)) if place == ALL_JUDGES else cells(of)[:, place]

    return mean_over_items(panel, values, scale, mean_over_draws=True)


def once_per_panel(values: Callable[[Panel], Result]) -> Callable[[Panel], Result]:
    """Keeps the results of a function of a panel for as long as the panel lives."""
    results: WeakKeyDictionary[Panel, Result] = WeakKeyDictionary()

    @wraps(values)
    def kept(panel: Panel) -> Result:
        if panel not in results:
            results[panel] = values(panel)
        return results[panel]

    return kept


def part_of(
    cells: Callable[[Panel], Mapping[str, FloatArray]], name: str
) -> Callable[[Panel], FloatArray]:
    """Returns a function that selects one of several values computed together."""
    return lambda panel: cells(panel)[name]


def ratio(sums: FloatArray | IntArray, n: FloatArray | IntArray) -> FloatArray:
    """Returns a quotient; not a number where the denominator is not positive.

    >>> ratio(np.array([1.0, 0.0]), np.array([2, 0])).tolist()
    [0.5, nan]
    """
    found: FloatArray = np.divide(sums, n, out=np.full(np.shape(sums), np.nan), where=n > 0)
    return found


def row_means(values: FloatArray) -> FloatArray:
    """Returns the mean of each row, ignoring missing values."""
    known = ~np.isnan(values)
    return ratio(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1))


Samples = Union[pd.DataFrame, "Dataset"]
"""A tidy frame, or a dataset that shares its results with other analyses."""


class Dataset:
    """A tidy frame that keeps the results of analyses which several others read."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._results: dict[Hashable, Any] = {}

    @staticmethod
    def of(samples: Samples) -> "Dataset":
        """Returns the dataset of a frame; a dataset is returned as it is."""
        return samples if isinstance(samples, Dataset) else Dataset(samples)

    def compute(self, analysis: Callable[[pd.DataFrame], Result]) -> Result:
        """Returns the result of an analysis of the frame, computing it on the first call."""
        if analysis not in self._results:
            self._results[analysis] = analysis(self.frame)
        result: Result = self._results[analysis]
        return result

    def derive(self, make: Callable[..., Result], *options: Hashable) -> Result:
        """Returns what is made of the dataset with some options, making it on the first call."""
        if (make, options) not in self._results:
            self._results[make, options] = make(self, *options)
        result: Result = self._results[make, options]
        return result

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """The judges of each task and variant, under the rubrics of their designs."""
        return tuple(panels(self.frame))

    @cached_property
    def without_pairs(self) -> "Dataset":
        """The samples that are not pairwise comparisons, which have their own rules."""
        return self._where(~self.frame["pair"])

    @cached_property
    def ordinal(self) -> "Dataset":
        """The samples under ordinal rubrics."""
        return self._where(self.frame["rubric_kind"] == "ordinal")

    @cached_property
    def own(self) -> pd.DataFrame:
        """The samples under the rubrics of their designs, without swaps."""
        return own_rows(self.frame)

    @cached_property
    def scored(self) -> bool:
        """Whether any sample without a swapped rubric has a score."""
        return bool((self.own["status"] == "scored").any())

    def _where(self, kept: pd.Series) -> "Dataset":
        rows = select_rows(self.frame, kept)
        return self if rows is self.frame else Dataset(rows)


def item_distances(
    frame: pd.DataFrame, by: Sequence[str], without: int | None = None
) -> pd.DataFrame:
    """Returns the distance of every two judges on every item: by, judge, other, evidence, distance.

    Within a group, a judge's verdicts on an item are pooled, swaps included. The distance is NaN
    if a judge has fewer than two scored replicates. A draw of rubrics can be left out of groups
    with many draws.
    """
    parts = []
    for panel in panels(frame.assign(is_swap=False), by):
        if without is not None:
            panel = panel.without(without)
        pairs = list(combinations(panel.judges, 2))
        values = {
            "judge": [judge for judge, _ in pairs for _ in panel.evidence],
            "other": [other for _, other in pairs for _ in panel.evidence],
            "evidence": panel.evidence * len(pairs),
            "distance": panel.distances.T.ravel(),
        }
        parts += [pd.DataFrame(panel.key | values)] if pairs else []
    columns = [*by, "judge", "other", "evidence", "distance"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def distances_without_draws(frame: pd.DataFrame, by: Sequence[str]) -> list[pd.DataFrame]:
    """Returns `item_distances` without each draw of rubrics in turn; empty if draws are few."""
    draws = frame["rubric_draw"].unique()
    if len(draws) < MANY_DRAWS:
        return []
    return [item_distances(frame, by, without=int(draw)) for draw in sorted(draws)]


def common_rubrics(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the samples under a rubric that no judge of the panel wrote."""
    return frame[~frame["rubric_author"].isin(frame[JUDGE].unique())]


def per_item(distances: pd.DataFrame, by: Sequence[str] = ()) -> pd.Series:
    """Returns the mean distance on each item, over pairs of judges and everything not in `by`."""
    known = distances.dropna(subset=["distance"])
    return known.groupby([*by, "evidence"], observed=True)["distance"].mean()
