"""Counts what a monitor of a lab needs: calls, their latency and cost, the queue, the workers."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.events import Logs
from judge_gym.store.in_flight import FRESH
from judge_gym.store.progress import ProgressQueries

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the seconds that answers took."""
CHUNK = 100_000
"""Attempts that one statement adds up."""
UNSETTLED = 10_000
"""The newest attempts, which are added up anew each time: one with a lower id may still come."""
MOST = 100
"""Endpoints and models that are counted apart; later ones are counted as `other`."""
LONGEST = 100
"""Characters of a label."""
TOKENS = sa.func.coalesce(t.attempts.c.input_tokens, 0) + sa.func.coalesce(
    t.attempts.c.output_tokens, 0
)


class Endpoint(NamedTuple):
    """A model at an endpoint, by names that hold neither secrets nor users' texts."""

    provider: str
    model: str
    endpoint: str


@dataclass(slots=True)
class CallSums:
    """Sums over the attempts at calls of one model at one endpoint, or of one study."""

    completed: int = 0
    failed: int = 0
    unsent: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    """Of completed attempts."""
    within: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))
    """Completed attempts that took at most the seconds of each bucket."""

    def add(self, other: "CallSums") -> None:
        """Adds other sums."""
        for name in ("completed", "failed", "unsent", "tokens", "usd", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.within = [a + b for a, b in zip(self.within, other.within, strict=True)]


@dataclass(frozen=True, slots=True)
class LabMetrics:
    """What is reported of a lab at one moment."""

    calls: Mapping[Endpoint, CallSums]
    in_flight: int
    queue: Mapping[tuple[str, bool], int]
    """What is queued, by kind (run, shard, analysis) and whether a process executes it."""
    workers: int
    budget_left: Mapping[str, float]
    """Of studies in progress with a budget of a kind, the least share that is left."""
    usd_left: float | None
    """What studies in progress with a budget in US dollars may still spend; None without one."""


class Metrics:
    """Adds up attempts: each is read once, but for the newest."""

    def __init__(self, database: Database, progress: ProgressQueries, logs: Logs) -> None:
        self._database = database
        self._progress = progress
        self._logs = logs
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, str, str], CallSums] = {}
        self._settled = 0

    def read(self) -> LabMetrics:
        """Returns the metrics of the lab."""
        sums = self._call_sums()
        by_endpoint: dict[Endpoint, CallSums] = {}
        by_study: dict[str, CallSums] = {}
        for (study, model, address), some in sums.items():
            name = _endpoint(model, address)
            if name not in by_endpoint and len(by_endpoint) >= MOST:
                name = Endpoint("other", "other", "other")
            by_endpoint.setdefault(name, CallSums()).add(some)
            by_study.setdefault(study, CallSums()).add(some)
        left, usd_left = self._budgets(by_study)
        since = datetime.now(UTC) - FRESH
        reports = self._database.scalars(
            sa.select(t.in_flight.c.calls).where(t.in_flight.c.at > since)
        )
        return LabMetrics(
            calls=by_endpoint,
            in_flight=sum(count for calls in reports for *_, count in calls),
            queue=self._progress.queue_depth(),
            workers=self._progress.count_workers(),
            budget_left=left,
            usd_left=usd_left,
        )

    def _call_sums(self) -> dict[tuple[str, str, str], CallSums]:
        with self._lock:
            last = self._database.scalar(sa.select(sa.func.max(t.attempts.c.id))) or 0
            while self._settled < last - UNSETTLED:
                until = min(self._settled + CHUNK, last - UNSETTLED)
                for key, sums in self._between(self._settled, until):
                    self._sums.setdefault(key, CallSums()).add(sums)
                self._settled = until
            total: dict[tuple[str, str, str], CallSums] = {}
            for key, sums in [*self._sums.items(), *self._between(self._settled, last)]:
                total.setdefault(key, CallSums()).add(sums)
            return total

    def _between(self, after: int, until: int) -> Iterator[tuple[tuple[str, str, str], CallSums]]:
        """Yields the sums of attempts after an id, without imported ones, by study and model."""
        a, c = t.attempts.c, t.calls.c
        sent = a.unsent.is_not(True)

        def count(*conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
            return sa.func.sum(sa.case((sa.and_(*conditions), 1), else_=0))

        query = (
            sa.select(
                sa.func.coalesce(a.study, ""),
                c.model,
                c.endpoint,
                count(a.completed),
                count(sa.not_(a.completed), sent),
                count(sa.not_(sent)),
                sa.func.sum(TOKENS),
                sa.func.sum(sa.func.coalesce(a.usd, 0.0)),
                sa.func.sum(sa.case((a.completed, a.seconds), else_=0.0)),
                *(count(a.completed, a.seconds <= bound) for bound in BUCKETS),
            )
            .join(t.calls, c.id == a.call_id)
            .where(a.id > after, a.id <= until, a.run_id.is_not(None))
            .group_by(a.study, c.model, c.endpoint)
            .order_by(sa.func.min(a.id))  # the first ones are counted apart
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        for study, model, endpoint, done, failed, unsent, tokens, usd, seconds, *within in rows:
            sums = CallSums(done, failed, unsent, int(tokens), usd, seconds, within)
            yield (study, model, endpoint), sums

    def _budgets(self, spent: Mapping[str, CallSums]) -> tuple[dict[str, float], float | None]:
        """Returns what is left of the budgets of studies in progress, which are not named."""
        shares: dict[str, float] = {}
        usd_left: float | None = None
        for study, budget in self._logs.budgets_in_progress().items():
            sums = spent.get(study, CallSums())
            amounts = {
                "calls": sums.completed + sums.failed,
                "tokens": sums.tokens,
                "usd": sums.usd,
            }
            for kind, amount in amounts.items():
                if (cap := budget.get(kind)) is not None:
                    left = max(0.0, cap - amount)
                    shares[kind] = min(shares.get(kind, 1.0), left / cap if cap else 0.0)
                    if kind == "usd":
                        usd_left = (usd_left or 0.0) + left
        return shares, usd_left


def _endpoint(model: str, address: str) -> Endpoint:
    """Names a model without its parameters, which may hold paths, and an endpoint by its host.

    >>> _endpoint("sim:balanced?fail=0.5", "")
    Endpoint(provider='sim', model='sim:balanced', endpoint='')
    >>> _endpoint("openai:gpt-5.2", "https://api.openai.com/v1").endpoint
    'api.openai.com'
    """
    provider, _, name = model.partition("?")[0].partition(":")
    name = name.rpartition("/")[2] if provider == "local" else name  # it may be a path
    host = urlsplit(address).netloc.rpartition("@")[2]
    return Endpoint(provider, f"{provider}:{name}"[:LONGEST], host[:LONGEST])
