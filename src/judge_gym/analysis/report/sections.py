"""What sections of a report read, and how a section registers itself.

A section is a function of a `ReportInput` in a module of this package, decorated with
`@report_section(order=...)`; the module is imported in `report/__init__.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from judge_gym.analysis.dataset import Dataset
from judge_gym.analysis.frames import once_per_call
from judge_gym.analysis.report.page import Section
from judge_gym.analysis.stats.rubric_draws import MANY_DRAWS
from judge_gym.analysis.validity import DEFAULTS, Thresholds


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
    thresholds: Thresholds = DEFAULTS

    @property
    def frame(self) -> pd.DataFrame:
        """The tidy samples as a frame."""
        return self.data.frame

    @property
    def interval_units(self) -> str:
        """What intervals are over, in words."""
        many = self.frame["rubric_draw"].nunique() >= MANY_DRAWS
        return "evidence items and draws of rubrics" if many else "evidence items"


Build = Callable[[ReportInput], Section | None]


class RegisteredSection(NamedTuple):
    """A section of every report."""

    order: int
    build: Build


SECTIONS: list[RegisteredSection] = []


def report_section(*, order: int) -> Callable[[Build], Build]:
    """Registers a function that builds a section, or returns None without data for it."""

    def register(build: Build) -> Build:
        SECTIONS.append(RegisteredSection(order, build))
        SECTIONS.sort()
        return build

    return register


def scored_share(frame: pd.DataFrame) -> float:
    """Returns the share of scored verdicts; a call that experiments share counts once."""
    return float((once_per_call(frame, [])["status"] == "scored").mean())
