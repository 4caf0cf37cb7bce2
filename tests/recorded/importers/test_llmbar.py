"""LLMBar's tree: on invented results, and on the published ones where they are."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.stats.contrasts import find_contrasts
from judge_gym.errors import DesignError
from judge_gym.recorded import Recording, as_samples
from judge_gym.recorded.importers import find_importer, llmbar
from judge_gym.recorded.importers.llmbar import (
    STRATEGY,
    agreement_kappas,
    published_statistics,
    read_output,
)
from judge_gym.recorded.readings import as_read, disagreements
from published_data import published
from tables import each_row


def compared(first: str, second: str, winners: tuple[Any, Any], reason: str = "stop") -> Any:
    """A step with an answer in each order."""
    return {
        "swap = False": {"completion": [first, reason], "winner": winners[0]},
        "swap = True": {"completion": [second, reason], "winner": winners[1]},
    }


def rated(first: str, second: str, winners: tuple[str, str]) -> Any:
    return {
        "score_1": [first, "stop"],
        "score_2": [second, "stop"],
        "swap = False": {"winner": winners[0]},
        "swap = True": {"winner": winners[1]},
    }


def result(number: int, *steps: Any, label: int = 1) -> dict[str, Any]:
    return {
        "input": f"Name {number} rivers.",
        "output_1": f"{number} rivers",
        "output_2": "",
        "label": label,
        "results": [*steps],
    }


def write(folder: Path, where: str, results: Any, statistics: Any = None) -> Path:
    target = folder / where
    target.mkdir(parents=True)
    (target / "result.json").write_text(json.dumps(results), encoding="utf-8")
    if statistics is not None:
        (target / "statistics.json").write_text(json.dumps(statistics), encoding="utf-8")
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two subsets, one judged with two strategies, one with ratings; the second judge once."""
    answers = ("Output (a)", "Output (b)")
    plain = [
        result(1, compared(*answers, ("1", "1"))),
        result(2, compared("Output (a)", "Output (a)", ("1", "2"))),
        result(3, compared("", "", (None, None), "content management policy")),
    ]
    thinking = [
        result(1, compared("Output (b) is better.\nOutput (a) is long.", answers[1], ("1", "1"))),
        result(2, compared("Therefore, Output (b) is better.", answers[0], ("2", "2"))),
        result(3, compared("I like both", "Thus", (None, None), "length")),
    ]
    write(tmp_path, "Hard/Maps/evaluators/GPT-4/Vanilla", plain)
    write(tmp_path, "Hard/Maps/evaluators/GPT-4/CoT", thinking)
    write(
        tmp_path,
        "Easy/evaluators/GPT-4/Rating",
        [
            result(1, rated("6", "1", ("1", "1"))),
            result(2, rated("4", "4", ("2", "1"))),
            result(3, rated("4", "none", ("1", "2"))),
        ],
    )
    return tmp_path


def read(path: Path) -> Recording:
    [recording] = llmbar.read(path)
    return recording


def verdicts_of(recording: Recording, strategy: str) -> pd.DataFrame:
    return recording.verdicts[recording.verdicts[STRATEGY] == strategy].reset_index(drop=True)


# --- the format ----------------------------------------------------------------------------------


def test_items_of_all_subsets_are_told_apart(tree: Path) -> None:
    recording = read(tree)
    items = recording.items
    assert list(items["item"]) == [
        *(f"Easy/{n}" for n in range(3)),
        *(f"Hard/Maps/{n}" for n in range(3)),
    ]
    assert set(items["category"]) == {"Easy", "Hard/Maps"}
    assert set(items["truth"]) == {"first"}
    assert recording.paired
    assert (items["response_b"] != "").all()


def test_a_winner_is_a_verdict_on_an_output_whichever_was_shown_first(tree: Path) -> None:
    rows = verdicts_of(read(tree), "Vanilla")
    assert list(rows["flipped"]) == [False, True] * 3
    assert list(rows["label"]) == ["first", "first", "first", "second", "", ""]
    assert list(rows["status"]) == ["scored"] * 4 + ["refused"] * 2
    assert list(rows["read_label"]) == ["first", "first", "first", "second", "", ""]


def test_our_reading_stands_beside_the_recorded_winner(tree: Path) -> None:
    recording = read(tree)
    rows = verdicts_of(recording, "CoT")
    assert list(rows["label"]) == ["first", "first", "second", "second", "", ""]
    assert list(rows["read_label"]) == ["second", "first", "second", "second", "", ""]
    assert list(rows["read_status"])[4:] == ["truncated", "truncated"]
    differing = disagreements(recording)
    assert list(zip(differing["item"], differing["flipped"], strict=True)) == [
        ("Hard/Maps/0", False)
    ]
    assert "opposite of the recorded verdict: 1;" in " ".join(recording.notes)
    assert list(verdicts_of(as_read(recording), "CoT")["label"]) == list(rows["read_label"])


