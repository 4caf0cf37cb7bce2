"""Reading reports back, ours and those that people wrote: headings, lines, tables, failures."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK, KNOWN_GAP = CLASSES = (
    "MODEL_FAULT",
    "OVERLY_STRICT",
    "AMBIGUOUS_TASK",
    "KNOWN_GAP",
)
UNDECIDED = "undecided"
_CLASS = re.compile(
    r"\W*(model[_ -]fault|overly[_ -]strict|ambiguous[_ -]task|known[_ -]gap|undecided)s?\b", re.I
)
PAST = re.compile(r"\b(earlier|prior|previous|history)\b", re.I)
_ACTIONS = re.compile(r"\bactions? (?:already )?taken\b", re.I)
_CLASSED = re.compile(r"\W*(?:class|verdict|type|cause)", re.I)
_EVAL = re.compile(r"\W*(?:eval|name|task)", re.I)
_STEP = re.compile(r"\W*(?:failed |failing )?step", re.I)
_FIELD = re.compile(r"\W*(?P<name>[A-Za-z][\w /-]{0,40}?)\W*:\W*(?P<value>.*)", re.S)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Text(NamedTuple):
    """Words of a report: all of them, and those outside code spans, which are quoted."""

    line: int
    text: str
    said: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table, its rows with the lines they stand on."""

    header: list[Text]
    rows: list[list[Text]]

    def column(self, wanted: re.Pattern[str]) -> int | None:
        """The first column whose heading matches."""
        heads = enumerate(self.header)
        return next((place for place, head in heads if wanted.match(head.text)), None)


@dataclass(slots=True)
class Section:
    """A heading and what stands under it, up to the next heading of any level."""

    heading: Text
    level: int
    topic: str
    """The heading of level 2 that it stands under, or is; evals are named below, or in code."""
    lines: list[Text] = field(default_factory=list)
    items: int = 0
    """The items of its lists, those within items not counted."""
    tables: list[Table] = field(default_factory=list)

    def under(self, wanted: re.Pattern[str]) -> bool:
        """Whether its topic is something."""
        return wanted.search(self.topic) is not None


class Told(NamedTuple):
    """A failure as a report tells it; what is not told is empty."""

    line: int
    eval: str
    step: str
    classification: str


@dataclass(frozen=True, slots=True)
class PriorReport:
    """What an earlier report says."""

    source: str
    run: str
    date: str
    version: str
    pass_rate: str
    failures: tuple[Told, ...]
    actions: tuple[str, ...]
    """What was done after it, one action each; none where it says None."""

    @property
    def evals(self) -> frozenset[str]:
        """The evals that failed, replicates of one taken together."""
        return frozenset(_bare(one.eval) for one in self.failures)

    def told(self, path: str) -> tuple[Told, ...]:
        """What it tells of an eval, a failure each; nothing where the eval did not fail."""
        return tuple(one for one in self.failures if _same(one.eval, path))


def class_of(text: str) -> str | None:
    """The class that a text opens with, however it is spelt.

    >>> class_of("**Model fault** (arguably)")
    'MODEL_FAULT'
    """
    match = _CLASS.match(text)
    if match is None:
        return None
    name = re.sub(r"[ -]", "_", match[1])
    return UNDECIDED if name.lower() == UNDECIDED else name.upper()


# --- Markdown ------------------------------------------------------------------------------------


def sections(text: str) -> list[Section]:
    """The sections of a report; what is quoted or fenced is not part of them."""
    found = [Section(Text(1, "", ""), 0, "")]
    quoted = depth = 0
    row: list[Text] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for place, token in enumerate(tokens):
        here = found[-1]
        match token.type:
            case "blockquote_open" | "blockquote_close":
                quoted += token.nesting
            case _ if quoted:
                continue
            case "heading_open":
                level, heading = int(token.tag[1:]), _texts(tokens[place + 1])[0]
                topic = here.topic if level > 2 else heading.said * (level == 2)
                found.append(Section(heading, level, topic))
            case "bullet_list_open" | "ordered_list_open":
                depth += 1
            case "bullet_list_close" | "ordered_list_close":
                depth -= 1
            case "list_item_open":
                here.items += depth == 1
            case "table_open":
                here.tables.append(Table([], []))
            case "tr_open":
                row = []
            case "tr_close":
                table = here.tables[-1]
                (table.rows.append(row) if table.header else table.header.extend(row))
            case "inline" if tokens[place - 1].type in ("th_open", "td_open"):
                start = (token.map or [0])[0] + 1
                cells = _texts(token)
                row.append(
                    Text(start, " ".join(c.text for c in cells), " ".join(c.said for c in cells))
                )
            case "inline" if tokens[place - 1].type != "heading_open":
                here.lines += _texts(token)
    return found


