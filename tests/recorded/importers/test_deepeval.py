from pathlib import Path

import pytest

from judge_gym.errors import DesignError
from recorded_logs import CASES, by_item, load, read_fixture, read_log, write


def test_a_metric_passes_by_its_own_threshold() -> None:
    [recording] = read_fixture("deepeval.json")
    assert recording.question == "Correctness [GEval]"
    tenths = {case["id"]: round(case["score"] * 10) for case in CASES}
    expected = {name: "pass" if score >= 5 else "fail" for name, score in tenths.items()}
    assert by_item(recording, "label") == expected
    assert by_item(recording, "score") == {name: score / 10 for name, score in tenths.items()}
    assert set(recording.verdicts["judge"]) == {"scripted-judge"}
    assert set(recording.verdicts["foreign.threshold"]) == {"0.5"}


def test_texts_and_reasons_are_kept() -> None:
    [recording] = read_fixture("deepeval.json")
    item = recording.items.set_index("item").loc["brazil"]
    assert item["reference"] == "Brasília"
    assert item["input"] == "What is the capital of Brazil?"
    assert by_item(recording, "rationale")["brazil"] == "Spelling differs."
    assert "Left out: results of Exact Match, which names no model (8)." in recording.notes


def test_a_metric_that_failed_is_a_failed_call(tmp_path: Path) -> None:
    run = load("deepeval.json")
    run["testCases"][0]["metricsData"][0] |= {"error": "timeout", "success": False, "score": None}
    [recording] = read_log(write(tmp_path / "run.json", run))
    assert recording.verdicts.iloc[0]["status"] == "provider_error"


def test_runs_of_a_folder_are_systems_named_by_their_hyperparameters(tmp_path: Path) -> None:
    write(tmp_path / "a.json", load("deepeval.json"))
    other = load("deepeval.json")
    other["hyperparameters"] = {"model": "capitals-v2"}
    write(tmp_path / "b.json", other)
    [recording] = read_log(tmp_path)
    systems = set(recording.items["system"])
    assert len(recording.items) == 2 * len(CASES)
    assert "model capitals-v2" in systems
    assert any("capitals-v1" in system for system in systems)


def test_metrics_that_are_no_list_are_refused(tmp_path: Path) -> None:
    run = load("deepeval.json")
    run["testCases"][2]["metricsData"] = "none"
    with pytest.raises(DesignError, match='test case 3: "none" stands where a list should be'):
        read_log(write(tmp_path / "run.json", run))