def test_ratings_have_no_order_and_equal_scores_are_a_tie(tree: Path) -> None:
    recording = read(tree)
    rows = verdicts_of(recording, "Rating")
    assert list(rows["label"]) == ["first", "tie", ""]
    assert list(rows["status"]) == ["scored", "scored", "parse_failed"]
    assert not rows["flipped"].any()
    samples, people = as_samples(recording)
    table = judge_table(tidy(samples), people)
    [rating] = [row for row in table["rows"] if row["setup"] == "GPT-4, strategy Rating"]
    assert rating["position_bias"] is None
    assert rating["truth"] is not None
    assert rating["truth"]["value"] == 0.5  # right, a tie, unreadable


@each_row(
    "text, better",
    [
        ("Output (a)", "first"),
        ("**Output (b)**.", "second"),
        ("Output (a) is short. Therefore, Output (b) is better.", "second"),
        ("Output (b) is better.\n\nOutput (a) misses the point.", "second"),
        ("Output (a) is better. On reflection, it is wrong. Output (b) is better.", "second"),
        ("Output (b) is better.\nOutput (a) is better because it is short.", ""),
        ("Neither Output (a) nor Output (b) is better.", ""),
        ("I cannot say whether Output (a) is better.", ""),
        ("Output (a) is better in terms of length. Output (b) is better.", "second"),
        ("Output (b) is better if you like length.", ""),
        ("I must choose Output (b) as the better option.", "second"),
        ("Output (a) is better.\nUser: And this?\nFalcon: Output (b) is better.", "first"),
        ("# Output (a):\nA poem", ""),
        ("Which is better?\nOutput (b)", "second"),
        ("", ""),
    ],
)
def test_the_last_clear_statement_of_an_answer_decides(text: str, better: str) -> None:
    assert read_output(text) == better


def test_a_part_of_the_tree_is_read_too(tree: Path) -> None:
    judge = "Hard/Maps/evaluators/GPT-4"
    for part in ("Hard", "Hard/Maps", f"{judge}/CoT", f"{judge}/CoT/result.json"):
        assert set(read(tree / part).items["item"]) == {f"Maps/{n}" for n in range(3)}


def test_the_format_is_found_by_its_files(tree: Path, tmp_path: Path) -> None:
    for path in (tree, tree / "Hard", tree / "Easy/evaluators/GPT-4/Rating/result.json"):
        assert find_importer("auto", path)[0] == "llmbar"
    other = tmp_path / "other" / "result.json"
    other.parent.mkdir()
    other.write_text('[{"input": 1}]')
    assert not llmbar.detect(other)
    assert not llmbar.detect(other.parent)
    assert not llmbar.detect(tmp_path / "nowhere")


def test_strategies_are_contrasted(tree: Path) -> None:
    """A strategy has no default: each is compared with the first."""
    samples, _ = as_samples(read(tree / "Hard"))
    [contrast] = find_contrasts(tidy(samples))
    assert contrast.knob == STRATEGY


# --- what cannot be read -------------------------------------------------------------------------


@each_row(
    "results, message",
    [
        ("[", "broken JSON"),
        ("{}", "expected a list"),
        ("[]", "the list is empty"),
        ('["x"]', "item 1: expected an object"),
        (json.dumps([{**result(1, {}), "label": 3}]), "unknown label"),
        (json.dumps([{**result(1, {}), "label": True}]), "unknown label"),
        (json.dumps([result(1)]), "'results': the list is empty"),
        (json.dumps([result(1, {})]), "'swap = False': expected an object"),
        (json.dumps([result(1, compared("", "", ("3", "1")))]), "unknown winner"),
        (
            json.dumps([{**result(1, compared("", "", ("1", "1"))), "input": 5}]),
            "'input' is a text",
        ),
        (
            json.dumps(
                [result(1, {**compared("", "", ("1", "1")), "swap = True": {"winner": "1"}})]
            ),
            "a completion",
        ),
        ('[{"input": "a", "input": "b"}]', "the key 'input' is there twice"),
        ("[" * 2000, "nested too deeply"),
        ('[{"input": "\\ud800", "output_1": "", "output_2": "", "label": 1}]', "lone surrogate"),
    ],
)
def test_broken_results_are_refused_with_their_place(
    tmp_path: Path, results: str, message: str
) -> None:
    folder = tmp_path / "S" / "evaluators" / "M" / "CoT"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(results, encoding="utf-8")
    with pytest.raises(DesignError, match=message) as caught:
        llmbar.read(tmp_path)
    assert "result.json" in caught.value.message


