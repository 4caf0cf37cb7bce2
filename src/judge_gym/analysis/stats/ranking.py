"""Which level of an axis comes out on top, wherever it is tried (as in GraphGym).

At each design point one axis varies and all else is matched; its levels are ranked there. Over many
points the ranks show whether a level leads everywhere, or only on average.
"""

import pandas as pd

from judge_gym.analysis.endpoints import AVERAGED, cell_endpoints
from judge_gym.analysis.frames import JUDGE, level_name, only, varied_knobs
from judge_gym.analysis.stats.contrasts import IDLE
from judge_gym.analysis.stats.intervals import student
from judge_gym.errors import DesignError, unknown

RANKED = (*AVERAGED, "entropy")
COLUMNS = ["knob", "level", "rank", "share", "points", "mean_rank", "low", "high"]


def ranking(frame: pd.DataFrame, endpoint: str = "stage") -> pd.DataFrame:
    """How often each level of each axis takes each rank; 1 is the highest value, ties share.

    A point is a task, a judge, a series and a level of every other knob; for the axis of judges, a
    task and a design. Its value is the mean over the items that all levels of the axis have; a
    point that lacks a level is left out. The interval of the mean rank is over points: how much it
    depends on where the axis is tried, for this evidence.

    Args:
        frame: tidy samples; swapped rubrics have no part.
        endpoint: what levels are ranked on.
    """
    if endpoint not in RANKED:
        raise DesignError(unknown("endpoint", endpoint, RANKED), choices=RANKED)
    kept = only(frame, ~frame["is_swap"].to_numpy(dtype=bool))
    knobs = varied_knobs(kept)
    designs = kept.drop_duplicates(["task", "variant"])[["task", "variant", "series", *knobs]]
    designs = designs.assign(**{knob: designs[knob].map(level_name) for knob in knobs})
    values = cell_endpoints(kept)[["task", "variant", JUDGE, "evidence", endpoint]].merge(
        designs, on=["task", "variant"]
    )
    tables = [_distribution(values, JUDGE, ["task", "variant"], endpoint)]
    for knob in knobs:
        others = [one for one in knobs if one != knob and not _rests(designs, one, knob)]
        point = ["task", JUDGE, "series", *others]
        tables.append(_distribution(values, knob, point, endpoint))
    known = [table for table in tables if len(table)]
    return pd.concat(known, ignore_index=True) if known else pd.DataFrame(columns=COLUMNS)


def _rests(designs: pd.DataFrame, knob: str, axis: str) -> bool:
    """Whether a knob varies only because a level of the axis leaves it nothing to act on."""
    for (path, level), prefixes in IDLE.items():
        if path == axis and knob.startswith(prefixes):
            acting = designs[designs[axis] != level]
            return bool(acting.groupby("task")[knob].nunique().le(1).all())
    return False


def _distribution(values: pd.DataFrame, knob: str, point: list[str], endpoint: str) -> pd.DataFrame:
    """The ranks of one axis: a row per level and rank that occurs."""
    wide = values.pivot_table(
        index=[*point, "evidence"], columns=knob, values=endpoint, aggfunc="mean", dropna=False
    )
    wide = wide.dropna()
    if wide.empty or wide.shape[1] < 2:
        return pd.DataFrame(columns=COLUMNS)
    means = wide.groupby(level=point).mean().round(12)  # sums of equal values must tie
    ranks = means.rank(axis=1, ascending=False)
    rows = []
    for level in ranks:
        mean = student(ranks[level])
        for rank, share in ranks[level].value_counts(normalize=True).sort_index().items():
            rows.append((knob, level, rank, share, len(ranks), mean.value, mean.low, mean.high))
    return pd.DataFrame(rows, columns=COLUMNS)
