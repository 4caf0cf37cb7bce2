"""Suite runs over HTTP: what is posted is kept once and read back, by those who may."""

import io
import json
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from judge_gym.client import Client
from judge_gym.errors import ConflictError, DesignError, NotFoundError, ScopeError, TokenError
from judge_gym.records.outcomes import Passed, search_step
from judge_gym.records.searches import Search
from judge_gym.suites import CONDITIONS
from lab_server import ServedLab, serve_lab
from made_runs import RESULTS, SLUG, SOURCES, inconclusive, passed
from posted_suite_runs import (
    BEGUN,
    MODEL,
    PATHS,
    SUITE,
    VERSION,
    made_at,
    post,
    post_eval,
    post_run,
    post_tasks,
    rows_in,
)

FAILED = {
    "000-strings/001-slugify": "tests",
    "000-strings/002-initials": "lint",
    "001-collections/001-top-words": "tests",
    "001-collections/002-parse-dates": "lint",
    "002-files/003-download": "install",
    "002-files/004-archive": "install",
}
"""Of the made-up run, with the step."""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[ServedLab]:
    with serve_lab(tmp_path, run=False) as opened:
        yield opened


@pytest.fixture
def client(lab: ServedLab) -> Iterator[Client]:
    with Client(lab.url, lab.local) as opened:
        yield opened


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


# --- posting and reading back --------------------------------------------------------------------


def test_what_is_posted_is_read_back(client: Client) -> None:
    run = client.suites.show_run(post(client))
    assert run["counts"] == {"passed": 5, "failed": 4, "inconclusive": 2}
    assert run["score"] == pytest.approx(5 / 9)
    assert run["inconclusive"] == {"infrastructure": 1, "rate_limit": 1}
    assert (run["status"], run["whole"], run["targets"]) == ("complete-with-failures", True, 11)
    assert (run["suite"], run["version"], run["model"]) == (SUITE, VERSION, MODEL)
    assert [row["path"] for row in run["evals"]] == PATHS
    assert {row["path"]: row["step"] for row in client.suites.list_failed(run["run"])} == FAILED


def test_an_eval_is_shown_with_all_that_was_posted(client: Client) -> None:
    [row] = [row for row in client.suites.list_failed(post(client)) if row["path"] == SLUG.path]
    found = client.suites.show_eval(row["eval"])
    files = SOURCES[SLUG.path]
    assert found["steps"] == [asdict(step) for step in SLUG.steps]
    assert (found["files"], found["outcome"]) == (SLUG.files, "failed")
    assert [found[part] for part in ("task", "answer", "grader", "gaps")] == [
        files.task,
        files.answer,
        files.grader,
        files.gaps,
    ]


def test_what_a_model_searched_is_posted_and_shown(lab: ServedLab, client: Client) -> None:
    post_tasks(client)
    run = post_run(client, condition="web_search", settings=CONDITIONS["web_search"].key)
    found = search_step([Search("python slug", ("https://docs.example/slug",)), Search()])
    number = post_eval(client, run, replace(SLUG, steps=(found, *SLUG.steps)), made_at(1))
    first, *rest = client.suites.show_eval(number)["steps"]
    assert (first["name"], first["status"], first["reason"]) == ("search", "passed", "2 searches")
    assert len(rest) == len(SLUG.steps)
    assert lab.lab.suites.report(run).run.settings["web_search"] is True
    page = lab.ask("GET", f"/experiment/web_search/run/{run}/{SLUG.path}").text
    assert "python slug" in page and "https://docs.example/slug" in page
    refused = lab.ask("POST", "/api/suites/runs", json={"settings": {"web_search": "perhaps"}})
    assert refused.status_code == 422


def test_the_client_says_what_the_lab_says(lab: ServedLab, client: Client) -> None:
    run = post(client)
    board = lab.lab.suites.leaderboard()
    assert client.suites.leaderboard() == board
    assert [(row["model"], row["runs"], row["passed"], row["failed"]) for row in board] == [
        (MODEL, 1, 5, 4)
    ]
    assert client.suites.leaderboard(suite="another") == []
    assert client.suites.list_failed(run) == lab.lab.suites.list_failed(run)
    eval = client.suites.list_failed(run)[0]["eval"]
    assert client.suites.show_eval(eval) == lab.lab.suites.show_eval(eval)
    assert [one["run"] for one in client.suites.list_runs(suite=SUITE, model=MODEL)] == [run]
    assert client.suites.list_runs(model="sim:nobody") == []
    assert client.suites.list_tasks(SUITE, VERSION) == PATHS
    with pytest.raises(NotFoundError, match="no suite run 99"):
        client.suites.show_run(99)
    with pytest.raises(NotFoundError, match="no eval 999"):
        client.suites.show_eval(999)


