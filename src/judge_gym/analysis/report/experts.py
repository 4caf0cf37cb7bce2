"""Sections on stated expert agreement: its calibration, and the effect of the rubric's author."""

import numpy as np
import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import expected_stage
from judge_gym.analysis.frames import CELL, JUDGE, ordinal
from judge_gym.analysis.hypotheses import confidence_in_own_rubric, overstated_agreement
from judge_gym.analysis.metrics.stated_agreement import (
    calibration,
    probed_verdicts,
    reliability,
    verdicts_without_draws,
)
from judge_gym.analysis.metrics.swap_sensitivity import swap_pairs, swap_sensitivity
from judge_gym.analysis.report.page import Chart, Section, Table, section
from judge_gym.analysis.report.sections import ReportInput, report_section
from judge_gym.analysis.stats.intervals import Estimate


@report_section(order=6)
def overconfidence(given: ReportInput) -> Section | None:
    """Shows the calibration of the stated probability that most of three experts would agree."""
    frame, data = given.frame, given.data
    if not frame["probe"].notna().any():
        return None
    verdicts, without = data.compute(probed_verdicts), data.compute(verdicts_without_draws)
    curve = reliability(verdicts, [JUDGE], without)
    drawn = curve.rename(
        columns={"y": "reference", "y_low": "low", "y_high": "high", "verdicts": "n"}
    )
    # The lead is that of the second hypothesis; verdicts pooled by bin may give another.
    lead = _lead(
        overstated_agreement(data).estimate,
        "Judges are overconfident: they state more agreement than is found",
        "Judges are underconfident: they state less agreement than is found",
        "No clear effect: judges state about as much agreement as is found",
    )
    return section(
        "Are judges overconfident?",
        lead or "Too few verdicts have a reference.",
        tables=[
            Table(
                "Calibration",
                "The reference is the chance that most of three other judges' verdicts on the "
                "item, on other displays and under the rubrics of their own designs, fall into the "
                "chosen set. Bias is stated minus reference; hallucination the share of verdicts "
                "stated above 0.8 that others contradict.",
                calibration(verdicts, CELL, without),
            ),
            Table(
                "Calibration by set size",
                "Wider sets are easier to agree with: compare at equal size.",
                calibration(verdicts, [JUDGE, "size"], without),
            ),
            Table("Reliability", "By stated probability, in ten bins.", curve),
        ],
        charts=[
            Chart("Reliability by judge", figures.reliability_figure, drawn, lead),
            Chart("Stated expert agreement", figures.probe_figure, _stated(frame)),
        ],
    )


def _lead(found: Estimate, more: str, less: str, unclear: str) -> str | None:
    """Returns the sentence that fits an estimate, with its interval; None if it is unknown."""
    if not found.known:
        return None
    interval = f"({found.value:+.2f}, 95 % from {found.low:+.2f} to {found.high:+.2f})"
    if found.low <= 0 <= found.high:
        return f"{unclear} {interval}"
    return f"{more if found.value > 0 else less} {interval}"


def _stated(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns stated probabilities, each call once, with the author of the rubric used."""
    probed = frame[frame["probe"].notna()]
    seen = probed.duplicated(["task", "probe_call_id"]) & probed["probe_call_id"].notna()
    probed = probed[~seen]
    judging = pd.MultiIndex.from_frame(frame[["task", JUDGE]].drop_duplicates())
    author = probed["rubric_author"]
    used = np.select(
        [
            author == "provided",
            (author == probed[JUDGE]) | (author == "own"),
            pd.MultiIndex.from_frame(probed[["task", "rubric_author"]]).isin(judging),
        ],
        ["given", "own", "rival's"],
        "third party's",
    )
    return probed.assign(**{"rubric used": used})[["task", JUDGE, "probe", "rubric used"]]


@report_section(order=7)
def rubric_author(given: ReportInput) -> Section | None:
    """Compares judges under their own and under other authors' rubrics."""
    if not given.frame["is_swap"].any():
        return None
    pairs = given.data.compute(swap_pairs)
    ordered = given.data.without_pairs.ordinal.frame
    whose = ordered["is_swap"].map({True: "another's", False: "own"})
    stages = pd.DataFrame()
    if (ordered["status"] == "scored").any():
        named = ordered.assign(**{"rubric used": whose})
        stages = expected_stage(ordinal(named), [*CELL, "rubric used"])
    rivals = pairs[pairs["role"] == "rival"].rename(columns={"other": "rival"})
    drawn = rivals.groupby(["task", JUDGE, "rubric_author"], observed=True)[["own", "rival"]].mean()
    lead = _lead(
        confidence_in_own_rubric(pairs).estimate,
        "Judges state more agreement under their own rubric than under a rival's",
        "Judges state less agreement under their own rubric than under a rival's",
        "No clear effect of the rubric's author on stated agreement",
    )
    return section(
        "Does the rubric's author matter?",
        lead or "Too few verdicts were probed under both rubrics.",
        tables=[
            Table(
                "Swap sensitivity",
                "A swap lets a judge score under another author's rubric. Stated probability under "
                "the own rubric minus under another's, paired by item and replicate. A third "
                "party's rubric is the control.",
                swap_sensitivity(given.data),
            ),
            Table(
                "Expected stage by rubric author",
                "0 is the first stage, 1 the last; other authors' rubrics are pooled.",
                stages,
            ),
        ],
        charts=[Chart("Own and rivals' rubrics", figures.swap_figure, drawn.reset_index(), lead)],
    )
