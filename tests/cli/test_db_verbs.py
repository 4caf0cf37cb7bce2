"""The commands over the database: upgrade, mark, status, migrate and contract."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
import yaml

import postgres
from conftest import Call, CommandResult
from judge_gym.store.database import HEAD, database_url

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"


@pytest.fixture
def gym(call: Call, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CommandResult]:
    """Calls a command as in a shell of its own: `--profile` holds for one command only."""

    def run(*words: str, profile: str | None = None) -> CommandResult:
        monkeypatch.delenv("JUDGE_GYM_PROFILE", raising=False)
        if profile is not None:
            monkeypatch.setenv("JUDGE_GYM_PROFILE", profile)
        try:
            return call("--db", "sqlite:///lab.db", *words)
        finally:
            monkeypatch.delenv("JUDGE_GYM_PROFILE", raising=False)

    return run


def test_a_production_database_is_written_only_with_the_profile_prod(
    gym: Callable[..., CommandResult],
) -> None:
    assert gym("db", "upgrade").out == f"schema none -> {HEAD}\n"
    assert gym("db", "mark", "prod").code == 0
    token = ("token", "create", "ada", "--scope", "read")
    refused = gym(*token)
    assert refused.code == 2 and "is production" in refused.err
    assert gym("--profile", "prod", *token).code == 0
    assert gym("token", "list").code == 0, "reading is free"
    assert gym("token", "create", "bo", "--scope", "read", profile="prod").code == 0
    status = gym("db", "status", "--watch")
    assert "(prod)" in status.out and f"schema {HEAD}, newest {HEAD}" in status.out
    assert gym("--profile", "prod", "db", "migrate").out == "0 rows changed\n"
    assert gym("--profile", "prod", "db", "contract").out == f"schema {HEAD} is current\n"


EMPTY = "there is no lab at .*judge-gym db upgrade"
FOREIGN = "belongs to another application"


@pytest.mark.parametrize("verb", ["mark prod", "migrate", "contract", "adopt", "status", "upgrade"])
@pytest.mark.parametrize(
    "kind",
    [
        *("missing", "empty", "foreign"),
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("foreign server", "empty server")
        ),
    ],
)
def test_a_database_without_a_lab_is_refused_in_words(call: Call, verb: str, kind: str) -> None:
    database = {"missing": "missing.db", "empty": "empty.db", "foreign": "foreign.db"}.get(kind)
    url = f"sqlite:///{database}" if database else postgres.empty_url()
    if kind == "empty":
        Path("empty.db").touch()
    if kind.startswith("foreign"):
        engine = sa.create_engine(database_url(url))
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE customers (id integer)"))
        engine.dispose()
    answer = call("--db", url, "db", *verb.split())
    words = FOREIGN if kind.startswith("foreign") else EMPTY
    if verb == "upgrade" and words == EMPTY:
        assert answer.out == f"schema none -> {HEAD}\n"
    elif verb == "status" and kind in ("empty", "empty server"):
        assert "schema none" in answer.out
    else:
        assert answer.code == 2
        assert re.search(words, answer.err)


@pytest.mark.slow
def test_a_read_only_server_is_read_and_refuses_writes_in_words(call: Call) -> None:
    url = postgres.fresh_url()
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(postgres.server(), autocommit=True) as connection:
        setting = f"ALTER DATABASE {name} SET default_transaction_read_only = on"
        connection.execute(setting.encode())
    assert call("--db", url, "db", "status").code == 0
    assert call("--db", url, "status").code == 0
    for verb in ("mark prod", "token create ada"):
        refused = call("--db", url, *(("db", "mark", "prod") if "mark" in verb else verb.split()))
        assert refused.code == 2 and "is read-only here, and nothing was written" in refused.err


def test_the_workflows_name_commands_that_exist() -> None:
    """A scheduled workflow would fail unseen if a command were renamed."""
    from typer.main import get_command

    from judge_gym.cli import load_app

    verbs: dict[str, Any] = vars(get_command(load_app()))["commands"]
    seen = 0
    for file in sorted(WORKFLOWS.glob("*.yml")):
        jobs = yaml.safe_load(file.read_text())["jobs"]
        for step in (step for job in jobs.values() for step in job["steps"]):
            _, found, command = step.get("run", "").partition("judge-gym ")
            if found:
                verb, *rest = command.split()
                assert verb in verbs, f"{file.name}: {command}"
                group = getattr(verbs[verb], "commands", None)
                assert group is None or rest[0] in group, f"{file.name}: {command}"
                seen += 1
    assert seen >= 6
