"""The metrics of a lab, as Prometheus reads them."""

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from judge_gym.lab import Lab
from judge_gym.records import Completion, Draw, Message, Request
from judge_gym.store import Payer, Store, metrics
from judge_gym.web import serve
from judge_gym.web.metrics import metrics_text
from stores import recorded

SAMPLE = re.compile(r'judge_gym_(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? ([-+.e\d]+)')


def samples(text: str) -> dict[tuple[str, str], float]:
    """The samples by name and labels; every line is a sample, or introduces the next ones."""
    values, introduced = {}, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# "):
            introduced.add(line.split()[2])
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        name = re.sub("_(bucket|sum|count)$", "", match[1])
        assert {f"judge_gym_{name}", f"judge_gym_{match[1]}"} & introduced
        values[match[1], match[2] or ""] = float(match[3])
    return values


def ask(store: Store, number: int, model: str, seconds: float | None, endpoint: str = "") -> None:
    """Records an attempt that completed after some seconds, or failed."""
    request = Request(model, (Message("user", (f"question {number}",)),), Draw("0", number))
    done = None if seconds is None else Completion("A", "stop", model, 30, 12, usd=0.25)
    recorded(store, request, Payer(1, "small", "tag", "scorer"), done, endpoint=endpoint)


@pytest.mark.postgres
def test_calls_are_counted_by_endpoint_and_each_is_read_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "UNSETTLED", 3)
    monkeypatch.setattr(metrics, "CHUNK", 2)
    for number in range(1, 8):
        ask(store, number, "openai:m", 0.5 if number % 3 else None, "https://api.example.com/v1")
    ask(store, 8, "sim:balanced?fail=0.5", 0.5)
    ask(store, 9, "local:/home/ada/secret.gguf", 0.5)
    for _ in range(2):
        values = samples(metrics_text(store.metrics.read(), money=True))
        hosted = 'provider="openai",model="openai:m",endpoint="api.example.com"'
        assert values["calls_total", f'{hosted},outcome="completed"'] == 5
        assert values["calls_total", f'{hosted},outcome="failed"'] == 2
        assert values["spend_usd_total", hosted] == 1.25
        assert values["tokens_total", hosted] == 5 * 42
        assert values["call_seconds_bucket", f'{hosted},le="0.25"'] == 0
        assert values["call_seconds_bucket", f'{hosted},le="0.5"'] == 5
        assert values["call_seconds_bucket", f'{hosted},le="+Inf"'] == 5
        assert values["call_seconds_count", hosted] == 5
        assert values["call_seconds_sum", hosted] == 2.5
    names = {labels for _, labels in values}
    assert any('model="sim:balanced"' in labels for labels in names)
    assert any('model="local:secret.gguf"' in labels for labels in names)
    assert not any("ada" in labels or "fail=" in labels for labels in names)


def test_many_models_are_counted_together_and_quotes_are_escaped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST", 2)
    for number, name in enumerate(['lab:say "hi"', "lab:b", "lab:c", "lab:d"]):
        ask(store, number, name, 0.1)
    values = samples(metrics_text(store.metrics.read(), money=False))
    other = 'provider="other",model="other",endpoint="other"'
    counted = {labels for name, labels in values if name == "call_seconds_count"}
    assert len(counted) == 3 and values["call_seconds_count", other] == 2
    assert 'provider="lab",model="lab:say \\"hi\\"",endpoint=""' in counted
    assert not any("usd" in name or "budget" in name for name, _ in values)


@pytest.mark.postgres
def test_a_server_shows_queue_workers_and_budgets_to_those_who_may_read(
    lab: Lab, write_study: Callable[..., Path]
) -> None:
    lab.runs.start(write_study(study="secret-name", budget={"usd": 3, "calls": 100}))
    _, read = lab.tokens.create("prometheus", "read")
    token = {"Authorization": f"Bearer {read}"}
    with serve(lab, port=0, work=False) as address:
        assert httpx.get(f"{address.url}/metrics", timeout=60).status_code == 401
        answer = httpx.get(f"{address.url}/metrics", headers=token, timeout=60)
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        values = samples(answer.text)
        assert values["queue", 'kind="run",state="queued"'] == 2
        assert values["workers", ""] == 0
        assert values["budget_left_usd", ""] == 3
        assert values["budget_left_ratio", 'kind="calls"'] == 1
        assert "secret" not in answer.text
    with serve(lab, port=0, work=False, public_reads=True) as address:
        public = httpx.get(f"{address.url}/metrics", timeout=60)
        assert public.status_code == 200 and "usd" not in public.text
        assert "usd" in httpx.get(f"{address.url}/metrics", headers=token, timeout=60).text
    lab.engine.work(until_idle=True)
    values = samples(metrics_text(lab.serving.metrics(), money=True))
    assert values["queue", 'kind="run",state="queued"'] == 0
    assert not any(name.startswith("budget") for name, _ in values), "nothing is in progress"
    answered = [n for (name, _), n in values.items() if name == "call_seconds_count"]
    assert sum(answered) == sum(row["calls"] for row in lab.reports.usage("secret-name"))
