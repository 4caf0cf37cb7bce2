"""Simulated judges and code writers: `sim:` models that answer from the messages alone.

They are deterministic per request and differ per replicate, and cost nothing. Judges publish the
exact distribution of their verdicts, so that whatever an analysis estimates can be computed.
"""

import asyncio
import random
from dataclasses import dataclass
from functools import lru_cache

from judge_gym.errors import DesignError, ProviderError, RejectedError, unknown
from judge_gym.models.simulated import coding, judging, writing
from judge_gym.models.simulated.coding import CODERS, Skill
from judge_gym.models.simulated.prompts import understand
from judge_gym.models.simulated.temper import PRESETS, Temper, read_preset, temper
from judge_gym.records import Completion, Finish, Request, Verdict

__all__ = [
    "CODERS",
    "PRESETS",
    "SIMULATED",
    "SimulatedModel",
    "Skill",
    "Temper",
    "character",
    "temper",
    "verdict_distribution",
]

SIMULATED = [f"sim:{preset}" for preset in (*PRESETS, *CODERS)]


@lru_cache(maxsize=1024)
def character(name: str) -> Temper | Skill:
    """The temper of a simulated judge, or the skill of a code writer, by `preset?parameter=...`."""
    preset = name.partition("?")[0]
    if preset in CODERS:
        return read_preset(name, CODERS, Skill, "code writer")
    if preset in PRESETS:
        return temper(name)
    raise DesignError(unknown("simulated model", f"sim:{name}", SIMULATED), choices=SIMULATED)


def verdict_distribution(request: Request) -> dict[Verdict, float]:
    """The exact probability of every verdict that a simulated judge may give to a request."""
    return judging.verdicts(temper(request.model.partition(":")[2]), understand(request.messages))


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """A simulated judge, editor, author, critic or code writer."""

    id: str

    async def complete(self, request: Request) -> Completion:
        """Answer a request; the answer is a function of the request alone."""
        await asyncio.sleep(0)
        own = character(self.id.partition(":")[2])
        if isinstance(own, Skill):
            rng = random.Random(request.key())
            text = coding.write(own, request.messages, rng, web_search=request.web_search)
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
                text = writing.summary(reading)
            case "write_rubric":
                text = writing.rubric(own, reading, rng)
            case "criticize":
                text = writing.critique(reading, rng)
            case "probe":
                text = judging.confidence(own, reading, rng)
            case "score":
                verdict = judging.draw(judging.verdicts(own, reading), rng)
                if verdict.status == "provider_error":
                    raise ProviderError(f"{self.id} did not answer (simulated)")
                as_json = request.schema is not None
                text = judging.answer(verdict, own, reading, rng, as_json)
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
