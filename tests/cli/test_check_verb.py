"""The command check: from a file to the answer, without a lab, a study or a network."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from conftest import Call, succeed
from judge_gym.recorded import read_file
from judge_gym.recorded.check import check

ITEMS = 80
KEYS = [
    *("sentence", "roles", "scale", "judges", "people", "rate", "length", "systems"),
    *("disagreements", "missing"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Replies that two judges passed or failed, and two people, partly."""
    rng = np.random.default_rng(1)
    good = rng.random(ITEMS) < 0.6

    def words(right: float) -> np.ndarray:
        return np.where((rng.random(ITEMS) < right) == good, "pass", "fail")

    frame = pd.DataFrame(
        {
            "id": [f"case {number}" for number in range(ITEMS)],
            "reply": ["a reply of some words " * int(n) + str(n) for n in rng.permutation(ITEMS)],
            "gpt": words(0.85),
            "haiku": words(0.8),
            "human_1": np.where(rng.random(ITEMS) < 0.8, words(0.95), ""),
            "human_2": np.where(rng.random(ITEMS) < 0.4, words(0.95), ""),
        }
    )
    path = tmp_path / "cases.csv"
    frame.to_csv(path, index=False)
    return path


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_answer_stands_first_and_the_roles_are_printed(call: Call, file: Path) -> None:
    text = succeed(call("check", file)).out
    done = check(file)
    assert one_line(text).startswith(one_line(" ".join(done.sentences[:-1])))
    assert f"{done.result['disagreements']} disagreements of" in one_line(text)
    assert ": --open" in text
    assert text.index("standing") < text.index("What the file does not support:")
    for column in ("gpt", "haiku", "human_1", "human_2"):
        assert f"  {column} " in text[text.index("was read as") :]


def test_the_document_has_the_keys_of_the_contract(call: Call, file: Path) -> None:
    result = call("check", file, "--json").json
    assert [*result] == KEYS
    assert result == json.loads(json.dumps(check(file).result))
    assert [*result["rate"]] == ["judge", "raw", "corrected", "method", "rogan_gladen", "labels"]
    assert {*result["judges"][0]} == {"judge", "measures", "consistency", "usd_per_1000"}


def test_nothing_is_written_unless_a_page_is_asked_for(
    call: Call, file: Path, tmp_path: Path
) -> None:
    for words in (["check", file], ["judges", file], ["report", file], ["check", file, "--json"]):
        succeed(call(*words))
    assert [path.name for path in tmp_path.iterdir()] == ["cases.csv"]
    assert "wrote page.html" in succeed(call("check", file, "--out", "page.html")).out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.csv", "page.html"]
    assert "Where do verdicts and labels differ?" in (tmp_path / "page.html").read_text()


