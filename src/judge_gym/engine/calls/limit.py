"""Keeps calls within limits: calls in flight, and rates from one model's to all providers'."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from judge_gym.models import ModelCard
from judge_gym.models.fair_queue import Slots
from judge_gym.models.leases import Leases
from judge_gym.models.limits import Reservation, Throttle
from judge_gym.models.model_card import Limits
from judge_gym.models.shared_limits import SharedThrottle

if TYPE_CHECKING:
    from judge_gym.engine.calls.ask import Models

CONCURRENCY = 64
"""Calls in flight to one endpoint, where neither the user nor the registry gives a number."""


class _ModelLimits(NamedTuple):
    """The limits of a call to one model."""

    slots: tuple[Slots, Slots]
    """Of the endpoint, and of what shares its limits."""
    throttles: tuple[Throttle, ...]
    """The quota first."""


Reservations = list[tuple[Throttle, Reservation]]
"""What a call has reserved of each of its limits."""


class CallLimits:
    """The limits of a process, which shares them with others where `leases` are given."""

    def __init__(self, models: "Models", limits: Limits, leases: Leases | None) -> None:
        self._models = models
        self._given = {name: limit for name, limit in asdict(limits).items() if limit}
        self._leases = leases
        self._slots: dict[str, Slots] = {}
        self._throttles: dict[tuple[str, Limits], Throttle] = {}
        self._by_model: dict[str, _ModelLimits] = {}
        self._cards: dict[str, ModelCard] = {}
        """The models that were called."""
        self._ended = False

    def end(self) -> None:
        """Releases every call that waits: nothing further will be asked."""
        self._ended = True
        for throttle in self._throttles.values():
            throttle.release()

    def change(self, limits: Mapping[str, int]) -> None:
        """Applies changed limits, also to calls that wait."""
        self._given |= limits
        # Calls that wait keep their old slots, which have the old limit; `reserve` sees that they
        # were replaced and lets them wait in the new ones.
        if "concurrency" in limits:
            self._slots.clear()
        self._by_model.clear()
        cards = list(self._cards.values())
        in_use = {id(limit) for card in cards for limit in self._limits(card).throttles}
        for key, throttle in list(self._throttles.items()):
            if id(throttle) not in in_use:
                del self._throttles[key]
                throttle.release()

    def block(self, card: ModelCard, seconds: float, *, alone: bool) -> None:
        """Begins no call for a time, to one model alone or to all that share its limits."""
        (self._quota(card) if alone else self._throttle(card)).block(seconds)

    def _limits(self, card: ModelCard) -> _ModelLimits:
        """Returns the limits of a model, looked up once, since every call needs them."""
        if card.id not in self._by_model:
            shared = self._throttle(card)
            above = [self._ceiling()] if card.kind == "hosted" else []
            throttles = (self._quota(card), shared, *above)
            self._by_model[card.id] = _ModelLimits((self._slot(card), shared.slots), throttles)
            self._cards[card.id] = card
        return self._by_model[card.id]

    @asynccontextmanager
    async def reserve(
        self,
        card: ModelCard,
        tokens: int,
        most: int,
        refuse: Callable[[], None],
        payer: str = "",
    ) -> AsyncIterator[Reservations]:
        """Holds a slot and reservations within the limits that hold when the call's turn comes.

        Args:
            card: of the model.
            tokens: of the request.
            most: tokens of the answer.
            refuse: raises what prevents the call by then; nothing is reserved in that case.
            payer: the study, which takes turns with others.
        """
        # The limits may be replaced while a call waits for them; it then waits for the new ones.
        while True:
            limits = self._limits(card)
            own, shared = limits.slots
            # The slot first, the rates within it: a call that holds tokens of a rate and waits for
            # a slot would keep them from calls that could begin.
            async with own.hold(payer), shared.hold(payer):
                # A call that was refused while it waited must not take from the rates.
                refuse()
                reserved = [
                    (limit, await limit.reserve(tokens, most, payer)) for limit in limits.throttles
                ]
                if limits is self._by_model.get(card.id):
                    yield reserved
                    return
            for throttle, part in reserved:  # the limits were changed meanwhile
                throttle.settle(part, 0, 0)

    def _slot(self, card: ModelCard) -> Slots:
        """Returns the slots: of all calls where the user gives a number, else of an endpoint."""
        concurrency = self._given.get("concurrency")
        scope = "" if concurrency else endpoint_of(card)
        if scope not in self._slots:
            default = max(CONCURRENCY, card.limits.concurrency or 0)
            self._slots[scope] = Slots(concurrency or default)
        return self._slots[scope]

    def _throttle(self, card: ModelCard) -> Throttle:
        """Returns the limits that a model shares with others of its provider or endpoint."""
        name = card.provider if card.simulated else card.limits.scope or card.id
        return self._scope(name, replace(card.limits, **self._given))

    def _quota(self, card: ModelCard) -> Throttle:
        """Returns what the provider reports as left: by model, on a user's endpoint by user."""
        return self._scope(f"left of {endpoint_of(card) if card.own else card.id}", Limits())

    def _ceiling(self) -> Throttle:
        """Returns the limits of all hosted providers together."""
        # A limit that the user gives replaces the lower one above it as well.
        lifted: dict[str, Any] = dict.fromkeys(self._given)
        return self._scope("hosted", replace(self._models.hosted_limits, **lifted))

    def _scope(self, name: str, limits: Limits) -> Throttle:
        if (name, limits) not in self._throttles:
            if self._leases is None or limits == Limits(limits.scope):
                throttle = Throttle(limits)
            else:
                throttle = SharedThrottle(limits, self._leases, f"limits of {name}")
            self._throttles[name, limits] = throttle
            if self._ended:
                throttle.release()
        return self._throttles[name, limits]


def endpoint_of(card: ModelCard) -> str:
    """Returns where a model is called; a local model's file has its server to itself."""
    return card.id if card.kind == "local" else card.endpoint or card.provider
