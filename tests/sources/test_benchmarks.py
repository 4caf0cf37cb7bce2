"""Benchmarks: a folder with known answers, checked as far as that goes without a study."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge_gym.axes import Design
from judge_gym.errors import DesignError
from judge_gym.records import NominalRubric, OrdinalRubric
from judge_gym.sources.benchmarks import judgebench, load_benchmark

ITEMS: list[dict[str, Any]] = [
    {"title": "one", "text": "A typo.", "truth": "Minor", "metadata": {"id": "r-1"}},
    {"title": "two", "text": "A crash.", "truth": 2},
    {"title": "three", "text": "A question."},
]
RUBRIC = {
    "kind": "ordinal",
    "stages": [
        {"label": "Minor", "criteria": ["a typo"]},
        {"label": "Severe", "criteria": ["a crash"]},
    ],
}
WHOLE = """\
name = "reviews"
concept = "review severity"
description = "Comments whose severity is known."
[design]
"prompt.slots.scorer.persona" = "a senior engineer"
"""
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a benchmark's folder; a file of None is left out."""

    def write(
        toml: str | None = WHOLE, items: Any = ITEMS, rubric: Any = RUBRIC, name: str = "folder"
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        lines = None if items is None else "\n".join(map(json.dumps, items))
        stages = None if rubric is None else json.dumps(rubric)
        files = {"benchmark.toml": toml, "items.jsonl": lines, "rubric.json": stages}
        for file, text in files.items():
            if text is not None:
                (folder / file).write_text(text, encoding="utf-8")
        return folder

    return write


def refusal(folder: Path) -> DesignError:
    with pytest.raises(DesignError) as refused:
        load_benchmark(folder)
    return refused.value


# --- what a folder holds -------------------------------------------------------------------------


def test_a_benchmark_is_read_whole(write: Write) -> None:
    found = load_benchmark(write())
    assert (found.name, found.concept) == ("reviews", "review severity")
    assert found.description == "Comments whose severity is known."
    assert found.design == {"prompt.slots.scorer.persona": "a senior engineer"}
    assert [(item.title, item.text, item.truth) for item in found.items] == [
        ("one", "A typo.", 1),
        ("two", "A crash.", 2),
        ("three", "A question.", None),
    ]
    assert found.items[0].metadata == {"id": "r-1"}
    assert isinstance(found.rubric, OrdinalRubric)
    assert [stage.label for stage in found.rubric.stages] == ["Minor", "Severe"]
    assert (found.rubric.author, found.rubric.concept) == ("provided", "review severity")


def test_only_a_concept_is_required(write: Write) -> None:
    found = load_benchmark(write('concept = "c"', name="my-benchmark"))
    assert (found.name, found.description, dict(found.design)) == ("my-benchmark", "", {})


def test_a_benchmark_may_hold_pairs_and_options(write: Write) -> None:
    pairs = [{"text": "q?", "responses": ["a", "b"], "truth": 2}]
    found = load_benchmark(write(items=pairs, rubric={**RUBRIC, "kind": "nominal"}))
    assert isinstance(found.rubric, NominalRubric)
    assert [item.responses for item in found.items] == [("a", "b")]


def test_a_comment_and_a_byte_order_mark_in_items_do_no_harm(write: Write) -> None:
    folder = write('# why\nconcept = "c"  # what\n')
    items = folder / "items.jsonl"
    items.write_text(f"\ufeff{items.read_text()}\n\n", encoding="utf-8")
    assert len(load_benchmark(folder).items) == 3


# --- refusals ------------------------------------------------------------------------------------


def test_missing_folder_is_refused_with_what_a_benchmark_is(tmp_path: Path) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text("{}")
    for path in (tmp_path / "nowhere", file):
        message = refusal(path).message
        assert str(path) in message
        assert "benchmark.toml, items.jsonl and rubric.json" in message


@pytest.mark.parametrize("missing", ["toml", "items", "rubric"])
def test_a_missing_file_is_named(write: Write, missing: str) -> None:
    folder = write(**{missing: None})
    file = {"toml": "benchmark.toml", "items": "items.jsonl", "rubric": "rubric.json"}[missing]
    message = refusal(folder).message
    assert "there is no file" in message and str(folder / file) in message


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ('concpt = "c"', ["unknown key 'concpt'", "'name', 'concept', 'description' or 'design'"]),
        ('concept = "c"\nitems = "x"', ["unknown key 'items'"]),
        ('name = "n"', ["concept is not given"]),
        ("concept = 3", ["concept is a text"]),
        ('concept = ""', ["concept is not given"]),
        ('concept = ["a"]', ["concept is a text"]),
        ('concept = "c"\nname = true', ["name is a text"]),
        ('concept = "c"\ndesign = "raw"', ["design is a table of knobs"]),
        ("concept = ", ["cannot be read"]),
        ('concept = "a"\nconcept = "b"', ["cannot be read"]),
    ],
)
def test_settings_that_cannot_be_are_refused_with_their_file(
    write: Write, toml: str, words: list[str]
) -> None:
    folder = write(toml)
    message = refusal(folder).message
    assert all(word in message for word in [str(folder / "benchmark.toml"), *words]), message


def test_an_unknown_key_is_answered_with_the_keys(write: Write) -> None:
    assert set(refusal(write('concept = "c"\nfoo = 1')).choices) == {
        "name", "concept", "description", "design",
    }  # fmt: skip


