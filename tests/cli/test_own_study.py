"""What `judge-gym init --csv` writes of a user's own file."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from conftest import Call, succeed
from judge_gym.studies import read_study

N = 12
TEXTS = [f"The reply number {n} says what to do next." for n in range(N)]


def write(folder: Path, name: str = "cases.csv", **columns: Any) -> str:
    pd.DataFrame({"reply": TEXTS} | columns).to_csv(folder / name, index=False)
    return name


def items(folder: Path, name: str = "cases") -> list[dict[str, Any]]:
    lines = (folder / f"{name}-items.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def rubric(folder: Path, name: str = "cases") -> Any:
    return read_study((folder / f"{name}.yaml").read_text("utf-8"), "").tasks[0].rubric


def plan(call: Call, name: str = "cases.yaml") -> int:
    """The number of verdicts of a plan: judges, methods, items and repeats."""
    calls = succeed(call("plan", name, "--json")).json["stages"]["all"]["calls"]
    assert calls % (3 * 2 * 3) == 0, "three judges, two methods, three repeats"
    return int(calls) // (3 * 2 * 3)


SCALES = {
    "0 and 1": (["0", "1"] * 6, ["score 0", "score 1"], "score 0"),
    "0 to 4": (["0", "1", "4", "3"] * 3, [f"score {n}" for n in range(5)], "score 0"),
    "1.0 to 10.0": (["10.0", "1.0", "2.0"] * 4, [str(n) for n in range(1, 11)], "10"),
    "words": (["pass", "fail"] * 6, ["fail", "pass"], "pass"),
    "true and false": (["True", "False"] * 6, ["False", "True"], "True"),
}


@pytest.mark.parametrize("name", SCALES)
def test_every_scale_becomes_stages_that_plan_takes(call: Call, tmp_path: Path, name: str) -> None:
    labels, stages, first = SCALES[name]
    file = write(tmp_path, rater=labels)
    succeed(call("init", "--csv", file))
    assert rubric(tmp_path) == stages
    assert items(tmp_path)[0] == {"title": "line 2", "text": TEXTS[0], "rater": first}
    assert plan(call) == N


def test_typos_and_missing_words_are_asked_about_and_make_no_stages(
    call: Call, tmp_path: Path
) -> None:
    labels = ["helpful", "HELPFUL", "Helpfull", "n/a", "unhelpful", *["helpful"] * 7]
    file = write(tmp_path, rater=labels)
    refusal = call("init", "--csv", file)
    assert refusal.code == 2
    for option in ("--same HELPFUL=helpful", "--same Helpfull=helpful", "--missing n/a"):
        assert option in refusal.err
    assert not list(tmp_path.glob("cases*.*ml")), "nothing is written"
    succeed(call("init", "--csv", file, "--yes"))
    assert rubric(tmp_path) == ["unhelpful", "helpful"]
    assert [item.get("rater") for item in items(tmp_path)][1:5] == [
        *("helpful", "helpful", None, "unhelpful"),
    ]
    assert plan(call) == N


def test_labels_without_an_order_become_options(call: Call, tmp_path: Path) -> None:
    succeed(call("init", "--csv", write(tmp_path, label=["billing", "refund", "other"] * 4)))
    assert rubric(tmp_path)["kind"] == "nominal"
    assert plan(call) == N


def test_pairs_get_a_rubric_and_run(call: Call, tmp_path: Path) -> None:
    old, new = TEXTS[::-1], TEXTS
    questions = [f"What happens in case {n}, please?" for n in range(N)]
    file = write(tmp_path, old=old, new=new, question=questions, human=["A", "B", "tie"] * 4)
    succeed(call("init", "--csv", file, "--responses", "old,new", "--text", "question"))
    assert [stage["label"] for stage in rubric(tmp_path)["stages"]] == ["first", "second", "tie"]
    assert items(tmp_path)[1]["responses"] == [old[1], new[1]]
    assert [item["human"] for item in items(tmp_path)][:3] == ["first", "second", "tie"]
    succeed(call("run", "cases.yaml", "--json"))
    assert succeed(call("judges", "cases.yaml", "--json")).json["kind"] == "agreement"


def test_known_answers_in_words_are_answers_of_the_study(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path, truth=["good", "bad"] * 6)
    succeed(call("init", "--csv", file))
    succeed(call("run", "cases.yaml", "--json"))
    assert succeed(call("judges", "cases.yaml", "--json")).json["known_items"] == N


def test_a_spreadsheet_of_another_language_is_read(call: Call, tmp_path: Path) -> None:
    frame = pd.DataFrame({"reply": [f"{text} Größe" for text in TEXTS], "rater": [1, 2] * 6})
    frame.to_csv(tmp_path / "Meine Fälle.csv", sep=";", encoding="cp1252", index=False)
    succeed(call("init", "--csv", "Meine Fälle.csv"))
    assert plan(call, "meine-f-lle.yaml") == N
    assert items(tmp_path, "meine-f-lle")[0]["text"].endswith("Größe")


def test_labels_come_from_a_second_file(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path, id=[f"q{n}" for n in range(N)])
    (tmp_path / "labels.csv").write_text("id,rater,label\nq1,ann,good\nq2,ann,bad\nq1,bo,good\n")
    succeed(call("init", "--csv", file, "--labels", "labels.csv"))
    assert {name: items(tmp_path)[1][name] for name in ("ann", "bo")} == {
        "ann": "good",
        "bo": "good",
    }
    assert plan(call) == N


def test_the_same_text_with_two_labels_is_said_and_has_none(call: Call, tmp_path: Path) -> None:
    frame = pd.DataFrame({"reply": [*TEXTS, TEXTS[0]], "rater": ["good", "bad"] * 6 + ["bad"]})
    frame.to_csv(tmp_path / "cases.csv", index=False)
    said = succeed(call("init", "--csv", "cases.csv"))
    assert "rater gives the same text different labels (line 2: good, line 14: bad)" in said.err
    assert len(items(tmp_path)) == N
    assert "rater" not in items(tmp_path)[0]
    assert plan(call) == N


def test_verdicts_of_judges_are_no_labels(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path, gpt=["good", "bad"] * 6, ann=["good", ""] * 6)
    said = succeed(call("init", "--csv", file, "--positive", "good"))
    assert "Verdicts of gpt are no part of the study" in said.err
    assert not any("gpt" in item for item in items(tmp_path))


def test_a_judge_with_labels_of_its_own_does_not_stop_a_study(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path, gpt_score=[3, 9] * 6, rater=["fail", "pass"] * 6)
    said = succeed(call("init", "--csv", file))
    assert "Not used: verdicts of gpt_score, who use other labels." in said.err
    assert rubric(tmp_path) == ["fail", "pass"]
    assert call("check", file).code == 2, "to check the judge, its scores need a threshold"


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        ({}, [], "has no labels to make a rubric of"),
        ({"rater": ["good"] * N}, [], "only the label 'good'"),
        ({"reply": ["x", "y"] * 6, "rater": ["a", "b"] * 6}, [], "--text"),
        ({"reply": ["", *TEXTS[1:]], "rater": ["a", "b"] * 6}, [], "the text is empty in line 2"),
        ({"rater": ["good", "bad"] * 6}, ["--human", "bo", "--item", "no"], "has 2 problems"),
        ({"rater": ["good", "bad"] * 6}, ["--same", "good"], "is not VALUE=LABEL"),
        ({"rater": ["good", "bad"] * 6}, ["--responses", "reply"], "a pair has two"),
        ({"rater": ["good", "bad"] * 6}, ["--score", "rater"], "is no comparison"),
    ],
)
def test_what_cannot_be_a_study_says_what_to_add(
    call: Call, tmp_path: Path, columns: Any, arguments: list[str], message: str
) -> None:
    refusal = call("init", "--csv", write(tmp_path, **columns), *arguments)
    assert refusal.code == 2
    assert message in refusal.err
    assert not list(tmp_path.glob("cases*.*ml"))


def test_two_words_of_unknown_order_become_options(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path, human=["gut", "schlecht"] * 6)
    succeed(call("init", "--csv", file))
    assert rubric(tmp_path)["kind"] == "nominal", "none is the higher one"
    (tmp_path / "cases.yaml").unlink()
    (tmp_path / "cases-items.jsonl").unlink()
    succeed(call("init", "--csv", file, "--positive", "gut"))
    assert rubric(tmp_path) == ["schlecht", "gut"]


def test_columns_named_like_parts_of_an_item_are_its_parts(call: Call, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "Input": [f"What is {n} and {n} in words?" for n in range(N)],
            "Output": [str(2 * n) for n in range(N)],
            "Reference": ["Two of them make four, for example."] * N,
            "human": ["pass", "fail"] * 6,
        }
    )
    frame.to_csv(tmp_path / "cases.csv", index=False)
    succeed(call("init", "--csv", "cases.csv"))
    parts = {name.lower(): frame[name][3] for name in ("Input", "Output", "Reference")}
    assert items(tmp_path)[3] == {"title": "line 5", **parts, "human": "fail"}
    assert plan(call) == N
    (tmp_path / "cases.yaml").unlink()
    (tmp_path / "cases-items.jsonl").unlink()
    succeed(call("init", "--csv", "cases.csv", "--text", "Output"))
    assert items(tmp_path)[3].keys() == {"title", "text", "human"}, "one column alone is judged"
    assert items(tmp_path)[3]["text"] == "6"


@pytest.mark.parametrize("name", ["messages", "conversation"])
def test_transcripts_stay_messages(call: Call, tmp_path: Path, name: str) -> None:
    def transcript(number: int) -> list[dict[str, str]]:
        texts = {"user": f"Where is parcel {number}?", "assistant": TEXTS[number]}
        return [{"role": role, "content": text} for role, text in texts.items()]

    rows = [
        {"trace": f"t{n}", name: transcript(n), "human": "pass fail".split()[n % 2]}
        for n in range(N)
    ]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    succeed(call("init", "--csv", "log.jsonl"))
    assert items(tmp_path, "log")[2] == {"title": "t2", "messages": transcript(2), "human": "pass"}
    assert plan(call, "log.yaml") == N


def test_equal_outputs_of_different_inputs_are_items_of_their_own(
    call: Call, tmp_path: Path
) -> None:
    inputs = [f"Is {n} an even number, please?" for n in range(N)]
    frame = pd.DataFrame({"input": inputs, "output": ["Yes, it is even."] * N, "human": [1, 2] * 6})
    frame.to_csv(tmp_path / "cases.csv", index=False)
    succeed(call("init", "--csv", "cases.csv"))
    assert len(items(tmp_path)) == N
