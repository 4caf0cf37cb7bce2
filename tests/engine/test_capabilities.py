"""A worker takes only what it can execute: profile, endpoints, keys."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import postgres
from judge_gym.engine.capabilities import Capabilities
from judge_gym.engine.orders import ProcessEnding, SuiteWork, WorkOrder
from judge_gym.engine.queue import RunQueue
from judge_gym.errors import ConflictError
from judge_gym.lab import Lab
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.store.deployment import Deployment

WriteStudy = Callable[..., Path]
OWN = '[endpoints.own]\nbase_url = "{url}"\nseed = true\n'


@pytest.fixture
def endpoint() -> Iterator[str]:
    """The URL of a simulated server."""
    with serve(SimulatedServer()) as url:
        yield url


def messages(lab: Lab) -> set[str]:
    return {run["message"] for run in lab.runs.status()["runs"]}


def statuses(lab: Lab) -> set[str]:
    return {row["status"] for row in lab.list_experiments(study="small")}


def at(folder: Path, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes into a folder with this `judge-gym.models.toml`, or with none."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    if entry:
        (folder / "judge-gym.models.toml").write_text(entry)


@pytest.mark.slow
def test_a_worker_leaves_what_it_has_no_endpoint_for_and_status_says_why(
    endpoint: str, write_study: WriteStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh_url()
    at(tmp_path / "able", OWN.format(url=endpoint), monkeypatch)
    with Lab.open(url) as able:
        able.runs.start(write_study(judges=["own:balanced", "sim:strict"], probe=False))
        at(tmp_path / "without", "", monkeypatch)
        with Lab.open(url) as other:
            other.engine.work(until_idle=True)
            assert statuses(other) == {"evidence-done", "complete"}, "they share the views"
            assert any("cannot take it: unknown provider 'own'" in text for text in messages(other))
        able.engine.work(until_idle=True)
        assert (statuses(able), messages(able)) == ({"complete"}, {""})


def test_an_endpoint_elsewhere_or_a_key_that_is_not_set_leaves_a_run_to_others(
    write_study: WriteStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reasons() -> list[str]:
        with Lab.open(url) as lab, closing(RunQueue(lab.store.database)) as queue:
            able, reasons, _ = Capabilities(lab.store, lab.models).look(queue)
            assert bool(able) != bool(reasons)
            return list(reasons.values())

    url, entry = f"sqlite:///{tmp_path / 'lab.db'}", OWN + 'key_env = "OWN_KEY"\n'
    at(tmp_path / "able", entry.format(url="http://127.0.0.1:1/v1"), monkeypatch)
    monkeypatch.setenv("OWN_KEY", "abc")
    with Lab.open(url) as able:
        able.runs.start(write_study(judges=["own:balanced"]))
    assert reasons() == []
    monkeypatch.delenv("OWN_KEY")
    [reason] = reasons()
    assert "own:balanced cannot be called: set OWN_KEY" in reason
    monkeypatch.setenv("OWN_KEY", "abc")
    at(tmp_path / "elsewhere", entry.format(url="http://127.0.0.1:2/v1"), monkeypatch)
    [reason] = reasons()
    assert "at http://127.0.0.1:1/v1, and here it is at http://127.0.0.1:2/v1" in reason


def test_orders_share_queues_exactly_where_they_need_the_same() -> None:
    def queues(models: dict[str, str], **given: object) -> tuple[str, str]:
        return WorkOrder(1, "tag", models=models, **given).queues  # type: ignore[arg-type]

    assert queues({}) == ("runs", "shards")
    assert queues({"own:a": "http://x"}) == queues({"own:b": "http://x"})
    different = {
        queues({}),
        queues({"own:a": "http://x"}),
        queues({"own:a": "http://y"}),
        queues({"other:a": "http://x"}),
        queues({"own:a": "http://x"}, offline=True),
        queues({"own:a": "http://x", "openai:a": ""}),
        queues({"own:a": "http://x"}, suite=SuiteWork("abc")),
    }
    assert len(different) == 7


@pytest.mark.slow
def test_a_worker_of_another_profile_leaves_production_alone(
    write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh_url()
    monkeypatch.setenv("JUDGE_GYM_PROFILE", "prod")
    with Lab.open(url) as lab:
        Deployment(lab.store.database).mark("prod")
        lab.runs.start(write_study())
        monkeypatch.delenv("JUDGE_GYM_PROFILE")
        with Lab.open(url) as other, pytest.raises(ConflictError, match="--profile prod"):
            other.engine.work(until_idle=True)
        assert statuses(lab) == {"pending"}
        lab.engine.work(until_idle=True)
        assert statuses(lab) == {"complete"}


@pytest.mark.slow
def test_a_worker_ends_when_its_database_becomes_production(
    write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.fresh_url()
    with Lab.open(url) as lab:
        lab.runs.start(write_study())
        monkeypatch.setenv("JUDGE_GYM_PROFILE", "prod")
        with Lab.open(url) as other:

            def mark(name: str) -> None:
                Deployment(other.store.database).mark("prod")

            with pytest.raises(ProcessEnding, match="was marked as production"):
                lab.engine.work(on_start=mark)
            other.engine.work(until_idle=True)
            assert statuses(other) == {"complete"}
