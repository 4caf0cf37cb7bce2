"""The environment variables that judge-gym reads itself, beside those of searches and providers."""

from collections.abc import Mapping
from types import MappingProxyType

DATABASE_URL = "JUDGE_GYM_DATABASE_URL"
PROFILE = "JUDGE_GYM_PROFILE"
ASSISTANT = "JUDGE_GYM_ASSISTANT"
SEARCH = "JUDGE_GYM_SEARCH"
TOKEN = "JUDGE_GYM_TOKEN"
WORKER_LOG = "JUDGE_GYM_WORKER_LOG"
VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        DATABASE_URL: "the lab's database",
        PROFILE: "profile of the session, dev or prod; a production database requires prod",
        ASSISTANT: "model that edits evidence and rates rubrics, where a study names none",
        SEARCH: "source of drafts' evidence",
        TOKEN: "token for a lab elsewhere (--lab)",
        WORKER_LOG: "log of workers in the background (--log)",
    }
)
"""The variables and what each is for."""
