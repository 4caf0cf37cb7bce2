"""A lab somewhere else says what the lab itself says, and refuses in the same words."""

import inspect
import json
import socket
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from judge_gym import errors
from judge_gym.client import Client
from judge_gym.errors import (
    BusyError,
    ConflictError,
    DesignError,
    JudgeGymError,
    NotFoundError,
    ScopeError,
    TokenError,
    UnavailableError,
)
from judge_gym.lab import Lab
from judge_gym.web.middleware import Limits
from served import OURS, Served, alone, served
from web import JSON, Answer, Web


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("remote"), work=True) as opened:
        yield opened


@pytest.fixture
def client(lab: Served) -> Iterator[Client]:
    with Client(lab.url, lab.local) as opened:
        yield opened


def plain(value: Any) -> Any:
    import json

    return json.loads(json.dumps(value, default=str))


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["sample"])


def lab_verb(lab: Lab, verb: str) -> Any:
    """A verb by its flat name, wherever the lab has it."""
    nouns = {
        "list_windows": lab.evidence.list_windows,
        "list_evidence": lab.evidence.list,
        "show_evidence": lab.evidence.show,
        "list_pools": lab.evidence.list_pools,
        "list_labels": lab.labels.list,
        "usage": lab.reports.usage,
    }
    return nouns.get(verb) or getattr(lab, verb)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("list_windows", ()),
        ("list_evidence", (1,)),
        ("show_evidence", (1,)),
        ("list_pools", ()),
        ("list_labels", ()),
        ("list_experiments", ()),
        ("list_experiments_by_task_type", ("ecc",)),
        ("get_experiment_summary", ("pilot/strict",)),
        ("list_experiment_rubrics", ("pilot",)),
        ("export_experiment_csv", ("pilot",)),
        ("export_design_space_csv", (["pilot", "pilot/strict"],)),
        ("usage", ()),
        ("usage", ("pilot",)),
    ],
)
def test_a_verb_says_what_the_labs_own_says(
    lab: Served, client: Client, verb: str, words: tuple[Any, ...]
) -> None:
    assert getattr(client, verb)(*words) == plain(lab_verb(lab.lab, verb)(*words))


@pytest.mark.parametrize("verb", ["list_experiment_samples", "list_experiment_probes"])
def test_rows_come_page_by_page_and_are_the_same(
    lab: Served, client: Client, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge_gym.client.connection.PAGE", 4)
    found, wanted = getattr(client, verb)("pilot"), plain(getattr(lab.lab, verb)("pilot"))
    assert len(wanted) > 4
    assert ordered(found) == ordered(wanted)


def test_samples_are_a_frame(lab: Served, client: Client) -> None:
    tags = ("pilot", "pilot/strict")
    found, wanted = (
        one.samples(*tags).drop(columns="truth") for one in (client, lab.lab.experiments)
    )
    texts = wanted.select_dtypes("category").columns
    pd.testing.assert_frame_equal(found, wanted.astype(dict.fromkeys(texts, "str")))


@pytest.mark.parametrize(
    "verb", [name for name in vars(Client) if not name.startswith("_") and hasattr(Lab, name)]
)
def test_a_verb_takes_what_the_labs_own_takes(verb: str) -> None:
    """As far as it goes: a remote lab reads no files of ours and shows no progress of its own."""
    here, there = (inspect.signature(getattr(kind, verb)).parameters for kind in (Client, Lab))
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in here.values()):
        return
    assert set(here) <= set(there)
    required = [name for name, one in there.items() if one.default is inspect.Parameter.empty]
    assert set(required) <= set(here)


def test_the_runbook_of_the_blueprint_from_afar(client: Client) -> None:
    window = client.create_window("2026-06-01", "2026-06-30", "Norvessa")
    assert client.load_items(window, [{"title": "A", "text": "An editor was detained."}]) == 1
    client.freeze_pool("june", window_id=window)
    assert [row["title"] for row in client.list_pool("june")] == ["A"]
    assert client.diff_pools("june", "june")["same"]
    client.create_experiment("afar", window, "sim:balanced", "ecc", "fascism", OURS)
    after, seen = 0, []
    steps: list[tuple[str, tuple[Any, ...]]] = [
        ("start_evidence_pipeline", ()),
        ("start_rubric_generation", ()),
        ("start_scoring_trial", (2,)),
        ("start_swap_trial", ("sim:strict",)),
        ("start_probing_trial", ()),
    ]
    for step, words in steps:
        assert getattr(client, step)("afar", *words) == ["afar"]
        for kind, said in client.follow("afar", after=after):
            if kind == "event":
                after = said["id"]
        seen.append(said["afar"])
    assert seen == ["evidence-done", "rubric-done", "probing", "probing", "complete"]
    rows = client.list_experiment_samples("afar")
    assert [row["is_swap"] for row in rows].count(True) == 2
    assert client.plan("afar")["stages"]["all"]["to_pay"] == 0


def test_runs_are_steered_from_afar(lab: Served, client: Client) -> None:
    with alone(lab.lab):
        assert client.start("later", budget={"usd": 5}) == ["later"]
        assert client.pause("later") == ["later"]
        assert client.get_experiment_summary("later")["status"] == "paused"
        assert client.retune("later", limits={"rpm": 50})["limits"] == {"rpm": 50}
        assert client.resume("later") == ["later"]
        assert client.cancel("later") == ["later"]
        assert client.get_experiment_summary("later")["status"] == "cancelled"
    assert client.retry("pilot") == ["pilot"]


# --- errors --------------------------------------------------------------------------------------


