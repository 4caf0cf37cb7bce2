"""How steady a judge is: what varies over replicates, on other displays and on the same input.

Samples of one input (item, rubric, display) that were drawn apart differ by sampling alone. There
are such samples where a second series asked again, or where every replicate shows one display;
elsewhere only the total is known.
"""

from typing import Any

import krippendorff
import numpy as np
import pandas as pd
from scipy import stats

from judge_gym.analysis.belief import Verdicts, replicate_conflict
from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.endpoints import positions
from judge_gym.analysis.frames import CELL, JUDGE, once_per_call, with_variant
from judge_gym.analysis.intervals import LEVEL, Estimate, bootstrap, student, undefined

STRONG = 0.5
"""From this share of pairs of replicates without a common stage a cell should be looked at."""
LEFT_OUT = 40
"""How many parts of the items are left out, one at a time, to see how sure alpha is."""
_COLUMNS = ["series", "replicate", "flipped", "rubric", "rubric_kind", "display"]


def bare_variant(frame: pd.DataFrame) -> pd.Series:
    """The variant of each sample without its series: a retest asks the same again."""
    if frame["series"].nunique() < 2:
        return frame["variant"]
    return with_variant(frame.assign(series=""))["variant"]


def consistency(frame: pd.DataFrame) -> pd.DataFrame:
    """Jitter and internal consistency of each configured judge, series pooled.

    Columns: `jitter` (the variance over replicates of the place from 0 to 1), its parts `display`
    and `sampling` (the variance on identical inputs; null where no input was asked twice),
    Krippendorff's `alpha` over replicates and the `icc` of one replicate, each with `_low` and
    `_high`; `items`, `effective_n`, and `flagged`, the number of cells to look at.
    """
    rows = _own(frame)
    found = []
    for group, part in rows.groupby(CELL, observed=True):
        flagged = int((_conflict(part)["conflict"] >= STRONG).sum())
        scored = part[(part["mask"] != 0).to_numpy()]
        found.append(
            {
                **dict(zip(CELL, group, strict=True)),
                **(_steadiness(scored, list(group)) if len(scored) else _columns({})),
                "items": int(scored["evidence"].nunique()),
                "effective_n": len(scored),
                "flagged": flagged,
            }
        )
    return pd.DataFrame(found)


