"""Sections on verdicts, their consistency, and effects of design choices on them.

Some make the page of a study; others have details for an experiment's page and the appendix.
"""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.endpoints import (
    all_cells,
    distributions,
    expected_stage,
    judge_endpoints,
    stage_bounds,
    stage_by_item,
    status_rates,
)
from judge_gym.analysis.frames import CELL, ITEM, JUDGE, NAMES_APART, OrdinalFrame, ordinal
from judge_gym.analysis.judges.setups import short_names
from judge_gym.analysis.measures.consistency import conflicting_cells, consistency, independence
from judge_gym.analysis.measures.verdict_shapes import display_bias, verdict_shapes
from judge_gym.analysis.report.page import (
    Chart,
    ReportInput,
    Section,
    Table,
    interval_texts,
    plot_differences,
    scored_share,
    section,
)
from judge_gym.analysis.stats.contrasts import ALL, ranking
from judge_gym.analysis.stats.paired_tests import is_clear
from judge_gym.records import STATUSES
from judge_gym.records.numbers import fine_percent, percent, signed_hundredths

MISSING = (
    "Lowest and highest: where it would lie whatever the stage of the verdicts without a score, "
    "with sampling error (Imbens and Manski); shown from 5 % of such verdicts on, and where it "
    "changes the outcome of a comparison."
)


def response_outcomes(given: ReportInput) -> Section | None:
    """Shows the statuses of all verdicts."""
    rates = status_rates(given.frame, CELL)
    seen = [status for status in STATUSES if status == "scored" or (rates[status] > 0).any()]
    shares = {status: rates[f"share_{status}"] for status in seen}
    lead = f"{fine_percent(1 - scored_share(given.frame))} of the verdicts have no score."
    return section(
        "Response outcomes",
        lead,
        tables=[
            Table(
                "Statuses",
                "All samples, under own and other authors' rubrics. A status without a column "
                "never occurred; nothing is coerced into a score.",
                rates[[*CELL, "n"]].assign(**shares),
                rates[[*CELL, "n"]].assign(
                    **{name: share.map(fine_percent) for name, share in shares.items()}
                ),
            )
        ],
    )


def chosen_stages(given: ReportInput) -> Section | None:
    """Shows distributions, expected stages and endpoints."""
    if not given.data.scored:
        return None
    ordered = given.data.without_pairs.ordinal
    stages = ordinal(ordered.own)
    means = pd.DataFrame()
    if ordered.scored:
        cells = ordered.derive(all_cells)
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
                stage_of_items(stages) if ordered.scored else pd.DataFrame(),
            ),
        ],
    )


def stage_of_items(stages: OrdinalFrame) -> pd.DataFrame:
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
    # Items as groups would make a matrix of items by items.
    cells = stage_by_item(first, ["task", JUDGE]).rename(columns={"value": "mean"})
    columns = ["task", "item", JUDGE, "evidence", "cluster", "mean"]
    cells = cells.assign(item=cells["evidence"].map(item))[columns]
    return cells.sort_values(["task", "item", JUDGE], ignore_index=True)


