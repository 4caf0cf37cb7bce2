"""Usage: sums over the attempts in the ledger, and running totals."""

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.store import tables as t
from judge_gym.store.database import Database
from judge_gym.store.in_flight import InFlight

USAGE_BY = ("study", "tag", "stage", "model", "day")
USAGE_COLUMNS = (*USAGE_BY, "provider")
"""What usage can be grouped by; a model's name begins with its provider."""
RECENT = 5_000
"""The newest attempts of a lab, of which rates and last errors are read."""
PACE_CALLS = 300
"""The newest calls by which a model's pace is measured."""
FEW_ANSWERS = 10
"""Fewer answers do not tell a model's pace."""
KEY = (*USAGE_BY, "imported")
Key = tuple[Any, ...]


class Speed(NamedTuple):
    """How fast a model answered."""

    seconds: float
    """Of one answer."""
    in_flight: float
    """Calls that its endpoint answered at the same time, on average."""


class Usage:
    """Adds up the cost of attempts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(
        self,
        *,
        by: Sequence[str] = USAGE_BY,
        study: str | None = None,
        tag: str | None = None,
        run: int | None = None,
    ) -> list[dict[str, Any]]:
        """Returns sums by some of `USAGE_COLUMNS`, with imported attempts apart."""
        stored = ["model" if name == "provider" else name for name in by]
        a, query = t.attempts.c, usage_query([*dict.fromkeys(stored)])
        for column, value in ((a.study, study), (a.tag, tag), (a.run_id, run)):
            if value is not None:
                query = query.where(column == value)
        rows = self._database.rows(query)
        return _by_provider(rows, by) if "provider" in by else rows

    def last_attempt(self) -> int:
        """Returns the id of the newest attempt of all, or 0."""
        return self._database.scalar(sa.select(sa.func.max(t.attempts.c.id))) or 0

    def paid(
        self, payer: str | int, after: int, until: int | None = None
    ) -> tuple[int, int, float, int]:
        """Returns what a study or a run paid: calls, tokens, US dollars, and the last attempt's id.

        Only attempts with an id above `after` and up to `until` count.
        """
        a = t.attempts.c
        tokens = sa.func.coalesce(a.input_tokens, 0) + sa.func.coalesce(a.output_tokens, 0)
        sent = sa.case((a.unsent.is_(True), 0), else_=1)
        sums = [sa.func.sum(sent), sa.func.sum(tokens), sa.func.sum(a.usd), sa.func.max(a.id)]
        of = a.study if isinstance(payer, str) else a.run_id
        query = sa.select(*sums).where(of == payer, a.run_id.is_not(None), a.id > after)
        if until is not None:
            query = query.where(a.id <= until)
        calls, tokens_paid, usd, last = self._database.first(query)
        return calls or 0, int(tokens_paid or 0), usd or 0.0, last or after

    def by_model(self, study: str) -> list[dict[str, Any]]:
        """Returns what each model answered in a study, what is in flight, and its last error.

        The last minute and the error are those of the newest attempts of the lab.
        """
        a, newest = t.attempts.c, self.last_attempt() - RECENT
        since = datetime.now(UTC) - timedelta(minutes=1)
        minute = sa.case((sa.and_(a.completed, a.at >= since), 1), else_=0)
        recent = (
            sa.select(t.calls.c.model, sa.func.sum(minute), sa.func.max(a.id).filter(~a.completed))
            .join(t.calls, t.calls.c.id == a.call_id)
            .where(a.study == study, a.run_id.is_not(None), a.id > newest)
            .group_by(t.calls.c.model)
        )
        with self._database.read() as connection:
            seen = {model: rest for model, *rest in connection.execute(recent)}
            failed = [id for _, id in seen.values() if id is not None]
            query = sa.select(a.id, a.error).where(a.id.in_(failed))
            errors = {id: error for id, error in connection.execute(query)} if failed else {}
        rows = [row for row in self.rows(by=["model"], study=study) if not row["imported"]]
        in_flight = InFlight(self._database).of_study(study)
        totals = {model: {"attempts": 0, "calls": 0} for model in in_flight}
        totals |= {row["model"]: row for row in rows}
        return [
            {
                "model": model,
                "paid": row["attempts"],
                "answered": row["calls"],
                "in_flight": in_flight[model],
                "last_minute": (seen.get(model) or (0, None))[0],
                "last_error": errors.get((seen.get(model) or (0, None))[1]),
            }
            for model, row in totals.items()
        ]

    def speed(self, model: str, endpoint: str) -> Speed | None:
        """Returns the speed of a model's newest answers; None where there are too few to say.

        Models at one endpoint share what it does at once, so that calls in flight are those to the
        endpoint. Without an address, it is that of the model's provider.
        """
        c, a = t.calls.c, t.attempts.c
        newest = sa.select(c.id).where(c.model == model, c.endpoint == endpoint)
        newest = newest.order_by(c.id.desc()).limit(PACE_CALLS)
        completed = sa.select(a.at, a.seconds).where(a.completed, a.run_id.is_not(None))
        spans = _spans(self._database.rows(completed.where(a.call_id.in_(newest))))
        if len(spans) < FEW_ANSWERS:
            return None
        provider = c.model.startswith(f"{model.partition(':')[0]}:", autoescape=True)
        since = datetime.fromtimestamp(min(begin for begin, _ in spans), UTC)
        nearby = completed.join(t.calls, c.id == a.call_id).where(
            c.endpoint == endpoint, sa.true() if endpoint else provider, a.at >= since
        )
        newest_first = nearby.order_by(a.id.desc()).limit(RECENT)
        every = _spans(self._database.rows(newest_first))
        busy, until = 0.0, float("-inf")
        for begin, end in sorted(every):
            busy += max(0.0, end - max(until, begin))
            until = max(until, end)
        seconds = sum(end - begin for begin, end in spans) / len(spans)
        in_flight = sum(end - begin for begin, end in every) / busy if busy else 1.0
        return Speed(seconds, max(1.0, in_flight))

    def asks(self, study: str) -> dict[str, int]:
        """Returns how many calls for rubrics a study made, and how many of them were re-asks."""
        a = t.attempts.c
        query = sa.select(
            sa.func.count(), sa.func.sum(sa.case((t.calls.c.ask > 0, 1), else_=0))
        ).join(t.calls, t.calls.c.id == a.call_id)
        asks, again = self._database.first(query.where(a.study == study, a.stage == "rubricer"))
        return {"asked": asks, "again": again or 0}


def _spans(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Returns when each attempt began and ended."""
    ends = ((row["at"].timestamp(), row["seconds"]) for row in rows)
    return [(end - seconds, end) for end, seconds in ends]


