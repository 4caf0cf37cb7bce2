"""JudgeBench's outputs of judges: on invented lines, and on the published ones where they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.pairs import score_pairs
from judge_gym.analysis.judges.setups import setups_of
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.verdicts import of_setups
from judge_gym.errors import DesignError
from judge_gym.recorded import Recording, as_samples
from judge_gym.recorded.importers import find_importer, judgebench
from judge_gym.recorded.readings import disagreements
from published_data import published
from tables import each_row


def judgment(decision: str | None, text: str | None = None, model: str = "m-1") -> Any:
    prompt = "" if text is None else "Which is better?"
    details = {"judge_model": model, "prompt": prompt, "response": text or ""}
    return {"judgment": details, "decision": decision}


def line(pair: str, *judgments: Any, **fields: Any) -> dict[str, Any]:
    return {
        "pair_id": pair,
        "source": "livebench-math",
        "question": f"What is {pair}?",
        "response_A": "1",
        "response_B": "",
        "label": "A>B",
        "judge_name": "arena_hard",
        "judgments": [*judgments],
        **{"response_B": "2", **fields},
    }


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def read(path: Path) -> Recording:
    [recording] = judgebench.read(path)
    return recording


def test_decisions_name_responses_in_both_orders(tmp_path: Path) -> None:
    file = write(
        tmp_path / "judged.jsonl",
        line("p", judgment("A>B", "So [[A>B]]"), judgment("B>A", "So [[B>>A]]")),
        line("q", judgment("A=B", "[[A=B]]"), judgment("A>B", "[[B>A]]")),
        line("r", None, judgment(None, "no verdict")),
    )
    recording = read(file)
    rows = recording.verdicts
    assert list(rows["flipped"]) == [False, True] * 3
    assert list(rows["label"]) == ["first", "first", "tie", "second", "", ""]
    assert list(rows["status"])[4:] == ["provider_error", "parse_failed"]
    assert list(rows["read_label"]) == ["first", "first", "tie", "first", "", ""]
    assert list(rows["read_status"])[4:] == ["", "parse_failed"]
    assert set(rows["judge"]) == {"m-1"}
    assert set(rows["foreign.prompt"]) == {"arena_hard"}
    assert json.loads(rows["prompt"][0]) == [{"role": "user", "content": "Which is better?"}]
    assert list(recording.items["truth"]) == ["first"] * 3
    assert list(disagreements(recording)["item"]) == ["q"]
    assert "opposite of the recorded verdict: 1;" in recording.notes[0]


def test_a_folder_has_several_judges_of_the_same_pairs(tmp_path: Path) -> None:
    for model, decision in (("m-1", "A>B"), ("m-2", "B>A")):
        entries = [judgment(decision, None, model)] * 2
        write(tmp_path / f"{model}.jsonl", *(line(f"p{n}", *entries) for n in range(3)))
    pairs = line("p0")
    del pairs["judgments"]
    write(tmp_path / "pairs.jsonl", pairs)
    recording = read(tmp_path)
    assert len(recording.items) == 3
    assert set(recording.verdicts["judge"]) == {"m-1", "m-2"}
    assert (recording.verdicts["read_status"] == "").all()
    samples, people = as_samples(recording)
    table = judge_table(tidy(samples), people)
    assert {row["position_bias"]["value"] for row in table["rows"] if row["position_bias"]} == {
        1,
        -1,
    }


def test_the_format_is_found_by_its_lines(tmp_path: Path) -> None:
    file = write(tmp_path / "judged.jsonl", line("p", judgment("A>B")))
    assert find_importer("auto", file)[0] == "judgebench"
    assert find_importer("auto", tmp_path)[0] == "judgebench"
    pairs = line("p")
    del pairs["judgments"]
    assert not judgebench.detect(write(tmp_path / "pairs.jsonl", pairs))


@each_row(
    "lines, message",
    [
        ([line("p", judgment("A<C"))], r"1: unknown decision"),
        ([line("p", judgment("A>B")), line("p", judgment("A>B"))], "is on line 1 already"),
        ([line("p")], "a list of one or two"),
        ([line("p", judgment("A>B"), label="A=B")], "unknown label"),
        ([line("p", judgment("A>B"), question=7)], "'question' is a text"),
        ([line("p", judgment("A>B")), line("q", judgment("A>B", None, "m-2"))], "was 'm-1' above"),
        (["text"], "a line is an object"),
        ([], "has no pairs"),
    ],
)
def test_broken_lines_are_refused_with_their_place(
    tmp_path: Path, lines: list[Any], message: str
) -> None:
    with pytest.raises(DesignError, match=message):
        judgebench.read(write(tmp_path / "judged.jsonl", *lines))


def test_a_judge_twice_on_a_pair_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", line("p", judgment("A>B")))
    with pytest.raises(DesignError, match="m-1 judged 'p' in two files"):
        judgebench.read(tmp_path)


def test_published_judge_by_its_own_rule_and_by_ours() -> None:
    """By the benchmark's sum rule o1-mini is right on 65.71 % of 350 pairs."""
    recording = read(published("judgebench"))
    samples, _ = as_samples(recording)
    frame = tidy(samples)
    score = score_pairs(of_setups(frame, setups_of(frame)))
    assert (score.n, round(100 * score.accuracy, 2)) == (350, 65.71)
    assert disagreements(recording).empty