def test_tables_come_in_pages_and_as_files(lab: ServedLab, client: Client) -> None:
    run = post(client)
    found, cursor = [], None
    while True:
        query = {"limit": 4} | ({"cursor": cursor} if cursor else {})
        page = lab.get(f"/api/suites/runs/{run}/failed", **query)
        found += [row["path"] for row in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert sorted(found) == sorted(FAILED)
    text = lab.ask("GET", "/api/suites/leaderboard?format=csv").text
    assert MODEL in text and text.count("\n") == 2


def test_the_files_of_a_run_and_of_an_eval_are_downloaded_as_zip(
    lab: ServedLab, client: Client
) -> None:
    post_tasks(client)
    run = post_run(client)
    files = {"../../escape.py": "x", "a": "file", "a/b.py": "below it", "fine/c.py": "c"}
    number = post_eval(client, run, replace(SLUG, files=files), made_at(1))

    def download(path: str) -> dict[str, bytes]:
        answer = lab.ask("GET", path)
        assert answer.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    found = download(f"/api/suites/runs/{run}/zip")
    outputs = {name for name in found if name.startswith(f"{SLUG.path}/output/")}
    assert {name.removeprefix(f"{SLUG.path}/output/") for name in outputs} == {
        "unsafe/_..%2F..%2Fescape.py", "unsafe/_a", "a/b.py", "fine/c.py",
    }  # fmt: skip
    assert found[f"{SLUG.path}/task.md"].decode() == SOURCES[SLUG.path].task
    assert json.loads(found["run.json"])["run"] == run
    assert download(f"/api/suites/evals/{number}/zip").keys() == found.keys()
    assert lab.ask("GET", "/api/suites/runs/99/zip").status_code == 404
    assert lab.ask("GET", "/api/suites/evals/99/zip").status_code == 404


# --- once and for all ----------------------------------------------------------------------------


def test_a_result_that_is_posted_twice_is_kept_once(lab: ServedLab, client: Client) -> None:
    run = post(client)
    before = client.suites.show_run(run)
    assert post(client) == run
    assert client.suites.show_run(run) == before
    assert rows_in(lab.lab) == len(RESULTS)


def test_concurrent_posts_of_one_result_store_it_once(lab: ServedLab, client: Client) -> None:
    post_tasks(client)

    def all_of_it(_: int) -> list[int]:
        with Client(lab.url, lab.local) as own:
            run = post_run(own)
            return [post_eval(own, run, one, made_at(n)) for n, one in enumerate(RESULTS)]

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(all_of_it, range(4)))
    assert all(one == told[0] for one in told)
    assert rows_in(lab.lab) == len(RESULTS)


def test_a_conclusive_result_is_not_replaced(lab: ServedLab, client: Client) -> None:
    run = post(client)
    better = replace(SLUG, outcome=Passed())
    with pytest.raises(ConflictError, match="another series"):
        post_eval(client, run, better, BEGUN + timedelta(days=1))
    assert rows_in(lab.lab) == len(RESULTS)
    assert client.suites.show_run(run)["counts"]["passed"] == 5


def test_an_inconclusive_result_is_replaced(client: Client) -> None:
    run = post(client)
    path = "002-files/003-download"
    again = inconclusive(path, "infrastructure")
    post_eval(client, run, again, BEGUN + timedelta(hours=1))
    post_eval(client, run, passed(path), BEGUN + timedelta(hours=2))
    assert client.suites.show_run(run)["counts"] == {"passed": 6, "failed": 4, "inconclusive": 1}


def test_stored_tasks_do_not_change(client: Client) -> None:
    run = post(client)
    post_tasks(client, task="Pass, whatever you do.")
    eval = client.suites.list_failed(run)[0]["eval"]
    assert client.suites.show_eval(eval)["task"] == SOURCES[SLUG.path].task


def test_another_series_or_condition_is_another_run(client: Client) -> None:
    first = post(client)
    assert post_run(client, series="1") != first
    assert post_run(client, settings={"guidelines": False}) != first
    assert post_run(client, replicates=3) == first
    assert client.suites.show_run(first)["targets"] == 33


# --- what is refused -----------------------------------------------------------------------------


def test_a_run_of_unknown_evals_is_refused(client: Client) -> None:
    with pytest.raises(NotFoundError, match="its files come first"):
        post_run(client)
    post_tasks(client)
    with pytest.raises(NotFoundError, match="'x/y'"):
        post_run(client, evals=["x/y"])
    assert client.suites.list_runs() == []


def test_a_result_outside_the_run_is_refused(client: Client) -> None:
    post_tasks(client)
    run = post_run(client)
    for wrong in (replace(SLUG, name="unknown"), replace(SLUG, replicate=1)):
        with pytest.raises(DesignError, match="asks for no replicate"):
            post_eval(client, run, wrong, BEGUN)
    with pytest.raises(NotFoundError):
        post_eval(client, run + 1, SLUG, BEGUN)


ODD: list[dict[str, Any]] = [
    {"files": {f"{n}.py": "" for n in range(501)}},
    {"files": {"a.py": "x" * 4_000_001}},
    {"files": {"x" * 501: ""}},
    {"steps": [{"name": "tests", "status": "passed", "seconds": 0}] * 101},
    {"steps": [{"name": "tests", "status": "splendid", "seconds": 0}]},
    {"outcome": {"kind": "splendid"}},
    {"outcome": {"kind": "inconclusive", "why": "bored", "reason": ""}},
    {"outcome": {"kind": "passed", "step": "tests"}},
    {"seconds": -1},
    {"usd": 1e300},
    {"replicate": 2**40},
    {"at": "2026-03-01T12:00:00"},
    {"category": "a/b"},
    {"surprise": 1},
]


