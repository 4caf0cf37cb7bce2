"""Endpoints of a cell: response outcomes, the distribution over stages, and what follows from it.

A call counts once within an estimate, however many experiments share it. Replicates are pooled
within a cell, and intervals are over evidence items.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.frames import (
    CELL,
    OrdinalFrame,
    cluster_codes,
    first_rows,
    once_per_call,
    ordinal,
)
from judge_gym.analysis.stats.clusters import scope
from judge_gym.analysis.stats.intervals import (
    DISTANCE,
    LEVEL,
    SHARE,
    VARIANCE,
    Scale,
    between,
    estimate,
    mean_bounds,
    without_each_draw,
)
from judge_gym.analysis.verdicts import (
    Dataset,
    Samples,
    Verdicts,
    list_cells,
    once_per_slice,
    ratio,
    task_slices,
)
from judge_gym.records import STATUSES

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
"""Endpoints that are defined for a single sample: normalised expected stage; whether it abstained;
stated probability that experts agree; number of stages; share given to the known answer; mean over
stages of plausibility minus belief."""
MISSING_FROM = 0.05
"""The share of verdicts without a score from which bounds are shown."""
POOLED = ("entropy", "entropy_all")
"""Endpoints of a cell's pooled distribution, which are not means over draws of rubrics."""


def _scale(endpoint: str, n_stages: int) -> Scale:
    """Looks up the scale of an endpoint."""
    if endpoint in ("expected_stage", "subset_size"):
        return between(1, n_stages)
    if endpoint in POOLED:
        return between(0, float(np.log2(n_stages + (endpoint == "entropy_all"))))
    return {"stage": DISTANCE, "jitter": VARIANCE}.get(endpoint, SHARE)


def status_rates(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Counts the samples of each status per group, with their shares."""
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


# --- values of samples and cells -----------------------------------------------------------------


def positions(rows: pd.DataFrame) -> FloatArray:
    """Normalises the mean stage of each sample to 0 to 1. NaN without a score."""
    masks, last = rows["mask"].to_numpy(), rows["n_stages"].to_numpy() - 1
    sums = sum((masks >> stage & 1) * float(stage) for stage in range(int(last.max(initial=0)) + 1))
    size = np.bitwise_count(masks).astype(float)
    return ratio(np.asarray(sums, dtype=float), size * last)


def pooled_variance(
    values: FloatArray, keys: pd.DataFrame, cell: IntArray, cells: int
) -> FloatArray:
    """Pools the variance within groups per cell, over groups with two or more values.

    `keys` are the columns that define each sample's group, its cell among them.
    """
    code = np.zeros(len(keys), dtype=np.int64)
    for name in keys.columns:  # numbers, of which any order will do
        number, names = pd.factorize(keys[name])
        code = pd.factorize(code * len(names) + number)[0]
    first = first_rows(code)
    n = np.bincount(code, minlength=len(first))
    gaps: FloatArray = values - ratio(np.bincount(code, values, len(first)), n)[code]
    squares = np.bincount(cell, gaps**2, cells).astype(float)
    return ratio(squares, np.bincount(cell[first], n - 1, cells).astype(float))


def means_over_items(
    cells: pd.DataFrame,
    by: Sequence[str],
    value: str,
    scale: Scale,
    without: Iterable[pd.DataFrame] = (),
    *,
    mean_over_draws: bool = True,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Averages over items per group, with an interval: mean, low, high, items.

    `cells` has one row per group and item, with its cluster; `without` has the cells without each
    draw of rubrics, of groups that have many. If some groups hold for their clusters alone, a
    column `scope` says so.
    """
    left: dict[Any, list[pd.Series]] = {}
    for part in without:
        for group, values in part.set_index("evidence").groupby(list(by), observed=True)[value]:
            left.setdefault(group, []).append(values)
    numbers, clusters, rows = cells[value].to_numpy(float), cluster_codes(cells), []
    code = cells.groupby(list(by), observed=True).ngroup().to_numpy().astype(np.int64)
    groups = cells[list(by)].iloc[first_rows(code)].itertuples(index=False, name=None)
    parts = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code)))
    for group, here in zip(groups, parts, strict=False):  # the last part is empty
        items = cells["evidence"].iloc[here] if group in left else ()
        without_draws = [draw.reindex(items).to_numpy(float) for draw in left.get(group, ())]
        each, codes = numbers[here], clusters[here]
        mean = estimate(
            each,
            codes,
            scale=scale,
            level=level,
            without=without_draws,
            mean_over_draws=mean_over_draws,
        )
        rows.append((*group, *mean[:4], scope(each, codes)))
    table = pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "items", "scope"])
    return table if table["scope"].any() else table.drop(columns="scope")


