"""Budgets: before a call its worst case is reserved, after it the actual cost is settled."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from judge_gym.errors import BudgetError, DesignError
from judge_gym.models import ModelCard
from judge_gym.records import Completion, Request
from judge_gym.studies import BudgetSpec

BYTES_PER_TOKEN = 3
"""For an estimate on the safe side: English has about four, other scripts fewer."""


def input_tokens(request: Request) -> int:
    """An estimate of what a request holds."""
    size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    return size // BYTES_PER_TOKEN + 1


@dataclass(slots=True)
class Spend:
    """What was spent, or may be."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def add(self, other: "Spend", sign: int = 1) -> None:
        """Add or take away."""
        self.calls += sign * other.calls
        self.tokens += sign * other.tokens
        self.usd += sign * other.usd


def spent(usage: list[dict[str, Any]]) -> Spend:
    """What usage rows add up to; what was imported was paid for elsewhere."""
    usage = [row for row in usage if not row["imported"]]
    return Spend(
        calls=sum(row["attempts"] for row in usage),
        tokens=sum((row["input_tokens"] or 0) + (row["output_tokens"] or 0) for row in usage),
        usd=sum(row["usd"] or 0.0 for row in usage),
    )


@dataclass
class Meter:
    """Keeps a study within its budget, whatever is in flight."""

    budget: BudgetSpec
    spent: Spend
    _reserved: Spend = field(default_factory=Spend)
    _settled: asyncio.Event = field(default_factory=asyncio.Event)
    _started: float = field(default_factory=time.monotonic)

    def check_prices(self, cards: Mapping[str, ModelCard]) -> None:
        """Refuse a money budget that could not be kept, because a price is unknown."""
        unpriced = [id for id, card in cards.items() if card.price(1000, 1000) is None]
        if self.budget.usd is not None and unpriced:
            raise DesignError(f"budget.usd cannot be kept: the price of {unpriced[0]} is unknown")

    async def reserve(self, request: Request, card: ModelCard) -> Spend:
        """Reserve a call's worst case; wait for calls in flight where it does not fit yet."""
        tokens = input_tokens(request)
        worst = Spend(1, tokens + request.max_tokens, card.price(tokens, request.max_tokens) or 0.0)
        while exceeded := self._exceeded(worst):
            if not self._reserved.calls:
                raise BudgetError(f"the budget of {exceeded} is reached; everything so far is kept")
            self._settled.clear()
            await self._settled.wait()
        self._reserved.add(worst)
        return worst

    def settle(self, worst: Spend, completion: Completion | None) -> None:
        """Replace a reservation by what the call really took."""
        self._reserved.add(worst, -1)
        actual = Spend(calls=1)
        if completion is not None:
            actual.tokens = completion.input_tokens + completion.output_tokens
            actual.usd = completion.usd or 0.0
        self.spent.add(actual)
        self._settled.set()

    def _exceeded(self, worst: Spend) -> str | None:
        """The limit that one more call would break."""
        minutes = (time.monotonic() - self._started) / 60
        if self.budget.minutes is not None and minutes > self.budget.minutes:
            return f"{self.budget.minutes:g} minutes"
        for name in ("calls", "tokens", "usd"):
            limit = getattr(self.budget, name)
            total = sum(getattr(part, name) for part in (self.spent, self._reserved, worst))
            if limit is not None and total > limit:
                return f"{limit:g} {name}"
        return None
