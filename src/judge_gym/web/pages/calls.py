"""A call to a model: its messages, its answer, and every attempt."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.web.api.parameters import LARGEST, OpenLab
from judge_gym.web.pages.sample import LONGEST, Call
from judge_gym.web.rendering import render

router = APIRouter()


@router.get("/calls/{id}")
def call(request: Request, lab: OpenLab, id: Annotated[int, Path(ge=1, le=LARGEST)]) -> Response:
    """Shows the transcript of a call."""
    found = Call(id, *lab.admin.transcript(id))
    return render(request, "call.html.j2", call=found, longest=LONGEST)
