"""The section on the effects of design choices, everything else matched."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.report.page import Chart, Section, Table, section
from judge_gym.analysis.report.sections import ReportInput, report_section
from judge_gym.analysis.stats.contrasts import ALL, contrasts, judge_contrasts
from judge_gym.analysis.stats.ranking import ranking
from judge_gym.analysis.stats.regressions import regressions

NOTE = (
    "Level minus base, paired by item, all other knobs and the displays equal; sign-flip test; q: "
    "Benjamini-Hochberg within task and endpoint, holm: among headlines. Shared: the share of "
    "calls that both designs have in common."
)


@report_section(order=8)
def axis_effects(given: ReportInput) -> Section | None:
    """Shows contrasts of designs and of judges, ranks of levels, and regressions."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    knobs = contrasts(data)
    headlines = knobs[(knobs["judge"] == ALL) & (knobs["endpoint"] == "stage")]
    if headlines.empty:
        headlines = knobs[knobs["endpoint"] == "stage"]
    lead = "No knob was varied, or no contrast can be estimated."
    if headlines["value"].notna().any():
        lead = figures.forest_figure.finding(headlines)
    ordered = data.ordinal.scored
    ranks = ranking(data.ordinal) if ordered else pd.DataFrame()
    return section(
        "What does each design choice change?",
        lead,
        tables=[
            Table("Effects of the axes", NOTE, knobs),
            Table(
                "Differences between judges",
                f"Contrasts between judges. {NOTE}",
                judge_contrasts(data),
            ),
            Table(
                "Ranks of levels",
                "At each point where everything else is matched, levels are ranked by expected "
                "stage; 1 is the highest.",
                ranks,
            ),
            Table(
                "Regressions",
                "On cells; the score from 0 to 1; errors clustered on evidence (CR1, t with "
                "clusters - 1), with a random intercept and an ordered logit as sensitivity.",
                regressions(data.frame) if ordered else pd.DataFrame(),
            ),
        ],
        charts=[
            Chart("Effects on the expected stage", figures.forest_figure, headlines),
            Chart("Ranks of levels by axis", figures.rank_figure, ranks),
        ],
    )
