"""Consistency across repeats: variance over replicates, between displays and on the same input.

Repeated samples of one input (item, rubric, display) differ by sampling alone. They exist if a
second series asked again, or if every replicate shows the same display; otherwise only the total
variance is known.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from judge_gym.analysis.belief.disagreement import Replicates, replicate_conflict
from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.endpoints import pooled_variance, positions
from judge_gym.analysis.frames import (
    CELL,
    CELL_OF_REPLICATES,
    JUDGE,
    REPEATED_FROM,
    identical_texts,
    own_rows,
    without_series,
)
from judge_gym.analysis.measures import ALL, Summary, note_number, panel_measure
from judge_gym.analysis.stats.agreement import Level, krippendorff_alpha
from judge_gym.analysis.stats.intervals import (
    KAPPA,
    VARIANCE,
    Estimate,
    Statistic,
    estimate,
    seeded,
    undefined,
)
from judge_gym.analysis.stats.paired_tests import among_known, benjamini_hochberg, holm
from judge_gym.analysis.verdicts import (
    ALL_SETUPS,
    Dataset,
    Verdicts,
    mean_of_cells,
    once_per_slice,
    panels,
    part_of,
    ratio,
)

REVIEW_FROM = 0.5
"""The share of replicate pairs without a common stage from which a cell should be reviewed."""
COMPONENTS = ("jitter", "sampling", "display")
SHUFFLES = 999
FEW_SHUFFLES = 100
"""The number of shuffles after which a test that only has to warn looks whether it still can."""
HELD = 1 << 22
"""The number of values that a shuffle test holds in memory at once."""
WARN_BELOW = 0.05
"""The corrected p-value of neighbouring replicates below which the table warns."""
REPEATED_TEXTS = "most pairs have the same text: repeats are not drawn anew"
COLD = "temperature 0: repeats are not drawn anew"
ALIKE = "warning: neighbours agree more than shuffled repeats; the provider may repeat answers"
JACKKNIFE_PARTS = 40
"""The number of parts that items are divided into for the jackknife error of alpha."""


def consistency(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns jitter and internal consistency of each configured judge and of `all`.

    Series are pooled. Columns: `jitter` (the variance over replicates of the normalised stage), its
    components `display` and `sampling` (the variance on identical inputs; null if no input was
    asked twice), Krippendorff's `alpha` over replicates and the `icc` of one replicate, each with
    `_low` and `_high`; `items`, `effective_n`, and `flagged`, the number of cells to review. For
    `all`, variances are means over judges by item, and alpha and ICC are means without interval.
    """
    pooled = panels(frame.assign(variant=without_series(frame)))
    return pd.DataFrame([row for panel in pooled for row in _rows(panel)])


@panel_measure("consistency", order=9)
def _summary(data: Dataset, panel: Verdicts) -> Summary:
    """Summarises the variance on identical inputs, with the total variance in the note."""
    task, variant = panel.key["task"], data.compute(_pooled_variants)[panel.key["variant"]]
    table = data.compute(consistency)
    [row] = table[
        (table[JUDGE] == ALL) & (table["task"] == task) & (table["variant"] == variant)
    ].to_dict("records")
    note = (
        f"variance on identical inputs; over replicates {note_number(row['jitter'])}; alpha "
        f"{note_number(row['alpha'])}, ICC {note_number(row['icc'])}, means over judges; "
        f"{row['flagged']} cells to review"
    )
    sampling = Estimate(row["sampling"], row["sampling_low"], row["sampling_high"], row["items"])
    return Summary(sampling, note)


def _pooled_variants(frame: pd.DataFrame) -> dict[str, str]:
    """Maps each variant to the variant that pools its series."""
    pairs = pd.DataFrame({"of": frame["variant"], "pooled": without_series(frame)})
    return dict(pairs.drop_duplicates("of").itertuples(index=False, name=None))


