"""The pages of the dashboard. Each reads the lab and renders it; writes go through `/api`."""

from fastapi import APIRouter

from judge_gym.web.middleware import Json
from judge_gym.web.pages import (
    calls,
    compare,
    evidence,
    experiment,
    home,
    items,
    label,
    labels,
    new_study,
    operators,
    purchases,
    report,
    runs,
    sample,
    study,
    styleguide,
    suite_evals,
    suite_runs,
    suites,
    usage,
)

__all__ = ["router"]

router = APIRouter(include_in_schema=False, default_response_class=Json)
_STUDIES = (home, new_study, study, items, purchases, runs, compare, report, label)
_RECORDS = (experiment, sample, evidence, labels, usage, calls, operators, styleguide)
_SUITES = (suite_evals, suite_runs, suites)  # the most specific paths come first
for _page in (*_STUDIES, *_RECORDS, *_SUITES):
    router.include_router(_page.router)
