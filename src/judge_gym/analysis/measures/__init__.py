"""Measures of judges, one module a subject; a new module registers its measures by itself.

A measure is a column of the judge table, a row of the appendix on panels, or both. A column is a
function of `Verdicts` (`@column`), or of verdicts beside their labels (`@quality`); it returns what
each unit adds to the sums that the measure is a function of, and the table estimates it like any
other. `judge_table` and reports list what is registered: nothing else names a measure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.measures.scales import Loss
from judge_gym.analysis.measures.scales import Scale as ScaleKind
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.verdicts import Verdicts
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
    """How often its verdicts are the most frequent label, NaN where labels tie; None for answers."""
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
    """Registers a function of verdicts and labels, of which a table has known answers or people's."""

    def register(terms: QualityTerms) -> QualityTerms:
        MEASURES[name] = Measure(order, name, title, about, unit, main, quality=terms)
        return terms

    return register


def registered() -> list[Measure]:
    """Lists all measures in the order of their columns."""
    return sorted(MEASURES.values(), key=lambda measure: (measure.order, measure.name))


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
