"""A lab somewhere else says what the lab itself says, and refuses in the same words."""

import io
import socket
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from conftest import OnlySections
from judge_gym import errors
from judge_gym.analysis.report import verdicts
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
from judge_gym.web.middleware import Limits
from lab_server import OURS, ServedLab, serve_lab, without_workers
from tables import each_row
from web import JSON, Answer, Web


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("remote"), work=True) as opened:
        yield opened


@pytest.fixture
def client(lab: ServedLab) -> Iterator[Client]:
    with Client(lab.url, lab.local) as opened:
        yield opened


def test_a_list_is_read_page_by_page(
    lab: ServedLab, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge_gym.client.connection.PAGE", 4)
    for verb in ("list_samples", "list_probes"):
        found, wanted = (getattr(one.experiments, verb)("pilot") for one in (client, lab.lab))
        assert len(wanted) > 4
        assert sorted(found, key=sample) == sorted(wanted, key=sample)


def sample(row: dict[str, Any]) -> Any:
    return row["sample"]


def test_samples_are_downloaded_as_a_frame(lab: ServedLab, client: Client) -> None:
    tags = ("pilot", "pilot/strict")
    found = pd.read_parquet(io.BytesIO(client.samples_file(*tags, format="parquet")))
    wanted = lab.lab.experiments.exported_samples(*tags).drop(columns="truth")
    texts = wanted.select_dtypes("category").columns
    wanted = wanted.astype(dict.fromkeys(texts, "str"))
    pd.testing.assert_frame_equal(found.drop(columns="truth"), wanted)
    assert client.samples_file("pilot").decode() == lab.lab.export_experiment_csv("pilot")


def test_a_report_is_downloaded(client: Client, only_sections: OnlySections) -> None:
    only_sections(verdicts.response_outcomes)
    assert client.report_file("pilot").lstrip().startswith(b"<!doctype html>")
    assert client.report_file("pilot", format="markdown").startswith(b"# ")


@pytest.mark.slow
def test_the_client_follows_the_runbook_of_the_blueprint(client: Client) -> None:
    window = client.evidence.create_window("2026-06-01", "2026-06-30", "Norvessa")
    assert client.evidence.load(window, [{"title": "A", "text": "An editor was detained."}]) == 1
    client.evidence.freeze_pool("june", window_id=window)
    assert [row["title"] for row in client.evidence.list_pool_items("june")] == ["A"]
    assert client.evidence.diff_pools("june", "june")["same"]
    client.experiments.create("afar", window, "sim:balanced", "ecc", "fascism", OURS)
    after, seen = 0, []
    steps: list[dict[str, Any]] = [
        {"workflows": ["evidence"]},
        {"workflows": ["rubric"]},
        {"workflows": ["score"], "samples": 2},
        {"workflows": ["swap"], "rivals": ["sim:strict"]},
        {"workflows": ["probe"]},
    ]
    for step in steps:
        assert client.runs.start("afar", **step) == ["afar"]
        for kind, said in client.follow("afar", after=after):
            if kind == "event":
                after = said["id"]
        seen.append(said["afar"])
    assert seen == ["evidence-done", "rubric-done", "probing", "probing", "complete"]
    rows = client.experiments.list_samples("afar")
    assert [row["is_swap"] for row in rows].count(True) == 2
    assert client.runs.plan("afar")["stages"]["all"]["to_pay"] == 0


def test_the_client_controls_runs(lab: ServedLab, client: Client) -> None:
    with without_workers(lab.lab):
        assert client.runs.start("later", budget={"usd": 5}) == ["later"]
        assert client.runs.pause("later") == ["later"]
        assert client.experiments.show("later")["status"] == "paused"
        assert client.runs.retune("later", limits={"rpm": 50})["limits"] == {"rpm": 50}
        assert client.runs.resume("later") == ["later"]
        assert client.runs.cancel("later") == ["later"]
        assert client.experiments.show("later")["status"] == "cancelled"
    assert client.runs.retry("pilot") == ["pilot"]


# --- errors --------------------------------------------------------------------------------------


def test_the_client_raises_the_errors_of_the_lab(lab: ServedLab, client: Client) -> None:
    with pytest.raises(NotFoundError) as far:
        client.experiments.list_rubrics("pilo")
    with pytest.raises(NotFoundError) as near:
        lab.lab.list_experiment_rubrics("pilo")
    assert (far.value.message, far.value.choices) == (near.value.message, near.value.choices)
    with pytest.raises(DesignError, match="sim:nobody"):
        client.experiments.create("x", 1, "sim:nobody", "ecc", "x", {})
    client.evidence.freeze_pool("taken", window_id=1)
    client.evidence.load(1, [{"title": "new", "text": "A text that came later."}])
    with pytest.raises(ConflictError, match="other evidence"):
        client.evidence.freeze_pool("taken", window_id=1)


def test_a_token_limits_what_the_client_may_do(lab: ServedLab) -> None:
    with Client(lab.url, lab.read) as reader:
        assert reader.evidence.list_windows()
        with pytest.raises(ScopeError, match="reader"):
            reader.runs.start("pilot")
    for token in (None, "wrong", lab.revoked):
        with Client(lab.url, token) as nobody, pytest.raises(TokenError):
            nobody.evidence.list_windows()


def test_the_printed_address_contains_the_token(lab: ServedLab) -> None:
    with Client(f"{lab.url}/?token={lab.local}") as client:
        assert lab.local not in client.url
        assert client.evidence.list_windows()


def test_an_exceeded_rate_is_reported(tmp_path: Any) -> None:
    rare = Limits(per_second=1, burst=1)
    with serve_lab(tmp_path, run=False, limits=rare) as lab, Client(lab.url, lab.local) as client:
        for _ in range(3):  # it waits as long as it is asked to, and asks again
            assert client.evidence.list_windows()
        with pytest.raises(BusyError):
            for _ in range(3):
                client.evidence.create_window("2026-01-01", "2026-01-02", "Norvessa")


@pytest.mark.parametrize("url", ["", "lab", "ftp://lab", "http://", "127.0.0.1:8642"])
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(DesignError, match="address"):
        Client(url)


def test_an_unreachable_lab_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(url) as client, pytest.raises(UnavailableError) as caught:
        client.evidence.list_windows()
    assert caught.value.message == (
        f"the lab at {url} cannot be reached: connection refused (check the address, and that "
        "'judge-gym lab' runs there)"
    )


def test_a_timeout_is_distinguished_from_an_unreachable_lab() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(url, timeout=0.2) as client,
            pytest.raises(UnavailableError, match="does not answer in time"),
        ):
            client.evidence.list_windows()
    no_host = Client("http://no-such-host.invalid:1")
    with no_host as client, pytest.raises(UnavailableError, match="no host of that name"):
        client.evidence.list_windows()


