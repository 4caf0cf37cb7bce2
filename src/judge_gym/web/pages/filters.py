"""Which samples a page is about, as its address says it."""

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query
from pydantic import BaseModel, BeforeValidator, Field

from judge_gym.records import Status
from judge_gym.store import Which
from judge_gym.web.api.answers import LARGEST

PAGE = 50
"""Samples of a page."""


def given(value: Any) -> Any:
    """A form sends what was left open as an empty text."""
    return None if value == "" else value


Number = Annotated[Annotated[int, Field(ge=1, le=LARGEST)] | None, BeforeValidator(given)]
Text = Annotated[
    Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] | None, BeforeValidator(given)
]


class Filter(BaseModel):
    """The samples that are meant."""

    run: Number = None
    rubric: Number = None
    evidence: Number = None
    status: Annotated[Status | None, BeforeValidator(given)] = None
    stage: Annotated[Annotated[int, Field(ge=1, le=26)] | None, BeforeValidator(given)] = None
    swap: Annotated[Literal["0", "1"] | None, BeforeValidator(given)] = None
    torn: Annotated[Literal["1"] | None, BeforeValidator(given)] = None

    def which(self) -> Which:
        """The same for the store."""
        swap = None if self.swap is None else self.swap == "1"
        kept = self.model_dump(exclude={"swap", "torn"})
        return Which(**kept, swap=swap, torn=self.torn is not None)

    def query(self, **more: Any) -> str:
        """The same as part of an address, with more; what is None is left out."""
        given = {**self.model_dump(), **more}
        return urlencode({name: value for name, value in given.items() if value is not None})


def _asked(asked: Annotated[Filter, Query()]) -> Filter:
    """Beside other parameters, a model is read whole only by a function of its own."""
    return asked


Filtered = Annotated[Filter, Depends(_asked)]
