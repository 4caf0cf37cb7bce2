"""Mean stages against reference values from 0 to 1, such as a country's index.

A reference value is about all items together: it is compared with the mean over items, not with
each item.
"""

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.endpoints import positions
from judge_gym.analysis.frames import CELL
from judge_gym.analysis.measures import Summary, of_panels
from judge_gym.analysis.measures.known_answers import means_by_group, own_singles, panel_mean
from judge_gym.analysis.stats.intervals import DISTANCE
from judge_gym.analysis.verdicts import Dataset, Verdicts


def reference_errors(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean normalised stage of each configured judge minus the reference value.

    Columns: task, variant, judge, mean, low, high, items.
    """
    table = means_by_group(own_singles(frame), CELL, _stages, DISTANCE)
    table = table[table["items"] > 0].drop(columns=["n", "scored"])
    references = frame.groupby(CELL, observed=True)["reference"].first()
    away = references.reindex(pd.MultiIndex.from_frame(table[CELL])).to_numpy()
    table[["mean", "low", "high"]] -= away[:, None]
    return table


def _stages(verdicts: Verdicts) -> FloatArray:
    """Returns the stage of each verdict that has a reference value."""
    rows = verdicts.rows
    has_reference = rows["reference"].between(0, 1) & (rows["rubric_kind"] != "nominal")
    return np.where(has_reference, positions(rows), np.nan)


def _summary(data: Dataset, panel: Verdicts) -> Summary:
    bias = panel_mean(data, panel, _stages, DISTANCE, "reference")
    note = "mean stage of all judges minus the reference value" if bias.n else "no reference value"
    of_task = data.frame["task"] == panel.key["task"]
    references = data.frame.loc[of_task, "reference"].dropna()
    if references.empty:
        return Summary(bias, note)
    away = float(references.iloc[0])
    error = bias._replace(value=bias.value - away, low=bias.low - away, high=bias.high - away)
    return Summary(error, note)


REFERENCE_ERROR = of_panels(4, "reference error", _summary)