class UsageTotals:
    """Keeps sums by study, tag, stage, model and day; each call reads only new attempts."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._rows: dict[Key, dict[str, Any]] = {}
        self._last = self._count = 0

    def rows(self) -> list[dict[str, Any]]:
        """Returns the sums by all of `USAGE_BY`, with the number of calls without a price."""
        a = t.attempts.c
        unpriced = sa.case((sa.and_(a.completed, a.usd.is_(None)), 1), else_=0)
        with self._lock, self._database.read() as connection:
            known = sa.select(sa.func.count()).select_from(t.attempts).where(a.id <= self._last)
            if connection.scalar(known) != self._count:  # some were deleted
                self._rows, self._last, self._count = {}, 0, 0
            ends = sa.select(sa.func.max(a.id), sa.func.count()).where(a.id > self._last)
            last, count = connection.execute(ends).one()
            if count:
                query = usage_query(USAGE_BY).add_columns(sa.func.sum(unpriced).label("unpriced"))
                new = query.where(a.id > self._last, a.id <= last)
                for row in connection.execute(new).mappings():
                    key = tuple(row[name] for name in KEY)
                    before = self._rows.get(key)
                    self._rows[key] = add_rows([before, row]) if before else dict(row)
                self._last, self._count = last, self._count + count
            return [dict(row) for row in self._rows.values()]


def usage_query(by: Sequence[str]) -> sa.Select[Any]:
    """Returns the query of sums over attempts by some of `USAGE_BY`."""
    a = t.attempts.c
    columns = {**a, "model": t.calls.c.model, "day": sa.cast(sa.func.date(a.at), sa.String)}
    sums_by = [columns[name].label(name) for name in by]
    sums_by.append(a.run_id.is_(None).label("imported"))
    query = sa.select(
        *sums_by,
        sa.func.count().label("attempts"),
        sa.func.sum(sa.case((a.completed, 1), else_=0)).label("calls"),
        sa.func.sum(a.input_tokens).label("input_tokens"),
        sa.func.sum(a.cached_tokens).label("cached_tokens"),
        sa.func.sum(a.output_tokens).label("output_tokens"),
        sa.func.sum(a.usd).label("usd"),
        sa.func.sum(a.seconds).label("seconds"),
    ).join(t.calls, t.calls.c.id == a.call_id)
    return query.group_by(*sums_by).order_by(*sums_by)


def _by_provider(rows: Sequence[dict[str, Any]], by: Sequence[str]) -> list[dict[str, Any]]:
    """Returns rows by model as sums by provider, beside the other columns of `by`."""
    groups: dict[Key, list[dict[str, Any]]] = {}
    for row in rows:
        named = {**row, "provider": row["model"].partition(":")[0]}
        sums = {name: value for name, value in row.items() if name not in USAGE_COLUMNS}
        group = {name: named[name] for name in by}
        groups.setdefault((*group.values(), row["imported"]), []).append({**group, **sums})
    return [add_rows(groups[key]) for key in sorted(groups, key=str)]


def add_rows(rows: Sequence[Any]) -> dict[str, Any]:
    """Returns the sum of rows: known values are added, and the keys are those of the first."""
    total = dict(rows[0])
    for row in rows[1:]:
        for name, value in row.items():
            if name not in (*KEY, "provider") and value is not None:
                total[name] = value if total[name] is None else total[name] + value
    return total
