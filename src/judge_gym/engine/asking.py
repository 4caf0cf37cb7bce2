"""Asking models through the ledger: what is there is reused, the rest is paid for once."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from judge_gym.engine.budget import Meter
from judge_gym.errors import JudgeGymError, ProviderError
from judge_gym.models import Model, ModelCard
from judge_gym.records import Request
from judge_gym.store import Answer, Ledger, Payer


class Stopped(JudgeGymError):
    """The user asked to stop; what was in flight has been recorded."""


@dataclass(slots=True)
class Tally:
    """What a run has done since it was started; faces poll it."""

    done: dict[str, int] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    paid: int = 0
    reused: int = 0
    usd: float = 0.0
    warnings: list[str] = field(default_factory=list)

    def advance(self, stage: str, count: int) -> None:
        """Count targets of a stage as done."""
        self.done[stage] = self.done.get(stage, 0) + count


class Models(Protocol):
    """Where models come from; the registry is one."""

    def open(self, id: str) -> Model:
        """The model, ready to answer."""
        ...

    def card(self, id: str) -> ModelCard:
        """What is known of it."""
        ...


class Answering(Protocol):
    """Where answers come from."""

    def stop(self, fault: Exception) -> None:
        """Begin nothing further."""
        ...

    async def ask(
        self, requests: Sequence[Request], payer: Payer, tally: Tally
    ) -> Sequence[Answer | None]:
        """The answers to requests, in their order; None where there is none and none is sought."""
        ...


class Asker:
    """The one door to models."""

    def __init__(self, ledger: Ledger, models: Models, meter: Meter, *, concurrency: int) -> None:
        self._ledger = ledger
        self._models = models
        self._meter = meter
        self._slots = asyncio.Semaphore(concurrency)
        self._flying: dict[str, asyncio.Task[Answer]] = {}
        self._open: dict[str, Model] = {}
        self._fault: Exception | None = None

    def stop(self, fault: Exception) -> None:
        """Begin no further call; those in flight are awaited and recorded."""
        self._fault = self._fault or fault

    async def ask(self, requests: Sequence[Request], payer: Payer, tally: Tally) -> list[Answer]:
        """The answers to requests, in their order."""
        keys = [request.key(self._models.card(request.model).endpoint) for request in requests]
        known = self._ledger.find(keys)
        waiting: dict[str, asyncio.Task[Answer]] = {}
        for key, request in zip(keys, requests, strict=True):
            if key in known or key in waiting:
                tally.reused += 1
            elif key in self._flying:  # another run asks the same just now
                waiting[key] = self._flying[key]
                tally.reused += 1
            else:
                task = asyncio.create_task(self._pay(key, request, payer, tally))
                waiting[key] = self._flying[key] = task
        # Everything in flight is awaited even if one fails: an answer on its way is paid for.
        answers = await asyncio.gather(*waiting.values(), return_exceptions=True)
        for key, answer in zip(waiting, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            known[key] = answer
        return [known[key] for key in keys]

    def _model(self, id: str) -> Model:
        if id not in self._open:
            self._open[id] = self._models.open(id)
        return self._open[id]

    async def _pay(self, key: str, request: Request, payer: Payer, tally: Tally) -> Answer:
        try:
            async with self._slots:
                if self._fault is not None:
                    raise self._fault
                return await self._call(key, request, payer, tally)
        except Exception as fault:
            self.stop(fault)  # at once: what cannot be recorded must not be bought
            raise
        finally:
            self._flying.pop(key, None)

    async def _call(self, key: str, request: Request, payer: Payer, tally: Tally) -> Answer:
        model, card = self._model(request.model), self._models.card(request.model)
        worst = await self._meter.reserve(request, card)
        started = time.monotonic()
        completion, fault = None, None
        try:
            completion = await model.complete(request)
        except Exception as raised:  # whatever an adapter raises, the attempt is on record
            fault = raised
        finally:
            self._meter.settle(worst, completion)
        tally.paid += 1
        tally.usd += (completion.usd or 0.0) if completion else 0.0
        answer = self._ledger.record(
            key,
            request,
            card.endpoint,
            payer,
            seconds=time.monotonic() - started,
            completion=completion,
            error=str(fault) if fault else None,
        )
        if fault is not None and not isinstance(fault, ProviderError):
            raise fault
        return answer
