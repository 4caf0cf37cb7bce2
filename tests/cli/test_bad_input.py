"""Bad input: exit 2, one line that says what, where and the choices, and nothing lost."""

import ctypes
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge_gym.cli import main
from judge_gym.lab import Lab
from judge_gym.store.database import HEAD
from stores import adopt

TAG = "small/fascism/here/sim:balanced"
STUDY: dict[str, Any] = {
    "study": "small",
    "samples": 1,
    "evidence": {"here": {"files": "evidence.jsonl", "window": {"country": "Valdoria"}}},
    "protocol": "contested-concepts",
    "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "here"}],
    "judges": ["sim:balanced", "sim:strict"],
    "design": {"evidence.editor": "sim:editor", "rubric.critic": "sim:critic"},
}
ROLES = STUDY["design"]


@pytest.fixture(scope="module")
def worked_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that has been run."""
    folder = tmp_path_factory.mktemp("worked-in")
    (folder / "evidence.jsonl").write_text('{"title": "T", "text": "An editor was detained."}')
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    with Lab.open(f"sqlite:///{folder / '.judge-gym' / 'lab.db'}") as lab:
        assert lab.runs.run(folder / "study.yaml").status == "complete"
    return folder


@pytest.fixture
def folder(worked_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in."""
    copy = tmp_path / "work"
    shutil.copytree(worked_in, copy)
    adopt(f"sqlite:///{copy / '.judge-gym' / 'lab.db'}")
    monkeypatch.chdir(copy)
    monkeypatch.delenv("JUDGE_GYM_DATABASE_URL", raising=False)
    return copy


def contents(folder: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(folder / ".judge-gym" / "lab.db")) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
            for (name,) in names
        }


@dataclass(frozen=True)
class Case:
    """A fault, the call that meets it, and what must be said."""

    id: str
    words: list[str]
    says: list[str]
    study: dict[str, Any] = field(default_factory=dict)
    """Keys of the study that are replaced."""
    text: str | None = None
    """The whole study file instead."""
    files: dict[str, str] = field(default_factory=dict)
    choices: list[str] = field(default_factory=list)
    at: str = ""
    """What stands in the line of the study file that must be named."""


def in_file(id: str, says: list[str], **more: Any) -> Case:
    return Case(id, ["plan", "study.yaml"], says, **more)


