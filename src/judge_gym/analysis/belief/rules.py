"""Combination rules over many groups of sources at once; all are n-ary and symmetric."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from judge_gym.analysis.belief.masses import (
    BoolArray,
    FloatArray,
    Focal,
    IntArray,
    Masses,
    focal,
    matched,
    summed,
)
from judge_gym.analysis.belief.redistribution import own_weights, product_weights, redistributed
from judge_gym.errors import DesignError, unknown

Rule = Literal["dempster", "yager", "dubois_prade", "pcr5", "pcr6", "murphy", "average"]
RULES: tuple[Rule, ...] = get_args(Rule)


@dataclass(frozen=True, slots=True, eq=False)
class CombinedGroups:
    """The combination of each group of sources."""

    masses: Masses
    """One row per group; undefined without sources, or in total conflict under Dempster."""
    conflict: FloatArray
    """K, the conjunctive mass of the empty set; it does not depend on the rule."""
    total: BoolArray
    """Whether the sources cannot all be true at once: K is exactly 1."""


class Fused(NamedTuple):
    """The conjunctive combination, group by group, without the empty set."""

    table: Focal
    """The masses, scaled to sum to 1; a group in total conflict has no entry."""
    logs: FloatArray
    """The logarithm of 1 - K, exact even if 1 - K underflows; NaN without sources."""

    @property
    def agreement(self) -> FloatArray:
        """1 - K."""
        return np.exp(self.logs)


def combine_groups(
    masses: Masses, group: IntArray, *, rule: Rule, groups: int | None = None
) -> CombinedGroups:
    """Combines the rows (one per source) of each group, without undefined rows.

    Groups are numbered from 0; by default, `groups` is the largest number plus one.
    """
    if rule not in RULES:
        raise DesignError(unknown("rule", rule, RULES), choices=RULES)
    if len(group) != masses.count:
        raise DesignError(f"{len(group)} groups for {masses.count} masses; each mass has one")
    if groups is None:
        groups = int(group.max()) + 1 if len(group) else 0
    panel = _Panel(masses, group, groups)
    fused = panel.conjunctive()
    table = COMBINE[rule](panel, fused)
    conflict = np.maximum(-np.expm1(fused.logs), 0.0)
    return CombinedGroups(Masses(masses.frame, groups, table), conflict, np.isneginf(fused.logs))


class _Panel:
    """The sources of each group, in the order of their rows."""

    def __init__(self, masses: Masses, group: IntArray, groups: int) -> None:
        self.masses, self.groups = masses, groups
        rows = np.flatnonzero(masses.defined)
        rows = rows[np.argsort(group[rows], kind="stable")]
        self.sources = np.bincount(group[rows], minlength=groups)
        """The number of sources of each group."""
        first = np.cumsum(self.sources) - self.sources
        place = np.arange(len(rows)) - first[group[rows]]
        self.rows = rows[np.lexsort((group[rows], place))]
        """The rows: the first source of each group, then the second of each, and so on."""
        self.group = group

    def steps(self) -> Iterator[Focal]:
        """Yields the first source of every group that has one, then the second, and so on."""
        low = 0
        for step in range(int(self.sources.max(initial=0))):
            high = low + int((self.sources > step).sum())
            rows = self.rows[low:high]
            taken = self.masses.take(rows).focal
            yield taken._replace(row=self.group[rows][taken.row])
            low = high

    def conjunctive(self) -> Fused:
        """Intersects the sources one by one, rescaling so that nothing underflows."""
        logs = np.where(self.sources > 0, 0.0, np.nan)
        steps = self.steps()
        table = next(steps, self.masses.focal)
        for step in steps:
            idle, left, right = self.crossed(table.row, step)
            both = Focal(
                table.row[left],
                table.mask[left] & step.mask[right],
                table.weight[left] * step.weight[right],
            )
            able = both.mask != 0
            lost = np.bincount(both.row[~able], both.weight[~able], minlength=self.groups)
            met = both.where(able)
            table = focal(
                np.concatenate([table.row[idle], met.row]),
                np.concatenate([table.mask[idle], met.mask]),
                np.concatenate([table.weight[idle], met.weight]),
            )
            kept = np.bincount(table.row, table.weight, minlength=self.groups)
            asked = np.unique(step.row)
            asked = asked[kept[asked] + lost[asked] > 0]  # the others are in total conflict already
            with np.errstate(divide="ignore"):
                logs[asked] += np.log(kept[asked] / (kept[asked] + lost[asked]))
            table = table._replace(weight=table.weight / kept[table.row])
        return Fused(table, logs)

    def by_group(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yields groups with equally many sources, and the rows of each group."""
        rows = self.rows[np.argsort(self.group[self.rows], kind="stable")]
        number = self.sources[self.group[rows]]
        for n in np.unique(self.sources[self.sources > 1]).tolist():
            yield np.flatnonzero(self.sources == n), rows[number == n].reshape(-1, n)

    def crossed(self, row: IntArray, step: Focal) -> tuple[IntArray, IntArray, IntArray]:
        """Returns the entries of groups without a further source, and the pairs of the others."""
        asked = np.zeros(self.groups, dtype=bool)
        asked[step.row] = True
        return np.flatnonzero(~asked[row]), *matched(row, step.row)

    def mean(self) -> Focal:
        """Returns the mean mass of each group."""
        entries = self.masses.focal
        row = self.group[entries.row]
        return focal(row, entries.mask, entries.weight / self.sources[row])


