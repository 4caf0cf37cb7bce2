"""Other limits for a live run: calls that wait already keep to them, alone or among others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from judge_gym.engine.asking import Asker
from judge_gym.engine.metering import Meters
from judge_gym.engine.tallying import Tally
from judge_gym.models.registry import Registry
from judge_gym.models.serving import SimulatedServer, serve
from judge_gym.store import Payer, Store
from workers import questions, write_entry

CALLS = 200
FLYING = 4
LATENCY = 0.05


async def retuned(store: Store, folder: Path, server: SimulatedServer) -> list[int]:
    """Requests that were made when limits were set, a while after each, and at the end."""
    leases = store.leases("anybody")
    asker = Asker(store.ledger, Registry(folder), Meters(store, leases), leases=leases)
    asked = questions("retuned", CALLS)
    work = asyncio.create_task(asker.ask(asked, Payer(1, "small", "tag", "scorer"), Tally()))
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
