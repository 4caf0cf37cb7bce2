"""Sections on verdicts, their consistency, and effects of design choices."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import (
    cell_endpoints,
    distributions,
    expected_stage,
    judge_endpoints,
    stage_bounds,
    stage_by_item,
    status_rates,
)
from judge_gym.analysis.frames import CELL, JUDGE, OrdinalFrame, ordinal
from judge_gym.analysis.measures.consistency import conflicting_cells, consistency, independence
from judge_gym.analysis.measures.verdict_shapes import display_bias, verdict_shapes
from judge_gym.analysis.report.page import (
    Chart,
    ReportInput,
    Section,
    Table,
    scored_share,
    section,
)
from judge_gym.analysis.stats.contrasts import ALL, judge_contrasts, ranking
from judge_gym.records import STATUSES

MISSING = (
    "Lowest and highest: where it would lie whatever the stage of the verdicts without a score, "
    "with sampling error (Imbens and Manski); shown from 5 % of such verdicts on, and where it "
    "changes the outcome of a comparison."
)


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


def chosen_stages(given: ReportInput) -> Section | None:
    """Shows distributions, expected stages and endpoints."""
    if not given.data.scored:
        return None
    ordered = given.data.without_pairs.ordinal
    stages = ordinal(ordered.own)
    means = pd.DataFrame()
    if ordered.scored:
        cells = ordered.compute(cell_endpoints)
        means, ends = expected_stage(stages, CELL), stage_bounds(cells, CELL)
        means = means.merge(ends, on=CELL, how="left") if len(ends) else means
    return section(
        "Which stages do judges choose?",
        f"{'0 is the first stage, 1 the last; i' if ordered.scored else 'I'}ntervals are 95 %, "
        f"over {given.interval_units}.",
        tables=[
            Table("Expected stage", f"Mean of the judge's verdicts. {MISSING}", means),
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
    """Returns the expected stage of each item by each judge, in the first variant of each task.

    The task's name is followed by that variant where there are others.
    """
    variants = stages.groupby("task")["variant"]
    several = stages["task"] + " · " + stages["variant"]
    named = stages.assign(task=stages["task"].where(variants.transform("nunique") == 1, several))
    is_first = stages["variant"] == variants.transform("first")
    first = named[is_first & (stages["status"] == "scored")]
    titles = first.drop_duplicates("evidence").set_index("evidence")["evidence_title"].astype(str)
    repeated = titles.duplicated(keep=False)
    item = titles.where(~repeated, titles + " (" + titles.index.astype(str) + ")")
    named = first.assign(item=first["evidence"].map(item))
    return stage_by_item(named, ["task", "item", JUDGE]).rename(columns={"value": "mean"})


def consistency_across_repeats(given: ReportInput) -> Section | None:
    """Shows jitter, agreement over replicates, position and label bias, shapes of verdicts."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    conflicts, shapes = conflicting_cells(data.frame), verdict_shapes(data.frame)
    titles = data.own.drop_duplicates("evidence").set_index("evidence")["evidence_title"]
    conflicts.insert(3, "item", conflicts["evidence"].map(titles))
    drawn = shapes.rename(columns={"mean": "share"})
    repeats = data.compute(independence)
    repeated = sorted(set(repeats.loc[repeats["count as"] == "one replicate", JUDGE]))
    not_anew = (
        f" Repeats of {', '.join(repeated)} repeat each other: they count as one, and what needs "
        "two is unknown until a retest series exists."
    )
    return section(
        "Consistency across repeats",
        _standing_out(conflicts) + (not_anew if repeated else ""),
        tables=[
            Table(
                "Internal consistency",
                "Jitter is the variance over replicates on a scale from 0 to 1; display and "
                "sampling are its components, known if an input was asked twice. Alpha and ICC "
                "(intraclass correlation) are over replicates.",
                data.compute(consistency),
            ),
            Table(
                "Independence of repeats",
                "Repeats count as one in comparisons of judges at temperature 0, and where more "
                "than half of their pairs have the same text. Otherwise neighbouring repeats are "
                "compared with shuffled ones.",
                repeats,
            ),
            Table(
                "Conflicting repeats",
                "Items on which at least half of the pairs of a judge's repeats share no stage; "
                "usual: that share on the judge's other items; p: how often the usual share would "
                "give as many conflicts among disjoint pairs; q: Benjamini-Hochberg over all "
                "items.",
                conflicts,
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


NOTE = (
    "Exploratory: contrasts that a study declares are tested apart. Level minus base, paired by "
    "item, all other knobs and the displays equal; sign-flip test; q: Benjamini-Hochberg over the "
    f"table. Shared: the share of calls that both designs have in common. {MISSING}"
)


REVIEW_LEVEL = 0.05
"""The q-value below which an item's conflicting repeats are pointed out."""


def _standing_out(conflicts: pd.DataFrame) -> str:
    """States how many items a judge's usual jitter does not explain."""
    out = conflicts[conflicts["q"] < REVIEW_LEVEL]
    if out.empty:
        return "On no item do a judge's repeats conflict clearly more often than is usual for it."
    items = "item" if len(out) == 1 else "items"
    return (
        f"On {len(out)} {items} a judge's repeats conflict more often than is usual for it "
        f"(q < {REVIEW_LEVEL:g}); look at {'it' if len(out) == 1 else 'these'} first."
    )


def display_biases(given: ReportInput) -> Section | None:
    """Shows whether judges prefer a place or a label of the display."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    found = display_bias(data.frame)
    known = found.dropna(subset=["mean"])
    lead = "No display was shuffled, so preferences for a place or a label are unknown."
    if len(known):
        top = known.iloc[int(known["mean"].abs().to_numpy().argmax())]
        ends = "" if pd.isna(top["low"]) else f" ({top['low']:+.2f} to {top['high']:+.2f})"
        which, where = ("for", "above") if top["mean"] > 0 else ("against", "below")
        lead = (
            f"Largest preference: {top[JUDGE]} {which} {top['kind']} {top['place']} on "
            f"{top['task']}, {abs(top['mean']):.2f} {where} an equal share{ends}, items: "
            f"{top['items']}; the largest of {len(known)} is large by chance, too."
        )
    return section(
        "Preferences for places and labels",
        lead,
        tables=[
            Table(
                "Position and label bias",
                "Share of scored verdicts at each place of the display, minus 1/n; 0 on average "
                "without bias if stages are shuffled.",
                found,
            )
        ],
    )


def axis_effects(given: ReportInput) -> Section | None:
    """Shows contrasts of designs and of judges, and ranks of levels."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    knobs = given.contrasts
    stages = knobs[knobs["endpoint"] == "stage"]
    headlines = stages[stages["judge"] == ALL]
    if headlines["value"].isna().all():  # such as where one judge gave no readable verdict
        headlines = stages
    lead = "No knob was varied, or no effect on the expected stage can be estimated."
    if headlines["value"].notna().any():
        lead = figures.forest_figure.finding(headlines)
    ranks = ranking(data.ordinal) if data.ordinal.scored else pd.DataFrame()
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
        ],
        charts=[
            Chart("Effects on the expected stage", figures.forest_figure, headlines),
            Chart("Ranks of levels by axis", figures.rank_figure, ranks),
        ],
    )
