"""Checks with one tiny call whether a model answers, how fast, and under which name."""

import time
from dataclasses import dataclass

from judge_gym.errors import ProviderError
from judge_gym.models.registry import Registry
from judge_gym.records import Draw, Message, Request
from judge_gym.stages import parse_verdict

# A small judging task, which simulated judges can read as well.
QUESTION = """It is noon.

Stage A: "day"
  - The sun is up.
Stage B: "night"
  - The sun is down.

Reply with exactly one line:
VERDICT: [A/B]"""
STAGES = {"A": "day", "B": "night"}
MAX_TOKENS = 512
"""Enough for a model that reasons before its one line."""


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The result of a check."""

    model: str
    works: bool
    """Whether it answered; what the answer is worth as a verdict is a different question."""
    readable: bool | None
    """Whether the answer has a verdict, as a judge's must; None without an answer."""
    seconds: float
    reported: str = ""
    """The model's name as the provider reports it."""
    answer: str = ""
    finish: str = ""
    usd: float | None = None
    error: str = ""


async def check_model(registry: Registry, id: str) -> ModelCheck:
    """Asks a model one question, outside of the ledger: no result depends on it."""
    model = registry.open(id)
    request = Request(id, (Message("user", (QUESTION,)),), Draw("check"), max_tokens=MAX_TOKENS)
    started = time.monotonic()
    try:
        done = await model.complete(request)
    except ProviderError as error:
        return ModelCheck(id, False, None, time.monotonic() - started, error=error.message)
    return ModelCheck(
        id,
        True,
        parse_verdict(done.text, [*STAGES], abstain=False, names=STAGES).status == "scored",
        time.monotonic() - started,
        done.model,
        " ".join(done.text.split())[-60:],
        done.finish,
        done.usd,
    )
