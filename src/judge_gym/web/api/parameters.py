"""Parameters that routes of the API and pages share."""

from typing import Annotated

from fastapi import Depends, Query, Request

from judge_gym.lab import Lab
from judge_gym.records.inputs import LARGEST
from judge_gym.records.requests import Name

__all__ = ["LARGEST", "Cursor", "Limit", "Name", "OpenLab"]

Cursor = Annotated[
    str | None,
    Query(max_length=500, pattern=r"^[^\x00]*$", description="`next` of the page before."),
]
Limit = Annotated[int, Query(ge=1, le=1000, description="Rows of a page at most.")]


def _lab(request: Request) -> Lab:
    lab: Lab = request.app.state.lab
    return lab


OpenLab = Annotated[Lab, Depends(_lab)]
