"""A made-up suite run whose every result is known, posted to a lab over HTTP."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from judge_gym.client import Client
from judge_gym.lab import Lab
from judge_gym.records.outcomes import EvalResult
from judge_gym.store.tables import suite_results
from judge_gym.suites import CONDITIONS
from made_runs import RESULTS, SOURCES, source

SUITE, VERSION, MODEL = "made-up", "b2c4e6a8", "sim:coder-hasty"
BEGUN = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATHS = sorted(result.path for result in RESULTS)


def post_tasks(client: Client, **changes: Any) -> None:
    """The files of every eval."""
    sources = [SOURCES.get(result.path, source(result)) for result in RESULTS]
    client.suites.save_tasks(SUITE, VERSION, [{**asdict(one), **changes} for one in sources])


def post_run(client: Client, **changes: Any) -> int:
    """A run over the whole suite, without results; its number."""
    run: dict[str, Any] = {
        "suite": SUITE,
        "version": VERSION,
        "model": MODEL,
        "condition": "default",
        "settings": CONDITIONS["default"].key,
        "series": "0",
        "replicates": 1,
        "evals": PATHS,
        "created": BEGUN,
    }
    return client.suites.save_run(**{**run, **changes})


def made_at(number: int) -> datetime:
    """When a result was made."""
    return BEGUN + timedelta(seconds=number)


def post_eval(client: Client, run: int, result: EvalResult, at: datetime) -> int:
    """A result that was made at a time; its number."""
    fields = {name: value for name, value in asdict(result).items() if name != "call_id"}
    return client.suites.save_eval(run, at=at, **fields)


def post_results(client: Client, run: int, results: tuple[EvalResult, ...] = RESULTS) -> list[int]:
    """Results, a second apart; their numbers."""
    return [post_eval(client, run, one, made_at(n)) for n, one in enumerate(results)]


def post(client: Client, **changes: Any) -> int:
    """Tasks, run and results; the run's number."""
    post_tasks(client)
    run = post_run(client, **changes)
    post_results(client, run)
    return run


def rows_in(lab: Lab) -> int:
    """How many results are on record, whatever they are."""
    with lab.store.database.read() as connection:
        count = sa.select(sa.func.count()).select_from(suite_results)
        return connection.execute(count).scalar_one()
