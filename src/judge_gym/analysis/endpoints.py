"""Endpoints of a cell: how answers ended, the distribution over stages, and what is read off it.

A frame has one row per sample (`frames.tidy`). Within an estimate a call counts once, however many
experiments share it; replicates are pooled within a cell, and intervals are over evidence items.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.frames import CELL, OrdinalFrame, once_per_call, only, ordinal
from judge_gym.analysis.panels import masked, ratio
from judge_gym.analysis.stats.intervals import share, skewed, student
from judge_gym.analysis.stats.rubric_draws import Estimator, estimated, left_out
from judge_gym.records import STATUSES

ITEM = [*CELL, "evidence"]
_READ = (
    *("evidence", "call_id", "mask", "n_stages", "status", "rubric_kind", "truth"),
    *("probe", "probe_call_id", "rubric", "flipped"),
)
ENDPOINTS = (
    "expected_stage",
    "stage",
    "subset_size",
    "singleton_rate",
    "entropy",
    "entropy_all",
    "mid_mass",
    "mid_mass_all",
    "jitter",
)
GAP = "uncertainty_gap"
AVERAGED = ("stage", "abstention", "probability", "subset_size", "agreement", GAP)
"""Endpoints that each sample has a value of: normalised expected stage; share of abstentions;
stated probability that experts agree; stages per verdict; share given to the known answer; mean
over stages of Pl - Bel."""
ENTROPIES = ("entropy", "entropy_all")
"""Endpoints of a cell's pooled distribution, which are no means over draws of rubrics."""
ESTIMATES = {"singleton_rate": share, "mid_mass": share, "mid_mass_all": share, "jitter": skewed}
"""How an endpoint that is no plain mean is estimated over items."""


