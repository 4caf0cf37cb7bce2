"""Other limits for a live run, or its end: calls that wait already take note of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from judge_gym.engine.asking import Asker
from judge_gym.engine.metering import Meters
from judge_gym.engine.orders import Paused
from judge_gym.engine.tallying import Tally
from judge_gym.errors import BudgetError
from judge_gym.models.registry import Registry
from judge_gym.models.serving import SimulatedServer, serve
from judge_gym.store import Payer, Store
from workers import questions, write_entry

CALLS = 200
FLYING = 4
LATENCY = 0.05


def asking(store: Store, folder: Path) -> tuple[Asker, asyncio.Task[Any]]:
    """An asker at work."""
    leases = store.leases("anybody")
    asker = Asker(store.ledger, Registry(folder), Meters(store, leases), leases=leases)
    work = asker.ask(questions("many", CALLS), Payer(1, "small", "tag", "scorer"), Tally())
    return asker, asyncio.create_task(work)


async def retuned(store: Store, folder: Path, server: SimulatedServer) -> list[int]:
    """Requests that were made when limits were set, a while after each, and at the end."""
    asker, work = asking(store, folder)
    seen = []

    async def after(seconds: float, limits: dict[str, Any]) -> None:
        await asyncio.sleep(seconds)
        seen.append(sum(server._outcomes.values()))
        asker.retune({"limits": limits})

    await after(0.5, {"rpm": 60})
    await after(2.0, {"rpm": 60_000})
    await asyncio.wait_for(work, 30)
    return [*seen, sum(server._outcomes.values())]


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_calls_that_wait_keep_to_limits_that_are_set_meanwhile(
    store: Store, tmp_path: Path
) -> None:
    server = SimulatedServer(latency=LATENCY)
    with serve(server) as url:
        write_entry(tmp_path, url, f"concurrency = {FLYING}")
        before, slow, end = asyncio.run(retuned(store, tmp_path, server))
    assert 0 < before < CALLS / 2
    assert before <= slow <= before + FLYING + 5  # about one a second, beside those in flight
    assert end == CALLS


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("why", ["paused", "over budget"])
def test_calls_that_wait_for_a_low_limit_end_soon_where_their_run_does(
    store: Store, tmp_path: Path, why: str
) -> None:
    async def ended() -> None:
        asker, work = asking(store, tmp_path)
        await asyncio.sleep(0.5)
        if why == "paused":
            asker.hold(1, Paused("paused"))
        with pytest.raises(Paused if why == "paused" else BudgetError):
            await asyncio.wait_for(work, 20)  # at two a second all would take more than a minute

    store.runs.save_budget("small", {"calls": 1000 if why == "paused" else 5})
    server = SimulatedServer()
    with serve(server) as url:
        write_entry(tmp_path, url, f"concurrency = {FLYING}\nrpm = 120")
        asyncio.run(ended())
    assert sum(server._outcomes.values()) <= 5
