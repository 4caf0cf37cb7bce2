"""What to buy next: a part of a study's page, and a page with every quantity to choose from."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.lab.study_results import StudyResults
from judge_gym.web.analysis_cache import Analyses, refuse_large
from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.charts import purchase_chart
from judge_gym.web.pages.filters import EMPTY_IS_NONE
from judge_gym.web.rendering import render

router = APIRouter()


@router.get("/parts/study/next")
def next_part(request: Request, analyses: Analyses, study: Annotated[Name, Query()]) -> Response:
    """Returns a part of a page: what to buy next, in a sentence."""
    purchase = analyses.study(StudyResults.next_purchase, study)
    return render(
        request, "_next_purchase.html.j2", found=purchase, study=study, whole=False, chart=None
    )


@router.get("/studies/{name}/next")
def next_page(
    request: Request,
    lab: OpenLab,
    name: Name,
    quantity: Annotated[Name | None, EMPTY_IS_NONE] = None,
    half_width: Annotated[float | None, EMPTY_IS_NONE, Query(gt=0, lt=1)] = None,
) -> Response:
    """Shows what more data of each kind would do to a quantity, and where its variance is."""
    refuse_large(lab, [row["tag"] for row in lab.studies.find_study(name)])
    purchase = lab.reports.plan_next(name, quantity=quantity, half_width=half_width)
    return render(
        request,
        "next_purchase.html.j2",
        found=purchase,
        study=name,
        half_width=half_width,
        whole=True,
        chart=purchase_chart(purchase),
    )
