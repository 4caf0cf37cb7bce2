"""The judges of one task and variant, as arrays: what measures of disagreement are computed on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.belief import Masses, Verdicts, sources, squared_distances, stage_masks
from judge_gym.analysis.belief.masses import BoolArray, FloatArray, IntArray
from judge_gym.analysis.frames import JUDGE, once_per_call
from judge_gym.analysis.stats.intervals import Estimate, skewed
from judge_gym.analysis.stats.rubric_draws import DRAWS_FOR_BLOCKS, Estimator, estimated

PANEL = ("task", "variant")
EVERYONE = -1
"""The place of all judges together."""
_OPTIONAL: dict[str, Any] = {
    "rubric": 0,
    "rubric_kind": "ordinal",
    "rubric_draw": 0,
    "flipped": False,
    "series": "",
    "display": "",
    "probe": np.nan,
}
_COLUMNS = (JUDGE, "evidence", "replicate", "status", "mask", "n_stages", "call_id")
COLUMNS = (*_COLUMNS, *_OPTIONAL)
"""What a panel reads of a sample."""


@dataclass(frozen=True, eq=False)
class Panel:
    """The verdicts of one task and variant under the judges' own rubrics, each call once."""

    key: dict[str, Any]
    """What names the panel, such as task and variant."""
    judges: tuple[str, ...]
    evidence: tuple[Any, ...]
    n_stages: int
    ordinal: bool
    rows: pd.DataFrame
    judge: IntArray
    """The place of each row's judge, and so on."""
    item: IntArray
    mask: IntArray
    one_less: bool = False
    """Whether it is a panel of many draws of rubrics without one of them."""

    @property
    def size(self) -> tuple[int, int]:
        """How many items and judges."""
        return len(self.evidence), len(self.judges)

    @property
    def cell(self) -> IntArray:
        """The cell of each row: its item, and within it its judge."""
        return self.item * len(self.judges) + self.judge

    def per_cell(self, values: FloatArray) -> FloatArray:
        """The mean of what rows say, items by judges; rows and cells that say nothing are NaN."""
        known = ~np.isnan(values)
        count = int(np.prod(self.size))
        sums = np.bincount(self.cell[known], values[known], count)
        n = np.bincount(self.cell[known], minlength=count)
        return ratio(sums, n).reshape(self.size)

    @cached_property
    def scored(self) -> IntArray:
        """How many verdicts carry a score, items by judges."""
        count = int(np.prod(self.size))
        return np.bincount(self.cell[self.mask != 0], minlength=count).reshape(self.size)

    @cached_property
    def masses(self) -> Masses:
        """The mass function of each cell, item by item."""
        count = int(np.prod(self.size))
        return sources(self.cell, self.mask, frame=self.n_stages, cells=count).masses

    @cached_property
    def open_masses(self) -> Masses:
        """The same where abstentions are mass on all stages, instead of being left out."""
        if not self.abstained.any():
            return self.masses
        told, count = ~self.unreadable, int(np.prod(self.size))
        cell, mask = self.cell[told], self.mask[told]
        found = sources(cell, mask, frame=self.n_stages, cells=count, abstentions="vacuous")
        return found.masses

    @cached_property
    def shares(self) -> FloatArray:
        """Each judge's distribution on each item: items by judges by stages."""
        return self.masses.pignistic().reshape(*self.size, self.n_stages)

    @cached_property
    def complete(self) -> BoolArray:
        """The items on which every judge has a scored verdict; none with fewer than two judges."""
        return np.asarray((self.scored > 0).all(axis=1) & (len(self.judges) > 1))

    @cached_property
    def distances(self) -> FloatArray:
        """The squared Jousselme distance on each item of each pair of judges, unbiased."""
        replicate = pd.factorize(self.rows["replicate"])[0].astype(np.int64)
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
        """Whether judges used rubrics of their own, so that they differ in more than judgement."""
        pairs = pd.DataFrame({"judge": self.judge, "rubric": self.rows["rubric"].to_numpy()})
        used = pairs.drop_duplicates().groupby("judge")["rubric"].agg(set)
        return any(rubrics != used.iloc[0] for rubrics in used)

    @cached_property
    def many_draws(self) -> bool:
        """Whether there are enough draws of rubrics to speak of rubrics that were not drawn."""
        return self.one_less or self.rows["rubric_draw"].nunique() >= DRAWS_FOR_BLOCKS

    @cached_property
    def left_out(self) -> tuple["Panel", ...]:
        """The panel without each of its draws of rubrics in turn."""
        return tuple(self.without(draw) for draw in np.unique(self.rows["rubric_draw"]))

    def without(self, draw: int) -> "Panel":
        """The panel without a draw of rubrics, if there are many."""
        if not self.many_draws:
            return self
        kept = (self.rows["rubric_draw"] != draw).to_numpy()
        return replace(self._kept(kept), one_less=True)

    @property
    def in_blocks(self) -> bool:
        """Whether each draw of own rubrics is treated as a block."""
        return self.own_rubrics and self.many_draws

    @cached_property
    def abstained(self) -> BoolArray:
        """Whether each row is an abstention."""
        return (self.rows["status"] == "abstained").to_numpy(dtype=bool)

    @cached_property
    def unreadable(self) -> BoolArray:
        """Whether each row is neither scored nor an abstention."""
        return ~self.rows["status"].isin(["scored", "abstained"]).to_numpy(dtype=bool)

    @property
    def rates(self) -> dict[str, float]:
        """The verdicts that carry a score, and the shares of those that do not."""
        return self.rates_of(*range(len(self.judges)))

    def rates_of(self, *places: int) -> dict[str, float]:
        """The same of some judges."""
        mine = np.isin(self.judge, places)
        abstained, unreadable = self.abstained[mine], self.unreadable[mine]
        return {
            "effective_n": int((~abstained & ~unreadable).sum()),
            "abstained": float(abstained.mean()),
            "unreadable": float(unreadable.mean()),
        }

    def of(self, *places: int) -> "Panel":
        """Some of the judges, on the same items."""
        renumbered = np.full(len(self.judges), -1)
        renumbered[list(places)] = np.arange(len(places))
        kept = self._kept(np.isin(self.judge, places))
        names = tuple(self.judges[place] for place in places)
        key = {**self.key, "judges": list(names)}
        return replace(kept, key=key, judges=names, judge=renumbered[kept.judge])

    def _kept(self, kept: BoolArray) -> "Panel":
        """Some of the rows, on the same items."""
        return replace(
            self,
            rows=self.rows[kept],
            judge=self.judge[kept],
            item=self.item[kept],
            mask=self.mask[kept],
        )


