"""Simulated judges and coders: `sim:` models that answer from the messages alone.

They are deterministic per request, differ between replicates, and cost nothing. The exact
distribution of a judge's verdicts is known, so that whatever an analysis estimates can be computed.
"""

import asyncio
import random
from dataclasses import dataclass
from functools import lru_cache

from judge_gym.errors import DesignError, ProviderError, RejectedError, unknown
from judge_gym.models.simulated import authors, coder, judge
from judge_gym.models.simulated.coder import CODERS, CoderProfile
from judge_gym.models.simulated.profiles import (
    ASSISTANTS,
    JUDGES,
    PRESETS,
    JudgeProfile,
    judge_profile,
    read_preset,
)
from judge_gym.models.simulated.prompts import understand
from judge_gym.records import Completion, Finish, Request, Verdict

__all__ = [
    "ASSISTANTS",
    "CODERS",
    "JUDGES",
    "PRESETS",
    "SIMULATED",
    "CoderProfile",
    "JudgeProfile",
    "SimulatedModel",
    "judge_profile",
    "profile",
    "verdict_distribution",
]

SIMULATED = [f"sim:{preset}" for preset in (*PRESETS, *CODERS)]


@lru_cache(maxsize=1024)
def profile(name: str) -> JudgeProfile | CoderProfile:
    """Returns the profile of a simulated judge or coder, by `preset?parameter=...`."""
    preset = name.partition("?")[0]
    if preset in CODERS:
        return read_preset(name, CODERS, CoderProfile, "coder")
    if preset in PRESETS:
        return judge_profile(name)
    raise DesignError(unknown("simulated model", f"sim:{name}", SIMULATED), choices=SIMULATED)


def verdict_distribution(request: Request) -> dict[Verdict, float]:
    """Returns the exact probability of every verdict of a simulated judge on a request."""
    return judge.verdicts(
        judge_profile(request.model.partition(":")[2]), understand(request.messages)
    )


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """A simulated judge, editor, author, critic or coder."""

    id: str

    async def complete(self, request: Request) -> Completion:
        """Answers a request; the answer is a function of the request alone."""
        await asyncio.sleep(0)
        sim_profile = profile(self.id.partition(":")[2])
        if isinstance(sim_profile, CoderProfile):
            rng = random.Random(request.key())
            text = coder.write(sim_profile, request.messages, rng, web_search=request.web_search)
            return self._completion(request, text, "stop")
        if request.web_search:
            raise RejectedError(f"{self.id} cannot search the web: it is a simulated judge")
        reading = understand(request.messages)
        if reading.kind in ("score", "probe") and not reading.stages:
            raise RejectedError(f"{self.id} reads judge-gym's prompts; this one displays no stages")
        rng = random.Random(request.key())
        finish: Finish = "stop"
        match reading.kind:
            case "neutralize":
                text = authors.summary(reading)
            case "write_rubric":
                text = authors.rubric(sim_profile, reading, rng)
            case "improve":
                text = authors.improvement(sim_profile, request.messages, rng)
            case "criticize":
                text = authors.critique(reading, rng)
            case "probe":
                text = judge.confidence(sim_profile, reading, rng)
            case "score":
                verdict = judge.draw(judge.verdicts(sim_profile, reading), rng)
                if verdict.status == "provider_error":
                    raise ProviderError(f"{self.id} did not answer (simulated)")
                as_json = request.schema is not None
                text = judge.answer(verdict, sim_profile, reading, rng, as_json)
                ends: dict[str, Finish] = {"refused": "refusal", "truncated": "length"}
                finish = ends.get(verdict.status, "stop")
        return self._completion(request, text, finish)

    def _completion(self, request: Request, text: str, finish: Finish) -> Completion:
        return Completion(
            text=text,
            finish=finish,
            model=self.id,
            input_tokens=sum(len(message.content) for message in request.messages) // 4 + 1,
            output_tokens=len(text) // 4 + 1,
            usd=0.0,
        )
