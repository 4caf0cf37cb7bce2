"""The gates that estimates and tests must pass, and the faults that a number of panels can detect.

A gate is a rate or a bias with a limit. Its p-value is that of the observed panels if the limit
just held, and Holm's correction over all gates of a run keeps the chance that a correct analysis
fails any of them at 5 %.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from judge_gym.analysis.stats import paired_tests

Outcome = Literal["passes", "conservative", "biased", "fails", "withheld", "no data"]
FALSE_ALARM = 0.05
"""The chance that a run of a correct analysis fails."""
POWER = 0.9
"""The chance with which the faults that a profile names are detected."""
LEAST_COVERAGE, CONSERVATIVE = 0.93, 0.97
LEAST_PRINTED, PRINTED_FROM = 0.9, 30
"""The share of panels that must print an interval, and the number of items from which they must."""
MOST_REJECTED = 0.05
LEAST_FOUND = 0.8
"""The share of panels in which a test must find an injected effect that is hard to miss."""
BIAS = 0.1
"""The bias, in standard deviations of an estimate, that hardly changes coverage."""
MONTE_CARLO = 0.99
"""The level of the intervals of Monte-Carlo error that tables show."""


class Rate(NamedTuple):
    """A share of panels, with the interval of its Monte-Carlo error."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(count: int, n: int) -> "Rate":
        """Returns the share with Wilson's interval; not a number of no panels."""
        if n == 0:
            return Rate(np.nan, np.nan, np.nan)
        ends = stats.binomtest(count, n).proportion_ci(MONTE_CARLO, method="wilson")
        return Rate(count / n, float(ends.low), float(ends.high))


def p_below(count: int, n: int, least: float) -> float:
    """Returns the p-value of so few panels, if the rate were at least `least`."""
    return float(stats.binom.cdf(count, n, least))


def p_above(count: int, n: int, most: float) -> float:
    """Returns the p-value of so many panels, if the rate were at most `most`."""
    return float(stats.binom.sf(count - 1, n, most))


def holm(p: Sequence[float], family: int | None = None) -> list[float]:
    """Returns p-values corrected for all gates of a run, of which these may be only some."""
    left_out = max(len(p), family or 0) - len(p)
    found: list[float] = paired_tests.holm([*p, *[1.0] * left_out])[: len(p)].tolist()
    return found


# --- rows of the tables --------------------------------------------------------------------------


def coverage(found: pd.DataFrame, *, printed: bool, withheld: str = "") -> dict[str, Any]:
    """Returns how often intervals contain the truth, among the panels that print one.

    `found` has a row per panel: value, low, high, truth. `p` is that of the coverage, `p_printed`
    that of the share of panels with an interval, if they should be `printed`; `withheld` is the
    rule by which they may not be. A p of None is no gate.
    """
    known = found.dropna(subset=["low", "high"])
    held = int((known["low"].le(known["truth"]) & known["high"].ge(known["truth"])).sum())
    n, total = len(known), len(found)
    rate = Rate.of(held, n)
    outcome: Outcome = "withheld" if n == 0 else "passes"
    if rate.low > CONSERVATIVE:
        outcome = "conservative"
    return {
        "panels": total,
        "printed": n / total if total else np.nan,
        "withheld": withheld,
        "coverage": rate.value,
        "low": rate.low,
        "high": rate.high,
        "outcome": outcome,
        "p": p_below(held, n, LEAST_COVERAGE) if n else None,
        "p_printed": p_below(n, total, LEAST_PRINTED) if printed else None,
    }


def recovery(found: pd.DataFrame, *, biased: bool = False) -> dict[str, Any]:
    """Returns the bias of estimates beside their spread; `biased` if one is expected."""
    known = found.dropna(subset=["value"])
    errors = (known["value"] - known["truth"]).to_numpy(dtype=float)
    n = len(errors)
    if n < 2:
        return {"panels": n, "outcome": "no data", "p": None}
    spread = float(errors.std(ddof=1))
    bias, error = float(errors.mean()), spread / np.sqrt(n)
    beyond = abs(bias) - BIAS * spread
    p = float(stats.t.sf(beyond / error, n - 1)) if error > 0 else float(abs(bias) < 1e-9)
    return {
        "panels": n,
        "truth": float(known["truth"].mean()),
        "mean": float(known["value"].mean()),
        "bias": bias,
        "error": error,
        "spread": spread,
        "outcome": "biased" if biased and p < 1 - MONTE_CARLO else "passes",
        "p": None if biased else min(1.0, 2 * p),
    }


