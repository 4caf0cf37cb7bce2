"""Asks models through the ledger: an answer that is there is reused, any other is paid for once."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from judge_gym.engine.calls.budget import Spend, input_tokens
from judge_gym.engine.calls.circuit_breaker import Circuit, EndpointDown, Trial
from judge_gym.engine.calls.claims import ClaimedCalls
from judge_gym.engine.calls.limit import CallLimits, endpoint_of
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.calls.record import Recorder
from judge_gym.engine.calls.retry import Retries
from judge_gym.engine.calls.stopped import Stopped
from judge_gym.errors import (
    Bill,
    BudgetError,
    NotReachedError,
    ParameterRefused,
    ProviderError,
    RateLimitError,
    UnavailableError,
)
from judge_gym.models import Model, ModelCard, quota_headers
from judge_gym.models.leases import Leases
from judge_gym.models.limits import LONGEST_WAIT
from judge_gym.models.model_card import Limits
from judge_gym.models.replies import plausible_count
from judge_gym.records import Completion, Request
from judge_gym.store import Answer, Attempt, Claims, Ledger, Payer

LONGEST_BLOCK = 86_400.0
"""Seconds for which a provider can have calls held back; it may ask for years."""
MAX_NAME = 200
"""Characters of a reported model name that are kept."""
LONGEST_TOKEN = 128
"""Characters of a token; a text that is longer than its tokens can be is cut."""
CHECK_INTERVAL = 0.1
"""Seconds between the checks of a call that waits until its process has confirmed its lock."""
GRACE = 5.0
"""Seconds beyond its deadline in which an adapter may end a call with its own message."""
HAND_OVER = 0.5
"""Seconds after which answers are yielded, even if others of the same requests are awaited."""
T = TypeVar("T")


class Models(Protocol):
    """Where models come from, such as the registry."""

    def open(self, id: str) -> Model:
        """Returns a model that can be called."""
        ...

    def card(self, id: str) -> ModelCard:
        """Returns what is known about a model."""
        ...

    @property
    def hosted_limits(self) -> Limits:
        """The limits of all hosted providers together."""
        ...


class Asker:
    """Calls models within limits and budgets, and records every attempt in the ledger.

    Args:
        ledger: of the lab.
        models: opens models.
        meters: of the budgets.
        limits: where given, they replace those of the registry.
        leases: shared with other processes; None if this one is alone.
        claims: on calls, among processes; None if this one is alone.
        confirmed: returns whether no other process can have taken over the work of this one; until
            then, no call begins.
    """

    def __init__(
        self,
        ledger: Ledger,
        models: Models,
        meters: Meters,
        *,
        limits: Limits | None = None,
        leases: Leases | None = None,
        claims: Claims | None = None,
        confirmed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._ledger = ledger
        self._confirmed = confirmed
        self._claims = claims
        self._recorder = Recorder(ledger)
        self._models = models
        self._meters = meters
        self._limits = CallLimits(models, limits or Limits(), leases)
        self._in_flight: dict[str, asyncio.Task[Answer]] = {}
        self.begun: Counter[tuple[str, str]] = Counter()
        """The calls that a model is answering, by study and model."""
        self._open: dict[str, Model] = {}
        self._circuits: dict[tuple[int, str], Circuit] = {}
        """By run and endpoint: what fails for one design may be answered for another."""
        self._warned: set[tuple[int, str]] = set()
        """Runs and endpoints of which the first failed call was shown."""
        self.error: Exception | None = None
        """Why nothing further is asked at all."""
        self._held: dict[int, Exception] = {}
        """Why nothing further is asked for a run."""

    def stop(self, error: Exception) -> None:
        """Begins no further call; calls in flight are awaited and recorded."""
        self.error = self.error or error
        self._limits.end()
        # Calls in flight are still recorded; only their wait for an absent database is shortened.
        self._recorder.end()

    @property
    def in_flight(self) -> int:
        """The number of calls that are not recorded yet, with those that wait to begin."""
        return len(self._in_flight)

    def hold(self, run_id: int, error: Exception) -> None:
        """Begins no further call for a run."""
        self._held[run_id] = error

    def held(self, run_id: int) -> Exception | None:
        """Returns why no further call begins for a run."""
        return self._held.get(run_id)

    def stopped(self, run_id: int) -> bool:
        """Returns whether no further call begins for a run, or to one of its endpoints."""
        open_for = {run for (run, _), circuit in self._circuits.items() if circuit.is_open}
        return run_id in self._held or run_id in open_for

    def release(self, run_id: int, trial: Trial | None = None) -> None:
        """Allows further calls for a run, at first only one to the endpoint on trial."""
        self._held.pop(run_id, None)
        for key in [key for key in self._circuits if key[0] == run_id]:
            del self._circuits[key]
        if trial is not None:
            self._circuit(run_id, trial["endpoint"]).try_again(trial["wait"])

    def _circuit(self, run_id: int, endpoint: str) -> Circuit:
        if (run_id, endpoint) not in self._circuits:
            self._circuits[run_id, endpoint] = Circuit(endpoint)
        return self._circuits[run_id, endpoint]

    def retune(self, changes: Mapping[str, Any]) -> None:
        """Applies changed limits and budgets, also to calls that wait."""
        if limits := changes.get("limits"):
            self._limits.change(limits)
        for run in [run for run, error in self._held.items() if isinstance(error, BudgetError)]:
            self.release(run)
        self.reload_budgets()

    def reload_budgets(self) -> None:
        """Reads the budgets again, which a command may have changed."""
        self._meters.reload()

    async def ask(
        self, requests: Sequence[Request], payer: Payer, progress: RunProgress
    ) -> list[Answer]:
        """Returns the answers in the order of the requests."""
        by_position: dict[int, Answer] = {}
        async with aclosing(self.answers([*enumerate(requests)], payer, progress)) as arriving:
            async for group in arriving:
                by_position.update(group)
        return [by_position[position] for position in range(len(requests))]

    async def answers(
        self, questions: Sequence[tuple[T, Request]], payer: Payer, progress: RunProgress
    ) -> AsyncGenerator[list[tuple[T, Answer]]]:
        """Yields targets with their answers, in groups, soon after the answers are recorded.

        Iterate within `contextlib.aclosing`: answers that are on their way when the iteration ends
        early are paid for, and are awaited until the ledger has them.

        Args:
            questions: the targets, each with what is asked about it.
            payer: the run that pays.
            progress: counts what is paid and reused.

        Raises:
            Exception: of the first question that has no answer, when all others have been yielded.
        """
        requests: dict[str, Request] = {}
        targets: dict[str, list[T]] = {}
        for target, request in questions:
            key = request.key(self._models.card(request.model).endpoint)
            requests.setdefault(key, request)
            targets.setdefault(key, []).append(target)
        stored = self._ledger.find(list(requests))
        # From here to the creation of the tasks nothing is awaited, so that no other run of this
        # loop can begin a call between the look at what is in flight and its entry there.
        new = requests.keys() - stored.keys() - self._in_flight.keys()
        claimed = ClaimedCalls(new, self._claims, self._ledger, partial(self._refuse, payer.run_id))
        borrowed: set[str] = set()
        calls: dict[asyncio.Task[Answer], str] = {}
        for key, request in requests.items():
            if key in stored:
                continue
            # The task belongs to whoever began it: a second run awaits it and pays nothing.
            if key in self._in_flight:  # another run is asking the same
                borrowed.add(key)
            else:
                call = self._call(key, request, payer, progress, claimed)
                self._in_flight[key] = asyncio.create_task(call)
            calls[self._in_flight[key]] = key

        def with_targets(arrived: Mapping[str, Answer]) -> list[tuple[T, Answer]]:
            free = {*stored, *borrowed, *claimed.answered_by_others}
            for key, answer in arrived.items():
                count = len(targets[key]) - (key not in free)  # whoever asked first has paid
                usd = (answer.completion.usd or 0.0) if answer.completion else 0.0
                if count:
                    progress.reuse(count, count * usd)
            keys = [key for key in targets if key in arrived]
            return [(target, arrived[key]) for key in keys for target in targets[key]]

        errors: dict[str, BaseException] = {}
        unpaid: list[str] = []
        try:
            if stored:
                yield with_targets(stored)
            while calls:
                # Not as each is done: one group is one transaction of its reader, and the timeout
                # bounds how much of it a kill makes the reader read again.
                done, _ = await asyncio.wait(calls, timeout=HAND_OVER)
                ended = {calls.pop(task): task for task in done}
                arrived: dict[str, Answer] = {}
                for key, task in ended.items():
                    try:
                        arrived[key] = task.result()
                    except BaseException as error:
                        of_other_run = isinstance(error, BudgetError | EndpointDown | Stopped)
                        if key in borrowed and of_other_run and error is not self.error:
                            unpaid.append(key)  # the other run may not ask it; this one may
                        else:  # all other calls are awaited: their answers are paid for
                            errors[key] = error
                # Before the answers are yielded: a reader may take long, and other processes wait
                # for claims.
                await claimed.release(ended.keys())
                if arrived:
                    yield with_targets(arrived)
        except GeneratorExit:  # such as a database that cannot store what was read
            await asyncio.gather(*calls, return_exceptions=True)
            raise
        finally:
            await claimed.release()
        for key in requests:
            if key in errors:
                raise errors[key]
        # Only now, when its own questions have ended: by then the other run has left its calls, and
        # the budget that stopped it may not be ours.
        if unpaid:
            rest = [(target, requests[key]) for key in unpaid for target in targets[key]]
            async with aclosing(self.answers(rest, payer, progress)) as arriving:
                async for group in arriving:
                    yield group

    async def _call(
        self,
        key: str,
        request: Request,
        payer: Payer,
        progress: RunProgress,
        claimed: ClaimedCalls,
    ) -> Answer:
        """Asks until there is an answer, or until further attempts are useless or too many."""
        card, retries = self._models.card(request.model), Retries(key)
        run_endpoint = (payer.run_id, endpoint_of(card))
        circuit = self._circuit(*run_endpoint)
        trial: asyncio.Lock | None = None
        try:
            if (other := await claimed.other_answer(key)) is not None:
                return other
            # While an endpoint is on trial one call holds the lock; the others wait here, before
            # they take a slot that a working endpoint could use.
            trial = await circuit.enter()
            while True:
                try:
                    answer, error = await self._attempt(key, request, card, payer, progress)
                except RateLimitError as limited:
                    wait = retries.seconds_to_wait(limited)
                    self._pause(card, limited, wait, too_often=retries.waited_too_often)
                    continue
                if isinstance(error, ParameterRefused):
                    raise self._held.setdefault(
                        payer.run_id,
                        EndpointDown(f"{error.message}; this design is paused, others continue"),
                    )
                if isinstance(error, UnavailableError):
                    # Consecutive failures of any calls of the run count, so that an endpoint that
                    # is down stops it after a few, and not after five attempts at each call.
                    circuit.fail(error.message)
                    if error.wait is not None:
                        self._pause(card, error, error.wait)
                else:
                    circuit.succeed()
                if (seconds := retries.seconds_to_next(error)) is None:
                    if error is not None and run_endpoint not in self._warned:  # one shows why
                        self._warned.add(run_endpoint)
                        progress.warn(f"calls fail: {error.message}")
                    return answer
                await asyncio.sleep(seconds)
        except BudgetError as error:  # the other calls of the run end before their turn
            self._held.setdefault(payer.run_id, error)
            raise
        except Exception as error:
            # What holds one run, or one endpoint, does not stop the others. Anything else does, at
            # once: what cannot be recorded must not be bought.
            if error is not self._held.get(payer.run_id) and not isinstance(error, EndpointDown):
                self.stop(error)
            raise
        finally:
            if trial is not None:
                trial.release()
            # Also where it failed: the next run that asks begins a call of its own.
            self._in_flight.pop(key, None)

    def _pause(
        self, card: ModelCard, error: ProviderError, wait: float, *, too_often: bool = False
    ) -> None:
        """Begins no call to this model for as long as its provider asks."""
        long = wait > LONGEST_WAIT  # perhaps for one model: others of its provider may continue
        self._limits.block(card, min(wait, LONGEST_BLOCK), alone=long)
        if long or too_often:
            period = f"{wait:.0f} s" if wait <= LONGEST_BLOCK else "more than a day"
            raise EndpointDown(
                f"{card.id}: its provider asks to wait {period} ({error.message}); its share of "
                "the work is paused, everything so far is kept",
                {"endpoint": endpoint_of(card), "wait": min(wait, LONGEST_BLOCK)},
            ) from error

    def _refuse(self, run_id: int) -> None:
        """Raises what prevents one more call of a run."""
        if error := self.error or self._held.get(run_id):
            raise error

    def _refuse_to_begin(self, card: ModelCard, run_id: int) -> None:
        """Raises what prevents one more call of a run to a model."""
        self._refuse(run_id)
        self._circuit(run_id, endpoint_of(card)).refuse()

    async def _attempt(
        self, key: str, request: Request, card: ModelCard, payer: Payer, progress: RunProgress
    ) -> tuple[Answer, ProviderError | None]:
        """Makes one attempt within budget and limits, and records it before anything else.

        It holds its slot until its row is committed.
        """
        tokens = input_tokens(request)
        refuse = partial(self._refuse_to_begin, card, payer.run_id)
        sizes = tokens, request.max_tokens
        async with self._limits.reserve(card, *sizes, refuse, payer.study) as reservations:
            # It may have waited long for its slot, and a pause or an error came meanwhile.
            refuse()
            worst = Spend(
                1, tokens + request.max_tokens, card.price(tokens, request.max_tokens) or 0.0
            )
            meter = self._meters.of(payer.study)
            # The worst case is reserved before the call, since the sum of what is in flight must
            # fit, not only what was paid: otherwise a hundred calls could begin on the last dollar.
            await meter.reserve(worst, payer.run_id)
            spent = Spend()
            try:
                refuse()
                # Others may have declared this process dead after an outage and make the same call:
                # none begins until its lock was seen to be its own.
                while not self._confirmed():
                    await asyncio.sleep(CHECK_INTERVAL)
                    refuse()
                spent = Spend.of(None)
                started = time.monotonic()
                completion: Completion | None = None
                error: Exception | None = None
                cost: Completion | Bill | None = None
                progress.begin_call(card.id, started)
                self.begun[payer.study, card.id] += 1
                try:
                    quota, reservation = reservations[0]
                    with quota_headers.quota_listener(partial(quota.note_quota, reservation)):
                        completion = cost = _storable(
                            await self._complete(request, card), card, request.max_tokens
                        )
                except Exception as raised:  # whatever an adapter raises, the attempt is recorded
                    error, cost = raised, getattr(raised, "bill", None)
                    if isinstance(raised, ProviderError):
                        raised.__traceback__ = None  # its frames hold the whole reply
                finally:
                    now = time.monotonic()
                    progress.end_call(card.id, started, now, str(error) if error else None)
                    self.begun[payer.study, card.id] -= 1
                    used = (cost.input_tokens, cost.output_tokens) if cost else (0, 0)
                    # At once, also where the call failed: unused tokens of a rate are given back
                    # while the row is written.
                    for throttle, reserved in reservations:
                        throttle.settle(reserved, *used)
                spent = Spend.of(cost)
                if isinstance(error, RateLimitError | NotReachedError):
                    spent = Spend()  # nothing was asked of the model
                if isinstance(error, RateLimitError):
                    raise error
                attempt = Attempt(
                    key=key,
                    request=request,
                    endpoint=card.endpoint,
                    payer=payer,
                    seconds=time.monotonic() - started,
                    completion=completion,
                    error=str(error) if error else None,
                    bill=cost if isinstance(cost, Bill) else None,
                    sent=not isinstance(error, NotReachedError),
                )
                # Within the slot: what was paid for is in the ledger before the next call begins,
                # so that a kill loses at most the calls in flight.
                answer = await self._recorder.record(attempt)
            finally:  # not before its row is there, which counts for all who share the budget
                meter.settle(worst, spent, payer.run_id)
            if attempt.sent:
                progress.pay(cost)
        if error is not None and not isinstance(error, ProviderError):
            raise error
        return answer, error

    async def _complete(self, request: Request, card: ModelCard) -> Completion:
        """Returns the model's completion; raises at its deadline, whatever its adapter does."""
        if request.model not in self._open:
            self._open[request.model] = self._models.open(request.model)
        try:
            # An adapter has a deadline of its own, with a better message. This one holds for any
            # that forgets it: a call without end would hold its slot forever.
            async with asyncio.timeout(card.deadline + GRACE):
                return await self._open[request.model].complete(request)
        except TimeoutError as error:
            raise UnavailableError(f"{card.id} took over {card.deadline:g} s") from error


def _storable(completion: Completion, card: ModelCard, max_tokens: int) -> Completion:
    """Returns a completion that can be stored, whatever its adapter reports."""
    most, name = max_tokens * LONGEST_TOKEN, completion.model[:MAX_NAME]
    if len(completion.text) > most:
        completion = replace(completion, text=completion.text[:most], finish="length")
    counts = (completion.input_tokens, completion.output_tokens, completion.cached_tokens)
    if all(map(plausible_count, counts)):
        return completion if name == completion.model else replace(completion, model=name)
    read, wrote, cached = (count if plausible_count(count) else 0 for count in counts)
    usd = card.price(read, wrote, cached)
    return replace(
        completion,
        model=name,
        input_tokens=read,
        output_tokens=wrote,
        cached_tokens=cached,
        usd=usd,
    )
