"""The ledger as a file: what leaves, what joins, what is refused; all of a file or nothing."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.records import Completion, Draw, Finish, Message, Request
from judge_gym.store import Attempt, Payer, Store, export_ledger, import_ledger
from judge_gym.store.tables import attempts, calls, texts
from stores import blank, contents, fresh, rows

ARTICLE = "A long article that many requests share. " * 50
BASE = Request(
    model="openai:gpt-5.2",
    messages=(Message("system", ("Be fair.",)), Message("user", ("Judge ", ARTICLE))),
    draw=Draw("7"),
    temperature=0.5,
    max_tokens=100,
    schema={"type": "object", "properties": {"verdict": {"enum": ["B", "A"]}}},
)
ENDPOINT = "https://lab.example/v1"
MB = 2**20


def attempt(request: Request, said: str | None, finish: Finish = "stop") -> Attempt:
    completion = Completion(said, finish, "gpt-5.2-2026", 10, 4, 0.25) if said is not None else None
    payer = Payer(1, "study", "study/tag", "scorer")
    error = None if completion else "overloaded"
    return Attempt(request.key(ENDPOINT), request, ENDPOINT, payer, 0.5, completion, error)


def record(store: Store, request: Request, said: str | None, finish: Finish = "stop") -> None:
    store.ledger.record([attempt(request, said, finish)])


def numbered(count: int) -> Iterator[Request]:
    return (replace(BASE, draw=Draw("7", number)) for number in range(count))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def rewritten(path: Path, made: list[Any]) -> None:
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in made).encode()))


def history(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every call's attempts by what they say, whatever their rows."""
    kept = ("study", "tag", "stage", "at", "seconds", "completed", "text", "finish",
            "reported_model", "input_tokens", "output_tokens", "usd", "error")  # fmt: skip
    keys = {row["id"]: row["key"] for row in rows(store, calls)}
    found: dict[str, list[tuple[Any, ...]]] = {key: [] for key in keys.values()}
    for row in rows(store, attempts):
        found[keys[row["call_id"]]].append(tuple(row[name] for name in kept))
    return found


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    """Another lab's store."""
    opened = Store.open(blank(tmp_path / "elsewhere" / "lab.db"))
    yield opened
    opened.close()


@pytest.fixture
def filled(store: Store) -> Store:
    """A ledger with every kind of answer, and a call that none came to."""
    answers = zip(numbered(250), ["VERDICT: A", "VERDICT: B"] * 125, strict=True)
    store.ledger.record([attempt(request, said) for request, said in answers])
    record(store, replace(BASE, draw=Draw("8")), None)
    for tried in (None, "first", "second", None):
        record(store, replace(BASE, draw=Draw("9")), tried)
    record(store, replace(BASE, draw=Draw("10")), "", "refusal")
    record(store, replace(BASE, draw=Draw("11")), "half a surrogate \ud83d, cut", "length")
    odd = (Message("user", ("half a surrogate \ud83d", "", "\x00 ☃ \n\u2028")),)
    record(store, replace(BASE, messages=odd, temperature=None, schema=None), "VERDICT: A")
    return store


# --- there and back ------------------------------------------------------------------------------


