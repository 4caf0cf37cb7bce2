"""A lab on loopback with something in it, for tests of its faces over the network."""

import atexit
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from judge_gym.errors import ConflictError
from judge_gym.lab import Lab
from judge_gym.web import serve
from judge_gym.web.middleware import Limits
from stores import adopt, blank

TEXTS = {
    "calm": "The budget was adopted unanimously and published in full, as scheduled.",
    "tense": "The regulator warned two stations and fined one; a bill is under review.",
    "harsh": "Judges were dismissed by decree, an editor was detained and a newspaper was banned.",
}
OURS = {"evidence.editor": "sim:editor", "rubric.critic": "sim:critic"}
EASY = Limits(anonymous_per_second=1000, anonymous_burst=10_000)
"""Limits that no test reaches by chance."""


class ServedLab(NamedTuple):
    """A lab that is served, and those who may ask it."""

    lab: Lab
    url: str
    local: str
    """The token of whoever started the server."""
    read: str
    revoked: str
    folder: Path
    http: httpx.Client

    def ask(self, method: str, path: str, token: str | None = None, **given: Any) -> httpx.Response:
        """What the server says to a token, by default the local one; empty is none."""
        secret = self.local if token is None else token
        headers = {**given.pop("headers", {})}
        if secret:
            headers.setdefault("Authorization", f"Bearer {secret}")
        return self.http.request(method, path, headers=headers, **given)

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of a resource."""
        said = self.ask("GET", path, params=query or None)
        assert said.status_code == 200, said.text
        return said.json()

    def post(self, path: str, **body: Any) -> Any:
        """What a write returns."""
        said = self.ask("POST", path, json=body)
        assert said.is_success, said.text
        return said.json()


def fill(lab: Lab, folder: Path) -> int:
    """Give a lab a window with three texts; its number."""
    lines = [json.dumps({"title": title, "text": text}) for title, text in TEXTS.items()]
    (folder / "news.jsonl").write_text("\n".join(lines))
    window = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    lab.load_evidence(window, "news.jsonl", folder=folder)
    return window


def create(lab: Lab, window: int, tag: str, judge: str = "sim:balanced", **config: Any) -> None:
    """Make an experiment of simulated judges."""
    lab.create_experiment(tag, window, judge, "ecc", "fascism", {**OURS, **config})


@contextmanager
def without_workers(lab: Lab) -> Iterator[None]:
    """Keep workers from beginning anything, once the last one has ended."""
    patience = time.monotonic() + 240
    while True:
        try:
            lock = lab.engine.lock()
            lock.__enter__()
            break
        except ConflictError:
            assert time.monotonic() < patience
            time.sleep(0.1)
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


@cache
def _filled(run: bool) -> Path:
    """The database of a lab with three experiments, made once per process and copied."""
    folder = Path(tempfile.mkdtemp(prefix="judge-gym-served-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with Lab.open(blank(folder / "lab.db")) as lab:
        window = fill(lab, folder)
        create(lab, window, "pilot")
        create(lab, window, "pilot/strict", "sim:strict", **{"verdict.method": "subset"})
        create(lab, window, "later", "sim:cautious")
        if run:
            lab.runs.run("pilot")
            lab.runs.run("pilot/strict", samples=2)
    return folder


def copy_filled_lab(folder: Path, *, run: bool = True) -> str:
    """Copies a lab with three experiments, two of which were run if `run`, and returns its URL."""
    for file in _filled(run).iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    url = f"sqlite:///{folder / 'lab.db'}"
    adopt(url)
    return url


@contextmanager
def serve_lab(folder: Path, *, run: bool = True, **given: Any) -> Iterator[ServedLab]:
    """A lab with three experiments, two of which were run if `run`, and its server."""
    with Lab.open(copy_filled_lab(folder, run=run), folder=folder) as lab:
        _, read = lab.tokens.create("reader", "read")
        _, revoked = lab.tokens.create("gone", "write")
        lab.tokens.revoke("gone")
        options = {"port": 0, "work": False, "limits": EASY, **given}
        with serve(lab, **options) as at, httpx.Client(base_url=at.url, timeout=120) as http:
            assert at.token is not None
            yield ServedLab(lab, at.url, at.token, read, revoked, folder, http)
