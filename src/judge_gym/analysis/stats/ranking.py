"""Ranks the levels of each axis at matched design points (as in GraphGym).

At each point one axis varies and everything else is matched. Over many points the ranks show
whether a level scores highest everywhere, or only on average.
"""

import pandas as pd

from judge_gym.analysis.dataset import Dataset, Samples
from judge_gym.analysis.endpoints import AVERAGED, cell_endpoints
from judge_gym.analysis.frames import JUDGE, PANEL, level_name, own_rows, varied_knobs
from judge_gym.analysis.stats.contrasts import IDLE
from judge_gym.analysis.stats.intervals import student
from judge_gym.errors import DesignError, unknown

RANKED = (*AVERAGED, "entropy")
COLUMNS = ["knob", "level", "rank", "share", "points", "mean_rank", "low", "high"]


def ranking(samples: Samples, endpoint: str = "stage") -> pd.DataFrame:
    """Counts how often each level of each axis takes each rank; 1 is the highest, ties share.

    A point is a task, a judge, a series and a level of every other knob; for the axis of judges, a
    task and a design. Its value is the mean over the items that all levels of the axis have;
    points that lack a level are left out, and so are swapped rubrics. The interval of the mean rank
    is over points, for this evidence.
    """
    if endpoint not in RANKED:
        raise DesignError(unknown("endpoint", endpoint, RANKED), choices=RANKED)
    data = Dataset.of(samples)
    own = own_rows(data.frame)
    knobs = varied_knobs(own)
    designs = own.drop_duplicates(PANEL)[[*PANEL, "series", *knobs]]
    designs = designs.assign(**{knob: designs[knob].map(level_name) for knob in knobs})
    cells = data.compute(cell_endpoints)
    values = cells[[*PANEL, JUDGE, "evidence", endpoint]].merge(designs, on=PANEL)
    tables = [_ranks(values, JUDGE, PANEL, endpoint)]
    for knob in knobs:
        others = [one for one in knobs if one != knob and not _idle(designs, one, knob)]
        point = ["task", JUDGE, "series", *others]
        tables.append(_ranks(values, knob, point, endpoint))
    known = [table for table in tables if len(table)]
    return pd.concat(known, ignore_index=True) if known else pd.DataFrame(columns=COLUMNS)


def _idle(designs: pd.DataFrame, knob: str, axis: str) -> bool:
    """Whether a knob varies only because it has no effect under a level of the axis."""
    for (path, level), prefixes in IDLE.items():
        if path == axis and knob.startswith(prefixes):
            acting = designs[designs[axis] != level]
            return bool(acting.groupby("task")[knob].nunique().le(1).all())
    return False


def _ranks(values: pd.DataFrame, knob: str, point: list[str], endpoint: str) -> pd.DataFrame:
    """Returns the ranks of one axis: a row per level and rank that occurs."""
    wide = values.pivot_table(
        index=[*point, "evidence"], columns=knob, values=endpoint, aggfunc="mean", dropna=False
    )
    wide = wide.dropna()
    if wide.empty or wide.shape[1] < 2:
        return pd.DataFrame(columns=COLUMNS)
    means = wide.groupby(level=point).mean().round(12)  # equal values must tie despite rounding
    ranks = means.rank(axis=1, ascending=False)
    rows = []
    for level in ranks:
        mean = student(ranks[level])
        for rank, share in ranks[level].value_counts(normalize=True).sort_index().items():
            rows.append((knob, level, rank, share, len(ranks), mean.value, mean.low, mean.high))
    return pd.DataFrame(rows, columns=COLUMNS)
