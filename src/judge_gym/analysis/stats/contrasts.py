"""The effect of one knob: two designs that differ in it alone, compared item by item.

The unit of analysis is the evidence item: replicates of a cell are averaged first, each call once.
Swapped rubrics are left out; they have an analysis of their own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import (
    AVERAGED,
    MISSING_FROM,
    all_cells,
    endpoints_by_cell,
)
from judge_gym.analysis.frames import (
    CELL,
    JUDGE,
    PANEL,
    level_name,
    own_rows,
    usual_levels,
    varied_knobs,
)
from judge_gym.analysis.stats.clusters import Codes, scope
from judge_gym.analysis.stats.comparisons import compare_pair
from judge_gym.analysis.stats.intervals import (
    Estimate,
    Floats,
    between,
    difference,
    estimate,
    mean_bounds,
    pseudo_values,
    undefined,
)
from judge_gym.analysis.stats.paired_tests import (
    among_known,
    benjamini_hochberg,
)
from judge_gym.analysis.verdicts import Dataset, Samples, Verdicts, without_draws
from judge_gym.axes import ANY, NONE, Design, find_knob
from judge_gym.axes.presentation import LETTERS, OPAQUE
from judge_gym.errors import DesignError, unknown
from judge_gym.records.numbers import plural
from judge_gym.studies.declarations import ENDPOINTS

Side = tuple[str, str, str]
"""Task, variant and judge."""
CALLS = ("call_id", "probe_call_id")
ALPHA = 0.05
CARRIED = 0.5
"""The share of the sum of differences from which one or two items carry it."""
Pairs = Sequence[tuple[Side, Side]]
"""A side and its base, one pair for each judge."""


ENDS = ("stage_lowest", "stage_highest")


class Sides:
    """The endpoints and calls of each judge of a variant, that is of each setup of a task."""

    def __init__(self, samples: Samples, endpoints: Sequence[str]) -> None:
        data = Dataset.of(samples)
        self.frame = own_rows(data.frame)
        self.n_stages = int(self.frame["n_stages"].max()) if len(self.frame) else 0
        self.endpoints = endpoints
        self.items: dict[str, pd.Index] = {}
        self.clusters: dict[str, Codes] = {}
        """The number of each item's cluster, by task."""
        self.values: dict[Side, Floats] = {}
        """The endpoints of each item of the task; NaN where there is none."""
        self.ends: dict[Side, Floats] = {}
        """The least and the most that each item's stage can be."""
        self.judges: dict[tuple[str, str], list[str]] = {}
        self.without_draws: dict[Side, dict[int, Floats]] = {}
        """For sides with many draws of rubrics, their values without each draw."""
        for verdicts in data.tasks:
            task = str(verdicts.key["task"])
            self.items[task], self.clusters[task] = pd.Index(verdicts.units), verdicts.clusters
            sides = [(task, *setup) for setup in verdicts.setups]
            self.values |= zip(sides, _by_setup(verdicts, endpoints), strict=True)
            self.ends |= zip(sides, _by_setup(verdicts, ENDS), strict=True)
            for _, variant, judge in sides:
                self.judges.setdefault((task, variant), []).append(judge)
            for draw, lacking, rest in without_draws(verdicts):
                values = _by_setup(rest, endpoints)
                for setup in lacking:
                    self.without_draws.setdefault(sides[setup], {})[draw] = values[setup]
        self._calls = {name: self._calls_by_side(name) for name in CALLS}

    @cached_property
    def displays(self) -> dict[tuple[str, str], pd.DataFrame]:
        """The displays of each judge, item and replicate, by task and variant."""
        return _displays(self.frame)

    def draws(self, pairs: Pairs) -> list[int]:
        """Lists the draws of rubrics that can be left out of pairs, none if draws are few."""
        sides = {side for pair in pairs for side in pair}
        if not sides <= self.without_draws.keys():
            return []
        return sorted({draw for side in sides for draw in self.without_draws[side]})

    def draw_differences(self, pairs: Pairs) -> Floats | None:
        """Tabulates differences by pair, draw, item and endpoint. None if draws are few."""
        without = [self.differences(pairs, draw) for draw in self.draws(pairs)]
        if not without:
            return None
        return np.moveaxis(pseudo_values(self.differences(pairs, None), without), 0, 1)

    def matched(self, knob: str, level: str, base: str) -> Pairs:
        """Lists every two sides that differ in one knob alone and saw the same displays."""
        if knob == JUDGE:
            panels = [key for key, judges in self.judges.items() if {level, base} <= {*judges}]
            return [((*panel, level), (*panel, base)) for panel in panels]
        displays, matched_sides = self.displays, []
        for task, designs in _designs(self.frame).items():
            for left, other in permutations(designs, 2):
                if changed_knobs(designs[left], designs[other]) != (knob,):
                    continue
                contrast = _contrast(task, knob, left, other, designs)
                if (contrast.level, contrast.base) != (level, base):
                    continue
                if not _mismatch(displays.get((task, left)), displays.get((task, other)), contrast):
                    both = {*self.judges.get((task, other), ())}
                    judges = [j for j in self.judges.get((task, left), ()) if j in both]
                    matched_sides += [
                        ((task, left, judge), (task, other, judge)) for judge in judges
                    ]
        return matched_sides

    def differences(self, pairs: Pairs, without: int | None) -> Floats:
        """Tabulates differences by pair, item and endpoint, without a draw if one is named."""

        def values(side: Side) -> Floats:
            differences = self.values[side]
            return (
                differences
                if without is None
                else self.without_draws[side].get(without, differences)
            )

        return np.stack([values(left) - values(right) for left, right in pairs])

    def bounds(self, pairs: Pairs, found: Estimate) -> dict[str, float]:
        """Bounds the difference in stages, whatever verdicts without a score are.

        Empty if fewer than 5 % of the verdicts of both sides are missing, unless the interval of
        the difference excludes 0 and that of the bounds does not.
        """
        left, right = (np.stack([self.ends[pair[end]] for pair in pairs]) for end in (0, 1))
        gaps = [np.nanmean(side[..., 1] - side[..., 0]) for side in (left, right)]
        if not max(gaps) > 0:
            return {}
        least, most = left[..., 0] - right[..., 1], left[..., 1] - right[..., 0]
        clusters = self.clusters[pairs[0][0][0]]
        ends = mean_bounds(least.mean(axis=0), most.mean(axis=0), clusters)
        changes = not found.low <= 0 <= found.high and ends.lowest <= 0 <= ends.highest
        if not (max(gaps) >= MISSING_FROM or (found.known and changes)):
            return {}
        return {"lowest": max(ends.lowest, -1.0), "highest": min(ends.highest, 1.0)}

    def _calls_by_side(self, column: str) -> dict[Side, tuple[int, set[int]]]:
        """Counts the calls of each side, and lists those that another side has too."""
        with_call = self.frame.loc[self.frame[column].notna(), [*CELL, "evidence", column]]
        # As everywhere, a call belongs to an item.
        call = with_call.groupby(["evidence", column], sort=False).ngroup().rename("call")
        calls = pd.concat([with_call[CELL], call], axis=1).drop_duplicates()
        several = calls["call"].duplicated(keep=False)
        common = calls[several].groupby(CELL)["call"].agg(set)
        sizes = calls.groupby(CELL).size()
        sizes_by_side = zip(sizes.index.tolist(), sizes.tolist(), strict=True)
        return {side: (n, common.get(side, set())) for side, n in sizes_by_side}

    def shared_calls(self, pairs: Pairs, column: str) -> float:
        """Computes the share of calls that both sides have, NaN if calls have no identity."""
        both = total = 0
        for side, other in pairs:
            (n, ours), (m, theirs) = (
                self._calls[column].get(key, (0, set())) for key in (side, other)
            )
            common = len(ours & theirs)
            both += common
            total += n + m - common
        return both / total if total else np.nan


