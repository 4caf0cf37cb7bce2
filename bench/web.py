"""Measures the served lab: `python bench/web.py`.

First, how long a page of 100 out of 1,000 experiments takes, beside asking for the progress of each
of the 100 by itself. Then, whether readers slow down a run: a latency-bound run is carried out by
the lab's own worker, in turns with one watcher and with 40 requests a second and 20 live watchers;
the ratio of the medians is what reading costs.
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import yaml

from judge_gym.axes import Design
from judge_gym.lab import Lab
from judge_gym.models.simulated.server import SimulatedServer
from judge_gym.models.simulated.server import serve as serve_judges
from judge_gym.records import (
    Completion,
    Display,
    Draw,
    Evidence,
    Message,
    OrdinalRubric,
    Pool,
    Request,
    RubricStage,
    Sample,
)
from judge_gym.store import Attempt, Payer, Store, Targets
from judge_gym.studies import Experiment, Task
from judge_gym.web import serve
from judge_gym.web.app import Address

RATE = 40
WATCHERS = 20
LATENCY = 0.25
PATHS = ("/api/experiments", "/api/samples?target={tag}&limit=100", "/", "/experiments/{tag}")


LISTED = 1000
SAMPLES = 60


def fill(store: Store) -> list[str]:
    """Writes experiments with a finished run each; returns their tags."""
    pool = store.evidence.save_pool(Pool(tuple(Evidence(f"t{n}", f"text {n}") for n in range(20))))
    payer = Payer(1, "bench", "bench", "scorer")
    request = Request("sim:x", (Message("user", ("?",)),), Draw("0", 0))
    answer = Completion("VERDICT: A", "stop", "sim:x", 1, 1, 0.0)
    key = request.key("")
    [call] = store.ledger.record([Attempt(key, request, "", payer, 0.1, answer)])
    stages = tuple(RubricStage(f"Stage {n}", ("a",)) for n in range(1, 5))
    rubric = OrdinalRubric(stages, "provided", "c", "")
    rubric = replace(rubric, id=store.rubrics.save_given(rubric).id)
    shown = Display(tuple("ABCD"), (1, 2, 3, 4))
    tags = []
    for number in range(LISTED):
        task = Task("ecc", f"concept {number}", "here", pool, rubric)
        design = Design.of({"judge.model": "sim:x", "rubric.author": "provided"})
        experiment = Experiment(f"bench/{number:04}", task, design, 0)
        store.experiments.save(experiment, "bench")
        targets = Targets(SAMPLES // len(pool.items), (), False, 0.05)
        run = store.runs.save(experiment, "bench", "0", targets, makers=(None, None))
        store.runs.link_rubric(run, rubric.id, is_swap=False)
        places = itertools.product(pool.items, range(targets.samples))
        samples = [
            Sample(rubric, item, replicate, shown, "scored", (1,), call_id=call.call_id)
            for item, replicate in places
        ]
        store.verdicts.save_samples(run, samples)
        store.events.record([run.id], "ended")
        tags.append(experiment.tag)
    return tags


def listing(folder: Path) -> None:
    """Prints how long a page of experiments takes."""
    with Lab.open(f"sqlite:///{folder / 'listed.db'}") as lab, serve(lab, port=0) as at:
        tags = fill(lab.store)[:100]
        headers = {"Authorization": f"Bearer {at.token}"}
        with httpx.Client(base_url=at.url, headers=headers, timeout=60) as client:

            def page() -> None:
                body = client.get("/api/experiments", params={"limit": 100}).json()
                assert len(json.dumps(body)) > 100 * 100, body

            def one_by_one() -> None:
                for tag in tags:
                    lab.store.progress.of_tag(tag)

            took = {
                ask: statistics.median(_timed(ask) for _ in range(15)) for ask in (page, one_by_one)
            }
    print(
        f"100 of {LISTED:,} experiments: /api/experiments {took[page]:.3f} s; the progress of each "
        f"by itself {took[one_by_one]:.3f} s"
    )


def _timed(ask: Callable[[], None]) -> float:
    began = time.monotonic()
    ask()
    return time.monotonic() - began


async def run(
    at: Address, study: dict[str, object], loaded: bool
) -> tuple[float, list[float], int]:
    """Seconds of a run, of each request meanwhile, and how many failed."""
    headers = {"Authorization": f"Bearer {at.token}"}
    took: list[float] = []
    bad = 0
    async with httpx.AsyncClient(
        base_url=at.url, headers=headers, timeout=60, limits=httpx.Limits(max_connections=200)
    ) as client:

        async def watch() -> None:
            query = {"target": str(study["study"])}
            async with client.stream("GET", "/api/events", params=query, timeout=None) as events:
                async for line in events.aiter_lines():
                    if line.startswith("event: end"):
                        return

        async def ask(path: str) -> None:
            nonlocal bad
            began = time.monotonic()
            bad += (await client.get(path)).status_code != 200
            took.append(time.monotonic() - began)

        began = time.monotonic()
        started = await client.post("/api/runs", json={"study": yaml.safe_dump(study)})
        tag = started.raise_for_status().json()["started"][0]
        watchers = [asyncio.create_task(watch()) for _ in range(WATCHERS if loaded else 1)]
        asked: list[asyncio.Task[None]] = []
        while not all(one.done() for one in watchers):
            if loaded:
                path = PATHS[len(asked) % len(PATHS)].format(tag=tag)
                asked.append(asyncio.create_task(ask(path)))
            await asyncio.sleep(1 / RATE)
        seconds = time.monotonic() - began
        await asyncio.gather(*asked, *watchers)
    return seconds, sorted(took), bad


def main() -> None:
    """Measure, and print a line a run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="0 measures the listing only")
    rounds = parser.parse_args().rounds
    folder = Path(tempfile.mkdtemp(prefix="judge-gym-web-"))
    os.chdir(folder)
    listing(folder)
    if not rounds:
        return
    lines = [json.dumps({"title": f"t{n}", "text": f"Decree number {n}."}) for n in range(40)]
    (folder / "news.jsonl").write_text("\n".join(lines))
    with serve_judges(SimulatedServer(latency=LATENCY), "127.0.0.1", 0) as url:
        entry = f'[endpoints.slow]\nbase_url = "{url}"\nconcurrency = 8\n'
        (folder / "judge-gym.models.toml").write_text(entry)
        seconds: dict[bool, list[float]] = {False: [], True: []}
        with Lab.open(f"sqlite:///{folder / 'lab.db'}") as lab, serve(lab, port=0) as at:
            for number in range(2 * rounds):
                loaded = bool(number % 2)
                study: dict[str, object] = {
                    "study": f"round-{number}",
                    "seed": number,
                    "samples": 5,
                    "probe": False,
                    "evidence": {
                        "here": {"files": "news.jsonl", "window": {"country": "Valdoria"}}
                    },
                    "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "here"}],
                    "judges": ["slow:balanced"],
                    "design": {"evidence.view": "raw", "rubric.critic": "sim:critic"},
                }
                took, asked, bad = asyncio.run(run(at, study, loaded))
                seconds[loaded].append(took)
                line = f"{'watched' if loaded else 'alone':8} {took:6.1f} s"
                if asked:
                    middle, late = (asked[int(part * (len(asked) - 1))] for part in (0.5, 0.95))
                    line += f"  {len(asked)} requests, {bad} failed, "
                    line += f"half within {middle:.3f} s, 95 % within {late:.3f} s"
                print(line, flush=True)
    ratio = statistics.median(seconds[True]) / statistics.median(seconds[False])
    print(f"a run that is watched takes {ratio:.2f} times as long")


if __name__ == "__main__":
    main()
