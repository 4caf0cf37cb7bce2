"""Whole runs over HTTP with faults: the right rows, nothing paid twice, no key anywhere."""

import copy
import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml

from conftest import TEXTS
from judge_gym.engine.calls import retry
from judge_gym.lab import Lab
from judge_gym.models.http_model import HttpModel
from judge_gym.models.simulated.faults import Faults
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.records import Completion, Request
from judge_gym.store import tables as t
from stores import blank

pytestmark = pytest.mark.slow

KEY = "sk-secret-that-must-stay-secret"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that a test can wait for."""
    monkeypatch.setattr(retry, "BACKOFF", 0.01)


@contextmanager
def served(folder: Path, faults: str = "", **limits: Any) -> Iterator[str]:
    """Simulated judges behind HTTP, and the registry file that names them `lab:`."""
    server = SimulatedServer(key=KEY, faults=Faults.parse(faults), **limits)
    with serve(server) as url:
        (folder / "judge-gym.models.toml").write_text(
            f'[endpoints.lab]\nbase_url = "{url}"\nkey_env = "LAB_KEY"\n'
            '[models."lab:*"]\nseed = true\ndeadline = 120\n'
        )
        yield url


def stats(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as answer:
        return dict(json.load(answer))


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small study of judges behind HTTP, in the folder that one works in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAB_KEY", KEY)
    return write_study(tmp_path)


def write_study(folder: Path) -> Path:
    lines = [json.dumps({"title": title, "text": text}) for title, text in TEXTS.items()]
    (folder / "e.jsonl").write_text("\n".join(lines))
    path = folder / "study.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "study": "wired",
                "samples": 2,
                "evidence": {"e": {"files": "e.jsonl", "window": {"country": "Valdoria"}}},
                "protocol": "contested-concepts",
                "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "e"}],
                "judges": ["lab:balanced", "lab:strict"],
                "design": {"evidence.editor": "lab:editor", "rubric.critic": "lab:critic"},
            }
        )
    )
    return path


Ended = tuple[str, list[tuple[Any, ...]]]


def run(study: Path) -> Ended:
    """How the study ended, and its verdicts."""
    file = study.parent / "lab.db"
    new = not file.exists() and not file.with_suffix(".dbos.db").exists()
    with Lab.open(blank(file) if new else f"sqlite:///{file}") as lab:
        status = lab.runs.run(study).status
        frame = lab.experiments.samples("wired")
    columns = ["judge.model", "evidence_title", "replicate", "status", "stages", "probe"]
    return status, sorted(map(tuple, frame[columns].fillna("").astype(str).to_numpy().tolist()))


@pytest.fixture(scope="module")
def untroubled(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """How the study ends without faults."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("untroubled")
        patch.chdir(folder)
        patch.setenv("LAB_KEY", KEY)
        path = write_study(folder)
        with served(folder):
            return run(path)


@pytest.fixture
def short_first_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives up early on the first call of each request alone, which a stalled server never answers.

    All later calls have the time that a busy machine needs.
    """
    complete = HttpModel.complete
    tried = set[str]()

    async def patient_after_the_first(model: HttpModel, request: Request) -> Completion:
        key = request.key()
        if key not in tried:
            tried.add(key)
            model = copy.copy(model)
            model.timeout = 0.5
        return await complete(model, request)

    monkeypatch.setattr(HttpModel, "complete", patient_after_the_first)


@pytest.mark.parametrize(
    "faults", ["429@1", "500@1", "503@1", "reset@1", "truncated@1", "html@1", "empty@1"]
)
def test_every_fault_that_passes_leaves_the_rows_of_an_untroubled_run(
    untroubled: Ended, study: Path, faults: str
) -> None:
    check_fault_that_passes(untroubled, study, faults)


@pytest.mark.usefixtures("short_first_deadlines")
def test_a_call_without_an_answer_leaves_the_rows_of_an_untroubled_run(
    untroubled: Ended, study: Path
) -> None:
    check_fault_that_passes(untroubled, study, "stall@1")


def check_fault_that_passes(untroubled: Ended, study: Path, faults: str) -> None:
    with served(study.parent, faults) as url:
        troubled = run(study)
        seen = stats(url)
        assert run(study) == troubled
        assert stats(url)["requests"] == seen["requests"], "what is there is not asked again"
    assert untroubled[0] == "complete"
    assert troubled == untroubled
    assert seen["outcomes"][faults.removesuffix("@1")] > 0
    assert seen["bodies"]["repeated"] == 0


def test_a_limit_of_the_server_is_kept_by_waiting(study: Path) -> None:
    with served(study.parent, rpm=6000) as url:
        status, _ = run(study)
        assert status == "complete"
        assert stats(url)["bodies"]["repeated"] == 0


def test_a_key_is_found_nowhere_after_a_run_that_went_well_and_one_that_did_not(
    study: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(study.parent, "500=0.2"):
        run(study)
    with served(study.parent):
        monkeypatch.setenv("LAB_KEY", KEY + "-wrong")
        (study.parent / "lab.db").unlink()
        status, rows = run(study)
        assert status == "failed" and rows == []
        with Lab.open(f"sqlite:///{study.parent / 'lab.db'}") as lab:
            with lab.store.database.read() as connection:
                errors = set(connection.scalars(sa.select(t.attempts.c.error)))
    assert errors and all("401" in str(error) for error in errors)
    said = capfd.readouterr()
    written = b"".join(path.read_bytes() for path in study.parent.iterdir() if path.is_file())
    assert KEY.encode() not in written
    assert KEY not in said.out + said.err


def test_a_password_in_the_base_url_of_a_provider_is_found_nowhere_after_a_run(
    study: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server = SimulatedServer(faults=Faults.parse("503@1, 400=0.2"))
    hosted = study.read_text().replace("lab:balanced", "openai:balanced").replace("lab:", "sim:")
    study.write_text(hosted)
    with serve(server) as url:
        free = "[providers.openai]\nrpm = 0\ntpm = 0\n[hosted]\nrpm = 0\n"
        (study.parent / "judge-gym.models.toml").write_text(free)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", url.replace("http://", "http://user:hunter2@"))
        with Lab.open(f"sqlite:///{study.parent / 'lab.db'}") as lab:
            lab.runs.run(study)
        assert stats(url)["outcomes"]["503"] > 0 and stats(url)["outcomes"]["400"] > 0
    said = capfd.readouterr()
    written = b"".join(path.read_bytes() for path in study.parent.iterdir() if path.is_file())
    assert b"answered 503" in written
    for secret in (KEY, "hunter2", "dXNlcjpodW50ZXIy"):
        assert secret.encode() not in written
        assert secret not in said.out + said.err
