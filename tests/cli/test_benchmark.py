"""The command line over benchmarks: recorded judgments, judges run now, benchmarks of one's own."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import Call, CommandResult, succeed
from stores import contents

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT.parent / "shared" / "data" / "judgebench"
JUDGED = PUBLISHED / "judged-gpt-4o-by-o1-mini.jsonl"
published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="JudgeBench's published files are not beside the project"
)
LABELS = ("A>B", "B>A", "A>B", "B>A")
TONES = ("Calm", "Tense", "Harsh")


def pair(number: int, label: str) -> dict[str, Any]:
    """A pair as JudgeBench publishes it."""
    return {
        "pair_id": f"p{number}",
        "source": "livebench-math" if number % 2 else "mmlu-pro-law",
        "question": f"What is twice {number}?",
        "response_A": f"It is {2 * number}.",
        "response_B": f"It is {3 * number}.",
        "label": label,
    }


def judged(number: int, label: str, *decisions: str | None, judge: str = "arena") -> dict[str, Any]:
    """A pair with what a judge is on record to have decided, in the words of what was shown."""
    entries = [{"decision": d, "judgment": {"response": f"[[{d}]]"}} for d in decisions]
    return {**pair(number, label), "judge_name": judge, "judgments": entries}


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Four pairs as published."""
    return write(tmp_path / "pairs.jsonl", [pair(n, label) for n, label in enumerate(LABELS, 1)])


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A judge that has three of the four right, one of them in one order only."""
    rows = [
        judged(1, "A>B", "A>B", "B>A"),  # right in both orders
        judged(2, "B>A", "B>A", "A=B"),  # right, and a tie: right
        judged(3, "A>B", "B>A", "A>B"),  # wrong in both
        judged(4, "B>A", "B>A", None),  # right, and no answer: right
    ]
    return write(tmp_path / "judged.jsonl", rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark of one's own: three items, of which two have a known answer."""
    made = tmp_path / "bench"
    made.mkdir()
    rows = [
        {"title": "T1", "text": "The budget was adopted unanimously.", "truth": "Calm"},
        {"title": "T2", "text": "Judges were dismissed by decree.", "truth": 3},
        {"title": "T3", "text": "A bill is under review."},
    ]
    write(made / "items.jsonl", rows)
    stages = [{"label": tone, "criteria": [f"a sign of {tone}"]} for tone in TONES]
    (made / "rubric.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    (made / "benchmark.toml").write_text('concept = "tone"\n')
    return made


def counted(said: CommandResult) -> tuple[int, int]:
    """Calls that were paid, and samples that there are."""
    runs = (said.json.get("run") or said.json)["runs"]
    return sum(run["calls"] for run in runs), sum(sum(run["counts"].values()) for run in runs)


# --- as published --------------------------------------------------------------------------------


@published
def test_the_published_judgments_have_the_published_score(call: Call) -> None:
    """GPT-4o's pairs as o1-mini judged them, scored by the benchmark's own rule."""
    found = succeed(call("benchmark", "judgebench", "--judged", JUDGED, "--json")).json
    assert (found["n"], found["nulls"]) == (350, 0)
    assert (found["accuracy"], found["both_correct"], found["inconsistent"]) == (
        65.71, 58.0, 31.43,
    )  # fmt: skip
    assert {name: part["accuracy"] for name, part in found["by_category"].items()} == {
        "knowledge": 58.44, "reasoning": 62.24, "math": 82.14, "coding": 78.57,
    }  # fmt: skip
    assert sum(part["n"] for part in found["by_category"].values()) == 350


@published
def test_published_judgments_are_printed_as_a_table(call: Call, tmp_path: Path) -> None:
    said = succeed(call("benchmark", "judgebench", "--judged", JUDGED))
    assert all(words in said.out for words in ("65.71", "58.44", "62.24", "82.14", "78.57"))
    assert "o1-mini" in said.out
    assert "700 recorded answers" in said.err
    assert contents(tmp_path / ".judge-gym" / "lab.db") == {}, "it needs no database"


@pytest.mark.slow
@published
def test_published_pairs_are_shown_to_a_judge_in_both_orders_and_paid_once(call: Call) -> None:
    pairs = PUBLISHED / "pairs-gpt-4o.jsonl"  # no two responses of a pair are the same
    words = ("benchmark", "judgebench", pairs, "--judge", "sim:hasty", "--json")
    said = succeed(call(*words))
    assert counted(said) == (700, 700)
    assert said.json["n"] == 350
    assert sum(part["n"] for part in said.json["by_category"].values()) == 350
    assert counted(succeed(call(*words))) == (0, 700)


# --- recorded judgments --------------------------------------------------------------------------


def test_recorded_judgments_are_scored_by_the_benchmarks_rule(call: Call, record: Path) -> None:
    found = succeed(call("benchmark", "judgebench", "--judged", record, "--json")).json
    assert (found["judge"], found["n"], found["accuracy"]) == ("arena", 4, 75.0)
    assert (found["both_correct"], found["inconsistent"], found["nulls"]) == (25.0, 50.0, 1)
    # Of seven decisions two are for the response shown first, four for the second, one is a tie.
    assert found["position_bias"] == pytest.approx(100 * (2 - 4) / 7, abs=0.01)
    assert {name: part["accuracy"] for name, part in found["by_category"].items()} == {
        "knowledge": 100.0, "math": 50.0,
    }  # fmt: skip
    assert found["reading"]["arena"]["disagreements"] == []
    text = succeed(call("benchmark", "judgebench", "--judged", record)).out
    assert "75.00" in text and "knowledge" in text


def test_a_decision_that_differs_from_its_text_is_reported(call: Call, tmp_path: Path) -> None:
    row = judged(1, "A>B", "A>B", "B>A")
    row["judgments"][1]["judgment"]["response"] = "My verdict is [[A>B]]."
    path = write(tmp_path / "odd.jsonl", [row])
    found = succeed(call("benchmark", "judgebench", "--judged", path, "--json")).json
    assert found["reading"]["arena"] == {
        "read": 2,
        "unread": 0,
        "disagreements": [{"pair": "p1", "order": "reversed", "recorded": "B>A", "read": "A>B"}],
    }
    said = succeed(call("benchmark", "judgebench", "--judged", path))
    assert "read differently than recorded" in said.out
    assert "our parser reads 1 as recorded and 1 differently" in said.err


def test_several_judges_are_compared_on_the_pairs_that_they_share(
    call: Call, record: Path, tmp_path: Path
) -> None:
    rows = [judged(n, LABELS[n - 1], "A>B", "A>B", judge="first") for n in (1, 2, 3)]
    other = write(tmp_path / "other.jsonl", rows)
    words = ("benchmark", "judgebench", "--judged", record, "--judged", other)
    found = succeed(call(*words, "--json")).json
    assert set(found["judges"]) == {"arena", "first"}
    assert (found["comparison"]["shared"], found["comparison"]["left_out"]) == (3, 1)
    [contrast] = found["comparison"]["contrasts"]
    assert (contrast["judge"], contrast["other"]) == ("arena", "first")
    assert (contrast["only_judge"], contrast["only_other"]) == (2, 0), (
        "who takes the first is wrong"
    )
    assert "compared on 3 shared pairs (1 left out)" in succeed(call(*words)).out


def test_recorded_judgments_and_a_judge_of_today_are_compared(
    call: Call, record: Path, pairs: Path
) -> None:
    said = succeed(
        call("benchmark", "judgebench", pairs, "--judge", "sim:hasty", "--judged", record, "--json")
    )
    assert set(said.json["judges"]) == {"arena", "sim:hasty"}
    assert said.json["comparison"]["shared"] == 4
    assert counted(said) == (8, 8)


def test_the_page_is_written_to_the_given_file(call: Call, record: Path, tmp_path: Path) -> None:
    succeed(call("benchmark", "judgebench", "--judged", record, "--out", "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert "arena" in page and "75" in page
    assert not re.search(r'(src|href)="https?:', page), "a page needs nothing else"


# --- judges run now ------------------------------------------------------------------------------


def test_a_judge_is_asked_in_both_orders_and_paid_once(call: Call, pairs: Path) -> None:
    words = ("benchmark", "judgebench", pairs, "--judge", "sim:hasty", "--json")
    first = succeed(call(*words))
    assert counted(first) == (8, 8)
    assert (first.json["judge"], first.json["n"]) == ("sim:hasty", 4)
    again = succeed(call(*words))
    assert counted(again) == (0, 8)
    assert {k: v for k, v in again.json.items() if k != "run"} == {
        k: v for k, v in first.json.items() if k != "run"
    }
    rows = succeed(call("score", "list", first.json["run"]["runs"][0]["tag"], "--json")).json
    assert sorted((row["evidence"], row["flipped"]) for row in rows) == [
        (n, flipped) for n in (1, 2, 3, 4) for flipped in (False, True)
    ]
    assert len({row["call_id"] for row in rows}) == 8


def test_the_score_is_that_of_the_samples(call: Call, pairs: Path) -> None:
    """The published rule, worked out by hand on what `score list` says."""
    found = succeed(call("benchmark", "judgebench", pairs, "--judge", "sim:hasty", "--json")).json
    tag = found["run"]["runs"][0]["tag"]
    rows = succeed(call("score", "list", tag, "--json")).json
    points = dict.fromkeys(range(1, 5), 0)
    for row in rows:
        truth = 1 if LABELS[row["evidence"] - 1] == "A>B" else 2
        points[row["evidence"]] += (row["stages"] == str(truth)) - (row["stages"] == str(3 - truth))
    assert found["accuracy"] == 25.0 * sum(point > 0 for point in points.values())


def test_a_judge_is_printed_as_a_table(call: Call, pairs: Path) -> None:
    words = ("benchmark", "judgebench", pairs, "--judge", "sim:hasty", "--judge", "sim:strict")
    said = succeed(call(*words))
    assert all(words in said.out for words in ("sim:hasty", "sim:strict", "McNemar", "math"))
    assert "simulated" in said.err
    assert "judgebench-pairs: complete" in said.err


def test_knobs_that_act_on_pairs_may_be_set(call: Call, pairs: Path) -> None:
    words = ("benchmark", "judgebench", pairs, "--judge", "sim:hasty", "--json")
    said = succeed(call(*words, "--set", "presentation.pair_order=given"))
    assert counted(said) == (4, 4)
    assert said.json["both_correct"] is None, "one order cannot be compared with another"
    assert counted(succeed(call(*words, "--set", "presentation.pair_order=both"))) == (4, 8)


def test_a_judge_that_cannot_be_reached_is_a_failure(call: Call, pairs: Path) -> None:
    said = call("benchmark", "judgebench", pairs, "--judge", "sim:hasty?fail=1", "--json")
    assert said.code == 1
    assert (said.json["run"]["status"], said.json["nulls"]) == ("failed", 8)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("rubric.scale=5", "two responses are compared, which no scale can express"),
        ("rubric.scale=4", "no scale can express"),
        ("evidence.editor=sim:editor", "evidence.editor has no effect on any task"),
        ("verdict.method=singel", "'singel'"),
        ("rubric.scale", "GROUP.KNOB=LEVEL"),
    ],
)
def test_a_knob_that_cannot_act_on_pairs_is_refused_before_anything_is_written(
    call: Call, pairs: Path, tmp_path: Path, setting: str, says: str
) -> None:
    succeed(call("db", "upgrade"))
    before = contents(tmp_path / ".judge-gym" / "lab.db")
    words = ("benchmark", "judgebench", pairs, "--judge", "sim:hasty", "--set", setting)
    said = call(*words)
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(r"judge-gym: .+\n", said.err)
    assert says in said.err
    assert says in call(*words, "--json").json["error"]["message"]
    assert contents(tmp_path / ".judge-gym" / "lab.db") == before


# --- a benchmark of one's own --------------------------------------------------------------------


def test_check_lists_the_content_of_a_benchmark(call: Call, folder: Path) -> None:
    assert succeed(call("benchmark", "check", folder, "--json")).json == {
        "study": "benchmark-bench",
        "concept": "tone",
        "items": 3,
        "pairs": False,
        "rubric": "ordinal",
        "truths": {"Calm": 1, "Tense": 0, "Harsh": 1},
        "without truth": 1,
    }
    text = succeed(call("benchmark", "check", folder)).out
    assert "tone" in text and "ordinal" in text


def test_run_pays_once_and_says_how_often_judges_are_right(call: Call, folder: Path) -> None:
    words = ("benchmark", "run", folder, "--judge", "sim:balanced", "--judge", "sim:hasty")
    first = succeed(call(*words, "--json"))
    assert counted(first) == (6, 6)
    assert [row["judge.model"] for row in first.json["scores"]] == ["sim:balanced", "sim:hasty"]
    for row in first.json["scores"]:
        assert (row["n"], row["items"]) == (2, 2)  # the third item has no known answer
        assert row["mean"] in (0, 0.5, 1)
    again = succeed(call(*words, "--json"))
    assert counted(again)[0] == 0
    assert again.json["scores"] == first.json["scores"]
    said = succeed(call(*words))
    assert "agreement with known answers" in said.out
    assert "benchmark-bench: complete" in said.err


def test_a_benchmark_of_pairs_is_asked_in_both_orders(call: Call, folder: Path) -> None:
    rows = [
        {"title": f"P{n}", "text": f"What is twice {n}?", "truth": 1,
         "responses": [f"It is {2 * n}.", f"It is {3 * n}."]} for n in (1, 2)
    ]  # fmt: skip
    write(folder / "items.jsonl", rows)
    options = [{"label": name, "criteria": ["it is right"]} for name in ("first", "second")]
    (folder / "rubric.json").write_text(json.dumps({"kind": "nominal", "stages": options}))
    assert succeed(call("benchmark", "check", folder, "--json")).json["pairs"] is True
    said = succeed(call("benchmark", "run", folder, "--judge", "sim:hasty", "--json"))
    assert counted(said) == (4, 4)


def test_a_benchmarks_design_overrides_defaults(call: Call, folder: Path) -> None:
    (folder / "benchmark.toml").write_text(
        'concept = "tone"\n[design]\n"verdict.method" = "subset"\n'
    )
    words = ("benchmark", "run", folder, "--judge", "sim:balanced")
    tag = succeed(call(*words, "--json")).json["runs"][0]["tag"]
    [row] = succeed(call("status", tag, "--json")).json
    assert row["design"]["verdict.method"] == "subset"
    overruled = succeed(call(*words, "--set", "verdict.method=single", "--json")).json
    [row] = succeed(call("status", overruled["runs"][0]["tag"], "--json")).json
    assert row["design"].get("verdict.method", "single") == "single"


# --- bad input -----------------------------------------------------------------------------------

Change = Callable[[Path], object]


def toml(text: str) -> Change:
    return lambda folder: (folder / "bench" / "benchmark.toml").write_text(text)


def items(*rows: Mapping[str, Any]) -> Change:
    return lambda folder: write(folder / "bench" / "items.jsonl", list(rows))


def lines(name: str, *rows: Mapping[str, Any]) -> Change:
    return lambda folder: write(folder / name, list(rows))


def nothing(folder: Path) -> None:
    pass


JUDGEBENCH = "benchmark judgebench"
CASES: dict[str, tuple[str, list[str], Change]] = {
    "no-judge": (f"{JUDGEBENCH} pairs.jsonl", ["--judge", "--judged"], nothing),
    "no-pairs": (f"{JUDGEBENCH} --judge sim:hasty", ["needs the pairs"], nothing),
    "missing-pairs": (f"{JUDGEBENCH} gone.jsonl --judge sim:hasty", ["gone.jsonl"], nothing),
    "missing-judged": (f"{JUDGEBENCH} --judged gone.jsonl", ["gone.jsonl"], nothing),
    "unknown-judge": (f"{JUDGEBENCH} pairs.jsonl --judge sim:nobody", ["sim:nobody"], nothing),
    "twice": (f"{JUDGEBENCH} pairs.jsonl --judge sim:hasty --judge sim:hasty", ["twice"], nothing),
    "hosted": (f"{JUDGEBENCH} pairs.jsonl --judge openai:gpt-5.2", ["openai:gpt-5.2"], nothing),
    "no-folder-of-page": (f"{JUDGEBENCH} pairs.jsonl --judge sim:hasty --out no/such/x.html",
                          ["no/such"], nothing),
    "pairs-as-judged": (f"{JUDGEBENCH} --judged pairs.jsonl", ["pairs.jsonl:1", "judgments"],
                        nothing),
    "judged-text": (f"{JUDGEBENCH} --judged bench/benchmark.toml", ["benchmark.toml:1", "JSON"],
                    nothing),
    "judged-folder": (f"{JUDGEBENCH} --judged bench", ["bench"], nothing),
    "judged-empty": (f"{JUDGEBENCH} --judged empty.jsonl", ["empty.jsonl"], lines("empty.jsonl")),
    "decision": (f"{JUDGEBENCH} --judged odd.jsonl", ["odd.jsonl:1", "'A?B'"],
                 lines("odd.jsonl", judged(1, "A>B", "A?B"))),
    "label": (f"{JUDGEBENCH} odd.jsonl --judge sim:hasty", ["odd.jsonl:1", "'A'"],
              lines("odd.jsonl", pair(1, "A"))),
    "pair-twice": (f"{JUDGEBENCH} odd.jsonl --judge sim:hasty", ["odd.jsonl:2", "line 1"],
                   lines("odd.jsonl", pair(1, "A>B"), pair(1, "A>B"))),
    "no-response": (f"{JUDGEBENCH} odd.jsonl --judge sim:hasty", ["odd.jsonl:1", "response_B"],
                    lines("odd.jsonl", {**pair(1, "A>B"), "response_B": ""})),
    "no-folder": ("benchmark check gone", ["gone"], nothing),
    "run-no-judge": ("benchmark run bench", ["--judge"], nothing),
    "run-unknown-judge": ("benchmark run bench --judge sim:nobody", ["sim:nobody"], nothing),
    "run-idle-knob": ("benchmark run bench --judge sim:hasty --set presentation.pair_order=given",
                      ["presentation.pair_order", "has no effect on any task"], nothing),
    "no-settings": ("benchmark check bench", ["benchmark.toml"],
                    lambda folder: (folder / "bench" / "benchmark.toml").unlink()),
    "no-rubric": ("benchmark check bench", ["rubric.json"],
                  lambda folder: (folder / "bench" / "rubric.json").unlink()),
    "settings-key": ("benchmark check bench", ["'conzept'", "'concept'"], toml('conzept = "x"')),
    "settings-toml": ("benchmark check bench", ["benchmark.toml"], toml("concept = ")),
    "no-concept": ("benchmark check bench", ["concept"], toml('name = "x"')),
    "settings-knob": ("benchmark check bench", ["verdict.methd"],
                      toml('concept = "x"\n[design]\n"verdict.methd" = "single"')),
    "settings-level": ("benchmark check bench", ["'singel'"],
                       toml('concept = "x"\n[design]\n"verdict.method" = "singel"')),
    "no-truth": ("benchmark check bench", ["items.jsonl", "truth"], items({"text": "x"})),
    "wrong-truth": ("benchmark check bench", ["'Huge'", "'Harsh'"],
                    items({"text": "x", "truth": "Huge"})),
    "truth-beyond": ("benchmark check bench", ["4", "'Harsh'"], items({"text": "x", "truth": 4})),
    "same-text": ("benchmark check bench", ["'b'", "'a'"],
                  items({"title": "a", "text": "x", "truth": 1},
                        {"title": "b", "text": "x", "truth": 2})),
    "pairs-on-a-scale": ("benchmark check bench", ["pairs", "nominal"],
                         items({"text": "x", "responses": ["a", "b"], "truth": 1})),
    "one-response": ("benchmark check bench", ["items.jsonl:1", "two responses"],
                     items({"text": "x", "responses": ["a"], "truth": 1})),
    "verb": ("benchmark bench", ["bench"], nothing),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_answered_in_one_line_and_writes_nothing(
    call: Call, case: str, pairs: Path, folder: Path, tmp_path: Path
) -> None:
    words, says, change = CASES[case]
    refuse(call, words, says, change, tmp_path)


def refuse(call: Call, words: str, says: list[str], change: Change, folder: Path) -> CommandResult:
    """The call is refused in one line, in text and in JSON, and writes nothing; its text."""
    change(folder)
    succeed(call("db", "upgrade"))
    database = folder / ".judge-gym" / "lab.db"
    before = contents(database)
    said = call(*words.split())
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(r"judge-gym: .+\n", said.err)
    told = call(*words.split(), "--json")
    assert (told.code, told.err) == (2, "")
    error = told.json["error"]
    assert set(error) == {"kind", "message", "choices"}
    for text in (said.err, error["message"]):
        assert all(part in text for part in says)
    assert contents(database) == before
    return said


# --- odd cases -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["unknown-judge", "twice", "run-unknown-judge"])
def test_an_error_of_the_command_names_no_line_of_a_file(
    call: Call, case: str, pairs: Path, folder: Path, tmp_path: Path
) -> None:
    words, says, change = CASES[case]
    said = refuse(call, words, says, change, tmp_path)
    assert not re.search(r"(pairs\.jsonl|bench):\d", said.err)


def test_a_refused_knob_names_no_line_of_the_pairs(call: Call, pairs: Path) -> None:
    words = ("--judge", "sim:hasty", "--set", "rubric.scale=5")
    said = call("benchmark", "judgebench", pairs, *words)
    assert not re.search(r"pairs\.jsonl:\d", said.err)


def test_a_judge_without_a_single_verdict_still_has_a_row(call: Call, folder: Path) -> None:
    said = call("benchmark", "run", folder, "--judge", "sim:balanced?fail=1", "--json")
    assert said.code == 1
    [row] = said.json["scores"]
    assert (row["n"], row["scored"], row["mean"]) == (0, 0, None)


def test_one_judge_with_verdicts_and_one_without_are_one_json_document(
    call: Call, folder: Path
) -> None:
    judges = ("--judge", "sim:balanced", "--judge", "sim:hasty?fail=1")
    said = call("benchmark", "run", folder, *judges, "--json")
    assert said.code == 1
    assert [row["mean"] is None for row in said.json["scores"]] == [False, True]


def test_judges_that_share_no_pair_are_refused_before_anything_is_paid(
    call: Call, pairs: Path, tmp_path: Path
) -> None:
    other = write(tmp_path / "other.jsonl", [judged(9, "A>B", "A>B", "B>A")])
    said = call("benchmark", "judgebench", pairs, "--judge", "sim:hasty", "--judged", other)
    assert said.code == 2
    assert "share no pair" in said.err
    assert "there is no lab" in call("usage").err, "nothing was stored, and so no lab is left"


def test_two_files_of_one_judge_are_both_reported(call: Call, record: Path, tmp_path: Path) -> None:
    """Two runs of the same judge: each has its own reading."""
    again = write(tmp_path / "again.jsonl", [judged(1, "A>B", "A>B", "B>A")])
    words = ("benchmark", "judgebench", "--judged", record, "--judged", again)
    found = succeed(call(*words, "--json")).json
    assert len(found["judges"]) == 2
    assert set(found["reading"]) == set(found["judges"])