def _by_setup(verdicts: Verdicts, endpoints: Sequence[str]) -> Floats:
    """Tabulates endpoints by setup, item and endpoint."""
    values = endpoints_by_cell(verdicts)
    return np.stack([values[name].T for name in endpoints], axis=-1)


ALL = "all"
UNAFFECTED = "unaffected by construction"
COLUMNS = [
    "task", "judge", "knob", "level", "base", "at", "endpoint", "value", "low", "high", "items",
    "lowest", "highest", "p", "test", "d_z", "cliffs_delta", "shared", "q", "note",
]  # fmt: skip
_LETTERS = dict(zip(OPAQUE, LETTERS, strict=True))
"""Opaque labels and the letters that they replace: both come from one shuffle."""


# --- comparable designs --------------------------------------------------------------------------


class Contrast(NamedTuple):
    """Two variants of a task that differ in one knob."""

    task: str
    knob: str
    level: str
    base: str
    at: str
    """The levels of the other knobs that vary."""
    variant: str
    against: str
    """The variant of the base level."""


Levels = Mapping[str, Any]
"""Levels by knob, such as `Design.values()`; `series` is treated like a knob."""


def changed_knobs(design: Design | Levels, other: Design | Levels) -> tuple[str, ...]:
    """Lists the knobs in which two designs differ, without those that have no effect.

    >>> changed_knobs({"verdict.method": "single"}, {"verdict.method": "subset"})
    ('verdict.method',)
    """
    ours, theirs = (side.values() if isinstance(side, Design) else side for side in (design, other))
    names = dict.fromkeys([*ours, *theirs])
    changed = [name for name in names if not _same(ours.get(name), theirs.get(name))]
    knobs = Design.knobs()
    # Both designs are of one task, so its traits cannot be why they differ.
    return tuple(
        name
        for name in changed
        if name not in knobs or not any(map(knobs[name].is_inactive, (ours, theirs)))
    )


