"""Metrics of a panel of judges, one module each.

Importing a module here registers its metric for `metric_table`. Modules without a metric hold
measures that several analyses share: distances, stated expert agreement, shapes of verdicts.
"""

from judge_gym.analysis.metrics import (  # noqa: F401
    abstention,
    accuracy,
    conflict,
    consistency,
    entrenchment,
    polarization,
    swap_sensitivity,
    uncertainty,
)
from judge_gym.analysis.metrics.summary import METRICS as METRICS
from judge_gym.analysis.metrics.summary import metric_table as metric_table
