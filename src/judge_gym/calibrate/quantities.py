"""The quantities and tests that are calibrated.

An entry names the analysis that estimates it from the samples of some conditions, and its truth.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import pandas as pd

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
from judge_gym.calibrate.gates import Check, Quantity
from judge_gym.calibrate.panels import Analysis, Panels
from judge_gym.calibrate.worlds import LEANING, PLAIN

PAIR, SUBSETS = ("plain", "biased"), ("plain, subset", "biased, subset")
CONTROL = ("plain, control", "biased, control")
TRIO = ("plain", "biased", "leaning")
TWINS = ("plain", "twin")
DRAWN = ("plain, drawn rubrics", "biased, drawn rubrics")
OWN, RIVALS = "plain, own rubric", "plain, rival's rubric"
EVIDENCE_FIRST = ("plain, evidence first", "plain")
FIXED_ORDER = ("leaning, fixed order", "leaning")


class _Read:
    """Reads the result of an analysis of some conditions, one row per panel.

    Args:
        analysis: maps a tidy frame to a table.
        names: the conditions.
        columns: the table's columns of the value and its interval, or of the p-value.
        at: selects rows by values of columns.
    """

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
QUANTITIES = (
    # --- one judge ---
    Quantity(
        "expected stage",
        _Read(judge_endpoints, "plain", at={"endpoint": "stage"}),
        lambda known: known.endpoint("stage", "plain"),
    ),
    Quantity(
        "expected stage, with abstentions",
        _Read(judge_endpoints, "cautious", at={"endpoint": "stage"}),
        lambda known: known.endpoint("stage", "cautious"),
    ),
    Quantity(
        "agreement with known answers",
        _Read(ground_truth, "plain", at={"measure": "right"}),
        lambda known: known.endpoint("right", "plain"),
    ),
    Quantity(
        "abstention rate",
        _Read(
            abstention,
            "cautious",
            at={JUDGE: "all"},
            columns="abstained abstained_low abstained_high",
        ),
        lambda known: known.abstention("cautious"),
    ),
    Quantity(
        "subset size",
        _Read(judge_endpoints, "plain, subset", at={"endpoint": "subset_size"}),
        lambda known: known.endpoint("size", "plain, subset"),
    ),
    Quantity(
        "singleton rate",
        _Read(judge_endpoints, "plain, subset", at={"endpoint": "singleton_rate"}),
        lambda known: known.endpoint("singleton", "plain, subset"),
    ),
    Quantity(
        "uncertainty gap",
        _Read(uncertainty, "plain, subset", at={JUDGE: "all"}, columns="gap gap_low gap_high"),
        lambda known: known.endpoint("gap", "plain, subset"),
    ),
    Quantity(
        "jitter",
        _Read(judge_endpoints, "leaning", at={"endpoint": "jitter"}),
        lambda known: known.endpoint("jitter", "leaning"),
    ),
    Quantity(
        "intraclass correlation",
        _Read(consistency, "leaning", columns="icc icc_low icc_high", at={JUDGE: LEANING}),
        lambda known: known.consistency("leaning"),
    ),
    Quantity(
        "position bias",
        _Read(display_bias, "leaning", at={"kind": "position", "place": "1"}),
        lambda known: known.endpoint("position", "leaning"),
    ),
    Quantity(
        "label bias",
        _Read(display_bias, "leaning", at={"kind": "label", "place": "A"}),
        lambda known: known.endpoint("label", "leaning"),
    ),
    # --- two judges ---
    Quantity(
        "bias of a judge",
        _Read(_stages_of_judges, *PAIR, columns=DIFFERENCE),
        lambda known: known.endpoint("stage", "biased", "plain"),
    ),
    Quantity(
        "difference of twins",
        _Read(_stages_of_judges, *TWINS, columns=DIFFERENCE),
        lambda known: known.endpoint("stage", "twin", "plain"),
    ),
    Quantity(
        "conflict of subsets",
        _Read(conflict, *SUBSETS, columns="k low high"),
        lambda known: known.conflict(*SUBSETS),
    ),
    Quantity(
        "distance",
        _Read(conflict, *PAIR, columns=DISTANCE),
        lambda known: known.distance(*PAIR),
    ),
    Quantity(
        "distance of subsets",
        _Read(conflict, *SUBSETS, columns=DISTANCE),
        lambda known: known.distance(*SUBSETS),
    ),
    Quantity(
        "distance under position bias",
        _Read(conflict, "plain", "leaning", columns=DISTANCE),
        lambda known: known.distance("plain", "leaning"),
    ),
    Quantity(
        "polarization above chance",
        _Read(polarization, *TRIO, columns="above low high"),
        lambda known: known.polarization(*TRIO),
    ),
    Quantity(
        "entrenchment",
        _Read(entrenchment, *PAIR, at={JUDGE: "all"}),
        lambda known: known.entrenchment(*PAIR),
    ),
    # --- many rubrics ---
    Quantity(
        "expected stage, drawn rubrics",
        _Read(judge_endpoints, DRAWN[0], at={"endpoint": "stage"}),
        lambda known: known.endpoint("stage", DRAWN[0]),
    ),
    Quantity(
        "bias of a judge, drawn rubrics",
        _Read(_stages_of_judges, *DRAWN, columns=DIFFERENCE),
        lambda known: known.endpoint("stage", *DRAWN[::-1]),
    ),
    Quantity(
        "conflict, drawn rubrics",
        _Read(conflict, *DRAWN, columns="k low high"),
        lambda known: known.conflict(*DRAWN),
    ),
    Quantity(
        "distance, drawn rubrics",
        _Read(conflict, *DRAWN, columns=DISTANCE),
        lambda known: known.distance(*DRAWN),
    ),
    # --- stated expert agreement ---
    Quantity(
        "Brier score of stated agreement",
        _Read(_overconfidence, *TRIO, columns="brier brier_low brier_high"),
        lambda known: known.brier("plain", TRIO[1:]),
    ),
    Quantity(
        "calibration error",
        _Read(_overconfidence, *TRIO, columns="error error_low error_high"),
        lambda known: known.calibration_error("plain", TRIO[1:]),
        biased=True,
    ),
    # --- two designs ---
    Quantity(
        "presentation.first: no effect",
        _Read(_stages_of_designs, *EVIDENCE_FIRST, columns=DIFFERENCE),
        lambda known: known.endpoint("stage", *EVIDENCE_FIRST),
    ),
    Quantity(
        "presentation.order under position bias",
        _Read(_stages_of_designs, *FIXED_ORDER, columns=DIFFERENCE),
        lambda known: known.endpoint("stage", *FIXED_ORDER),
    ),
    # --- hypotheses ---
    Quantity(
        "H1: distance, contested minus control",
        _Read(partial(_tested, contested_distance), *PAIR, *CONTROL, columns=DIFFERENCE),
        lambda known: known.distance(*PAIR) - known.distance(*CONTROL),
    ),
    Quantity(
        "H2: stated minus warranted agreement",
        _Read(_overconfidence, *TRIO, columns="bias bias_low bias_high"),
        lambda known: known.overconfidence("plain", TRIO[1:]),
    ),
    Quantity(
        "H3: own minus rival's rubric",
        _Read(swap_sensitivity, OWN, RIVALS),
        lambda known: known.endpoint("stated", OWN, RIVALS),
    ),
    Quantity(
        "H4: distance, single minus subset",
        _Read(partial(_tested, forced_choice_distance), *PAIR, *SUBSETS, columns=DIFFERENCE),
        lambda known: known.distance_gap(PAIR, SUBSETS),
    ),
)

TESTS = (
    Check("permuted judges, twins", _Read(polarization, *TWINS, columns="p_value")),
    Check("permuted judges, one biased", _Read(polarization, *TRIO, columns="p_value"), null=False),
    Check("flipped signs, twins", _Read(_stages_of_judges, *TWINS, columns="p")),
    Check("flipped signs, one biased", _Read(_stages_of_judges, *PAIR, columns="p"), null=False),
    Check("flipped signs, evidence first", _Read(_stages_of_designs, *EVIDENCE_FIRST, columns="p")),
    Check(
        "flipped signs, fixed order",
        _Read(_stages_of_designs, *FIXED_ORDER, columns="p"),
        null=False,
    ),
)
