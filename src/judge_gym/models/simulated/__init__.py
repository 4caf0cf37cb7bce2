"""Simulated judges: `sim:` models that answer from the messages alone, with a known truth.

They are deterministic per request and differ per replicate, cost nothing, and publish the exact
distribution of their verdicts, so that whatever an analysis estimates can be computed.
"""

import asyncio
import random
from dataclasses import dataclass

from judge_gym.errors import ProviderError, RejectedError
from judge_gym.models.simulated import judging, writing
from judge_gym.models.simulated.prompts import understand
from judge_gym.models.simulated.temper import PRESETS, Temper, temper
from judge_gym.records import Completion, Finish, Request, Verdict

__all__ = ["PRESETS", "SimulatedModel", "Temper", "temper", "verdict_distribution"]


def verdict_distribution(request: Request) -> dict[Verdict, float]:
    """The exact probability of every verdict that a simulated judge may give to a request."""
    return judging.verdicts(temper(request.model.partition(":")[2]), understand(request.messages))


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """A simulated judge, editor, author or critic."""

    id: str

    async def complete(self, request: Request) -> Completion:
        """Answer a request; the answer is a function of the request alone."""
        await asyncio.sleep(0)
        character = temper(self.id.partition(":")[2])
        reading = understand(request.messages)
        if reading.kind in ("score", "probe") and not reading.stages:
            raise RejectedError(f"{self.id} reads judge-gym's prompts; this one displays no stages")
        rng = random.Random(request.key())
        finish: Finish = "stop"
        match reading.kind:
            case "neutralize":
                text = writing.summary(reading)
            case "write_rubric":
                text = writing.rubric(character, reading, rng)
            case "criticize":
                text = writing.critique(reading, rng)
            case "probe":
                text = judging.confidence(character, reading, rng)
            case "score":
                verdict = judging.draw(judging.verdicts(character, reading), rng)
                if verdict.status == "provider_error":
                    raise ProviderError(f"{self.id} did not answer (simulated)")
                as_json = request.schema is not None
                text = judging.answer(verdict, character, reading, rng, as_json)
                ends: dict[str, Finish] = {"refused": "refusal", "truncated": "length"}
                finish = ends.get(verdict.status, "stop")
        return Completion(
            text=text,
            finish=finish,
            model=self.id,
            input_tokens=sum(len(message.content) for message in request.messages) // 4 + 1,
            output_tokens=len(text) // 4 + 1,
            usd=0.0,
        )
