"""What to buy next: a part of a study's page, and a page with every quantity to choose from."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.errors import ConflictError
from judge_gym.lab import Lab
from judge_gym.records.planning import NextPurchase
from judge_gym.web.analysis_cache import Analyses, refuse_large
from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.pages.filters import EMPTY_IS_NONE
from judge_gym.web.rendering import render

router = APIRouter()


def next_purchase(lab: Lab, study: str) -> NextPurchase | None:
    """Returns what to buy next for the main quantity of a study, or None without verdicts."""
    refuse_large(lab, [row["tag"] for row in lab.experiments.find_study(study)])
    try:
        return lab.reports.plan_next(study)
    except ConflictError:
        return None


@router.get("/parts/study/next")
def next_part(
    request: Request, lab: OpenLab, analyses: Analyses, study: Annotated[Name, Query()]
) -> Response:
    """Returns a part of a page: what to buy next, in a sentence."""
    found = analyses.study(next_purchase, study)
    return render(request, "_next_purchase.html.j2", found=found, study=study, whole=False)


@router.get("/studies/{name}/next")
def next_page(
    request: Request,
    lab: OpenLab,
    name: Name,
    quantity: Annotated[Name | None, EMPTY_IS_NONE] = None,
    half_width: Annotated[float | None, EMPTY_IS_NONE, Query(gt=0, lt=1)] = None,
) -> Response:
    """Shows what more data of each kind would do to a quantity, and where its variance is."""
    refuse_large(lab, [row["tag"] for row in lab.experiments.find_study(name)])
    found = lab.reports.plan_next(name, quantity=quantity, half_width=half_width)
    return render(
        request, "next_purchase.html.j2", found=found, study=name, half_width=half_width, whole=True
    )
