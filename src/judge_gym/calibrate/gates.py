"""Coverage, recovery and error rates of estimates and tests over panels, each with its gate.

Every rate has the 99 % interval of its Monte-Carlo error, and a gate fails only if that interval
lies wholly outside its band.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from judge_gym.calibrate.panels import Panels
from judge_gym.calibrate.truth import TrueValues

Estimator = Callable[[Panels], pd.DataFrame]
Outcome = Literal["passes", "conservative", "biased", "fails", "no data"]
MONTE_CARLO = 0.99
HIGHEST_COVERAGE, LOWEST_COVERAGE, LOWEST_WITH_FEW = 0.97, 0.93, 0.92
FEW_ITEMS = 12
ALPHA, HIGHEST_ERROR = 0.05, 0.06
BIAS = 0.1
"""The bias, in standard deviations of an estimate, that hardly changes coverage."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity that is estimated with an interval."""

    name: str
    estimate: Estimator
    """Returns one row per panel: value, low, high."""
    truth: Callable[[TrueValues], float]
    biased: bool = False
    """Whether the estimate is biased by construction; then only its interval must hold."""


@dataclass(frozen=True, slots=True)
class HypothesisTest:
    """A hypothesis test."""

    name: str
    p: Estimator
    """Returns one row per panel: p."""
    null: bool = True
    """Whether the null hypothesis is true."""


class Band(NamedTuple):
    """The range in which a rate should lie."""

    low: float
    high: float


def coverage_band(items: int) -> Band:
    """Returns the band of the coverage of a 95 % interval, which is wider with few items."""
    lowest = LOWEST_WITH_FEW if items <= FEW_ITEMS else LOWEST_COVERAGE
    return Band(lowest, HIGHEST_COVERAGE)


def coverage(found: pd.DataFrame, truth: float, band: Band) -> dict[str, object]:
    """Returns how often intervals contain the truth; panels without an interval are counted."""
    known = found.dropna(subset=["low", "high"])
    held = known["low"].le(truth) & known["high"].ge(truth)
    rate, low, high = _rate(int(held.sum()), len(known))
    outcome: Outcome = "passes"
    if high < band.low:
        outcome = "fails"
    elif low > band.high:
        outcome = "conservative"
    return {
        "panels": len(known),
        "undefined": len(found) - len(known),
        "coverage": rate,
        "low": low,
        "high": high,
        "from": band.low,
        "to": band.high,
        "outcome": outcome if len(known) else "no data",
    }


def recovery(found: pd.DataFrame, truth: float, *, biased: bool = False) -> dict[str, object]:
    """Returns the bias of estimates, beside their standard deviation.

    Args:
        found: one row per panel: value, low, high.
        truth: the true value.
        biased: whether a bias is expected, and reported instead of failed.
    """
    values = found["value"].dropna().to_numpy(dtype=float)
    n = len(values)
    if n < 2:
        return {"panels": n, "truth": truth, "outcome": "no data"}
    spread = float(values.std(ddof=1))
    bias, error = float(values.mean() - truth), spread / np.sqrt(n)
    half = float(stats.t.ppf((1 + MONTE_CARLO) / 2, n - 1)) * error
    beyond: Outcome = "biased" if biased else "fails"
    return {
        "panels": n,
        "truth": truth,
        "mean": float(values.mean()),
        "bias": bias,
        "error": error,
        "spread": spread,
        "found": float((found["low"].gt(0) | found["high"].lt(0)).mean()),
        "outcome": beyond if abs(bias) - half > BIAS * spread else "passes",
    }


def errors(found: pd.DataFrame, *, null: bool) -> dict[str, object]:
    """Returns how often a test rejects: its error rate under the null, else its power."""
    known = found["p"].dropna()
    rate, low, high = _rate(int(known.le(ALPHA).sum()), len(known))
    outcome: Outcome = "passes"
    if null and low > HIGHEST_ERROR:
        outcome = "fails"
    elif null and high < ALPHA:
        outcome = "conservative"
    return {
        "effect": "none" if null else "injected",
        "panels": len(known),
        "undefined": len(found) - len(known),
        "rejected": rate,
        "low": low,
        "high": high,
        "to": HIGHEST_ERROR if null else 1.0,
        "outcome": outcome if len(known) else "no data",
    }


def _rate(count: int, n: int) -> tuple[float, float, float]:
    """Returns a share with its 99 % interval."""
    if n == 0:
        return np.nan, np.nan, np.nan
    found = stats.binomtest(count, n).proportion_ci(MONTE_CARLO, method="wilson")
    return count / n, float(found.low), float(found.high)


@dataclass(frozen=True)
class Calibration:
    """The result of a calibration."""

    coverage: pd.DataFrame
    """One row per quantity: whether its intervals contain the truth as often as they should."""
    recovery: pd.DataFrame
    """One row per quantity: the truth, the mean estimate, its bias and the bias's error."""
    tests: pd.DataFrame
    """One row per test: how often it rejects."""

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Every table by its name."""
        return {"coverage": self.coverage, "recovery": self.recovery, "tests": self.tests}

    @property
    def failed(self) -> list[str]:
        """The gates that failed or have no data."""
        return [
            f"{name}: {row['name']}"
            for name, table in self.tables.items()
            for row in table.to_dict("records")
            if row["outcome"] in ("fails", "no data")
        ]

    @property
    def passed(self) -> bool:
        """Whether no gate fails."""
        return not self.failed