def test_the_page_opens_in_the_browser(
    call: Call, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    succeed(call("check", file, "--out", "page.html", "--open"))
    assert opened == [f"{(file.parent / 'page.html').as_uri()}#where-do-verdicts-and-labels-differ"]
    assert 'id="where-do-verdicts-and-labels-differ"' in Path("page.html").read_text()


def test_judges_and_report_read_the_same_file_with_the_same_options(call: Call, file: Path) -> None:
    options = ["--judge", "gpt", "--judge", "haiku", "--human", "human_1"]
    checked = call("check", file, *options, "--json").json
    table = call("judges", file, *options, "--json").json
    report = call("report", file, *options, "--json").json
    from_report = call("report", "--from", file, *options, "--json").json
    best = checked["judges"][0]
    row = next(row for row in table["rows"] if row["setup"] == best["judge"])
    for name, quantity in best["measures"].items():
        assert row["measures"][name]["value"] == quantity["value"]
    assert table["sentence"] == report["sentence"]
    assert from_report == report


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "nothing.csv"], "there is no file nothing.csv"),
        (["check", "cases.csv", "--measure", "f1"], "unknown measure 'f1'; choose 'exact'"),
        (["check", "cases.csv", "--out", "page.pdf"], "unknown kind of page '.pdf'"),
        (["check", "cases.csv", "--out", "no/page.html"], "there is no folder no"),
        (["check", "cases.csv", "--human", "carol"], "carol"),
        (["check", "cases.csv", "--same", "pass"], "--same 'pass' is not VALUE=LABEL"),
        (["judges", "a-study", "--human", "ann"], "are for files of verdicts"),
        (["judges", "cases.csv", "a-study"], "is a file of verdicts, which is shown alone"),
    ],
)
def test_bad_input_is_refused_with_the_choices(
    call: Call, file: Path, words: list[str], message: str
) -> None:
    done = call(*words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_what_is_uncertain_is_refused_unless_it_is_accepted(call: Call, tmp_path: Path) -> None:
    rows = [
        f"{n},{'low mid high'.split()[n % 3]},{'mid high low'.split()[n % 3]}" for n in range(30)
    ]
    (tmp_path / "levels.csv").write_text("\n".join(["id,gpt,human", *rows]))
    refused = call("check", "levels.csv", "--json")
    assert refused.code == 2
    assert "--order low,mid,high" in json.loads(refused.out or refused.err)["error"]["message"]
    accepted = call("check", "levels.csv", "--yes", "--json").json
    assert accepted["scale"]["kind"] == "ordinal"
    named = call("check", "levels.csv", "--order", "high,mid,low", "--json").json
    assert named["scale"]["labels"] == ["high", "mid", "low"]


def test_labels_of_a_second_file_are_joined(call: Call, file: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(file, dtype=str, keep_default_na=False)
    people = ["human_1", "human_2"]
    frame.drop(columns=people).to_csv(tmp_path / "verdicts.csv", index=False)
    frame[["id", *people]].to_csv(tmp_path / "labels.csv", index=False)
    judges = ["--judge", "gpt", "--judge", "haiku"]
    apart = call("check", "verdicts.csv", "--labels", "labels.csv", *judges, "--json").json
    whole = call("check", file, *judges, "--json").json
    assert apart["judges"] == whole["judges"]
    assert apart["rate"] == whole["rate"]


def test_the_example_of_verdicts_is_checked_without_options(call: Call) -> None:
    said = succeed(call("init", "--example", "verdicts")).out
    assert "next: judge-gym check verdicts.csv" in said
    text = one_line(succeed(call("check", "verdicts.csv")).out)
    assert text.startswith("All judges were simulated")
    assert "hasty is worse than careful in balanced accuracy by" in text


@pytest.mark.parametrize("name", ["README.md", "docs/check.md"])
def test_the_docs_show_what_the_example_prints(call: Call, name: str) -> None:
    page = (Path(__file__).parents[2] / name).read_text(encoding="utf-8")
    [shown] = re.findall(r"^```text\n(.*?)^```", page, flags=re.S | re.M)
    succeed(call("init", "--example", "verdicts"))
    said = succeed(call("check", "verdicts.csv")).out
    assert one_line(said).startswith(one_line(shown))


def test_the_docs_page_names_every_option(call: Call) -> None:
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
    options = {*re.findall(r"--[a-z]+", call("check", "--help").out)} - {"--help"}
    assert len(options) > 20
    assert {name for name in options if name not in page} == set()


ROWS = {"nr": [f"q{n}" for n in range(60)], "body": [f"Reply {n} of many" for n in range(60)]}
VERDICTS = ["pass" if n % 3 else "fail" for n in range(60)]
LABELS = ["fail" if n % 7 == 0 else verdict for n, verdict in enumerate(VERDICTS)]
UNCERTAIN: dict[str, dict[str, list[Any]]] = {
    "who is a person": {"gpt": VERDICTS, "R1": LABELS, "R2": LABELS},
    "nobody is named": {"eins": VERDICTS, "zwei": LABELS},
    "spellings": {"gpt": [word.upper() for word in VERDICTS], "human": LABELS},
    "words and numbers": {"auto": [int(v == "pass") for v in VERDICTS], "human": LABELS},
    "an abstention": {"gpt": ["unsure", *VERDICTS[1:]], "human": LABELS},
    "a missing word": {"gpt": VERDICTS, "human": ["n/a", *LABELS[1:]]},
    "an order": {"gpt": ["bad", "ok", "good"] * 20, "human": ["ok", "ok", "good"] * 20},
    "repeats": {"m1": VERDICTS, "m2": VERDICTS[::-1], "human": LABELS},
}


@pytest.mark.parametrize("name", UNCERTAIN)
def test_the_options_of_questions_give_what_was_proposed(
    call: Call, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "cases.csv"
    pd.DataFrame(ROWS | UNCERTAIN[name]).to_csv(file, index=False)
    refusal = call("check", str(file))
    questions = read_file(file).questions
    assert refusal.code == 2
    assert all(question.option in refusal.err for question in questions)
    options = [word for question in questions for word in shlex.split(question.option)]
    answered = succeed(call("check", str(file), *options, "--json")).json
    assert answered == succeed(call("check", str(file), "--yes", "--json")).json


FIXTURES = Path(__file__).parents[1] / "recorded" / "fixtures"


def test_the_log_of_a_tool_is_checked_by_its_format(call: Call, tmp_path: Path) -> None:
    shown = succeed(call("check", FIXTURES / "mlflow.json")).out
    assert shown.startswith("scripted/grader finds 75 % [19, 99] of “true”")
    assert "A log of mlflow about 'correct'" in shown
    assert "--human" not in shown, "a log has no columns to name"
    items = check(FIXTURES / "inspect.eval").reading.recording.items
    labels = pd.DataFrame({"item": items["item"], "ann": ["C", "I"] * (len(items) // 2)})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    found = succeed(
        call("check", FIXTURES / "inspect.eval", "--labels", tmp_path / "labels.csv", "--json")
    ).json
    assert found["judges"][0]["measures"]["exact"]["n"] == len(items)


def test_a_log_about_several_questions_names_the_command_for_them(call: Call) -> None:
    refused = call("check", FIXTURES / "langfuse.json")
    assert refused.code == 2
    assert "2 questions: 'correctness', 'quality'" in one_line(refused.err)
    assert "judge-gym import langfuse" in one_line(refused.err)


def test_a_file_of_labels_alone_says_where_the_verdicts_may_be(call: Call, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": range(20),
            "text": [f"some text {n}" for n in range(20)],
            "human": ["yes", "no"] * 10,
        }
    )
    frame.to_csv(tmp_path / "labels.csv", index=False)
    refused = call("check", tmp_path / "labels.csv")
    assert refused.code == 2
    assert "--labels labels.csv" in one_line(refused.err)
    assert "init --csv labels.csv" in one_line(refused.err)


def test_a_mean_is_written_as_the_labels_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    people = rng.integers(1, 6, 100)
    judge = np.clip(people + rng.integers(-1, 2, 100), 1, 5)
    frame = pd.DataFrame({"id": [f"c{n}" for n in range(100)], "gpt": judge, "human": people})
    found = check(frame)
    assert found.result["rate"] is not None
    assert found.result["rate"]["raw"]["value"] == pytest.approx(judge.mean())
    assert found.result["rate"]["labels"]["value"] == pytest.approx(people.mean())
    assert f"Mean (from 1 to 5): judge {judge.mean():.2f}, corrected" in found.result["sentence"]
    words = np.array(["poor", "fair", "good", "great"])
    frame = pd.DataFrame({"id": frame["id"], "gpt": words[judge % 4], "human": words[people % 4]})
    assert "Mean stage (0 the lowest" in check(frame, order=list(words)).result["sentence"]


def test_a_comparison_of_words_or_of_half_the_numbers_is_refused(
    call: Call, tmp_path: Path
) -> None:
    frame = pd.DataFrame(
        {
            "id": range(40),
            "gpt": [1, 2, 4, 5] * 10,
            "human": [1, 2, 5, 4] * 10,
            "v": ["a", "b"] * 20,
        }
    )
    frame.to_csv(tmp_path / "scores.csv", index=False)
    half = call("check", "scores.csv", "--score", "human>=3")
    assert (half.code, "--score 'human>=3,gpt>=NUMBER'" in one_line(half.err)) == (2, True)
    succeed(call("check", "scores.csv", "--score", "human>=3,gpt>=3"))
    words = frame.assign(gpt=["yes", "no"] * 20, human=["yes", "no", "no", "yes"] * 10)
    words.to_csv(tmp_path / "words.csv", index=False)
    refused = call("check", "words.csv", "--score", "gpt>=3")
    assert "--score compares numbers, and gpt has yes, no" in one_line(refused.err)


IMPORTED = ("import", "file", "scores.csv", "--study", "scores")


def test_import_takes_the_options_of_a_file(call: Call) -> None:
    frame = pd.DataFrame({"id": range(40), "gpt": [1, 4, 8, 9] * 10, "human": ["no", "yes"] * 20})
    frame.to_csv("scores.csv", index=False)
    refused = call(*IMPORTED)
    assert (refused.code, "--score" in refused.err) == (2, True)
    stored = succeed(call(*IMPORTED, "--score", "gpt>=5", "--json")).json
    assert (stored["verdicts"], stored["labels"], stored["raters"]) == (40, 40, ["human"])
    assert succeed(call("judges", "scores", "--json")).json["rows"][0]["truth"]["value"] == 0.5
    again = succeed(call(*IMPORTED, "--score", "gpt>=5", "--json")).json
    assert set(again["new"].values()) == {0}
    other = call("import", "mlflow", FIXTURES / "mlflow.json", "--study", "x", "--human", "ann")
    assert (other.code, "are for tables" in one_line(other.err)) == (2, True)


def test_labels_of_another_scale_on_the_same_texts_do_not_count(call: Call) -> None:
    texts = [f"the reply number {n} of some words" for n in range(40)]
    kinds = ["a bill", "a parcel", "a return", "a parcel"] * 10
    pd.DataFrame(
        {"id": range(40), "text": texts, "gpt": [1, 2, 3, 4, 5] * 8, "rater": [1, 2, 3, 4, 5] * 8}
    ).to_csv("scores.csv", index=False)
    pd.DataFrame({"id": range(40), "text": texts, "gpt": kinds, "human": kinds}).to_csv(
        "kinds.csv", index=False
    )
    succeed(call(*IMPORTED))
    succeed(call("import", "file", "kinds.csv", "--study", "kinds"))
    [row] = succeed(call("judges", "kinds", "--json")).json["rows"]
    assert row["truth"]["value"] == 1, "a 2 of the rater is no second kind"