def _same(level: Any, other: Any) -> bool:
    """Whether two levels are equal, where an unset level, NaN in a frame, equals itself."""
    return bool(level == other) or bool(pd.isna(level) and pd.isna(other))


def _designs(frame: pd.DataFrame) -> dict[str, dict[str, dict[str, Any]]]:
    """Maps task and variant to the levels of the knobs that vary in the task, and the series."""
    rows = frame.drop_duplicates(["task", "variant"])
    designs: dict[str, dict[str, dict[str, Any]]] = {}
    for task, part in rows.groupby("task", sort=False):
        columns = [*varied_knobs(part), "series"]
        levels = part[columns].itertuples(index=False, name=None)
        designs[str(task)] = {
            variant: dict(zip(columns, row, strict=True))
            for variant, row in zip(part["variant"], levels, strict=True)
        }
    return designs


def register(frame: pd.DataFrame, design: Levels, base: Levels, *, task: str) -> Contrast:
    """Declares the contrast of two designs, which must differ in one knob and match in display.

    The levels of `design` and of `base` identify one variant of the task each.
    """
    frame = own_rows(frame)
    designs = _designs(frame)
    if task not in designs:
        raise DesignError(unknown("task", task, designs), choices=designs)
    left, right = (_matching_variant(designs[task], levels) for levels in (design, base))
    knobs = changed_knobs(designs[task][left], designs[task][right])
    if len(knobs) != 1 or knobs == ("series",):
        raise DesignError(
            f"a contrast varies one knob; {left!r} and {right!r} differ in"
            f" {', '.join(knobs) or 'none'}",
            choices=knobs,
        )
    contrast = _contrast(task, knobs[0], left, right, designs[task])
    displays = _displays(frame)
    if problem := _mismatch(displays.get((task, left)), displays.get((task, right)), contrast):
        raise DesignError(f"{left!r} and {right!r} of {task!r} cannot be compared: {problem}")
    return contrast


def _matching_variant(designs: Mapping[str, Levels], levels: Levels) -> str:
    """Finds the one variant that has these levels."""
    matches = [
        variant
        for variant, knobs in designs.items()
        if all(_same(knobs[name], level) for name, level in levels.items() if name in knobs)
    ]
    if len(matches) != 1:
        named = ", ".join(f"{name}={level_name(level)}" for name, level in levels.items())
        raise DesignError(
            f"{named or 'an empty design'} matches {len(matches)} variants;"
            f" choose one of {', '.join(map(repr, designs))}",
            choices=designs,
        )
    return matches[0]


def find_contrasts(frame: pd.DataFrame) -> list[Contrast]:
    """Finds every pair of variants of a task and series that differ in one knob.

    A level is compared with the knob's default, or with the first level if the default is missing.
    """
    contrasts = []
    usual = {str(task): usual_levels(part) for task, part in frame.groupby("task", sort=False)}
    for task, designs in _designs(frame).items():
        for first, other in combinations(designs, 2):
            knobs = changed_knobs(designs[first], designs[other])
            if len(knobs) != 1 or knobs == ("series",):
                continue
            levels = [levels[knobs[0]] for levels in designs.values()]
            base = _base(usual[task].get(knobs[0]), levels)
            for level, against in ((first, other), (other, first)):
                if _same(designs[against][knobs[0]], base):
                    contrasts.append(_contrast(task, knobs[0], level, against, designs))
    return sorted(contrasts)


