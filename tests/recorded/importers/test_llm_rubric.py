"""LLM-Rubric's tables: on invented ones, and on the published ones where they are."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from judge_gym.errors import DesignError
from judge_gym.recorded.importers import find_importer, llm_rubric
from judge_gym.recorded.importers.llm_rubric import READ, probability_errors
from published_data import published
from tables import each_row

HEAD = "text_id criterion sample_llm answer1_prob answer2_prob answer3_prob"
EVALUATIONS = [
    "a Q0 3 .1 .2 .7",
    "b Q0 1 .6 .3 .1",
    "c Q0 x .3 .3 .2",
    "a Q1 2 .1 .8 .1",
    "b Q1 2 .0 .5 .5",
    "a Q9 2 .0 .5 .5",
]
PEOPLE = ["a 3 0 ann", "b 2 1.0 ann", "b 1 2 bob", "a 2 2 ann"]


def write(
    folder: Path,
    evaluations: Sequence[str] = EVALUATIONS,
    people: Sequence[str] = PEOPLE,
    head: str = HEAD,
    columns: str = "text_id Q0 Q1 annotator_id",
) -> Path:
    for name, lines in (
        ("gpt-9_real_evaluations_FIXED.tsv", [head, *evaluations]),
        ("human_judges.tsv", [columns, *people]),
    ):
        text = "".join("\t".join(line.split(" ")) + "\n" for line in lines)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_each_question_is_a_recording_with_both_readings(tmp_path: Path) -> None:
    first, second = llm_rubric.read(write(tmp_path))
    assert (first.question, second.question) == ("Q0", "Q1")
    assert first.scale.kind == "ordinal"
    assert first.scale.labels == ("1", "2", "3")
    rows = first.verdicts.pivot(index="item", columns=READ, values="label")
    assert rows.loc["a"].to_dict() == {"argmax": "3", "sampled": "3"}
    assert rows.loc["b"].to_dict() == {"argmax": "1", "sampled": "1"}
    assert rows.loc["c"].to_dict() == {"argmax": "", "sampled": ""}  # mass .8, and a word
    assert set(first.verdicts["judge"]) == {"gpt-9"}
    assert second.labels.to_dict("list") == {
        "item": ["b", "b", "a"],
        "rater": ["ann", "bob", "ann"],
        "label": ["1", "2", "2"],
    }
    assert second.notes[0].endswith("and no labels: 1.")
    assert first.notes[0].endswith("of which the first counts: 1.")
    assert any("Q9" in note for note in first.notes)


def test_errors_stand_beside_that_of_the_best_constant(tmp_path: Path) -> None:
    """Q0: a 3 by 3 (mean 2.6), b 2 and 1 by 1 (mean 1.5)."""
    errors = probability_errors(write(tmp_path))["Q0"]
    assert errors.n == 3
    assert errors.argmax == pytest.approx(((0 + 1 + 0) / 3) ** 0.5)
    assert errors.expected == pytest.approx(((0.4**2 + 0.5**2 + 0.5**2) / 3) ** 0.5)
    assert errors.constant == pytest.approx(((1 + 0 + 1) / 3) ** 0.5)


def test_the_format_is_found_by_its_columns(tmp_path: Path) -> None:
    write(tmp_path)
    for path in (tmp_path, *tmp_path.glob("*.tsv")):
        assert find_importer("auto", path)[0] == "llm-rubric"
    (tmp_path / "human_judges.tsv").unlink()
    assert not llm_rubric.detect(tmp_path)


@each_row(
    "changes, message",
    [
        ({"evaluations": ["a Q0 3 .1 .2"]}, "2: 5 cells, and 6 columns"),
        ({"evaluations": ["a Q0 3 .1 .2 7"]}, "answer3_prob is a probability, not '7'"),
        ({"evaluations": ["a Q0 3 .1 .2 nan"]}, "is a probability"),
        ({"evaluations": ["a Q0 3 .1 .2 .7"] * 2}, "Q0 of a is on line 2 already"),
        ({"evaluations": []}, "has no evaluations"),
        ({"people": []}, "has no answers"),
        ({"people": [" 1 2 ann"]}, "text_id and annotator_id are needed"),
        ({"columns": "text_id X Y annotator_id"}, "no column for any of Q0"),
        ({"head": HEAD.replace("answer2", "answer4")}, "they are numbered 1, 2"),
    ],
)
def test_broken_tables_are_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(DesignError, match=message):
        llm_rubric.read(write(tmp_path, **changes))  # type: ignore[arg-type]


def test_published_errors_are_reproduced() -> None:
    errors = probability_errors(published("llm-rubric"))["Q0"]
    assert round(errors.argmax, 6) == 1.201643
    assert round(errors.expected, 6) == 0.918676
    assert round(errors.constant, 3) == 0.793


def test_published_questions_are_all_read() -> None:
    recordings = llm_rubric.read(published("llm-rubric"))
    assert sorted(one.question for one in recordings) == [f"Q{n}" for n in range(9)]
    assert {len(one.labels) + 0 for one in recordings if one.question in ("Q0", "Q2")} == {223}
