"""The parts of a report, and its rendering as one page, as text, or as a folder of files."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Any, TypeVar

import pandas as pd
from markupsafe import Markup, escape

from judge_gym.analysis import figures
from judge_gym.analysis.frames import JUDGE, once_per_call
from judge_gym.analysis.stats.contrasts import contrasts
from judge_gym.analysis.stats.intervals import MANY_DRAWS
from judge_gym.analysis.verdicts import Dataset
from judge_gym.errors import NotFoundError, unknown
from judge_gym.records.judge_table import JudgeTable
from judge_gym.records.numbers import number
from judge_gym.studies.declarations import NOTHING_DECLARED, Declarations

SIMULATED = "All judges were simulated: these numbers describe the method, not any real model."
PARTLY_SIMULATED = "Some judges were simulated: {models}."
SHOWN_ROWS = 60
"""The largest number of rows of a table on a page."""
GOOD, BAD = ("supported", "pass"), ("fail",)
LONG = 40
"""The number of characters from which a cell may take several lines."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report."""

    title: str
    note: str
    frame: pd.DataFrame
    main: bool = False
    """Whether it answers the question of its section; the others are in the appendix."""


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


@dataclass(frozen=True, slots=True)
class Section:
    """The answer to one question: in a sentence, in figures, in tables."""

    title: str
    lead: str
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()


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
    """An item on which two setups differ most."""

    item: str
    evidence: str
    quotes: tuple[Quote, Quote]


@dataclass(frozen=True, slots=True)
class Summary:
    """The first page of a report: the answer, and what it rests on."""

    sentence: str
    outcomes: str = ""
    """What became of hypotheses and validity checks, in a sentence."""
    judges: Table | None = None
    """The judge table, as text."""
    chart: Chart | None = None
    choices: tuple[str, ...] = ()
    """What each varied knob does, a line each."""
    disagreements: tuple[Disagreement, ...] = ()
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a reader, and the sections that answer it."""

    title: str
    sections: tuple[Section, ...]


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
    tags: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """The experiment of each task, variant and judge."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """Every section, in order."""
        return tuple(section for question in self.questions for section in question.sections)

    def table(self, name: str) -> pd.DataFrame:
        """Returns a table by its title or a part of it, such as `effects`."""
        frame: pd.DataFrame = _named("table", name, self.tables).frame
        return frame

    def figure(self, name: str) -> figures.Figure:
        """Returns a figure by its title or a part of it, such as `effects`."""
        return _named("figure", name, self.charts).chart

    def _repr_html_(self) -> str:
        """Shows the report in a notebook, in a frame, so that neither changes the other's style."""
        return (
            f'<iframe srcdoc="{escape(self.html())}" title="{escape(self.title)}" '
            'style="width: 100%; height: 50rem; border: 0"></iframe>'
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table, in order."""
        return tuple(table for section in self.sections for table in section.tables)

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Every figure, in order."""
        first = [self.summary.chart] if self.summary.chart is not None else []
        return (*first, *(chart for section in self.sections for chart in section.charts))

    def html(self) -> str:
        """Renders the report as one self-contained page."""
        from jinja2 import Environment

        template = (files("judge_gym.analysis.report") / "report.html.j2").read_text(
            encoding="utf-8"
        )
        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        return environment.from_string(template).render(
            report=self,
            svg=figures.svg,
            caption=figures.caption,
            cell=shown,
            classes=_classes,
            experiment=self._experiment,
            slug=slug,
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
        yield from self._summary_lines(pictures)
        for question in self.questions:
            yield from ("", f"## {question.title}")
            for section in question.sections:
                yield from ("", f"### {section.title}", "", section.lead)
                for chart in section.charts if pictures else ():
                    yield from ("", f"![{chart.title}]({pictures}/{slug(chart.title)}.svg)")
                for table in section.tables:
                    if table.main:
                        yield from _table_lines(table)
        yield from ("", "## Appendix", "", "| | |", "| --- | --- |")
        yield from (f"| {name} | {_escaped(value)} |" for name, value in self.facts.items())
        for table in self.tables:
            if not table.main:
                yield from _table_lines(table)

    def _summary_lines(self, pictures: str | None) -> Iterator[str]:
        found = self.summary
        yield from ("", f"**{_escaped(found.sentence)}**")
        if found.outcomes:
            yield from ("", _escaped(found.outcomes))
        if found.judges is not None:
            yield from _table_lines(found.judges)
        if found.chart is not None and pictures:
            yield from ("", f"![{found.chart.title}]({pictures}/{slug(found.chart.title)}.svg)")
        if found.choices:
            yield from ("", "What each choice does:", "", *(f"- {line}" for line in found.choices))
        for case in found.disagreements:
            yield from ("", f"Disagreement on “{_escaped(case.item)}”:", "")
            for quote in case.quotes:
                text = f": “{_escaped(quote.text)}”" if quote.text else ""
                yield f"- {quote.setup} says {quote.verdict}{text}"
        if found.caveats:
            yield from ("", "Caveats:", "", *(f"- {line}" for line in found.caveats))

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yields every file of the report's folder: page, text, tables and figures, by name."""
        yield "report.html", self.html().encode()
        yield "report.md", self.markdown(pictures="figures").encode()
        for table in self.tables:
            yield f"tables/{slug(table.title)}.csv", table.frame.to_csv(index=False).encode()
        for chart in self.charts:
            yield f"figures/{slug(chart.title)}.svg", figures.svg(chart.chart).encode()
            yield f"figures/{slug(chart.title)}.png", figures.png(chart.chart)


def _table_lines(table: Table) -> Iterator[str]:
    yield from ("", f"### {table.title}", "", table.note, "")
    yield "| " + " | ".join(map(_escaped, table.frame.columns)) + " |"
    yield "|" + " --- |" * len(table.frame.columns)
    for row in table.frame.head(SHOWN_ROWS).itertuples(index=False):
        yield "| " + " | ".join(_escaped(shown(value)) for value in row) + " |"
    if len(table.frame) > SHOWN_ROWS:
        yield from ("", f"{len(table.frame) - SHOWN_ROWS:,} more rows in the CSV file.")


Part = TypeVar("Part", Table, Chart)


def _named(kind: str, name: str, parts: Sequence[Part]) -> Part:
    """Returns the table or figure with a title, or the only one whose title has it as a part."""
    wanted, by_slug = slug(name), {slug(part.title): part for part in parts}
    if wanted in by_slug:
        return by_slug[wanted]
    near = [known for known in by_slug if wanted in known] if wanted else []
    if len(near) != 1:
        raise NotFoundError(unknown(kind, name, near or by_slug), choices=near or by_slug)
    return by_slug[near[0]]


def section(
    title: str,
    lead: str,
    *,
    tables: Sequence[Table] = (),
    charts: Sequence[Chart] = (),
) -> Section | None:
    """Returns a section of the tables and figures that are not empty; None without any."""
    kept = tuple(table for table in tables if not table.frame.empty)
    drawn = tuple(chart for chart in charts if chart.kind.has_data(chart.frame))
    return Section(title, lead, kept, drawn) if kept or drawn else None


def simulation_banner(models: Iterable[str]) -> str:
    """Returns a warning if some or all models are simulated; empty if none is."""
    models = list(models)
    simulated = sorted(model for model in models if model.startswith("sim:"))
    if not simulated:
        return ""
    every = len(simulated) == len(models)
    return SIMULATED if every else PARTLY_SIMULATED.format(models=", ".join(simulated))


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
    """The tidy samples."""
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
