"""One tiny real call, to see whether a model answers, how fast, and as what."""

import time
from dataclasses import dataclass

from judge_gym.errors import ProviderError
from judge_gym.models.registry import Registry
from judge_gym.records import Draw, Message, Request

# A judge's task in small, which simulated judges can read as well.
QUESTION = """It is noon.

Stage A: "day"
  - The sun is up.
Stage B: "night"
  - The sun is down.

Reply with exactly one line:
VERDICT: [A/B]"""
MAX_TOKENS = 512
"""Enough for a model that thinks before one line."""


@dataclass(frozen=True, slots=True)
class Check:
    """How a model did."""

    model: str
    works: bool
    seconds: float
    reported: str = ""
    """The model as the provider names it."""
    answer: str = ""
    finish: str = ""
    usd: float | None = None
    error: str = ""


async def check(registry: Registry, id: str) -> Check:
    """Ask a model one question; it goes past the ledger, because no result rests on it."""
    model = registry.open(id)
    asked = Request(id, (Message("user", (QUESTION,)),), Draw("check"), max_tokens=MAX_TOKENS)
    started = time.monotonic()
    try:
        done = await model.complete(asked)
    except ProviderError as fault:
        return Check(id, False, time.monotonic() - started, error=fault.message)
    return Check(
        id,
        True,
        time.monotonic() - started,
        done.model,
        " ".join(done.text.split())[-60:],
        done.finish,
        done.usd,
    )
