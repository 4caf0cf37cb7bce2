"""Other limits for a live run, or its end: calls that wait already take note of it."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from judge_gym.engine.calls.ask import Asker
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.orders import Paused
from judge_gym.errors import BudgetError
from judge_gym.models.registry import Registry
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.store import Payer, Store
from postgres import EACH_DATABASE
from workers import questions, write_entry

CALLS = 200
FLYING = 4
LATENCY = 0.05


def asking(store: Store, folder: Path) -> tuple[Asker, asyncio.Task[Any]]:
    """An asker at work."""
    leases = store.leases("anybody")
    asker = Asker(store.ledger, Registry(folder), Meters(store, leases), leases=leases)
    work = asker.ask(questions("many", CALLS), Payer(1, "small", "tag", "scorer"), RunProgress())
    return asker, asyncio.create_task(work)


async def retuned(store: Store, folder: Path, server: SimulatedServer) -> tuple[int, int, float]:
    """Requests that were made when a low limit was set and when it was lifted, seconds later."""
    asker, work = asking(store, folder)
    while not (before := sum(server._outcomes.values())):
        await asyncio.sleep(0.01)
    began = time.monotonic()
    asker.retune({"limits": {"rpm": 60}})
    await asyncio.sleep(2.0)
    slow, seconds = sum(server._outcomes.values()), time.monotonic() - began
    asker.retune({"limits": {"rpm": 60_000}})
    await asyncio.wait_for(work, 120)
    return before, slow, seconds


@pytest.mark.parametrize("store", EACH_DATABASE, indirect=True)
def test_calls_that_wait_keep_to_limits_that_are_set_meanwhile(
    store: Store, tmp_path: Path
) -> None:
    server = SimulatedServer(latency=LATENCY)
    with serve(server) as url:
        write_entry(tmp_path, url, f"concurrency = {FLYING}")
        before, slow, seconds = asyncio.run(retuned(store, tmp_path, server))
    assert slow - before <= FLYING + 3 + seconds  # about one a second, beside those in flight
    assert sum(server._outcomes.values()) == CALLS


@pytest.mark.parametrize("store", EACH_DATABASE, indirect=True)
@pytest.mark.parametrize("why", ["paused", "over budget"])
def test_calls_that_wait_for_a_low_limit_end_soon_where_their_run_does(
    store: Store, tmp_path: Path, why: str
) -> None:
    async def ended() -> None:
        asker, work = asking(store, tmp_path)
        while not server._outcomes:
            await asyncio.sleep(0.01)
        if why == "paused":
            asker.hold(1, Paused("paused"))
        with pytest.raises(Paused if why == "paused" else BudgetError):
            await asyncio.wait_for(work, 60)  # at two a second all would take more than that

    store.studies.save("small", {"calls": 1000 if why == "paused" else 5})
    server = SimulatedServer()
    with serve(server) as url:
        write_entry(tmp_path, url, f"concurrency = {FLYING}\nrpm = 120")
        asyncio.run(ended())
    assert sum(server._outcomes.values()) <= 5
