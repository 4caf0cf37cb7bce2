"""Keeps budgets: a call reserves its worst case before it begins, and then settles its cost."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from judge_gym.errors import Bill, BudgetError, DesignError
from judge_gym.models import ModelCard
from judge_gym.records import Completion, Request
from judge_gym.studies import BudgetSpec, Caps

KINDS = ("calls", "tokens", "usd")
BYTES_PER_TOKEN = 3
"""A cautious estimate: English has about four, other scripts fewer."""


class RunOverBudget(BudgetError):
    """One run has reached its own budget; others continue."""


def input_tokens(request: Request) -> int:
    """Estimates the tokens of a request."""
    size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    return size // BYTES_PER_TOKEN + 1


@dataclass(slots=True)
class Spend:
    """An amount that was spent, or may be."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    @classmethod
    def of(cls, cost: Completion | Bill | None) -> "Spend":
        """Returns the amount of one call, whose cost is None where it is unknown."""
        if cost is None:
            return cls(calls=1)
        return cls(1, cost.input_tokens + cost.output_tokens, cost.usd or 0.0)

    def add(self, other: "Spend", sign: int = 1) -> None:
        """Adds another amount, or subtracts it where the sign is -1."""
        self.calls += sign * other.calls
        self.tokens += sign * other.tokens
        self.usd += sign * other.usd


NOTHING = Spend()
HEADROOM = 1.2
"""What an estimate of tokens, dollars or minutes is multiplied by, to suggest a limit."""


@dataclass(slots=True)
class Account:
    """The budget of one payer, and what was spent of it."""

    whose: str
    caps: Caps
    spent: Spend
    error: type[BudgetError] = BudgetError
    reserved: Spend = field(default_factory=Spend)
    started: float = field(default_factory=lambda: time.monotonic())
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when more may fit."""

    def fits(self, worst: Spend) -> bool:
        """Whether one more call may begin now."""
        return self.exceeded(self.spent, self.reserved, worst) is None

    async def make_room(self, worst: Spend) -> None:
        """Waits for a call in flight, after which more may fit; raises where there is none."""
        if not self.reserved.calls:
            raise self.refusal(self.spent, worst)
        # Nothing is awaited between this and the wait, so that no settlement is missed.
        self.settled.clear()
        await self.settled.wait()

    def reserve(self, worst: Spend) -> None:
        """Reserves the worst case of a call."""
        self.reserved.add(worst)

    def settle(self, worst: Spend, cost: Spend) -> None:
        """Replaces a reservation by the actual cost."""
        self.reserved.add(worst, -1)
        self.spent.add(cost)
        self.settled.set()

    def change(self, caps: Caps) -> None:
        """Replaces the limits."""
        self.caps = caps
        self.settled.set()

    def exceeded(self, *parts: Spend) -> str | None:
        """Returns the limit that these amounts exceed together, or None."""
        minutes = (time.monotonic() - self.started) / 60
        if self.caps.minutes is not None and minutes > self.caps.minutes:
            return f"{self.caps.minutes:g} minutes"
        for name in KINDS:
            limit = getattr(self.caps, name)
            if limit is not None and sum(getattr(part, name) for part in parts) > limit:
                return f"{limit:g} {name}"
        return None

    def refusal(self, *parts: Spend) -> BudgetError:
        """Returns the error for a call that never fits."""
        limit = self.exceeded(*parts)
        return self.error(f"{self.whose} of {limit} is reached; everything so far is kept")


class Meter:
    """Keeps a study and each of its runs within their budgets, calls in flight included.

    Args:
        budget: of the study, with that of each run.
        study: the account of the study.
        open_run: opens the account of a run.
    """

    def __init__(
        self, budget: BudgetSpec, study: Account, open_run: Callable[[int, Caps], Account]
    ) -> None:
        self._budget = budget
        self._study = study
        self._open_run = open_run
        self._runs: dict[int, Account] = {}

    def change(self, budget: BudgetSpec) -> None:
        """Replaces the budget."""
        self._budget = budget
        self._study.change(budget)
        for account in self._runs.values():
            account.change(budget.run)

    async def reserve(self, worst: Spend, run_id: int) -> None:
        """Reserves the worst case of a call; waits for others where it does not fit yet."""
        accounts = self._accounts(run_id)
        # Both accounts again after each wait: what fits the study may by now not fit the run.
        while full := next((account for account in accounts if not account.fits(worst)), None):
            await full.make_room(worst)
        for account in accounts:
            account.reserve(worst)

    def settle(self, worst: Spend, cost: Spend, run_id: int) -> None:
        """Replaces a reservation by the actual cost."""
        for account in self._accounts(run_id):
            account.settle(worst, cost)

    def _accounts(self, run_id: int) -> tuple[Account, Account]:
        if run_id not in self._runs:
            self._runs[run_id] = self._open_run(run_id, self._budget.run)
        return self._study, self._runs[run_id]


def enough(
    budget: BudgetSpec, study: Spend, run: Spend = NOTHING, minutes: float = 0.0
) -> dict[str, float]:
    """Returns limits that would be enough in place of those that are not, as `--budget` takes them.

    Args:
        budget: of the study.
        study: what it has spent and, by an estimate, still will.
        run: the most that one of its runs will have spent.
        minutes: that the rest takes; each command begins to count anew.
    """
    limits: dict[str, float] = {}
    for prefix, caps, spend in (("", budget, study), ("run.", budget.run, run)):
        needed = {name: float(getattr(spend, name)) for name in KINDS} | {"minutes": minutes}
        for name, amount in needed.items():
            limit = getattr(caps, name)
            # A call reserves the longest answer, and some calls are repeated.
            wanted = amount if name == "calls" else amount * HEADROOM
            if limit is not None and wanted > limit:
                limits[prefix + name] = _rounded_up(wanted)
    return limits


def _rounded_up(amount: float) -> float:
    """Returns the next number of two digits.

    >>> [_rounded_up(amount) for amount in (47, 1201, 0.0312)]
    [47, 1300, 0.032]
    """
    step = 10.0 ** (math.floor(math.log10(amount)) - 1)
    rounded = round(math.ceil(round(amount / step, 6)) * step, 6)
    return int(rounded) if rounded == int(rounded) else rounded


def refuse_unpriced(
    budget: BudgetSpec, cards: Iterable[ModelCard], *, searches: bool = False
) -> None:
    """Refuses a budget in US dollars where the price of a model is unknown."""
    unpriced = [card.id for card in cards if card.price(1000, 1000, searches=searches) is None]
    what = "the price of a search by" if searches else "the price of"
    for name, caps in (("budget.usd", budget), ("budget.run.usd", budget.run)):
        if caps.usd is not None and unpriced:
            raise DesignError(f"{name} cannot be kept: {what} {unpriced[0]} is unknown")
