"""The parts of a report, and its rendering as one page, as text, or as a folder of files.

A page has the tables that answer a question; those of the appendix are computed when they are asked
for, and written to a folder of files.
"""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from judge_gym.analysis import figures
from judge_gym.analysis.formulas import escape_formulas
from judge_gym.analysis.frames import JUDGE, once_per_call
from judge_gym.analysis.judges.sentence import no_better_than_constant
from judge_gym.analysis.stats.contrasts import contrasts, judge_contrasts
from judge_gym.analysis.stats.intervals import MANY_DRAWS
from judge_gym.analysis.verdicts import Dataset
from judge_gym.axes import RECORDED
from judge_gym.errors import NotFoundError, unknown
from judge_gym.records import palette
from judge_gym.records.forest import Axis, axis_of, judge_plot, row_svg
from judge_gym.records.judge_table import (
    JudgeTable,
    Quantity,
    Unit,
    column_value,
    verdicts_by_label,
)
from judge_gym.records.numbers import FORMATS, number, percent, with_interval
from judge_gym.studies.declarations import NOTHING_DECLARED, Declarations

SIMULATED = "All judges were simulated: these numbers describe the method, not any real model."
PARTLY_SIMULATED = "Some judges were simulated: {models}."
SHOWN_ROWS = 60
"""The largest number of rows of a table on a page."""
GOOD, BAD = ("supported", "pass"), ("fail",)
LONG = 40
"""The number of characters from which a cell may take several lines."""
PLOT_WIDTH = 220
"""The pixels of intervals in tables, so that a table fits a sheet of paper."""


@dataclass(frozen=True, slots=True)
class Plot:
    """The intervals of a table's rows on one scale, which the page draws beside their texts."""

    before: str
    """The column that it stands before."""
    axis: Axis
    quantities: tuple[Quantity | None, ...]
    clear: tuple[bool, ...]
    """Whether each row is a clear effect, which has a filled dot."""

    def row(self, number: int) -> Markup:
        """Draws the interval of a row."""
        return Markup(
            row_svg(
                self.axis,
                self.quantities[number],
                filled=self.clear[number],
                width=PLOT_WIDTH,
                height=22,
            )
        )

    @property
    def head(self) -> Markup:
        """The numbers of the scale."""
        return Markup(self.axis.svg(PLOT_WIDTH))


def plot_differences(
    frame: pd.DataFrame, before: str, unit: Unit, clear: Iterable[bool] | None = None
) -> Plot:
    """Returns the plot of a table's differences, which are in `value`, `low` and `high`.

    Args:
        frame: the numbers of the table.
        before: the column of its texts that the plot stands before.
        unit: how differences are written.
        clear: whether each is clear; by default, whether its interval excludes 0.
    """
    quantities = [
        None
        if np.isnan(value)
        else Quantity(
            value=value,
            low=None if np.isnan(low) else low,
            high=None if np.isnan(high) else high,
            n=0,
        )
        for value, low, high in frame[["value", "low", "high"]].astype(float).to_numpy()
    ]
    axis = axis_of([quantity for quantity in quantities if quantity is not None], unit, signed=True)
    excludes_0 = (frame["low"] > 0) | (frame["high"] < 0)
    return Plot(before, axis, tuple(quantities), tuple(excludes_0 if clear is None else clear))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report."""

    title: str
    note: str
    frame: pd.DataFrame
    """Its numbers, as files and programs read them."""
    text: pd.DataFrame | None = None
    """Its cells as people read them; by default those of `frame`."""
    folded: bool = False
    """Whether the page shows it only when a reader opens it."""
    view: Literal["rows", "judges", "confusion"] = "rows"
    """How the page draws it: as rows of text, as the judge table with its forest plot, or as a
    grid of coloured shares."""
    plot: Plot | None = None
    """Intervals that are drawn beside its rows."""

    @property
    def cells(self) -> pd.DataFrame:
        """What people read."""
        return self.frame if self.text is None else self.text


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure of a report, drawn when it is needed."""

    title: str
    kind: figures.FigureKind
    frame: pd.DataFrame
    finding: str | None = None
    """The heading of the figure; by default, its own finding."""
    judges: tuple[str, ...] = ()
    """All judges of the study, which have the same colours in every figure."""

    @cached_property
    def chart(self) -> figures.Figure:
        """The drawn figure."""
        return self.kind(self.frame, self.finding, judges=self.judges)

    @cached_property
    def svg(self) -> str:
        """The drawn figure as a picture, rendered once for the page and for its file."""
        return figures.svg(self.chart)