@each_row(
    "kind",
    [
        one
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, JudgeGymError)
    ],
)
def test_every_error_keeps_its_type(kind: type[JudgeGymError]) -> None:
    said = f'{{"error": {{"kind": "{kind("").kind}", "message": "no", "choices": ["a"]}}}}'
    with Web() as web:
        web.on("/api/windows", Answer(said, kind.status, JSON))
        with Client(web.url) as client, pytest.raises(JudgeGymError) as refusal:
            client.evidence.create_window("2026-01-01", "2026-01-02", "x")
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
def test_an_error_of_an_unknown_kind_is_typed_by_its_status(
    body: str, status: int, kind: type[JudgeGymError]
) -> None:
    with Web() as web:
        web.on("/api/windows", Answer(body, status, JSON))
        with Client(web.url) as client, pytest.raises(JudgeGymError) as refusal:
            client.evidence.list_windows()
    assert type(refusal.value) is kind


def test_a_search_does_not_reach_the_servers_own_network(lab: ServedLab, client: Client) -> None:
    """Else whoever may write could read what only the server reaches."""
    month = ("2026-01-01", "2026-01-31", "Valdoria")
    with pytest.raises(JudgeGymError, match="private"):
        client.evidence.collect(*month, origin="feeds", addresses=[f"{lab.url}/api/health"])
    with pytest.raises(DesignError, match="needs addresses"):
        client.evidence.collect(*month, origin="feeds", query="press")
    with pytest.raises(DesignError, match="needs a query"):
        client.evidence.collect(*month, origin="gdelt")
    with pytest.raises(DesignError, match="no addresses"):
        client.evidence.collect(*month, origin="gdelt", query="press", addresses=["https://a.org"])
    with pytest.raises(DesignError, match="unknown search 'wiki'") as refusal:
        client.evidence.collect(*month, origin="wiki", query="press")
    assert {"feeds", "gdelt"} <= set(refusal.value.choices)
    with pytest.raises(DesignError, match="a window ends after it starts"):
        client.evidence.collect("2026-02-01", *month[1:], origin="gdelt", query="press")
