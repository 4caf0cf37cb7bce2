"""Budgets: before a call its worst case is reserved, after it the actual cost is settled."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from judge_gym.errors import Bill, BudgetError, DesignError
from judge_gym.models import ModelCard
from judge_gym.records import Completion, Request
from judge_gym.studies import BudgetSpec, Caps

KINDS = ("calls", "tokens", "usd")
BYTES_PER_TOKEN = 3
"""For an estimate on the safe side: English has about four, other scripts fewer."""


class RunOverBudget(BudgetError):
    """One run has reached its own budget; others go on."""


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

    @classmethod
    def of(cls, took: Completion | Bill | None) -> "Spend":
        """What one call took; None where nobody knows."""
        if took is None:
            return cls(calls=1)
        return cls(1, took.input_tokens + took.output_tokens, took.usd or 0.0)

    def add(self, other: "Spend", sign: int = 1) -> None:
        """Add or take away."""
        self.calls += sign * other.calls
        self.tokens += sign * other.tokens
        self.usd += sign * other.usd


@dataclass(slots=True)
class Account:
    """What may be spent by one payer, and what was."""

    whose: str
    caps: Caps
    spent: Spend
    error: type[BudgetError] = BudgetError
    reserved: Spend = field(default_factory=Spend)
    started: float = field(default_factory=time.monotonic)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there may be more room."""

    def fits(self, worst: Spend) -> bool:
        """Whether one more call may begin now."""
        return self.exceeded(self.spent, self.reserved, worst) is None

    async def make_room(self, worst: Spend) -> None:
        """Wait for a call in flight, which may leave room; refuse one more where none will."""
        if not self.reserved.calls:
            raise self.refusal(self.spent, worst)
        self.settled.clear()
        await self.settled.wait()

    def reserve(self, worst: Spend) -> None:
        """Set a call's worst case aside."""
        self.reserved.add(worst)

    def settle(self, worst: Spend, took: Spend) -> None:
        """Replace a reservation by what the call really took."""
        self.reserved.add(worst, -1)
        self.spent.add(took)
        self.settled.set()

    def change(self, caps: Caps) -> None:
        """Other limits from now on."""
        self.caps = caps
        self.settled.set()

    def exceeded(self, *parts: Spend) -> str | None:
        """The limit that is broken by all of this together."""
        minutes = (time.monotonic() - self.started) / 60
        if self.caps.minutes is not None and minutes > self.caps.minutes:
            return f"{self.caps.minutes:g} minutes"
        for name in KINDS:
            limit = getattr(self.caps, name)
            if limit is not None and sum(getattr(part, name) for part in parts) > limit:
                return f"{limit:g} {name}"
        return None

    def refusal(self, *parts: Spend) -> BudgetError:
        """The error for a call that never fits."""
        limit = self.exceeded(*parts)
        return self.error(f"{self.whose} of {limit} is reached; everything so far is kept")


class Meter:
    """Keeps a study and each of its runs within their budgets, whatever is in flight.

    Args:
        budget: of the study, with that of each run.
        study: the account of the study.
        open_run: opens the account of a run, with these limits.
    """

    def __init__(
        self, budget: BudgetSpec, study: Account, open_run: Callable[[int, Caps], Account]
    ) -> None:
        self._budget = budget
        self._study = study
        self._open_run = open_run
        self._runs: dict[int, Account] = {}

    def change(self, budget: BudgetSpec) -> None:
        """Other limits from now on."""
        self._budget = budget
        self._study.change(budget)
        for account in self._runs.values():
            account.change(budget.run)

    async def reserve(self, worst: Spend, run_id: int) -> None:
        """Reserve a call's worst case; wait for calls in flight where it does not fit yet."""
        accounts = self._accounts(run_id)
        while full := next((account for account in accounts if not account.fits(worst)), None):
            await full.make_room(worst)
        for account in accounts:
            account.reserve(worst)

    def settle(self, worst: Spend, took: Spend, run_id: int) -> None:
        """Replace a reservation by what the call really took."""
        for account in self._accounts(run_id):
            account.settle(worst, took)

    def _accounts(self, run_id: int) -> tuple[Account, Account]:
        if run_id not in self._runs:
            self._runs[run_id] = self._open_run(run_id, self._budget.run)
        return self._study, self._runs[run_id]


def refuse_unpriced(
    budget: BudgetSpec, cards: Iterable[ModelCard], *, searches: bool = False
) -> None:
    """Refuse a money budget that could not be kept, because a price is unknown."""
    unpriced = [card.id for card in cards if card.price(1000, 1000, searches=searches) is None]
    what = "the price of a search by" if searches else "the price of"
    for name, caps in (("budget.usd", budget), ("budget.run.usd", budget.run)):
        if caps.usd is not None and unpriced:
            raise DesignError(f"{name} cannot be kept: {what} {unpriced[0]} is unknown")
