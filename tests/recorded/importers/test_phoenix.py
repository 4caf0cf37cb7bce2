import json
from pathlib import Path

import pytest

from judge_gym.errors import DesignError
from recorded_logs import CASES, FIXTURES, by_item, people, read_fixture, read_log, write

LABELS = {"C": "correct", "P": "partly", "I": "incorrect", "N": ""}
SPANS = {case["id"]: f"{number:016x}" for number, case in enumerate(CASES, 1)}


def test_models_are_judges_and_humans_people() -> None:
    [recording] = read_fixture("phoenix")
    assert recording.question == "correctness"
    assert recording.scale.labels == ("incorrect", "partly", "correct")
    assert by_item(recording, "label") == {SPANS[c["id"]]: LABELS[c["grade"]] for c in CASES}
    assert by_item(recording, "status")[SPANS["chile"]] == "parse_failed"
    assert people(recording) == {SPANS[case["id"]]: case["person"] for case in CASES}
    assert set(recording.verdicts["judge"]) == {"scripted:grader"}


def test_spans_of_the_folder_add_the_texts() -> None:
    [recording] = read_fixture("phoenix")
    items = recording.items.set_index("item")
    for case in CASES:
        row = items.loc[SPANS[case["id"]]]
        assert (row["input"], row["text"]) == (case["question"], case["answer"])


def test_annotations_alone_are_read_without_texts() -> None:
    [recording] = read_log(FIXTURES / "phoenix" / "annotations.csv")
    assert set(recording.items["text"]) == {""}
    assert any("without texts" in note for note in recording.notes)


def annotation(number: int, kind: str, **result: object) -> dict[str, object]:
    """An annotation as the REST API returns it."""
    about = {"id": f"{kind}{number}", "span_id": f"s{number}", "name": "helpful"}
    return {**about, "annotator_kind": kind, "result": result, "metadata": {"model": "gpt"}}


def test_pages_of_the_api_are_read(tmp_path: Path) -> None:
    rows = [annotation(number, "LLM", label=None, score=number % 2) for number in range(4)]
    rows += [annotation(number, "CODE", label=None, score=1) for number in range(4)]
    [recording] = read_log(write(tmp_path / "page.json", {"data": rows, "next_cursor": None}))
    assert recording.scale.labels == ("0", "1")
    assert set(recording.verdicts["foreign.annotator_kind"]) == {"LLM", "CODE"}


def test_an_annotation_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([json.dumps(annotation(1, "LLM", label="good"))] * 2), "utf-8")
    with pytest.raises(DesignError, match="annotation 2: its id LLM1 occurs twice"):
        read_log(path)
