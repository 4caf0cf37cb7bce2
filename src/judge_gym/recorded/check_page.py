"""The page of a check: the answer, the judge table, and the items on which judges differ."""

from collections.abc import Iterator

import pandas as pd

from judge_gym.analysis.report.judges import confusion_table, judges_table
from judge_gym.analysis.report.page import (
    Disagreement,
    Question,
    Quote,
    Report,
    Section,
    Summary,
    Table,
    section,
)
from judge_gym.recorded.check import Check, DisagreedItem
from judge_gym.recorded.options import FileReading
from judge_gym.records.numbers import plural

DISAGREEMENTS = "Where do verdicts and labels differ?"
MISSING = "What does the file not support?"
LONGEST = 4_000
"""The number of characters of a text or a rationale that the page shows."""


def check_page(check: Check) -> Report:
    """Makes the page of a check, which needs no network and no other file."""
    first, *others = check.sentences
    missing = section(MISSING, "Each line says what would help.", lines=check.result["missing"])
    parts = {
        "How good is each judge?": _judges(check, others),
        DISAGREEMENTS: _disagreements(check),
        MISSING: missing,
        "How was the file read?": _reading(check.reading),
    }
    return Report(
        title=check.reading.recording.source,
        banner=check.table["simulated"],
        facts=dict(_facts(check)),
        warnings=(),
        questions=tuple(
            Question(title, (part,)) for title, part in parts.items() if part is not None
        ),
        summary=Summary(first),
        judge_table=check.table,
    )


def _judges(check: Check, sentences: list[str]) -> Section | None:
    lead = "Without labels or known answers, no judge is better than another."
    if check.table["kind"] is not None:
        lead = check.table["decides"]
    return section(
        "Judges",
        lead,
        lines=sentences,
        # The sentences have the numbers of the rows, whichever judge was chosen.
        tables=[
            judges_table({**check.table, "chosen_quality": None}),
            confusion_table(check.table["confusion"]),
        ],
    )


def _disagreements(check: Check) -> Section | None:
    cases = [_case(item) for item in check.disagreements]
    count = check.result["disagreements"]
    lead = f"{count:,} item{'' if count == 1 else 's'}, the furthest apart first."
    if len(cases) < count:
        lead = f"{count:,} items, of which these {len(cases)} are furthest apart."
    return section("Disagreements", lead, cases=cases)


def _case(item: DisagreedItem) -> Disagreement:
    quotes = [Quote("people", item.reference)] if item.reference else []
    for number, (judge, verdict) in enumerate(item.verdicts.items()):
        quotes.append(Quote(judge, verdict, "" if number else _shortened(item.rationale)))
    return Disagreement(item.item, item.item, tuple(quotes), _shortened(item.text))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _reading(reading: FileReading) -> Section | None:
    answers = any(value.truths for value in reading.values)
    roles = pd.DataFrame(
        [
            {"column": role.column, "taken for": role.role.replace("_", " "), "why": role.reason}
            for role in reading.roles
        ]
    )
    values = pd.DataFrame(
        [
            {
                "value": value.value,
                "means": value.label or "no label",
                "verdicts": value.verdicts,
                "labels": value.labels,
                **({"known answers": value.truths} if answers else {}),
            }
            for value in reading.values
        ]
    )
    return section(
        "Columns and values",
        "Nothing else of the file was used.",
        tables=[
            Table("Columns", "What each column was taken for.", roles),
            Table("Values", "How often each value occurs, and the label that it means.", values),
        ],
        lines=(*reading.recording.notes, *reading.conflicts),
    )


def _facts(check: Check) -> Iterator[tuple[str, str]]:
    """Yields what the numbers rest on."""
    recording, scale = check.reading.recording, check.result["scale"]
    yield "file", recording.source
    yield "items", f"{len(recording.items):,}"
    yield "judges", ", ".join(row["setup"] for row in check.table["rows"])
    yield "verdicts", f"{len(recording.verdicts):,}"
    count = len(recording.labels)
    labels = f"{count:,} of {plural(check.table['raters'], 'rater')}" if count else "none"
    yield "people's labels", labels
    positive = f", “{scale['positive']}” is positive" if scale["positive"] else ""
    yield "scale", f"{scale['kind']}: {', '.join(scale['labels'])}{positive}"
    yield "written by", "judge-gym check"