def test_what_is_refused_is_raised_as_the_lab_raises_it(lab: Served, client: Client) -> None:
    with pytest.raises(NotFoundError) as far:
        client.list_experiment_rubrics("pilo")
    with pytest.raises(NotFoundError) as near:
        lab.lab.list_experiment_rubrics("pilo")
    assert (far.value.message, far.value.choices) == (near.value.message, near.value.choices)
    with pytest.raises(DesignError, match="sim:nobody"):
        client.create_experiment("x", 1, "sim:nobody", "ecc", "x", {})
    client.freeze_pool("taken", window_id=1)
    client.load_items(1, [{"title": "new", "text": "A text that came later."}])
    with pytest.raises(ConflictError, match="other evidence"):
        client.freeze_pool("taken", window_id=1)


def test_a_token_says_what_may_be_done(lab: Served) -> None:
    with Client(lab.url, lab.read) as reader:
        assert reader.list_windows()
        with pytest.raises(ScopeError, match="reader"):
            reader.start("pilot")
    for token in (None, "wrong", lab.revoked):
        with Client(lab.url, token) as nobody, pytest.raises(TokenError):
            nobody.list_windows()


def test_the_address_that_is_printed_is_enough(lab: Served) -> None:
    with Client(f"{lab.url}/?token={lab.local}") as client:
        assert lab.local not in client.url
        assert client.list_windows()


def test_who_asks_too_often_is_told_so(tmp_path: Any) -> None:
    rare = Limits(per_second=1, burst=1)
    with served(tmp_path, run=False, limits=rare) as lab, Client(lab.url, lab.local) as client:
        for _ in range(3):  # it waits as long as it is asked to, and asks again
            assert client.list_windows()
        with pytest.raises(BusyError):
            for _ in range(3):
                client.create_window("2026-01-01", "2026-01-02", "Norvessa")


@pytest.mark.parametrize("url", ["", "lab", "ftp://lab", "http://", "127.0.0.1:8642"])
def test_an_address_is_one(url: str) -> None:
    with pytest.raises(DesignError, match="address"):
        Client(url)


def test_nobody_there_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(url) as client, pytest.raises(UnavailableError) as caught:
        client.list_windows()
    assert caught.value.message == (
        f"the lab at {url} cannot be reached: connection refused (check the address, and that "
        "'judge-gym lab' runs there)"
    )


def test_a_lab_that_says_nothing_is_told_from_one_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(url, timeout=0.2) as client,
            pytest.raises(UnavailableError, match="does not answer in time"),
        ):
            client.list_windows()
    no_host = Client("http://no-such-host.invalid:1")
    with no_host as client, pytest.raises(UnavailableError, match="no host of that name"):
        client.list_windows()


@pytest.mark.parametrize(
    "kind",
    [
        one
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, JudgeGymError)
    ],
)
def test_every_error_comes_back_as_itself(kind: type[JudgeGymError]) -> None:
    said = f'{{"error": {{"kind": "{kind("").kind}", "message": "no", "choices": ["a"]}}}}'
    with Web() as web:
        web.on("/api/windows", Answer(said, kind.status, JSON))
        with Client(web.url) as client, pytest.raises(JudgeGymError) as refusal:
            client.create_window("2026-01-01", "2026-01-02", "x")
    assert type(refusal.value) is kind
    assert (refusal.value.message, refusal.value.choices) == ("no", ("a",))


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ('{"error": {"kind": "taken", "message": "no", "choices": []}}', 409, ConflictError),
        ('{"error": {"kind": "novel", "message": "no", "choices": []}}', 418, JudgeGymError),
        ("<html>", 502, UnavailableError),
        ('{"error": "x"}', 500, UnavailableError),
        ("[]", 404, UnavailableError),
    ],
)
def test_an_error_of_an_unknown_kind_is_what_its_status_says(
    body: str, status: int, kind: type[JudgeGymError]
) -> None:
    with Web() as web:
        web.on("/api/windows", Answer(body, status, JSON))
        with Client(web.url) as client, pytest.raises(JudgeGymError) as refusal:
            client.list_windows()
    assert type(refusal.value) is kind


def test_stored_answers_are_read_again(lab: Served, client: Client) -> None:
    found = client.reparse("pilot")
    assert found == lab.lab.runs.reparse("pilot").to_json() and found["read"]["sample"] > 0


def test_a_search_asks_nobody_inside_the_server_s_own_network(lab: Served, client: Client) -> None:
    """Else whoever may write could read what only the server reaches."""
    month = ("2026-01-01", "2026-01-31", "Valdoria")
    with pytest.raises(JudgeGymError, match="private"):
        client.collect(*month, feeds=[f"{lab.url}/api/health"])
    with pytest.raises(DesignError, match="give one of feeds, gdelt and firecrawl"):
        client.collect(*month, feeds=["https://news.example/feed"], gdelt="press")
    with pytest.raises(DesignError, match="a window ends after it starts"):
        client.collect("2026-02-01", *month[1:], gdelt="press")


def test_a_lab_is_looked_after_from_elsewhere(lab: Served, client: Client) -> None:
    assert client.status("pilot")["runs"] == json_of(lab.lab.runs.status("pilot")["runs"])
    assert client.list_studies() == lab.lab.experiments.list_studies()
    assert client.tables() == json_of(lab.lab.admin.tables())
    assert client.environment() == lab.lab.admin.environment()
    counted = "SELECT status, count(*) AS n FROM samples GROUP BY status"
    assert client.query(counted)["rows"] == json_of(lab.lab.admin.query(counted).rows)
    with pytest.raises(NotFoundError):
        client.show_study("nowhere")
    with pytest.raises(NotFoundError):
        client.cleanup("nowhere")


def json_of(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))