def rejections(found: pd.DataFrame, *, null: bool) -> dict[str, Any]:
    """Returns how often a test rejects: its error rate under the null, else its power."""
    known = found["p"].dropna()
    count, n = int(known.le(MOST_REJECTED).sum()), len(known)
    rate = Rate.of(count, n)
    outcome: Outcome = "withheld" if n == 0 else "passes"
    if null and rate.high < MOST_REJECTED:
        outcome = "conservative"
    p = p_above(count, n, MOST_REJECTED) if null else p_below(count, n, LEAST_FOUND)
    return {
        "effect": "none" if null else "injected",
        "panels": len(found),
        "printed": n / len(found) if len(found) else np.nan,
        "rejected": rate.value,
        "low": rate.low,
        "high": rate.high,
        "outcome": outcome,
        "p": p if n else None,
    }


# --- a whole run ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calibration:
    """The result of a calibration: a table each of coverage, of recovery and of tests."""

    coverage: pd.DataFrame
    """One row per quantity: whether its intervals contain the truth as often as they should."""
    recovery: pd.DataFrame
    """One row per quantity: the truth, the mean estimate, its bias and the bias's error."""
    tests: pd.DataFrame
    """One row per test: how often it rejects."""
    failed: list[str]
    """The gates that failed."""
    gates: int
    """The number of gates that the correction for many gates counts."""

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Every table by its name."""
        return {"coverage": self.coverage, "recovery": self.recovery, "tests": self.tests}

    @property
    def passed(self) -> bool:
        """Whether no gate fails."""
        return not self.failed


PRINTED = "share printed"
"""The name of the gate on the share of panels that print an interval."""


def decide(
    tables: Mapping[str, Sequence[dict[str, Any]]], family: int | None = None
) -> Calibration:
    """Decides all gates together.

    Args:
        tables: the rows of `coverage`, `recovery` and `tests`, each with world, items and name.
        family: the number of gates of the whole run, if the tables hold only some of them.
    """
    gates = [
        (name, row, row.pop(p))
        for table, rows in tables.items()
        for row in rows
        for name, p in ((table, "p"), (PRINTED, "p_printed"))
        if p in row
    ]
    gates = [gate for gate in gates if gate[2] is not None]
    failed = []
    for (name, row, _), p in zip(gates, holm([p for _, _, p in gates], family), strict=True):
        if p < FALSE_ALARM:
            row["outcome"] = "fails"
            failed.append(f"{name}: {row['name']} ({row['world']}, {row['items']} items)")
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return Calibration(**frames, failed=failed, gates=max(len(gates), family or 0))


class Detectable(NamedTuple):
    """The faults that a number of panels detects with a chance of 90 %."""

    coverage: float
    """The highest coverage that is told from 93 %."""
    rejected: float
    """The lowest rate of false positives that is told from 5 %."""
    bias: float
    """The smallest bias that is told from a tenth of the spread, in spreads."""

    def __str__(self) -> str:
        return (
            f"sees coverage below {self.coverage:.1%}, false positives above {self.rejected:.1%} "
            f"and a bias above {self.bias:.2f} standard deviations"
        )


def detectable(panels: int, gates: int) -> Detectable:
    """Returns what a run of so many panels and gates detects; the rest may pass unnoticed.

    >>> round(detectable(1900, 300).coverage, 2)
    0.9
    """
    level = FALSE_ALARM / max(1, gates)
    few = int(stats.binom.ppf(level, panels, LEAST_COVERAGE)) - 1
    many = int(stats.binom.isf(level, panels, MOST_REJECTED)) + 1
    reach = float(stats.norm.isf(level / 2) + stats.norm.isf(1 - POWER)) / np.sqrt(panels)
    return Detectable(
        _root(lambda rate: p_below(few, panels, rate) - POWER) if few >= 0 else 0.0,
        _root(lambda rate: p_above(many, panels, rate) - POWER) if many <= panels else 1.0,
        BIAS + reach,
    )


def _root(excess: Callable[[float], float]) -> float:
    from scipy.optimize import brentq

    return float(brentq(excess, 1e-9, 1 - 1e-9))
