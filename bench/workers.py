"""How whole workers share a study and an endpoint's limit, on Postgres: `python bench/workers.py`.

One, two and four `judge-gym worker` carry out a study; the server enforces the limit and has nearly
none of its first minute's allowance left, so that every call too many is refused. One worker has 64
calls in flight, each of a second, so that two stay below the limit and four would not. In the last
line one of four is killed when a third is done.

`python bench/workers.py --slots 100` measures a limit of calls in flight instead.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psycopg
import sqlalchemy as sa

import postgres
from commands import WORDS, Bench, Process, wait, write_study
from judge_gym.engine.calls.limit import CONCURRENCY
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.store import tables

RPM = 9000
LATENCY = 1.0
SLOT_LATENCY = 1.0
"""Seconds of a call where the calls in flight are limited."""
SETTLED = (0.2, 0.5)
"""The part of a run, by calls, in which all workers are busy."""
OTHERS = len(WORDS) + 2
"""Calls before the first score: a view of each text, a rubric and what a critic says of it."""
HEADS = (
    "workers",
    "calls",
    "seconds",
    "calls/s",
    "of the limit",
    "429s",
    "asked again",
    "answered twice",
    "shards of each",
)


def measured(count: int, samples: int, *, kill: bool = False, slots: int | None = None) -> str:
    """What so many workers make of a study, within a rate or with so many calls in flight."""
    if slots is None:
        server, limit = SimulatedServer(rpm=RPM, latency=LATENCY), f"rpm = {RPM}"
        server._requests.take(RPM * 59 / 60)
    else:
        server, limit = SimulatedServer(latency=SLOT_LATENCY), f"concurrency = {slots}"
    folder = Path(tempfile.mkdtemp(prefix="judge-gym-workers-"))
    with serve(server) as url:
        bench = Bench(folder, postgres.fresh_url(), url)
        try:
            entry = f'[endpoints.lab]\nbase_url = "{url}"\nseed = true\n{limit}\n'
            (folder / "judge-gym.models.toml").write_text(entry)
            study = write_study(
                folder, judges=["lab:balanced"], samples=samples, swap="none", probe=False
            )
            workers = [bench.start("worker") for _ in range(count)]
            for worker in workers:
                _ready(worker)
            bench.call("start", study)
            calls = OTHERS + len(WORDS) * samples
            if kill:
                bench.wait_for(calls // 3, *workers)
                workers[0].kill()
                workers[0].communicate()
            _wait(bench, calls, workers[kill:])
            return _line(bench, server, f"{count}, one killed" if kill else str(count), slots)
        finally:
            bench.close()


def _ready(worker: Process) -> None:
    assert worker.stderr is not None
    while "is ready" not in worker.stderr.readline():
        assert worker.poll() is None


def _wait(bench: Bench, calls: int, workers: list[Process]) -> None:
    while True:  # longer than a test would
        try:
            wait(lambda: bench.attempts() >= calls, *workers)
            wait(lambda: bench.statuses() == {"complete"}, *workers)
            return
        except AssertionError:
            if any(worker.poll() is not None for worker in workers):
                raise


def _line(bench: Bench, server: SimulatedServer, who: str, slots: int | None) -> str:
    a = tables.attempts.c
    with bench.store.database.read() as connection:
        rows = connection.execute(sa.select(a.at, a.seconds).where(a.stage == "scorer")).all()
    began = sorted(at.timestamp() - took for at, took in rows)
    first, last = (int(share * len(began)) for share in SETTLED)
    rate = (last - first) / (began[last] - began[first])
    stats = bench.stats()
    with psycopg.connect(bench.database) as queue:
        query = (
            b"SELECT count(*) FROM dbos.workflow_status WHERE name = 'shard' GROUP BY executor_id"
        )
        shards = sorted((int(row[0]) for row in queue.execute(query)), reverse=True)
    cells = (
        who,
        str(len(began)),
        f"{began[-1] - began[0]:.1f}",
        f"{rate:.1f}",
        f"{rate / (slots / SLOT_LATENCY if slots else RPM / 60):.1%}",
        str(server._outcomes["429"]),
        str(stats["requests"] - stats["bodies"]["distinct"]),
        str(bench.answered_twice()),
        "/".join(map(str, shards)),
    )
    return " ".join(f"{cell:>14}" for cell in cells)


def main() -> None:
    """Measure each number of workers and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000, help="of each text, by default 1000")
    parser.add_argument("--slots", type=int, help="calls in flight, in place of a rate")
    given = parser.parse_args()
    rounds = [(1, False), (2, False), (4, False), (4, True)]
    if given.slots:
        rounds.pop()
        print(f"limit {given.slots} calls in flight, {SLOT_LATENCY:g} s each")
    else:
        rate = f"{RPM / 60:.0f} calls/s"
        print(f"limit {rate}; {CONCURRENCY} in flight to a worker, {LATENCY:g} s each")
    print(" ".join(f"{head:>14}" for head in HEADS))
    start = time.monotonic()
    for count, kill in rounds:
        print(measured(count, given.samples, kill=kill, slots=given.slots), flush=True)
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