METHODS = ["single", "subset"]
CASES = [
    # the design
    in_file("knob", at="verdict.methd", says=["verdict.methd"], choices=["verdict.method"],
            study={"design": {**ROLES, "verdict.methd": "single"}}),
    in_file("group", at="verdikt.method", says=["verdikt.method", "verdict.*"],
            study={"design": {**ROLES, "verdikt.method": "single"}}),
    in_file("level", at="singel", says=["'singel'", "verdict.method"], choices=METHODS,
            study={"design": {**ROLES, "verdict.method": "singel"}}),
    in_file("level-vary", at="- singel", says=["'singel'"], choices=METHODS,
            study={"vary": {"verdict.method": ["single", "singel"]}}),
    in_file("alias-level", at="scoringMethod", says=["scoringMethod"], choices=["structured-json"],
            study={"design": {**ROLES, "scoringMethod": "guess"}}),
    in_file("scale-1", at="rubric.scale", says=["rubric.scale", "1", "2 to 26"],
            study={"design": {**ROLES, "rubric.scale": 1}}),
    in_file("scale-27", at="rubric.scale", says=["rubric.scale", "27", "2 to 26"],
            study={"design": {**ROLES, "rubric.scale": 27}}),
    in_file("scale-word", at="rubric.scale", says=["rubric.scale", "four", "2 to 26"],
            study={"design": {**ROLES, "rubric.scale": "four"}}),
    in_file("judge-varies", at="judge.model", says=["judge.model"],
            study={"vary": {"judge.model": ["sim:hasty", "sim:sloppy"]}}),
    in_file("editor-judges", at="evidence.editor", says=["evidence.editor", "sim:strict"],
            study={"design": {**ROLES, "evidence.editor": "sim:strict"}}),
    # --set
    Case("set-knob", ["plan", "study.yaml", "--set", "verdict.methd=x"], ["verdict.methd"],
         choices=["verdict.method"]),
    Case("set-level", ["run", "study.yaml", "--set", "verdict.method=singel"], ["'singel'"],
         choices=METHODS),
    Case("set-scale", ["run", "study.yaml", "--set", "rubric.scale=27"], ["27", "2 to 26"]),
    Case("set-nothing", ["run", "study.yaml", "--set", "verdict.method"], ["GROUP.KNOB=LEVEL"]),
    Case("set-broken", ["run", "study.yaml", "--set", "rubric.scale=[4"], ["rubric.scale=[4"]),
    Case("set-tag", ["run", TAG, "--set", "rubric.scale=5"], ["--set"]),
    # models
    in_file("model", at="nobody", says=["sim:nobody"], choices=["sim:balanced"],
            study={"judges": ["sim:nobody"]}),
    in_file("bare-model", at="nobody", says=["nobody"], choices=["sim:balanced"],
            study={"judges": ["nobody"]}),
    in_file("provider", at="acme", says=["acme"], choices=["sim", "openai"],
            study={"judges": ["acme:gpt"]}),
    in_file("no-model", at="- 'sim:'", says=["sim:"], study={"judges": ["sim:"]}),
    in_file("sim-parameter", at="nose", says=["'nose'"], choices=["noise"],
            study={"judges": ["sim:balanced?nose=0.3"]}),
    in_file("sim-value", at="loud", says=["noise", "loud"],
            study={"judges": ["sim:balanced?noise=loud"]}),
    in_file("sim-range", at="99", says=["noise", "99"],
            study={"judges": ["sim:balanced?noise=99"]}),
    in_file("judge-twice", ["study.yaml", "twice"], study={"judges": ["sim:strict", "sim:strict"]}),
    Case("uncallable", ["run", "study.yaml"], ["openai:gpt-5.2", "simulated"],
         choices=["sim:balanced"], study={"judges": ["openai:gpt-5.2"]}),
    Case("rival", ["swap", TAG, "--from", "sim:nobody"], ["sim:nobody"], choices=["sim:strict"]),
    # evidence and rubrics
    in_file("no-evidence", at="elsewhere", says=["'elsewhere'", "fascism"], choices=["here"],
            study={"tasks": [{"type": "ecc", "concept": "fascism", "evidence": "elsewhere"}]}),
    in_file("no-file", ["missing.jsonl"],
            study={"evidence": {"here": {"files": "missing.jsonl", "window": {"country": "V"}}}}),
    in_file("empty-file", ["evidence.jsonl", "no evidence"], files={"evidence.jsonl": ""}),
    in_file("empty-text", ["evidence.jsonl:1", "empty"], files={"evidence.jsonl": '{"text": ""}'}),
    in_file("broken-json", ["evidence.jsonl:2", "broken JSON"],
            files={"evidence.jsonl": '{"text": "x"}\n{"text"'}),
    in_file("field", ["evidence.jsonl:1", "'body'"], choices=["text"],
            files={"evidence.jsonl": '{"body": "x"}'}),
    in_file("no-rubric", ["rubric.json"], study={"tasks": [
        {"type": "benchmark", "concept": "x", "evidence": "here", "rubric": "rubric.json"}]}),
    in_file("needs-rubric", at="- type", says=["rubric"],
            study={"tasks": [{"type": "benchmark", "concept": "x", "evidence": "here"}]}),
    # the file
    in_file("yaml", ["study.yaml:2", "invalid YAML"], text="study: small\nsamples: 1: 2\n"),
    in_file("yaml-tab", ["study.yaml:2", "invalid YAML"], text="study: small\n\tsamples: 1\n"),
    in_file("yaml-twice", ["study.yaml:3", "twice"], text="study: a\nseed: 1\nstudy: b\n"),
    in_file("yaml-odd-key", ["study.yaml:1"], text="? [a, b]\n: c\n"),
    in_file("yaml-loop", ["study.yaml:1"], text="study: &a [*a]\n"),
    in_file("empty", ["study.yaml:1", "mapping"], text=""),
    in_file("list", ["study.yaml:1", "mapping"], text="- a\n- b\n"),
    in_file("key", at="sample: 5", says=["'sample'"], choices=["samples"], study={"sample": 5}),
    in_file("type", at="poll", says=["poll"], choices=["ecc", "control", "benchmark"],
            study={"tasks": [{"type": "poll", "concept": "x", "evidence": "here"}]}),
    in_file("samples", at="samples: 0", says=["samples", "0"], study={"samples": 0}),
    in_file("name", at="two words", says=["study.yaml:1", "study"], study={"study": "two words"}),
    in_file("no-judges", ["study.yaml", "judges"], study={"judges": []}),
    in_file("swap", ["study.yaml", "sim:hasty"], choices=["sim:strict"],
            study={"swap": [["sim:hasty", "sim:strict"]]}),
    # words
    Case("verb", ["frobnicate"], ["frobnicate"]),
    Case("option", ["run", "study.yaml", "--fast"], ["--fast"]),
    Case("no-target", ["run"], ["target"]),
    Case("number", ["run", "study.yaml", "--samples", "many"], ["samples", "integer", "'many'"]),
    Case("zero", ["run", "study.yaml", "--samples", "0"], ["samples", "1", "'0'"]),
    Case("argument", ["suite", "failed", "x"], ["run", "integer", "'x'"]),
    Case("seed", ["plan", "study.yaml"], ["seed", "-1", "0"], study={"seed": -1}),
    Case("rpm", ["models", "list"], ["lab.rpm", "-5", "equal to 0"],
         files={"judge-gym.models.toml": '[endpoints.lab]\nbase_url = "http://a/v1"\nrpm = -5\n'}),
    Case("format", ["export", "--format", "xml"], ["'xml'"], choices=["csv", "parquet"]),
    Case("parquet", ["export", "--format", "parquet"], ["--out"]),
    Case("with", ["export", "--with", "text,labls"], ["'labls'"], choices=["labels", "answer"]),
    Case("suffix", ["export", "--out", "a.xyz"], ["'xyz'", "a.xyz"], choices=["csv", "parquet"]),
    Case("no-suffix", ["export", "--out", "a"], ["for a"], choices=["csv", "parquet"]),
    Case("mismatch", ["export", "--format", "parquet", "--out", "a.csv"], ["a.csv", ".parquet"]),
    Case("out", ["export", "--out", "no/such/folder/x.csv"], ["no/such/folder"]),
    Case("page", ["report", "small", "--out", "no/such/folder/x.html"], ["no/such/folder"]),
    # before the report is built, so a study that is missing is not looked for
    Case("page-first", ["report", "nosuch", "--out", "no/such/x.html"], ["no/such"]),
    Case("page-suffix", ["report", "nosuch", "--out", "x.pdf"], ["'.pdf'"], choices=[".html"]),
    Case("example", ["init", "new", "--example", "nosuch"], ["'nosuch'"],
         choices=["support", "contested", "review"]),
    Case("task-type", ["status", "--type", "poll"], ["'poll'"], choices=["ecc", "benchmark"]),
    Case("call", ["ledger", "show", "9999"], ["9999"]),
    # databases
    Case("postgres", ["--db", "postgresql://ann:hunter2@h/lab", "status"], ["postgresql"]),
    Case("memory", ["--db", "sqlite:///:memory:", "status"], ["sqlite:///FILE"]),
    Case("no-url", ["--db", "lab.db", "status"], ["sqlite:///"]),
    Case("no-database", ["--db", "sqlite:///study.yaml", "status"], ["study.yaml"]),
    Case("file-as-folder", ["--db", "sqlite:///study.yaml/lab.db", "status"], ["study.yaml"]),
]  # fmt: skip
CASES += [
    Case(f"no-study-{words[0]}", [*words, "missing.yaml"], ["missing.yaml"])
    for words in (["plan"], ["run"], ["status"], ["report"], ["export"], ["score"],
                  ["swap", "--suggest"])
]  # fmt: skip
CASES += [
    Case(f"no-tag-{'-'.join(words)}", [*words, "sim:balanced"], ["'sim:balanced'"], choices=[TAG])
    for words in (["plan"], ["run"], ["status"], ["report"], ["export"], ["cleanup"], ["probe"],
                  ["score", "list"], ["rubric", "list"], ["probe", "list"], ["swap", "--suggest"])
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_bad_input_is_answered_in_one_line_and_loses_nothing(
    folder: Path, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    if case.study or case.text is not None:
        study = {**STUDY, **case.study}
        text = case.text if case.text is not None else yaml.safe_dump(study, sort_keys=False)
        (folder / "study.yaml").write_text(text)
    for name, text in case.files.items():
        (folder / name).write_text(text)
    before = contents(folder)
    with pytest.raises(SystemExit) as end:
        main(case.words)
    said = capsys.readouterr()
    assert end.value.code == 2
    assert said.out == ""
    assert re.fullmatch(r"judge-gym: .+\n", said.err)
    for words in (*case.says, *case.choices):
        assert words in said.err
    if case.at:
        lines = (folder / "study.yaml").read_text().splitlines()
        [line] = [number for number, text in enumerate(lines, 1) if case.at in text]
        assert f"study.yaml:{line}:" in said.err
    assert "hunter2" not in said.err
    assert contents(folder) == before

    if not {"init", "export", "frobnicate", "--out"} & set(case.words):
        with pytest.raises(SystemExit) as end:
            main([*case.words, "--json"])
        said = capsys.readouterr()
        assert (end.value.code, said.err) == (2, "")
        error = json.loads(said.out)["error"]
        assert set(error) == {"kind", "message", "choices"}
        assert all(words in error["message"] for words in case.says)
        assert set(case.choices) <= set(error["choices"])
        assert contents(folder) == before


@pytest.mark.parametrize("words", [["status"], ["run", "study.yaml"], ["db", "upgrade"]])
def test_a_database_of_a_newer_version_is_left_alone(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(folder / ".judge-gym" / "lab.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE compatibility SET oldest = '9999'")
    before = contents(folder)
    with pytest.raises(SystemExit) as end:
        main(words)
    said = capsys.readouterr()
    assert end.value.code == 2
    assert re.fullmatch(r"judge-gym: .*9999.*\n", said.err)
    assert HEAD in said.err
    assert contents(folder) == before


READERS = (
    "status|status small|usage|export|report small|cleanup small|pause small|resume small|"
    "cancel small|retry small|retune small --budget usd=1|reparse small|"
    "plan small --power 0.1|plan small --next|"
    "ledger show 1|ledger export x.gz|evidence list|evidence show 1|evidence drop 1|rubric list x|"
    "score list x|probe list x|swap small --suggest|pool list|pool show x|pool diff x y|"
    "labels list|token list|token revoke x|suite runs|suite board|suite failed 1|suite debug 1|"
    "suite show 1|analyze 1|db status|db migrate|db contract|db mark prod|db adopt"
)


@pytest.mark.parametrize("words", READERS.split("|"))
def test_reading_commands_create_no_lab(
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A mistyped name is told, not filled with an empty lab."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["--db", "sqlite:///no/where.db", *words.split()])
    said = capsys.readouterr()
    assert (end.value.code, said.out) == (2, "")
    assert "there is no lab at sqlite:///no/where.db" in said.err and "judge-gym run" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_refused_study_has_paid_for_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of three judges cannot be called: the others are not asked either."""
    study = {**STUDY, "seed": 8, "judges": ["sim:hasty", "sim:sloppy", "openai:gpt-5.2"]}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    before = contents(folder)["attempts"]
    with pytest.raises(SystemExit) as end:
        main(["run", "study.yaml"])
    assert end.value.code == 2
    assert "openai:gpt-5.2" in capsys.readouterr().err
    assert contents(folder)["attempts"] == before


@pytest.mark.parametrize("name", ["folder.yaml", "bytes.yaml"])
def test_a_study_file_that_cannot_be_read_is_named(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "folder.yaml").mkdir()
    (folder / "bytes.yaml").write_bytes(b"study: caf\xe9\n")
    with pytest.raises(SystemExit) as end:
        main(["run", name])
    assert end.value.code == 2
    assert re.fullmatch(rf"judge-gym: .*{name}.*\n", capsys.readouterr().err)


def powerless() -> None:
    """In a child of root: permissions of files hold for it as for anybody else."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")


READ_ONLY: list[list[str]] = [
    ["status"],
    ["run", "study.yaml"],
    ["init"],
    ["init", "new"],
    ["--db", "sqlite:///{database}", "export", "--out", "samples.csv"],
    ["demo"],
]
EACH = """
import contextlib, io, json, sys
from judge_gym.cli import main
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main(words)
        except SystemExit as end:
            print(json.dumps([end.code, err.getvalue()]))
"""
"""Runs commands one after another in one process, which has lost the power of root."""


def test_a_read_only_folder_is_answered_in_one_line(folder: Path) -> None:
    database = shutil.move(folder / ".judge-gym" / "lab.db", folder.parent / "lab.db")
    shutil.rmtree(folder / ".judge-gym")
    commands = [[word.format(database=database) for word in words] for words in READ_ONLY]
    before = sorted(folder.iterdir())
    folder.chmod(0o555)
    try:
        said = subprocess.run(
            [sys.executable, "-c", EACH, json.dumps(commands)],
            cwd=folder,
            capture_output=True,
            text=True,
            preexec_fn=powerless,
        )
    finally:
        folder.chmod(0o755)
    ended = [json.loads(line) for line in said.stdout.splitlines()]
    for words, (code, err) in zip(commands, ended, strict=True):
        assert code == 2, (words, err)
        assert re.fullmatch(r"judge-gym: .+\n", err), words
    assert sorted(folder.iterdir()) == before