def test_invalid_and_oversized_results_are_refused(lab: ServedLab, client: Client) -> None:
    post_tasks(client)
    run = post_run(client)
    for changes in ODD:
        body = {**plain(asdict(SLUG)), "at": BEGUN.isoformat(), **changes}
        del body["call_id"]
        said = lab.ask("POST", f"/api/suites/runs/{run}/evals", json=body)
        assert (said.status_code, said.json()["error"]["kind"]) == (422, "design"), changes
    assert rows_in(lab.lab) == 0


def test_a_request_that_is_too_long_is_refused(lab: ServedLab, client: Client) -> None:
    post_tasks(client)
    run = post_run(client)
    body = b'{"files": {"a.py": "' + b"x" * (17 * 1024**2) + b'"}}'
    path, kind = f"/api/suites/runs/{run}/evals", {"Content-Type": "application/json"}
    assert lab.ask("POST", path, content=body, headers=kind).status_code == 413


# --- who may -------------------------------------------------------------------------------------


def test_posting_needs_a_token_that_may_write(lab: ServedLab, client: Client) -> None:
    run = post(client)
    for token, kind in (("", TokenError), (lab.revoked, TokenError), (lab.read, ScopeError)):
        with Client(lab.url, token or "none") as other:
            with pytest.raises(kind):
                post_tasks(other)
            with pytest.raises(kind):
                post_run(other, series="1")
            with pytest.raises(kind):
                post_eval(other, run, SLUG, BEGUN + timedelta(days=1))
    with Client(lab.url, lab.read) as reader:
        assert [one["run"] for one in reader.suites.list_runs()] == [run]
    assert rows_in(lab.lab) == len(RESULTS)


def test_reads_are_public_only_if_the_server_is_started_so(
    lab: ServedLab, client: Client, tmp_path: Path
) -> None:
    run = post(client)
    eval = client.suites.list_failed(run)[0]["eval"]
    shown = [
        "/api/suites/runs",
        f"/api/suites/runs/{run}",
        f"/api/suites/runs/{run}/failed",
        f"/api/suites/evals/{eval}",
        "/api/suites/leaderboard",
        "/api/suites/schedule",
        f"/api/suites/tasks?suite={SUITE}&version={VERSION}",
        "/",
        "/suites",
        "/experiment/default",
        f"/model/{MODEL}/run/{run}",
        f"/experiment/default/run/{run}/{SLUG.path}",
    ]
    hidden = ["/new", "/usage", "/api/experiments", "/api/models", "/api/suitesx", "/modelx"]
    hidden += ["/experiments/pilot", "/api/session", "/api/suites/../experiments"]
    described = httpx.get(f"{lab.url}/api/openapi.json", timeout=60).json()["paths"]
    hidden += [path for path in described if "get" in described[path] and "suites" not in path]
    hidden = [path for path in hidden if path not in ("/api/health", "/api/ready")]
    for path in [*shown, *hidden]:
        assert lab.ask("GET", path, "").status_code == 401, path
    folder = tmp_path / "public"
    folder.mkdir()
    with serve_lab(folder, run=False, public_reads=True) as opened:
        with Client(opened.url, opened.local) as writer:
            assert post(writer) == run
        for path in shown:
            assert opened.ask("GET", path, "").status_code == 200, path
            assert opened.ask("GET", path, "jg_wrong").status_code == 401, "a token must be right"
        for path in hidden:
            assert opened.ask("GET", path, "").status_code == 401, path
        for path in ("tasks", "runs", f"runs/{run}/evals"):
            assert opened.ask("POST", f"/api/suites/{path}", "", json={}).status_code == 401
            assert opened.ask("DELETE", f"/api/suites/{path}", "").status_code == 401
        assert "Suites" in opened.ask("GET", "/suites", "").text


# --- what is due ---------------------------------------------------------------------------------


def test_the_schedule_uses_posted_runs(client: Client) -> None:
    post(client, model="elsewhere:large")
    [old] = client.suites.due(SUITE)
    since = old["due_from"]
    assert since is not None
    assert since == pytest.approx(BEGUN + timedelta(days=old["days"]), abs=timedelta(seconds=1))
    assert old["due"] is (since <= datetime.now(UTC)), "counted from when it was begun there"
    post_run(client, model="elsewhere:fresh", created=None)
    rows = {row["model"]: row for row in client.suites.due(SUITE)}
    assert rows["elsewhere:fresh"]["due"] is False
    [new] = client.suites.due(SUITE, models=["elsewhere:new"])
    assert (new["due"], new["due_from"]) == (True, None)
    assert client.suites.due("/etc") == client.suites.due("nothing"), "a name opens no folder"
