"""Annotations for the alternative annotator test, invented in the published format."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.errors import DesignError
from judge_gym.recorded import Recording, as_samples
from judge_gym.recorded.importers import alt_test, find_importer
from tables import each_row


def write(folder: Path, people: Any, models: Any, prompts: Any = None) -> Path:
    files = {"human_annotations": people, "llm_annotations": models, "prompts": prompts}
    for name, content in files.items():
        if content is not None:
            (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def read(path: Path) -> Recording:
    [recording] = alt_test.read(path)
    return recording


@each_row(
    "labels, kind, names, positive",
    [
        ([1, 5, 4.0], "ordinal", ("1", "2", "3", "4", "5"), None),
        (["tie", "model_a", "model_b"], "nominal", ("model_a", "model_b", "tie"), None),
        (["yes", "no", "no"], "binary", ("no", "yes"), "yes"),
        ([1, 0, 1], "binary", ("0", "1"), "1"),
        ([True, False, True], "binary", ("False", "True"), "True"),
        (["left", "up", "left"], "binary", ("left", "up"), None),
        ([10, 2000, 30], "nominal", ("10", "30", "2000"), None),
    ],
)
def test_the_scale_follows_from_the_labels(
    tmp_path: Path, labels: list[Any], kind: str, names: tuple[str, ...], positive: str | None
) -> None:
    items = dict(zip("abc", labels, strict=True))
    scale = read(write(tmp_path, {"w1": items}, {"gpt": items})).scale
    assert (scale.kind, scale.labels, scale.positive) == (kind, names, positive)


def test_people_and_models_are_told_apart(tmp_path: Path) -> None:
    people = {"w1": {"a": 1, "b": 2}, "w2": {"b": 3, "c": None}}
    models = {"gpt": {"a": 1, "b": None, "z": 3}, "gemini": {"b": 2}}
    recording = read(write(tmp_path, people, models))
    assert recording.labels.to_dict("list") == {
        "item": ["a", "b", "b"],
        "rater": ["w1", "w1", "w2"],
        "label": ["1", "2", "3"],
    }
    rows = recording.verdicts.set_index(["judge", "item"])["status"]
    assert rows.to_dict() == {
        ("gpt", "a"): "scored",
        ("gpt", "b"): "parse_failed",
        ("gpt", "z"): "scored",
        ("gemini", "b"): "scored",
    }
    assert sorted(recording.items["item"]) == ["a", "b", "c", "z"]
    assert "Empty annotations of models, which count as unreadable: 1." in recording.notes


def test_prompts_give_texts_messages_and_clusters(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Judge."}, {"role": "user", "content": "A text"}]
    prompts = {
        "a": {"text_id": "t", "chat_prompt": chat, "str_prompt": "Judge.\nA text"},
        "b": {"text_id": "t", "str_prompt": "Judge.\nAnother"},
        "c": {"text_id": "u", "chat_prompt": [{"role": "user", "content": [{"image": "x"}]}]},
    }
    labels = {"a": 1, "b": 2, "c": 3}
    recording = read(write(tmp_path, {"w": labels}, {"m": labels}, prompts))
    assert list(recording.items["text"]) == ["A text", "Judge.\nAnother", ""]
    assert list(recording.items["cluster"]) == ["t", "t", ""]
    assert [bool(prompt) for prompt in recording.verdicts["prompt"]] == [True, False, False]
    assert json.loads(recording.verdicts["prompt"][0]) == chat


def test_the_test_itself_can_be_made_of_a_recording(tmp_path: Path) -> None:
    """The model gives the truth, and each of three people errs on another fifth of 60 items."""
    truth = {f"item {n}": n % 2 for n in range(60)}
    people = {
        f"w{w}": {item: abs(label - (n % 5 == w)) for n, (item, label) in enumerate(truth.items())}
        for w in range(3)
    }
    samples, labels = as_samples(read(write(tmp_path, people, {"m": truth})))
    table = judge_table(tidy(samples), labels, alt_test="skilled")
    [replacement] = table["alt_test"]
    assert (replacement["raters"], replacement["omega"], replacement["passed"]) == (3, 1.0, True)


def test_the_format_is_found_by_its_two_files(tmp_path: Path) -> None:
    write(tmp_path, {"w": {"a": 1, "b": 2}}, {"m": {"a": 1}})
    for path in (tmp_path, tmp_path / "llm_annotations.json"):
        assert find_importer("auto", path)[0] == "alt-test"
    (tmp_path / "llm_annotations.json").unlink()
    assert not alt_test.detect(tmp_path)


@each_row(
    "people, message",
    [
        ({}, "has no annotations"),
        ([], "expected an object"),
        ({"w": 3}, "expected an object, not 3"),
        ({"w": {"a": [1]}}, r"a label is a text or a number, not \[1\]"),
        ({"w": {"": 1}}, "a name is empty"),
        ({"w": {"a": 1, "b": 1}}, "nothing differs"),
        ({"w": {str(n): f"a free text {n}" for n in range(30)}}, "31 different labels"),
    ],
)
def test_broken_annotations_are_refused(tmp_path: Path, people: Any, message: str) -> None:
    with pytest.raises(DesignError, match=message):
        alt_test.read(write(tmp_path, people, {"m": {"a": 1}}))
