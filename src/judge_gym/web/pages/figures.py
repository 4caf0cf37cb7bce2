"""Serves figures as images of their own, so that pages need not wait for them."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from judge_gym.web.analysis_cache import Analyses
from judge_gym.web.api.parameters import Name
from judge_gym.web.pages import experiment

router = APIRouter()


@router.get("/figures/experiment/{name}.svg")
def figure(
    analyses: Analyses,
    name: Name,
    tag: Annotated[Name, Query()],
    theme: Literal["light", "dark"] = "light",
) -> Response:
    """Returns a figure of an experiment."""
    svg = analyses.figure(experiment.analyse, [tag], name, theme)
    return Response(svg, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})