def _rows(panel: Verdicts) -> list[dict[str, Any]]:
    """Returns the rows of a panel: all judges together, then each."""

    def estimates(place: int = ALL_SETUPS) -> dict[str, Estimate]:
        return {
            name: mean_of_cells(panel, part_of(_variances, name), VARIANCE, place)
            for name in COMPONENTS
        }

    judges = [estimates(place) | _agreements(panel, place) for place in range(panel.size[1])]
    together = estimates()
    for name in ("alpha", "icc"):
        values = [
            judge_row[name].value
            for judge_row in judges
            if name in judge_row and not np.isnan(judge_row[name].value)
        ]
        together[name] = undefined(len(values), fmean(values) if values else np.nan)
    flagged = (_conflict(panel) >= REVIEW_FROM).sum(axis=0)
    rows = []
    for place, (judge, parts) in enumerate(
        zip((ALL, *panel.setups), (together, *judges), strict=True)
    ):
        scored = panel.scored[:, place - 1] if place else panel.scored.sum(axis=1)
        rows.append(
            {
                **panel.key,
                JUDGE: judge,
                **_columns(parts),
                "items": int((scored > 0).sum()),
                "effective_n": int(scored.sum()),
                "flagged": int(flagged[place - 1] if place else flagged.sum()),
            }
        )
    return rows