def consistency_across_repeats(given: ReportInput) -> Section | None:
    """Shows jitter, agreement over replicates, position and label bias, shapes of verdicts."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    conflicts, shapes = data.compute(conflicting_cells), verdict_shapes(data.frame)
    shares = shapes.rename(columns={"mean": "share"})
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
                "Shapes of verdicts",
                "Shares of abstained and scored verdicts, with the mean stated probability.",
                shapes,
            ),
        ],
        charts=[
            Chart(
                "Shapes of verdicts by judge",
                figures.shape_figure,
                shares.assign(shape=shares["shape"].str.replace("_", "-")),
            )
        ],
    )


FEW_ROWS = 10
"""The number of conflicting repeats that a page shows."""
PAGE_ENDPOINTS = {"stage": "stage", "abstention": "abstention"}
"""The endpoints of contrasts that a page shows, in words."""
NOTE = (
    "Exploratory, paired by item with all else equal; sign-flip test; q: Benjamini-Hochberg over "
    "all endpoints and judges. "
)
DETAILS = f"Shared: the share of calls that both designs have in common. {MISSING}"
STAGES_FROM_0_TO_1 = "Stages are from 0, the first, to 1, the last"


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
    biases = display_bias(data.frame)
    estimates = biases.dropna(subset=["mean"])
    lead = "No display was shuffled, so preferences for a place or a label are unknown."
    if len(estimates):
        top = estimates.iloc[int(estimates["mean"].abs().to_numpy().argmax())]
        interval = f" [{signed_hundredths(top['low'])}, {signed_hundredths(top['high'])}]"
        ends = "" if pd.isna(top["low"]) else interval
        which, where = ("for", "above") if top["mean"] > 0 else ("against", "below")
        lead = (
            f"Largest preference: {top[JUDGE]} {which} {top['kind']} {top['place']} on "
            f"{top['task']}, {abs(top['mean']):.2f} {where} an equal share{ends}, items: "
            f"{top['items']}; the largest of {len(estimates)} is large by chance, too."
        )
    return section(
        "Preferences for places and labels",
        lead,
        tables=[
            Table(
                "Position and label bias",
                "Share of scored verdicts at each place of the display, minus 1/n; 0 on average "
                "without bias if stages are shuffled.",
                biases,
            )
        ],
    )


def stage_quantity(given: ReportInput) -> str:
    """Names the expected stage: of two labels with names, the share of the second."""
    texts = given.data.own["stage_names"].unique()
    names = str(texts[0]).split(NAMES_APART) if len(texts) == 1 else []
    return f"share of “{names[1]}”" if len(names) == 2 else "expected stage"


def over_all_judges(contrasts: pd.DataFrame) -> pd.DataFrame:
    """Selects the contrasts over all judges; of one judge, its own.

    Where they have no value, as where one judge gave no readable verdict, those of each judge
    stand in.
    """
    together = contrasts[contrasts["judge"] == ALL]
    stages = together[together["endpoint"] == "stage"]
    return together if stages["value"].notna().any() else contrasts[contrasts["judge"] != ALL]


def effects_in_words(effects: pd.DataFrame) -> str:
    """States how many contrasts have a clear effect, and which is the largest."""
    estimates = effects.dropna(subset=["value"])
    clear = estimates[is_clear(estimates)]
    if clear.empty:
        which = (
            "The only contrast has no"
            if len(estimates) == 1
            else f"None of {len(estimates)} contrasts has a"
        )
        return f"{which} clear effect (q < {REVIEW_LEVEL:g})"
    top = clear.sort_values("value", key=abs, kind="stable").iloc[-1]
    has = "has" if len(clear) == 1 else "have"
    return (
        f"{len(clear)} of {len(estimates)} contrasts {has} a clear effect (q < {REVIEW_LEVEL:g}); "
        f"the largest: {top['knob']} {top['level']} against {top['base']} "
        f"({signed_hundredths(top['value'])})"
    )


def choices_and_verdicts(given: ReportInput) -> Section | None:
    """Shows what each level of each knob does to verdicts, over all judges."""
    if not given.data.without_pairs.scored:
        return None
    contrasts = over_all_judges(given.contrasts)
    rows = contrasts[contrasts["endpoint"].isin(PAGE_ENDPOINTS)]
    stages = rows[rows["endpoint"] == "stage"]
    lead = "No effect on the expected stage can be estimated."
    if stages["value"].notna().any():
        lead = f"{effects_in_words(stages)}."
    names = ["knob", "level", "base", "task", "at", "judge"]
    return section(
        "What does each choice do to verdicts?",
        lead,
        tables=[
            Table(
                "Choices and verdicts",
                f"Level minus base. {STAGES_FROM_0_TO_1}; abstention is a share. {NOTE}"
                f"Intervals are 95 %, over {given.interval_units}.",
                rows[[*names, *_CONTRAST]].reset_index(drop=True),
                _contrast_texts(rows, {"knob": "choice", "level": "level", "base": "instead of"}),
                plot=plot_differences(rows, "difference", "stages", is_clear(rows)),
            )
        ],
    )


_CONTRAST = ["endpoint", "value", "low", "high", "items", "p", "q", "note"]


def _contrast_texts(rows: pd.DataFrame, titles: dict[str, str]) -> pd.DataFrame:
    """Writes contrasts as people read them, without the columns that are the same in all rows."""
    several = [name for name in ("task", "at", "judge") if rows[name].nunique() > 1]
    texts = rows[[*titles, *several]].rename(columns=titles)
    return texts.assign(
        of=rows["endpoint"].map(PAGE_ENDPOINTS),
        difference=interval_texts(rows, signed_hundredths),
        items=rows["items"],
        q=rows["q"].astype(float),
        **({"note": rows["note"]} if (rows["note"].fillna("") != "").any() else {}),
    ).reset_index(drop=True)


def differences_between_judges(given: ReportInput) -> Section | None:
    """Shows by how much the stages of every two judges differ under one design."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    every = given.judge_contrasts
    rows = every[every["endpoint"] == "stage"]
    names = short_names(map(str, data.own[JUDGE].unique()))
    named = rows.assign(level=rows["level"].map(names), base=rows["base"].map(names))
    estimates = named.dropna(subset=["value"])
    clear = estimates[is_clear(estimates)]
    what = stage_quantity(given)
    lead = f"No difference between judges in the {what} can be estimated."
    if len(estimates):
        top = (
            (clear if len(clear) else estimates)
            .sort_values("value", key=abs, kind="stable")
            .iloc[-1]
        )
        where = f" on {top['task']}" if estimates["task"].nunique() > 1 else ""
        largest = f"{top['level']} against {top['base']}, {signed_hundredths(top['value'])}{where}"
        many = (
            f"{len(clear)} of {len(estimates)} differences"
            if len(estimates) > 1
            else "The difference"
        )
        verb = "are" if len(estimates) > 1 else "is" if len(clear) else "is not"
        lead = (
            f"{many} in the {what} {verb} clear (q < {REVIEW_LEVEL:g})"
            f"{'; the largest: ' if len(estimates) > 1 else ': '}{largest}."
        )
    scale = "" if what.startswith("share") else f"{STAGES_FROM_0_TO_1}. "
    return section(
        "Differences between judges",
        lead,
        tables=[
            Table(
                "Differences between judges",
                f"One judge minus the other in the {what}. {scale}{NOTE}"
                f"Intervals are 95 %, over {given.interval_units}.",
                rows[["task", "at", "level", "base", *_CONTRAST]]
                .rename(columns={"level": "judge", "base": "other"})
                .reset_index(drop=True),
                _contrast_texts(named, {"level": "judge", "base": "minus"}).drop(columns="of"),
                plot=plot_differences(rows, "difference", "stages", is_clear(rows)),
            )
        ],
    )


