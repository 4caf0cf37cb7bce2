"""The sections that read the judge table: which setup, how good it is, what choices do to it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.frames import JUDGE, level_name
from judge_gym.analysis.judges.sentence import MEASURES
from judge_gym.analysis.report.page import (
    Chart,
    ReportInput,
    Section,
    Table,
    interval_texts,
    plot_differences,
    section,
)
from judge_gym.records.judge_table import (
    CORRECTED,
    MIN_CLUSTERS,
    Confusion,
    JudgeTable,
    Quantity,
    column_value,
    deciding_column,
    differing_counts,
    interval_units,
    is_corrected,
    people_deciding,
    verdicts_by_label,
)
from judge_gym.records.numbers import (
    DIFFERENCES,
    FORMATS,
    hundredths,
    percent,
    signed_hundredths,
    with_interval,
)
from judge_gym.studies.declarations import epsilon_name

TITLE = "Which judge?"
ENDS = ("value", "low", "high", "n")


def which_judge(given: ReportInput) -> Section | None:
    """Shows the judge table, and what the chosen setup says of items with each label."""
    table = given.judges
    if table is None:
        return None
    lead = "Without known answers or labels, no setup is better than another."
    if table["kind"]:
        lead = f"Setups are compared by {measure_name(table)}."
        if len(table["rows"]) == 1:
            lead = "There is one setup, and so nothing to compare it with."
    return section(TITLE, lead, tables=[judges_table(table), confusion_table(table["confusion"])])


def price_and_quality(given: ReportInput) -> Section | None:
    """Shows what quality costs, where anything costs money."""
    table = given.judges
    if table is None:
        return None
    head = table["columns"][0] if table["kind"] and table["columns"] else None
    is_share = head is not None and head["unit"] == "share"
    prices = [
        {
            **{"setup": row["setup"], JUDGE: row["judge"], "usd": row["usd_per_1000"]["value"]},
            **{"quality": quality["value"], "low": quality["low"], "high": quality["high"]},
        }
        for row in table["rows"]
        if head is not None
        and is_share
        and (quality := column_value(row, head["name"]))
        and row["usd_per_1000"]
        and row["usd_per_1000"]["value"] > 0
    ]
    return section(
        "Price against quality",
        "A line joins the setups that none cheaper is better than.",
        charts=[Chart("Price against quality", figures.price_figure, pd.DataFrame(prices))],
    )


def measure_name(table: JudgeTable) -> str:
    """Names the deciding measure of a table, as its first column does."""
    if table["measure"] == "exact":
        return "accuracy" if table["kind"] == "accuracy" else "agreement with people"
    return MEASURES[table["measure"]]


RATES: Mapping[str, str] = {
    "raw": "judge alone",
    "corrected": "corrected",
    "labels": "labels alone",
    "rogan_gladen": "Rogan-Gladen",
}
"""The estimates of people's rate, in words."""


def people_rate(given: ReportInput) -> Section | None:
    """Shows what people would say of all items, by the chosen setup and corrected by labels."""
    rate = given.judges["rate"] if given.judges else None
    if rate is None:
        return None
    quantities: Mapping[str, Quantity | None] = {
        "raw": rate["raw"],
        "corrected": rate["corrected"],
        "labels": rate["labels"],
        "rogan_gladen": rate["rogan_gladen"],
    }
    estimates = {name: quantity for name, quantity in quantities.items() if quantity is not None}
    frame = pd.DataFrame(
        [
            {
                "setup": rate["setup"],
                "quantity": rate["quantity"],
                "estimate": RATES[name],
                "value": quantity["value"],
                "low": quantity["low"],
                "high": quantity["high"],
                "n": quantity["n"],
            }
            for name, quantity in estimates.items()
        ]
    ).astype({"low": float, "high": float})
    text = hundredths if rate["quantity"].startswith("mean stage") else percent
    of_people = given.judges is not None and given.judges["kind"] == "agreement"
    source = "people's labels" if of_people else "known answers"
    return section(
        "What is the rate on all items?",
        f"{rate['setup']}. {rate['sentence']}",
        tables=[
            Table(
                "People's rate",
                f"{rate['quantity'][0].upper()}{rate['quantity'][1:]}, on {rate['items']:,} items, "
                f"of which {rate['labelled']:,} have {source}. Corrected: from the labels and all "
                "verdicts (prediction-powered). Rogan-Gladen assumes that the judge errs on other "
                "items as often as on labelled ones of the same label.",
                frame,
                pd.DataFrame(
                    {
                        "estimate": frame["estimate"],
                        rate["quantity"]: interval_texts(frame, text),
                        "items": frame["n"],
                    }
                ),
            )
        ],
    )


