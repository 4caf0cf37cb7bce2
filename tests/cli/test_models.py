"""The verbs about models."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Call, succeed
from web import JSON, Answer, Web

KEY = "sk-very-secret-0123456789"
SAID = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_760_000_000,
    "model": "gpt-5.2-2025-12-11",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "VERDICT: A"},
        }
    ],
    "usage": {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55},
}


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with Web() as web:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{web.url}/v1")
        yield web


def test_the_list_says_which_keys_are_set(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    (tmp_path / "judge-gym.models.toml").write_text(
        "[endpoints.lab]\nbase_url = 'http://user:hidden@127.0.0.1:8000/v1'\nrpm = 7\n"
        "[models.'lab:llama']\nseed = true\n"
    )
    said = succeed(call("models", "list", "--json"))
    rows = {row["provider"]: row for row in said.json["providers"]}
    assert [name for name, row in rows.items() if row["key is set"]] == ["google", "local", "lab"]
    assert (rows["lab"]["base url"], rows["lab"]["rpm"]) == ("http://127.0.0.1:8000/v1", 7)
    assert {"openai:gpt-5.2", "lab:llama"} <= {row["model"] for row in said.json["models"]}
    assert "OPENAI_API_KEY" in succeed(call("models", "list")).out
    assert KEY not in said.out and "hidden" not in said.out


def test_the_models_of_one_provider_are_listed_with_prices(call: Call) -> None:
    rows = {row["model"]: row for row in succeed(call("models", "list", "openai", "--json")).json}
    assert rows["openai:gpt-5.2"]["input usd/M"] == pytest.approx(1.75)
    assert rows["openai:o3"]["temperature"] is False
    assert "openai:gpt-5.2" in succeed(call("models", "list", "openai")).out
    refused = call("models", "list", "opnai", "--json")
    assert refused.code == 2
    assert "anthropic" in refused.json["error"]["choices"]


@pytest.mark.parametrize("id", ["gpt-5.2", "openai:gpt-5.2"])
def test_a_model_is_shown(call: Call, id: str) -> None:
    shown = succeed(call("models", "show", id, "--json")).json
    assert shown["model"] == "openai:gpt-5.2"
    assert shown["structured"] == "native"
    assert shown["limits"]["rpm"] == 30
    assert shown["cached usd/M"] == pytest.approx(0.175)
    assert "gpt-5.2-2025-12-11" in succeed(call("models", "show", id)).out


def test_a_check_makes_one_call_and_reports_the_model(call: Call, openai: Web) -> None:
    openai.on("/v1/chat/completions", Answer(json.dumps(SAID), type=JSON))
    said = succeed(call("models", "check", "openai:gpt-5.2"))
    assert "gpt-5.2-2025-12-11" in said.out and "VERDICT: A" in said.out
    assert "alias" in said.err
    assert len(openai.asked) == 1
    [row] = succeed(call("models", "check", "openai:gpt-5.2", "--json")).json
    assert row["works"] is True and row["reported"] == "gpt-5.2-2025-12-11"
    assert row["usd"] == pytest.approx(50 * 1.75e-6 + 5 * 14e-6)
    assert row["seconds"] > 0


def test_a_check_that_fails_says_why_and_never_the_key(call: Call, openai: Web) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}", "code": "invalid_api_key"}})
    openai.on("/v1/chat/completions", Answer(body, 401, JSON))
    said = call("models", "check", "openai:gpt-5.2", "sim:strict", "--json")
    assert said.code == 1
    hosted, simulated = said.json
    assert hosted["works"] is False and "401" in hosted["error"]
    assert simulated["works"] is True
    assert KEY not in said.out + said.err


@pytest.mark.parametrize("text", ["VERDICT: ?", "VERDICT: [A/B]", "It is noon."])
def test_a_check_says_that_an_answer_was_no_readable_verdict(
    call: Call, openai: Web, text: str
) -> None:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }
    answer = json.dumps({**SAID, "choices": [choice]})
    openai.on("/v1/chat/completions", Answer(answer, type=JSON))
    shown = succeed(call("models", "check", "openai:gpt-5.2"))
    assert "unreadable" in shown.out and "without a verdict that can be read" in shown.err
    assert " yes " not in shown.out.partition("on this machine")[0]
    checked = succeed(call("models", "check", "openai:gpt-5.2", "sim:strict", "--json")).json
    assert [row["readable"] for row in checked] == [False, True]


def test_an_uncallable_model_is_refused_before_any_call(call: Call, openai: Web) -> None:
    openai.on("/v1/chat/completions", Answer(json.dumps(SAID), type=JSON))
    said = call("models", "check", "openai:gpt-5.2", "anthropic:claude-sonnet-4-5")
    assert said.code == 2
    assert "ANTHROPIC_API_KEY" in said.err
    assert not openai.asked


def test_a_broken_file_is_named(call: Call, tmp_path: Path) -> None:
    (tmp_path / "judge-gym.models.toml").write_text("[endpoints.lab]\nrpm = 3\n")
    said = call("models", "list")
    assert said.code == 2
    assert "judge-gym.models.toml" in said.err and "base_url" in said.err
