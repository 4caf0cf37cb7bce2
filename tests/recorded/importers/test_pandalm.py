"""PandaLM's test set: on an invented one, and on the published one where it is."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.errors import DesignError
from judge_gym.recorded import Recording, as_samples
from judge_gym.recorded.importers import find_importer, pandalm
from judge_gym.recorded.importers.pandalm import majority_labels, published_scores
from published_data import published
from tables import each_row


def pair(number: int, *labels: Any, **fields: Any) -> dict[str, Any]:
    annotators = {f"annotator{n}": label for n, label in enumerate(labels, 1)}
    texts = {
        "instruction": "Shorten.",
        "input": f"A text {number}",
        "response1": "A",
        "response2": "B",
    }
    return {
        "idx": number,
        "cmp_key": "x_y",
        "motivation_app": "Mail",
        **texts,
        **annotators,
        **fields,
    }


def results(key: str, *values: Any) -> list[dict[str, Any]]:
    return [
        {"idx": number, f"{key}_result": value, f"{key}_reason": "Because."}
        for number, value in enumerate(values)
    ]


def write(folder: Path, **files: Any) -> Path:
    for name, rows in files.items():
        (folder / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(
        tmp_path,
        tests=[
            pair(0, 1, 1, 2),
            pair(1, 2, 2, 2),
            pair(2, 0, 1, 2),
            pair(3, 0, 0, 0, response1=True),
        ],
        **{
            "gpt-tests": results("gpt", "1", "Tie", "garbage", "garbage"),
            "own": results("own", 1, 2, 0, 2),
        },
    )


def read(path: Path) -> Recording:
    [recording] = pandalm.read(path)
    return recording


def test_annotators_are_people_and_results_are_verdicts(folder: Path) -> None:
    recording = read(folder)
    assert Counter(recording.labels["label"]) == {"first": 3, "second": 5, "tie": 4}
    assert set(recording.labels["rater"]) == {"annotator1", "annotator2", "annotator3"}
    rows = recording.verdicts.set_index(["judge", "item"])
    assert list(rows.loc["gpt"]["label"]) == ["first", "tie", "", ""]
    assert list(rows.loc["gpt"]["status"]) == ["scored", "scored", "parse_failed", "parse_failed"]
    assert list(rows.loc["own"]["label"]) == ["first", "second", "tie", "second"]
    assert set(recording.verdicts["rationale"]) == {"Because."}
    assert set(recording.items["response_a"]) == {"A", "True"}
    assert dict(majority_labels(recording)) == {"0": "first", "1": "second", "3": "tie"}


def test_unreadable_answers_are_ties_as_published_and_wrong_otherwise(folder: Path) -> None:
    """Of three items with a majority gpt has one right, and the tie if garbage is one."""
    recording = read(folder)
    assert published_scores(recording, unreadable_are_ties=False)["gpt"][0] == pytest.approx(1 / 3)
    assert published_scores(recording, unreadable_are_ties=True)["gpt"][0] == pytest.approx(2 / 3)
    notes = " ".join(recording.notes)
    assert "in 1 there is no majority" in notes
    assert "its 2 unreadable answers" in notes


def test_the_format_is_found_by_its_files(folder: Path) -> None:
    assert find_importer("auto", folder)[0] == "pandalm"
    assert find_importer("auto", folder / "tests.json")[0] == "pandalm"
    assert not pandalm.detect(folder / "own.json")
    assert len(read(folder / "tests.json").verdicts) == 8


@each_row(
    "files, message",
    [
        ({"tests": [pair(0, 3, 1, 1)]}, "unknown annotator1"),
        ({"tests": [pair(0, 1, 1, 1), pair(0, 1, 1, 1)]}, "'idx' 0 is there twice"),
        ({"tests": [pair(0, 1, 1, 1, instruction=None)]}, "'instruction' is missing"),
        ({"own": results("own", 1, 2)}, "'idx' 1 is no pair"),
        ({"own": results("own", 1) * 2}, "'idx' 0 is there twice"),
        ({"own": [{"idx": 0, "a_result": 1, "b_result": 1}]}, "expected one field"),
        ({"own": [{"other": 1}]}, "no results of a judge"),
        ({"second": [pair(0, 1, 1, 1)]}, "second.json, tests.json as labelled test set"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    for file in tmp_path.glob("*.json"):
        file.unlink()
    write(tmp_path, **{"tests": [pair(0, 1, 1, 1)], "own": results("own", 1), **files})
    with pytest.raises(DesignError, match=message):
        pandalm.read(tmp_path)


# --- the published data --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data() -> Recording:
    return read(published("pandalm"))


def test_gold_is_the_majority_of_three(data: Recording) -> None:
    counts = Counter(majority_labels(data))
    assert (counts["tie"], counts["first"], counts["second"]) == (105, 422, 472)


def test_published_accuracy_and_f1_by_another_library(data: Recording) -> None:
    majority = majority_labels(data)
    known = {"gpt-3.5-turbo": (71.07, 57.55), "pandalm-7b": (66.77, 57.43)}
    for judge, rows in data.verdicts.groupby("judge"):
        found, truth = rows["label"].replace("", "tie"), rows["item"].map(majority)
        theirs = accuracy_score(truth, found), f1_score(truth, found, average="macro")
        ours = published_scores(data, unreadable_are_ties=True)[str(judge)]
        assert ours == pytest.approx(theirs)
        assert tuple(round(100 * value, 2) for value in ours) == known[str(judge)]
    strict = published_scores(data, unreadable_are_ties=False)
    assert round(100 * strict["gpt-3.5-turbo"][0], 2) == 69.77
    assert (data.verdicts["status"] == "parse_failed").sum() == 25


def test_annotators_agree_as_published(data: Recording) -> None:
    labels = data.labels.pivot(index="item", columns="rater", values="label")
    kappas = [cohen_kappa_score(labels[a], labels[b]) for a, b in combinations(labels, 2)]
    assert [round(kappa, 2) for kappa in kappas] == [0.85, 0.88, 0.86]


def test_judges_agree_with_people_as_known(data: Recording) -> None:
    samples, people = as_samples(data)
    table = judge_table(tidy(samples), people)
    values = {
        row["setup"]: round(row["truth"]["value"], 3) for row in table["rows"] if row["truth"]
    }
    assert values == {"gpt-3.5-turbo": 0.689, "pandalm-7b": 0.660}
    assert table["people_with_each_other"] is not None
    assert round(table["people_with_each_other"]["value"], 3) == 0.920
