"""What durability costs, and how large runs grow: `python bench/durability.py`.

The same shards, carried out by DBOS's queue and in a bare loop over the ledger, in turns; then runs
of ten times the samples, each in a process of its own, with its most memory, the time of `status`
at the end and the size of the database.
"""

import argparse
import asyncio
import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import sqlalchemy as sa
from rig import laboratory

import postgres
from judge_gym.engine import RunOptions
from judge_gym.engine.calls.ask import Asker
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.orders import WorkOrder
from judge_gym.engine.steps import StudySteps, shown_texts
from judge_gym.engine.workflow import perform
from judge_gym.lab import Lab
from judge_gym.lab.prepare import PreparedStudy

JUDGE = "sim:balanced"
ROUNDS = 3
HEADS = (
    "database",
    "samples",
    "wall s",
    "ms per sample",
    "CPU ms per sample",
    "most MiB",
    "status ms",
    "bytes per sample",
)


def durable(lab: Lab, prepared: PreparedStudy) -> None:
    """As the product does it."""
    lab.runs.run(prepared)


def bare(lab: Lab, prepared: PreparedStudy) -> None:
    """The shards of the run in a plain loop, eight side by side."""
    _, [run], _ = lab.runs._stored(prepared, RunOptions())
    asyncio.run(_shards(lab, run.id, run.experiment.tag))


async def _shards(lab: Lab, run_id: int, tag: str) -> None:
    run = lab.store.runs.find(run_id, tag)
    asker = Asker(lab.store.ledger, lab.models, Meters(lab.store))
    order, progress = WorkOrder(run_id, tag, ("rubric", "score")), RunProgress()
    texts = partial(shown_texts, lab.store, run)
    steps = StudySteps(lab.store, asker, run, texts, order, progress)
    await perform(steps, "rubric", [])
    left = iter(steps.shards("score"))

    async def work() -> None:
        for shard in left:
            await perform(steps, "score", shard)

    await asyncio.gather(*(work() for _ in range(8)))


def cpu_of(way: str, samples: int) -> float:
    """Seconds of CPU of a fresh run."""
    with laboratory(JUDGE, samples) as (lab, prepared):
        before = time.process_time()
        {"durable": durable, "bare": bare}[way](lab, prepared)
        cpu = time.process_time() - before
        assert len(lab.experiments.samples("bench")) == samples
    return cpu


def grown(samples: int, database: str) -> str:
    """A line of the second table."""
    with laboratory(JUDGE, samples, database=database) as (lab, prepared):
        start, cpu = time.perf_counter(), time.process_time()
        lab.runs.run(prepared)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        lab.list_experiments(study="bench")
        status = time.perf_counter() - start
        size = _size(lab)
    cells = (
        lab.store.database.engine.dialect.name,
        f"{samples:,}",
        f"{wall:.1f}",
        f"{wall / samples * 1000:.2f}",
        f"{cpu / samples * 1000:.2f}",
        f"{memory / 1024:.0f}",
        f"{status * 1000:.0f}",
        f"{size / samples:.0f}",
    )
    return " ".join(f"{cell:>17}" for cell in cells)


def _size(lab: Lab) -> int:
    """Bytes of the lab's database, with the queue's."""
    if lab.store.database.file is not None:
        return Path("lab.db").stat().st_size + Path("lab.dbos.db").stat().st_size
    with lab.store.database.read() as connection:
        return int(connection.scalar(sa.text("SELECT pg_database_size(current_database())")) or 0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000, help="of the largest run")
    largest = parser.parse_args().samples
    few = max(1_000, largest // 10)
    best = {"bare": float("inf"), "durable": float("inf")}
    for _ in range(ROUNDS):
        for way in best:
            best[way] = min(best[way], cpu_of(way, few))
    extra = (best["durable"] - best["bare"]) / few * 1000
    print(f"{few:,} samples; best of {ROUNDS} rounds; CPU ms per sample")
    print(", ".join(f"{way} {cpu / few * 1000:.3f}" for way, cpu in best.items()))
    print(f"durability costs {extra:.3f} ms of CPU per sample\n")
    print(" ".join(f"{head:>17}" for head in HEADS))
    context = multiprocessing.get_context("spawn")
    for samples in (few, largest):
        for database in ("sqlite:///lab.db", postgres.fresh_url()):
            with ProcessPoolExecutor(1, mp_context=context) as alone:
                print(alone.submit(grown, samples, database).result(), flush=True)


if __name__ == "__main__":
    main()
