"""The pages of the dashboard. Each reads the lab and renders it; writes go through `/api`."""

from fastapi import APIRouter

from judge_gym.web.pages import (
    compare,
    evidence,
    experiment,
    figures,
    home,
    new_study,
    report,
    sample,
    study,
    suites,
    usage,
)

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_STUDIES = (home, new_study, study, experiment, sample, compare, figures, report, evidence, usage)
for _page in (*_STUDIES, suites):
    router.include_router(_page.router)
