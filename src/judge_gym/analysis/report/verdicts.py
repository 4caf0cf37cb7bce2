"""What judges chose, how steadily, and how answers ended."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import (
    distributions,
    expected_stage,
    judge_endpoints,
    status_rates,
)
from judge_gym.analysis.frames import CELL, JUDGE, only, ordinal
from judge_gym.analysis.metrics.consistency import conflicting_cells
from judge_gym.analysis.metrics.verdict_shapes import display_bias, geometry
from judge_gym.analysis.report.material import Material
from judge_gym.analysis.report.page import Section, Table, sampled, scored_share, section
from judge_gym.records import STATUSES


def how_answers_ended(frame: pd.DataFrame) -> Section | None:
    """Statuses: nothing is ever coerced into a score."""
    rates = status_rates(frame, CELL)
    seen = [status for status in STATUSES if status == "scored" or (rates[status] > 0).any()]
    shares = {status: rates[f"share_{status}"].map("{:.1%}".format) for status in seen}
    return section(
        "How answers ended",
        f"{1 - scored_share(frame):.1%} of the verdicts carry no score.",
        tables=[
            Table(
                "Statuses",
                "All samples, under own and rivals' rubrics. A status without a column never "
                "occurred; nothing is coerced into a score.",
                rates[[*CELL, "n"]].assign(**shares),
            )
        ],
        charts=[("How answers ended by judge", figures.status_figure(rates))],
    )


def where_judges_place_it(made: Material) -> Section | None:
    """Distributions, expected stages, items."""
    own = only(made.frame, ~made.frame["is_swap"])
    scored = only(own, own["status"] == "scored")
    if scored.empty:
        return None
    shares = distributions(own, CELL)
    ordered = only(own, (own["rubric_kind"] == "ordinal") & ~own["pair"])
    placed = (ordered["status"] == "scored").any()
    means = expected_stage(ordinal(ordered), CELL) if placed else pd.DataFrame()
    return section(
        "Where judges place the evidence",
        f"0 is the first stage, 1 the last; intervals are 95 %, over {sampled(made.frame)}.",
        tables=[
            Table("Expected stage", "Mean of the judge's verdicts, by Student's t.", means),
            Table(
                "Endpoints",
                "Every endpoint of every configured judge; entropy in bits; effective n is the "
                "number of verdicts with a score.",
                judge_endpoints(made.frame, made.cells),
            ),
        ],
        charts=[
            ("Distribution of verdicts", figures.distribution_figure(shares)),
            ("Item by item", figures.heat_figure(_items(ordered)) if placed else None),
        ],
    )


def _items(ordered: pd.DataFrame) -> pd.DataFrame:
    """The expected stage of each item by each judge, in the first variant of each task."""
    scored = ordered[ordered["status"] == "scored"]
    base = scored.groupby("task")["variant"].transform("first")
    first = scored[scored["variant"] == base]
    titles = first.drop_duplicates("evidence").set_index("evidence")["evidence_title"].astype(str)
    repeated = titles.duplicated(keep=False)
    item = titles.where(~repeated, titles + " (" + titles.index.astype(str) + ")")
    named = first.assign(item=first["evidence"].map(item))
    return expected_stage(ordinal(named), ["task", "item", JUDGE])


def how_steady(made: Material) -> Section | None:
    """Jitter, agreement with oneself, bias of position and label, shape of verdicts."""
    own = made.own
    if not (own["status"] == "scored").any():
        return None
    torn, shapes, shown = conflicting_cells(own), geometry(own), display_bias(own)
    titles = own.drop_duplicates("evidence").set_index("evidence")["evidence_title"]
    torn.insert(3, "item", torn["evidence"].map(titles))
    return section(
        "How steady judges are",
        f"In {len(torn)} cells at least half of the pairs of replicates share no stage: look at "
        "these before anything else.",
        tables=[
            Table(
                "Internal consistency",
                "Jitter is the variance over replicates on a scale from 0 to 1; display and "
                "sampling are told apart where an input was asked twice. Alpha and ICC over "
                "replicates.",
                made.own_consistency,
            ),
            Table("Cells to review", "Replicates that conflict, the most torn first.", torn),
            Table(
                "Position and label",
                "Share of scored verdicts beyond 1/n at each place of the display; without bias 0 "
                "on average where stages are shuffled.",
                shown,
            ),
            Table(
                "Shape of verdicts",
                "Shares of abstentions and scored verdicts, with the mean stated probability.",
                shapes,
            ),
        ],
        charts=[
            (
                "Shape of verdicts by judge",
                figures.geometry_figure(
                    shapes.assign(
                        shape=shapes["geometry"].str.replace("_", "-"), share=shapes["mean"]
                    )
                ),
            )
        ],
    )
