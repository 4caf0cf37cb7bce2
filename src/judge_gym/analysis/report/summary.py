"""The top of a report: which judge, its main numbers, and what each choice does in words."""

from collections.abc import Iterator

import pandas as pd

from judge_gym.analysis.frames import NAMES_APART, level_name
from judge_gym.analysis.report.judges import measure_name
from judge_gym.analysis.report.page import ReportInput, Summary
from judge_gym.analysis.report.verdicts import over_all_judges
from judge_gym.analysis.stats.paired_tests import is_clear
from judge_gym.records.judge_table import (
    JudgeTable,
    KnobEffect,
    deciding_column,
    people_deciding,
)
from judge_gym.records.numbers import (
    FORMATS,
    difference_with_interval,
    dollars,
    signed_hundredths,
    with_interval,
)

LABELS = {"accuracy": "known answers", "agreement": "people's labels", None: "labels"}
"""What setups are compared with, by the kind of a judge table."""


def summarize(given: ReportInput) -> Summary:
    """Returns the summary of a report; what became of hypotheses is not in it yet."""
    table = given.judges
    assert table is not None
    return Summary(
        sentence=table["sentence"],
        numbers=tuple(_numbers(table)),
        choices=tuple(choice_lines(given)),
    )


def _numbers(table: JudgeTable) -> Iterator[tuple[str, str]]:
    """Yields what the sentence rests on: quality, people, a constant answer, price, items."""
    head, quality = deciding_column(table), table["chosen_quality"]
    if head is None:
        return
    text = FORMATS[head["unit"]]
    if quality is not None:
        expected = "on the test split" if quality["method"] == "test split" else "on new items"
        named = measure_name(table)
        yield f"{named} expected {expected}", with_interval(quality, text)
    if (people := people_deciding(table)) is not None:
        yield "people with each other", with_interval(people, text)
    if table["constant"] is not None:
        yield "always the same answer", text(table["constant"])
    chosen_row = next((row for row in table["rows"] if row["setup"] == table["chosen"]), None)
    if chosen_row is not None and chosen_row["usd_per_1000"] is not None:
        yield "price of 1,000 verdicts", dollars(chosen_row["usd_per_1000"]["value"])
    yield f"items with {LABELS[table['kind']]}", f"{table['known_items']:,}"


# --- what each choice does -----------------------------------------------------------------------


def choice_lines(given: ReportInput) -> Iterator[str]:
    """Yields a line per level of each varied knob: what it does to quality, else to stages."""
    table, decided_levels = given.judges, set()
    for effect in table["effects"] if table else ():
        assert table is not None
        name = level_name(effect["level"])
        decided_levels.add((effect["knob"], name))
        instead = f"{effect['knob']} {name} instead of {level_name(effect['base'])}"
        yield f"{instead} {_quality_effect(effect, table)}"
    if not given.data.without_pairs.scored:
        return
    headlines = over_all_judges(given.contrasts)
    stages = headlines[(headlines["endpoint"] == "stage") & headlines["value"].notna()]
    for (knob, level, base), part in stages.groupby(["knob", "level", "base"], sort=False):
        if (knob, level) not in decided_levels:
            effect_in_words = _stage_effect(part, given)
            yield f"{knob} {level} instead of {base} {effect_in_words}"


def _quality_effect(effect: KnobEffect, table: JudgeTable) -> str:
    """States how a choice changes the deciding measure; clearly if the interval excludes 0."""
    low, high, what = effect["low"], effect["high"], measure_name(table)
    shift = difference_with_interval(effect, table["columns"][0]["unit"])
    items = f"{effect['n']:,} item{'s' * (effect['n'] != 1)}"
    if low is None or high is None or low <= 0 <= high:
        return f"shows no clear effect on {what}: {shift}, {items}"
    return f"{'raises' if effect['value'] > 0 else 'lowers'} {what}: {shift}, {items}"


def _stage_effect(rows: pd.DataFrame, given: ReportInput) -> str:
    """States the clearest effect of a choice on stages, and how many tasks show none."""
    clear = rows[is_clear(rows)]
    top = (clear if len(clear) else rows).sort_values("value", key=abs, kind="stable").iloc[-1]
    ends = ""
    if pd.notna(top["low"]):
        ends = f" [{signed_hundredths(top['low'])}, {signed_hundredths(top['high'])}]"
    tasks = given.contrasts["task"].nunique()
    where = f" on {top['task']}" if tasks > 1 else ""
    value = signed_hundredths(top["value"])
    if not len(clear):
        largest = " at most" if len(rows) > 1 else ""
        return f"shows no clear effect on stages:{largest} {value} of the scale{ends}{where}"
    unclear_tasks = rows["task"].nunique() - clear["task"].nunique()
    rest = (
        f"; no clear effect on {unclear_tasks} other task{'s' * (unclear_tasks > 1)}"
        if unclear_tasks
        else ""
    )
    most = f", the largest of {len(clear)}" if len(clear) > 1 else ""
    way = _towards(given, str(top["task"]), up=top["value"] > 0)
    return f"moves verdicts {way} by {value} of the scale{ends}{where}{most}{rest}"


def _towards(given: ReportInput, task: str, *, up: bool) -> str:
    """Says which way verdicts move, with the name of the stage at that end where it is known."""
    texts = given.frame.loc[given.frame["task"] == task, "stage_names"].unique()
    names = str(texts[0]).split(NAMES_APART) if len(texts) == 1 and texts[0] else []
    return f"towards “{names[-1 if up else 0]}”" if names else "up" if up else "down"
