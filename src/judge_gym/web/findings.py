"""What analysis says of experiments, for pages: worked out when it is looked at, and kept."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

from fastapi import Depends
from starlette.requests import Request

from judge_gym.errors import BusyError, DesignError, NotFoundError
from judge_gym.lab import Lab

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.report import Section

MOST = 100_000
"""Samples that a page works out at once; a report takes any number."""
KEPT, FRESH = 24, 120.0
"""How many findings are kept, and for how many seconds at most: verdicts may be read anew."""
PATIENCE = 60.0
"""Seconds that one waits for what is worked out for others."""
INKS = {"light": "#1c1f24", "dark": "#e6e9ee"}
"""The colour of words on either ground, as in the style sheet."""


class Found(Protocol):
    """What was found of experiments."""

    @property
    def sections(self) -> "Sequence[Section]":
        """What a report would say."""


T = TypeVar("T", bound=Found)
Build = Callable[[Lab, tuple[str, ...]], Found]


@dataclass(slots=True)
class _Kept:
    found: Any
    version: object
    at: float
    pictures: dict[tuple[str, str], str] = field(default_factory=dict)


class Findings:
    """Findings by who works them out and of which experiments, new when these went on.

    One is worked out at a time, so that pages stay quick meanwhile.

    Args:
        lab: where the samples are.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._lock = threading.Lock()
        self._all: OrderedDict[tuple[str, tuple[str, ...]], _Kept] = OrderedDict()

    def of(self, build: Callable[[Lab, tuple[str, ...]], T], tags: Sequence[str]) -> T:
        """What there is to say of experiments."""
        with self._turn():
            found: T = self._kept(build, tuple(tags)).found
            return found

    def picture(self, build: Build, tags: Sequence[str], name: str, ground: str) -> str:
        """A figure of what was found, in ink for a light or a dark ground."""
        from judge_gym.analysis import figures
        from judge_gym.analysis.report.page import slug

        with self._turn():
            kept = self._kept(build, tuple(tags))
            charts = {slug(one.title): one for part in kept.found.sections for one in part.charts}
            if name not in charts:
                raise NotFoundError(f"there is no figure {name!r}", choices=charts)
            if (name, ground) not in kept.pictures:
                drawn = figures.svg(charts[name].chart)
                for kind, ink in INKS.items():
                    kept.pictures[name, kind] = drawn.replace("currentColor", ink)
            return kept.pictures[name, ground]

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=PATIENCE):
            raise BusyError("figures of others are being drawn; try again in a moment", wait=10)
        try:
            yield
        finally:
            self._lock.release()

    def _kept(self, build: Build, tags: tuple[str, ...]) -> _Kept:
        key, version = (build.__qualname__, tags), [_version(self._lab, tag) for tag in tags]
        kept, now = self._all.pop(key, None), time.monotonic()
        if kept is None or kept.version != version or now - kept.at > FRESH:
            kept = _Kept(build(self._lab, tags), version, now)
        self._all[key] = kept
        while len(self._all) > KEPT:
            self._all.popitem(last=False)
        return kept


def _version(lab: Lab, tag: str) -> object:
    return [(run.run_id, run.done, run.statuses) for run in lab.store.progress.of_tag(tag)]


def count_samples(lab: Lab, tag: str) -> int:
    """How many samples an experiment has."""
    return sum(sum(run.statuses.values()) for run in lab.store.progress.of_tag(tag))


def tidy_samples(lab: Lab, tags: Sequence[str]) -> "pd.DataFrame | None":
    """The frame of experiments; None without samples, refused where there are too many."""
    from judge_gym.analysis.frames import tidy

    count = sum(count_samples(lab, tag) for tag in tags)
    if count > MOST:
        raise DesignError(
            f"{count:,} samples are too many to work out for a page, which takes {MOST:,}; "
            "judge-gym report takes any number"
        )
    return tidy(lab.samples(*tags), source=tags[0]) if count else None


def the_findings(request: Request) -> Findings:
    """The findings of the lab that is served."""
    found: Findings = request.app.state.findings
    return found


OpenFindings = Annotated[Findings, Depends(the_findings)]
