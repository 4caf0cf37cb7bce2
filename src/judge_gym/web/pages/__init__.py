"""The dashboard: each page reads `Lab` and shows it; what a page changes goes through `/api`."""

from fastapi import APIRouter

from judge_gym.web.pages import home, suites

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
for _part in (home, suites):
    router.include_router(_part.router)
