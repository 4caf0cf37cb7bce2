"""The first section: which judge to use, how good it is, and at what price."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.frames import level_name
from judge_gym.analysis.report.page import Chart, ReportInput, Section, Table, section
from judge_gym.records.judge_table import (
    CORRECTED,
    MIN_CLUSTERS,
    JudgeTable,
    column_value,
    is_corrected,
)
from judge_gym.records.numbers import FORMATS, share, signed_points, with_interval

TITLE = "Which judge?"


def which_judge(given: ReportInput) -> Section | None:
    """Shows the judge table, and quality against price."""
    table = given.judges
    if table is None:
        return None
    prices = [
        {
            "setup": row["setup"],
            "usd": row["usd_per_1000"]["value"],
            "quality": row["truth"]["value"],
            "low": row["truth"]["low"],
            "high": row["truth"]["high"],
        }
        for row in table["rows"]
        if row["truth"] and row["usd_per_1000"] and row["usd_per_1000"]["value"] > 0
    ]
    return section(
        TITLE,
        f"Every number of the judge table{', and quality against price' * bool(prices)}.",
        tables=[
            judges_as_text(table),
            Table("Judges in numbers", "Shares from 0 to 1, US dollars, seconds.", _long(table)),
        ],
        charts=[Chart("Price against quality", figures.price_figure, pd.DataFrame(prices))],
    )


def knob_effects(given: ReportInput) -> Section | None:
    """Shows what each level of each varied knob does to quality."""
    table = given.judges
    if table is None:
        return None
    what = "accuracy" if table["kind"] == "accuracy" else "agreement with people"
    return section(
        f"What does each choice do to {what}?",
        "Differences between setups that differ in one choice alone, averaged over items.",
        tables=[
            Table(
                "Choices and quality",
                f"Level minus base, in shares of {what}, averaged over pairs of setups; intervals "
                "are 95 %, by cluster of items, for all rows together.",
                pd.DataFrame(
                    [
                        {**row, "level": level_name(row["level"]), "base": level_name(row["base"])}
                        for row in table["effects"]
                    ],
                    columns=["knob", "level", "base", "value", "low", "high", "n", "setups"],
                ).astype({"low": float, "high": float}),
                main=True,
            )
        ],
    )


def position_bias(given: ReportInput) -> Section | None:
    """Shows which setups prefer the response of a pair that is shown first."""
    table = given.judges
    if table is None:
        return None
    found = [(row["setup"], bias) for row in table["rows"] if (bias := row["position_bias"])]
    leaning: dict[str, list[str]] = {"first": [], "second": []}
    for setup, bias in found:
        low, high = bias["low"], bias["high"]
        if low is not None and high is not None and not low <= 0 <= high:
            shown = leaning["first" if low > 0 else "second"]
            shown.append(f"{setup} ({signed_points(bias['value'])})")
    leads = [
        f"Prefer the response shown {place}, in points: {'; '.join(setups)}."
        for place, setups in leaning.items()
        if setups
    ]
    return section(
        "Does the order of two responses matter?",
        " ".join(leads) or "No setup clearly prefers the response shown first, or second.",
        tables=[
            Table(
                "Position bias",
                "The share of decided verdicts for the response shown first minus that for the "
                "second, over pairs shown in both orders; 95 % intervals, for all rows together.",
                pd.DataFrame([{"setup": setup, **bias} for setup, bias in found]),
                main=True,
            )
        ],
    )


def judges_as_text(table: JudgeTable) -> Table:
    """Returns the judge table with formatted cells."""
    return Table("Judges", _note(table), pd.DataFrame(text_rows(table)))


def text_rows(table: JudgeTable) -> list[dict[str, str]]:
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


def _note(table: JudgeTable) -> str:
    """Returns what the columns mean, and on what they are based."""
    parts = [
        "A row per setup: a model with a design and a source of its rubric. Intervals: 95 %, by "
        "cluster of items, for all rows together."
    ]
    if table["kind"] == "accuracy":
        parts.append("Accuracy: right of all verdicts asked; one without a score is not right.")
    if table["kind"] == "agreement":
        parts.append(
            f"Agreement with people: with a random one of {table['raters']} raters; a verdict "
            "without a score agrees with none."
        )
    if people := table["people_with_each_other"]:
        parts.append(f"People with each other: {share(people)}.")
    if table["kind"] is not None:
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
            f"The setup was chosen on {split['train']} items of train, and quality is that of "
            f"{split['test']} items of test, of which {split['uses']} estimates were read so far."
        )
    parts.append(
        "$ and seconds: of a verdict, averaged over repeats, the median over items; both orders of "
        "a pair are one."
    )
    return " ".join([*parts, *(f"{note}." for note in table["notes"])])


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
