"""Analyses experiments for pages when they are opened, and caches the results and their figures."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from judge_gym.errors import BusyError, ConflictError, DesignError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.lab.imports import load_analysis
from judge_gym.lab.study_results import StudyResults
from judge_gym.records import palette
from judge_gym.web.api.parameters import from_app

if TYPE_CHECKING:
    import pandas as pd

MAX_SAMPLES = 100_000
"""Samples that a page analyses at most; a report takes any number."""
MAX_ENTRIES, MAX_AGE = 24, 120.0
"""Analyses that are kept, and their age in seconds: `reparse` may change verdicts in place."""
PATIENCE = 60.0
"""Seconds that a request waits while another analysis is computed."""
INKS = {"light": palette.LIGHT["ink"], "dark": palette.DARK["ink"]}
"""The colour of text in figures by colour scheme, as in the style sheet."""


T = TypeVar("T")


@dataclass(slots=True)
class _Entry:
    results: Any
    version: object
    at: float
    figures: dict[tuple[str, str], str] = field(default_factory=dict)


class AnalysisCache:
    """Caches analyses by function and name until the data change.

    One analysis is computed at a time, so that other pages stay fast.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()

    def experiment(self, analyse: Callable[[Lab, str], T], tag: str) -> T:
        """Returns what a function finds about an experiment."""
        with self._turn():
            results: T = self._experiment(analyse, tag).results
            return results

    def study(self, analyse: Callable[[StudyResults, str], T], name: str) -> T | None:
        """Returns a result about a study, or None if it has no verdicts yet.

        Kept until its data change, at any age: a reader who comes back does not use the test part
        of a split once more.
        """

        def find() -> T | None:
            refuse_large(self._lab, [row["tag"] for row in self._lab.studies.find_study(name)])
            try:
                return analyse(self._lab.results, name)
            except ConflictError:
                return None

        with self._turn():
            version = self._lab.pages.study_version(name)
            entry = self._kept((analyse.__qualname__, name), version, find, max_age=math.inf)
            results: T | None = entry.results
            return results

    def figure(self, analyse: Callable[[Lab, str], Any], tag: str, name: str, theme: str) -> str:
        """Returns a figure of an experiment's analysis as SVG, for a light or a dark page."""
        from judge_gym.analysis import figures
        from judge_gym.analysis.report.page import slug

        with self._turn():
            entry = self._experiment(analyse, tag)
            sections = entry.results.sections
            charts = {slug(chart.title): chart for part in sections for chart in part.charts}
            if name not in charts:
                raise NotFoundError(f"there is no figure {name!r}", choices=charts)
            if (name, theme) not in entry.figures:
                picture = figures.svg(charts[name].chart)
                for known, ink in INKS.items():
                    entry.figures[name, known] = picture.replace("currentColor", ink)
            return entry.figures[name, theme]

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=PATIENCE):
            raise BusyError("another analysis is in progress; try again in a moment", wait=10)
        try:
            load_analysis()
            yield
        finally:
            self._lock.release()

    def _experiment(self, analyse: Callable[[Lab, str], Any], tag: str) -> _Entry:
        version = [(run.run_id, run.done, run.statuses) for run in self._lab.pages.progress(tag)]
        key = (analyse.__qualname__, tag)
        return self._kept(key, version, lambda: analyse(self._lab, tag), max_age=MAX_AGE)

    def _kept(
        self, key: tuple[str, str], version: object, analyse: Callable[[], Any], *, max_age: float
    ) -> _Entry:
        entry, now = self._entries.pop(key, None), time.monotonic()
        if entry is None or entry.version != version or now - entry.at > max_age:
            entry = _Entry(analyse(), version, now)
        self._entries[key] = entry
        while len(self._entries) > MAX_ENTRIES:
            self._entries.popitem(last=False)
        return entry


def count_samples(lab: Lab, tag: str) -> int:
    """Returns how many samples an experiment has."""
    return sum(sum(run.statuses.values()) for run in lab.pages.progress(tag))


def refuse_large(lab: Lab, tags: Sequence[str]) -> int:
    """Returns how many samples experiments have; refuses more than a page analyses."""
    count = sum(count_samples(lab, tag) for tag in tags)
    if count > MAX_SAMPLES:
        raise DesignError(
            f"{count:,} samples are too many for a page, which analyses at most {MAX_SAMPLES:,}; "
            "judge-gym report takes any number"
        )
    return count


def tidy_samples(lab: Lab, tags: Sequence[str]) -> "pd.DataFrame | None":
    """Returns the tidy frame of experiments, or None if they have no samples.

    Raises:
        DesignError: if there are too many samples for a page.
    """
    from judge_gym.analysis.frames import tidy

    count = refuse_large(lab, tags)
    return tidy(lab.experiments.samples(*tags), source=tags[0]) if count else None


Analyses = Annotated[AnalysisCache, from_app("analyses")]
