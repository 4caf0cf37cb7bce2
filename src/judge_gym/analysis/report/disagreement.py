"""The section on the disagreement of judges."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.frames import JUDGE, OrdinalFrame, scored_rows
from judge_gym.analysis.measures.polarization import pairwise, polarization
from judge_gym.analysis.report.page import (
    Chart,
    ReportInput,
    Section,
    Table,
    section,
)
from judge_gym.analysis.stats.agreement import nominal_agreement, ordinal_agreement
from judge_gym.analysis.verdicts import Dataset

POLARIZATION = (
    "Raw P is biased upward with few samples: `null` is what identical judges would give here, "
    "`above` the difference, with its interval for this number of samples. The squared distance is "
    "unbiased. P is divided by log2 of judges or stages, whichever are fewer; not every panel can "
    "reach 1."
)
OWN_RUBRICS = " Judges used their own rubrics, so it measures judge and rubric together."


def disagreement(given: ReportInput) -> Section | None:
    """Shows polarization, pairs of judges and agreement."""
    data = given.data.without_pairs
    if not compares_judges(data):
        return None
    p, pairs = polarization(data), pairwise(data)
    note = POLARIZATION + (OWN_RUBRICS if (p["measures"] == "judge and rubric").any() else "")
    agreement = [nominal_agreement(data)]
    if len(ordered := data.ordinal.own):
        agreement.append(ordinal_agreement(OrdinalFrame(ordered)))
    return section(
        "How much do judges disagree?",
        figures.polarization_figure.finding(p)
        if figures.polarization_figure.has_data(p)
        else "No item was scored by two judges.",
        tables=[
            Table("Polarization", note, p),
            Table("Pairs of judges", "Polarization of every two judges.", pairs),
            Table(
                "Agreement",
                "Between all judges of a task; intervals over items.",
                pd.concat(agreement),
            ),
        ],
        charts=[
            Chart("Polarization by task", figures.polarization_figure, p),
            Chart("Pairs of judges against chance", figures.pair_figure, pairs),
        ],
    )


def compares_judges(data: Dataset) -> bool:
    """Says whether two judges have scored verdicts on a task."""
    return data.scored and scored_rows(data.own).groupby("task")[JUDGE].nunique().max() >= 2
