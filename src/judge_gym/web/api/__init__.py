"""The HTTP API under `/api`: a route for every verb, and a few that are no verbs."""

from fastapi import APIRouter, Security
from fastapi.security import HTTPBearer

from judge_gym.web.api import streams
from judge_gym.web.api.errors import ERRORS
from judge_gym.web.api.routes import verb_routes
from judge_gym.web.middleware import Json

__all__ = ["router"]

# The middleware has checked it already; this says so in the description of the API.
_token = HTTPBearer(auto_error=False, scheme_name="token", description="judge-gym token create")

router = APIRouter(
    prefix="/api",
    default_response_class=Json,
    generate_unique_id_function=lambda route: route.name,  # the name of the verb
)
router.include_router(streams.public)
# Files come first: `/samples/file` must not be taken for anything else.
for _part in (streams.router, verb_routes()):
    router.include_router(_part, dependencies=[Security(_token)], responses=ERRORS)
