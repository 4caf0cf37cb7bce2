"""Figures as pictures of their own, so that pages need not wait for them."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from judge_gym.web.api.answers import Name
from judge_gym.web.findings import Build, OpenFindings
from judge_gym.web.pages import compare, experiment

router = APIRouter()
BUILDS: dict[str, Build] = {"experiment": experiment.found, "compare": compare.found}


@router.get("/figures/{of}/{name}.svg")
def figure(
    findings: OpenFindings,
    of: Literal["experiment", "compare"],
    name: Name,
    tag: Annotated[list[Name], Query(min_length=1, max_length=compare.MOST_TAGS)],
    ground: Literal["light", "dark"] = "light",
) -> Response:
    """A figure of what was found of experiments."""
    drawn = findings.picture(BUILDS[of], tag, name, ground)
    return Response(drawn, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})