@pytest.mark.postgres
def test_an_imported_ledger_equals_the_exported_one(
    filled: Store, other: Store, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.jsonl.gz"
    exported = export_ledger(filled.database, file)
    imported = import_ledger(other.database, file)
    assert (exported.calls, exported.attempts) == (255, 258)
    assert imported == (255, 255, 258, 0, 0)
    assert history(other) == history(filled)
    same = [c for c in calls.c.keys() if c != "id"]
    assert [[row[c] for c in same] for row in rows(other, calls)] == [
        [row[c] for c in same] for row in rows(filled, calls)
    ]
    assert sorted(row["hash"] for row in rows(other, texts)) == sorted(
        row["hash"] for row in rows(filled, texts)
    )
    keys = [row["key"] for row in rows(filled, calls)]
    there, here = filled.ledger.find(keys), other.ledger.find(keys)
    assert {k: a.completion for k, a in here.items()} == {k: a.completion for k, a in there.items()}
    assert other.ledger.find([BASE.key(ENDPOINT)])[BASE.key(ENDPOINT)].completion is not None


def test_a_file_has_a_header_and_each_text_once(filled: Store, tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl.gz"
    made = export_ledger(filled.database, file)
    header, *rest = lines(file)
    assert header == {
        "line": "ledger", "version": 5, "revision": filled.database.revision(),
        "calls": made.calls, "attempts": made.attempts, "evidence": 0,
    }  # fmt: skip
    bodies = [line["body"] for line in rest if line["line"] == "text"]
    assert len(bodies) == len(set(bodies)) == made.texts
    assert bodies.count(ARTICLE) == 1
    first = file.read_bytes()
    export_ledger(filled.database, file)
    assert file.read_bytes() == first, "the same ledger makes the same file"
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []


def test_a_call_with_web_search_is_exported_as_a_separate_call(
    store: Store, other: Store, tmp_path: Path
) -> None:
    searching = replace(BASE, web_search=True)
    record(store, BASE, "without")
    record(store, searching, "with")
    file = tmp_path / "ledger.jsonl.gz"
    export_ledger(store.database, file)
    import_ledger(other.database, file)
    for request, said in ((BASE, "without"), (searching, "with")):
        [found] = other.ledger.find([request.key(ENDPOINT)]).values()
        assert found.completion is not None
        assert found.completion.text == said


def test_a_file_of_the_format_before_searches_is_read(
    filled: Store, other: Store, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.jsonl.gz"
    export_ledger(filled.database, file)
    made = lines(file)
    made[0]["version"] = 2
    for line in made:
        line.pop("web_search", None)
    rewritten(file, made)
    assert import_ledger(other.database, file).calls == 255
    assert history(other) == history(filled)


@pytest.mark.postgres
def test_importing_twice_adds_nothing(filled: Store, other: Store, tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl.gz"
    export_ledger(filled.database, file)
    import_ledger(other.database, file)
    before = history(other)
    again = import_ledger(other.database, file)
    assert again == (255, 0, 0, 254, 0)
    assert history(other) == before
    assert import_ledger(filled.database, file).attempts == 0, "nor where it came from"


@pytest.mark.postgres
def test_an_import_keeps_existing_answers_and_adds_missing_ones(
    store: Store, other: Store, tmp_path: Path
) -> None:
    answered, tried, new = numbered(3)
    for request, here, there in ((answered, "mine", "yours"), (tried, None, "yours")):
        record(store, request, there)
        record(other, request, here)
    record(store, new, None)
    file = tmp_path / "ledger.jsonl.gz"
    export_ledger(store.database, file)
    assert import_ledger(other.database, file) == (3, 1, 2, 1, 1)
    found = other.ledger.find([request.key(ENDPOINT) for request in (answered, tried, new)])
    said = [found[r.key(ENDPOINT)].completion for r in (answered, tried)]
    assert [one.text for one in said if one] == ["mine", "yours"]
    assert new.key(ENDPOINT) not in found
    assert import_ledger(other.database, file) == (3, 0, 0, 2, 1)


@pytest.mark.postgres
def test_imported_attempts_are_recorded_and_use_no_budget(
    filled: Store, other: Store, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.jsonl.gz"
    export_ledger(filled.database, file)
    import_ledger(other.database, file)
    record(other, replace(BASE, draw=Draw("new")), "VERDICT: A")
    apart = {row["imported"]: row for row in other.usage.rows(study="study")}
    [paid_there] = filled.usage.rows(study="study")
    assert apart[True] == {**paid_there, "imported": True}
    assert (apart[False]["attempts"], apart[False]["usd"]) == (1, 0.25)
    calls, tokens, usd, _ = other.usage.paid("study", 0)
    assert (calls, tokens, usd) == (1, 14, 0.25)


def test_an_empty_ledger_has_nothing_to_export(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match="no calls to export"):
        export_ledger(store.database, tmp_path / "ledger.jsonl.gz")
    assert not (tmp_path / "ledger.jsonl.gz").exists()


texts_of_any_kind = st.text(max_size=30)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    asked=st.lists(
        st.tuples(
            st.lists(texts_of_any_kind, min_size=1, max_size=3),
            st.none() | st.floats(0, 2) | st.integers(0, 2),
            st.sampled_from(["7", "again", ""]),
            st.lists(st.none() | texts_of_any_kind, min_size=1, max_size=3),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_ledger_survives_export_and_import(template: Path, asked: list[Any]) -> None:
    file = template.with_name("any.jsonl.gz")
    with fresh(template) as store:
        for parts, temperature, series, said in asked:
            request = Request(
                "openai:m", (Message("user", tuple(parts)),), Draw(series), temperature
            )
            for one in said:
                record(store, request, one)
        export_ledger(store.database, file)
        expected = history(store)
    with fresh(template) as store:
        import_ledger(store.database, file)
        assert history(store) == expected


# --- what is refused -----------------------------------------------------------------------------


def first(made: list[Any], kind: str) -> Any:
    return next(line for line in made if line["line"] == kind)


def drop_text(made: list[Any]) -> None:
    made.remove(first(made, "text"))


def change(*path: Any, to: Any, kind: str = "call") -> Callable[[list[Any]], None]:
    def edit(made: list[Any]) -> None:
        value = first(made, kind)
        for step in path[:-1]:
            value = value[step]
        value[path[-1]] = to

    return edit


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (change("body", to="Be unfair.", kind="text"), "line 2: the text does not"),
        (drop_text, "no earlier line has the text"),
        (change("key", to="0" * 64), "line 10: the call 000000000000 does not match"),
        (change("model", to="openai:gpt-5"), "line 10: .* does not match its request"),
        (change("endpoint", to="https://other.example"), "line 10: .* does not match"),
        (change("temperature", to=0.7), "line 10: .* does not match"),
        (change("draw", to=["7", 5, 0]), "line 10: .* does not match"),
        (change("output_schema", to=None), "line 10: .* does not match"),
        (change("attempts", 0, "said", "usd", to=0.0), "line 10: the attempts .* were changed"),
        (change("attempts", 0, "said", "finish", to="refusal"), "line 10: the attempts"),
        (change("attempts", to=[]), "ends with 5 calls, 4 attempts"),
        (change("attempts", 0, "said", "finish", to="bored"), "line 10: the line is damaged"),
        (change("attempts", 0, "said", "input_tokens", to=-1), "line 10: the line is damaged"),
        (change("secret", to=1), "line 10: the line is damaged"),
        (change("calls", to=7, kind="ledger"), "ends with 5 calls"),
        (change("line", to="song", kind="ledger"), "line 1: this is no ledger file"),
        (lambda made: made.pop(0), "line 1: the first line, and no other"),
        (lambda made: made.append(made[0]), "the first line, and no other"),
        (lambda made: made.pop(), "ends with 4 calls, 4 attempts .* it should hold 5, 5"),
        (lambda made: made.insert(3, ["a list"]), "line 4: the line is damaged"),
        (lambda made: made.clear(), "the file is empty"),
    ],
)  # fmt: skip
def test_a_tampered_file_is_refused_with_its_line_and_nothing_is_written(
    store: Store, other: Store, tmp_path: Path, edit: Callable[[list[Any]], Any], says: str
) -> None:
    for number, request in enumerate(numbered(5)):
        record(store, request, f"VERDICT: {number}")
    file = tmp_path / "ledger.jsonl.gz"
    export_ledger(store.database, file)
    made = lines(file)
    edit(made)
    rewritten(file, made)
    with pytest.raises(DesignError, match=says):
        import_ledger(other.database, file)
    assert [rows(other, table) for table in (calls, attempts, texts)] == [[], [], []]


def test_a_newer_format_is_refused(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl.gz"
    header = {"line": "ledger", "version": 6, "revision": "0009", "calls": 0, "attempts": 0}
    rewritten(file, [header])
    with pytest.raises(ConflictError, match="format 6 by a newer judge-gym"):
        import_ledger(store.database, file)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(
    filled: Store, other: Store, tmp_path: Path, kept: float
) -> None:
    file = tmp_path / "ledger.jsonl.gz"
    export_ledger(filled.database, file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(DesignError, match=r"line \d+: .*(cut off|no ledger file)"):
        import_ledger(other.database, file)
    assert rows(other, calls) == rows(other, texts) == []


@pytest.mark.parametrize("foreign", [b"", b"study: small\n", b"\x1f\x8b nonsense", b"PK\x03\x04"])
def test_a_foreign_file_is_refused(store: Store, tmp_path: Path, foreign: bytes) -> None:
    file = tmp_path / "ledger.jsonl.gz"
    file.write_bytes(foreign)
    with pytest.raises(DesignError, match="line 1"):
        import_ledger(store.database, file)
    file.write_bytes(gzip.compress(b"\xff\xfe no text\n"))
    with pytest.raises(DesignError, match="no ledger file"):
        import_ledger(store.database, file)
    with pytest.raises(NotFoundError, match="nowhere"):
        import_ledger(store.database, tmp_path / "nowhere.gz")


# --- size, and a sudden end ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 20,000 calls, made without a ledger: one line of each kind, repeated."""
    folder = tmp_path_factory.mktemp("large")
    store = Store.open(f"sqlite:///{folder / 'lab.db'}")
    record(store, BASE, "VERDICT: A")
    file = folder / "ledger.jsonl.gz"
    export_ledger(store.database, file)
    store.close()
    made = lines(file)
    call = made.pop()
    with gzip.open(folder / "large.jsonl.gz", "wt") as out:
        for line in ({**made[0], "calls": 20_000, "attempts": 20_000}, *made[1:]):
            out.write(json.dumps(line) + "\n")
        for number, request in enumerate(numbered(20_000)):
            line = {**call, "draw": ["7", number, 0], "key": request.key(ENDPOINT)}
            out.write(json.dumps(line) + "\n")
    return folder / "large.jsonl.gz"


MEASURED = """
import resource, sys
from pathlib import Path
from judge_gym.store import Store, export_ledger, import_ledger
store = Store.open(f"sqlite:///{sys.argv[2]}/lab.db")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert import_ledger(store.database, Path(sys.argv[1])).new == 20_000
assert export_ledger(store.database, Path(sys.argv[2]) / "again.jsonl.gz").calls == 20_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_ledger(large: Path, tmp_path: Path) -> None:
    """The calls of this file as objects would take some hundred MB."""
    words = [sys.executable, "-c", MEASURED, str(large), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 32 * 1024  # KB
    assert len(lines(tmp_path / "again.jsonl.gz")) == len(lines(large))


@pytest.mark.slow
def test_an_import_that_is_killed_leaves_the_database_whole(large: Path, tmp_path: Path) -> None:
    file = tmp_path / "lab.db"
    mine = Store.open(f"sqlite:///{file}")
    record(mine, replace(BASE, draw=Draw("mine")), "VERDICT: A")
    mine.close()
    shutil.copy(file, tmp_path / "before.db")
    process = subprocess.Popen(
        [sys.executable, "-m", "judge_gym", "ledger", "import", str(large)],
        env={**os.environ, "JUDGE_GYM_DATABASE_URL": f"sqlite:///{file}"},
        stdout=subprocess.DEVNULL,
    )
    wal, deadline = tmp_path / "lab.db-wal", time.monotonic() + 60
    while not (wal.exists() and wal.stat().st_size > MB):  # it is in the midst of writing
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert contents(file) == contents(tmp_path / "before.db")
    again = Store.open(f"sqlite:///{file}")
    assert import_ledger(again.database, large).new == 20_000
    assert len(rows(again, calls)) == 20_001
    again.close()