def status_rates(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """How many samples ended in each status, per group, and their shares."""
    counts = (
        once_per_call(frame[[*dict.fromkeys([*by, "evidence", "call_id", "status"])]], by)
        .groupby([*by, "status"], observed=True)
        .size()
        .unstack(fill_value=0)
    )
    counts = counts.reindex(columns=list(STATUSES), fill_value=0)
    total = counts.sum(axis=1)
    shares = counts.div(total, axis=0).add_prefix("share_")
    return pd.concat([total.rename("n"), counts, shares], axis=1).reset_index()


# --- what scored samples say, group by group -----------------------------------------------------


class Groups(NamedTuple):
    """Samples by group: the group of each, and what names the groups."""

    rows: pd.DataFrame
    code: IntArray
    names: pd.DataFrame

    def total(self, values: FloatArray) -> FloatArray:
        """The sum of the rows' values, per group."""
        return np.bincount(self.code, values, len(self.names)).astype(float)

    def mean(self, values: FloatArray) -> FloatArray:
        """The mean of the rows' values that are numbers, per group; NaN without any."""
        known = ~np.isnan(values)
        n = self.total(known.astype(float))
        sums = self.total(np.where(known, values, 0.0))
        return ratio(sums, n)

    def shares(self) -> FloatArray:
        """The distribution over stages of each group: a subset spreads its weight equally."""
        masks = self.rows["mask"].to_numpy()
        n = self.total((masks != 0).astype(float))
        each = np.where(masks != 0, 1.0 / np.maximum(np.bitwise_count(masks), 1), 0.0)
        stages = range(int(self.rows["n_stages"].max()) if len(self.rows) else 0)
        sums = [self.total(each * (masks >> stage & 1)) for stage in stages]
        found = np.stack(sums, axis=1) if sums else np.empty((0, 0))
        return ratio(found, n[:, None])


def grouped(frame: pd.DataFrame, by: Sequence[str]) -> Groups:
    """The samples of each group, a call once."""
    return groups_of(once_per_call(_read(masked(frame), by), by), by)


def _read(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The columns that endpoints read: rows of fewer columns are faster to pick."""
    return frame[[name for name in dict.fromkeys([*by, *_READ]) if name in frame]]


def groups_of(rows: pd.DataFrame, by: Sequence[str]) -> Groups:
    """Samples as they are, by group."""
    code = rows.groupby(list(by), observed=True).ngroup().to_numpy().astype(np.int64)
    _, first = np.unique(code, return_index=True)
    return Groups(rows, code, rows[list(by)].iloc[first].reset_index(drop=True))


def scored_only(frame: pd.DataFrame) -> pd.DataFrame:
    """The samples that carry a score."""
    return only(frame, frame["status"] == "scored")


def positions(rows: pd.DataFrame) -> FloatArray:
    """Where each sample lies from 0 to 1: the mean of its stages; NaN where none was scored."""
    masks, last = rows["mask"].to_numpy(), rows["n_stages"].to_numpy() - 1
    sums = sum((masks >> stage & 1) * float(stage) for stage in range(int(last.max(initial=0)) + 1))
    size = np.bitwise_count(masks).astype(float)
    return ratio(np.asarray(sums, dtype=float), size * last)


def over_items(
    cells: pd.DataFrame,
    by: Sequence[str],
    value: str,
    estimate: Estimator,
    without: Iterable[pd.DataFrame] = (),
    *,
    apart: bool = True,
) -> pd.DataFrame:
    """A mean over items with its interval, per group: mean, low, high, items.

    Args:
        cells: a row per group and item.
        by: the columns that groups share.
        value: the column that is averaged.
        estimate: what tells the interval over items.
        without: the cells without each draw of rubrics, of groups that have many.
        apart: whether the values are means over draws.
    """
    left: dict[Any, list[pd.Series]] = {}
    for part in without:
        for group, values in part.set_index("evidence").groupby(list(by), observed=True)[value]:
            left.setdefault(group, []).append(values)
    rows = []
    for group, part in cells.groupby(list(by), observed=True):
        drawn = [one.reindex(part["evidence"]).to_numpy(float) for one in left.get(group, ())]
        found = estimated(estimate, part[value].to_numpy(float), drawn, apart=apart)
        rows.append((*group, *found))
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "items"])


def distributions(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The share of each stage among scored samples, per group; stages without a share are out."""
    groups = grouped(scored_only(_read(masked(frame), by)), by)
    shares = groups.shares()
    group, stage = np.nonzero(shares > 0)
    found = groups.names.iloc[group].reset_index(drop=True)
    n = groups.total(np.ones(len(groups.rows)))
    return found.assign(stage=stage + 1, share=shares[group, stage], scored=n[group])


def expected_stage(frame: OrdinalFrame, by: Sequence[str]) -> pd.DataFrame:
    """The mean normalised stage (0 to 1) per group, with a t interval over evidence items.

    An interval ends where the scale does. Ordinal rubrics only: for options without order there is
    no expected stage.
    """
    cells = partial(_stage_by_item, by=by)
    without = left_out(frame, by, cells)
    found = over_items(cells(ordinal(frame)), by, "value", student, without.values())
    return found.assign(low=found["low"].clip(lower=0.0), high=found["high"].clip(upper=1.0))


def _stage_by_item(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    groups = grouped(scored_only(_read(masked(frame), by)), [*by, "evidence"])
    return groups.names.assign(value=groups.mean(positions(groups.rows)))


def accuracy(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The share of scored verdicts on the known answer, with a 95 % interval over items.

    A subset counts with the share that it gives the right stage; items without truth are left out.
    """
    cells = partial(right_by_item, by=by)
    return over_items(cells(frame), by, "value", share, left_out(frame, by, cells).values())


def right_by_item(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The share of scored verdicts on the known answer, item by item, as `value`."""
    # A truth that is no stage (a label without a given rubric) tells nothing.
    truth = pd.to_numeric(frame["truth"], errors="coerce")
    known = scored_only(only(_read(masked(frame), by).assign(truth=truth), truth.notna()))
    groups = grouped(known, [*by, "evidence"])
    masks = groups.rows["mask"].to_numpy()
    right = masks >> (groups.rows["truth"].to_numpy(dtype=np.int64) - 1) & 1
    return groups.names.assign(value=groups.mean(right / np.bitwise_count(masks)))


def known_answers(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """`accuracy` with how many were asked and scored; who scored nothing has a row too."""
    known = frame.groupby(list(by), observed=True)["truth"].transform("count") > 0
    if not known.any():
        return pd.DataFrame()
    rates = status_rates(frame[known], by)[[*by, "n", "scored"]]
    return rates.merge(accuracy(frame[known], by), on=list(by), how="left")


# --- all endpoints -------------------------------------------------------------------------------


def sample_values(rows: pd.DataFrame) -> dict[str, FloatArray]:
    """Each sample's value on every endpoint of `AVERAGED`; not a number where it has none."""
    masks, n_stages = rows["mask"].to_numpy(), rows["n_stages"].to_numpy()
    size = np.where(masks != 0, np.bitwise_count(masks).astype(float), np.nan)
    ordered = (rows["rubric_kind"] != "nominal").to_numpy()
    truth = pd.to_numeric(rows["truth"], errors="coerce").to_numpy(dtype=float)
    place = np.where(truth >= 1, truth, 1).astype(np.int64) - 1
    return {
        "stage": np.where(ordered, positions(rows), np.nan),
        "abstention": (rows["status"] == "abstained").to_numpy(dtype=float),
        "probability": rows["probe"].to_numpy(dtype=float),
        "subset_size": size,
        "agreement": np.where(truth >= 1, (masks >> place & 1) / size, np.nan),
        GAP: np.where(size > 1, size, 0 * size) / n_stages,
    }


def cell_endpoints(frame: pd.DataFrame, by: Sequence[str] = CELL) -> pd.DataFrame:
    """Every endpoint of each cell (task, variant, judge, evidence), pooled.

    `entropy` (bits) and `mid_mass` are of scored samples; with `_all`, no score is an outcome too.
    What needs an order is not a number on a nominal rubric, nor a middle on a scale of two.

    Args:
        frame: tidy samples; unless swaps are told apart, those under own rubrics count.
        by: what makes a cell, beside the evidence.
    """
    own = _read(masked(frame), [*by, "is_swap"])
    if "is_swap" not in by:
        own = only(own, ~own["is_swap"].to_numpy(dtype=bool))
    groups = grouped(own, [*by, "evidence"])
    rows, n = groups.rows, groups.total(np.ones(len(groups.rows)))
    values = sample_values(rows)
    repeated = (
        rows["probe_call_id"].notna()
        & pd.DataFrame({"cell": groups.code, "call": rows["probe_call_id"]}).duplicated()
    )
    # One probe call, one answer.
    values["probability"] = np.where(repeated.to_numpy(), np.nan, values["probability"])
    means = {name: groups.mean(of) for name, of in values.items()}
    masks, last = rows["mask"].to_numpy(), rows["n_stages"].to_numpy() - 1
    scored = groups.total((masks != 0).astype(float))
    shares, read = groups.shares(), scored / n
    place, size = values["stage"], values["subset_size"]
    ordered = (rows["rubric_kind"] != "nominal").to_numpy()
    middle = np.where(ordered & (last > 1), _middle(rows), np.nan)
    spread, spare = _spread(groups, place)
    counts = {status: (rows["status"] == status).to_numpy().astype(float) for status in STATUSES}
    return groups.names.assign(
        n=n.astype(int),
        effective_n=scored.astype(int),
        **{f"share_{status}": groups.total(of) / n for status, of in counts.items()},
        **means,
        expected_stage=groups.mean(1 + place * last),
        singleton_rate=groups.mean(np.where(np.isnan(size), np.nan, size == 1)),
        entropy=_entropy(shares),
        entropy_all=_entropy(np.column_stack([np.nan_to_num(shares) * read[:, None], 1 - read])),
        mid_mass=groups.mean(np.where(masks != 0, middle, np.nan)),
        mid_mass_all=groups.mean(middle),
        jitter=ratio(spread, spare),
    )


def judge_endpoints(frame: pd.DataFrame, cells: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every endpoint of each configured judge (task, variant, judge), over evidence items.

    Args:
        frame: the samples.
        cells: their `cell_endpoints`, where they are at hand.

    Returns:
        A row per judge and endpoint, with mean, low, high, items, the samples, those that carry a
        score (`effective_n`), and the shares of abstentions and of unreadable verdicts.
    """
    cells = cell_endpoints(frame) if cells is None else cells
    counts = cells[[f"share_{status}" for status in STATUSES]].mul(cells["n"], axis=0)
    totals = pd.concat([cells[[*CELL, "n", "effective_n"]], counts], axis=1)
    totals = totals.groupby(CELL, observed=True).sum().reset_index()
    lost = totals[[f"share_{status}" for status in STATUSES[2:]]].sum(axis=1)
    rates = totals[[*CELL, "n", "effective_n"]].assign(
        abstained=totals["share_abstained"] / totals["n"], unreadable=lost / totals["n"]
    )
    without = left_out(frame, CELL, cell_endpoints).values()
    parts = [
        over_items(
            cells, CELL, name, ESTIMATES.get(name, student), without, apart=name not in ENTROPIES
        ).assign(endpoint=name)
        for name in ENDPOINTS
    ]
    found = pd.concat(parts).merge(rates, on=CELL, how="left")
    return found[[*CELL, "endpoint", "mean", "low", "high", "items", *rates.columns[len(CELL) :]]]


def _spread(groups: Groups, place: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By cell, the squares about what replicates under a rubric and in an order have in common.

    And how many squares are free: another rubric, or a pair in reverse, is no replicate.
    """
    known = ~np.isnan(place)
    keys = groups.rows.loc[known, ["rubric", "flipped"]].assign(cell=groups.code[known])
    code = keys.groupby(["cell", "rubric", "flipped"], observed=True).ngroup().to_numpy()
    n = np.bincount(code)
    gaps = place[known] - (np.bincount(code, place[known]) / np.maximum(n, 1))[code]
    _, first = np.unique(code, return_index=True)
    cells = len(groups.names)
    squares = np.bincount(groups.code[known], gaps**2, cells).astype(float)
    free = np.bincount(groups.code[known][first], n - 1, cells).astype(float)
    return squares, free


def _middle(rows: pd.DataFrame) -> FloatArray:
    """The weight that each sample gives to the middle stage, or the two in the middle."""
    masks, n = rows["mask"].to_numpy(), rows["n_stages"].to_numpy()
    centre = (np.int64(1) << (n - 1) // 2) | (np.int64(1) << n // 2)
    held: FloatArray = np.bitwise_count(masks & centre) / np.maximum(np.bitwise_count(masks), 1)
    return held


def _entropy(shares: FloatArray) -> FloatArray:
    """The entropy of each row in bits; NaN where there is no distribution."""
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits: FloatArray = 0.0 - (shares * logs).sum(axis=1)
    return bits
