"""Reads the reports that `report` wrote: sections and tables, and what an earlier report found."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it.token import Token


class Text(NamedTuple):
    """One line, heading or table cell: where it stands, its words, and its code spans."""

    line: int
    text: str
    codes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The first code span, which is how a report writes names; the words without one."""
        return self.codes[0] if self.codes else self.text.strip()


Row = dict[str, Text]
"""The cells of a table's row by the heading of their column."""


@dataclass(slots=True)
class Section:
    """A heading and what stands under it, up to the next heading of any level."""

    heading: Text
    level: int
    topic: str
    """The heading of level 2 that it stands under, or is."""
    lines: list[Text] = field(default_factory=list)
    items: int = 0
    """The number of items of its lists, without nested ones."""
    tables: list[tuple[list[str], list[Row]]] = field(default_factory=list)
    """The headings and rows of its tables."""

    def rows(self, *columns: str) -> list[Row]:
        """Returns the rows of the first table whose headings begin with these, or none."""
        for headings, rows in self.tables:
            if headings[: len(columns)] == list(columns):
                return rows
        return []

    def match(self, pattern: str) -> tuple[Text, re.Match[str]] | None:
        """Returns the first line that begins with a pattern, and its match."""
        for line in self.lines:
            if match := re.match(pattern, line.text):
                return line, match
        return None


class ReportedFailure(NamedTuple):
    """A failure as a report lists it."""

    eval: str
    step: str
    classification: str


class FailureSection(NamedTuple):
    """The section of a report that analyses one failure."""

    eval: str
    classification: str
    text: str
    """Its own Markdown, without the heading."""


@dataclass(frozen=True, slots=True)
class PriorReport:
    """What an earlier report found."""

    source: str
    run: str
    date: str
    version: str
    pass_rate: str
    failures: tuple[ReportedFailure, ...]
    actions: tuple[str, ...]
    """The actions that people recorded in it; none where it reads None."""
    model: str = ""

    @property
    def evals(self) -> frozenset[str]:
        """The evals that failed, whichever the replicate."""
        return frozenset(_path(failure.eval) for failure in self.failures)

    def failures_of(self, path: str) -> tuple[ReportedFailure, ...]:
        """Returns the failures of an eval, one per replicate; none where it did not fail."""
        return tuple(failure for failure in self.failures if _path(failure.eval) == path)


def read_report(text: str, source: str) -> PriorReport:
    """Reads an earlier report; what it does not state is empty. `source` is its path."""
    sections = read_sections(text)
    run = {label: cell.name for label, cell in run_table(sections).items()}
    actions = [
        line.text for part in sections if part.topic == "Actions taken" for line in part.lines
    ]
    return PriorReport(
        source=source,
        run=run.get("Run", ""),
        date=run.get("Date", ""),
        version=run.get("Benchmark version", ""),
        pass_rate=run.get("Pass rate", ""),
        failures=tuple(
            ReportedFailure(row["Eval"].name, row["Step"].name, class_name(row["Class"].text))
            for row in listed_failures(sections)
        ),
        actions=tuple(one for one in actions if not re.fullmatch(r"\W*none\W*", one, re.I)),
        model=run.get("Model", ""),
    )


def read_failure_sections(text: str) -> list[FailureSection]:
    """Reads the sections of a report that analyse one failure each."""
    lines, sections = text.splitlines(), read_sections(text)
    ends = [part.heading.line - 1 for part in sections[1:]] + [len(lines)]
    found = []
    for part, end in zip(sections, ends, strict=True):
        if is_failure(part) and (classified := part.match(r"Class: (.+)")):
            words = "\n".join(lines[part.heading.line : end]).strip()
            found.append(FailureSection(part.heading.name, class_name(classified[1][1]), words))
    return found


# --- the template --------------------------------------------------------------------------------


def run_table(sections: list[Section]) -> dict[str, Text]:
    """Returns the values of the table on the run, by their labels."""
    tables = [table for part in sections if part.topic == "Run" for table in part.tables]
    cells = [list(row.values()) for _, rows in tables[:1] for row in rows]
    return {row[0].text: row[1] for row in cells if len(row) > 1}


def listed_failures(sections: list[Section]) -> list[Row]:
    """Returns the rows of the table that classifies each failure."""
    for part in sections:
        if part.topic == "Classification":
            return part.rows("Eval", "Step", "Class")
    return []


def is_failure(part: Section) -> bool:
    """Tells whether a section analyses one failure."""
    return part.topic == "Each failure" and part.level == 3


def class_name(text: str) -> str:
    """Returns the class that a cell or line opens with.

    >>> class_name("KNOWN_GAP (unsupported)"), class_name("MODEL_FAULT, by 100.0 % (3/3)")
    ('KNOWN_GAP', 'MODEL_FAULT')
    """
    return re.split(r"[ ,]", text.strip())[0]


def _path(name: str) -> str:
    """Returns an eval's path without the number of a replicate."""
    return re.sub(r"#\d+$", "", name)


# --- Markdown ------------------------------------------------------------------------------------


def read_sections(text: str) -> list[Section]:
    """Reads the sections of a Markdown text; quoted and fenced blocks are left out."""
    from markdown_it import MarkdownIt

    sections = [Section(Text(1, "", ()), 0, "")]
    quoted = depth = 0
    cells: list[Text] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for place, token in enumerate(tokens):
        here = sections[-1]
        match token.type:
            case "blockquote_open" | "blockquote_close":
                quoted += token.nesting
            case _ if quoted:
                continue
            case "heading_open":
                level, heading = int(token.tag[1:]), _texts(tokens[place + 1])[0]
                topic = here.topic if level > 2 else heading.text * (level == 2)
                sections.append(Section(heading, level, topic))
            case "bullet_list_open" | "ordered_list_open":
                depth += 1
            case "bullet_list_close" | "ordered_list_close":
                depth -= 1
            case "list_item_open":
                here.items += depth == 1
            case "tr_open":
                cells = []
            case "thead_close":
                here.tables.append(([cell.text for cell in cells], []))
            case "tr_close" if tokens[place + 1].type != "thead_close":
                headings, rows = here.tables[-1]
                rows.append(dict(zip(headings, cells, strict=True)))
            case "inline" if tokens[place - 1].type in ("th_open", "td_open"):
                cells.append(_texts(token)[0])
            case "inline" if tokens[place - 1].type != "heading_open":
                here.lines += _texts(token)
    return sections


def _texts(token: "Token") -> list[Text]:
    """Returns the lines of an inline token."""
    first = (token.map or [0])[0] + 1
    lines: list[tuple[str, tuple[str, ...]]] = [("", ())]
    for child in token.children or ():
        words, codes = lines[-1]
        if child.type in ("softbreak", "hardbreak"):
            lines.append(("", ()))
        elif child.type == "code_inline":
            lines[-1] = words + child.content, (*codes, child.content)
        elif child.type == "text":
            lines[-1] = words + child.content, codes
    return [Text(first + number, *line) for number, line in enumerate(lines)]
