"""Serves figures as images of their own, so that pages need not wait for them."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from judge_gym.web.analysis_cache import Analyse, Analyses
from judge_gym.web.api.parameters import Name
from judge_gym.web.pages import compare, experiment

router = APIRouter()
ANALYSES: dict[str, Analyse] = {"experiment": experiment.analyse, "compare": compare.analyse}


@router.get("/figures/{of}/{name}.svg")
def figure(
    analyses: Analyses,
    of: Literal["experiment", "compare"],
    name: Name,
    tag: Annotated[list[Name], Query(min_length=1, max_length=compare.MAX_TAGS)],
    theme: Literal["light", "dark"] = "light",
) -> Response:
    """Returns a figure of an experiment or of a comparison."""
    svg = analyses.figure(ANALYSES[of], tag, name, theme)
    return Response(svg, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})
