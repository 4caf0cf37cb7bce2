"""The addresses of the pages on suite runs, and what their routes share."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import Depends, Query
from starlette.requests import Request

from judge_gym.errors import NotFoundError
from judge_gym.lab import Lab
from judge_gym.lab.suite_reports import SuiteReport
from judge_gym.records import SuiteRun
from judge_gym.web.api.parameters import LARGEST, Id, OpenLab
from judge_gym.web.pages.filters import EMPTY_IS_NONE

KINDS = {"experiment": "condition", "model": "model"}
"""What the first part of a page's path names, by that part."""
OutcomeKind = Literal["passed", "failed", "inconclusive"]
Replicate = Annotated[int, Query(ge=0, le=LARGEST)]
OutcomeFilter = Annotated[OutcomeKind | None, EMPTY_IS_NONE, Query()]


@dataclass(frozen=True, slots=True)
class SuitePlace:
    """A condition, a model, or a model under a condition: the address of its runs' pages."""

    of: str
    """`experiment` or `model`, the first part of the address."""
    name: str
    condition: str | None = None
    """The condition, where the address names it after the model."""

    @classmethod
    def of_request(cls, request: Request, name: str) -> "SuitePlace":
        """Returns the place that a page's path names: `/model/M/experiment/E` names both."""
        of = request.url.path.split("/")[1]
        model, both, condition = name.partition("/experiment/")
        return cls(of, model, condition) if both and of == "model" else cls(of, name)

    @classmethod
    def of_run(cls, of: str, run: SuiteRun) -> "SuitePlace":
        """Returns the place of a run's condition or model."""
        return cls(of, getattr(run, KINDS[of]))

    @property
    def kind(self) -> str:
        """The word for what it names."""
        return KINDS[self.of]

    @property
    def title(self) -> str:
        """What it names, for readers."""
        return self.name if self.condition is None else f"{self.name}, {self.condition}"

    @property
    def home(self) -> str:
        """The address of its own page."""
        home = f"/{self.of}/{quote(self.name, safe='')}"
        if self.condition is None:
            return home
        return f"{home}/experiment/{quote(self.condition, safe='')}"

    @property
    def filters(self) -> dict[str, str]:
        """The model and the condition of its runs, as far as it names them."""
        both = {} if self.condition is None else {"condition": self.condition}
        return {self.kind: self.name, **both}

    def has(self, run: SuiteRun) -> bool:
        """Returns whether a run belongs to it."""
        return all(getattr(run, name) == value for name, value in self.filters.items())

    def reports(self, lab: Lab, suite: str | None = None) -> list[SuiteReport]:
        """Returns the reports of its runs, or of those of a suite, oldest first."""
        reports = lab.suites.reports(suite=suite, model=self.filters.get("model"))
        return [report for report in reports if self.has(report.run)]

    def run(self, run: int, **query: Any) -> str:
        """Returns the address of a run."""
        return f"{self.home}/run/{run}{_query(query)}"

    def report(self, run: int) -> str:
        """Returns the address of the report on a run."""
        return f"{self.home}/run/{run}/report"

    def category(self, run: int, category: str) -> str:
        """Returns the address of a category of a run."""
        return f"{self.home}/run/{run}/{quote(category, safe='')}"

    def eval(self, run: int, path: str, replicate: int = 0, **query: Any) -> str:
        """Returns the address of an eval of a run."""
        parts = "/".join(quote(part, safe="") for part in path.split("/", 1))
        parameters = {"replicate": replicate or None, **query}
        return f"{self.home}/run/{run}/{parts}{_query(parameters)}"


Place = Annotated[SuitePlace, Depends(SuitePlace.of_request)]


def _find_run(lab: OpenLab, place: Place, run: Id) -> SuiteReport:
    report = lab.suites.report(run)
    if not place.has(report.run):
        raise NotFoundError(f"run {run} does not belong to the {place.kind} {place.title!r}")
    return report


RunOfPlace = Annotated[SuiteReport, Depends(_find_run)]
"""The report of the run that a page's path names."""


def _query(values: dict[str, Any]) -> str:
    parameters = {name: value for name, value in values.items() if value not in (None, "")}
    return f"?{urlencode(parameters)}" if parameters else ""