@dataclass(frozen=True, slots=True)
class Quote:
    """What a setup answered, in short."""

    setup: str
    verdict: str
    text: str = ""
    """The end of its reasoning; empty if the text is unknown."""
    call_id: int | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which two setups differ most, or a judge and people."""

    item: str
    evidence: str
    quotes: tuple[Quote, ...]
    text: str = ""
    """What was judged, where the page shows it."""


@dataclass(frozen=True, slots=True)
class Section:
    """The answer to one question: in a sentence, in lines, in cases, in tables, in figures."""

    title: str
    lead: str
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    lines: tuple[str, ...] = ()
    cases: tuple[Disagreement, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """The top of a report: the answer, and what became of what was expected."""

    sentence: str
    outcomes: str = ""
    """What became of hypotheses and validity checks, in a sentence."""
    numbers: tuple[tuple[str, str], ...] = ()
    """What the sentence rests on, each number with what it is."""
    choices: tuple[str, ...] = ()
    """What each varied knob does, a line each."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a reader, and the sections that answer it."""

    title: str
    sections: tuple[Section, ...]
    folded: bool = False
    """Whether the page shows its sections only when a reader opens them."""


@dataclass(frozen=True, eq=False)
class Appendix:
    """Further tables: a section is computed when one of its tables is asked for."""

    sections: "Mapping[str, SectionOf]"
    """The section that has each table, by the table's title."""
    given: "ReportInput"
    _computed: "dict[SectionOf, dict[str, Table]]" = field(default_factory=dict)

    def table(self, title: str) -> Table | None:
        """Returns a table, computing its section on the first call; None without data for it."""
        part = self.sections[title]
        if part not in self._computed:
            section = part(self.given)
            self._computed[part] = (
                {table.title: table for table in section.tables} if section else {}
            )
        return self._computed[part].get(title)

    def tables(self) -> Iterator[Table]:
        """Yields every table that has data."""
        for title in self.sections:
            table = self.table(title)
            if table is not None:
                yield table


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a report."""

    title: str
    banner: str
    """A warning that judges were simulated; empty if none was."""
    facts: dict[str, str]
    warnings: tuple[str, ...]
    questions: tuple[Question, ...]
    summary: Summary
    judge_table: JudgeTable | None = None
    """Which setup is best, and at what price; None for verdicts on recorded pairs."""
    judges: tuple[str, ...] = ()
    """All judges of the study, which have the same colours in every figure and on every page."""
    tags: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """The experiment of each task, variant and judge."""
    appendix: Appendix | None = None

    @property
    def sections(self) -> tuple[Section, ...]:
        """Every section, in order."""
        return tuple(section for question in self.questions for section in question.sections)

    def table(self, name: str) -> pd.DataFrame:
        """Returns a table by its title or a part of it, such as `effects`.

        Tables of the appendix are computed when they are asked for.
        """
        return self.find_table(name).frame

    def find_table(self, name: str) -> Table:
        """Returns a table of the page or the appendix by its title or a part of it."""
        on_page = {table.title: table for table in self.tables}
        more = {} if self.appendix is None else self.appendix.sections
        title = _titled(
            "table", name, [*on_page, *(title for title in more if title not in on_page)]
        )
        if title in on_page:
            return on_page[title]
        assert self.appendix is not None
        return self.appendix.table(title) or Table(title, "No data for it.", pd.DataFrame())

    def figure(self, name: str) -> figures.Figure:
        """Returns a figure by its title or a part of it, such as `effects`."""
        charts = {chart.title: chart for chart in self.charts}
        return charts[_titled("figure", name, [*charts])].chart

    def _repr_html_(self) -> str:
        """Shows the report in a notebook, in a frame, so that neither changes the other's style."""
        return (
            f'<iframe srcdoc="{escape(self.html())}" title="{escape(self.title)}" '
            'style="width: 100%; height: 50rem; border: 0"></iframe>'
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table of the page, in order."""
        return tuple(table for section in self.sections for table in section.tables)

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Every figure, in order."""
        return tuple(chart for section in self.sections for chart in section.charts)

    @property
    def further_tables(self) -> tuple[str, ...]:
        """The titles of the tables in the appendix, whether or not there are data for them."""
        on_page = {table.title for table in self.tables}
        titles = () if self.appendix is None else tuple(self.appendix.sections)
        return tuple(title for title in titles if title not in on_page)

    def html(self) -> str:
        """Renders the report as one self-contained page."""
        from jinja2 import Environment

        template = (files("judge_gym.analysis.report") / "report.html.j2").read_text(
            encoding="utf-8"
        )
        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        table = self.judge_table
        every = self.judges or tuple({row["judge"] for row in table["rows"]} if table else ())
        return environment.from_string(template).render(
            report=self,
            judges=table,
            recommended=table and not no_better_than_constant(table) and table["chosen"],
            judge_plot=table and judge_plot(table),
            colours=palette.judge_colours(every),
            by_label=table and table["confusion"] and verdicts_by_label(table["confusion"]),
            heads=[head for head in table["columns"] if head["main"]] if table else [],
            column_value=column_value,
            formats=FORMATS,
            with_interval=with_interval,
            style=page_style(),
            caption=figures.caption,
            cell=shown,
            classes=_classes,
            experiment=self._experiment,
            percent=percent,
            plot_width=PLOT_WIDTH,
            slug=slug,
            more_rows=more_rows,
            rows=SHOWN_ROWS,
        )

    def _experiment(self, row: Mapping[str, Any]) -> str | None:
        """Returns the experiment that a row of a table is about; None if it is about several."""
        judge = row.get(JUDGE, row.get("judge"))
        return self.tags.get((str(row.get("task")), str(row.get("variant")), str(judge)))

    def markdown(self, *, pictures: str | None = None) -> str:
        """Renders the report as text, with links to pictures if they are in a folder beside it."""
        return "\n".join(self._lines(pictures)) + "\n"

    def _lines(self, pictures: str | None) -> Iterator[str]:
        yield f"# {self.title}"
        for warning in filter(None, (self.banner, *self.warnings)):
            yield from ("", f"> **{warning}**")
        yield from ("", f"**{_escaped(self.summary.sentence)}**")
        if self.summary.numbers:
            numbers = (f"{name}: {value}" for name, value in self.summary.numbers)
            yield from ("", _escaped("; ".join(numbers)))
        if self.summary.outcomes:
            yield from ("", _escaped(self.summary.outcomes))
        for question in self.questions:
            yield from ("", f"## {question.title}")
            for section in question.sections:
                yield from _section_lines(section, question, pictures)
        yield from ("", "## About the data", "", "| | |", "| --- | --- |")
        yield from (f"| {name} | {_escaped(value)} |" for name, value in self.facts.items())

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yields every file of the report's folder by name: page, text, tables and figures.

        Tables are those of the page and of the appendix; figures are those of the page.
        """
        yield "report.html", self.html().encode()
        yield "report.md", self.markdown(pictures="figures").encode()
        for table in self.every_table():
            text = escape_formulas(table.frame).to_csv(index=False)
            yield f"tables/{slug(table.title)}.csv", text.encode()
        for chart in self.charts:
            yield f"figures/{slug(chart.title)}.svg", chart.svg.encode()
            yield f"figures/{slug(chart.title)}.png", figures.png(chart.chart)

    def every_table(self) -> Iterator[Table]:
        """Yields the tables of the page, then those of the appendix, which it computes."""
        on_page = {table.title for table in self.tables}
        yield from self.tables
        for table in self.appendix.tables() if self.appendix is not None else ():
            if table.title not in on_page:
                yield table


@cache
def page_style() -> Markup:
    """Writes the colours and the font of pages, so that a report needs no other file."""
    font = base64.b64encode((palette.FONTS / "inter.woff2").read_bytes()).decode()
    face = (
        f'@font-face {{ font-family: {palette.FONT}; src: url("data:font/woff2;base64,{font}"); '
        "font-weight: 400 700; }"
    )
    return Markup(f"{palette.style_sheet()}{face}\n")


def _section_lines(section: Section, question: Question, pictures: str | None) -> Iterator[str]:
    if section.title != question.title:
        yield from ("", f"### {section.title}")
    yield from ("", _escaped(section.lead))
    if section.lines:
        yield from ("", *(f"- {_escaped(line)}" for line in section.lines))
    for table in section.tables:
        yield from _table_lines(table)
    for case in section.cases:
        yield from ("", f"“{_escaped(case.item)}”:", "")
        if case.text:
            yield from (f"> {_escaped(case.text)}", "")
        for quote in case.quotes:
            text = f": “{_escaped(quote.text)}”" if quote.text else ""
            yield f"- {_escaped(quote.setup)} says {_escaped(quote.verdict)}{text}"
    for chart in section.charts if pictures else ():
        yield from _picture_lines(chart, str(pictures))


def _picture_lines(chart: Chart, pictures: str) -> Iterator[str]:
    yield from ("", f"![{chart.title}]({pictures}/{slug(chart.title)}.svg)")


def _table_lines(table: Table) -> Iterator[str]:
    yield from ("", f"#### {table.title}", "", table.note, "")
    cells = table.cells
    yield "| " + " | ".join(map(_escaped, cells.columns)) + " |"
    yield "|" + " --- |" * len(cells.columns)
    for row in cells.head(SHOWN_ROWS).itertuples(index=False):
        yield "| " + " | ".join(_escaped(shown(value)) for value in row) + " |"
    if len(cells) > SHOWN_ROWS:
        yield from ("", f"{more_rows(len(cells))} in the CSV file.")


def more_rows(count: int) -> str:
    """Says how many rows of a table a page leaves out: `1 more row`."""
    rest = count - SHOWN_ROWS
    return f"{rest:,} more row{'s' * (rest != 1)}"


def _titled(kind: str, name: str, titles: Sequence[str]) -> str:
    """Returns the title with this name, or the only one that has it as a part."""
    wanted, by_slug = slug(name), {slug(title): title for title in titles}
    if wanted in by_slug:
        return by_slug[wanted]
    near = [short for short in by_slug if wanted in short] if wanted else []
    if len(near) != 1:
        raise NotFoundError(unknown(kind, name, near or by_slug), choices=near or by_slug)
    return by_slug[near[0]]


def section(
    title: str,
    lead: str,
    *,
    tables: Sequence[Table | None] = (),
    charts: Sequence[Chart] = (),
    lines: Sequence[str] = (),
    cases: Sequence[Disagreement] = (),
) -> Section | None:
    """Makes a section of what is not empty; None if all is."""
    full = tuple(table for table in tables if table is not None and not table.frame.empty)
    with_data = tuple(chart for chart in charts if chart.kind.has_data(chart.frame))
    if not (full or with_data or lines or cases):
        return None
    ended = lead if lead.endswith((".", "?")) else f"{lead}."
    return Section(title, ended, full, with_data, tuple(lines), tuple(cases))


def interval_texts(
    frame: pd.DataFrame, text: Callable[[float], str], value: str = "value"
) -> list[str]:
    """Writes the estimates of a table with their intervals; an undefined one is empty."""
    ends = frame[[value, "low", "high"]].astype(float).to_numpy()
    return [
        ""
        if pd.isna(middle)
        else with_interval(
            {
                "value": middle,
                "low": None if pd.isna(low) else low,
                "high": None if pd.isna(high) else high,
                "n": 0,
            },
            text,
        )
        for middle, low, high in ends
    ]


def simulation_banner(models: Iterable[str]) -> str:
    """Returns a warning if some or all models are simulated; empty if none is."""
    models = list(models)
    simulated = sorted(model for model in models if model.startswith("sim:"))
    if not simulated:
        return ""
    every = len(simulated) == len(models)
    return SIMULATED if every else PARTLY_SIMULATED.format(models=", ".join(simulated))


def recorded_note(frame: pd.DataFrame) -> str:
    """Returns which judges of samples others recorded, and where; empty if this lab asked all."""
    if RECORDED not in frame:
        return ""
    levels = frame[RECORDED].astype(object).where(frame[RECORDED].notna(), "").to_numpy()
    judges: dict[str, dict[str, None]] = {}
    for judge, source in dict.fromkeys(zip(frame[JUDGE].astype(str), levels, strict=True)):
        judges.setdefault(source, {})[judge] = None
    without_name = judges.pop("", None)
    if not judges:
        return ""
    if without_name is None:
        return f"Recorded {' and '.join(judges)}, not asked by this lab."
    parts = [f"{', '.join(names)}: recorded {source}" for source, names in judges.items()]
    return f"{'; '.join(parts)}, not asked by this lab."


def slug(title: str) -> str:
    """Returns a title as a file name or an anchor on a page.

    >>> slug("Own and rivals' rubrics")
    'own-and-rivals-rubrics'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower().replace("'", "")).strip("-")


