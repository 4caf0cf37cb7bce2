"""Asking models through the ledger: what is there is reused, the rest is paid for once."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from judge_gym.engine.budget import Meter, input_tokens
from judge_gym.errors import JudgeGymError, ProviderError, RateLimitError, UnavailableError
from judge_gym.models import Model, ModelCard
from judge_gym.models.cards import Limits
from judge_gym.models.limits import Throttle
from judge_gym.records import Completion, Request
from judge_gym.store import Answer, Ledger, Payer

ATTEMPTS = 5
BACKOFF = 0.5
"""Seconds before the second attempt; each later wait is twice as long."""
LONGEST_WAIT = 120.0
"""Seconds; a provider that asks for a longer pause is not waited for."""
PATIENCE = 100
"""How often one call waits because its provider asks for it."""
FAILURES_IN_A_ROW = 20


class Stopped(JudgeGymError):
    """The user asked to stop; what was in flight has been recorded."""


class EndpointDown(JudgeGymError):
    """An endpoint cannot be used for now: its share of the work is paused, others go on."""

    status = 502
    retry = True


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

    @property
    def hosted_limits(self) -> Limits:
        """What all hosted providers together may be asked."""
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

    def __init__(
        self,
        ledger: Ledger,
        models: Models,
        meter: Meter,
        *,
        concurrency: int,
        limits: Limits | None = None,
    ) -> None:
        self._ledger = ledger
        self._limits = limits
        """In the place of those that the registry states."""
        self._models = models
        self._meter = meter
        self._slots = asyncio.Semaphore(concurrency)
        self._flying: dict[str, asyncio.Task[Answer]] = {}
        self._open: dict[str, Model] = {}
        self._throttles: dict[str, Throttle] = {}
        self._failures: dict[str, int] = {}
        """How often each endpoint has failed in a row."""
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
        except EndpointDown:
            raise  # others go on
        except Exception as fault:
            self.stop(fault)  # at once: what cannot be recorded must not be bought
            raise
        finally:
            self._flying.pop(key, None)

    async def _call(self, key: str, request: Request, payer: Payer, tally: Tally) -> Answer:
        """Ask until there is an answer, asking again cannot help, or patience ends."""
        card = self._models.card(request.model)
        rng = random.Random(key)
        tried = waits = 0
        while True:
            if self._fault is not None:
                raise self._fault
            self._refuse_down(card)
            try:
                answer, fault = await self._attempt(key, request, card, payer, tally)
            except RateLimitError as asked:  # waiting costs no attempt
                waits += 1
                self._wait(card, asked, waits, rng)
                continue
            if not isinstance(fault, UnavailableError):
                self._failures[_endpoint(card)] = 0
                return answer
            tried += 1
            self._failures[_endpoint(card)] = self._failures.get(_endpoint(card), 0) + 1
            if tried >= ATTEMPTS:
                return answer
            await asyncio.sleep(_backoff(tried, rng))

    def _wait(self, card: ModelCard, asked: RateLimitError, waits: int, rng: random.Random) -> None:
        """Let no call to this model begin for as long as its provider asks for."""
        pause = asked.wait if asked.wait is not None else _backoff(waits, rng)
        if pause > LONGEST_WAIT or waits > PATIENCE:
            raise EndpointDown(
                f"{card.id}: its provider asks to wait {pause:.0f} s; everything so far is kept, "
                "the same command goes on"
            ) from asked
        self._throttle(card).block(pause)

    def _refuse_down(self, card: ModelCard) -> None:
        if self._failures.get(_endpoint(card), 0) >= FAILURES_IN_A_ROW:
            raise EndpointDown(
                f"{_endpoint(card)} failed {FAILURES_IN_A_ROW} times in a row: its share of the "
                "work is paused, everything so far is kept, the same command goes on"
            )

    def _throttle(self, card: ModelCard) -> Throttle:
        """The limits that a model shares with others of its provider or endpoint."""
        if self._limits is not None and card.kind != "sim":
            return self._scope(card.limits.scope or card.id, self._limits)
        return self._scope(card.limits.scope or card.id, card.limits)

    def _ceiling(self, card: ModelCard) -> Throttle:
        """What all hosted providers together may be asked; others have none."""
        hosted = card.kind == "hosted" and self._limits is None
        return self._scope("hosted", self._models.hosted_limits if hosted else Limits())

    def _scope(self, name: str, limits: Limits) -> Throttle:
        key = f"{name} {limits}"
        if key not in self._throttles:
            self._throttles[key] = Throttle(limits)
        return self._throttles[key]

    async def _attempt(
        self, key: str, request: Request, card: ModelCard, payer: Payer, tally: Tally
    ) -> tuple[Answer, ProviderError | None]:
        """One attempt, within budget and limits, and on record before anything else is done.

        A call holds its slot until its row is committed.
        """
        model = self._model(request.model)
        throttle, ceiling = self._throttle(card), self._ceiling(card)
        worst = await self._meter.reserve(request, card)
        async with throttle.slot:
            reserved = await throttle.reserve(input_tokens(request), request.max_tokens)
            above = await ceiling.reserve(input_tokens(request), request.max_tokens)
            started = time.monotonic()
            completion: Completion | None = None
            fault: Exception | None = None
            try:
                completion = await model.complete(request)
            except Exception as raised:  # whatever an adapter raises, the attempt is on record
                fault = raised
            finally:
                self._meter.settle(worst, completion)
                used = (completion.input_tokens, completion.output_tokens) if completion else (0, 0)
                throttle.settle(reserved, *used)
                ceiling.settle(above, *used)
            if isinstance(fault, RateLimitError):
                raise fault  # nothing was asked of the model: there is nothing to record
            answer = self._record(key, request, card, payer, tally, started, completion, fault)
        if fault is not None and not isinstance(fault, ProviderError):
            raise fault
        return answer, fault

    def _record(
        self,
        key: str,
        request: Request,
        card: ModelCard,
        payer: Payer,
        tally: Tally,
        started: float,
        completion: Completion | None,
        fault: Exception | None,
    ) -> Answer:
        tally.paid += 1
        tally.usd += (completion.usd or 0.0) if completion else 0.0
        return self._ledger.record(
            key,
            request,
            card.endpoint,
            payer,
            seconds=time.monotonic() - started,
            completion=completion,
            error=str(fault) if fault else None,
        )


def _backoff(tried: int, rng: random.Random) -> float:
    """Seconds to wait after so many attempts, with jitter so that calls do not come in waves."""
    return float(min(LONGEST_WAIT, BACKOFF * 2 ** (tried - 1)) * rng.uniform(0.5, 1.0))


def _endpoint(card: ModelCard) -> str:
    return card.endpoint or card.provider
