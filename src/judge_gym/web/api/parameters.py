"""Parameters that routes of the API and pages share."""

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request

from judge_gym.lab import Lab
from judge_gym.records.inputs import LARGEST
from judge_gym.records.requests import Name

__all__ = ["LARGEST", "Before", "Cursor", "Id", "Limit", "Name", "OpenLab", "from_app"]

Cursor = Annotated[
    str | None,
    Query(max_length=500, pattern=r"^[^\x00]*$", description="`next` of the page before."),
]
Before = Annotated[int | None, Query(ge=1, le=LARGEST)]
Id = Annotated[int, Path(ge=1, le=LARGEST)]
Limit = Annotated[int, Query(ge=1, le=1000, description="Rows of a page at most.")]


def from_app(name: str) -> Any:
    """Returns a dependency on something that all routes of an application share."""

    def find(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(find)


OpenLab = Annotated[Lab, from_app("lab")]