def shown(value: Any) -> str:
    """Formats a cell of a table; undefined is a dash, never 0."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


def _classes(value: Any) -> Markup:
    """Returns the classes of a cell: text left-aligned, long text wrapped, results in colour."""
    if not isinstance(value, str):
        return Markup("")
    names = ["text", *(["long"] if len(value) > LONG else [])]
    names += ["good"] if value in GOOD else ["bad"] if value in BAD else []
    return Markup(f' class="{" ".join(names)}"')


def _escaped(text: Any) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


@dataclass(frozen=True, eq=False)
class ReportInput:
    """The data that a report is made of."""

    data: Dataset
    """The tidy samples, with the columns that analyses read."""
    samples: pd.DataFrame | None = None
    """The tidy samples with all knobs, where `data` lacks some: names of setups need them."""
    usage: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Calls and cost by experiment, stage and model."""
    views: Sequence[Mapping[str, Any]] = ()
    """The evidence views that judges read, with editor, status and checks."""
    people: pd.DataFrame | None = None
    """Raters' stages, with columns tag, evidence, rater, stage."""
    label_usd: float = 0.0
    """What a person's label of a new item costs."""
    declared: Declarations = NOTHING_DECLARED
    """What the study declares about its analysis."""
    confounded: tuple[str, ...] = ()
    """What varies together between tasks, in words."""
    judges: JudgeTable | None = None
    """The judge table of the samples."""

    @property
    def frame(self) -> pd.DataFrame:
        """The tidy samples as a frame."""
        return self.data.frame

    @cached_property
    def contrasts(self) -> pd.DataFrame:
        """The differences between levels of each varied knob, pairs of responses aside."""
        return contrasts(self.data.without_pairs)

    @cached_property
    def judge_contrasts(self) -> pd.DataFrame:
        """The differences between judges under one design, pairs of responses aside."""
        return judge_contrasts(self.data.without_pairs)

    @property
    def interval_units(self) -> str:
        """What intervals are over, in words."""
        many = self.frame["rubric_draw"].nunique() >= MANY_DRAWS
        clustered = (self.frame["cluster"] != "").any()
        items = "clusters of evidence items" if clustered else "evidence items"
        return f"{items} and draws of rubrics" if many else items


def scored_share(frame: pd.DataFrame) -> float:
    """Returns the share of scored verdicts; a call that experiments share counts once."""
    return float((once_per_call(frame, [])["status"] == "scored").mean())


SectionOf = Callable[[ReportInput], Section | None]
"""Answers a question from the data; None without data."""
