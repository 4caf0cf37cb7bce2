"""Time and memory of a lab's samples as a tidy frame: `python bench/frames.py`.

A lab is filled with synthetic rows; then each way to read it runs in a process of its own.
"""

import argparse
import multiprocessing
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy as sa

from judge_gym.axes import Design
from judge_gym.lab import Lab
from judge_gym.records import Evidence, OrdinalRubric, Pool, RubricStage
from judge_gym.store import Run, Store, Targets
from judge_gym.store import tables as t
from judge_gym.studies import Experiment, Task

JUDGES = [f"sim:balanced@{noise}" for noise in range(10)]
METHODS = ("single", "subset")
ITEMS = 50
CELLS = len(JUDGES) * len(METHODS) * ITEMS
SIZES = (10_000, 100_000, 1_000_000)
CHUNK = 20_000


# --- a lab with many samples ---------------------------------------------------------------------


def fill(url: str, samples: int) -> None:
    """A study of twenty experiments with that many samples, each probed, and every call paid."""
    store = Store.open(url)
    texts = tuple(Evidence(f"What happened on day {n}", f"Text {n}") for n in range(ITEMS))
    pool = store.evidence.save_pool(Pool(texts))
    truth = {"source": "a table", "value": 0.7, "direction": "down"}
    task = Task("control", "democracy quality", "norvessa", pool, dose=1.0, truth=truth)
    stages = tuple(RubricStage(f"Stage {n}", ("a", "b")) for n in range(1, 5))
    runs = []
    for judge, method in product(JUDGES, METHODS):
        design = Design.of({"judge.model": judge, "verdict.method": method})
        made = Experiment(f"bench/democracy-quality/norvessa/{judge}/{method}", task, design, 3)
        store.experiments.save(made, "bench")
        targets = Targets(samples=samples // CELLS, rivals=(), probe=True, tolerance=0.0)
        run = store.runs.save(made, "bench", "3", targets, makers=("v", "c"))
        rubric = OrdinalRubric(stages, judge, task.concept, "")
        words = {"author": judge, "concept": task.concept, "country": ""}
        store.rubrics.save(judge, rubric, **words, scale=4)
        runs.append((run, store.rubrics.id_of(judge)))
        store.runs.link_rubric(*runs[-1], is_swap=False)
    tables = (t.calls, t.attempts, t.samples, t.probes)
    left = _rows(runs, samples // CELLS)
    while chunk := list(islice(left, CHUNK)):
        with store.database.begin() as connection:
            for table, rows in zip(tables, zip(*chunk, strict=True), strict=True):
                connection.execute(sa.insert(table), list(rows))
    store.close()


def _rows(runs: list[tuple[Run, int]], replicates: int) -> Iterator[tuple[dict[str, Any], ...]]:
    """A call, its attempt, the sample and its probe, one after the other."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    number = 0
    for replicate, (run, rubric_id) in product(range(replicates), runs):
        design = run.experiment.design
        for item in run.experiment.task.pool.items:
            number += 1
            first, last = number % 4 + 1, 4 if design.verdict.method == "subset" else 0
            yield (
                {
                    "id": number, "key": f"{number:064}", "model": design.judge.model,
                    "endpoint": "", "messages": [], "parameters": {}, "schema": None,
                    "series": "3", "draw": replicate, "ask": 0,
                },
                {
                    "id": number, "call_id": number, "run_id": run.id, "study": "bench",
                    "tag": run.experiment.tag, "stage": "scorer", "at": at, "seconds": 1.0,
                    "completed": True, "text": None, "finish": "stop",
                    "reported_model": design.judge.model, "input_tokens": 900,
                    "output_tokens": 90, "usd": 0.001, "error": None, "cached_tokens": 0,
                },
                {
                    "id": number, "run_id": run.id, "rubric_id": rubric_id,
                    "evidence_id": item.id, "replicate": replicate, "flipped": False,
                    "is_swap": False, "status": "scored",
                    "stages": f"{first} {last}" if last > first else f"{first}",
                    "display": "B=4 C=2 A=1 D=3", "call_id": number,
                },
                {
                    "id": number, "sample_id": number, "status": "scored",
                    "probability": number % 100 / 100, "call_id": number, "run_id": run.id,
                },
            )  # fmt: skip


# --- ways to read it -----------------------------------------------------------------------------


def samples(lab: Lab, folder: Path) -> int:
    """The frame as the lab gives it."""
    return len(lab.experiments.samples("bench"))


def tidied(lab: Lab, folder: Path) -> int:
    """The frame as analyses read it."""
    from judge_gym.analysis.frames import tidy

    return len(tidy(lab.experiments.samples("bench")))


def to_csv(lab: Lab, folder: Path) -> int:
    """An exported text."""
    return lab.experiments.export(["bench"], folder / "samples.csv")


def to_parquet(lab: Lab, folder: Path) -> int:
    """An exported table."""
    return lab.experiments.export(["bench"], folder / "samples.parquet", format="parquet")


WAYS = {"samples": samples, "samples + tidy": tidied, "to csv": to_csv, "to parquet": to_parquet}


def measured(way: str, url: str, folder: Path) -> tuple[int, float, float]:
    """The rows, the seconds, and the peak of resident memory in MB."""
    with Lab.open(url) as lab:
        start = time.perf_counter()
        rows = WAYS[way](lab, folder)
        seconds = time.perf_counter() - start
    return rows, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SIZES[-1], help="of the largest lab")
    largest = parser.parse_args().samples
    context = multiprocessing.get_context("spawn")
    print(f"{'samples':>10} {'way':>16} {'seconds':>9} {'peak MB':>9}")
    for size in [size for size in SIZES if size < largest] + [largest]:
        with TemporaryDirectory() as name:
            folder = Path(name)
            url = f"sqlite:///{folder / 'lab.db'}"
            fill(url, size)
            for way in WAYS:
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    rows, seconds, peak = pool.submit(measured, way, url, folder).result()
                print(f"{rows:10,} {way:>16} {seconds:9.2f} {peak:9.0f}", flush=True)


if __name__ == "__main__":
    main()
