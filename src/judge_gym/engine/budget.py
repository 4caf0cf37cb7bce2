"""Budgets: before a call its worst case is reserved, after it the actual cost is settled."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from judge_gym.errors import Bill, BudgetError, DesignError
from judge_gym.models import ModelCard
from judge_gym.records import Completion, Request
from judge_gym.store import Store
from judge_gym.studies import BudgetSpec, Caps

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


def spent(usage: Iterable[Mapping[str, Any]]) -> Spend:
    """What usage rows add up to; what was imported was paid for elsewhere."""
    total = Spend()
    for row in usage:
        if not row["imported"]:
            tokens = (row["input_tokens"] or 0) + (row["output_tokens"] or 0)
            total.add(Spend(row["attempts"], tokens, row["usd"] or 0.0))
    return total


@dataclass(slots=True)
class Account:
    """What may be spent by one payer, and what was."""

    whose: str
    caps: Caps
    spent: Spend
    error: type[BudgetError] = BudgetError
    reserved: Spend = field(default_factory=Spend)
    started: float = field(default_factory=time.monotonic)

    def exceeded(self, worst: Spend) -> str | None:
        """The limit that one more call would break."""
        minutes = (time.monotonic() - self.started) / 60
        if self.caps.minutes is not None and minutes > self.caps.minutes:
            return f"{self.caps.minutes:g} minutes"
        for name in ("calls", "tokens", "usd"):
            limit = getattr(self.caps, name)
            total = sum(getattr(part, name) for part in (self.spent, self.reserved, worst))
            if limit is not None and total > limit:
                return f"{limit:g} {name}"
        return None


class Meter:
    """Keeps a study and each of its runs within their budgets, whatever is in flight.

    Args:
        budget: of the study, with that of each run.
        spent: by the study before.
        by_run: what a run has spent before.
    """

    def __init__(self, budget: BudgetSpec, spent: Spend, by_run: Callable[[int], Spend]) -> None:
        self.budget = budget
        self.study = Account("the budget", budget, spent)
        self._by_run = by_run
        self._runs: dict[int, Account] = {}
        self._settled = asyncio.Event()

    def change(self, budget: BudgetSpec) -> None:
        """Other limits from now on."""
        self.budget = self.study.caps = budget
        for account in self._runs.values():
            account.caps = budget.run
        self._settled.set()

    async def reserve(self, worst: Spend, run_id: int) -> None:
        """Reserve a call's worst case; wait for calls in flight where it does not fit yet."""
        accounts = self.study, self._run(run_id)
        while full := next((account for account in accounts if account.exceeded(worst)), None):
            if not full.reserved.calls:
                raise full.error(
                    f"{full.whose} of {full.exceeded(worst)} is reached; everything so far is kept"
                )
            self._settled.clear()
            await self._settled.wait()
        for account in accounts:
            account.reserved.add(worst)

    def settle(self, worst: Spend, took: Spend, run_id: int) -> None:
        """Replace a reservation by what the call really took."""
        for account in (self.study, self._run(run_id)):
            account.reserved.add(worst, -1)
            account.spent.add(took)
        self._settled.set()

    def _run(self, id: int) -> Account:
        if id not in self._runs:
            before = self._by_run(id)
            self._runs[id] = Account("a run's budget", self.budget.run, before, RunOverBudget)
        return self._runs[id]


def refuse_unpriced(budget: BudgetSpec, cards: Iterable[ModelCard]) -> None:
    """Refuse a money budget that could not be kept, because a price is unknown."""
    unpriced = [card.id for card in cards if card.price(1000, 1000) is None]
    for name, caps in (("budget.usd", budget), ("budget.run.usd", budget.run)):
        if caps.usd is not None and unpriced:
            raise DesignError(f"{name} cannot be kept: the price of {unpriced[0]} is unknown")


class Meters:
    """The meter of each study, from what its rows say was spent."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._meters: dict[str, Meter] = {}

    def of(self, study: str) -> Meter:
        """The meter of a study."""
        if study not in self._meters:
            queries = self._store.queries
            paid = spent(queries.usage(study=study))
            self._meters[study] = Meter(
                self._budget(study), paid, lambda run: spent(queries.usage(run=run))
            )
        return self._meters[study]

    def reload(self) -> None:
        """Budgets were changed."""
        for study, meter in self._meters.items():
            meter.change(self._budget(study))

    def _budget(self, study: str) -> BudgetSpec:
        return BudgetSpec.model_validate(self._store.runs.find_budget(study))
