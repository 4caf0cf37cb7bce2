"""Where the meters of studies come from: rows say what was spent, by whatever process.

On Postgres several processes spend from one budget. Each holds a part of what is left, enough for
its calls in flight and about a second more; so most calls begin at once, and all of them together
stay within the budget.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from judge_gym.engine.calls.budget import KINDS, Account, Meter, RunOverBudget, Spend
from judge_gym.models.rounds import GAP, RENEW, How, Leases, Pause, Rounds
from judge_gym.store import Store
from judge_gym.store.leases import LAPSE
from judge_gym.store.queries import Queries
from judge_gym.studies import BudgetSpec, Caps

NEWEST = 10_000
"""Rows, of which some may still be on their way."""


class Meters:
    """The meter of each study.

    Args:
        store: where budgets and attempts are.
        leases: what is shared with other processes; None where this one is alone.
    """

    def __init__(self, store: Store, leases: Leases | None = None) -> None:
        self._store = store
        self._leases = leases
        self._turn = asyncio.Lock()
        self._meters: dict[str, Meter] = {}

    def of(self, study: str) -> Meter:
        """The meter of a study."""
        if study not in self._meters:
            budget = self._budget(study)
            account = self._account(Account("the budget", budget, Spend()), study)
            self._meters[study] = Meter(budget, account, self._open_run)
        return self._meters[study]

    def reload(self) -> None:
        """Budgets were changed."""
        for study, meter in self._meters.items():
            meter.change(self._budget(study))

    def _open_run(self, id: int, caps: Caps) -> Account:
        return self._account(Account("a run's budget", caps, Spend(), RunOverBudget), id)

    def _account(self, account: Account, payer: str | int) -> Account:
        paid = Paid(self._store.queries, payer)
        if self._leases is None:
            return replace(account, spent=paid.so_far())
        whose = f"study {payer}" if isinstance(payer, str) else f"run {payer}"
        return SharedAccount(
            account.whose,
            account.caps,
            account.spent,
            account.error,
            leases=self._leases,
            scope=f"budget of {whose}",
            paid=paid.so_far,
            turn=self._turn,
        )

    def _budget(self, study: str) -> BudgetSpec:
        return BudgetSpec.model_validate(self._store.runs.find_budget(study))


class Paid:
    """What a study or a run has paid, added up from its rows as they come.

    A row may come after one with a higher number, so the newest are read again each time.
    """

    def __init__(self, queries: Queries, payer: str | int) -> None:
        self._queries = queries
        self._payer = payer
        self._settled = Spend()
        self._until = 0

    def so_far(self) -> Spend:
        """All that was paid."""
        since, last = self._added(self._until)
        if last - self._until > 2 * NEWEST:
            settled, _ = self._added(self._until, last - NEWEST)
            self._settled.add(settled)
            self._until = last - NEWEST
            since, _ = self._added(self._until)
        since.add(self._settled)
        return since

    def _added(self, after: int, until: int | None = None) -> tuple[Spend, int]:
        calls, tokens, usd, last = self._queries.paid(self._payer, after, until)
        return Spend(calls, tokens, usd), last


class _Agreed(NamedTuple):
    """What came of a round."""

    holds: Spend
    """What this process may spend, with what its calls in flight may."""
    begun: int
    """For how many of the calls that waited that is enough."""
    paid: Spend
    processes: int


@dataclass(slots=True, kw_only=True)
class SharedAccount(Account):
    """An account that other processes spend from, too.

    What was agreed on is what this one may have spent in all, so that an answer which comes while
    others are told is not counted twice.
    """

    leases: Leases
    scope: str
    paid: Callable[[], Spend]
    turn: asyncio.Lock
    """One round at a time in a process: each takes two connections."""
    _granted: Spend = field(default_factory=Spend)
    _begun: Spend = field(default_factory=Spend)
    """What has begun since the last round: about as much will be wanted until the next."""
    _agreed_at: float = float("-inf")
    _waiting: deque[tuple[Spend, asyncio.Future[None]]] = field(default_factory=deque)
    _rounds: Rounds = field(init=False)

    def __post_init__(self) -> None:
        self._rounds = Rounds(self._meet, self._busy, self._fail)

    @property
    def _capped(self) -> list[str]:
        return [name for name in KINDS if getattr(self.caps, name) is not None]

    def fits(self, worst: Spend) -> bool:
        """Whether one more call may begin now."""
        if self.exceeded() is not None:  # it is too late
            return False
        if self._capped and time.monotonic() > self._agreed_at + LAPSE / 2:
            return False  # perhaps the others take this process for dead
        parts = self.spent, self.reserved, worst
        return all(
            sum(getattr(part, name) for part in parts) <= getattr(self._granted, name)
            for name in self._capped
        )

    async def make_room(self, worst: Spend) -> None:
        """Wait until the others agree to one more call, or until that is out of the question."""
        if self.exceeded() is not None:
            raise self.refusal()
        agreed = asyncio.get_running_loop().create_future()
        self._waiting.append((worst, agreed))
        self._rounds.wake()
        await agreed

    def reserve(self, worst: Spend) -> None:
        """Set a call's worst case aside."""
        self.reserved.add(worst)
        self._begun.add(worst)

    # --- rounds ----------------------------------------------------------------------------------

    def _busy(self) -> bool:
        return bool(self._waiting or self.reserved.calls)

    def _fail(self, fault: Exception) -> None:
        while self._waiting:
            _, agreed = self._waiting.popleft()
            if not agreed.done():
                agreed.set_exception(fault)

    async def _meet(self) -> Pause:
        async with self.turn:
            asked = list(self._waiting)
            change = self._round([worst for worst, _ in asked])
            before, began = replace(self.spent), time.monotonic()
            said = await asyncio.to_thread(self.leases.change, self.scope, change)
        before.add(said.holds)
        self._granted, self._agreed_at = before, began
        for place, (worst, agreed) in enumerate(asked):
            over = self.exceeded(said.paid, worst) is not None  # what is paid never gets less
            if over or place < said.begun:
                self._waiting.remove((worst, agreed))
                if agreed.done():
                    continue
                if over:
                    agreed.set_exception(self.refusal(said.paid, worst))
                else:
                    agreed.set_result(None)
        least = GAP * said.processes
        return Pause(least, max(least, 4 * GAP) if self._waiting else RENEW)

    def _round(self, waiting: Sequence[Spend]) -> How[_Agreed]:
        """One round, with all that is to be said as it is now: it is held in another thread."""
        reserved, ahead = replace(self.reserved), self._begun if self._busy() else Spend()
        self._begun = Spend()
        self._granted = replace(self.spent)  # nothing begins meanwhile
        self._granted.add(reserved)

        def change(
            common: dict[str, Any],
            mine: dict[str, Any],
            others: Sequence[dict[str, Any]],
            now: float,
        ) -> _Agreed:
            paid = self.paid()  # under the lock: what others gave up is paid by now
            taken = [paid, *(Spend(*(other[name] for name in KINDS)) for other in others)]
            holds, begun = reserved, 0
            for worst in waiting:
                if self.exceeded(*taken, holds, worst) is not None:
                    break
                holds.add(worst)
                begun += 1
            if self.exceeded(*taken, holds, ahead, ahead) is None:  # leave some for others
                holds.add(ahead)
            mine.clear()
            if holds.calls:
                mine.update(asdict(holds))
            return _Agreed(holds, begun, paid, len(others) + 1)

        return change