Judged = pd.DataFrame | Sequence[Panel]
"""Samples, or their panels where these are at hand: what is known of a panel is kept with it."""


def panels(frame: Judged, by: Sequence[str] = PANEL) -> Iterator[Panel]:
    """The panels of a frame, in the order of their names; samples under rivals' rubrics are out."""
    if not isinstance(frame, pd.DataFrame):
        yield from frame
        return
    given = masked(frame)
    missing = {name: value for name, value in _OPTIONAL.items() if name not in given}
    given = given.assign(**missing)[[*dict.fromkeys([*by, *COLUMNS])]]
    if "is_swap" in frame:
        given = given[~frame["is_swap"].to_numpy(dtype=bool)]
    for group, part in given.groupby(list(by), observed=True):
        rows = once_per_call(part, [JUDGE])
        judge, judges = pd.factorize(rows[JUDGE], sort=True)
        item, evidence = pd.factorize(rows["evidence"], sort=True)
        yield Panel(
            key=dict(zip(by, group, strict=True)),
            judges=tuple(map(str, judges)),
            evidence=tuple(evidence.tolist()),
            n_stages=int(rows["n_stages"].max()),
            ordinal=bool((rows["rubric_kind"] != "nominal").all()),
            rows=rows,
            judge=judge.astype(np.int64),
            item=item.astype(np.int64),
            mask=rows["mask"].to_numpy(dtype=np.int64),
        )


def mean_over_items(
    panel: Panel,
    values: Callable[[Panel], FloatArray],
    estimate: Estimator = skewed,
    *,
    apart: bool = False,
) -> Estimate:
    """A mean over items; many draws of rubrics are allowed for.

    Args:
        panel: the judges.
        values: a value per item of a panel; not a number where an item has none.
        estimate: what tells the interval over items.
        apart: whether values are means over draws, and do not compare judges.
    """
    without = [values(part) for part in panel.left_out] if panel.many_draws else []
    return estimated(estimate, values(panel), without, apart=apart)


def mean_of_cells(
    panel: Panel,
    cells: Callable[[Panel], FloatArray],
    estimate: Estimator = skewed,
    place: int = EVERYONE,
) -> Estimate:
    """A mean over items of one judge's cells, or of the mean over all judges.

    Args:
        panel: the judges.
        cells: a value per item and judge of a panel.
        estimate: what tells the interval over items.
        place: which judge.
    """

    def values(of: Panel) -> FloatArray:
        return row_means(cells(of)) if place == EVERYONE else cells(of)[:, place]

    return mean_over_items(panel, values, estimate, apart=True)


def part_of(
    cells: Callable[[Panel], Mapping[str, FloatArray]], name: str
) -> Callable[[Panel], FloatArray]:
    """One of the values by name that are worked out together."""
    return lambda panel: cells(panel)[name]


def ratio(sums: FloatArray | IntArray, n: FloatArray | IntArray) -> FloatArray:
    """A quotient; not a number where there is nothing to divide by.

    >>> ratio(np.array([1.0, 0.0]), np.array([2, 0])).tolist()
    [0.5, nan]
    """
    found: FloatArray = np.divide(sums, n, out=np.full(np.shape(sums), np.nan), where=n > 0)
    return found


def row_means(values: FloatArray) -> FloatArray:
    """The mean of each row over what is a number."""
    known = ~np.isnan(values)
    return ratio(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1))


def masked(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with what each sample chose as bits; a tidy frame has them already."""
    if "mask" in frame:
        return frame
    texts = frame["stages"].astype("string").fillna("").where(frame["status"] == "scored", "")
    masks = pd.Series(0, index=frame.index, dtype=np.int64)
    for scale, part in texts.groupby(frame["n_stages"].astype(int)):
        codes, distinct = pd.factorize(part)
        masks.loc[part.index] = stage_masks(list(distinct), frame=int(str(scale)))[codes]
    return frame.assign(mask=masks)
