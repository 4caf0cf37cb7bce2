"""Metrics of a panel of judges, one module each; a new module registers its metric by itself.

Modules without a metric hold measures that several analyses share, such as shapes of verdicts.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import JUDGE, PANEL
from judge_gym.analysis.panels import ALL_JUDGES, Dataset, Panel, Samples
from judge_gym.analysis.stats.intervals import Estimate

ALL = "all"
"""The name of all judges of a panel together in tables."""
TOO_FEW_JUDGES = "needs an item with scored verdicts of two judges"


class Summary(NamedTuple):
    """A metric of one panel, with a note that puts it into context."""

    estimate: Estimate
    note: str


Summarize = Callable[[Dataset, Panel], Summary]


class Metric(NamedTuple):
    """A registered metric."""

    order: int
    """The place in the table."""
    name: str
    summarize: Summarize


METRICS: dict[str, Metric] = {}


def metric(name: str, *, order: int) -> Callable[[Summarize], Summarize]:
    """Registers the function that summarises a panel under the metric's name."""

    def register(summarize: Summarize) -> Summarize:
        METRICS[name] = Metric(order, name, summarize)
        return summarize

    return register


def metric_table(samples: Samples, more: Sequence[Metric] = ()) -> pd.DataFrame:
    """Returns a row per task, variant and metric: value, low, high, n (items) and a note.

    Args:
        samples: the samples, or a dataset of them.
        more: metrics beside those that are registered here.
    """
    data = Dataset.of(samples)
    rows = []
    for panel in data.panels:
        for _, name, summarize in sorted([*METRICS.values(), *more]):
            found, note = summarize(data, panel)
            rows.append({**panel.key, "metric": name, **found._asdict(), "note": note})
    return pd.DataFrame(rows, columns=[*PANEL, "metric", "value", "low", "high", "n", "note"])


def judge_rows(samples: Samples, row: Callable[[Panel, int], Mapping[str, Any]]) -> pd.DataFrame:
    """Returns a row for all judges of each panel together, then one for each judge."""
    return pd.DataFrame(
        {**panel.key, JUDGE: judge, **row(panel, place)}
        for panel in Dataset.of(samples).panels
        for place, judge in enumerate((ALL, *panel.judges), ALL_JUDGES)
    )


def shown(value: float) -> str:
    """Formats a number for a note; undefined is a dash."""
    return "–" if np.isnan(value) else f"{value:.3f}"


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
