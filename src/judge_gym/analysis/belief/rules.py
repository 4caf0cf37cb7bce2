"""Combination rules over many groups of sources at once, all n-ary and symmetric."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
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
from judge_gym.errors import DesignError, unknown

CELLS = 1 << 16
"""The number of tuples held at once: a tensor of them fits a processor's cache."""
MOST_TUPLES = 2_000_000_000
"""The largest number of tuples in all; more would take over a minute."""

Weights = Callable[[list[IntArray], list[FloatArray]], list[FloatArray]]
"""Maps the sets and masses of each source, as axes of a tensor, to the weight of its set."""


def own_weights(masks: list[IntArray], masses: list[FloatArray]) -> list[FloatArray]:
    """Weighs sets as PCR6 does: by the mass that the source gave the set."""
    return masses


def product_weights(masks: list[IntArray], masses: list[FloatArray]) -> list[FloatArray]:
    """Weighs sets as PCR5 does: by the product of the masses of all sources that chose it.

    The weight is assigned to the first of these sources, so that it counts once.
    """
    weights = []
    for source, weight in enumerate(masses):
        for other, mass in enumerate(masses):
            if other != source:
                factor = 0.0 if other < source else mass
                weight = weight * np.where(masks[other] == masks[source], factor, 1.0)
        weights.append(weight)
    return weights


