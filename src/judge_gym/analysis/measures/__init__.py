"""Measures of judges, one module a subject; a new module registers its measures by itself.

A measure is a column of the judge table, a row of the appendix on panels, or both. A column is a
function of the verdicts of setups (`@column`), or of verdicts beside their labels (`@quality`); it
returns what each unit contributes, and the table estimates it like any other. A panel, that is all
judges of one task and variant, is summarised by `@panel_measure`. Tables and reports list what is
registered: nothing else names a measure.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.frames import JUDGE, PANEL
from judge_gym.analysis.measures.scales import Loss
from judge_gym.analysis.measures.scales import Scale as ScaleKind
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.stats.intervals import Estimate
from judge_gym.analysis.verdicts import ALL_SETUPS, Dataset, Samples, Verdicts
from judge_gym.records.judge_table import Unit


class LabelScale(NamedTuple):
    """What the labels of a reference are: their number, their order, and which is positive."""

    kind: ScaleKind
    names: tuple[str, ...]
    positive: int | None
    """The index of the positive one of two labels; None if it is not declared or known."""

    @property
    def stages(self) -> int:
        """The number of labels."""
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Compared:
    """The verdicts of one setup beside the labels of their units; arrays have a row per unit."""

    units: IntArray
    right: FloatArray
    """The share of labels that the unit's verdicts agree with."""
    answered: FloatArray
    """The share of its verdicts that have a score."""
    majority: FloatArray | None
    """How often its verdicts are the most frequent label, NaN on ties; None for known answers."""
    verdict: FloatArray
    """The distribution over stages and the statuses without a score."""
    label: FloatArray
    """The distribution of labels."""
    tables: FloatArray
    """Verdicts crossed with labels."""
    scale: LabelScale | None
    """The scale of all labels; None where tasks have different ones."""
    loss: Loss | None = None


ColumnTerms = Callable[[Verdicts], Mapping[int, Terms]]
"""Returns the terms of each setup, by its index; a setup without any is left out."""
QualityTerms = Callable[[Compared], Terms | None]


class Summary(NamedTuple):
    """A measure of one panel, with a note that puts it into context."""

    estimate: Estimate
    note: str


Summarize = Callable[[Dataset, Verdicts], Summary]


class Measure(NamedTuple):
    """A registered measure."""

    order: int
    """The place among the columns."""
    name: str
    title: str
    """The head of its column."""
    about: str
    """What it is, and which question it answers, for the documentation."""
    unit: Unit
    main: bool = True
    """Whether it is a column wherever the table is shown; the others are details."""
    column: ColumnTerms | None = None
    quality: QualityTerms | None = None
    panel: Summarize | None = None
    benchmark: str = ""
    """The benchmark whose published rule it is; it is shown there alone."""


MEASURES: dict[str, Measure] = {}


def column(
    name: str, title: str, about: str, *, order: int, unit: Unit = "share", main: bool = True
) -> Callable[[ColumnTerms], ColumnTerms]:
    """Registers a function of the verdicts of setups as a column of the judge table."""

    def register(terms: ColumnTerms) -> ColumnTerms:
        MEASURES[name] = Measure(order, name, title, about, unit, main, column=terms)
        return terms

    return register


def quality(
    name: str, title: str, about: str, *, order: int, unit: Unit = "share", main: bool = True
) -> Callable[[QualityTerms], QualityTerms]:
    """Registers a function of verdicts beside labels, which are known answers or people's."""

    def register(terms: QualityTerms) -> QualityTerms:
        MEASURES[name] = Measure(order, name, title, about, unit, main, quality=terms)
        return terms

    return register


def published(
    benchmark: str, name: str, title: str, about: str, *, order: int
) -> Callable[[ColumnTerms], ColumnTerms]:
    """Registers a function of the verdicts of setups that is a benchmark's own published rule.

    It is no column of the judge table, whose measures have one rule for all data.
    """

    def register(terms: ColumnTerms) -> ColumnTerms:
        measure = Measure(order, name, title, about, "share", column=terms, benchmark=benchmark)
        MEASURES[name] = measure
        return terms

    return register


def of_panels(order: int, name: str, summarize: Summarize) -> Measure:
    """Makes a measure of panels."""
    return Measure(order, name, name, "", "share", False, panel=summarize)


def panel_measure(name: str, *, order: int) -> Callable[[Summarize], Summarize]:
    """Registers a summary of panels, of which a table has a row for each."""

    def register(summarize: Summarize) -> Summarize:
        MEASURES[f"panel {name}"] = of_panels(order, name, summarize)
        return summarize

    return register


def registered(benchmark: str = "") -> list[Measure]:
    """Lists the columns of the judge table in their order, or those of a benchmark's own rule."""
    columns = [
        measure
        for measure in MEASURES.values()
        if measure.panel is None and measure.benchmark == benchmark
    ]
    return sorted(columns, key=lambda measure: (measure.order, measure.name))


ALL = "all"
"""The name of all judges of a panel together in tables."""
TOO_FEW_JUDGES = "needs an item with scored verdicts of two judges"


def panel_table(samples: Samples, more: Iterable[Measure] = ()) -> pd.DataFrame:
    """Returns a row per task, variant and measure: value, low, high, n (items) and a note.

    Args:
        samples: the samples, or a dataset of them.
        more: summaries of panels beside those that are registered here.
    """
    data = Dataset.of(samples)
    measures = [measure for measure in [*MEASURES.values(), *more] if measure.panel is not None]
    rows = []
    for verdicts in data.panels:
        for measure in sorted(measures, key=lambda measure: (measure.order, measure.name)):
            assert measure.panel is not None
            estimate, note = measure.panel(data, verdicts)
            named = {"metric": measure.name, **estimate.named("value", "low", "high", "n")}
            rows.append({**verdicts.key, **named, "note": note})
    return pd.DataFrame(rows, columns=[*PANEL, "metric", "value", "low", "high", "n", "note"])


def judge_rows(samples: Samples, row: Callable[[Verdicts, int], Mapping[str, Any]]) -> pd.DataFrame:
    """Returns a row for all judges of each panel together, then one for each judge."""
    return pd.DataFrame(
        {**verdicts.key, JUDGE: judge, **row(verdicts, index)}
        for verdicts in Dataset.of(samples).panels
        for index, judge in enumerate((ALL, *verdicts.setups), ALL_SETUPS)
    )


def note_number(value: float) -> str:
    """Formats a number for a note; undefined is a dash."""
    return "–" if np.isnan(value) else f"{value:.3f}"


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
