"""What judges say of experts, and what another's rubric does to it."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import expected_stage
from judge_gym.analysis.expertise import calibration, reliability
from judge_gym.analysis.frames import CELL, JUDGE, only, ordinal
from judge_gym.analysis.report.material import Material
from judge_gym.analysis.report.page import Section, Table, section
from judge_gym.analysis.swapping import swap_sensitivity


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
    curved = figures.reliability_figure(drawn)
    return section(
        "What judges say of experts",
        figures.reliability_finding(drawn) if curved is not None else "No verdict has a reference.",
        tables=[
            Table(
                "Calibration",
                "The reference is the chance that of three other judges' verdicts on the item, on "
                "other displays, most fall into the chosen set. Bias is stated minus reference; "
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


def _stated(frame: pd.DataFrame) -> pd.DataFrame:
    """Stated probabilities, a call once, by whose rubric was used."""
    told = frame[frame["probe"].notna()]
    seen = told.duplicated(["task", "probe_call_id"]) & told["probe_call_id"].notna()
    told = told[~seen]
    used = told["is_swap"].map({True: "rival's", False: "own"})
    used = used.where(told["rubric_author"] != "provided", "given")
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
    return section(
        "Whose rubric",
        figures.swap_finding(drawn.reset_index()) if len(drawn) else "No probed pair of rubrics.",
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
        charts=[("Own and rivals' rubrics", figures.swap_figure(drawn.reset_index()))],
    )
