"""The verbs of replay: ledger export and import, run --offline, reparse."""

import sqlite3
from contextlib import closing
from pathlib import Path

from conftest import Call, succeed


def elsewhere(tmp_path: Path) -> list[str]:
    return ["--db", f"sqlite:///{tmp_path / 'elsewhere' / 'lab.db'}"]


def sqlite(tmp_path: Path, statement: str) -> int:
    with closing(sqlite3.connect(tmp_path / ".judge-gym" / "lab.db")) as connection, connection:
        return connection.execute(statement).rowcount


def test_an_exported_study_runs_offline_in_another_lab(
    call: Call, finished: Path, tmp_path: Path
) -> None:
    there = elsewhere(tmp_path)
    said = succeed(call("ledger", "export", "small.jsonl.gz", "small", "--json")).json
    assert said["file"] == "small.jsonl.gz"
    assert said["calls"] == said["attempts"] > 12
    text = succeed(call("ledger", "export", "all.jsonl.gz")).out
    assert f"wrote {said['calls']:,} calls" in text
    missing = call(*there, "run", finished, "--offline")
    assert missing.code == 2
    assert "3 neutralizer of sim:editor" in missing.err
    shown = call(*there, "run", finished, "--offline", "--json").json
    assert shown["error"]["kind"] == "offline"
    assert "judge-gym ledger import FILE" in shown["error"]["message"]
    first = succeed(call(*there, "ledger", "import", "small.jsonl.gz", "--json")).json
    assert (first["new"], first["answered"], first["differing"]) == (said["calls"], 0, 0)
    again = succeed(call(*there, "ledger", "import", "small.jsonl.gz")).out
    assert f"0 new, {said['calls']:,} answered here before; 0 attempts added" in again
    result = succeed(call(*there, "run", finished, "--offline", "--json")).json
    assert result["status"] == "complete"
    assert [run["calls"] for run in result["runs"]] == [0, 0]
    here = succeed(call("export", "small")).out
    assert len(succeed(call(*there, "export", "small")).out) == len(here)
    usage = succeed(call(*there, "usage", "--json")).json
    assert {row["imported"] for row in usage} == {True}


def test_a_refused_file_names_the_reason(call: Call, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "song.gz").write_text("la la la")
    said = call("ledger", "import", "song.gz")
    assert (said.code, "no ledger file" in said.err) == (2, True)
    assert call("ledger", "import", "nothing.gz", "--json").json["error"]["kind"] == "notfound"
    said = call("ledger", "export", "x.gz", "nobody")
    assert (said.code, "nobody" in said.err) == (2, True)
    assert call("ledger", "export", "no/folder/x.gz").code == 2
    succeed(call(*elsewhere(tmp_path), "db", "upgrade"))
    said = call(*elsewhere(tmp_path), "ledger", "export", "x.gz")
    assert (said.code, "run a study first" in said.err) == (2, True)


def test_reparse_shows_what_changes_before_it_writes(
    call: Call, finished: Path, tmp_path: Path
) -> None:
    nothing = succeed(call("reparse", "small"))
    assert "0 changed" in nothing.out
    before = succeed(call("export", "small")).out
    lost = sqlite(
        tmp_path, "UPDATE samples SET status = 'parse_failed', stages = '' WHERE status = 'scored'"
    )
    damaged = succeed(call("export", "small")).out
    shown = succeed(call("reparse", "small"))
    assert all(word in shown.out for word in ("parse_failed", "scored", f"{lost} changed"))
    assert f"{lost} probes about changed verdicts would be deleted" in shown.err
    assert "judge-gym reparse small --write" in shown.err
    said = succeed(call("reparse", finished, "--json")).json
    assert (said["written"], said["probes_dropped"]) == (False, lost)
    assert said["changes"] == [
        {"record": "sample", "before": "parse_failed", "after": "scored", "count": lost}
    ]
    assert succeed(call("export", "small")).out == damaged
    written = succeed(call("reparse", "small", "--write"))
    assert "were deleted" in written.err
    assert "judge-gym run small" in written.err
    assert succeed(call("reparse", "small", "--write", "--json")).json["changes"] == []
    succeed(call("run", "small", "--offline"))
    assert succeed(call("export", "small")).out == before
    asked = call("ledger", "show", str(said["examples"][0]["call_id"]))
    assert "VERDICT" in asked.out
    assert call("reparse", "nobody").code == 2
