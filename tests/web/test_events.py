"""What goes on is told as it happens, once to each, and to whoever comes back from where it was."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from judge_gym.lab import Lab
from judge_gym.store import Event, Kind
from judge_gym.web import events as watching
from judge_gym.web.events import RunWatcher
from lab_server import ServedLab, serve_lab, without_workers


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    """A lab whose server carries runs out."""
    with serve_lab(tmp_path_factory.mktemp("watched"), run=False, work=True) as opened:
        yield opened


def follow(lab: ServedLab, target: str | None, **headers: str) -> list[dict[str, Any]]:
    """What is told of a target, until all has ended."""
    found: list[dict[str, Any]] = []
    headers["Authorization"] = f"Bearer {lab.read}"
    query = {"target": target} if target else None
    url = f"{lab.url}/api/events"
    with httpx.stream("GET", url, params=query, headers=headers, timeout=60) as said:
        assert said.status_code == 200
        assert said.headers["content-type"].startswith("text/event-stream")
        assert said.headers["cache-control"] == "no-cache"
        one: dict[str, Any] = {}
        for line in said.iter_lines():
            if line.startswith(":"):
                continue
            if not line:
                found.append(one)
                if one.get("event") == "end":
                    return found
                one = {}
                continue
            name, _, value = line.partition(": ")
            one[name] = json.loads(value) if name == "data" else value
    raise AssertionError("the stream ended before the runs did")


@pytest.mark.slow
def test_events_follow_a_run_started_over_http_to_its_end(lab: ServedLab) -> None:
    assert lab.post("/api/runs", target="pilot", samples=3) == {"started": ["pilot"]}
    told = follow(lab, "pilot")
    kinds = [one["data"]["kind"] for one in told if one["event"] == "event"]
    assert (kinds[0], kinds[-1]) == ("started", "ended")
    statuses = [one["data"]["status"] for one in told if one["event"] == "status"]
    assert statuses[-1] == "complete"
    assert told[-1]["data"] == {"pilot": "complete"}
    assert len(lab.lab.list_experiment_samples("pilot")) == 9
    ids = [int(one["id"]) for one in told if one["event"] == "event"]
    assert ids == sorted(set(ids))
    assert not [one for one in told if one["event"] != "event" and "id" in one]

    later = follow(lab, "pilot", **{"Last-Event-ID": str(ids[0])})
    assert [int(one["id"]) for one in later if one["event"] == "event"] == ids[1:]
    last = follow(lab, None, **{"Last-Event-ID": str(ids[-1])})
    assert not [one for one in last if one["event"] == "event"]


@pytest.mark.slow
def test_stages_are_started_one_by_one(lab: ServedLab) -> None:
    seen, after = [], "0"
    for workflow in ("evidence", "rubric"):
        lab.post("/api/runs", target="later", workflows=[workflow])
        told = follow(lab, "later", **{"Last-Event-ID": after})
        after = max((one["id"] for one in told if one["event"] == "event"), key=int)
        seen.append(told[-1]["data"]["later"])
    assert seen == ["evidence-done", "rubric-done"]
    assert lab.lab.list_experiment_samples("later") == []


def test_a_different_order_during_a_run_is_a_conflict(lab: ServedLab) -> None:
    """It would be lost: the run goes on as it was ordered first."""
    with without_workers(lab.lab):
        lab.post("/api/runs", target="pilot/strict", workflows=["evidence"])
        said = lab.ask(
            "POST", "/api/runs", json={"target": "pilot/strict", "workflows": ["rubric"]}
        )
        assert (said.status_code, said.json()["error"]["kind"]) == (409, "conflict")
        lab.post("/api/runs", target="pilot/strict", workflows=["evidence"])
    assert follow(lab, "pilot/strict")[-1]["data"] == {"pilot/strict": "evidence-done"}


def test_following_an_unknown_target_is_refused(lab: ServedLab) -> None:
    assert lab.ask("GET", "/api/events", params={"target": "nothing"}).status_code == 404
    odd = lab.ask("GET", "/api/events", headers={"Last-Event-ID": "x"})
    assert odd.status_code == 422


def test_too_many_event_streams_are_refused(
    lab: ServedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MAX_STREAMS", 0)
    said = lab.ask("GET", "/api/events")
    assert (said.status_code, said.json()["error"]["kind"]) == (429, "busy")


def test_streams_of_one_target_share_one_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else twenty watchers would look at every run twenty times a second."""
    monkeypatch.setattr(watching, "PERIOD", 0.05)
    looks = 0
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        watch = RunWatcher(lab)
        query = watch.query

        def counted(target: str | None) -> Any:
            nonlocal looks
            looks += 1
            time.sleep(0.01)
            return query(target)

        monkeypatch.setattr(watch, "query", counted)

        async def watcher() -> None:
            async for _ in watch.follow(None, 0):
                pass

        async def all_of_them() -> None:
            tasks = [asyncio.create_task(watcher()) for _ in range(20)]
            await asyncio.sleep(0.5)
            watch.close()
            await asyncio.gather(*tasks)

        began = time.monotonic()
        asyncio.run(all_of_them())
        seconds = time.monotonic() - began
    assert 1 <= looks <= 2 + seconds / watching.PERIOD


def test_the_server_stops_while_a_stream_is_open(tmp_path: Path) -> None:
    with serve_lab(tmp_path, run=False) as lab:
        headers = {"Authorization": f"Bearer {lab.local}"}
        client = httpx.Client(timeout=60)
        request = client.build_request("GET", f"{lab.url}/api/events", headers=headers)
        stream = client.send(request, stream=True)
        assert stream.status_code == 200
        began = time.monotonic()
    assert time.monotonic() - began < 60
    stream.close()
    client.close()


def test_a_client_that_disconnects_causes_no_error(
    lab: ServedLab, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"Authorization": f"Bearer {lab.read}"}
    for lines in range(12):  # at one of these a message is on its way
        with httpx.stream("GET", f"{lab.url}/api/events", headers=headers, timeout=60) as said:
            for number, _ in enumerate(said.iter_lines()):
                if number >= lines % 4:
                    break
    assert lab.ask("GET", "/api/health").status_code == 200
    time.sleep(1.5)  # for what the server would say
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


class EndsBetweenLooks:
    """A lab whose run ends after its rows are read and before its events are."""

    def __init__(self) -> None:
        self.ended = False
        self.experiments = self.pages = self

    def list(self, *, study: str) -> Sequence[dict[str, Any]]:
        status = "complete" if self.ended else "rubric-done"
        return [{"tag": "pilot", "study": study, "status": status, "runs": [{"run": 1}]}]

    def events(self, heard: int, runs: Sequence[int]) -> Sequence[Event]:
        self.ended = True
        at = datetime.now(UTC)
        kinds: tuple[Kind, ...] = ("started", "ended")
        events = [Event(id, 1, at, kind, "", {}) for id, kind in enumerate(kinds, 1)]
        return [event for event in events if event.id > heard]


def test_the_last_status_of_a_run_comes_before_the_end_of_its_stream() -> None:
    async def told() -> list[Any]:
        watch = RunWatcher(cast(Lab, EndsBetweenLooks()))
        found = []
        async for one in watch.follow("small", 0):
            found.append(one)
            if one.event == "end":
                watch.close()
        return found

    found = asyncio.run(told())
    assert [one.event for one in found] == ["event", "event", "status", "end"]
    assert found[-2].data["status"] == "complete"
    assert found[-1].data == {"pilot": "complete"}
