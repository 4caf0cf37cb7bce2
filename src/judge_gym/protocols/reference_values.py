"""Mean stages against reference values from 0 to 1, such as a country's index.

A reference value is about all items together: it is compared with the mean over items, not with
each item.
"""

import pandas as pd

from judge_gym.analysis.endpoints import grouped, positions
from judge_gym.analysis.frames import CELL, ITEM
from judge_gym.analysis.measures import Summary, of_panels
from judge_gym.analysis.measures.known_answers import (
    ItemsByPanel,
    judge_means,
    own_singles,
    panel_mean,
    values_without_each_draw,
)
from judge_gym.analysis.stats.intervals import DISTANCE
from judge_gym.analysis.verdicts import Dataset, Verdicts


def reference_errors(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean normalised stage of each configured judge minus the reference value.

    Columns: task, variant, judge, mean, low, high, items.
    """
    found = judge_means(frame, _stages, DISTANCE)
    references = frame.groupby(CELL, observed=True)["reference"].first()
    away = references.reindex(pd.MultiIndex.from_frame(found[CELL])).to_numpy()
    found[["mean", "low", "high"]] -= away[:, None]
    return found


def _stages(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean stage of each cell that has a reference value."""
    own = own_singles(frame)
    known = own["reference"].between(0, 1) & (own["rubric_kind"] != "nominal")
    groups = grouped(own, [*ITEM, "reference"], known & (own["status"] == "scored"))
    return groups.names.assign(value=groups.mean(positions(groups.rows)))


def _summary(data: Dataset, panel: Verdicts) -> Summary:
    found = panel_mean(data.compute(_stages_without_each_draw), panel, DISTANCE)
    note = "mean stage of all judges minus the reference value" if found.n else "no reference value"
    of_task = data.frame["task"] == panel.key["task"]
    references = data.frame.loc[of_task, "reference"].dropna()
    if references.empty:
        return Summary(found, note)
    away = float(references.iloc[0])
    error = found._replace(value=found.value - away, low=found.low - away, high=found.high - away)
    return Summary(error, note)


def _stages_without_each_draw(frame: pd.DataFrame) -> list[ItemsByPanel]:
    return values_without_each_draw(frame, _stages)


REFERENCE_ERROR = of_panels(4, "reference error", _summary)
