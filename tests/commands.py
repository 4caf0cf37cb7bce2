"""judge-gym as processes of its own, on one lab and one served endpoint that counts requests."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from judge_gym.errors import JudgeGymError
from judge_gym.store import Store
from judge_gym.store import tables as t
from stores import blank
from workers import write_entry

PATIENCE = 240.0
WORDS = ("routine", "delayed", "warned", "fined", "dismissed", "banned")
IN_FLIGHT = 16
"""The calls in flight that the endpoint's entry allows."""
Process = subprocess.Popen[str]


@contextmanager
def served(*options: str) -> Iterator[str]:
    """`judge-gym sim serve` as a process of its own; its base URL."""
    command = [sys.executable, "-m", "judge_gym", "sim", "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


class Bench:
    """A lab, the endpoint that it asks, and the commands that were given."""

    def __init__(self, folder: Path, database: str, endpoint: str) -> None:
        self.folder = folder
        self.database = database
        if database.startswith("sqlite") and not (file := Path(database[10:])).exists():
            blank(file)
        self.environment: dict[str, str] = {}
        """What commands find beside the address of the lab."""
        self.endpoint = endpoint
        self._store: Store | None = None
        self._started: list[Process] = []
        write_entry(folder, endpoint, f"concurrency = {IN_FLIGHT}")

    def start(self, *words: str | Path) -> Process:
        """A command that goes on."""
        process = subprocess.Popen(
            [sys.executable, "-m", "judge_gym", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "JUDGE_GYM_DATABASE_URL": self.database, **self.environment},
            cwd=self.folder,
        )
        self._started.append(process)
        return process

    def call(self, *words: str | Path, code: int = 0) -> str:
        """A command to its end; what it said, errors included."""
        return ended(self.start(*words), code)

    def json(self, *words: str | Path, code: int = 0) -> Any:
        """A command to its end; the document that it printed."""
        process = self.start(*words, "--json")
        said, complaint = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, complaint
        return json.loads(said)

    def close(self) -> None:
        """End whatever is left."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if self._store is not None:
            self._store.close()

    # --- what is there ---------------------------------------------------------------------------

    def stats(self) -> Any:
        """What the endpoint has counted."""
        with urllib.request.urlopen(self.endpoint.removesuffix("/v1") + "/stats") as answer:
            return json.load(answer)

    def statuses(self, study: str = "big") -> set[str]:
        """How the experiments of a study stand."""
        return {row["status"] for row in self.json("status", study)}

    def complete(self, *processes: Process) -> None:
        """Wait until all experiments are complete; `status` says so then."""
        progress, tags = self.store.progress, self.store.experiments.rows

        def done() -> bool:
            # A command each time would slow down what it waits for.
            found = [progress.of_tag(row["tag"]) for row in tags()]
            return bool(found) and all(runs and runs[-1].status == "complete" for runs in found)

        wait(done, *processes)
        assert self.statuses() == {"complete"}

    @property
    def store(self) -> Store:
        """The lab's tables."""
        self._store = self._store or Store.open(self.database)
        return self._store

    def attempts(self) -> int:
        """How many are recorded."""
        with self.store.database.read() as connection:
            return connection.execute(
                sa.select(sa.func.count()).select_from(t.attempts)
            ).scalar_one()

    def wait_for(self, enough: int, *processes: Process) -> int:
        """Wait until that many attempts are recorded; how many there are."""
        wait(lambda: self.attempts() >= enough, *processes)
        return self.attempts()

    def answered_twice(self) -> int:
        """Calls with two completed attempts."""
        a = t.attempts.c
        twice = sa.select(a.call_id).where(a.completed).group_by(a.call_id)
        with self.store.database.read() as connection:
            return len(connection.execute(twice.having(sa.func.count() > 1)).all())

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that runs left, by natural keys: no ids, no times."""
        e, r, s, p, v, c = (
            one.c for one in (t.evidence, t.rubrics, t.samples, t.probes, t.views, t.critiques)
        )
        origin = t.samples.join(t.runs).join(t.tags, t.tags.c.digest == t.runs.c.digest)
        whole = origin.join(t.rubrics, r.id == s.rubric_id).join(t.evidence, e.id == s.evidence_id)
        sample = (t.tags.c.tag, r.author, e.title, s.replicate, s.flipped, s.is_swap)
        queries = {
            "views": sa.select(e.title, v.editor, v.status, v.text).join_from(t.views, t.evidence),
            "rubrics": sa.select(r.author, r.draw, r.status, r.asks, sa.cast(r.stages, sa.String)),
            "critiques": sa.select(
                r.author, r.draw, c.critic, c.status, c.observability, c.discriminability
            ).join_from(t.critiques, t.rubrics),
            "samples": sa.select(*sample, s.status, s.stages, s.display).select_from(whole),
            "probes": sa.select(*sample, p.status, p.probability).select_from(
                whole.join(t.probes, p.sample_id == s.id)
            ),
        }
        with self.store.database.read() as connection:
            return {
                name: sorted(map(tuple, connection.execute(query)), key=repr)
                for name, query in queries.items()
            }


def ended(process: Process, code: int = 0) -> str:
    """What a command said that ends with a code, errors included."""
    said, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, (process.returncode, said, complaint)
    assert "Traceback" not in complaint, complaint
    return said + complaint


def ready(bench: Bench) -> Process:
    """A worker that listens."""
    worker = bench.start("worker")
    assert worker.stderr is not None
    assert "is ready" in worker.stderr.readline()
    return worker


def wait(until: Callable[[], bool], *processes: Process) -> None:
    """Wait for something while processes go on."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if until():
                return
        except JudgeGymError:  # the database is not there yet, or not now
            pass
        for process in processes:
            assert process.poll() is None, f"it ended: {process.communicate()}"
        assert time.monotonic() < deadline, f"not after {PATIENCE} s"
        time.sleep(0.01)


def write_study(folder: Path, **changes: Any) -> Path:
    """A study with all five stages; its probes are shared out in shards."""
    lines = [{"title": w, "text": f"The panel was {w} and the mayor {w}, it said."} for w in WORDS]
    (folder / "evidence.jsonl").write_text("\n".join(map(json.dumps, lines)))
    study = {
        "study": "big",
        "seed": 5,
        "samples": 15,
        "evidence": {"here": {"files": "evidence.jsonl", "window": {"country": "Valdoria"}}},
        "protocol": "contested-concepts",
        "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "here"}],
        "judges": ["lab:balanced", "lab:strict", "lab:sloppy"],
        "design": {"evidence.editor": "lab:editor", "rubric.critic": "lab:critic"},
        "swap": "all",
    }
    path = folder / "study.yaml"
    path.write_text(json.dumps({**study, **changes}))  # JSON is YAML
    return path


class Reference(NamedTuple):
    """What an undisturbed run leaves."""

    rows: dict[str, list[tuple[Any, ...]]]
    calls: int


def undisturbed(folder: Path, **changes: Any) -> Reference:
    """Run a study in peace."""
    with served() as url:
        bench = Bench(folder, f"sqlite:///{folder / 'lab.db'}", url)
        bench.call("run", write_study(folder, **changes))
        stats = bench.stats()
        assert stats["requests"] == stats["bodies"]["answered"] == bench.attempts()
        found = Reference(bench.rows(), bench.attempts())
        bench.close()
    return found