def test_settings_in_another_encoding_are_refused(write: Write) -> None:
    folder = write()
    (folder / "benchmark.toml").write_bytes('concept = "Härte"'.encode("latin-1"))
    assert "benchmark.toml cannot be read" in refusal(folder).message


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], ["holds no evidence"]),
        ([{"text": "a"}, {"text": "b"}], ["no item has a truth"]),
        ([{"text": "a", "truht": 1}], [":1", "'truht'", "'truth'"]),
        ([{"text": "a", "truth": 1}, {"text": " "}], [":2", "empty"]),
        ([{"text": "a", "truth": 1}, 3], [":2", "object"]),
        ([{"text": "q", "responses": ["a"], "truth": 1}], [":1", "two responses"]),
        ([{"text": "q", "responses": ["a", ""], "truth": 1}], [":1", "empty"]),
        ([{"text": "q", "responses": "ab", "truth": 1}], [":1", "two responses"]),
    ],
)
def test_items_that_cannot_be_are_refused_with_their_file(
    write: Write, items: list[Any], words: list[str]
) -> None:
    folder = write(items=items)
    message = refusal(folder).message
    assert all(word in message for word in [str(folder / "items.jsonl"), *words]), message


def test_repeated_item_is_refused_with_both_titles(write: Write) -> None:
    message = refusal(write(items=[*ITEMS, {"title": "four", "text": "A crash."}])).message
    assert "'four' has the same text as 'two'" in message


def test_the_same_question_with_other_responses_is_another_item(write: Write) -> None:
    question = {"text": "q?", "truth": 1}
    pairs = [{**question, "responses": ["a", "b"]}, {**question, "responses": ["b", "a"]}]
    assert len(load_benchmark(write(items=pairs)).items) == 2
    again = [*pairs, {**question, "responses": ["a", "b"], "title": "again"}]
    assert "'again' has the same text" in refusal(write(items=again, name="other")).message


@pytest.mark.parametrize(
    ("rubric", "words"),
    [
        ({"stages": []}, ["2 to 26"]),
        ({**RUBRIC, "kind": "rising"}, ["'rising'", "'ordinal' or 'nominal'"]),
        ({**RUBRIC, "stages": RUBRIC["stages"][:1]}, ["2 to 26"]),
        ([], ["a rubric is"]),
    ],
)
def test_a_rubric_that_cannot_be_is_refused_with_its_file(
    write: Write, rubric: Any, words: list[str]
) -> None:
    folder = write(rubric=rubric)
    message = refusal(folder).message
    assert all(word in message for word in [str(folder / "rubric.json"), *words]), message


# --- JudgeBench ----------------------------------------------------------------------------------

ROW = {
    "pair_id": "p1",
    "original_id": "7",
    "source": "mmlu-pro-law",
    "question": "Which?",
    "response_model": "m",
    "response_A": "This.",
    "response_B": "That.",
    "label": "A>B",
}


def test_published_pairs_are_a_benchmark_without_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [ROW, {**ROW, "pair_id": "p2", "label": "B>A", "question": "Why?"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    found = judgebench(path)
    assert [item.truth for item in found.items] == [1, 2]
    assert found.items[0].responses == ("This.", "That.")
    assert isinstance(found.rubric, NominalRubric)
    titles = [stage.label for stage in found.rubric.stages]
    assert [("first" in title, "second" in title) for title in titles] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    design = Design.of({"judge.model": "sim:strict", **found.design})
    assert design.prompt.slots.scorer.persona == design.prompt.slots.prober.persona
    assert "political" not in design.prompt.slots.scorer.persona


def test_published_pair_under_two_ids_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(json.dumps({**ROW, "pair_id": id}) for id in ("p1", "p2")))
    with pytest.raises(DesignError, match="has the same text as"):
        judgebench(path)


# --- what is told of a faulty folder -------------------------------------------------------------


def test_repeated_id_is_refused(write: Write) -> None:
    """Judgments are told apart by it, so a run could be paid for and never be scored."""
    items = [{"title": t, "text": t, "truth": 1, "metadata": {"id": "7"}} for t in ("one", "two")]
    assert "'two' has the id '7' of 'one'" in refusal(write(items=items)).message


def test_a_concept_of_blanks_is_no_concept(write: Write) -> None:
    assert "concept" in refusal(write('concept = "  "')).message


@pytest.mark.parametrize("toml", ['concept = "c"\n[design]\n', 'concept = "c"\ndescription = ""'])
def test_what_may_be_left_out_may_be_empty(write: Write, toml: str) -> None:
    """An empty table is refused with the words that it is a table."""
    assert load_benchmark(write(toml)).concept == "c"


@pytest.mark.parametrize("missing", ["items", "rubric"])
def test_missing_file_is_refused_with_what_a_benchmark_is(write: Write, missing: str) -> None:
    folder = write(**{missing: None})
    message = refusal(folder).message
    assert message.count(str(folder)) == 1
    assert "a benchmark is a folder with" in message


def test_a_knob_of_the_design_that_cannot_be_is_refused_with_the_folder_itself(
    write: Write,
) -> None:
    """A study tells it as line 1 of its own file."""
    folder = write('concept = "c"\n[design]\n"verdict.metod" = "subset"')
    assert str(folder / "benchmark.toml") in refusal(folder).message


def test_a_truth_that_is_no_stage_is_refused_with_the_folder_itself(write: Write) -> None:
    """The docstring says that every known answer is checked against the rubric."""
    folder = write(items=[{"title": "odd", "text": "a", "truth": "Sevre"}])
    message = refusal(folder).message
    assert str(folder / "items.jsonl") in message and "'Sevre'" in message and "odd" in message
