"""Opens the meters of studies from the ledger's rows, and shares budgets between processes.

On Postgres several processes spend from one budget. Each holds a part of what is left, enough for
its calls in flight and about a second more, so that most calls begin without waiting and all
processes together stay within the budget.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from judge_gym.engine.calls.budget import KINDS, Account, Meter, RunOverBudget, Spend
from judge_gym.models.leases import GAP, RENEW, LeaseChange, LeaseRounds, Leases, Pause
from judge_gym.store import Store
from judge_gym.store.leases import LAPSE
from judge_gym.store.usage import Usage
from judge_gym.studies import BudgetSpec, Caps

NEWEST = 10_000
"""The newest rows, before which others may still be committed."""


class Meters:
    """The meters of all studies.

    Args:
        store: where budgets and attempts are.
        leases: where processes share what is left; None where this one is alone.
    """

    def __init__(self, store: Store, leases: Leases | None = None) -> None:
        self._store = store
        self._leases = leases
        self._round = asyncio.Lock()
        self._meters: dict[str, Meter] = {}

    def of(self, study: str) -> Meter:
        """Returns the meter of a study."""
        if study not in self._meters:
            budget = self._budget(study)
            account = self._account(Account("the budget", budget, Spend()), study)
            self._meters[study] = Meter(budget, account, self._open_run)
        return self._meters[study]

    def reload(self) -> None:
        """Reads the budgets again, after they were changed."""
        for study, meter in self._meters.items():
            meter.change(self._budget(study))

    def _open_run(self, id: int, caps: Caps) -> Account:
        return self._account(Account("a run's budget", caps, Spend(), RunOverBudget), id)

    def _account(self, account: Account, payer: str | int) -> Account:
        paid = Paid(self._store.usage, payer)
        if self._leases is None:
            return replace(account, spent=paid.so_far())
        scope = f"study {payer}" if isinstance(payer, str) else f"run {payer}"
        return SharedAccount(
            account.whose,
            account.caps,
            account.spent,
            account.error,
            leases=self._leases,
            scope=f"budget of {scope}",
            paid=paid.so_far,
            one_round=self._round,
        )

    def _budget(self, study: str) -> BudgetSpec:
        return BudgetSpec.model_validate(self._store.studies.budget(study))


class Paid:
    """The sum of what a study or a run has paid, from its rows.

    A row may be committed after one with a higher id, so the newest are read again each time.
    """

    def __init__(self, usage: Usage, payer: str | int) -> None:
        self._usage = usage
        self._payer = payer
        self._settled = Spend()
        self._until = 0

    def so_far(self) -> Spend:
        """Returns the sum of all rows."""
        # Sums of all rows of a long run would take longer and longer: what can no longer change is
        # added up once.
        since, last = self._added(self._until)
        if last - self._until > 2 * NEWEST:
            settled, _ = self._added(self._until, last - NEWEST)
            self._settled.add(settled)
            self._until = last - NEWEST
            since, _ = self._added(self._until)
        since.add(self._settled)
        return since

    def _added(self, after: int, until: int | None = None) -> tuple[Spend, int]:
        calls, tokens, usd, last = self._usage.paid(self._payer, after, until)
        return Spend(calls, tokens, usd), last


class _Grant(NamedTuple):
    """The result of a round."""

    holds: Spend
    """What this process may spend, its calls in flight included."""
    admitted: int
    """How many of the waiting calls may begin."""
    paid: Spend
    processes: int


@dataclass(slots=True, kw_only=True)
class SharedAccount(Account):
    """An account that several processes spend from.

    A round grants what this process may have spent in all, so that an answer which arrives during
    the round is not counted twice.
    """

    leases: Leases
    scope: str
    paid: Callable[[], Spend]
    one_round: asyncio.Lock
    """Held during a round: a process makes one at a time, since each takes two connections."""
    _granted: Spend = field(default_factory=Spend)
    _started_since: Spend = field(default_factory=Spend)
    """What was reserved since the last round, which forecasts the next."""
    _granted_at: float = float("-inf")
    _waiting: deque[tuple[Spend, asyncio.Future[None]]] = field(default_factory=deque)
    _rounds: LeaseRounds = field(init=False)

    def __post_init__(self) -> None:
        self._rounds = LeaseRounds(self._meet, self._busy, self._fail)

    @property
    def _capped(self) -> list[str]:
        return [name for name in KINDS if getattr(self.caps, name) is not None]

    def fits(self, worst: Spend) -> bool:
        """Whether one more call may begin now."""
        if self.exceeded() is not None:  # its minutes are over
            return False
        if self._capped and time.monotonic() > self._granted_at + LAPSE / 2:
            return False  # perhaps the others have declared this process dead
        parts = self.spent, self.reserved, worst
        return all(
            sum(getattr(part, name) for part in parts) <= getattr(self._granted, name)
            for name in self._capped
        )

    async def make_room(self, worst: Spend) -> None:
        """Waits until a round admits one more call; raises where none ever will."""
        if self.exceeded() is not None:
            raise self.refusal()
        admitted = asyncio.get_running_loop().create_future()
        self._waiting.append((worst, admitted))
        self._rounds.wake()
        await admitted

    def reserve(self, worst: Spend) -> None:
        """Reserves the worst case of a call."""
        self.reserved.add(worst)
        self._started_since.add(worst)

    # --- rounds ----------------------------------------------------------------------------------

    def _busy(self) -> bool:
        return bool(self._waiting or self.reserved.calls)

    def _fail(self, error: Exception) -> None:
        while self._waiting:
            _, admitted = self._waiting.popleft()
            if not admitted.done():
                admitted.set_exception(error)

    async def _meet(self) -> Pause:
        async with self.one_round:
            waiting = list(self._waiting)
            change = self._change([worst for worst, _ in waiting])
            before, began = replace(self.spent), time.monotonic()
            # Calls end while the thread waits for the lock of the scope: what they settle is added
            # to `spent` by then, and `before` remembers what the round was computed from.
            grant = await asyncio.to_thread(self.leases.change, self.scope, change)
        before.add(grant.holds)
        # As of its beginning, since the lease counts from there: it lapses earlier rather than
        # later than others think.
        self._granted, self._granted_at = before, began
        for index, (worst, admitted) in enumerate(waiting):
            over = self.exceeded(grant.paid, worst) is not None  # what is paid never decreases
            if over or index < grant.admitted:
                self._waiting.remove((worst, admitted))
                if admitted.done():
                    continue
                if over:
                    admitted.set_exception(self.refusal(grant.paid, worst))
                else:
                    admitted.set_result(None)
        least = GAP * grant.processes
        return Pause(least, max(least, 4 * GAP) if self._waiting else RENEW)

    def _change(self, waiting: Sequence[Spend]) -> LeaseChange[_Grant]:
        """Returns the change of one round with copies of the state: it runs in another thread."""
        reserved, ahead = replace(self.reserved), self._started_since if self._busy() else Spend()
        self._started_since = Spend()
        self._granted = replace(self.spent)  # nothing begins meanwhile
        self._granted.add(reserved)

        def change(
            common: dict[str, Any],
            mine: dict[str, Any],
            others: Sequence[dict[str, Any]],
            now: float,
        ) -> _Grant:
            # Rows are the truth: another process may have died after it paid, and its lease is
            # gone.
            paid = self.paid()  # under the lock: what others released is recorded by now
            taken = [paid, *(Spend(*(other[name] for name in KINDS)) for other in others)]
            holds, admitted = reserved, 0
            for worst in waiting:
                if self.exceeded(*taken, holds, worst) is not None:
                    break
                holds.add(worst)
                admitted += 1
            # A grant in advance for as many calls as began since the last round spares them a
            # round, as long as twice as much is left: near the end each call asks.
            if self.exceeded(*taken, holds, ahead, ahead) is None:  # leave some for others
                holds.add(ahead)
            mine.clear()
            if holds.calls:
                mine.update(asdict(holds))
            return _Grant(holds, admitted, paid, len(others) + 1)

        return change