def _texts(token: Token) -> list[Text]:
    """The lines of an inline token."""
    first = (token.map or [0])[0] + 1
    whole, said = [""], [""]
    for child in token.children or ():
        if child.type in ("softbreak", "hardbreak"):
            whole.append("")
            said.append("")
        elif child.type in ("text", "code_inline"):
            whole[-1] += child.content
            said[-1] += child.content if child.type == "text" else " "
    return [Text(first + n, *both) for n, both in enumerate(zip(whole, said, strict=True))]


# --- failures ------------------------------------------------------------------------------------


def class_column(table: Table) -> int | None:
    """The column of a table that holds classes; None where it has none."""
    for place in range(len(table.header)):
        named = [class_of(row[place].text) is not None for row in table.rows]
        if named and 2 * sum(named) > len(named):
            return place
    return None


def listing_column(table: Table) -> int | None:
    """The column of classes in a table that lists failures; None where it does something else.

    Classes in the first column are what is counted; under other heads, what one judge said.
    """
    if not table.rows:
        return table.column(_CLASSED) if table.column(_EVAL) is not None else None
    place = class_column(table)
    return place if place and _CLASSED.match(table.header[place].text) else None


def listed_failures(parts: list[Section]) -> list[Told]:
    """The failures of the tables that classify them, a row each; not those of earlier reports."""
    found = []
    for table in (table for part in parts if not part.under(PAST) for table in part.tables):
        place = listing_column(table)
        if place is None:
            continue
        name, step = table.column(_EVAL) or 0, table.column(_STEP)
        for row in table.rows:
            if (classification := class_of(row[place].text)) is not None:
                told = row[step].text.strip() if step is not None else ""
                found.append(Told(row[0].line, row[name].text.strip(), told, classification))
    return found


def detailed_failure(part: Section) -> Told | None:
    """The failure that a section is about, if it names one's class; None for other sections."""
    named = {name.lower(): line for name, line in _fields(part.lines)}
    told = next((line for name, line in named.items() if name.startswith("class")), None)
    classification = class_of(told.text) if told else None
    if part.level < 2 or told is None or classification is None or part.under(PAST):
        return None
    step = next((line.text for name, line in named.items() if _STEP.match(name)), "")
    name = re.sub(r"^\d+[.)]\s*", "", part.heading.text).strip()
    return Told(told.line, name, step.strip(), classification)


def _fields(lines: list[Text]) -> Iterator[tuple[str, Text]]:
    """Lines such as `Step: lint`, as name and value."""
    for line in lines:
        if match := _FIELD.fullmatch(line.text):
            said = _FIELD.fullmatch(line.said)
            yield match["name"], Text(line.line, match["value"], said["value"] if said else "")


def _same(told: str, path: str) -> bool:
    """Whether a report means an eval: by its path, its name, or `name (category)`."""
    category, _, name = path.rpartition("/")
    return _bare(told) in (path, name, f"{name} ({category})")


def _bare(told: str) -> str:
    """An eval without the number of its replicate."""
    return re.sub(r"#\d+$", "", told.strip())


def metadata(parts: list[Section]) -> Iterator[tuple[str, Text]]:
    """What a report states of its run, as name and value: tables of two columns, lines."""
    for part in parts:
        if part.under(PAST) or part.level > 2:
            continue
        for table in part.tables:
            if len(table.header) == 2:
                yield from ((row[0].text.strip(), row[1]) for row in table.rows)
        yield from _fields(part.lines)


def read_report(text: str, source: str) -> PriorReport:
    """An earlier report, as far as it can be read.

    Args:
        text: its Markdown.
        source: its path, by which a later report names it.
    """
    parts = sections(text)
    stated: dict[str, str] = {}
    for name, value in metadata(parts):
        stated.setdefault(name.lower(), value.text.strip())
    detailed = [told for part in parts if (told := detailed_failure(part))]
    failures = listed_failures(parts) or detailed
    date = _DATE.search(stated.get("date", "")) or _DATE.search(source)
    acted = [part for part in parts if part.under(_ACTIONS) or _ACTIONS.search(part.heading.said)]
    actions = [line.text for part in acted for line in part.lines]
    return PriorReport(
        source=source,
        run=stated.get("run", "") or stated.get("run id", ""),
        date=date[0] if date else "",
        version=stated.get("benchmark version", ""),
        pass_rate=stated.get("pass rate", ""),
        failures=tuple(failures),
        actions=tuple(one for one in actions if not re.fullmatch(r"\W*none\W*", one, re.I)),
    )
