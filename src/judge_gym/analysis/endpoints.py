"""Endpoints of a cell: status rates, the distribution over stages, the expected stage.

A frame has one row per sample and a column per knob (`Lab.samples`). Within an estimate a call
counts once, however many experiments share it.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from judge_gym.axes import Design
from judge_gym.records import STATUSES

JUDGE = "judge.model"
Interval = tuple[float, float]


def varied_knobs(frame: pd.DataFrame) -> list[str]:
    """The knobs, other than the judge, that take more than one value."""
    knobs = [knob for knob in Design.knobs() if knob in frame.columns and knob != JUDGE]
    return [knob for knob in knobs if frame[knob].nunique(dropna=False) > 1]


def with_variant(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a column `variant` that names the levels of what varies within its task.

    What differs between tasks because a task forces it is no variation. Series are told apart too:
    a retest is not more of the same.
    """
    tasks = frame["task"] if "task" in frame else pd.Series("", index=frame.index)
    parts = [_named_variant(part) for _, part in frame.groupby(tasks, sort=False)]
    return pd.concat(parts).loc[frame.index] if parts else frame.assign(variant="base")


def _named_variant(part: pd.DataFrame) -> pd.DataFrame:
    columns = [
        *varied_knobs(part),
        *(["series"] if part.get("series", pd.Series()).nunique() > 1 else []),
    ]
    if not columns:
        return part.assign(variant="base")
    names: dict[str, str] = {}
    labels = []
    for row in part[columns].itertuples(index=False, name=None):
        key = repr(row)  # a level may be unset, and unset is not equal to itself
        if key not in names:
            pairs = zip(columns, row, strict=True)
            names[key] = ", ".join(f"{name}={_level(level)}" for name, level in pairs)
        labels.append(names[key])
    return part.assign(variant=labels)


def _level(level: object) -> str:
    return str(level).lower() if isinstance(level, bool | np.bool_) else str(level)


def once_per_call(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Each call once per group; rows that share a call are one observation."""
    seen = frame.duplicated([*by, "evidence", "call_id"]) & frame["call_id"].notna()
    return frame[~seen].reset_index(drop=True)


def status_rates(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """How many samples ended in each status, per group, and their shares."""
    counts = (
        once_per_call(frame, by)
        .groupby([*by, "status"], observed=True)
        .size()
        .unstack(fill_value=0)
    )
    counts = counts.reindex(columns=list(STATUSES), fill_value=0)
    total = counts.sum(axis=1)
    shares = counts.div(total, axis=0).add_prefix("share_")
    return pd.concat([total.rename("n"), counts, shares], axis=1).reset_index()


def stage_weights(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per scored sample and chosen stage; a subset spreads its weight equally (pignistic)."""
    scored = frame[frame["status"] == "scored"]
    long = scored.assign(stage=scored["stages"].str.split()).explode("stage")
    size = long.groupby(level=0)["stage"].transform("size")
    return long.assign(stage=long["stage"].astype(int), weight=1.0 / size)


def distributions(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The share of each stage among scored samples, per group."""
    weights = stage_weights(once_per_call(frame, by))
    mass = weights.groupby([*by, "stage"], observed=True)["weight"].sum()
    share = mass / mass.groupby(level=list(range(len(by)))).transform("sum")
    scored = weights.groupby(list(by), observed=True)["weight"].sum().rename("scored")
    return share.rename("share").reset_index().merge(scored.reset_index(), on=list(by))


def expected_stage(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The mean normalised stage (0 to 1) per group, with a t interval over evidence items.

    Ordinal rubrics only: for options without order there is no expected stage.
    """
    if "rubric_kind" in frame and (frame["rubric_kind"] == "nominal").any():
        raise ValueError("expected stage is undefined for a nominal rubric")
    weights = stage_weights(once_per_call(frame, by))
    scaled = (weights["stage"] - 1) / (weights["n_stages"] - 1)
    cells = (
        weights.assign(score=scaled * weights["weight"])
        .groupby([*by, "evidence"], observed=True)
        .agg(score=("score", "sum"), weight=("weight", "sum"))
    )
    per_item = cells["score"] / cells["weight"]
    return per_item.groupby(level=list(range(len(by)))).apply(_t_interval).unstack().reset_index()


def accuracy(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The share of scored verdicts on the known answer, with a 95 % interval over items.

    A subset counts with the share that it gives the right stage; items without truth are left out.
    """
    # A truth that is no stage (a label without a given rubric) tells nothing.
    numbers = frame.assign(truth=pd.to_numeric(frame["truth"], errors="coerce"))
    known = stage_weights(once_per_call(numbers[numbers["truth"].notna()], by))
    if known.empty:
        return pd.DataFrame(columns=[*by, "mean", "low", "high", "items"])
    right = known["weight"] * (known["stage"] == known["truth"].astype(float))
    cells = (
        known.assign(right=right)
        .groupby([*by, "evidence"], observed=True)[["right", "weight"]]
        .sum()
    )
    per_item = cells["right"] / cells["weight"]
    return per_item.groupby(level=list(range(len(by)))).apply(_share).unstack().reset_index()


def known_answers(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """`accuracy` with how many were asked and scored; who scored nothing has a row too."""
    known = frame.groupby(list(by), observed=True)["truth"].transform("count") > 0
    if not known.any():
        return pd.DataFrame()
    rates = status_rates(frame[known], by)[[*by, "n", "scored"]]
    return rates.merge(accuracy(frame[known], by), on=list(by), how="left")


def _t_interval(values: pd.Series) -> pd.Series:
    """Mean, 95 % interval and number of items; the interval is null below two items."""
    return _row(values, student_interval(values.to_numpy()) if len(values) > 1 else None)


def _share(values: pd.Series) -> pd.Series:
    return _row(values, share_interval(values.tolist()))


def _row(values: pd.Series, interval: Interval | None) -> pd.Series:
    low, high = interval or (np.nan, np.nan)
    return pd.Series({"mean": float(values.mean()), "low": low, "high": high, "items": len(values)})


def share_interval(means: Sequence[float]) -> Interval | None:
    """95 % of a mean share over items: Wilson's where every item is right or wrong, else t's."""
    if set(means) <= {0.0, 1.0}:
        found = stats.binomtest(int(sum(means)), len(means)).proportion_ci(method="wilson")
        return float(found.low), float(found.high)
    if len(set(means)) < 2:  # one item, or no variance to tell how sure it is
        return None
    low, high = student_interval(np.array(means))
    return max(0.0, low), min(1.0, high)


def student_interval(values: np.ndarray) -> Interval:
    """95 % of a mean over items, by Student's t."""
    n, mean = len(values), float(values.mean())
    half = float(stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean - half, mean + half
