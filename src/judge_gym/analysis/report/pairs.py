"""A page on judges of pairs, run or recorded."""

from collections.abc import Mapping

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.judges.pairs import PAIR_RULE, Comparison, PairScores
from judge_gym.analysis.report.page import PARTLY_SIMULATED, SIMULATED, Report, Table, section


def build_pair_report(
    title: str, scores: Mapping[str, PairScores], comparison: Comparison | None
) -> Report:
    """Scores by category, and how judges compare."""
    rows = [
        {JUDGE: judge, "panel": category, **part.to_json()}
        for judge, score in scores.items()
        for category, part in {"all": score, **score.by_category}.items()
    ]
    frame = pd.DataFrame(rows).drop(columns="by_category", errors="ignore")
    frame[["low", "high"]] = frame.pop("interval").tolist()
    contrasts = [contrast.to_json() for contrast in comparison.contrasts] if comparison else []
    tables = [
        Table("Scores", f"Percent. {PAIR_RULE}", frame.rename(columns={"panel": "category"})),
        Table(
            "Judges compared",
            "On the pairs that all of them judged. Difference: accuracy of the judge minus that of "
            "the other, in points, with a paired bootstrap interval (t below 40 pairs); p: "
            "McNemar's exact test; agreement and Krippendorff's alpha of decisions.",
            pd.DataFrame(contrasts),
        ),
    ]
    best = max(scores, key=lambda name: scores[name].accuracy)
    shares = frame.assign(**{name: frame[name] / 100 for name in ("accuracy", "low", "high")})
    told = f"{best} is right most often: {scores[best].accuracy:.1%} of {scores[best].n} pairs"
    if [score.accuracy for score in scores.values()].count(scores[best].accuracy) > 1:
        told = f"How often each is right; the best, {scores[best].accuracy:.1%} of the pairs"
    part = section(
        "How often each judge is right",
        told,
        tables=tables,
        charts=[("Accuracy", figures.accuracy_figure(shares, told))],
    )
    simulated = [name for name in scores if name.startswith("sim:")]
    every = len(simulated) == len(scores)
    partly = PARTLY_SIMULATED.format(models=", ".join(simulated))
    return Report(
        title=title,
        banner=(SIMULATED if every else partly) if simulated else "",
        facts={"judges": ", ".join(scores), "pairs": str(max(s.n for s in scores.values()))},
        warnings=(),
        sections=(part,) if part is not None else (),
    )