def _numbers(name: str, quantity: Quantity | None) -> dict[str, Any]:
    """Returns an estimate as columns of a table, with null where it is unknown."""
    ends: Mapping[str, Any] = quantity or dict.fromkeys(ENDS)
    return {name if end == "value" else f"{name}_{end}": ends[end] for end in ENDS}


def replacement_of_raters(given: ReportInput) -> Section | None:
    """Shows the alternative annotator test, where at least three people labelled items."""
    tests = given.judges["alt_test"] if given.judges else []
    if not tests:
        return None
    assert given.judges is not None
    chosen_name = given.judges["chosen"]
    leading = next((test for test in tests if test["setup"] == chosen_name), tests[0])
    frame = pd.DataFrame(tests).drop(columns="sentence")
    if frame["passed"].isna().all():
        reasons = dict.fromkeys(test["missing"] for test in tests)
        return section(
            "Can a judge replace a rater?",
            "The alternative annotator test is not possible.",
            lines=[*reasons],
        )
    return section(
        "Can a judge replace a rater?",
        leading["sentence"],
        tables=[
            Table(
                "Alternative annotator test",
                "Each rater is left out in turn. Wins: the share of raters against whom the "
                "judge wins; advantage: how often it is at least as close to the others as a "
                f"rater; it wins if it is {epsilon_name(given.declared.alt_test)}. The published "
                "procedure takes items as independent, ours respects clusters.",
                frame,
                pd.DataFrame(
                    {
                        "setup": frame["setup"],
                        "passes": [_yes_or_no(test["passed"]) for test in tests],
                        "wins": [_share_or_dash(test["omega"]) for test in tests],
                        "advantage": [_share_or_dash(test["advantage"]) for test in tests],
                        "raters": frame["raters"],
                        "as published": [_yes_or_no(test["published_passed"]) for test in tests],
                        # Most tests lack nothing: then the column would be empty.
                        **({"missing": frame["missing"]} if frame["missing"].any() else {}),
                    }
                ),
            )
        ],
    )


def _yes_or_no(value: bool | None) -> str:
    return "–" if value is None else "yes" if value else "no"


def _share_or_dash(value: float | None) -> str:
    return "–" if value is None else percent(value)


def knob_effects(given: ReportInput) -> Section | None:
    """Shows what each level of each varied knob does to quality."""
    table = given.judges
    if table is None or not table["effects"]:
        return None
    what, unit = measure_name(table), table["columns"][0]["unit"]
    frame = pd.DataFrame(
        [
            {**row, "level": level_name(row["level"]), "base": level_name(row["base"])}
            for row in table["effects"]
        ],
        columns=["knob", "level", "base", *ENDS, "setups"],
    ).astype({"low": float, "high": float})
    change = f"{what}, points" if unit == "share" else what
    texts = interval_texts(frame, DIFFERENCES.get(unit, signed_hundredths))
    return section(
        f"What does each choice do to {what}?",
        "Differences between setups that differ in one choice alone, averaged over items.",
        tables=[
            Table(
                "Choices and quality",
                f"Level minus base, averaged over pairs of setups; intervals are 95 %, over "
                f"{given.interval_units}, for all rows together.",
                frame,
                pd.DataFrame(
                    {
                        "choice": frame["knob"],
                        "level": frame["level"],
                        "instead of": frame["base"],
                        change: texts,
                        "items": frame["n"],
                        "pairs of setups": frame["setups"],
                    }
                ),
                plot=plot_differences(frame, change, unit),
            )
        ],
    )


def judges_table(table: JudgeTable) -> Table:
    """Returns the judge table with a column per measure, in numbers and as people read it."""
    rows = [
        {
            "setup": row["setup"],
            "standing": row["standing"],
            **{
                column: value
                for head in table["columns"]
                for column, value in _numbers(head["name"], column_value(row, head["name"])).items()
            },
        }
        for row in table["rows"]
    ]
    return Table(
        "Judges", _note(table), pd.DataFrame(rows), pd.DataFrame(_text_rows(table)), view="judges"
    )


