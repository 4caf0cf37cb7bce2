"""The quantities and tests that are calibrated, and the gates that they must pass.

A quantity names the analysis that estimates it from the samples of some conditions, and its truth.
Every rate has the 99 % interval of its Monte-Carlo error, and a gate fails only if that interval
lies wholly outside its band.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from judge_gym.analysis.endpoints import judge_endpoints
from judge_gym.analysis.frames import CELL, JUDGE
from judge_gym.analysis.hypotheses import (
    HypothesisResult,
    contested_distance,
    forced_choice_distance,
)
from judge_gym.analysis.metrics.abstention import abstention
from judge_gym.analysis.metrics.accuracy import ground_truth
from judge_gym.analysis.metrics.conflict import conflict
from judge_gym.analysis.metrics.consistency import consistency
from judge_gym.analysis.metrics.entrenchment import entrenchment
from judge_gym.analysis.metrics.polarization import polarization
from judge_gym.analysis.metrics.stated_agreement import calibration, probed_verdicts
from judge_gym.analysis.metrics.swap_sensitivity import swap_sensitivity
from judge_gym.analysis.metrics.uncertainty import uncertainty
from judge_gym.analysis.metrics.verdict_shapes import display_bias
from judge_gym.analysis.stats.contrasts import contrasts, judge_contrasts
from judge_gym.calibrate.truth import Endpoint, TrueValues
from judge_gym.calibrate.worlds import LEANING, PLAIN, Analysis, Panels

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
    """Returns the bias of estimates beside their spread; `biased` if one is expected."""
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


PAIR, SUBSETS = ("plain", "biased"), ("plain, subset", "biased, subset")
CONTROL = ("plain, control", "biased, control")
TRIO = ("plain", "biased", "leaning")
TWINS = ("plain", "twin")
DRAWN = ("plain, drawn rubrics", "biased, drawn rubrics")
OWN, RIVALS = "plain, own rubric", "plain, rival's rubric"
EVIDENCE_FIRST = ("plain, evidence first", "plain")
FIXED_ORDER = ("leaning, fixed order", "leaning")


class _Read:
    """Reads columns of the result of an analysis of some conditions, one row per panel."""

    # A class and not a closure, because it is pickled for other processes.
    def __init__(
        self,
        analysis: Analysis,
        *names: str,
        columns: str = "mean low high",
        at: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.analysis, self.names = analysis, names
        self.columns, self.at = columns.split(), dict(at)

    def __call__(self, drawn: Panels) -> pd.DataFrame:
        table = drawn.analysed(self.analysis, *self.names)
        for column, value in self.at.items():
            table = table[table[column] == value]
        names = ["value", "low", "high"] if len(self.columns) == 3 else ["p"]
        return table[self.columns].set_axis(names, axis=1)


def _stages_of_designs(frame: pd.DataFrame) -> pd.DataFrame:
    return contrasts(frame, endpoints=["stage"])


def _stages_of_judges(frame: pd.DataFrame) -> pd.DataFrame:
    return judge_contrasts(frame, endpoints=["stage"])


def _overconfidence(frame: pd.DataFrame) -> pd.DataFrame:
    verdicts = probed_verdicts(frame)
    return calibration(verdicts[verdicts[JUDGE] == PLAIN], CELL)


def _tested(
    hypothesis: Callable[[pd.DataFrame], HypothesisResult], frame: pd.DataFrame
) -> pd.DataFrame:
    """Returns the estimate of a hypothesis for each panel."""
    found = [hypothesis(part).estimate for _, part in frame.groupby("pool")]
    return pd.DataFrame([one._asdict() for one in found])


DIFFERENCE, DISTANCE = "value low high", "distance distance_low distance_high"


def _endpoint(name: str, condition: str, endpoint: str, truth: Endpoint) -> Quantity:
    """Returns the quantity of an endpoint of one judge."""
    estimate = _Read(judge_endpoints, condition, at={"endpoint": endpoint})
    return Quantity(name, estimate, lambda true: true.endpoint(truth, condition))


def _display_bias(name: str, kind: Literal["position", "label"], place: str) -> Quantity:
    estimate = _Read(display_bias, "leaning", at={"kind": kind, "place": place})
    return Quantity(name, estimate, lambda true: true.endpoint(kind, "leaning"))


def _difference(name: str, analysis: Analysis, condition: str, minus: str) -> Quantity:
    """Returns the quantity of a difference in the expected stage."""
    # The first name comes first in a contrast of designs, and last in one of judges.
    names = (condition, minus) if analysis is _stages_of_designs else (minus, condition)
    estimate = _Read(analysis, *names, columns=DIFFERENCE)
    return Quantity(name, estimate, lambda true: true.endpoint("stage", condition, minus))


def _distance(name: str, names: tuple[str, str]) -> Quantity:
    estimate = _Read(conflict, *names, columns=DISTANCE)
    return Quantity(name, estimate, lambda true: true.distance(*names))


def _conflict(name: str, names: tuple[str, str]) -> Quantity:
    estimate = _Read(conflict, *names, columns="k low high")
    return Quantity(name, estimate, lambda true: true.conflict(*names))


def _of_all(analysis: Analysis, *names: str, column: str) -> _Read:
    """Reads a column of the row of all judges, with its interval."""
    return _Read(analysis, *names, at={JUDGE: "all"}, columns=_with_interval(column))


def _with_interval(column: str) -> str:
    return f"{column} {column}_low {column}_high"


QUANTITIES = (
    # --- one judge ---
    _endpoint("expected stage", "plain", "stage", "stage"),
    _endpoint("expected stage, with abstentions", "cautious", "stage", "stage"),
    Quantity(
        "agreement with known answers",
        _Read(ground_truth, "plain", at={"measure": "right"}),
        lambda true: true.endpoint("right", "plain"),
    ),
    Quantity(
        "abstention rate",
        _of_all(abstention, "cautious", column="abstained"),
        lambda true: true.abstention("cautious"),
    ),
    _endpoint("subset size", "plain, subset", "subset_size", "size"),
    _endpoint("singleton rate", "plain, subset", "singleton_rate", "singleton"),
    Quantity(
        "uncertainty gap",
        _of_all(uncertainty, "plain, subset", column="gap"),
        lambda true: true.endpoint("gap", "plain, subset"),
    ),
    _endpoint("jitter", "leaning", "jitter", "jitter"),
    Quantity(
        "intraclass correlation",
        _Read(consistency, "leaning", columns=_with_interval("icc"), at={JUDGE: LEANING}),
        lambda true: true.consistency("leaning"),
    ),
    _display_bias("position bias", "position", "1"),
    _display_bias("label bias", "label", "A"),
    # --- two judges ---
    _difference("bias of a judge", _stages_of_judges, "biased", "plain"),
    _difference("difference of twins", _stages_of_judges, "twin", "plain"),
    _conflict("conflict of subsets", SUBSETS),
    _distance("distance", PAIR),
    _distance("distance of subsets", SUBSETS),
    _distance("distance under position bias", ("plain", "leaning")),
    Quantity(
        "polarization above chance",
        _Read(polarization, *TRIO, columns="above low high"),
        lambda true: true.polarization(*TRIO),
    ),
    Quantity(
        "entrenchment",
        _Read(entrenchment, *PAIR, at={JUDGE: "all"}),
        lambda true: true.entrenchment(*PAIR),
    ),
    # --- many rubrics ---
    _endpoint("expected stage, drawn rubrics", DRAWN[0], "stage", "stage"),
    _difference("bias of a judge, drawn rubrics", _stages_of_judges, DRAWN[1], DRAWN[0]),
    _conflict("conflict, drawn rubrics", DRAWN),
    _distance("distance, drawn rubrics", DRAWN),
    # --- stated expert agreement ---
    Quantity(
        "Brier score of stated agreement",
        _Read(_overconfidence, *TRIO, columns=_with_interval("brier")),
        lambda true: true.brier("plain", TRIO[1:]),
    ),
    Quantity(
        "calibration error",
        _Read(_overconfidence, *TRIO, columns=_with_interval("error")),
        lambda true: true.calibration_error("plain", TRIO[1:]),
        biased=True,
    ),
    # --- two designs ---
    _difference("presentation.first: no effect", _stages_of_designs, *EVIDENCE_FIRST),
    _difference("presentation.order under position bias", _stages_of_designs, *FIXED_ORDER),
    # --- hypotheses ---
    Quantity(
        "H1: distance, contested minus control",
        _Read(partial(_tested, contested_distance), *PAIR, *CONTROL, columns=DIFFERENCE),
        lambda true: true.distance(*PAIR) - true.distance(*CONTROL),
    ),
    Quantity(
        "H2: stated minus warranted agreement",
        _Read(_overconfidence, *TRIO, columns=_with_interval("bias")),
        lambda true: true.overconfidence("plain", TRIO[1:]),
    ),
    Quantity(
        "H3: own minus rival's rubric",
        _Read(swap_sensitivity, OWN, RIVALS),
        lambda true: true.endpoint("stated", OWN, RIVALS),
    ),
    Quantity(
        "H4: distance, single minus subset",
        _Read(partial(_tested, forced_choice_distance), *PAIR, *SUBSETS, columns=DIFFERENCE),
        lambda true: true.distance_gap(PAIR, SUBSETS),
    ),
)

TESTS = (
    HypothesisTest("permuted judges, twins", _Read(polarization, *TWINS, columns="p_value")),
    HypothesisTest(
        "permuted judges, one biased", _Read(polarization, *TRIO, columns="p_value"), null=False
    ),
    HypothesisTest("flipped signs, twins", _Read(_stages_of_judges, *TWINS, columns="p")),
    HypothesisTest(
        "flipped signs, one biased", _Read(_stages_of_judges, *PAIR, columns="p"), null=False
    ),
    HypothesisTest(
        "flipped signs, evidence first", _Read(_stages_of_designs, *EVIDENCE_FIRST, columns="p")
    ),
    HypothesisTest(
        "flipped signs, fixed order",
        _Read(_stages_of_designs, *FIXED_ORDER, columns="p"),
        null=False,
    ),
)