def test_results_that_differ_in_their_items_are_refused(tree: Path) -> None:
    write(tree, "Easy/evaluators/Other/Vanilla", [result(9, compared("", "", (None, None)))])
    with pytest.raises(DesignError, match=r"item 1 differs from item 1 of another result\.json"):
        llmbar.read(tree)


def test_a_result_outside_of_the_tree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps([result(1, compared("", "", ("1", "1")))]))
    with pytest.raises(DesignError, match="does not stand in SUBSET/evaluators/MODEL/STRATEGY"):
        llmbar.read(tmp_path)


# --- statistics ----------------------------------------------------------------------------------


def test_statistics_are_those_of_the_publication() -> None:
    """Four items: right twice in both orders, once in one order, once without an answer."""
    results = [
        result(1, compared("", "", ("1", "1"))),
        result(2, compared("", "", ("2", "2")), label=2),
        result(3, compared("", "", ("1", "2"))),
        result(4, compared("", "", (None, None)), label=2),
    ]
    statistics = published_statistics(results)
    assert statistics["correct_False"] == "3 / 4 = 75.0%"
    assert statistics["correct_True"] == "2 / 4 = 50.0%"
    assert statistics["correct_average"] == "62.5%"
    assert statistics["correct_both"] == "2 / 4 = 50.0%"
    assert statistics["equal"] == "3 / 4 = 75.0%"
    # Codes 1, 0, 1, 0 against answers 1, 2, 1, 2: agreement 1/2, by chance 1/4.
    assert statistics["kappa_False"] == pytest.approx((1 / 2 - 1 / 4) / (1 - 1 / 4))


def test_statistics_beside_results_are_compared(tree: Path) -> None:
    results = json.loads((tree / "Easy/evaluators/GPT-4/Rating/result.json").read_text())
    write(tree, "Easy/evaluators/A/Rating", results, published_statistics(results))
    write(tree, "Easy/evaluators/B/Rating", results, {"correct_False": "3 / 3 = 100.0%"})
    assert "1 of 2 statistics.json follow from the recorded winners." in read(tree).notes


# --- the published data --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data() -> Recording:
    return read(published("llmbar"))


def of_palm(recording: Recording) -> pd.DataFrame:
    rows = verdicts_of(recording, "CoT")
    return rows[rows["judge"] == "PaLM2"].merge(recording.items[["item", "truth"]], on="item")


@pytest.mark.slow
def test_published_statistics_are_reproduced(data: Recording) -> None:
    assert "215 of 215 statistics.json follow from the recorded winners." in data.notes


def test_published_kappas_are_wrong_and_the_right_ones_stand_beside() -> None:
    folder = published("llmbar") / "Adversarial/Neighbor/evaluators/GPT-4/Vanilla"
    results = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    statistics = json.loads((folder / "statistics.json").read_text(encoding="utf-8"))
    assert round(statistics["kappa_False"], 3) == 0.195
    assert round(agreement_kappas(results)[0], 3) == 0.547


def test_recorded_winners_of_palm_contradict_its_words(data: Recording) -> None:
    rows = of_palm(data)
    both = rows[(rows["label"] != "") & (rows["read_label"] != "")]
    assert len(rows) == 838
    assert (both["label"] != both["read_label"]).sum() == 146


@each_row("column, accuracy, dependence", [("label", 58.6, 54), ("read_label", 63.8, 32)])
def test_accuracy_and_dependence_of_palm(
    data: Recording, column: str, accuracy: float, dependence: float
) -> None:
    rows = of_palm(data)
    orders = rows.pivot(index="item", columns="flipped", values=column)
    assert round(100 * (rows[column] == rows["truth"]).mean(), 1) == accuracy
    assert round(100 * (orders[False] != orders[True]).mean()) == dependence


@pytest.mark.slow
@each_row(
    "model, difference",
    [
        ("GPT-4", -3.2),
        ("ChatGPT", 0.4),
        ("ChatGPT-0301", -2.9),
        ("LLaMA2", 2.9),
        ("PaLM2", -11.2),
        ("Falcon", -4.4),
    ],
)
def test_thinking_first_changes_accuracy_as_known(
    data: Recording, model: str, difference: float
) -> None:
    """The table of a model's strategies, not a computation of this test."""
    rows = data.verdicts
    kept = rows[(rows["judge"] == model) & rows[STRATEGY].isin(["CoT", "Vanilla"])]
    samples, people = as_samples(replace(data, verdicts=kept.reset_index(drop=True)))
    table = judge_table(tidy(samples), people)
    values = {str(row["knobs"][STRATEGY]): row["truth"] for row in table["rows"]}
    found = values["CoT"]["value"] - values["Vanilla"]["value"]  # type: ignore[index]
    assert round(100 * found, 1) == difference
    assert {row["items"] for row in table["rows"]} == {419}
