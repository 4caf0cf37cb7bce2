"""What benchmarks share: simulated judges in a process of their own, and labs that ask them."""

import asyncio
import itertools
import json
import multiprocessing
import random
import re
import shutil
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from judge_gym import demo
from judge_gym.lab import Lab
from judge_gym.lab.prepare import PreparedStudy
from judge_gym.models.model_card import Limits
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.records import Request
from judge_gym.stages import Scorer, ScoreTarget

DEMO = Path(demo.__path__[0])
ITEMS = 50
"""Texts in the pool of a study; its samples are replicates of them."""
CHARACTERS, LINE = 3_000, 100
"""Of a text, and of one that is cut to a line."""


# --- simulated judges ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Served:
    """Simulated judges behind HTTP."""

    url: str
    _told: Connection

    def cpu(self) -> float:
        """Seconds of CPU that the server has taken."""
        self._told.send("how much?")
        return float(self._told.recv())

    def stats(self) -> dict[str, Any]:
        """How requests ended, as the server counts them."""
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/stats") as answer:
            return dict(json.load(answer))


@contextmanager
def served(**options: Any) -> Iterator[Served]:
    """Serve simulated judges in a process of their own; options are those of the server."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, options), daemon=True)
    process.start()
    yield Served(ours.recv(), ours)
    ours.send(None)
    process.join()


def _serve(told: Connection, options: dict[str, Any]) -> None:
    with serve(SimulatedServer(**options)) as url:
        told.send(url)
        while told.recv() is not None:
            told.send(time.process_time())


# --- labs ----------------------------------------------------------------------------------------


@contextmanager
def laboratory(
    judge: str,
    samples: int,
    *,
    url: str = "",
    entry: str = "",
    limits: Limits | None = None,
    brief: bool = False,
    database: str = "sqlite:///lab.db",
) -> Iterator[tuple[Lab, PreparedStudy]]:
    """A fresh lab, and a study of so many samples that takes one call for each.

    Args:
        judge: who judges; `lab:` is the endpoint at the URL.
        samples: how many, in whole replicates of the pool.
        url: of the simulated judges.
        entry: further lines of the endpoint's entry in the registry file.
        limits: over those of the registry.
        brief: ask in few words: a line of a text, two lines of a rubric.
        database: where the lab is.
    """
    with TemporaryDirectory() as folder, chdir(folder):
        Path("judge-gym.models.toml").write_text(
            f'[endpoints.lab]\nbase_url = "{url}"\nseed = true\n{entry}\n' if url else ""
        )
        _write_benchmark(Path("bench"), brief=brief)
        study = {
            "study": "bench",
            "samples": max(1, samples // ITEMS),
            "evidence": {"texts": {"benchmark": "bench"}},
            "tasks": [{"type": "benchmark", "evidence": "texts"}],
            "judges": [judge],
            "probe": False,
            "design": {"evidence.view": "raw"},
        }
        Path("study.yaml").write_text(yaml.safe_dump(study))
        with Lab.open(database, limits=limits) as lab:
            yield lab, lab.studies.prepare("study.yaml")


def write_short_study(judges: list[str]) -> None:
    """Writes `study.yaml` and its rubric: each item of `items.jsonl` judged once, as it is."""
    Path("rubric.json").write_text((DEMO / "rubric.json").read_text())
    study = {
        "study": "bench",
        "samples": 1,
        "probe": False,
        "evidence": {"texts": {"files": "items.jsonl", "window": {"country": "Valdoria"}}},
        "tasks": [{"type": "ecc", "concept": "c", "evidence": "texts", "rubric": "rubric.json"}],
        "judges": judges,
        "design": {"evidence.view": "raw"},
    }
    Path("study.yaml").write_text(yaml.safe_dump(study))


def _write_benchmark(folder: Path, *, brief: bool) -> None:
    """The demo's rubric, and texts of its sentences in another order."""
    folder.mkdir()
    shutil.copy(DEMO / "benchmark.toml", folder)
    rubric = json.loads((DEMO / "rubric.json").read_text())
    if brief:
        short = [stage | {"criteria": stage["criteria"][:1]} for stage in rubric["stages"][:2]]
        rubric["stages"] = short
    (folder / "rubric.json").write_text(json.dumps(rubric))
    lines = itertools.chain.from_iterable(
        (DEMO / name).read_text().splitlines() for name in ("valdoria.jsonl", "norvessa.jsonl")
    )
    sentences = [part for line in lines for part in re.split(r"(?<=\.) ", json.loads(line)["text"])]
    rng, items = random.Random(7), []
    for number in range(ITEMS):
        text = " ".join([f"Text {number}.", *rng.sample(sentences, len(sentences))])
        shown = text[: LINE if brief else CHARACTERS]
        items.append({"title": f"Text {number}", "text": shown, "truth": 1 + number % 2})
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, items)))


def questions(prepared: PreparedStudy, series: str) -> list[Request]:
    """What the study asks, for loops that do without a lab."""
    [experiment] = prepared.sweep.experiments
    task = experiment.task
    assert task.rubric is not None
    replicates = range(prepared.targets[experiment.tag].samples)
    return Scorer(experiment.design, experiment.seed, series).requests(
        [
            ScoreTarget(task.rubric, item, item.text, replicate)
            for replicate, item in itertools.product(replicates, task.pool.items)
        ]
    )


# --- measuring -----------------------------------------------------------------------------------


async def keep_flying(
    call: Callable[[Request], Awaitable[object]], requests: list[Request], flying: int
) -> None:
    """Make all calls, with the same number in flight throughout."""
    left = iter(requests)

    async def work() -> None:
        for request in left:
            await call(request)

    await asyncio.gather(*(work() for _ in range(flying)))


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds: on the wall, and of CPU in this process and in the server's."""

    wall: float = float("inf")
    cpu: float = float("inf")
    server: float = float("inf")

    def best(self, other: "Took") -> "Took":
        """The lower of each."""
        return Took(
            min(self.wall, other.wall), min(self.cpu, other.cpu), min(self.server, other.server)
        )


def timed(work: Callable[[], object], server: Served) -> Took:
    """What a piece of work takes."""
    there, cpu, wall = server.cpu(), time.process_time(), time.perf_counter()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Took(wall, cpu, server.cpu() - there)
