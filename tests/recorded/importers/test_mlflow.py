import json
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from judge_gym.recorded import Recording
from recorded_logs import CASES, by_item, load, people, read_fixture, read_log, write


def cases_of(recording: Recording) -> dict[str, str]:
    """Returns the case of each item, by its question."""
    questions = {case["question"]: case["id"] for case in CASES}
    items = recording.items
    return {name: questions[text] for name, text in zip(items["item"], items["input"], strict=True)}


def test_feedback_of_judges_and_people_is_told_apart() -> None:
    [recording] = read_fixture("mlflow.json")
    cases = cases_of(recording)
    flags = {True: "true", False: "false"}
    labels = {cases[name]: label for name, label in by_item(recording, "label").items()}
    assert labels == {
        case["id"]: "" if case["grade"] == "N" else flags[case["grade"] == "C"] for case in CASES
    }
    given = {cases[name]: label for name, label in people(recording).items()}
    assert given == {case["id"]: flags[case["person"] == "correct"] for case in CASES}
    assert set(recording.verdicts["judge"]) == {"scripted/grader"}


def test_expected_answers_are_references_and_outputs_texts() -> None:
    [recording] = read_fixture("mlflow.json")
    cases = {case["id"]: case for case in CASES}
    for name, case in cases_of(recording).items():
        row = recording.items.set_index("item").loc[name]
        assert row["text"] == cases[case]["answer"]
        assert row["reference"] == cases[case]["reference"]


def _judged(trace: dict[str, Any]) -> dict[str, Any]:
    """Returns the judge's assessment of a trace."""
    assessments: list[dict[str, Any]] = trace["info"]["assessments"]
    return next(each for each in assessments if each["source"]["source_type"] == "LLM_JUDGE")


def _add(traces: list[dict[str, Any]], number: int, **assessment: Any) -> None:
    traces[number]["info"]["assessments"].append(assessment)


def test_an_expectation_named_as_feedback_is_the_truth(tmp_path: Path) -> None:
    traces = load("mlflow.json")
    _add(traces, 0, assessment_name="correct", expectation={"value": True})
    [recording] = read_log(write(tmp_path / "traces.json", traces))
    truths = recording.items.set_index("item")["truth"]
    assert truths[traces[0]["info"]["trace_id"]] == "true"
    assert (truths == "").sum() == len(CASES) - 1


def test_a_person_who_corrects_a_judge_gives_a_label(tmp_path: Path) -> None:
    traces = load("mlflow.json")
    old = _judged(traces[1])
    old["valid"] = False
    correction = {"feedback": {"value": False}, "overrides": old["assessment_id"]}
    source = {"source_type": "HUMAN", "source_id": "rater-2"}
    _add(traces, 1, assessment_name="correct", source=source, **correction)
    [recording] = read_log(write(tmp_path / "traces.json", traces))
    assert len(recording.verdicts) == len(CASES)
    [label] = recording.labels[recording.labels["rater"] == "rater-2"]["label"]
    assert label == "false"


def test_feedback_that_a_judge_gave_anew_counts_once(tmp_path: Path) -> None:
    traces = load("mlflow.json")
    old = _judged(traces[1])
    new = {**old, "assessment_id": "a-new", "overrides": old["assessment_id"]}
    _add(traces, 1, **{**new, "feedback": {"value": not old["feedback"]["value"]}})
    [recording] = read_log(write(tmp_path / "traces.json", traces))
    assert len(recording.verdicts) == len(CASES)
    expected = "false" if old["feedback"]["value"] else "true"
    assert by_item(recording, "label")[traces[1]["info"]["trace_id"]] == expected


def test_feedback_that_failed_is_a_failed_call(tmp_path: Path) -> None:
    traces = load("mlflow.json")
    feedback = {"value": None, "error": {"error_code": "TIMEOUT"}}
    _judged(traces[0])["feedback"] = feedback
    [recording] = read_log(write(tmp_path / "traces.json", traces))
    name = traces[0]["info"]["trace_id"]
    assert by_item(recording, "status")[name] == "provider_error"


def test_lines_of_traces_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(map(json.dumps, load("mlflow.json"))), "utf-8")
    assert len(read_log(path)[0].verdicts) == len(CASES)


def test_a_trace_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    traces = load("mlflow.json")
    with pytest.raises(DesignError, match=r"trace 9: its id tr-.* occurs twice"):
        read_log(write(tmp_path / "traces.json", [*traces, traces[0]]))
