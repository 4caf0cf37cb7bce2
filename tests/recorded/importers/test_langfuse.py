import csv
import json
from pathlib import Path

import pytest

from judge_gym.errors import DesignError
from recorded_logs import CASES, FIXTURES, by_item, load, people, read_fixture, read_log, write

LABELS = {"C": "correct", "P": "partly", "I": "incorrect"}


def test_evaluators_are_judges_and_annotations_labels() -> None:
    correctness, quality = read_fixture("langfuse.json")
    assert correctness.scale.labels == ("incorrect", "partly", "correct")
    graded = {f"trace-{c['id']}": LABELS[c["grade"]] for c in CASES if c["grade"] in LABELS}
    assert by_item(correctness, "label") == graded
    assert people(correctness) == {f"trace-{case['id']}": case["person"] for case in CASES}
    assert set(correctness.labels["rater"]) == {"rater-1"}
    assert by_item(quality, "score") == {f"trace-{c['id']}": c["score"] for c in CASES}
    assert quality.labels.empty


def test_a_folder_of_tables_has_flags_texts_and_the_evaluators_id() -> None:
    [recording] = read_fixture("langfuse")
    expected = {f"trace-{c['id']}": "true" if c["grade"] == "C" else "false" for c in CASES}
    assert by_item(recording, "label") == expected
    assert set(recording.verdicts["judge"]) == {"capitals-judge"}
    items = recording.items.set_index("item")
    assert items.loc["trace-australia", "text"] == 'Sydney, "of course".'
    assert items.loc["trace-australia", "input"] == "What is the capital of Australia?"


def test_scores_of_version_3_are_read_by_their_subject(tmp_path: Path) -> None:
    score = {"name": "ok", "source": "EVAL", "dataType": "BOOLEAN"}
    scores = [
        {
            **score,
            "id": f"score of {case['id']}",
            "subject": {"kind": "trace", "id": case["id"]},
            "value": case["score"] > 0.5,
        }
        for case in CASES
    ]
    [recording] = read_log(write(tmp_path / "scores.json", {"data": scores}))
    expected = {c["id"]: "true" if c["score"] > 0.5 else "false" for c in CASES}
    assert by_item(recording, "label") == expected


def test_scores_of_the_api_are_said_to_be_of_unknown_origin(tmp_path: Path) -> None:
    page = load("langfuse.json")
    for score in page["data"]:
        score["source"] = "API"
    recordings = read_log(write(tmp_path / "scores.json", page))
    assert all("source API" in " ".join(each.notes) for each in recordings)


def test_scores_beyond_one_without_labels_are_refused_with_advice(tmp_path: Path) -> None:
    page = load("langfuse.json")
    page["data"] = [score for score in page["data"] if score["name"] == "quality"]
    for score in page["data"]:
        score["value"] *= 100.5
    with pytest.raises(DesignError, match=r"no threshold; import them as a table, with --score"):
        read_log(write(tmp_path / "scores.json", page))


def test_a_score_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    page = load("langfuse.json")
    page["data"].append(page["data"][0])
    with pytest.raises(DesignError, match="its id grade-france occurs twice"):
        read_log(write(tmp_path / "scores.json", page))


def test_a_row_with_too_few_cells_is_refused(tmp_path: Path) -> None:
    text = (FIXTURES / "langfuse" / "scores.csv").read_text("utf-8")
    path = tmp_path / "scores.csv"
    path.write_text(text + "a,b\n", "utf-8")
    with pytest.raises(DesignError, match="more or fewer cells"):
        read_log(path)


def test_the_latest_of_a_persons_labels_counts(tmp_path: Path) -> None:
    page = load("langfuse.json")
    label = next(score for score in page["data"] if score["id"] == "person-france")
    changed = {**label, "id": "changed", "stringValue": "incorrect"}
    page["data"].insert(0, {**changed, "updatedAt": "2026-02-01T00:00:00Z"})
    correctness, _ = read_log(write(tmp_path / "scores.json", page))
    assert people(correctness)["trace-france"] == "incorrect"
    assert len(correctness.labels) == len(CASES)
    assert any("given again" in note for note in correctness.notes)


def test_spellings_that_are_read_as_one_are_said(tmp_path: Path) -> None:
    words = ("Pass", "pass", "fail")
    score = {"name": "ok", "source": "EVAL", "value": 0, "dataType": "CATEGORICAL"}
    rows = [{**score, "traceId": word, "stringValue": word} for word in words]
    [recording] = read_log(write(tmp_path / "scores.json", rows))
    assert len(recording.scale.labels) == 2
    assert "Spellings of ok are read as one: Pass, fail, pass." in recording.notes


def test_a_single_label_has_a_counterpart(tmp_path: Path) -> None:
    score = {"name": "ok", "source": "EVAL", "value": 4, "dataType": "NUMERIC"}
    [recording] = read_log(write(tmp_path / "x.json", [{**score, "traceId": "a"}]))
    assert recording.scale == ("binary", ("not 4", "4"), "4")


def test_halves_of_characters_are_replaced(tmp_path: Path) -> None:
    page = load("langfuse.json")
    for score in page["data"]:
        score |= {"name": "a\ud800", "comment": "b\ud800", "stringValue": "good\ud800"}
        score["dataType"] = "CATEGORICAL"
    [recording] = read_log(write(tmp_path / "scores.json", page))
    assert recording.question == "a?"
    assert set(recording.verdicts["rationale"]) == {"b?"}
    assert recording.scale.labels == ("not good?", "good?")


def test_cells_are_data(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "trace_id", "name", "source", "value", "comment", "metadata"])
        for number in range(3):
            row = [number, f"t{number}", "ok", "EVAL", number % 2, "=1+1", json.dumps({})]
            table.writerow(row)
    [recording] = read_log(path)
    assert set(recording.verdicts["rationale"]) == {"=1+1"}
