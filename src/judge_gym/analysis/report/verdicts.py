"""Sections on the verdicts: response outcomes, chosen stages, consistency across repeats."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import (
    distributions,
    expected_stage,
    judge_endpoints,
    status_rates,
)
from judge_gym.analysis.frames import CELL, JUDGE, OrdinalFrame, ordinal
from judge_gym.analysis.metrics.consistency import conflicting_cells, consistency
from judge_gym.analysis.metrics.verdict_shapes import display_bias, verdict_shapes
from judge_gym.analysis.report.page import Chart, Section, Table, section
from judge_gym.analysis.report.sections import ReportInput, report_section, scored_share
from judge_gym.records import STATUSES


@report_section(order=2)
def response_outcomes(given: ReportInput) -> Section | None:
    """Shows the statuses of all verdicts."""
    rates = status_rates(given.frame, CELL)
    seen = [status for status in STATUSES if status == "scored" or (rates[status] > 0).any()]
    shares = {status: rates[f"share_{status}"].map("{:.1%}".format) for status in seen}
    return section(
        "Response outcomes",
        f"{1 - scored_share(given.frame):.1%} of the verdicts have no score.",
        tables=[
            Table(
                "Statuses",
                "All samples, under own and other authors' rubrics. A status without a column "
                "never occurred; nothing is coerced into a score.",
                rates[[*CELL, "n"]].assign(**shares),
            )
        ],
        charts=[Chart("Response outcomes by judge", figures.status_figure, rates)],
    )


@report_section(order=3)
def chosen_stages(given: ReportInput) -> Section | None:
    """Shows distributions, expected stages and endpoints."""
    if not given.data.scored:
        return None
    ordered = given.data.without_pairs.ordinal
    stages = ordinal(ordered.own)
    means = expected_stage(stages, CELL) if ordered.scored else pd.DataFrame()
    return section(
        "Which stages do judges choose?",
        f"0 is the first stage, 1 the last; intervals are 95 %, over {given.interval_units}.",
        tables=[
            Table("Expected stage", "Mean of the judge's verdicts, by Student's t.", means),
            Table(
                "Endpoints",
                "Every endpoint of every configured judge; entropy in bits; effective n is the "
                "number of scored verdicts.",
                judge_endpoints(given.data),
            ),
        ],
        charts=[
            Chart(
                "Distribution of verdicts",
                figures.distribution_figure,
                distributions(given.data.own, CELL),
            ),
            Chart(
                "Item by item",
                figures.heat_figure,
                _items(stages) if ordered.scored else pd.DataFrame(),
            ),
        ],
    )


def _items(stages: OrdinalFrame) -> pd.DataFrame:
    """Returns the expected stage of each item by each judge, in the first variant of each task."""
    scored = stages[stages["status"] == "scored"]
    base = scored.groupby("task")["variant"].transform("first")
    first = scored[scored["variant"] == base]
    titles = first.drop_duplicates("evidence").set_index("evidence")["evidence_title"].astype(str)
    repeated = titles.duplicated(keep=False)
    item = titles.where(~repeated, titles + " (" + titles.index.astype(str) + ")")
    named = first.assign(item=first["evidence"].map(item))
    return expected_stage(ordinal(named), ["task", "item", JUDGE])


@report_section(order=10)
def consistency_across_repeats(given: ReportInput) -> Section | None:
    """Shows jitter, agreement over replicates, position and label bias, shapes of verdicts."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    conflicts, shapes = conflicting_cells(data.frame), verdict_shapes(data.frame)
    titles = data.own.drop_duplicates("evidence").set_index("evidence")["evidence_title"]
    conflicts.insert(3, "item", conflicts["evidence"].map(titles))
    drawn = shapes.rename(columns={"mean": "share"})
    return section(
        "Consistency across repeats",
        f"In {len(conflicts)} cells at least half of the pairs of replicates share no stage; "
        "review these first.",
        tables=[
            Table(
                "Internal consistency",
                "Jitter is the variance over replicates on a scale from 0 to 1; display and "
                "sampling are its components, known if an input was asked twice. Alpha and ICC "
                "(intraclass correlation) are over replicates.",
                data.compute(consistency),
            ),
            Table("Cells to review", "Replicates that conflict, the worst first.", conflicts),
            Table(
                "Position and label bias",
                "Share of scored verdicts at each place of the display, minus 1/n; 0 on average "
                "without bias if stages are shuffled.",
                display_bias(data.frame),
            ),
            Table(
                "Shapes of verdicts",
                "Shares of abstained and scored verdicts, with the mean stated probability.",
                shapes,
            ),
        ],
        charts=[
            Chart(
                "Shapes of verdicts by judge",
                figures.shape_figure,
                drawn.assign(shape=drawn["shape"].str.replace("_", "-")),
            )
        ],
    )