def distributions(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Computes the share of each stage among scored samples, per group, without zeros."""
    by_task = task_slices(frame, by, frame["status"] == "scored")
    return pd.concat([_distribution(verdicts, by) for verdicts in by_task], ignore_index=True)


def _distribution(verdicts: Verdicts, by: Sequence[str]) -> pd.DataFrame:
    scored = verdicts.rows.groupby(verdicts.setup).size().to_numpy()
    masks = verdicts.mask
    parts = [
        np.bincount(verdicts.setup, (masks >> stage & 1) / np.bitwise_count(masks), len(scored))
        for stage in range(verdicts.n_stages)
    ]
    shares = np.stack(parts, axis=1) / scored[:, None] if parts else np.empty((0, 0))
    group, stage = np.nonzero(shares > 0)
    names = verdicts.rows[list(by)].iloc[first_rows(verdicts.setup)[group]].reset_index(drop=True)
    return names.assign(stage=stage + 1, share=shares[group, stage], scored=scored[group] * 1.0)


def expected_stage(frame: OrdinalFrame, by: Sequence[str]) -> pd.DataFrame:
    """Averages the normalised stage (0 to 1) per group, with an interval over items.

    The options of a nominal rubric have no expected stage.
    """
    cells = partial(stage_by_item, by=by)
    without = without_each_draw(frame, by, cells).values()
    return means_over_items(cells(ordinal(frame)), by, "value", DISTANCE, without)


def stage_by_item(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Averages the normalised stage of each group on each item, as `value`."""
    by_task = task_slices(frame, by, frame["status"] == "scored")
    cells = [
        list_cells(verdicts, by, {"value": verdicts.per_cell(positions(verdicts.rows))})
        for verdicts in by_task
    ]
    return pd.concat(cells, ignore_index=True)


# --- all endpoints -------------------------------------------------------------------------------


def sample_values(rows: pd.DataFrame) -> dict[str, FloatArray]:
    """Computes each sample's value on every endpoint of `AVERAGED`, NaN if it has none."""
    masks, n_stages = rows["mask"].to_numpy(), rows["n_stages"].to_numpy()
    size = np.where(masks != 0, np.bitwise_count(masks).astype(float), np.nan)
    ordered = (rows["rubric_kind"] != "nominal").to_numpy()
    truth = pd.to_numeric(rows["truth"], errors="coerce").to_numpy(dtype=float)
    stage_index = np.where(truth >= 1, truth, 1).astype(np.int64) - 1
    return {
        "stage": np.where(ordered, positions(rows), np.nan),
        "abstention": (rows["status"] == "abstained").to_numpy(dtype=float),
        "probability": rows["probe"].to_numpy(dtype=float),
        "subset_size": size,
        "agreement": np.where(truth >= 1, (masks >> stage_index & 1) / size, np.nan),
        GAP: np.where(size > 1, size, 0 * size) / n_stages,
    }


def cell_endpoints(frame: pd.DataFrame, by: Sequence[str] = CELL) -> pd.DataFrame:
    """Computes every endpoint of each cell: the columns `by`, beside the evidence.

    `entropy` (bits) and `mid_mass` are over scored samples; with `_all`, a missing score is an
    outcome too; these and `jitter` are NaN where replicates repeat each other. Endpoints that need
    an order are NaN for a nominal rubric, and so is the middle of a scale of two stages.
    `stage_lowest` and `stage_highest` take every verdict without a score for the first and for the
    last stage. Swaps are left out unless `by` separates them.
    """
    without_swaps = None if "is_swap" in by else ~frame["is_swap"]
    return _list_endpoints(task_slices(frame, by, without_swaps), by)


def all_cells(data: Dataset) -> pd.DataFrame:
    """Lists the endpoints of each judge, variant and item, which other analyses share."""
    return _list_endpoints(data.tasks, CELL)


def _list_endpoints(by_task: Iterable[Verdicts], by: Sequence[str]) -> pd.DataFrame:
    parts = [list_cells(verdicts, by, endpoints_by_cell(verdicts)) for verdicts in by_task]
    counts = dict.fromkeys(("n", "n_stages", "effective_n"), int)
    return pd.concat(parts, ignore_index=True).astype(counts)


@once_per_slice
def endpoints_by_cell(verdicts: Verdicts) -> dict[str, FloatArray]:
    """Computes every endpoint by unit and setup, NaN where there is none."""
    rows, values = verdicts.rows, sample_values(verdicts.rows)
    # One probe call is one answer, however many samples it is about.
    calls = pd.DataFrame({"cell": verdicts.cell, "call": rows["probe_call_id"].to_numpy()})
    repeated = rows["probe_call_id"].notna().to_numpy() & calls.duplicated().to_numpy()
    values["probability"] = np.where(repeated, np.nan, values["probability"])
    mean, total = verdicts.per_cell, verdicts.total
    means = {name: mean(of) for name, of in values.items()}
    n, scored = total(np.ones(len(rows))), verdicts.scored.astype(float)
    read = ratio(scored, n)
    shares = np.where(scored[..., None] > 0, verdicts.shares, np.nan)
    with_lost = np.concatenate([np.nan_to_num(shares) * read[..., None], 1 - read[..., None]], -1)
    position, size, last = values["stage"], values["subset_size"], rows["n_stages"].to_numpy() - 1
    ordered = (rows["rubric_kind"] != "nominal").to_numpy()
    middle = np.where(ordered & (last > 1), _middle(rows), np.nan)
    known_stage = np.where(mean(ordered.astype(float)) == 1, read, np.nan)
    least = np.nan_to_num(means["stage"]) * known_stage
    varies = np.where(mean(rows["repeats"].to_numpy(dtype=float)) > 0, np.nan, 1.0)
    codes, seen = pd.factorize(rows["status"])
    numbers = pd.Index(seen).get_indexer(list(STATUSES))  # -1, of no row, where it never occurs
    counts = {status: codes == number for status, number in zip(STATUSES, numbers, strict=True)}
    return {
        "n": n,
        "stage_lowest": least,
        "stage_highest": least + 1 - known_stage,
        "n_stages": np.round(mean(last + 1.0)),
        "effective_n": scored,
        **{f"share_{status}": ratio(total(of), n) for status, of in counts.items()},
        **means,
        "expected_stage": mean(1 + position * last),
        "singleton_rate": mean(np.where(np.isnan(size), np.nan, size == 1)),
        "entropy": _entropy(shares) * varies,
        "entropy_all": _entropy(with_lost) * varies,
        "mid_mass": mean(np.where(verdicts.mask != 0, middle, np.nan)),
        "mid_mass_all": mean(middle),
        "jitter": _jitter(verdicts, position) * varies,
    }


def _jitter(verdicts: Verdicts, place: FloatArray) -> FloatArray:
    """Pools the variance of repeats. Another rubric, or a reversed pair, is no repeat."""
    has_position = ~np.isnan(place)
    cell = verdicts.cell[has_position]
    keys = verdicts.rows.loc[has_position, ["rubric", "flipped"]].assign(cell=cell)
    cells = int(np.prod(verdicts.size))
    return pooled_variance(place[has_position], keys, cell, cells).reshape(verdicts.size)


def judge_endpoints(samples: Samples) -> pd.DataFrame:
    """Estimates every endpoint of each configured judge (task, variant, judge), over items.

    A row has mean, low, high, items, the number of samples and of scored ones (`effective_n`), and
    the shares of abstained and of unreadable verdicts.
    """
    data = Dataset.of(samples)
    cells = data.derive(all_cells)
    counts = cells[[f"share_{status}" for status in STATUSES]].mul(cells["n"], axis=0)
    totals = pd.concat([cells[[*CELL, "n", "effective_n"]], counts], axis=1)
    totals = totals.groupby(CELL, observed=True).sum().reset_index()
    lost = totals[[f"share_{status}" for status in STATUSES[2:]]].sum(axis=1)
    rates = totals[[*CELL, "n", "effective_n"]].assign(
        abstained=totals["share_abstained"] / totals["n"], unreadable=lost / totals["n"]
    )
    without = data.compute(endpoints_without_each_draw).values()
    parts = [
        means_over_items(
            *(part, CELL, name, _scale(name, n_stages), without),
            mean_over_draws=name not in POOLED,
        ).assign(endpoint=name)
        for n_stages in cells["n_stages"].unique()
        for part in [cells[cells["n_stages"] == n_stages]]
        for name in ENDPOINTS
    ]
    table = pd.concat(parts).merge(rates, on=CELL, how="left")
    columns = ["endpoint", "mean", "low", "high", "items", *rates.columns[len(CELL) :]]
    return table[[*CELL, *columns, *(["scope"] if "scope" in table else [])]]


def stage_bounds(cells: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Bounds the mean stage of each group, whatever its missing verdicts are.

    Columns: `by`, lowest, highest; groups with fewer than 5 % of verdicts missing have none.
    """
    rows = []
    for group, part in cells.groupby(list(by), observed=True):
        if 1 - part["effective_n"].sum() / part["n"].sum() >= MISSING_FROM:
            ends = mean_bounds(part["stage_lowest"], part["stage_highest"], cluster_codes(part))
            rows.append((*group, max(ends.lowest, 0.0), min(ends.highest, 1.0)))
    return pd.DataFrame(rows, columns=[*by, "lowest", "highest"])


def endpoints_without_each_draw(frame: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Computes the endpoints of cells without each draw of rubrics, if draws are many."""
    return without_each_draw(frame, CELL, cell_endpoints)


def _middle(rows: pd.DataFrame) -> FloatArray:
    """Computes the weight that each sample gives to the one or two stages in the middle."""
    masks, n = rows["mask"].to_numpy(), rows["n_stages"].to_numpy()
    centre = (np.int64(1) << (n - 1) // 2) | (np.int64(1) << n // 2)
    middle_share: FloatArray = np.bitwise_count(masks & centre) / np.maximum(
        np.bitwise_count(masks), 1
    )
    return middle_share


def _entropy(shares: FloatArray) -> FloatArray:
    """Computes the entropy of each distribution in bits, NaN without one."""
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits: FloatArray = 0.0 - (shares * logs).sum(axis=-1)
    return bits
