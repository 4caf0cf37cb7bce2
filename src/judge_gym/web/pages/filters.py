"""Filters as they stand in a page's URL, and those of samples."""

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query
from pydantic import BaseModel, BeforeValidator, Field

from judge_gym.records import Status
from judge_gym.store import Selection
from judge_gym.web.api.parameters import LARGEST

PAGE = 50
"""Samples per page."""


def none_if_empty(value: Any) -> Any:
    """Returns None for an empty text, which a form sends for a field that was left open."""
    return None if value == "" else value


EMPTY_IS_NONE = BeforeValidator(none_if_empty)
Number = Annotated[Annotated[int, Field(ge=1, le=LARGEST)] | None, EMPTY_IS_NONE]
Text = Annotated[Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] | None, EMPTY_IS_NONE]


class QueryFilter(BaseModel):
    """A filter in the query of a page."""

    def query(self, **more: Any) -> str:
        """Returns the filter as a query string, with further parameters; defaults are left out."""
        values, defaults = {**self.model_dump(), **more}, type(self)().model_dump()
        parameters = {name: v for name, v in values.items() if v not in (None, defaults.get(name))}
        return urlencode(parameters, doseq=True)


class SampleFilter(QueryFilter):
    """Which samples to show."""

    run: Number = None
    rubric: Number = None
    evidence: Number = None
    status: Annotated[Status | None, EMPTY_IS_NONE] = None
    stage: Annotated[Annotated[int, Field(ge=1, le=26)] | None, EMPTY_IS_NONE] = None
    swap: Annotated[Literal["0", "1"] | None, EMPTY_IS_NONE] = None
    conflicting: Annotated[Literal["1"] | None, EMPTY_IS_NONE] = None

    def selection(self) -> Selection:
        """Returns the filter as the store takes it."""
        swap = None if self.swap is None else self.swap == "1"
        fields = self.model_dump(exclude={"swap", "conflicting"})
        return Selection(**fields, swap=swap, disputed=self.conflicting is not None)


def _filters(filters: Annotated[SampleFilter, Query()]) -> SampleFilter:
    """Reads the model in a function of its own, as FastAPI needs beside other parameters."""
    return filters


Filters = Annotated[SampleFilter, Depends(_filters)]
