"""What judges say of experts, and what another's rubric does to it."""

import numpy as np
import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import expected_stage
from judge_gym.analysis.frames import CELL, JUDGE, only, ordinal
from judge_gym.analysis.hypotheses import confidence_in_own_rubric, overstated_agreement
from judge_gym.analysis.metrics.stated_agreement import calibration, reliability
from judge_gym.analysis.metrics.swap_sensitivity import swap_sensitivity
from judge_gym.analysis.report.material import Material
from judge_gym.analysis.report.page import Section, Table, section
from judge_gym.analysis.stats.intervals import Estimate


def what_judges_say_of_experts(made: Material) -> Section | None:
    """Calibration of "a majority of three experts would agree"."""
    frame, verdicts = made.frame, made.verdicts
    if not frame["probe"].notna().any():
        return None
    without = made.verdicts_without_draws
    curve = reliability(verdicts, [JUDGE], without)
    drawn = curve.rename(
        columns={"y": "reference", "y_low": "low", "y_high": "high", "verdicts": "n"}
    )
    # The sentence is that of the second hypothesis: verdicts pooled by bin may say another.
    said = _told(overstated_agreement(verdicts, without).estimate, "than is found")
    curved = figures.reliability_figure(drawn, said)
    return section(
        "What judges say of experts",
        said or "Too few verdicts have a reference.",
        tables=[
            Table(
                "Calibration",
                "The reference is the chance that of three other judges' verdicts on the item, on "
                "other displays and under the rubrics of their own designs, most fall into the "
                "chosen set. Bias is stated minus reference; "
                "hallucination the share of verdicts stated above 0.8 that others contradict.",
                calibration(verdicts, CELL, without),
            ),
            Table(
                "Calibration by set size",
                "Wider sets are easier to agree with: compare at equal size.",
                calibration(verdicts, [JUDGE, "size"], without),
            ),
            Table("Reliability", "By what was stated, in ten bins.", curve),
        ],
        charts=[
            ("Reliability by judge", curved),
            ("Stated expert agreement", figures.probe_figure(_stated(frame))),
        ],
    )


def _told(found: Estimate, where: str) -> str | None:
    """By how much stated agreement differs, mean over items; None where that is not known."""
    if not found.known:
        return None
    reach = f"{found.value:+.2f}, 95 % from {found.low:+.2f} to {found.high:+.2f}"
    if found.low <= 0 <= found.high:
        return f"Judges state neither more nor less agreement {where}: not told from 0 ({reach})"
    return f"Judges state {'more' if found.value > 0 else 'less'} agreement {where} ({reach})"


def _stated(frame: pd.DataFrame) -> pd.DataFrame:
    """Stated probabilities, a call once, by whose rubric was used."""
    told = frame[frame["probe"].notna()]
    seen = told.duplicated(["task", "probe_call_id"]) & told["probe_call_id"].notna()
    told = told[~seen]
    judging = pd.MultiIndex.from_frame(frame[["task", JUDGE]].drop_duplicates())
    author = told["rubric_author"]
    used = np.select(
        [
            author == "provided",
            (author == told[JUDGE]) | (author == "own"),
            pd.MultiIndex.from_frame(told[["task", "rubric_author"]]).isin(judging),
        ],
        ["given", "own", "rival's"],
        "third party's",
    )
    return told.assign(**{"rubric used": used})[["task", JUDGE, "probe", "rubric used"]]


def whose_rubric(made: Material) -> Section | None:
    """The same judge under its own and under others' rubrics."""
    frame = made.frame
    if not frame["is_swap"].any():
        return None
    pairs = made.swaps
    by = [*CELL, "rubric used"]
    ordered = only(frame, (frame["rubric_kind"] == "ordinal") & ~frame["pair"])
    named = ordered.assign(
        **{"rubric used": ordered["is_swap"].map({True: "another's", False: "own"})}
    )
    placed = (
        expected_stage(ordinal(named), by)
        if (named["status"] == "scored").any()
        else pd.DataFrame()
    )
    rivals = pairs[pairs["role"] == "rival"].rename(columns={"other": "rival"})
    drawn = rivals.groupby(["task", JUDGE, "rubric_author"], observed=True)[["own", "rival"]].mean()
    found = confidence_in_own_rubric(pairs).estimate
    said = _told(found, "under their own rubric than a rival's")
    return section(
        "Whose rubric",
        said or "Too few verdicts were probed under both rubrics.",
        tables=[
            Table(
                "Swap sensitivity",
                "Stated probability under the own rubric minus under another's, paired by item and "
                "replicate. A third party's rubric is the control.",
                swap_sensitivity(frame, pairs),
            ),
            Table(
                "Expected stage by whose rubric",
                "0 is the first stage, 1 the last; others' rubrics together.",
                placed,
            ),
        ],
        charts=[("Own and rivals' rubrics", figures.swap_figure(drawn.reset_index(), said))],
    )
