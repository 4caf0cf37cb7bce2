"""Asking models through the ledger: what is there is reused, the rest is paid for once."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from judge_gym.engine.calls.budget import RunOverBudget, Spend, input_tokens
from judge_gym.engine.calls.limit import Limiting, endpoint_of
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.record import Recorder
from judge_gym.errors import (
    Bill,
    BudgetError,
    JudgeGymError,
    ProviderError,
    RateLimitError,
    UnavailableError,
)
from judge_gym.models import Model, ModelCard, quotas
from judge_gym.models.cards import Limits
from judge_gym.models.limits import LONGEST_WAIT
from judge_gym.models.rounds import Leases
from judge_gym.records import Completion, Request
from judge_gym.store import Answer, Attempt, Ledger, Payer

ATTEMPTS = 5
BACKOFF = 0.5
"""Seconds before the second attempt; each later wait is twice as long."""
PATIENCE = 100
"""How often one call waits because its provider asks for it."""
FAILURES_IN_A_ROW = 20
BLINK = 0.1
"""Seconds between looks of a call that waits until its process is sure of its work."""
GRACE = 5.0
"""Seconds beyond its deadline in which an adapter may end a call itself, with its own words."""


class Stopped(JudgeGymError):
    """The user asked to stop; what was in flight has been recorded."""


class EndpointDown(JudgeGymError):
    """An endpoint cannot be used for now: its share of the work is paused, others go on."""

    status = 502
    retry = True


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
        self, requests: Sequence[Request], payer: Payer, tally: RunProgress
    ) -> Sequence[Answer | None]:
        """The answers to requests, in their order; None where there is none and none is sought."""
        ...


class Asker:
    """The one door to models.

    Args:
        limits: what is given here stands in the place of what the registry states.
        leases: where other processes keep the same limits; None where this one is alone.
        sure: whether no other process can be at the same work; while it is not, no call begins.
    """

    def __init__(
        self,
        ledger: Ledger,
        models: Models,
        meters: Meters,
        *,
        limits: Limits | None = None,
        leases: Leases | None = None,
        sure: Callable[[], bool] = lambda: True,
    ) -> None:
        self._ledger = ledger
        self._sure = sure
        self._recorder = Recorder(ledger)
        self._models = models
        self._meters = meters
        self._limiting = Limiting(models, limits or Limits(), leases)
        self._flying: dict[str, asyncio.Task[Answer]] = {}
        self._open: dict[str, Model] = {}
        self._failures: dict[str, int] = {}
        """How often each endpoint has failed in a row."""
        self.fault: Exception | None = None
        """Why nothing further is asked at all."""
        self._held: dict[int, Exception] = {}
        """Runs that nothing is asked for, and why."""

    def stop(self, fault: Exception) -> None:
        """Begin no further call; those in flight are awaited and recorded."""
        self.fault = self.fault or fault
        self._limiting.end()

    @property
    def in_flight(self) -> int:
        """Calls that are not yet on record, with those that wait to begin."""
        return len(self._flying)

    def hold(self, run_id: int, fault: Exception) -> None:
        """Begin no further call for a run."""
        self._held[run_id] = fault

    def release(self, run_id: int) -> None:
        """A run may go on."""
        self._held.pop(run_id, None)

    def retune(self, given: Mapping[str, Any]) -> None:
        """Other limits and budgets from now on; calls that wait take note of them."""
        if limits := given.get("limits"):
            self._limiting.change(limits)
        over = [run for run, fault in self._held.items() if isinstance(fault, BudgetError)]
        for run in over:
            self.release(run)
        self._meters.reload()

    async def ask(
        self, requests: Sequence[Request], payer: Payer, tally: RunProgress
    ) -> list[Answer]:
        """The answers to requests, in their order."""
        keys = [request.key(self._models.card(request.model).endpoint) for request in requests]
        known = self._ledger.find(keys)
        waiting: dict[str, asyncio.Task[Answer]] = {}
        borrowed: dict[str, Request] = {}
        reused: list[str] = []
        for key, request in zip(keys, requests, strict=True):
            if key in known or key in waiting:
                reused.append(key)
            elif key in self._flying:  # another run asks the same just now
                waiting[key], borrowed[key] = self._flying[key], request
                reused.append(key)
            else:
                task = asyncio.create_task(self._pay(key, request, payer, tally))
                waiting[key] = self._flying[key] = task
        # Everything in flight is awaited even if one fails: an answer on its way is paid for.
        answers = await asyncio.gather(*waiting.values(), return_exceptions=True)
        unpaid: dict[str, Request] = {}
        for key, answer in zip(waiting, answers, strict=True):
            if key in borrowed and answer is not self.fault and _of_its_run(answer):
                unpaid[key] = borrowed[key]  # the other run may not pay for it; this one may
                reused.remove(key)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                known[key] = answer
        if unpaid:
            own = await self.ask(list(unpaid.values()), payer, tally)
            known.update(zip(unpaid, own, strict=True))
        once = [known[key].completion for key in reused]
        tally.reuse(len(once), sum((said.usd or 0.0) if said else 0.0 for said in once))
        return [known[key] for key in keys]

    async def _pay(self, key: str, request: Request, payer: Payer, tally: RunProgress) -> Answer:
        try:
            return await self._call(key, request, payer, tally)
        except BudgetError as fault:  # its other calls need not wait for their turn to hear it
            self._held.setdefault(payer.run_id, fault)
            raise
        except Exception as fault:  # whatever it is: it is raised again, and buys nothing more
            # An endpoint that is down is met by each of the calls to it.
            if fault is not self._held.get(payer.run_id) and not isinstance(fault, EndpointDown):
                self.stop(fault)  # at once: what cannot be recorded must not be bought
            raise
        finally:
            self._flying.pop(key, None)

    async def _call(self, key: str, request: Request, payer: Payer, tally: RunProgress) -> Answer:
        """Ask until there is an answer, asking again cannot help, or patience ends."""
        card = self._models.card(request.model)
        rng = random.Random(key)
        tried = waits = 0
        while True:
            try:
                answer, fault = await self._attempt(key, request, card, payer, tally)
            except RateLimitError as asked:  # waiting costs no attempt
                waits += 1
                pause = asked.wait if asked.wait is not None else _backoff(waits, rng)
                self._rest(card, asked, pause, waits)
                continue
            if not isinstance(fault, UnavailableError):
                self._failures[endpoint_of(card)] = 0
                return answer
            tried += 1
            self._failures[endpoint_of(card)] = self._failures.get(endpoint_of(card), 0) + 1
            if fault.wait is not None:
                self._rest(card, fault, fault.wait)
            if tried >= ATTEMPTS:
                return answer
            await asyncio.sleep(_backoff(tried, rng))

    def _rest(self, card: ModelCard, asked: ProviderError, pause: float, waits: int = 0) -> None:
        """Let no call to this model begin for as long as its provider asks for."""
        far = pause > LONGEST_WAIT  # of one model perhaps: others of its provider may go on
        self._limiting.block(card, pause, alone=far)
        if far or waits > PATIENCE:
            raise EndpointDown(
                f"{card.id}: its provider asks to wait {pause:.0f} s; everything so far is kept, "
                "the same command goes on"
            ) from asked

    async def _cleared(self, card: ModelCard, run_id: int) -> None:
        """Wait until this process is sure of its work; it may have waited for long before."""
        while not self._sure():
            self._refuse_to_begin(card, run_id)
            await asyncio.sleep(BLINK)
        self._refuse_to_begin(card, run_id)

    def _refuse_to_begin(self, card: ModelCard, run_id: int) -> None:
        """Raise what stands in the way of one more call."""
        if fault := self.fault or self._held.get(run_id):
            raise fault
        if self._failures.get(endpoint_of(card), 0) >= FAILURES_IN_A_ROW:
            raise EndpointDown(
                f"{endpoint_of(card)} failed {FAILURES_IN_A_ROW} times in a row: its share of the "
                "work is paused, everything so far is kept, the same command goes on"
            )

    async def _attempt(
        self, key: str, request: Request, card: ModelCard, payer: Payer, tally: RunProgress
    ) -> tuple[Answer, ProviderError | None]:
        """One attempt, within budget and limits, and on record before anything else is done.

        A call holds its slot until its row is committed.
        """
        tokens = input_tokens(request)
        refuse = partial(self._refuse_to_begin, card, payer.run_id)
        async with self._limiting.room(card, tokens, request.max_tokens, refuse) as room:
            refuse()
            worst = Spend(
                1, tokens + request.max_tokens, card.price(tokens, request.max_tokens) or 0.0
            )
            meter = self._meters.of(payer.study)
            await meter.reserve(worst, payer.run_id)
            cost = Spend()
            try:
                await self._cleared(card, payer.run_id)
                cost = Spend.of(None)
                started = time.monotonic()
                completion: Completion | None = None
                fault: Exception | None = None
                took: Completion | Bill | None = None
                try:
                    quota, known = room[0]
                    with quotas.listening(partial(quota.told, known)):
                        completion = took = await self._completion(request, card)
                except Exception as raised:  # whatever an adapter raises, the attempt is on record
                    fault, took = raised, getattr(raised, "bill", None)
                finally:
                    used = (took.input_tokens, took.output_tokens) if took else (0, 0)
                    for throttle, reserved in room:
                        throttle.settle(reserved, *used)
                cost = Spend.of(took)
                if isinstance(fault, RateLimitError):
                    cost = Spend()  # nothing was asked of the model
                    raise fault
                attempt = Attempt(
                    key=key,
                    request=request,
                    endpoint=card.endpoint,
                    payer=payer,
                    seconds=time.monotonic() - started,
                    completion=completion,
                    error=str(fault) if fault else None,
                    bill=took if isinstance(took, Bill) else None,
                )
                answer = await self._recorder.record(attempt)
            finally:  # not before its row is there, which counts for all who share the budget
                meter.settle(worst, cost, payer.run_id)
            tally.pay(took)
        if fault is not None and not isinstance(fault, ProviderError):
            raise fault
        return answer, fault

    async def _completion(self, request: Request, card: ModelCard) -> Completion:
        """The model's answer, or a fault in due time, whatever its adapter does."""
        if request.model not in self._open:
            self._open[request.model] = self._models.open(request.model)
        try:
            async with asyncio.timeout(card.deadline + GRACE):
                return await self._open[request.model].complete(request)
        except TimeoutError as fault:
            raise UnavailableError(f"{card.id} took over {card.deadline:g} s") from fault


def _of_its_run(answer: object) -> bool:
    """Whether a fault stands in the way of one run alone."""
    return isinstance(answer, RunOverBudget | Stopped)


def _backoff(tried: int, rng: random.Random) -> float:
    """Seconds to wait after so many attempts, with jitter so that calls do not come in waves."""
    return float(min(LONGEST_WAIT, BACKOFF * 2 ** (tried - 1)) * rng.uniform(0.5, 1.0))