def _base(default: Any, levels: Sequence[Any]) -> Any:
    distinct = sorted({level for level in levels if not pd.isna(level)}, key=_sort_key)
    return default if any(_same(default, level) for level in levels) else distinct[0]


def _sort_key(level: Any) -> tuple[float, str]:
    number = isinstance(level, int | float | np.number)
    return (float(level) if number else 0.0, level_name(level))


def _contrast(
    task: str, knob: str, variant: str, against: str, designs: Mapping[str, Levels]
) -> Contrast:
    several = len({levels["series"] for levels in designs.values()}) > 1
    setting = [
        f"{name}={level_name(level)}"
        for name, level in designs[against].items()
        if name != knob and (name != "series" or several)
    ]
    level, base = (level_name(designs[knob_name][knob]) for knob_name in (variant, against))
    return Contrast(task, knob, level, base, ", ".join(setting) or "base", variant, against)


# --- displays ------------------------------------------------------------------------------------


def _displays(frame: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Returns by task and variant the displays of each judge, item and replicate, as numbers."""
    keys = ["evidence", "replicate", "flipped", "n_stages"]
    has_display = frame["display"].notna() & (frame["display"] != "")
    rows = frame.loc[has_display, ["task", "variant", JUDGE, *keys, "display"]]
    code, texts = pd.factorize(rows["display"])
    read = [_parsed(str(text)) for text in texts]
    seen = rows[["task", "variant", JUDGE]].assign(
        shown=rows.groupby(keys, sort=False).ngroup(),
        **{
            name: pd.factorize(np.array([parts[part] for parts in read], dtype=object))[0][code]
            for part, name in enumerate(("order", "labels"))
        },
    )
    return {
        (str(task), str(variant)): part.drop_duplicates()
        for (task, variant), part in seen.groupby(["task", "variant"])
    }


def _parsed(display: str) -> tuple[str, str]:
    """Returns the stages in the order shown, and the labels in the order of their stages."""
    pairs = [entry.split("=") for entry in display.split()]
    by_stage = sorted(pairs, key=lambda pair: int(pair[1]))
    labels = " ".join(_LETTERS.get(label, label) for label, _ in by_stage)
    return " ".join(stage for _, stage in pairs), labels


def _mismatch(left: pd.DataFrame | None, right: pd.DataFrame | None, contrast: Contrast) -> str:
    """Says how displays differ beyond what the knob itself changes, empty if they match.

    Another scale has its own shuffle, so only displays with equally many stages are compared.
    Unknown displays are taken to match.
    """
    if left is None or right is None:
        return ""
    parts = {"order", "labels"}
    if contrast.knob == "presentation.order":
        parts = {"labels"}
    elif contrast.knob == "presentation.labels" and "fixed" in (contrast.level, contrast.base):
        parts = {"order"}
    keys = ["shown"] if contrast.knob == JUDGE else ["shown", JUDGE]
    both = left.merge(right, on=keys, suffixes=("", "_base"))
    differ = np.logical_or.reduce([both[part] != both[f"{part}_base"] for part in sorted(parts)])
    return f"displays differ in {int(differ.sum())} of {len(both)}" if differ.any() else ""


# --- tables --------------------------------------------------------------------------------------


def _rows(
    sides: Sides, contrast: Contrast, judge: str | None, pairs: Pairs, note: str
) -> Iterator[dict[str, Any]]:
    """Yields a row per endpoint that either side has, averaging an item's values over pairs.

    A note says why the sides cannot be compared, if they cannot.
    """
    shares = {name: sides.shared_calls(pairs, name) for name in CALLS}
    left, right = (np.stack([sides.values[pair[end]] for pair in pairs]) for end in (0, 1))
    draw_table = sides.draw_differences(pairs)
    for index, endpoint in enumerate(sides.endpoints):
        ours, theirs = left[:, :, index], right[:, :, index]
        has_left, other = ~np.isnan(ours), ~np.isnan(theirs)
        if not (has_left | other).any():
            continue
        judges = has_left.any(axis=1) & other.any(axis=1)  # leave out judges that never answer
        both = (has_left & other)[judges].all(axis=0) & judges.any()
        dropped = int((has_left | other)[judges].any(axis=0).sum() - both.sum())
        shared = shares["probe_call_id" if endpoint == "probability" else "call_id"]
        row = {**contrast._asdict(), "judge": judge, "endpoint": endpoint, "shared": shared}
        row["items"] = int(both.sum())
        if note or shared == 1:
            yield {**row, "note": note or UNAFFECTED, "value": np.nan if note else 0.0}
            continue
        if not judges.any():
            yield {**row, "note": "no judge has values on both sides"}
            continue
        means = [side[judges][:, both].mean(axis=0) for side in (ours, theirs)]
        draws = None if draw_table is None else draw_table[judges][:, :, both, index].mean(axis=0)
        clusters = sides.clusters[contrast.task][both]
        key = [*contrast, judge, endpoint]
        reach = {"subset_size": sides.n_stages - 1, "entropy": np.log2(sides.n_stages)}
        scale = difference(float(reach.get(endpoint, 1.0)))
        result = compare_pair(means[0], means[1], clusters, key=key, draws=draws, scale=scale)
        silent = int((~judges).sum())
        notes = [
            scope(means[0] - means[1], clusters),
            f"{plural(silent, 'judge')} without values" if silent else "",
            f"{plural(dropped, 'item')} dropped" if dropped else "",
            carried_by_few(means[0] - means[1], result.difference, result.p),
        ]
        row |= result._asdict() | result.difference.named("value", "low", "high", "n")
        row |= sides.bounds(pairs, result.difference) if endpoint == "stage" else {}
        yield {**row, "note": "; ".join(filter(None, notes))}


def carried_by_few(differences: Floats, mean: Estimate, p: float) -> str:
    """Says that one or two items carry a difference that looks clear; empty if none do."""
    clear = p < ALPHA or (mean.known and not mean.low <= 0 <= mean.high)
    moved = np.sort(differences * np.sign(mean.value))
    total = float(moved.sum())
    if not clear or not total > 0:
        return ""
    for number, words in ((1, "one item carries"), (2, "two items carry")):
        if len(moved) > 2 * number and moved[-number:].sum() > CARRIED * total:
            return f"{words} the mean"
    return ""


def contrasts(
    samples: Samples,
    registered: Iterable[Contrast] | None = None,
    *,
    endpoints: Sequence[str] = ENDPOINTS,
) -> pd.DataFrame:
    """Estimates the paired difference of each contrast, per judge and over all judges.

    Over all judges, an item's difference is averaged over the judges that have both designs, so
    that items stay the units. `q` is Benjamini-Hochberg's over the whole table. By default, all
    contrasts that `find_contrasts` finds are compared.
    """
    sides = _sides(samples, endpoints)
    displays = sides.displays
    rows: list[Mapping[str, Any]] = []
    for contrast in find_contrasts(sides.frame) if registered is None else registered:
        task, left, right = contrast.task, contrast.variant, contrast.against
        note = _mismatch(displays.get((task, left)), displays.get((task, right)), contrast)
        both = set(sides.judges[task, right])
        judges = [judge for judge in sides.judges[task, left] if judge in both]
        pairs = {judge: [((task, left, judge), (task, right, judge))] for judge in judges}
        if len(judges) > 1:
            pairs = {ALL: [pair for (pair,) in pairs.values()], **pairs}
        for judge, ends in pairs.items():
            rows += _rows(sides, contrast, judge, ends, note)
    return _corrected(rows)


def judge_contrasts(samples: Samples, *, endpoints: Sequence[str] = ENDPOINTS) -> pd.DataFrame:
    """Estimates the paired difference of every two judges under one design.

    `level` and `base` are the judges. If they used rubrics of different authors, the note says
    that judge and rubric differ together.
    """
    sides = _sides(samples, endpoints)
    authors = sides.frame.groupby(CELL)["rubric_author"].unique()
    rows = []
    for (task, variant), judges in sides.judges.items():
        displays = sides.displays.get((task, variant))
        by_judge = {} if displays is None else dict(list(displays.groupby(JUDGE)))
        for base, level in combinations(sorted(judges), 2):
            contrast = Contrast(task, JUDGE, level, base, variant, variant, variant)
            note = _mismatch(by_judge.get(level), by_judge.get(base), contrast)
            ends = ((task, variant, level), (task, variant, base))
            apart = "" if set(authors[ends[0]]) == set(authors[ends[1]]) else "judge and rubric"
            for row in _rows(sides, contrast, None, [ends], note):
                noted = "; ".join(filter(None, [row["note"], apart]))
                rows.append({**row, "note": noted})
    return _corrected(rows)


def _sides(samples: Samples, endpoints: Sequence[str]) -> Sides:
    for endpoint in endpoints:
        if endpoint not in ENDPOINTS:
            raise DesignError(unknown("endpoint", endpoint, ENDPOINTS), choices=ENDPOINTS)
    return Dataset.of(samples).derive(Sides, tuple(endpoints))


def _corrected(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Corrects the table's p-values: all that a reader sees together is one family."""
    table = pd.DataFrame(rows, columns=COLUMNS)
    p = table["p"].astype(float)
    table["q"] = among_known(benjamini_hochberg, p)
    order = ["task", "knob", "at", "level", "base", "endpoint"]
    return table.sort_values(order, ignore_index=True, kind="stable")


RANKED = (*AVERAGED, "entropy")
RANKS = ["knob", "level", "rank", "share", "points", "mean_rank", "low", "high"]


def ranking(samples: Samples, endpoint: str = "stage") -> pd.DataFrame:
    """Counts how often each level of each axis takes each rank, where 1 is the highest.

    A point is a task, a judge, a series and a level of every other knob; for the axis of judges, a
    task and a design. Its value is the mean over the items that all levels of the axis have;
    points that lack a level are left out, and so are swapped rubrics. The interval of the mean rank
    is over points, for this evidence.
    """
    if endpoint not in RANKED:
        raise DesignError(unknown("endpoint", endpoint, RANKED), choices=RANKED)
    data = Dataset.of(samples)
    without_swaps = own_rows(data.frame)
    knobs = varied_knobs(without_swaps)
    designs = without_swaps.drop_duplicates(PANEL)[[*PANEL, "series", *knobs]]
    designs = designs.assign(**{knob: designs[knob].map(level_name) for knob in knobs})
    cells = data.derive(all_cells)
    values = cells[[*PANEL, JUDGE, "evidence", endpoint]].merge(designs, on=PANEL)
    tables = [_ranks(values, JUDGE, PANEL, endpoint)]
    for knob in knobs:
        fixed_knobs = [
            candidate
            for candidate in knobs
            if candidate != knob and not _is_nested(designs, candidate, knob)
        ]
        point = ["task", JUDGE, "series", *fixed_knobs]
        tables.append(_ranks(values, knob, point, endpoint))
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=RANKS)


