"""The dashboard: each page reads `Lab` and shows it; what a page changes goes through `/api`."""

from fastapi import APIRouter

from judge_gym.web.pages import (
    compare,
    evidence,
    experiment,
    figures,
    home,
    newstudy,
    report,
    sample,
    study,
    suites,
    usage,
)

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_JUDGING = (home, newstudy, study, experiment, sample, compare, figures, report, evidence, usage)
for _part in (*_JUDGING, suites):
    router.include_router(_part.router)