def _text_rows(table: JudgeTable) -> list[dict[str, Any]]:
    """Writes the rows of a judge table as text, with the columns that are shown."""
    heads = [head for head in table["columns"] if head["main"]]
    return [
        {
            "setup": row["setup"],
            "standing": row["standing"],
            **{
                head["title"]: with_interval(column_value(row, head["name"]), FORMATS[head["unit"]])
                for head in heads
            },
        }
        for row in table["rows"]
    ]


def confusion_table(confusion: Confusion | None) -> Table | None:
    """Shows what the chosen setup says of items with each label."""
    if confusion is None:
        return None
    verdicts = confusion["verdicts"]
    frame = pd.DataFrame(
        [shares or [float("nan")] * len(verdicts) for shares in verdicts_by_label(confusion)],
        columns=verdicts,
    )
    cells = frame.map(lambda share: "–" if pd.isna(share) else percent(share))
    for table in (frame, cells):
        table.insert(0, "label", confusion["labels"])
    return Table(
        "Verdicts and labels",
        f"What {confusion['setup']} says (columns) of items with each label (rows), in percent of "
        f"the row; {confusion['n']:,} items.",
        frame,
        cells,
        view="confusion",
    )


def in_numbers(given: ReportInput) -> Section | None:
    """Lists every quantity of every setup, a row each."""
    if given.judges is None:
        return None
    return section(
        "Judges in numbers",
        "Every quantity of every setup.",
        tables=[
            Table(
                "Judges in numbers", "Shares from 0 to 1, US dollars, seconds.", _long(given.judges)
            )
        ],
    )


def _note(table: JudgeTable) -> str:
    """Returns what the columns mean, and on what they are based."""
    parts = [
        "A row per setup: a model with a design and a source of its rubric. Intervals: 95 %, over "
        f"{interval_units(table)}, for all rows of a column together."
    ]
    if table["kind"] == "accuracy":
        parts.append("Accuracy: right of all verdicts asked; one without a score is not right.")
    if table["kind"] == "agreement":
        rater = "the rater" if table["raters"] == 1 else f"a random one of {table['raters']} raters"
        parts.append(
            f"Agreement with people: with {rater}; a verdict without a score agrees with none."
        )
    if counts := differing_counts(table):
        parts.append(counts)
    people, column = people_deciding(table), deciding_column(table)
    if people is not None and column is not None:
        among = with_interval(people, FORMATS[column["unit"]])
        parts.append(f"People with each other: {among} ({measure_name(table)}).")
    if table["kind"] is not None and len(table["rows"]) > 1:
        parts.append(
            f"Standing: on {table['compared_items']} items that all compared setups judged; worse "
            f"if another is clearly better, unknown below {MIN_CLUSTERS} clusters."
        )
    if is_corrected(table):
        parts.append(
            f"{CORRECTED} The choice is repeated without each tenth of the clusters and scored on "
            "that tenth."
        )
    if split := table["split"]:
        parts.append(
            f"The setup was chosen on {split['choice']} items of {split['chosen_on']}; quality is "
            f"of {split['test']} items of test, of which {split['uses']} "
            f"{'estimate was' if split['uses'] == 1 else 'estimates were'} read so far."
        )
    if {"usd_per_1000", "seconds"} & {head["name"] for head in table["columns"]}:
        parts.append(
            "$ and seconds: of a verdict, averaged over repeats, the median over items; both "
            "orders of a pair are one."
        )
    return " ".join(
        [*parts, *(f"{note[0].upper()}{note[1:].removesuffix('.')}." for note in table["notes"])]
    )


def _long(table: JudgeTable) -> pd.DataFrame:
    """Returns every quantity of every setup: setup, quantity, value, low, high, n."""
    rows = []
    for row in table["rows"]:
        for head in table["columns"]:
            quantity = column_value(row, head["name"])
            if quantity is not None:
                ends = {key: quantity[key] for key in ("value", "low", "high", "n")}
                rows.append({"setup": row["setup"], "quantity": head["name"], **ends})
    frame = pd.DataFrame(rows, columns=["setup", "quantity", "value", "low", "high", "n"])
    return frame.astype({"low": float, "high": float})
