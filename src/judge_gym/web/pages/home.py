"""What is in the lab: studies and experiments, how far they are, what they cost."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.web.api.answers import OpenLab
from judge_gym.web.rendering import shown

router = APIRouter()


@router.get("/")
def home(request: Request, lab: OpenLab) -> Response:
    """Studies and experiments."""
    return shown(request, "home.html.j2", experiments=lab.list_experiments())