def conflicting_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells whose replicates conflict strongly, for review, the most torn first."""
    rows = _own(frame)
    parts = [
        _conflict(part).assign(**dict(zip(CELL, group, strict=True)))
        for group, part in rows.groupby(CELL, observed=True)
    ]
    found = pd.concat(parts)
    found = found[found["conflict"] >= STRONG].sort_values(
        "conflict", ascending=False, kind="stable"
    )
    return found[[*CELL, "evidence", "conflict", "effective_n"]].reset_index(drop=True)


def _own(frame: pd.DataFrame) -> pd.DataFrame:
    """The samples under own rubrics, series pooled, a call once."""
    kept = ~frame["is_swap"].to_numpy(dtype=bool)
    columns = ["task", JUDGE, "evidence", "call_id", "mask", "n_stages", *_COLUMNS]
    own = frame.loc[kept, columns].assign(variant=bare_variant(frame)[kept])
    return once_per_call(own, CELL)


def _conflict(part: pd.DataFrame) -> pd.DataFrame:
    """By item, the share of pairs of replicates that share no stage, and how many are scored."""
    item, evidence = pd.factorize(part["evidence"], sort=True)
    asked = part.groupby(["series", "replicate", "flipped", "rubric"]).ngroup().to_numpy()
    masks = part["mask"].to_numpy()
    verdicts = Verdicts(item.astype(np.int64), asked.astype(np.int64), masks)
    return pd.DataFrame(
        {
            "evidence": evidence,
            "conflict": replicate_conflict(verdicts, items=len(evidence)),
            "effective_n": np.bincount(item[masks != 0], minlength=len(evidence)),
        }
    )


# --- one judge -----------------------------------------------------------------------------------


def _steadiness(scored: pd.DataFrame, key: list[Any]) -> dict[str, float]:
    """What varies, for one judge with some scored samples."""
    nominal = bool((scored["rubric_kind"] == "nominal").any())
    item = pd.factorize(scored["evidence"], sort=True)[0].astype(np.int64)
    if nominal:  # options have no place, so nothing has a variance
        alpha = _alpha(item, scored["mask"].to_numpy(), "nominal")
        return _columns({"alpha": alpha})
    place = positions(scored)
    count = int(item.max()) + 1
    told = scored["display"].astype("string").fillna("")
    asked = scored[["rubric", "flipped"]].assign(display=told, item=item)
    same = asked.groupby(list(asked.columns)).ngroup().to_numpy()
    once_shown = len(asked.drop_duplicates()) == len(
        asked[["rubric", "flipped", "item"]].drop_duplicates()
    )
    known = bool((told != "").all()) and (scored["series"].nunique() > 1 or once_shown)
    # Variance over replicates is within a series: a retest repeats the displays of the first.
    run = scored.groupby([*asked.columns[:2], "series"]).ngroup().to_numpy()
    total = _within(place, item * (int(run.max()) + 1) + run, item, count)
    sampling = _within(place, same, item, count) if known else np.full(count, np.nan)
    parts = {
        "jitter": student(total),
        "sampling": student(sampling),
        "display": student(total - sampling),
        "alpha": _alpha(item, np.round(place, 9), "ordinal"),
        "icc": bootstrap(_moments(place, item, count), _icc, key=["icc", *map(str, key)]),
    }
    return _columns(parts)


def _columns(parts: dict[str, Estimate]) -> dict[str, float]:
    found = {}
    for name in ("jitter", "display", "sampling", "alpha", "icc"):
        value, low, high, _ = parts.get(name, undefined())
        found |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return found


def _within(values: FloatArray, group: IntArray, item: IntArray, items: int) -> FloatArray:
    """By item, the variance within groups, pooled over those that have two values or more."""
    _, first, code = np.unique(group, return_index=True, return_inverse=True)
    n = np.bincount(code)
    gaps = values - (np.bincount(code, values) / n)[code]
    squares = np.bincount(item, gaps**2, items)
    freedom = np.bincount(item[first], n - 1, items)
    return np.divide(squares, freedom, out=np.full(items, np.nan), where=freedom > 0)


def _moments(values: FloatArray, item: IntArray, items: int) -> FloatArray:
    """For each item with two values or more: how many, their mean, and squares about it."""
    n = np.bincount(item, minlength=items)
    mean = np.bincount(item, values, items) / np.maximum(n, 1)
    squares = np.bincount(item, (values - mean[item]) ** 2, items)
    return np.column_stack([n, mean, squares])[n > 1]


def _icc(rows: FloatArray) -> FloatArray:
    """The one-way intraclass correlation of a single replicate, from rows of moments."""
    n, mean, squares = (rows[..., column] for column in range(3))
    items, total = rows.shape[-2], n.sum(axis=-1)
    grand = (n * mean).sum(axis=-1, keepdims=True) / total[..., None]
    size = (total - (n**2).sum(axis=-1) / total) / (items - 1)
    between = (n * (mean - grand) ** 2).sum(axis=-1) / (items - 1)
    within = squares.sum(axis=-1) / (total - items)
    spread = between + (size - 1) * within
    known = spread > 1e-15
    found: FloatArray = np.divide(
        between - within, spread, out=np.full(np.shape(spread), np.nan), where=known
    )
    return found


def _alpha(item: IntArray, values: np.ndarray, level: str) -> Estimate:
    """Krippendorff's alpha with replicates as raters; its interval from leaving out items.

    It is undefined where no item has two values, or all values are the same.
    """
    domain, code = np.unique(values, return_inverse=True)
    counts = np.zeros((int(item.max()) + 1, len(domain)), dtype=np.int64)
    np.add.at(counts, (item, code), 1)
    counts = counts[counts.sum(axis=1) > 1]
    value = _agreement(counts, domain, level)
    parts = min(len(counts), LEFT_OUT)
    if np.isnan(value) or parts < 3:
        return undefined(len(counts), value)
    part = np.arange(len(counts)) % parts
    left = np.array([_agreement(counts[part != out], domain, level) for out in range(parts)])
    error = float(np.sqrt((parts - 1) * np.nanvar(left))) if not np.isnan(left).any() else 0.0
    if error <= 0:
        return undefined(len(counts), value)
    half = float(stats.t.ppf((1 + LEVEL) / 2, parts - 1)) * error
    return Estimate(value, value - half, min(1.0, value + half), len(counts))


def _agreement(counts: IntArray, domain: np.ndarray, level: str) -> float:
    used = counts.sum(axis=0) > 0
    if used.sum() < 2:
        return float("nan")
    return float(
        krippendorff.alpha(
            value_counts=counts[:, used],
            value_domain=domain[used].tolist(),
            level_of_measurement=level,
        )
    )
