"""The tidy frame that every analysis reads: a row per sample, a column per knob.

It comes from a lab (`Lab.samples`), from an exported file, or from verdicts that someone already
has: six columns are needed, the others have a plain meaning where they are missing.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.belief import stage_masks
from judge_gym.axes import Design
from judge_gym.errors import DesignError, unknown
from judge_gym.records import STATUSES

JUDGE = "judge.model"
CELL = ["task", "variant", JUDGE]
"""One configured judge on one task; with `evidence`, a cell of the design."""
NEEDED = (JUDGE, "evidence", "replicate", "status", "stages", "n_stages")
_MISSING: dict[str, Any] = {
    "tag": "",
    "study": "",
    "task_type": "",
    "concept": "",
    "country": "",
    "pool": "",
    "dose": np.nan,
    "series": "",
    "pair": False,
    "truth": None,
    "reference": np.nan,
    "flipped": False,
    "is_swap": False,
    "display": "",
    "probe": np.nan,
    "probe_status": None,
    "probe_call_id": np.nan,
    "rubric": 0,
    "rubric_kind": "ordinal",
    "rubric_author": "provided",
    "rubric_draw": 0,
    "observability": np.nan,
    "discriminability": np.nan,
    "call_id": np.nan,
    "usd": np.nan,
}
"""What a column says where a frame does not have it."""


def tidy(samples: pd.DataFrame, *, source: str = "the frame") -> pd.DataFrame:
    """The samples checked, with every column, and with what analyses share.

    Added are `mask` (a bit per chosen stage; 0 where none was scored), `task` (a name for concept,
    type, country and pool) and `variant` (the levels of what varies within the task).

    Args:
        samples: at least the columns of `NEEDED`.
        source: what an error calls the samples.
    """
    for column in NEEDED:
        if column not in samples:
            raise DesignError(
                f"{source} has no column {column!r}; samples need {', '.join(NEEDED)}",
                choices=NEEDED,
            )
    if samples.empty:
        raise DesignError(f"{source} has no samples")
    for status in samples["status"].unique():
        if status not in STATUSES:
            raise DesignError(unknown("status", status, STATUSES, source), choices=STATUSES)
    missing = {name: value for name, value in _MISSING.items() if name not in samples}
    frame = samples.assign(**missing).reset_index(drop=True)
    if "evidence_title" not in frame:
        frame["evidence_title"] = frame["evidence"].astype(str)
    if "reported_model" not in frame:
        frame["reported_model"] = frame[JUDGE]
    frame["mask"] = _masks(frame, source)
    frame["task"] = _task(frame)
    return with_variant(frame)


def _masks(frame: pd.DataFrame, source: str) -> np.ndarray:
    """What each sample chose, as bits; each distinct text is read once."""
    stages = frame["stages"]
    if pd.api.types.is_numeric_dtype(stages):  # a file in which every verdict names one stage
        stages = stages.astype("Int64").astype("string")
    texts = stages.astype("string").fillna("").where(frame["status"] == "scored", "")
    masks = np.zeros(len(frame), dtype=np.int64)
    for scale, part in texts.groupby(frame["n_stages"].astype(int)):
        codes, distinct = pd.factorize(part)
        try:
            known = stage_masks(list(distinct), frame=int(str(scale)))
        except ValueError as fault:
            raise DesignError(f"{source}: {fault}; stages read '2' or '2 3'") from fault
        masks[part.index] = known[codes]
    empty = (frame["status"] == "scored") & (masks == 0)
    if empty.any():
        row = int(empty.to_numpy().argmax()) + 1
        raise DesignError(f"{source}: sample {row} is scored, but names no stage")
    return masks


def _task(frame: pd.DataFrame) -> pd.Series:
    """The name of a row's task: concept, type, country, and the pool where there are several."""
    columns = ["concept", "task_type", "country", "pool"]
    tasks = frame[columns].drop_duplicates()
    pools = tasks.groupby(columns[:3])["pool"].transform("nunique")
    names = []
    for several, (concept, kind, country, pool) in zip(
        pools > 1, tasks.itertuples(index=False, name=None), strict=True
    ):
        place = f"{country}, {pool}" if country and several else country or pool
        about = ", ".join(part for part in (kind, place) if part)
        names.append((concept or "all") + (f" ({about})" if about else ""))
    return frame[columns].merge(tasks.assign(task=names), on=columns, how="left")["task"]


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
    named = pd.Series("base", index=frame.index)
    for _, part in frame.groupby(tasks, sort=False):
        columns = varied_knobs(part)
        if "series" in part and part["series"].nunique() > 1:
            columns.append("series")
        if columns:
            levels = part[columns].drop_duplicates()
            names = [
                ", ".join(
                    f"{name}={level_name(level)}" for name, level in zip(columns, row, strict=True)
                )
                for row in levels.itertuples(index=False, name=None)
            ]
            group = part.groupby(columns, sort=False, dropna=False).ngroup()
            named.loc[part.index] = group.map(
                dict(zip(group.loc[levels.index], names, strict=True))
            )
    return frame.assign(variant=named)


def level_name(level: object) -> str:
    """A level as it is written."""
    return str(level).lower() if isinstance(level, bool | np.bool_) else str(level)


def once_per_call(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Each call once per group; rows that share a call are one observation."""
    seen = frame.duplicated([*by, "evidence", "call_id"]) & frame["call_id"].notna()
    return frame[~seen].reset_index(drop=True)


def ordinal_only(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """The frame itself; options without order have no expected stage, midpoint or distance."""
    if (frame["rubric_kind"] == "nominal").any():
        raise DesignError(f"{what} is undefined for a nominal rubric: its options have no order")
    return frame
