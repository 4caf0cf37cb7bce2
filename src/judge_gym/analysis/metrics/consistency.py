"""How steady a judge is: what varies over replicates, on other displays and on the same input.

Samples of one input (item, rubric, display) that were drawn apart differ by sampling alone. There
are such samples where a second series asked again, or where every replicate shows one display;
elsewhere only the total is known.
"""

from functools import cache
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from judge_gym.analysis.belief import Verdicts, replicate_conflict
from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.endpoints import positions
from judge_gym.analysis.frames import CELL, JUDGE, with_variant
from judge_gym.analysis.panels import EVERYONE, Panel, mean_of_cells, panels, part_of, ratio
from judge_gym.analysis.stats.agreement import Level, krippendorff_alpha
from judge_gym.analysis.stats.intervals import (
    LEVEL,
    Estimate,
    Summed,
    bootstrap,
    jackknife_error,
    undefined,
)

ALL = "all"
"""What a table calls all judges of a panel together."""
STRONG = 0.5
"""From this share of pairs of replicates without a common stage a cell should be looked at."""
VARYING = ("jitter", "sampling", "display")
LEFT_OUT = 40
"""How many parts of the items are left out, one at a time, to see how sure alpha is."""


def bare_variant(frame: pd.DataFrame) -> pd.Series:
    """The variant of each sample without its series: a retest asks the same again."""
    if frame["series"].nunique() < 2:
        return frame["variant"]
    return with_variant(frame.assign(series=""))["variant"]


def consistency(frame: pd.DataFrame) -> pd.DataFrame:
    """Jitter and internal consistency of each configured judge, series pooled, and of `all`.

    Columns: `jitter` (the variance over replicates of the place from 0 to 1), its parts `display`
    and `sampling` (the variance on identical inputs; null where no input was asked twice),
    Krippendorff's `alpha` over replicates and the `icc` of one replicate, each with `_low` and
    `_high`; `items`, `effective_n`, and `flagged`, the number of cells to look at. For `all`, items
    have the mean of the judges' variances, and alpha and ICC are means without an interval.
    """
    judged = panels(frame.assign(variant=bare_variant(frame)))
    return pd.DataFrame([row for panel in judged for row in _rows(panel)])


