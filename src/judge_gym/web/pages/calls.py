"""A call to a model: its messages, its answer, and every attempt."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.web.api.parameters import Id, OpenLab
from judge_gym.web.pages.sample import LONGEST, Call
from judge_gym.web.rendering import render

router = APIRouter()


@router.get("/calls/{id}")
def call(request: Request, lab: OpenLab, id: Id) -> Response:
    """Shows the transcript of a call."""
    transcript = Call(id, *lab.pages.transcript(id))
    return render(request, "call.html.j2", call=transcript, longest=LONGEST)
