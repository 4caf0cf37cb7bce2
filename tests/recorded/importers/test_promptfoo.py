import json
from pathlib import Path

import pytest

from judge_gym.errors import DesignError
from recorded_logs import CASES, by_item, load, read_fixture, read_log, write


def test_each_prompt_is_a_system_whose_outputs_are_judged() -> None:
    [recording] = read_fixture("promptfoo.json")
    assert recording.question == "correct"
    assert recording.scale == ("binary", ("fail", "pass"), "pass")
    assert len(recording.items) == 2 * len(CASES)
    assert recording.items["system"].nunique() == 2
    clusters = dict(zip(recording.items["item"], recording.items["cluster"], strict=True))
    passed = {case["id"]: "pass" if case["score"] >= 0.5 else "fail" for case in CASES}
    scores = {case["id"]: case["score"] for case in CASES}
    for item, label in by_item(recording, "label").items():
        assert label == passed[clusters[item]]
    for item, score in by_item(recording, "score").items():
        assert score == scores[clusters[item]]


def test_judge_prompt_and_reason_are_kept() -> None:
    [recording] = read_fixture("promptfoo.json")
    item = "turkey, Briefly: {{question}}"
    assert by_item(recording, "judge")[item] == "file://promptfoo_grader.mjs"
    assert by_item(recording, "rationale")[item] == "Ankara was expected,\nnot Istanbul."
    [message] = json.loads(by_item(recording, "prompt")[item])
    assert message["content"].startswith("Does Istanbul. satisfy")
    assert "Left out: results of icontains assertions, which are code (16)." in recording.notes


def test_ratings_in_the_viewer_are_labels(tmp_path: Path) -> None:
    results = load("promptfoo.json")
    rating = {"assertion": {"type": "human"}, "pass": False, "score": 0, "reason": "no"}
    row = results["results"]["results"][0]
    row["gradingResult"]["componentResults"].append(rating)
    [recording] = read_log(write(tmp_path / "results.json", results))
    [label] = recording.labels["label"]
    assert label == "fail"


def test_a_grader_that_failed_gives_no_verdict(tmp_path: Path) -> None:
    results = load("promptfoo.json")
    component = results["results"]["results"][0]["gradingResult"]["componentResults"][0]
    component["reason"] = "Could not extract JSON from llm-rubric response"
    component["pass"] = False
    [recording] = read_log(write(tmp_path / "results.json", results))
    assert recording.verdicts.iloc[0]["status"] == "parse_failed"


def test_rubrics_without_a_metric_are_told_apart_by_number(tmp_path: Path) -> None:
    results = load("promptfoo.json")
    for row in results["results"]["results"]:
        grading = row["gradingResult"]
        judged = grading["componentResults"][0]
        del judged["assertion"]["metric"]
        grading["componentResults"].append(judged)
    recordings = read_log(write(tmp_path / "results.json", results))
    assert [each.question for each in recordings] == ["llm-rubric", "llm-rubric 2"]


def test_lines_of_results_are_read_alike(tmp_path: Path) -> None:
    rows = load("promptfoo.json")["results"]["results"]
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    [recording] = read_log(path)
    assert len(recording.verdicts) == 2 * len(CASES)


def test_a_result_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    results = load("promptfoo.json")
    rows = results["results"]["results"]
    rows.append(rows[0])
    with pytest.raises(DesignError, match=r"result 17: its id .* occurs twice"):
        read_log(write(tmp_path / "results.json", results))