def _rows(panel: Panel) -> list[dict[str, Any]]:
    """The rows of a panel: all judges together, then each."""
    varying = cache(_variances)

    def estimates(place: int = EVERYONE) -> dict[str, Estimate]:
        return {name: mean_of_cells(panel, part_of(varying, name), place=place) for name in VARYING}

    judges = [estimates(place) | _agreements(panel.of(place)) for place in range(panel.size[1])]
    together = estimates()
    for name in ("alpha", "icc"):
        known = [one[name].value for one in judges if name in one and not np.isnan(one[name].value)]
        together[name] = undefined(len(known), fmean(known) if known else np.nan)
    flagged = (_conflict(panel) >= STRONG).sum(axis=0)
    rows = []
    for place, (judge, parts) in enumerate(
        zip((ALL, *panel.judges), (together, *judges), strict=True)
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
    """The cells whose replicates conflict strongly, for review, the most torn first.

    Columns: task, variant, judge, evidence, `conflict` (the share of pairs of replicates without a
    common stage) and effective_n.
    """
    rows = []
    for panel in panels(frame.assign(variant=bare_variant(frame))):
        torn = _conflict(panel)
        for item, judge in np.argwhere(torn >= STRONG).tolist():
            rows.append(
                {
                    **panel.key,
                    JUDGE: panel.judges[judge],
                    "evidence": panel.evidence[item],
                    "conflict": float(torn[item, judge]),
                    "effective_n": int(panel.scored[item, judge]),
                }
            )
    found = pd.DataFrame(rows, columns=[*CELL, "evidence", "conflict", "effective_n"])
    return found.sort_values("conflict", ascending=False, kind="stable", ignore_index=True)


def _conflict(panel: Panel) -> FloatArray:
    """Items by judges, the share of pairs of replicates that share no stage."""
    # Each verdict of a cell is a replicate of its own: what matters is that it was drawn apart.
    apart = pd.Series(panel.cell).groupby(panel.cell).cumcount().to_numpy().astype(np.int64)
    cells = int(np.prod(panel.size))
    found = replicate_conflict(Verdicts(panel.cell, apart, panel.mask), items=cells)
    return found.reshape(panel.size)


# --- what varies ---------------------------------------------------------------------------------


def _variances(panel: Panel) -> dict[str, FloatArray]:
    """Items by judges: the variance over replicates, and its parts where they can be told."""
    blank = np.full(panel.size, np.nan)
    if not panel.ordinal:  # options have no place, so nothing has a variance
        return dict.fromkeys(VARYING, blank)
    scored = panel.mask != 0
    rows, cell = panel.rows[scored], panel.cell[scored]
    place = positions(rows)
    asked = pd.DataFrame({"cell": cell, "rubric": rows["rubric"].to_numpy()})
    asked["flipped"] = rows["flipped"].to_numpy()
    # Variance over replicates is within a series: a retest repeats the displays of the first.
    within = asked.assign(series=rows["series"].to_numpy())
    total = _within(place, within, cell, panel.size)
    told = rows["display"].astype("string").fillna("").to_numpy()
    same = asked.assign(display=told)
    # One judge may have been asked twice where another was not.
    retested = panel.judge[scored][:, None] == np.arange(panel.size[1])
    known = [
        bool((told[mine] != "").all())
        and (
            rows["series"][mine].nunique() > 1
            or len(same[mine].drop_duplicates()) == len(asked[mine].drop_duplicates())
        )
        for mine in retested.T
    ]
    sampling = np.where(known, _within(place, same, cell, panel.size), np.nan)
    return {"jitter": total, "sampling": sampling, "display": total - sampling}


def _within(
    values: FloatArray, keys: pd.DataFrame, cell: IntArray, size: tuple[int, int]
) -> FloatArray:
    """By cell, the variance within groups, pooled over those that have two values or more."""
    code = keys.groupby(list(keys.columns)).ngroup().to_numpy().astype(np.int64)
    _, first = np.unique(code, return_index=True)
    n = np.bincount(code, minlength=len(first))
    gaps: FloatArray = values - ratio(np.bincount(code, values, len(first)), n)[code]
    cells = int(np.prod(size))
    squares = np.bincount(cell, gaps**2, cells).astype(float)
    return ratio(squares, np.bincount(cell[first], n - 1, cells)).reshape(size)


def _agreements(panel: Panel) -> dict[str, Estimate]:
    """Alpha and, on an ordered scale, the intraclass correlation of the one judge of a panel."""
    scored = panel.mask != 0
    item = panel.item[scored]
    if not scored.any():
        return {}
    if not panel.ordinal:
        return {"alpha": _alpha(item, panel.mask[scored], "nominal")}
    place = positions(panel.rows[scored])
    key = ["icc", *map(str, panel.key.values())]
    icc = bootstrap(_icc(place, item), key=key)
    return {
        "alpha": _alpha(item, np.round(place, 9), "ordinal"),
        "icc": icc._replace(high=min(1.0, icc.high)) if icc.known else icc,
    }


def _columns(parts: dict[str, Estimate]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in ("jitter", "display", "sampling", "alpha", "icc"):
        value, low, high, _ = parts.get(name, undefined())
        found |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return found


def _icc(values: FloatArray, item: IntArray) -> Summed:
    """The one-way intraclass correlation of a single replicate, over items with two or more."""
    n = np.bincount(item).astype(float)
    gaps = values - values.mean()  # small numbers, so that squares lose no digits
    mean = ratio(np.bincount(item, gaps), n)
    within = np.bincount(item, (gaps - mean[item]) ** 2)
    rows = np.column_stack([np.ones(len(n)), n, n**2, n * mean, n * mean**2, within])

    def correlation(sums: FloatArray) -> FloatArray:
        items, total, squares, whole, means, rest = np.moveaxis(sums, -1, 0)
        size = ratio(total - ratio(squares, total), items - 1)
        between = ratio(means - ratio(whole**2, total), items - 1)
        inside = ratio(rest, total - items)
        spread = between + (size - 1) * inside
        return ratio(between - inside, np.where(spread > 1e-15, spread, 0.0))

    return Summed(rows[n > 1], correlation)


def _alpha(item: IntArray, values: np.ndarray, level: Level) -> Estimate:
    """Krippendorff's alpha with replicates as raters; its interval from leaving out items.

    It is undefined where no item has two values, or all values are the same.
    """
    domain, code = np.unique(values, return_inverse=True)
    counts = np.zeros((int(item.max()) + 1, len(domain)))
    np.add.at(counts, (item, code), 1)
    counts = counts[counts.sum(axis=1) > 1]
    items = len(counts)
    if not items:
        return undefined()
    parts = min(items, LEFT_OUT)
    whole = krippendorff_alpha(counts, level, parts)
    error = float(jackknife_error(whole.rows, whole)) if parts > 2 else 0.0
    if not error > 0:
        return undefined(items, whole.value)
    half = float(stats.t.ppf((1 + LEVEL) / 2, parts - 1)) * error
    return Estimate(whole.value, whole.value - half, min(1.0, whole.value + half), items)