# --- the rules -----------------------------------------------------------------------------------


def _dempster(panel: _Panel, fused: Fused) -> Focal:
    return fused.table


def _yager(panel: _Panel, fused: Fused) -> Focal:
    conflicting = np.flatnonzero(fused.logs < 0)
    whole = np.full(len(conflicting), panel.masses.whole)
    return _with(fused, Focal(conflicting, whole, -np.expm1(fused.logs[conflicting])))


def _dubois_prade(panel: _Panel, fused: Fused) -> Focal:
    """Tracks the intersection and the union of each tuple, merging equal pairs at each step."""
    steps = panel.steps()
    first = next(steps, panel.masses.focal)
    (row, meet, join), weight = summed((first.row, first.mask, first.mask), first.weight)
    for step in steps:
        idle, left, right = panel.crossed(row, step)
        (row, meet, join), weight = summed(
            (
                np.concatenate([row[idle], row[left]]),
                np.concatenate([meet[idle], meet[left] & step.mask[right]]),
                np.concatenate([join[idle], join[left] | step.mask[right]]),
            ),
            np.concatenate([weight[idle], weight[left] * step.weight[right]]),
        )
    return focal(row, np.where(meet == 0, join, meet), weight)


def _pcr5(panel: _Panel, fused: Fused) -> Focal:
    return _with(fused, redistributed(panel.masses, panel.by_group(), product_weights))


def _pcr6(panel: _Panel, fused: Fused) -> Focal:
    return _with(fused, redistributed(panel.masses, panel.by_group(), own_weights))


def _murphy(panel: _Panel, fused: Fused) -> Focal:
    groups = np.repeat(np.arange(panel.groups), panel.sources)
    means = Masses(panel.masses.frame, panel.groups, panel.mean()).take(groups)
    return _Panel(means, groups, panel.groups).conjunctive().table


def _average(panel: _Panel, fused: Fused) -> Focal:
    return panel.mean()


def _with(fused: Fused, more: Focal) -> Focal:
    """Adds entries to the conjunctive part at its true size."""
    agreed = fused.table
    return focal(
        np.concatenate([agreed.row, more.row]),
        np.concatenate([agreed.mask, more.mask]),
        np.concatenate([agreed.weight * fused.agreement[agreed.row], more.weight]),
    )


COMBINE: dict[Rule, Callable[[_Panel, Fused], Focal]] = {
    "dempster": _dempster,
    "yager": _yager,
    "dubois_prade": _dubois_prade,
    "pcr5": _pcr5,
    "pcr6": _pcr6,
    "murphy": _murphy,
    "average": _average,
}
