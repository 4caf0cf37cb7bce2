"""Estimates as the judge table and comparisons pass them on."""

import numpy as np

from judge_gym.analysis.stats.intervals import Estimate
from judge_gym.records.judge_table import Quantity


def as_quantity(estimate: Estimate) -> Quantity:
    """Writes an estimate as JSON has it; an interval that is withheld is null, with the reason."""
    value, n = estimate.value, estimate.n
    if np.isnan([estimate.low, estimate.high]).any():
        withheld = estimate.withheld or "no interval"
        return {"value": value, "low": None, "high": None, "n": n, "withheld": withheld}
    return {
        "value": value,
        "low": min(estimate.low, value),
        "high": max(estimate.high, value),
        "n": n,
    }
