"""Sections on accuracy against known answers and people, and on rubrics, evidence and cost."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import known_answers
from judge_gym.analysis.frames import CELL, once_per_call, ordinal_rows
from judge_gym.analysis.judges.pair_frames import pair_table
from judge_gym.analysis.judges.pairs import PAIR_RULE
from judge_gym.analysis.judges.people import alt_test, majority_agreement, prediction_powered
from judge_gym.analysis.metrics.accuracy import ground_truth
from judge_gym.analysis.report.page import Chart, Section, Table, section
from judge_gym.analysis.report.sections import ReportInput, report_section
from judge_gym.analysis.report.views import views_table
from judge_gym.stages.evidence import MAX_WORDS


@report_section(order=9)
def accuracy(given: ReportInput) -> Section | None:
    """Shows accuracy on known answers and pairs, against reference values and people."""
    own, singles = given.data.own, given.data.without_pairs.own
    pairs = pair_table(own[own["pair"]], CELL)
    known = known_answers(singles, CELL)
    truth = ground_truth(own)
    scores = _scores(pairs, known)
    people = given.people if given.people is not None and len(given.people) else None
    return section(
        "How accurate are the judges?",
        figures.accuracy_figure.finding(scores)
        if figures.accuracy_figure.has_data(scores)
        else "Against reference values and people.",
        tables=[
            Table(
                "Known answers",
                "Share of scored verdicts on the right stage; 95 % interval over items, Wilson's "
                "if each is either right or wrong, else t.",
                known,
            ),
            Table("Pairs with a known better response", f"Shares. {PAIR_RULE}", pairs),
            Table(
                "Reference values",
                "Absolute error of the expected stage against a reference from 0 to 1, and the "
                "share of items within half a stage of it.",
                truth[truth["measure"] != "right"],
            ),
            *(_people(singles, people) if people is not None else ()),
        ],
        charts=[
            Chart("Accuracy", figures.accuracy_figure, scores),
            Chart("Cost against accuracy", figures.cost_figure, _costs(own, scores)),
        ],
    )


def _scores(pairs: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Returns the accuracy of each configured judge, on pairs and on single items alike."""
    columns = [*CELL, "accuracy", "low", "high", "n"]
    renamed = known.rename(columns={"mean": "accuracy"})
    parts = [part[columns] for part in (pairs, renamed) if len(part)]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    return figures.panels(found)


def _costs(own: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean cost of a verdict of each judge, beside its accuracy."""
    price = once_per_call(own, CELL).groupby(CELL, observed=True)["usd"].mean().reset_index()
    found = scores.merge(price, on=CELL)
    return found[found["usd"] > 0]


def _people(own: pd.DataFrame, people: pd.DataFrame) -> list[Table]:
    """Returns the tables that compare judges with raters."""
    stages = ordinal_rows(own)
    agreement = majority_agreement(own, people)
    return [
        Table(
            "Agreement with people",
            "The share of a judge's weight on the stage that most raters gave; items on which "
            "raters tie are left out.",
            agreement[agreement["items"] > 0],
        ),
        Table(
            "Can a judge replace a rater?",
            "The alternative annotator test: each rater is left out in turn; a judge passes if it "
            "represents the others at least as well as half of the raters do.",
            alt_test(own, people),
        ),
        Table(
            "People's mean stage",
            "From few labels and many verdicts, prediction-powered.",
            prediction_powered(stages, people) if len(stages) else pd.DataFrame(),
        ),
    ]


@report_section(order=12)
def rubrics_evidence_cost(given: ReportInput) -> Section | None:
    """Shows rubric quality, evidence views and cost."""
    return section(
        "Rubrics, evidence and cost",
        "The rubrics, the texts that judges read, and the calls that were paid.",
        tables=[
            Table(
                "Rubric quality",
                "A critic's scores; null if the rubric was given or the critic gave none.",
                _quality(given.frame),
            ),
            Table(
                "Views",
                "Summaries that judges read in place of the text. Flagged: longer than "
                f"{MAX_WORDS} words, or with a number or name that is not in the source; inspect "
                "them with judge-gym evidence show.",
                views_table(given.views),
            ),
            Table(
                "Cost",
                "Calls that were paid, by stage and model; reused answers cost nothing.",
                _cost(given.usage),
            ),
        ],
    )


def _quality(frame: pd.DataFrame) -> pd.DataFrame:
    named = ["task", "rubric", "rubric_author", "rubric_draw", "n_stages"]
    # Rubric ids differ between labs, so they come last in the order.
    by = ["task", "rubric_author", "n_stages", "rubric_draw", "rubric"]
    found = frame[[*named, "observability", "discriminability"]].drop_duplicates()
    return found.sort_values(by, ignore_index=True)


def _cost(usage: pd.DataFrame) -> pd.DataFrame:
    if usage.empty:
        return usage
    numbers = ["calls", "input_tokens", "output_tokens", "usd"]
    return usage.groupby(["stage", "model"], as_index=False)[numbers].sum(min_count=1)
