"""The judge table in the terminal: its columns, what decides, and the verdicts by label."""

from pathlib import Path
from typing import Any

import pytest

from conftest import Call, succeed
from judge_gym.lab import Lab
from judge_gym.lab.reports import parse_loss

TEXTS = 24
STUDY = """
study: checked
samples: 2
evidence:
  texts: {files: texts.csv, labels: [ann, bo]}
tasks:
  - {concept: quality, evidence: texts, rubric: rubric.json}
judges: [sim:balanced, sim:strict, sim:hasty]
probe: false
"""
RUBRIC = """
{"kind": "ordinal", "stages": [
  {"label": "fail", "criteria": ["The reply refuses to help."]},
  {"label": "pass", "criteria": ["The reply gives the exact steps."]}]}
"""


@pytest.fixture
def study(call: Call, tmp_path: Path) -> str:
    """A study of texts that two people passed or failed, which has been run."""
    rows = [
        f"{'Here are the exact steps' if item % 3 else 'We refuse to help'} {item},"
        f"{'pass' if item % 3 else 'fail'},{'pass' if item % 4 else 'fail'}"
        for item in range(TEXTS)
    ]
    (tmp_path / "texts.csv").write_text("\n".join(["text,ann,bo", *rows]))
    (tmp_path / "rubric.json").write_text(RUBRIC)
    (tmp_path / "checked.yaml").write_text(STUDY)
    succeed(call("run", "checked.yaml", "--json"))
    return "checked"


def head_of(text: str) -> str:
    """The lines of the table's head, without the words that stand above it."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("setup"))
    end = next(number for number, line in enumerate(lines) if line.startswith("──"))
    return "\n".join(lines[start:end])


def test_the_table_says_what_decides_and_names_the_labels(call: Call, study: str) -> None:
    text = succeed(call("judges", study)).out
    assert head_of(text).split()[:2] == ["setup", "balanced"]
    assert "“pass”" in head_of(text) and "“fail”" in head_of(text)
    assert "Decides: balanced accuracy, because the labels are two." in text
    assert "Positive label: “pass”, proposed from its name." in " ".join(text.split())
    assert "People with each other:" in " ".join(text.split())
    assert f"over {TEXTS} items" in " ".join(text.split())
    assert "stage 1" not in text and "stage 2" not in text


def test_the_printed_confusion_has_the_shares_of_verdicts_on_items_of_each_label(
    call: Call, study: str
) -> None:
    table = succeed(call("judges", study, "--json")).json
    shares = [share for row in table["confusion"]["shares"] for share in row]
    assert sum(shares) == pytest.approx(1)
    printed = succeed(call("judges", study)).out.split("verdicts (columns) by people's labels")[1]
    assert f"Shares of each row; {TEXTS} items" in printed
    columns = zip(*table["confusion"]["shares"], strict=True)
    for label, column in zip(table["confusion"]["labels"], columns, strict=True):
        line = next(line for line in printed.splitlines() if line.startswith(label))
        of_label = [f"{100 * share / sum(column):.0f}" for share in column]
        assert line.split()[-2 * len(column) :: 2] == of_label


def test_a_run_ends_without_the_confusion_table(call: Call, study: str) -> None:
    assert "verdicts (columns)" not in succeed(call("run", "checked.yaml")).out


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_deciding_measure_keeps_its_interval_at_any_width(
    call: Call, study: str, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    table = succeed(call("judges", study, "--json")).json
    monkeypatch.setenv("COLUMNS", str(width))
    from judge_gym.cli import display

    display.console.cache_clear()
    text = succeed(call("judges", study)).out.partition("──")[2]
    display.console.cache_clear()
    for row in table["rows"]:
        deciding = row["measures"]["balanced"]
        ends = f"[{100 * deciding['low']:.0f}, {100 * deciding['high']:.0f}]"
        line = next(line for line in text.splitlines() if line.startswith(row["setup"] + " "))
        assert f"{100 * deciding['value']:.0f} % {ends}" in line


def test_options_choose_what_decides(call: Call, study: str) -> None:
    def table(*options: str) -> Any:
        return succeed(call("judges", study, *options, "--json")).json

    assert (table()["measure"], table()["columns"][0]["name"]) == ("balanced", "balanced")
    exact = table("--measure", "exact")
    assert (exact["measure"], exact["columns"][0]["name"]) == ("exact", "exact")
    assert "as declared" in exact["decides"]
    failing = table("--positive", "fail")
    assert failing["scale"]["positive"] == "fail"
    usual = table()["rows"][0]
    mirrored = next(row for row in failing["rows"] if row["setup"] == usual["setup"])
    assert mirrored["measures"]["sensitivity"]["value"] == pytest.approx(
        usual["measures"]["specificity"]["value"]
    )
    assert table("--loss", "miss=5,false_alarm=1")["measure"] == "loss"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--measure", "rank"), "choose 'exact' or 'balanced'"),
        (("--measure", "odd"), "unknown measure 'odd'"),
        (("--positive", "good"), "choose 'fail' or 'pass'"),
        (("--loss", "miss=5"), "miss=5,false_alarm=1"),
        (("--loss", "miss=5,false_alarm=much"), "at least 0"),
        (("--loss", "miss=5,false_alarm=1", "--measure", "exact"), "give one"),
    ],
)
def test_what_cannot_decide_is_refused(
    call: Call, study: str, options: tuple[str, ...], words: str
) -> None:
    refused = call("judges", study, *options)
    assert refused.code == 2 and words in refused.err


def test_a_study_declares_what_decides_and_options_override_it(
    call: Call, study: str, tmp_path: Path
) -> None:
    declared = f"{STUDY}positive: fail\nloss: {{miss: 4, false_alarm: 1}}\n"
    (tmp_path / "checked.yaml").write_text(declared)
    succeed(call("run", "checked.yaml", "--json"))
    with Lab.open(f"sqlite:///{tmp_path}/.judge-gym/lab.db") as lab:
        table = lab.reports.judges(study)
        pair = lab.reports.compare(study)
        assert lab.reports.judges(study, measure="exact")["measure"] == "exact"
    assert table["measure"] == "loss" == pair["measure"]
    assert table["scale"] is not None and table["scale"]["positive"] == "fail"
    assert pair["columns"] == table["columns"]


def test_costs_are_numbers_that_are_at_least_zero() -> None:
    assert parse_loss(" miss = 2 , false_alarm=0.5") == {"miss": 2.0, "false_alarm": 0.5}


def test_answers_count_repeats_from_one(call: Call, study: str) -> None:
    [tag] = {
        row["tag"]
        for row in succeed(call("answers", study, "--limit", "1", "--json")).json["items"]
    }
    listed = succeed(call("score", "list", tag)).out.splitlines()
    place = listed[0].split().index("repeat")
    assert {line.split()[place] for line in listed[2:] if line.strip()[:1].isdigit()} == {"1", "2"}
    shown = succeed(call("answers", study, "--limit", "500")).out
    assert "repeat 1," in shown and "repeat 2," in shown and "repeat 0," not in shown
    assert {
        row["replicate"] for row in succeed(call("answers", study, "--json")).json["items"]
    } <= {
        0,
        1,
    }, "the index in files and JSON is from 0"