def conflicting_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the cells whose replicates conflict strongly, the worst first.

    Columns: task, variant, judge, evidence, `conflict` (the share of replicate pairs without a
    common stage), `usual` (that of the judge's other items), effective_n, and p and q: how often
    the judge's usual conflict would give as many conflicts among disjoint pairs of replicates. q is
    Benjamini-Hochberg's over all cells, also those that are not returned.
    """
    rows = []
    for panel in panels(frame.assign(variant=without_series(frame))):
        conflict = _conflict(panel)
        has_conflict = ~np.isnan(conflict)
        other_judges = np.maximum(has_conflict.sum(axis=0) - has_conflict, 1)
        usual = (np.nansum(conflict, axis=0) - np.nan_to_num(conflict)) / other_judges
        pairs = panel.scored // 2  # disjoint pairs are independent, all pairs are not
        p = special.bdtrc(np.round(np.nan_to_num(conflict) * pairs) - 1, pairs, usual)
        for item, judge in np.argwhere(has_conflict).tolist():
            rows.append(
                {
                    **panel.key,
                    JUDGE: panel.setups[judge],
                    "evidence": panel.units[item],
                    "conflict": float(conflict[item, judge]),
                    "usual": float(usual[item, judge]),
                    "effective_n": int(panel.scored[item, judge]),
                    "p": float(p[item, judge]),
                }
            )
    columns = [*CELL, "evidence", "conflict", "usual", "effective_n", "p", "q"]
    table = pd.DataFrame(rows, columns=columns)
    if len(table):
        table["q"] = benjamini_hochberg(table["p"])
    worst = table[table["conflict"] >= REVIEW_FROM]
    return worst.sort_values("conflict", ascending=False, kind="stable", ignore_index=True)


def _conflict(panel: Verdicts) -> FloatArray:
    """Returns the share of replicate pairs without a common stage, by item and judge."""
    # Number the verdicts of a cell, so that each counts as a replicate of its own.
    apart = pd.Series(panel.cell).groupby(panel.cell).cumcount().to_numpy().astype(np.int64)
    cells = int(np.prod(panel.size))
    conflicts = replicate_conflict(Replicates(panel.cell, apart, panel.mask), items=cells)
    return conflicts.reshape(panel.size)


# --- independence of repeats ---------------------------------------------------------------------


def independence(frame: pd.DataFrame, *, notes_only: bool = False) -> pd.DataFrame:
    """Returns whether the replicates of each configured judge are drawn anew.

    Columns: CELL, `identical` (the share of pairs of replicates with the same text), `count as`
    (one if replicates repeat each other), `neighbours` and `shuffled` (the share of neighbouring
    replicates with the same verdict, and of replicates in random order), their permutation `p`,
    corrected by Holm as `holm`, and a note with the reason or a warning.

    Args:
        frame: tidy samples.
        notes_only: whether only notes are needed. A test then ends as soon as it cannot warn, of
            which `p` and `holm` say no more than that.
    """
    without_swaps = own_rows(frame)
    same, rows = identical_texts(without_swaps), []
    cell = without_swaps.groupby(CELL_OF_REPLICATES, observed=True).ngroup()
    samples = without_swaps[["replicate", "mask", "repeats"]].assign(cell=cell)
    first = samples.groupby("cell")["replicate"].transform("first")
    samples["again"] = samples["replicate"] != first
    for key, part in samples.groupby([without_swaps[name] for name in CELL], observed=True):
        if not part["again"].any():
            continue
        row = {**dict(zip(CELL, key, strict=True)), "identical": same.get(key, np.nan)}
        row["repeats"] = bool(part["repeats"].any())
        shares = (np.nan,) * 3
        if not row["repeats"]:
            shares = _neighbours(part, list(map(str, key)), notes_only)
        rows.append(row | dict(zip(("neighbours", "shuffled", "p"), shares, strict=True)))
    columns = [*CELL, "identical", "repeats", "neighbours", "shuffled", "p"]
    table = pd.DataFrame(rows, columns=columns).astype({"repeats": bool})
    table["holm"] = among_known(holm, table["p"].astype(float))
    texts = table["identical"] > REPEATED_FROM
    reasons = [table["repeats"] & texts, table["repeats"], table["holm"] < WARN_BELOW]
    table["note"] = np.select(reasons, [REPEATED_TEXTS, COLD, ALIKE], "")
    counted = np.where(table.pop("repeats"), "one replicate", "replicates")
    table.insert(list(table).index("neighbours"), "count as", counted)
    return table


def _neighbours(part: pd.DataFrame, key: list[str], notes_only: bool) -> tuple[float, float, float]:
    """Returns how often neighbouring and shuffled replicates agree, and p of the difference."""
    scored = part[part["mask"] != 0].sort_values("replicate", kind="stable")
    cell = scored["cell"].to_numpy()
    order = np.argsort(cell, kind="stable")
    sizes = np.unique(cell, return_counts=True)[1]
    masks = scored["mask"].to_numpy()[order]
    masks = masks.astype(np.min_scalar_type(masks.max(initial=0)))  # fewer bytes to shuffle
    ends = np.split(masks, sizes.cumsum()[:-1])
    # Two replicates are neighbours in any order.
    tables = [
        np.stack([replicates for replicates in ends if len(replicates) == size])
        for size in np.unique(sizes[sizes > 2])
    ]
    pairs = sum(table[:, 1:].size for table in tables)
    if not pairs:
        return np.nan, np.nan, np.nan

    def agreed(of: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the numbers of equal neighbours, by draw."""
        equal = [
            np.count_nonzero(replicates[..., 1:] == replicates[..., :-1], axis=(1, 2))
            for replicates in of
        ]
        counts: np.ndarray = np.sum(equal, axis=0)
        return counts

    rng, observed = (
        seeded("neighbours", *key),
        int(agreed([replicates[None] for replicates in tables])[0]),
    )
    parts, above, step = [], 0, max(1, HELD // pairs)
    if notes_only:
        step = min(step, FEW_SHUFFLES)
    for low in range(0, SHUFFLES, step):
        shuffled = [
            np.repeat(replicates[None], min(step, SHUFFLES - low), axis=0) for replicates in tables
        ]
        for places in zip(*shuffled, strict=True):
            for block in places:
                rng.permuted(block, axis=-1, out=block)
        parts.append(agreed(shuffled))
        above += int((parts[-1] >= observed).sum())
        if notes_only and 1 + above >= WARN_BELOW * (1 + SHUFFLES):
            break
    shuffled_counts = np.concatenate(parts)
    return (
        observed / pairs,
        float(shuffled_counts.mean()) / pairs,
        (1 + above) / (1 + len(shuffled_counts)),
    )


# --- variances -----------------------------------------------------------------------------------


@once_per_slice
def _variances(panel: Verdicts) -> dict[str, FloatArray]:
    """Returns the variance over replicates and, if known, its components, by item and judge."""
    blank = np.full(panel.size, np.nan)
    if not panel.ordinal:
        return dict.fromkeys(COMPONENTS, blank)

    def within(keys: pd.DataFrame) -> FloatArray:
        cells = int(np.prod(panel.size))
        return pooled_variance(position, keys, cell, cells).reshape(panel.size)

    def distinct(keys: pd.DataFrame) -> IntArray:
        """Returns the number of distinct keys by judge."""
        return np.bincount(judge[~keys.duplicated()], minlength=panel.size[1])

    scored = panel.mask != 0
    rows, cell, judge = panel.rows[scored], panel.cell[scored], panel.setup[scored]
    position = positions(rows)
    request = rows[["rubric", "flipped"]].assign(cell=cell)
    # Variance over replicates is within a series: a retest repeats the displays of the first.
    total = within(request.assign(series=rows["series"]))
    same = request.assign(display=rows["display"])
    has_no_display = np.bincount(judge, rows["display"] < 0, panel.size[1]) == 0
    # Some judges may have been retested, others not.
    retested = distinct(rows[["series"]].assign(judge=judge)) > 1
    is_comparable = has_no_display & (retested | (distinct(same) == distinct(request)))
    sampling = np.where(is_comparable, within(same), np.nan)
    return {"jitter": total, "sampling": sampling, "display": total - sampling}


def _agreements(panel: Verdicts, judge: int) -> dict[str, Estimate]:
    """Returns alpha and, for ordered stages, the intraclass correlation of a judge."""
    scored = (panel.mask != 0) & (panel.setup == judge)
    item = panel.unit[scored]
    if not scored.any():
        return {}
    repeated = np.bincount(item, minlength=len(panel.clusters)) > 1
    position = positions(panel.rows[scored]) if panel.ordinal else panel.mask[scored]
    stages = position * (panel.n_stages - 1) if panel.ordinal else position
    # The replicates of an item are not independent: each of its stages counts once.
    once = np.unique(np.column_stack([item, np.round(stages)]), axis=0)
    counts = np.unique(once[:, 1], return_counts=True)[1]
    level: Level = "ordinal" if panel.ordinal else "nominal"
    statistics: dict[str, tuple[Statistic, IntArray | None]] = {
        "alpha": (_alpha(item, np.round(position, 9), level, panel.clusters), None)
    }
    if panel.ordinal:
        statistics["icc"] = (_icc(position, item), panel.clusters[repeated])
    labels, alike = tuple(counts.tolist()), float(counts.max() / counts.sum())
    return {
        name: estimate(statistic._replace(labels=labels, alike=alike), clusters, scale=KAPPA)
        for name, (statistic, clusters) in statistics.items()
        if len(statistic.rows)
    }


def _columns(parts: dict[str, Estimate]) -> dict[str, float]:
    columns: dict[str, float] = {}
    for name in ("jitter", "display", "sampling", "alpha", "icc"):
        columns |= parts.get(name, undefined()).columns(name)
    return columns


def _icc(values: FloatArray, item: IntArray) -> Statistic:
    """Returns the one-way intraclass correlation of one replicate, over items with several."""
    n = np.bincount(item).astype(float)
    gaps = values - values.mean()  # centred, so that squares lose no digits
    mean = ratio(np.bincount(item, gaps), n)
    within = np.bincount(item, (gaps - mean[item]) ** 2)
    rows = np.column_stack([np.ones(len(n)), n, n**2, n * mean, n * mean**2, within])

    def correlation(sums: FloatArray) -> FloatArray:
        items, total, squares, sums_of_items, means, rest = np.moveaxis(sums, -1, 0)
        size = ratio(total - ratio(squares, total), items - 1)
        between = ratio(means - ratio(sums_of_items**2, total), items - 1)
        inside = ratio(rest, total - items)
        spread = between + (size - 1) * inside
        return ratio(between - inside, np.where(spread > 1e-15, spread, 0.0))

    return Statistic(rows[n > 1], correlation)


def _alpha(item: IntArray, values: np.ndarray, level: Level, clusters: IntArray) -> Statistic:
    """Returns Krippendorff's alpha with replicates as raters, of items with two values or more.

    `clusters` has the number of each item's cluster, whose items stay in one part.
    """
    domain, code = np.unique(values, return_inverse=True)
    counts = np.zeros((int(item.max()) + 1, len(domain)))
    np.add.at(counts, (item, code), 1)
    repeated = counts.sum(axis=1) > 1
    counts, clusters = counts[repeated], clusters[: len(counts)][repeated]
    number = np.unique(clusters, return_inverse=True)[1]
    # Rows are as wide as the squared number of values, so that many items are held in few parts.
    parts = number % max(1, min(int(number.max(initial=-1)) + 1, JACKKNIFE_PARTS))
    if not len(counts):
        return Statistic(np.empty((0, 1)), lambda sums: sums[..., 0])
    return krippendorff_alpha(counts, level, parts)._replace(items=len(counts))