def redistributed(
    masses: Masses, panels: Iterable[tuple[IntArray, IntArray]], weights: Weights
) -> Focal:
    """Redistributes the mass of conflicting tuples to their sets by weight.

    `panels` are groups with equally many sources, with the rows of each group.
    """
    panels = list(panels)
    size = np.bincount(masses.focal.row, minlength=masses.count)
    tuples = sum(float(size[rows].astype(float).prod(axis=1).sum()) for _, rows in panels)
    if tuples > MOST_TUPLES:
        raise DesignError(
            f"{tuples:.3g} tuples of focal sets, more than {MOST_TUPLES:,}: combine fewer groups "
            "or sources, pool verdicts into frequencies, or choose another rule"
        )
    blocks = [Focal(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for groups, rows in panels:
        rows = np.take_along_axis(rows, np.argsort(-size[rows], axis=1), axis=1)
        for block in _blocks(size[rows]):
            blocks.append(_redistribute_block(masses.focal, groups[block], rows[block], weights))
    row, mask, weight = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return focal(row, mask, weight)


def _blocks(size: IntArray) -> Iterator[IntArray]:
    """Yields groups of similar size, as many as one tensor may hold."""
    order = np.lexsort(size.T[::-1])[::-1]
    low = 0
    while low < len(order):
        # Sorted by the first axis, then the second, and so on: later axes may grow in a block.
        reach = order[low : low + max(1, CELLS // prod(size[order[low]].tolist()))]
        padded = np.maximum.accumulate(size[reach], axis=0).prod(axis=1, dtype=float)
        fits = padded * np.arange(1, len(reach) + 1) <= CELLS
        high = low + max(1, int(fits.argmin()) if not fits.all() else len(reach))
        yield order[low:high]
        low = high


def _redistribute_block(
    entries: Focal, groups: IntArray, rows: IntArray, weights: Weights
) -> Focal:
    """Redistributes the mass of a block of groups."""
    padded = [_padded(entries, source) for source in rows.T]
    back = [np.zeros_like(mass) for _, mass in padded]
    # The smallest sources come last. Sources with a single set need no axis of their own.
    widths = [mass.shape[1] for _, mass in padded if mass.shape[1] > 1] or [1]
    for cut in _cuts(widths, len(rows)):
        masks, masses = [], []
        for source, (sets, values) in enumerate(padded):
            part = cut[source] if source < len(cut) else slice(None)
            shape = [-1 if axis == source else 1 for axis in range(len(widths))]
            masks.append(sets[:, part].reshape(len(rows), *shape))
            masses.append(values[:, part].reshape(len(rows), *shape))
        meet, share = reduce(np.bitwise_and, masks), reduce(np.multiply, masses)
        share = np.where(meet == 0, share, 0.0)
        weight = weights(masks, masses)
        np.divide(share, reduce(np.add, weight), out=share, where=share > 0)
        for source, source_weights in enumerate(back):
            part = cut[source] if source < len(cut) else slice(None)
            other_axes = tuple(axis + 1 for axis in range(len(widths)) if axis != source)
            source_weights[:, part] += (
                (share * weight[source]).sum(axis=other_axes).reshape(len(rows), -1)
            )
    row = [np.broadcast_to(groups[:, None], source_weights.shape) for source_weights in back]
    focal_sets = focal(
        np.concatenate([part.ravel() for part in row]),
        np.concatenate([mask.ravel() for mask, _ in padded]),
        np.concatenate([part.ravel() for part in back]),
    )
    return focal_sets.where(focal_sets.weight > 0)


def _cuts(shape: list[int], groups: int) -> Iterator[list[slice]]:
    """Yields slices of the tensor that fit in memory: the first axes one set at a time."""
    fixed_axes = 0
    while fixed_axes < len(shape) - 1 and groups * prod(shape[fixed_axes:]) > CELLS:
        fixed_axes += 1
    full_slices = [slice(None)] * (len(shape) - fixed_axes)
    for position in product(*(range(length) for length in shape[:fixed_axes])):
        yield [*(slice(at, at + 1) for at in position), *full_slices]


def _padded(entries: Focal, rows: IntArray) -> tuple[IntArray, FloatArray]:
    """Pads the sets and masses of rows with empty sets without mass."""
    start, end = (np.searchsorted(entries.row, rows, side) for side in ("left", "right"))
    offset = np.arange(int((end - start).max()))
    there = offset < (end - start)[:, None]
    entry = np.where(there, start[:, None] + offset, 0)
    return np.where(there, entries.mask[entry], 0), np.where(there, entries.weight[entry], 0.0)


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
    return panel.combined(rule, panel.conjunctive())


class _Panel:
    """The sources of each group, in the order of their rows."""

    def __init__(self, masses: Masses, group: IntArray, groups: int) -> None:
        self.masses, self.groups = masses, groups
        rows = np.flatnonzero(masses.defined)
        rows = rows[np.argsort(group[rows], kind="stable")]
        self.sources = np.bincount(group[rows], minlength=groups)
        """The number of sources of each group."""
        first = np.cumsum(self.sources) - self.sources
        rank = np.arange(len(rows)) - first[group[rows]]
        self.rows = rows[np.lexsort((group[rows], rank))]
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
            consistent = np.bincount(table.row, table.weight, minlength=self.groups)
            active = np.unique(step.row)
            active = active[
                consistent[active] + lost[active] > 0
            ]  # the others are in total conflict already
            with np.errstate(divide="ignore"):
                logs[active] += np.log(consistent[active] / (consistent[active] + lost[active]))
            table = table._replace(weight=table.weight / consistent[table.row])
        return Fused(table, logs)

    def combined(self, rule: Rule, fused: Fused) -> CombinedGroups:
        """Applies a rule, which starts from the conjunctive combination."""
        masses = Masses(self.masses.frame, self.groups, COMBINE[rule](self, fused))
        conflict = np.maximum(-np.expm1(fused.logs), 0.0)
        return CombinedGroups(masses, conflict, np.isneginf(fused.logs))

    def by_group(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yields groups with equally many sources, and the rows of each group."""
        rows = self.rows[np.argsort(self.group[self.rows], kind="stable")]
        number = self.sources[self.group[rows]]
        for n in np.unique(self.sources[self.sources > 1]).tolist():
            yield np.flatnonzero(self.sources == n), rows[number == n].reshape(-1, n)

    def crossed(self, row: IntArray, step: Focal) -> tuple[IntArray, IntArray, IntArray]:
        """Pairs entries with those of a further source, and lists groups without one."""
        has_step = np.zeros(self.groups, dtype=bool)
        has_step[step.row] = True
        return np.flatnonzero(~has_step[row]), *matched(row, step.row)

    def mean(self) -> Focal:
        """Averages the mass of each group."""
        entries = self.masses.focal
        row = self.group[entries.row]
        return focal(row, entries.mask, entries.weight / self.sources[row])


# --- the rules -----------------------------------------------------------------------------------


def _dempster(panel: _Panel, fused: Fused) -> Focal:
    return fused.table


def _yager(panel: _Panel, fused: Fused) -> Focal:
    conflicting = np.flatnonzero(fused.logs < 0)
    frames = np.full(len(conflicting), panel.masses.whole)
    return _with(fused, Focal(conflicting, frames, -np.expm1(fused.logs[conflicting])))


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


ALPHA = 0.1
"""The default discount of sources before combination."""


@dataclass(frozen=True, slots=True, eq=False)
class RuleEffect:
    """The results of one rule over all groups."""

    rule: Rule
    groups: int
    """The number of groups with a result."""
    total_conflict: int
    """The number of groups without a result because of total conflict."""
    tied: int
    """The number of groups in which several stages lead."""
    differs: float | None
    """The share of groups whose leading stage differs from that of `average`, among those where
    both rules have a unique one; None without any."""
    gap: float | None
    """Plausibility minus belief, mean over stages and groups."""
    winners: IntArray
    """The leading stage of each group; 0 if it is not unique."""
    reason: str = ""
    """The reason why the rule was not applied."""


def rule_sensitivity(
    masses: Masses, group: IntArray, *, groups: int, alpha: float = ALPHA
) -> tuple[RuleEffect, ...]:
    """Combines the masses of each group by every rule, after discounting them by alpha."""
    panel = _Panel(masses.discounted(alpha), group, groups)
    fused = panel.conjunctive()
    reference = leading_stages(panel.combined("average", fused).masses.pignistic())
    return tuple(_effect(panel, fused, rule, reference) for rule in RULES)


def leading_stages(pignistic: FloatArray) -> IntArray:
    """Finds the most probable stage of each row, or 0 if it is undefined or tied.

    >>> leading_stages(np.array([[0.2, 0.8], [0.5, 0.5], [np.nan, np.nan]])).tolist()
    [2, 0, 0]
    """
    filled = np.nan_to_num(pignistic, nan=0.0)
    # Sums that differ only by rounding are tied.
    leads = filled >= filled.max(axis=1, initial=0.0)[:, None] - 1e-9
    return np.where(leads.sum(axis=1) == 1, leads.argmax(axis=1) + 1, 0)


def _effect(panel: _Panel, fused: Fused, rule: Rule, reference: IntArray) -> RuleEffect:
    try:
        combination = panel.combined(rule, fused)
    except DesignError as error:  # more tuples than the rule can visit
        none = np.zeros_like(reference)
        return RuleEffect(rule, 0, 0, 0, None, None, none, reason=error.message)
    defined = combination.masses.defined
    winners = leading_stages(combination.masses.pignistic())
    clear = (winners > 0) & (reference > 0)
    gap = combination.masses.uncertainty_gap()[defined]
    return RuleEffect(
        rule=rule,
        groups=int(defined.sum()),
        total_conflict=int((combination.total & ~defined).sum()),
        tied=int((defined & (winners == 0)).sum()),
        differs=float((winners != reference)[clear].mean()) if clear.any() else None,
        gap=float(gap.mean()) if len(gap) else None,
        winners=winners,
    )
