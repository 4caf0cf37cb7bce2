"""The report on judges of pairs of responses, run or recorded."""

from collections.abc import Mapping

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.judges.pairs import PAIR_RULE, PUBLISHED, Comparison, PairScore
from judge_gym.analysis.report.page import (
    Chart,
    Question,
    Report,
    Summary,
    Table,
    section,
    simulation_banner,
)
from judge_gym.records.numbers import fine_percent


def build_pair_report(
    title: str, scores: Mapping[str, PairScore], comparison: Comparison | None
) -> Report:
    """Builds a report of scores by category, and of comparisons of judges."""
    rows = [
        {JUDGE: judge, "panel": category, **part.to_json()}
        for judge, score in scores.items()
        for category, part in {"all": score, **(score.by_category or {})}.items()
    ]
    frame = pd.DataFrame(rows).drop(columns="by_category", errors="ignore")
    frame[["low", "high"]] = frame.pop("interval").tolist()
    contrasts = [contrast.to_json() for contrast in comparison.contrasts] if comparison else []
    tables = [
        Table(
            "Scores",
            f"Percent. {PAIR_RULE} {PUBLISHED}",
            frame.rename(columns={"panel": "category"}),
        ),
        Table(
            "Comparison of judges",
            "On the pairs that all of them judged. Difference: accuracy of the judge minus that of "
            "the other, in percentage points, with its 95 % interval; "
            "p: McNemar's exact test; q: Benjamini-Hochberg over the table; agreement and "
            "Krippendorff's alpha of decisions.",
            pd.DataFrame(contrasts),
        ),
    ]
    best = max(scores, key=lambda name: scores[name].accuracy)
    shares = frame.assign(**{name: frame[name] / 100 for name in ("accuracy", "low", "high")})
    lead = (
        f"Highest accuracy: {fine_percent(scores[best].accuracy)} of {scores[best].n} pairs, {best}"
    )
    if [score.accuracy for score in scores.values()].count(scores[best].accuracy) > 1:
        lead = f"Accuracy of each judge; the highest is {scores[best].accuracy:.1%} of the pairs"
    part = section(
        "How accurate are the judges?",
        lead,
        tables=tables,
        charts=[Chart("Accuracy", figures.accuracy_figure, shares, lead, tuple(scores))],
    )
    return Report(
        title=title,
        banner=simulation_banner(scores),
        facts={"judges": ", ".join(scores), "pairs": str(max(s.n for s in scores.values()))},
        warnings=(),
        questions=(Question("Which judge?", (part,)),) if part is not None else (),
        summary=Summary(lead),
    )
