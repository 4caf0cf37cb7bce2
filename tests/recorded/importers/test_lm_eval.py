import json
from pathlib import Path

import pytest

from judge_gym.errors import DesignError
from recorded_logs import CASES, FIXTURES, by_item, read_fixture, read_log

ROWS = (FIXTURES / "samples_capitals.jsonl").read_text("utf-8").splitlines()


def test_each_metric_is_a_judge_of_its_own_question() -> None:
    exact, score = read_fixture("samples_capitals.jsonl")
    assert (exact.question, score.question) == ("exact_match", "judge_score")
    right = {str(n): str(int(c["answer"] == c["reference"])) for n, c in enumerate(CASES)}
    assert by_item(exact, "label") == right
    assert any("The judge is the metric" in note for note in exact.notes)


def test_scores_without_a_threshold_are_cut_and_it_is_said() -> None:
    _, recording = read_fixture("samples_capitals.jsonl")
    assert recording.scale.labels == ("below 0.5", "0.5 or more")
    expected = {
        str(number): "0.5 or more" if case["score"] >= 0.5 else "below 0.5"
        for number, case in enumerate(CASES)
    }
    assert by_item(recording, "label") == expected
    assert by_item(recording, "score") == {str(n): case["score"] for n, case in enumerate(CASES)}
    assert any("cut at 0.5" in note for note in recording.notes)


def test_models_of_a_folder_are_systems(tmp_path: Path) -> None:
    for model in ("model-a", "model-b"):
        (tmp_path / model).mkdir()
        (tmp_path / model / "samples_capitals.jsonl").write_text("\n".join(ROWS), "utf-8")
    exact, _ = read_log(tmp_path)
    assert set(exact.items["system"]) == {"model-a", "model-b"}
    assert exact.items["cluster"].nunique() == len(CASES)


def test_two_filters_of_one_document_are_two_setups(tmp_path: Path) -> None:
    path = tmp_path / "samples_capitals_2026-01-01T00-00-00.000000.jsonl"
    strict = [json.dumps(json.loads(row) | {"filter": "strict"}) for row in ROWS]
    path.write_text("\n".join([*ROWS, *strict]), "utf-8")
    exact, _ = read_log(path)
    assert set(exact.verdicts["foreign.filter"]) == {"none", "strict"}
    assert set(exact.verdicts["repeat"]) == {0}


def test_a_document_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples_capitals.jsonl"
    path.write_text("\n".join([*ROWS, ROWS[0]]), "utf-8")
    with pytest.raises(DesignError, match="sample 9: document 0 occurs twice"):
        read_log(path)