def _is_nested(designs: pd.DataFrame, knob: str, axis: str) -> bool:
    """Whether a knob varies only because it is inactive under a level of the axis."""
    levels = find_knob(knob).inactive.get(axis)
    if levels is None:
        return False
    off = designs[axis] != NONE if ANY in levels else designs[axis].isin([*map(level_name, levels)])
    acting = designs[~off]
    return bool(acting.groupby("task")[knob].nunique().le(1).all())


def _ranks(values: pd.DataFrame, knob: str, point: list[str], endpoint: str) -> pd.DataFrame:
    """Tabulates the ranks of one axis: a row per level and rank that occurs."""
    cells = values.groupby([*point, "evidence", knob], dropna=False)[endpoint]
    wide = cells.mean().unstack(knob).dropna()
    if wide.empty or wide.shape[1] < 2:
        return pd.DataFrame(columns=RANKS)
    means = wide.groupby(level=point).mean().round(12)  # equal values must tie despite rounding
    ranks = means.rank(axis=1, ascending=False)
    rows = []
    for level in ranks:
        mean = estimate(ranks[level], scale=between(1, wide.shape[1]))
        if len(ranks) < 2:  # one point says nothing about others
            mean = undefined(len(ranks), mean.value)
        for rank, share in ranks[level].value_counts(normalize=True).sort_index().items():
            rows.append((knob, level, rank, share, len(ranks), mean.value, mean.low, mean.high))
    return pd.DataFrame(rows, columns=RANKS)
