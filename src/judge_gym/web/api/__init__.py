"""The resources under `/api`: each calls one verb of `Lab` and shows what it returns."""

from fastapi import APIRouter, Security
from fastapi.security import HTTPBearer

from judge_gym.web.api import evidence, experiments, inspection, reference, runs, suites
from judge_gym.web.api.answers import ERRORS

__all__ = ["router"]

# The gate has checked it already; this says so in the description of the API.
_token = HTTPBearer(auto_error=False, scheme_name="token", description="judge-gym token create")

router = APIRouter(prefix="/api")
router.include_router(reference.public)
_PARTS = (reference, evidence, experiments, runs, suites, inspection)
for _part in (part.router for part in _PARTS):
    router.include_router(_part, dependencies=[Security(_token)], responses=ERRORS)
