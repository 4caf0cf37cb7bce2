"""What calls keep to: places for those in flight, and limits from a model's to all providers'."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from judge_gym.models import ModelCard
from judge_gym.models.cards import Limits
from judge_gym.models.limits import Reserved, Throttle
from judge_gym.models.rounds import Leases
from judge_gym.models.sharing import SharedThrottle

if TYPE_CHECKING:
    from judge_gym.engine.calls.ask import Models

CONCURRENCY = 64
"""Calls in flight to one endpoint, where nobody says another number."""


class _Limited(NamedTuple):
    """What a call to a model keeps to: a place, and limits from the model's to all providers'."""

    slots: asyncio.Semaphore
    quota: Throttle
    throttle: Throttle
    ceiling: Throttle


Room = list[tuple[Throttle, Reserved]]
"""What a call has reserved of each of its limits."""


class Limiting:
    """The limits of a process.

    Args:
        models: what is known of each model.
        limits: what is given here stands in the place of what the registry states.
        leases: where other processes keep the same limits; None where this one is alone.
    """

    def __init__(self, models: "Models", limits: Limits, leases: Leases | None) -> None:
        self._models = models
        self._given = {name: limit for name, limit in asdict(limits).items() if limit}
        self._leases = leases
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._throttles: dict[tuple[str, Limits], Throttle] = {}
        self._limited: dict[str, _Limited] = {}
        self._cards: dict[str, ModelCard] = {}
        """The models that were asked."""
        self._over = False

    def end(self) -> None:
        """Let everybody go who waits: nothing further will be asked."""
        self._over = True
        for throttle in self._throttles.values():
            throttle.release()

    def change(self, given: Mapping[str, int]) -> None:
        """Other limits from now on; calls that wait take note of them."""
        self._given |= given
        if "concurrency" in given:
            self._slots.clear()
        self._limited.clear()
        kept = {id(one) for card in list(self._cards.values()) for one in self._limits(card)}
        for key, throttle in list(self._throttles.items()):
            if id(throttle) not in kept:
                del self._throttles[key]
                throttle.release()

    def block(self, card: ModelCard, seconds: float, *, alone: bool) -> None:
        """Begin no call for so long, to one model alone or to all that share its limits."""
        (self._quota(card) if alone else self._throttle(card)).block(seconds)

    def _limits(self, card: ModelCard) -> _Limited:
        """All that a call keeps to; looked up once, since it is on the way of every call."""
        if card.id not in self._limited:
            limited = (self._quota(card), self._throttle(card), self._ceiling(card))
            self._limited[card.id] = _Limited(self._slot(card), *limited)
            self._cards[card.id] = card
        return self._limited[card.id]

    @asynccontextmanager
    async def room(
        self, card: ModelCard, tokens: int, most: int, refuse: Callable[[], None]
    ) -> AsyncIterator[Room]:
        """Hold a slot and a reservation within the limits that hold when it is one's turn.

        Args:
            card: of the model.
            tokens: of the question.
            most: tokens of the answer.
            refuse: raises what stands in the way by then; nothing is reserved for what is not made.
        """
        while True:
            limited = self._limits(card)
            async with limited.slots, limited.throttle.slot:
                refuse()
                room = [(one, await one.reserve(tokens, most)) for one in limited[1:]]
                if limited is self._limited.get(card.id):
                    yield room
                    return
            for throttle, reserved in room:  # other limits were set meanwhile
                throttle.settle(reserved, 0, 0)

    def _slot(self, card: ModelCard) -> asyncio.Semaphore:
        """The calls in flight: as many as the user says, else as many to each endpoint."""
        given = self._given.get("concurrency")
        where = "" if given else endpoint_of(card)
        if where not in self._slots:
            usual = max(CONCURRENCY, card.limits.concurrency or 0)
            self._slots[where] = asyncio.Semaphore(given or usual)
        return self._slots[where]

    def _throttle(self, card: ModelCard) -> Throttle:
        """The limits that a model shares with others of its provider or endpoint."""
        given = {} if card.kind == "sim" else self._given
        return self._scope(card.limits.scope or card.id, replace(card.limits, **given))

    def _quota(self, card: ModelCard) -> Throttle:
        """What the provider says is left: it counts by model, a user's own endpoint by user."""
        return self._scope(f"left of {endpoint_of(card) if card.own else card.id}", Limits())

    def _ceiling(self, card: ModelCard) -> Throttle:
        """What all hosted providers together may be asked; others have none."""
        if card.kind != "hosted":
            return self._scope("none", Limits())
        # A limit that the user gives is meant to hold, not the lower one above it.
        lifted: dict[str, Any] = dict.fromkeys(self._given)
        return self._scope("hosted", replace(self._models.hosted_limits, **lifted))

    def _scope(self, name: str, limits: Limits) -> Throttle:
        if (name, limits) not in self._throttles:
            if self._leases is None or limits == Limits(limits.scope):
                throttle = Throttle(limits)
            else:
                throttle = SharedThrottle(limits, self._leases, f"limits of {name}")
            self._throttles[name, limits] = throttle
            if self._over:
                throttle.release()
        return self._throttles[name, limits]


def endpoint_of(card: ModelCard) -> str:
    """Where a model is asked."""
    return card.endpoint or card.provider
