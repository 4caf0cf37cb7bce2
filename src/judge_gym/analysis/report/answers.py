"""How right judges are where something is known, what it cost, and what they were given."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import known_answers
from judge_gym.analysis.frames import CELL, once_per_call, only, ordinal
from judge_gym.analysis.judges.pair_frames import pair_table
from judge_gym.analysis.judges.pairs import PAIR_RULE
from judge_gym.analysis.judges.people import alt_test, majority_agreement, prediction_powered
from judge_gym.analysis.metrics import ground_truth
from judge_gym.analysis.report.page import Section, Table, section
from judge_gym.analysis.report.views import views_table
from judge_gym.stages.evidence import MAX_WORDS


def how_right(frame: pd.DataFrame, people: pd.DataFrame | None) -> Section | None:
    """Known answers, pairs, reference values, people."""
    own = only(frame, ~frame["is_swap"])
    pairs = pair_table(own[own["pair"]], CELL)
    known = known_answers(only(own, ~own["pair"]), CELL)
    truth = ground_truth(own)
    scores = _scores(pairs, known)
    return section(
        "How right judges are",
        figures.accuracy_finding(figures.panels(scores))
        if len(scores)
        else "Against reference values and people.",
        tables=[
            Table(
                "Known answers",
                "Share of scored verdicts on the right stage; 95 % interval over items, Wilson's "
                "where each is simply right or wrong, else t.",
                known,
            ),
            Table("Pairs with a known better response", f"Shares. {PAIR_RULE}", pairs),
            Table(
                "Reference values",
                "Absolute error of the expected stage against a reference from 0 to 1, and the "
                "share of items within half a stage of it.",
                truth[truth["measure"] != "right"],
            ),
            *(_people(own[~own["pair"]], people) if people is not None and len(people) else ()),
        ],
        charts=[
            ("Accuracy", figures.accuracy_figure(figures.panels(scores)) if len(scores) else None),
            ("Cost against accuracy", figures.cost_figure(_costs(own, scores))),
        ],
    )


def _scores(pairs: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each configured judge, of pairs and of items alike."""
    columns = [*CELL, "accuracy", "low", "high", "n"]
    renamed = known.rename(columns={"mean": "accuracy"})
    parts = [part[columns] for part in (pairs, renamed) if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _costs(own: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """What a verdict of each judge costs, beside how right it is."""
    price = once_per_call(own, CELL).groupby(CELL, observed=True)["usd"].mean().reset_index()
    found = scores.merge(price, on=CELL)
    return found[found["usd"] > 0] if len(found) else found.assign(usd=[])


def _people(own: pd.DataFrame, people: pd.DataFrame) -> list[Table]:
    """Judges against raters."""
    ordered = only(own, own["rubric_kind"] == "ordinal")
    return [
        Table(
            "Agreement with people",
            "How much of a judge's weight lies on the stage that most raters gave; items on which "
            "raters tie are left out.",
            _known(majority_agreement(own, people)),
        ),
        Table(
            "May a judge replace a rater",
            "The alternative annotator test: each rater is left out in turn; a judge passes where "
            "it represents the others at least as well for half of them.",
            alt_test(own, people),
        ),
        Table(
            "People's mean stage",
            "From few labels and many verdicts, prediction-powered.",
            prediction_powered(ordinal(ordered), people) if len(ordered) else pd.DataFrame(),
        ),
    ]


def _known(found: pd.DataFrame) -> pd.DataFrame:
    """The rows with an item on which raters do not tie."""
    return found[found["items"] > 0] if len(found) else found


def what_it_rests_on(
    frame: pd.DataFrame, usage: pd.DataFrame, views: Sequence[Mapping[str, Any]]
) -> Section | None:
    """Rubrics, views, cost."""
    return section(
        "What it rests on",
        "The rubrics, the texts that judges read, and what was paid.",
        tables=[
            Table(
                "Rubric quality",
                "A critic's scores; null where the rubric was given or the critic gave none.",
                _quality(frame),
            ),
            Table(
                "Views",
                "Summaries that judges read in place of the text. Flagged: longer than "
                f"{MAX_WORDS} words, or with a number or name that the source does not hold; look "
                "at them with judge-gym evidence show.",
                views_table(views),
            ),
            Table(
                "Cost",
                "What was paid for, by stage and model; reused answers cost nothing.",
                _cost(usage),
            ),
        ],
    )


def _quality(frame: pd.DataFrame) -> pd.DataFrame:
    named = ["task", "rubric", "rubric_author", "rubric_draw", "n_stages"]
    # Their rows are numbered as they came, which is not the same in every lab.
    by = ["task", "rubric_author", "n_stages", "rubric_draw", "rubric"]
    found = frame[[*named, "observability", "discriminability"]].drop_duplicates()
    return found.sort_values(by, ignore_index=True)


def _cost(usage: pd.DataFrame) -> pd.DataFrame:
    if usage.empty:
        return usage
    numbers = ["calls", "input_tokens", "output_tokens", "usd"]
    return usage.groupby(["stage", "model"], as_index=False)[numbers].sum(min_count=1)
