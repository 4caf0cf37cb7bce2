import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from judge_gym.errors import DesignError
from recorded_logs import CASES, FIXTURES, by_item, load, people, read_fixture, read_log, write

GRADES = {case["id"]: "" if case["grade"] == "N" else case["grade"] for case in CASES}


def test_grades_are_ordered_labels_and_epochs_repeats() -> None:
    [recording] = read_fixture("inspect.eval")
    assert recording.question == "model_graded_qa"
    assert recording.scale.labels == ("I", "P", "C")
    verdicts = recording.verdicts
    for repeat in (0, 1):
        part = verdicts[verdicts["repeat"] == repeat]
        assert dict(zip(part["item"], part["label"], strict=True)) == GRADES
    assert len(verdicts) == 2 * len(CASES)
    assert set(verdicts["judge"]) == {"mockllm/grader"}
    assert set(recording.items["system"]) == {"mockllm/capitals"}


def test_an_answer_without_a_grade_is_unreadable() -> None:
    [recording] = read_fixture("inspect.eval")
    chile = recording.verdicts[recording.verdicts["item"] == "chile"]
    assert set(chile["status"]) == {"parse_failed"}
    assert set(chile["answer"]) == {"No grade can be given."}


def test_prompt_answer_target_and_setup_are_kept() -> None:
    [recording] = read_fixture("inspect.eval")
    row = recording.verdicts[recording.verdicts["item"] == "canada"].iloc[0]
    [message] = json.loads(row["prompt"])
    assert message["role"] == "user"
    assert message["content"].startswith("What is the capital of Canada?\nAnswer: Toronto.")
    assert row["answer"] == "Ottawa was expected.\n\nGRADE: I"
    assert row["foreign.instructions"].startswith("Write your reasons")
    item = recording.items.set_index("item").loc["canada"]
    assert (item["text"], item["reference"]) == ("Toronto.", "Ottawa")


def test_a_persons_edit_is_a_label_and_the_verdict_what_it_was() -> None:
    [recording] = read_fixture("inspect.json")
    assert people(recording) == {"australia": "I"}
    assert by_item(recording, "label")["australia"] == "C"
    assert any("edited" in note for note in recording.notes)


def test_code_is_left_out_and_counted() -> None:
    [recording] = read_fixture("inspect.eval")
    assert "Left out: scores of includes, which is code (16)." in recording.notes


def test_other_answers_in_another_epoch_are_other_items(tmp_path: Path) -> None:
    log = load("inspect.json")
    again = json.loads(json.dumps(log["samples"]))
    for sample in again:
        sample["epoch"] = 2
        sample["output"]["completion"] = "Something else."
    log["samples"] += again
    [recording] = read_log(write(tmp_path / "log.json", log))
    assert set(recording.verdicts["repeat"]) == {0}
    assert len(recording.items) == 2 * len(CASES)
    assert set(recording.items["cluster"]) == {case["id"] for case in CASES}


def test_graders_of_two_logs_are_two_judges(tmp_path: Path) -> None:
    for judge in ("strict", "lenient"):
        log = load("inspect.json")
        log["eval"]["eval_id"] = judge
        log["eval"]["model_roles"]["grader"] = {"model": judge, "config": {"temperature": 0.5}}
        write(tmp_path / f"{judge}.json", log)
    [recording] = read_log(tmp_path)
    assert set(recording.verdicts["judge"]) == {"strict", "lenient"}
    assert set(recording.verdicts["judge.temperature"]) == {0.5}
    assert len(recording.items) == len(CASES)


def test_a_scorer_that_names_no_model_is_the_judge(tmp_path: Path) -> None:
    log = load("inspect.json")
    for sample in log["samples"]:
        sample["scores"] = {"rate": {"value": len(sample["id"]), "explanation": "long"}}
    [recording] = read_log(write(tmp_path / "log.json", log))
    assert set(recording.verdicts["judge"]) == {"rate"}
    assert recording.scale.labels == ("5", "6", "7", "8", "9")
    assert "judge.temperature" not in recording.verdicts


def test_a_panel_of_graders_is_one_judge(tmp_path: Path) -> None:
    log = load("inspect.json")
    log["eval"]["model_roles"]["grader"] = [{"model": "a"}, {"model": "b"}]
    [recording] = read_log(write(tmp_path / "log.json", log))
    assert set(recording.verdicts["judge"]) == {"a + b"}
    assert set(recording.verdicts["answer"]) == {""}


def _log_with(**changes: Any) -> dict[str, Any]:
    log: dict[str, Any] = load("inspect.json")
    return {**log, **changes}


def test_a_grade_that_was_not_found_is_not_counted_as_wrong(tmp_path: Path) -> None:
    log = load("inspect.json")
    score = {"value": "I", "explanation": "Grade not found in model output: hm"}
    log["samples"][0]["scores"]["model_graded_qa"] = score
    [recording] = read_log(write(tmp_path / "log.json", log))
    assert recording.verdicts.iloc[0]["status"] == "parse_failed"


def test_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="version 9"):
        read_log(write(tmp_path / "log.json", _log_with(version=9)), "inspect")


def test_a_sample_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    log = load("inspect.json")
    log["samples"].append(log["samples"][0])
    with pytest.raises(DesignError, match=r"sample 9: 'australia' occurs twice in epoch 1"):
        read_log(write(tmp_path / "log.json", log))


def test_scores_of_mixed_kinds_are_refused(tmp_path: Path) -> None:
    log = load("inspect.json")
    log["samples"][1]["scores"]["model_graded_qa"]["value"] = 0.7
    with pytest.raises(DesignError, match=r"two kinds, words and numbers: 'C' and 0.7"):
        read_log(write(tmp_path / "log.json", log))


def test_a_large_file_in_a_small_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(_log_with(samples=None)))
        archive.writestr("samples/a_epoch_1.json", b" " * (65 * 2**20))
    with pytest.raises(DesignError, match="is over 64 MB"):
        read_log(tmp_path / "bomb.eval")


def test_an_archive_that_lies_about_a_size_is_refused(tmp_path: Path) -> None:
    data = bytearray((FIXTURES / "inspect.eval").read_bytes())
    entry = data.rfind(b"PK\x01\x02")  # of header.json, which is the last file
    data[entry + 24 : entry + 28] = (10).to_bytes(4, "little")
    (tmp_path / "log.eval").write_bytes(data)
    with pytest.raises(DesignError, match="damaged"):
        read_log(tmp_path / "log.eval")
