"""`judge-gym analyze` by its command: runs of simulated coders, reports, and their arithmetic."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Call, succeed
from lab_server import ServedLab, serve_lab
from suite_folders import add_lint, known_by, write_suite


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "tiny", 3)


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[ServedLab]:
    (tmp_path / "remote").mkdir()
    with serve_lab(tmp_path / "remote", run=False) as opened:
        yield opened


def run(call: Call, suite: Path, **shares: float) -> str:
    """The number of a run of a simulated coder with these faults."""
    model = f"sim:{known_by(suite, 'coder-strong', **{'logic': 0, 'lint': 0, **shares})}"
    return str(call("suite", "run", suite, "--model", model, "--json").json["runs"][0]["run"])


def test_a_report_adds_up_and_an_edited_one_does_not(
    call: Call, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = run(call, suite, logic=1)
    said = succeed(call("analyze", number, "--json")).json
    assert said["counts"] == {"passed": 0, "failed": 3, "inconclusive": 0}
    assert said["judging"]["status"] == "complete"
    assert [row["eval"] for row in said["findings"]] == [
        f"001-values/00{n}-value" for n in (1, 2, 3)
    ]
    report = Path(said["report"])
    text = report.read_text()
    for heading in ("Run", "Classification", "Each failure", "Net impact", "Actions taken"):
        assert f"\n## {heading}\n" in text
    assert "(1 + 1001)" in text and "VALUE = 1001" in text, "the fault and the answer are quoted"

    shown = succeed(call("analyze", number))
    assert "why 3 evals of run 1 failed" in shown.out and f"report: {report}" in shown.out
    assert "0 calls paid" in shown.err
    assert shown.out.rstrip().endswith("discuss specific failures in more detail?")
    monkeypatch.setenv("COLUMNS", "70")
    [head, *_] = [line for line in call("analyze", number).out.splitlines() if "eval " in line]
    assert "class" in head.split(), "the class of failures is what the table is about"

    clean = succeed(call("analyze", "--lint", report, "--json")).json
    assert clean == {"report": str(report), "mismatches": []}
    assert "add up" in call("analyze", "--lint", report).err
    spoilt = report.with_name("spoilt.md")
    spoilt.write_text(text.replace("| Failed | 3 |", "| Failed | 2 |"))
    found = call("analyze", "--lint", spoilt)
    assert found.code == 1
    line = 1 + text.splitlines().index("| Failed | 3 |")
    assert f"line {line}: " in found.out and "stated 2, counted 3" in found.out
    assert len(call("analyze", "--lint", spoilt, "--json").json["mismatches"]) >= 1


@pytest.mark.slow
def test_a_page_is_analyzed_by_asking_its_lab(
    call: Call, suite: Path, remote: ServedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = f"sim:{known_by(suite, 'coder-strong', logic=1, lint=0)}"
    remote.lab.suites.run(suite, wrong)
    remote.lab.suites.run(suite, f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0)}")
    assert run(call, suite) == "1", "this lab has a run 1 of its own, without failures"
    page = f"{remote.url}/experiment/default/run/1"
    refused = call("analyze", page)
    assert refused.code == 2 and "JUDGE_GYM_TOKEN" in refused.err
    monkeypatch.setenv("JUDGE_GYM_TOKEN", remote.read)
    said = succeed(call("analyze", page, "--json")).json
    assert (said["lab"], said["model"], said["counts"]["failed"]) == (remote.url, wrong, 3)
    text = Path(said["report"]).read_text()
    assert f"| Lab | `{remote.url}` |" in text
    assert "(1 + 1001)" in text and "VALUE = 1001" in text, "files came from there"
    assert "Other models that fail this eval: 0 of 1." in text
    assert succeed(call("analyze", "--lint", said["report"], "--json")).json["mismatches"] == []
    again = succeed(call("analyze", "1", "--lab", remote.url))
    assert "0 calls paid" in again.err
    key = remote.lab.suites.find_run(1).key
    assert succeed(call("analyze", key[:9], "--lab", remote.url, "--json")).json["run"] == 1
    assert remote.lab.failures.list() == [] and not (remote.folder / "reports").exists()
    assert succeed(call("analyze", "1", "--json")).json["counts"]["failed"] == 0
    both = call("analyze", page, "--lab", "http://127.0.0.1:1")
    assert both.code == 2 and "is not of the lab" in both.err


def test_commands_read_another_lab(
    call: Call, suite: Path, remote: ServedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.lab.suites.run(suite, f"sim:{known_by(suite, 'coder-strong', logic=1, lint=0)}")
    monkeypatch.setenv("JUDGE_GYM_TOKEN", remote.read)
    there = ("--lab", remote.url)
    [row] = succeed(call("suite", "runs", *there, "--json")).json
    assert (row["run"], row["counts"]["failed"], row["label"]) == (1, 3, "complete")
    assert "0 of 3" in succeed(call("suite", "runs", *there)).out
    assert succeed(call("suite", "board", *there, "--json")).json[0]["failed"] == 3
    failed = succeed(call("suite", "failed", "1", *there, "--json")).json
    assert {row["step"] for row in failed} == {"tests"}
    assert f"debug {failed[0]['eval']} --lab" in call("suite", "failed", "1", *there).err
    for name in (str(failed[1]["eval"]), "001-values/002-value"):
        assert "(1 + 1001)" in succeed(call("suite", "debug", name, *there)).out
    assert "002-value" in succeed(call("suite", "show", "1", *there)).out
    assert not Path(".judge-gym").exists(), "no lab is needed here"


def test_two_judges_show_where_they_conflict(call: Call, suite: Path) -> None:
    add_lint(suite)
    number = run(call, suite, lint=1, heed=0)
    words = ("--judge", "sim:alarmist", "--judge", "sim:strict", "--samples", "6")
    said = succeed(call("analyze", number, *words, "--json")).json
    assert {row["step"] for row in said["findings"]} == {"lint"}
    apart = [row["eval"] for row in said["findings"] if row["differ"]]
    assert apart, "a reversed bias sees another class in an unused import"
    assert all(row["conflict"] > 0 for row in said["findings"] if row["differ"])
    text = Path(said["report"]).read_text()
    table = text.partition("\n## Conflict between judges\n")[2].partition("\n## ")[0]
    assert f"different classes on {len(apart)} of 3 failures" in table
    assert "`sim:alarmist`" in table and "`sim:strict`" in table
    assert table.count("**yes**") == len(apart)
    alone = succeed(call("analyze", number, "--judge", "sim:strict", "--json")).json
    assert alone["report"] != said["report"], "another report does not give way"
    assert "Conflict between judges" not in Path(alone["report"]).read_text()


def test_a_run_without_failures_needs_no_judge(call: Call, suite: Path) -> None:
    passed, lost = run(call, suite), run(call, suite, empty=1)
    for number, counts, told in (
        (passed, {"passed": 3, "failed": 0, "inconclusive": 0}, "(3 passed)"),
        (lost, {"passed": 0, "failed": 0, "inconclusive": 3}, "(0 passed)"),
    ):
        said = succeed(call("analyze", number, "--json")).json
        assert (said["counts"], said["judging"], said["report"]) == (counts, None, None)
        assert f"no eval of run {number} failed {told}" in succeed(call("analyze", number)).out
    assert "inconclusive and not judged: 3 evals" in call("analyze", lost).err
    assert not Path("reports").exists()


def test_reports_are_written_to_the_given_folder(call: Call, suite: Path) -> None:
    number = run(call, suite, logic=1)
    said = succeed(call("analyze", number, "--reports", "elsewhere", "--samples", "1", "--json"))
    assert Path(said.json["report"]).parts[:2] == ("elsewhere", "sim")
    assert not Path("reports").exists()


def test_a_reached_budget_has_its_exit_code_and_says_how_to_continue(
    call: Call, suite: Path
) -> None:
    number = run(call, suite, logic=1)
    said = call("analyze", number, "--budget", "calls=1")
    assert said.code == 3
    assert "continue with" in said.err
    assert "report:" not in said.out
    assert succeed(call("analyze", number, "--budget", "calls=50", "--json")).json["report"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "name a run"),
        (("1", "--lint", "x.md"), "not both"),
        (("--lint", "nowhere.md"), "cannot be read"),
        (("--lint", "song.md"), "song.md: this is not a report"),
        (("99",), "no suite run 99"),
        (("http://127.0.0.1/nothing",), "no page of a run"),
    ],
)
def test_bad_input_is_refused(call: Call, words: tuple[str, ...], complaint: str) -> None:
    Path("song.md").write_text("# A song\n\nOf two of them.\n")
    succeed(call("db", "upgrade"))
    said = call("analyze", *words)
    assert said.code == 2
    assert complaint in said.err


def test_unreadable_judges_are_counted_and_fail_the_command(call: Call, suite: Path) -> None:
    number = run(call, suite, logic=1)
    garbled = "sim:hasty?garble=1"
    said = call("analyze", number, "--judge", garbled, "--samples", "2")
    assert said.code == 1
    assert "6 of 6 verdicts not scored: 6 parse_failed" in said.err
    assert "no scored verdict" in said.out
    made = call("analyze", number, "--judge", garbled, "--samples", "2", "--json")
    assert (made.code, made.json["verdicts"]) == (1, {"parse_failed": 6})
    assert {*made.json["findings"][0]["judges"].values()} == {"no scored verdict"}


def test_replicates_are_listed_as_results(call: Call, suite: Path) -> None:
    model = f"sim:{known_by(suite, 'coder-strong', logic=1, lint=0)}"
    words = ("suite", "run", suite, "--model", model, "--replicates", "2", "--json")
    number = str(call(*words).json["runs"][0]["run"])
    said = succeed(call("analyze", number))
    assert "why 6 results (3 evals) of run 1 failed" in said.out
    assert "001-value#0" in said.out and "001-value#1" in said.out
