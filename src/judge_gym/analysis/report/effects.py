"""What each axis does to the verdicts, all else matched."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.frames import only
from judge_gym.analysis.report.material import Material
from judge_gym.analysis.report.page import Section, Table, section
from judge_gym.analysis.stats.contrasts import ALL, contrasts, judge_contrasts
from judge_gym.analysis.stats.ranking import ranking
from judge_gym.analysis.stats.regressions import regressions


def what_each_axis_does(made: Material) -> Section | None:
    """Contrasts of designs and of judges, ranks of levels, regressions."""
    frame, own = made.frame, made.own
    ordinal = only(own, own["rubric_kind"] == "ordinal")
    if not (own["status"] == "scored").any():
        return None
    knobs = contrasts(own)
    ordered = not ordinal.empty and bool((ordinal["status"] == "scored").any())
    headlines = knobs[(knobs["judge"] == ALL) & (knobs["endpoint"] == "stage")]
    if headlines.empty:
        headlines = knobs[knobs["endpoint"] == "stage"]
    forest = figures.forest_figure(headlines)
    known = headlines["value"].notna().any()
    said = (
        figures.forest_finding(headlines) if known else "No knob was varied, or none can be told."
    )
    ranks = ranking(ordinal) if ordered else pd.DataFrame()
    note = (
        "Level minus base, paired by item, all other knobs and the displays equal; sign-flip test; "
        "q: Benjamini-Hochberg within task and endpoint, holm: among headlines. Shared: the share "
        "of calls that both designs have in common."
    )
    return section(
        "What each axis does",
        said,
        tables=[
            Table("Effects of the axes", note, knobs),
            Table(
                "Differences between judges",
                f"The same, between judges. {note}",
                judge_contrasts(own),
            ),
            Table(
                "Ranks of levels",
                "At each point where all else is matched, levels are ranked by expected stage; 1 "
                "is the highest.",
                ranks,
            ),
            Table(
                "Regressions",
                "On cells; the score from 0 to 1; errors clustered on evidence (CR1, t with "
                "clusters - 1), with a random intercept and an ordered logit as sensitivity.",
                regressions(only(frame, ~frame["pair"])) if ordered else pd.DataFrame(),
            ),
        ],
        charts=[
            ("Effects on the expected stage", forest),
            ("Ranks of levels by axis", figures.rank_figure(ranks) if len(ranks) else None),
        ],
    )