def conflicting_repeats(given: ReportInput) -> Section | None:
    """Shows the items on which a judge's repeats conflict, and which repeats count as one."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    conflicts = data.compute(conflicting_cells)
    titles = data.own.drop_duplicates("evidence").set_index("evidence")["evidence_title"]
    conflicts = conflicts.assign(item=conflicts["evidence"].map(titles))
    top = conflicts.head(FEW_ROWS)
    several = [name for name in ("task", "variant") if conflicts[name].nunique() > 1]
    limit = f"The first {len(top)} of {len(conflicts)}. " if len(top) < len(conflicts) else ""
    repeated = (data.own.groupby(ITEM, observed=True)["replicate"].nunique() > 1).any()
    lead = _standing_out(conflicts) if repeated else "No judge judged an item more than once."
    return section(
        "Consistency",
        f"{lead} How often repeats give the same verdict is in the table Judges.",
        tables=[
            Table(
                "Conflicting repeats",
                f"{limit}Items on which at least half of the pairs of a judge's repeats share no "
                "stage. Usual: that share on the judge's other items; q: Benjamini-Hochberg over "
                "all items.",
                conflicts,
                pd.DataFrame(
                    {
                        **{name: top[name] for name in several},
                        "judge": top[JUDGE].map(short_names(map(str, conflicts[JUDGE].unique()))),
                        "item": top["item"],
                        "conflict": top["conflict"].map(percent),
                        "usual": top["usual"].map(percent),
                        "repeats": top["effective_n"],
                        "q": top["q"],
                    }
                ),
            )
        ],
        lines=()
        if len(conflicts) or not repeated
        else ["No repeats of any item conflict so much."],
    )


def axis_effects(given: ReportInput) -> Section | None:
    """Shows all contrasts of designs and of judges, and ranks of levels."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    ranks = ranking(data.ordinal) if data.ordinal.scored else pd.DataFrame()
    return section(
        "What does each design choice change?",
        "Every endpoint, for each judge and over all.",
        tables=[
            Table("Effects of the axes", f"{NOTE}{DETAILS}", given.contrasts),
            Table(
                "Contrasts of judges",
                f"Contrasts between judges. {NOTE}{DETAILS}",
                given.judge_contrasts,
            ),
            Table(
                "Ranks of levels",
                "At each point where everything else is matched, levels are ranked by expected "
                "stage; 1 is the highest.",
                ranks,
            ),
        ],
    )
