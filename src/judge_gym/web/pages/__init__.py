"""The dashboard: each page reads `Lab` and shows it; what a page changes goes through `/api`."""

from fastapi import APIRouter

from judge_gym.web.pages import evidence, home, newstudy, report, study, usage

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
for _part in (home, newstudy, study, report, evidence, usage):
    router.include_router(_part.router)
