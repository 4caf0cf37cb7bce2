"""When models are due for another suite run, and what that costs."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from judge_gym.engine.calls.budget import input_tokens
from judge_gym.engine.orders import CODE_TOKENS
from judge_gym.errors import DesignError
from judge_gym.models import Registry
from judge_gym.records.responses import DueRow, SuiteRunRow
from judge_gym.suites import Attempt, Condition, Suite, due, requests

CHECK = "check"
"""The series of the draws of `models check`, which are no attempt of the schedule."""
MONTH = timedelta(days=30)
NO_ESTIMATES: Mapping[str, float | None] = {}


def due_rows(
    registry: Registry,
    runs: Iterable[SuiteRunRow],
    models: Sequence[str],
    *,
    condition: str,
    now: datetime,
    estimates: Mapping[str, float | None] = NO_ESTIMATES,
) -> list[DueRow]:
    """Lists when each model is due given the runs of a suite, those that are due first.

    Only runs of the whole suite under the condition are attempts: a trial of a few evals does not
    delay the next run. Failed attempts count.

    Args:
        registry: has the dates of models.
        runs: of the suite, perhaps in another lab.
        models: without any, those that were run.
        condition: the name of one.
        now: the time.
        estimates: US dollars per run of models, for those that were never run.
    """
    attempts: dict[str, list[SuiteRunRow]] = {}
    for run in sorted(runs, key=lambda run: run["created"]):
        if run["whole"] and run["condition"] == condition and run["series"] != CHECK:
            attempts.setdefault(run["model"], []).append(run)
    model_ids = dict.fromkeys(models or attempts)
    costs = {model: _last_cost(attempts.get(model, ())) for model in model_ids}
    expected = {
        model: estimates.get(model) if cost is None else cost for model, cost in costs.items()
    }
    due_models = due(
        [
            Attempt(
                model,
                _known_since(registry, model) or _first(attempts.get(model, ())) or now,
                max((run["created"] for run in attempts.get(model, ())), default=None),
                expected[model],
            )
            for model in model_ids
        ],
        now,
    )
    return [
        {
            "model": row.model,
            "condition": condition,
            "due": row.due,
            "due_from": row.due_from,
            "days": row.interval.total_seconds() / 86400,
            "usd": expected[row.model],
            "usd_per_month": _per_month(expected[row.model], row.interval),
            "estimated": costs[row.model] is None,
            "retires": _retires(registry, row.model),
        }
        for row in due_models
    ]


def usd_spent(runs: Iterable[SuiteRunRow], models: Sequence[str], now: datetime) -> float:
    """Sums the US dollars that the runs of some models have cost in the last 30 days."""
    recent = [run for run in runs if run["model"] in models and now - run["created"] < MONTH]
    return sum(run["cost"] or 0.0 for run in recent)


def estimated_cost(
    registry: Registry, suite: Suite, model: str, condition: Condition
) -> float | None:
    """Estimates the US dollars of a run that was never made, None at unknown prices."""
    card = registry.card(model)
    sent = requests(suite, suite.evals, model, condition=condition, series=CHECK)
    prices = [card.price(input_tokens(request), CODE_TOKENS) for request in sent]
    known_prices = [usd for usd in prices if usd is not None]
    return sum(known_prices) if len(known_prices) == len(prices) else None


def _last_cost(runs: Sequence[SuiteRunRow]) -> float | None:
    costs = [run["cost"] for run in runs if run["cost"] is not None]
    return costs[-1] if costs else None


def _first(runs: Sequence[SuiteRunRow]) -> datetime | None:
    return runs[0]["created"] if runs else None


def _per_month(usd: float | None, interval: timedelta) -> float | None:
    return None if usd is None else usd * (MONTH / interval)


def _known_since(registry: Registry, model: str) -> datetime | None:
    try:
        seen = registry.card(model).first_seen
    except DesignError:  # a model of another lab
        return None
    return datetime(seen.year, seen.month, seen.day, tzinfo=UTC) if seen else None


def _retires(registry: Registry, model: str) -> date | None:
    try:
        return registry.card(model).retires
    except DesignError:
        return None
