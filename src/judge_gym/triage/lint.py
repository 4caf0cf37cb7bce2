"""Checking the arithmetic of a report, ours or one that a person wrote.

What a report states (totals, steps, classes, pass rate, net impact) is held against what it lists:
the rows of its classification, its sections on single failures, and its other statements.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judge_gym.errors import DesignError
from judge_gym.triage.reading import (
    CLASSES,
    MODEL_FAULT,
    UNDECIDED,
    Section,
    Told,
    detailed_failure,
    listed_failures,
    listing_column,
    sections,
)
from judge_gym.triage.stated import (
    ADVICE,
    HEADED,
    TOTAL,
    WHOLE,
    Stated,
    count_column,
    stated_counts,
    step_name,
)

_FREE = re.compile(r"\W*(reason|error|note|why|summary|comment|description)", re.I)
_NUMBER = r"\d+(?:\.\d+)?"
_SHARE = re.compile(
    rf"(?P<a>{_NUMBER})\s*(?:/|of|out of)\s*(?P<b>{_NUMBER})[^\d%()]{{0,24}}"
    rf"\(\s*~?(?P<p>{_NUMBER})\s*%"
    rf"|(?P<p2>{_NUMBER})\s*%\s*\(\s*(?P<a2>{_NUMBER})\s*(?:/|of|out of)\s*(?P<b2>{_NUMBER})"
)
_ASKED = re.compile(r"(\d+) asked: ((?:\d+ \w+(?:, )?)+)")
_FOUND = re.compile(r"(\d+) made, (\d+) found in the evidence, (\d+) not in the evidence")
_OF_FAILURES = r"(?:(\d+) of (?:the )?\d+ failures|(no|the only) failure)"
_DIFFERENT = re.compile(rf"different classes on {_OF_FAILURES}", re.I)
_GAPS = re.compile(rf"known gap matche[sd] the error of {_OF_FAILURES}", re.I)
_GAP_FOUND = re.compile(r"One is documented that shares words with this error\b")
_DIFFER = re.compile(r"\W*differ\W*\Z", re.I)
_SHARE_COLUMN = re.compile(r"\W*share\b", re.I)
_PERCENT = re.compile(rf"\W*({_NUMBER})\s*%")
_NUMBERED = re.compile(r"(\d+)[.)]\s")


class Complaint(NamedTuple):
    """A number that does not add up."""

    line: int
    what: str
    stated: str
    counted: str

    def __str__(self) -> str:
        """The complaint in words."""
        return f"line {self.line}: {self.what}: stated {self.stated}, counted {self.counted}"


@dataclass(frozen=True, slots=True)
class Listed:
    """What a report lists, to count."""

    failures: Sequence[Told]

    def count(self, what: str) -> int | None:
        """How many there are of something; None where the list cannot tell."""
        classes = Counter(one.classification for one in self.failures)
        if not self.failures:
            return None
        if what == "failures":
            return len(self.failures)
        if what == "actionable":
            return classes.total() - classes[MODEL_FAULT] - classes[UNDECIDED]
        if what in (*CLASSES, UNDECIDED):
            return classes[what]
        if what.startswith("step ") and all(one.step for one in self.failures):
            return sum(step_name(one.step) == what for one in self.failures)
        return None


def lint_report(text: str) -> list[Complaint]:
    """What does not add up in a report, in the order of its lines; empty where all does.

    A text that has nothing to hold against anything is refused: it would always add up.
    """
    parts = sections(text)
    rows = listed_failures(parts)
    details = [told for part in parts if (told := detailed_failure(part))]
    listed = Listed(rows or details)
    steps = {step_name(one.step) for one in listed.failures if one.step}
    stated = [one for part in parts for one in stated_counts(part, steps)]
    found = [
        *_totals(parts),
        *_shares(parts),
        *_against_list(stated, listed),
        *_against_each_other(parts, stated, listed),
        *_details_against_rows(parts, rows, details),
        *_headings(parts),
        *_sums_within(parts),
        *_counted_in_words(parts),
        *_shares_told_twice(parts),
        *_numbering(parts),
    ]
    if not (found or stated or listed.failures):
        raise DesignError(
            "it is no analysis report: it states no counts of evals, failures, steps or classes, "
            "and lists no failures"
        )
    return sorted(dict.fromkeys(found))


# --- what does not add up ------------------------------------------------------------------------


def _totals(parts: Sequence[Section]) -> Iterator[Complaint]:
    """Total rows, in whatever table, against the rows above them."""
    for table in (table for part in parts for table in part.tables):
        sums = [0] * len(table.header)
        for row in table.rows:
            for place, cell in enumerate(row[1:], 1):
                whole = WHOLE.match(cell.said)
                if whole is None:
                    continue
                if not TOTAL.match(row[0].text):
                    sums[place] += int(whole[1])
                elif int(whole[1]) != sums[place]:
                    head = table.header[place].text
                    yield Complaint(cell.line, f"total of {head}", whole[1], str(sums[place]))


def _shares(parts: Sequence[Section]) -> Iterator[Complaint]:
    """Percentages against the counts beside them, and listed names against their number."""
    for part in parts:
        free = [
            {p for p, head in enumerate(t.header) if _FREE.match(head.text)} for t in part.tables
        ]
        cells = [
            cell
            for table, skipped in zip(part.tables, free, strict=True)
            for row in table.rows
            for place, cell in enumerate(row)
            if place not in skipped
        ]
        for line in [*part.lines, *cells]:
            for match in _SHARE.finditer(line.said):
                a, b, percent = (match[name] or match[f"{name}2"] for name in "abp")
                decimals = len(percent.partition(".")[2])
                exact = 100 * float(a) / float(b) if float(b) else None
                # Half a unit of the last place, and the rounding of a numerator with decimals.
                slack = 0.501 * 10**-decimals + (0.5 / float(b) if "." in a and exact else 0)
                if exact is None or abs(exact - float(percent)) > slack:
                    shown = "undefined" if exact is None else f"{exact:.{decimals}f} %"
                    yield Complaint(line.line, f"share {a}/{b}", f"{percent} %", shown)


def _against_list(stated: Sequence[Stated], listed: Listed) -> Iterator[Complaint]:
    """Stated counts against the failures that the report lists."""
    for one in stated:
        counted = listed.count(one.what)
        if counted is not None and counted != one.number:
            yield Complaint(one.line, one.what, str(one.number), str(counted))


def _against_each_other(
    parts: Sequence[Section], stated: Sequence[Stated], listed: Listed
) -> Iterator[Complaint]:
    """Stated counts against what the other ones make of them."""
    known: dict[str, Stated] = {}
    for one in stated:
        first = known.setdefault(one.what, one)
        if first.number != one.number and listed.count(one.what) is None:
            yield Complaint(
                one.line, one.what, str(one.number), f"{first.number}, on line {first.line}"
            )
    for part in parts:
        inconclusive = known.get("inconclusive")
        if part.level == 2 and re.match("inconclusive", part.heading.text, re.I) and part.tables:
            rows = len(part.tables[0].rows)
            if inconclusive is not None and inconclusive.number != rows:
                yield Complaint(
                    inconclusive.line, "inconclusive", str(inconclusive.number), str(rows)
                )
    failures = listed.count("failures")
    if failures is None and "failures" in known:
        failures = known["failures"].number
    if failures is None or "passed" not in known:
        return
    passed = known["passed"].number
    left_out = known["inconclusive"].number if "inconclusive" in known else 0
    actionable = listed.count("actionable") or 0
    expected = {
        "results" if "results" in known else "evals": passed + failures + left_out,
        "conclusive": passed + failures,
        "conclusive without actionable": passed + failures - actionable,
    }
    for what, counted in expected.items():
        if what in known and known[what].number != counted:
            name = f"{what} (passed + failed{' + inconclusive' * (what in ('evals', 'results'))})"
            yield Complaint(known[what].line, name, str(known[what].number), str(counted))


def _details_against_rows(
    parts: Sequence[Section], rows: Sequence[Told], details: Sequence[Told]
) -> Iterator[Complaint]:
    """The sections on single failures against the table that lists them."""
    tables = (table for part in parts for table in part.tables)
    if not details or all(listing_column(table) is None for table in tables):
        return
    if len(rows) != len(details):
        yield Complaint(details[0].line, "failures analysed", str(len(details)), str(len(rows)))
    told = {one.eval: one for one in rows}
    for one in details:
        row = told.get(one.eval)
        if row is not None and row.classification != one.classification:
            yield Complaint(
                one.line, f"class of {one.eval}", one.classification, row.classification
            )
        if row is not None and row.step and one.step and step_name(row.step) != step_name(one.step):
            yield Complaint(one.line, f"step of {one.eval}", one.step, row.step)


def _headings(parts: Sequence[Section]) -> Iterator[Complaint]:
    """Recommendations counted in their headings against the list below."""
    for part in parts:
        headed = HEADED.search(part.heading.text)
        if headed and part.under(ADVICE) and int(headed[1]) != part.items:
            name = HEADED.sub("", part.heading.text).strip()
            yield Complaint(part.heading.line, name, headed[1], str(part.items))


def _sums_within(parts: Sequence[Section]) -> Iterator[Complaint]:
    """Sums that one line or row states together with its parts."""
    for line in (line for part in parts for line in part.lines):
        if asked := _ASKED.search(line.said):
            counted = sum(map(int, re.findall(r"\d+", asked[2])))
            if counted != int(asked[1]):
                yield Complaint(line.line, "verdicts", asked[1], str(counted))
        if made := _FOUND.search(line.said):
            counted = int(made[2]) + int(made[3])
            if counted != int(made[1]):
                yield Complaint(line.line, "quotes", made[1], str(counted))
    for table in (table for part in parts for table in part.tables):
        count, names = count_column(table), table.column(re.compile(r"\W*evals\W*\Z", re.I))
        if count is None or names is None or count == names:
            continue
        for row in table.rows:
            whole, listed = WHOLE.match(row[count].said), row[names].said
            # Names in code spans leave only the commas between them.
            if whole and row[names].text.strip() and not listed.strip(" ,"):
                counted = listed.count(",") + 1
                if counted != int(whole[1]):
                    yield Complaint(row[count].line, row[0].text, whole[1], str(counted))


def _counted_in_words(parts: Sequence[Section]) -> Iterator[Complaint]:
    """Failures that a sentence counts against the rows or sections that show which they are."""
    tables = [table for part in parts for table in part.tables]
    differ = [(table, place) for table in tables if (place := table.column(_DIFFER)) is not None]
    apart = sum(
        row[place].text.strip(" *").lower() == "yes"
        for table, place in differ
        for row in table.rows
    )
    details = [part for part in parts if detailed_failure(part)]
    gaps = sum(any(_GAP_FOUND.search(line.said) for line in part.lines) for part in details)
    checks = (
        (_DIFFERENT, "failures on which judges differ", apart if differ else None),
        (_GAPS, "failures with a known gap", gaps if details else None),
    )
    for line in (line for part in parts for line in part.lines):
        for pattern, what, counted in checks:
            found = pattern.search(line.said)
            if found is None or counted is None:
                continue
            stated = int(found[1] or found[2].lower() != "no")
            if stated != counted:
                yield Complaint(line.line, what, str(stated), str(counted))


def _shares_told_twice(parts: Sequence[Section]) -> Iterator[Complaint]:
    """A class's share in the table of failures against that in the failure's own section."""
    told = {}
    for part in parts:
        if one := detailed_failure(part):
            line = next(line for line in part.lines if line.line == one.line)
            if share := re.search(rf"\bby ({_NUMBER})\s*%", line.said):
                told[one.eval] = share[1]
    for table in (table for part in parts for table in part.tables):
        place, name = table.column(_SHARE_COLUMN), table.column(re.compile(r"\W*eval", re.I))
        if listing_column(table) is None or place is None or name is None:
            continue
        for row in table.rows:
            eval_name, stated = row[name].text.strip(), _PERCENT.match(row[place].said)
            if stated is None or eval_name not in told:
                continue
            # Each may be rounded in its last place.
            decimals = [len(share.partition(".")[2]) for share in (stated[1], told[eval_name])]
            slack = sum(0.501 * 10**-places for places in decimals)
            if abs(float(stated[1]) - float(told[eval_name])) > slack:
                what = f"share of the class of {eval_name}"
                yield Complaint(row[place].line, what, f"{stated[1]} %", f"{told[eval_name]} %")


def _numbering(parts: Sequence[Section]) -> Iterator[Complaint]:
    """The numbers of the sections on single failures; they may begin anew under another heading."""
    last, topic = 0, None
    for part in parts:
        found = _NUMBERED.match(part.heading.text)
        if found is None or detailed_failure(part) is None:
            continue
        expected = {last + 1} | ({1} if part.topic != topic else set())
        if int(found[1]) not in expected:
            yield Complaint(part.heading.line, "number of the section", found[1], str(last + 1))
        last, topic = int(found[1]), part.topic
