from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.errors import DesignError
from judge_gym.recorded import FileOptions, FileReading, as_samples, read_file
from judge_gym.recorded.importers import find_importer
from judge_gym.recorded.recording import item_parts

N = 40
IDS = [f"q{n}" for n in range(N)]
TEXTS = [f"The reply number {n} says what to do." for n in range(N)]
VERDICTS = ["pass" if n % 3 else "fail" for n in range(N)]
LABELS = [("pass" if n % 2 else "fail") if n < 24 else "" for n in range(N)]
WIDE = {"id": IDS, "reply": TEXTS, "gpt": VERDICTS, "ann": LABELS}


def read(columns: Mapping[str, Any], **options: Any) -> FileReading:
    return read_file(pd.DataFrame(columns), FileOptions(**options))


def verdicts(reading: FileReading) -> list[tuple[Any, ...]]:
    columns = ["judge", "item", "repeat", "status", "label"]
    frame = reading.recording.verdicts.sort_values(columns)
    return list(frame[columns].itertuples(index=False, name=None))


def labels(reading: FileReading) -> set[tuple[Any, ...]]:
    rows = reading.recording.labels[["item", "rater", "label"]]
    return set(rows.itertuples(index=False, name=None))


def test_a_wide_file_becomes_verdicts_and_labels() -> None:
    reading = read(WIDE)
    recording = reading.recording
    assert reading.questions == ()
    assert recording.scale == ("binary", ("fail", "pass"), "pass")
    assert verdicts(reading) == sorted(
        ("gpt", item, 0, "scored", verdict) for item, verdict in zip(IDS, VERDICTS, strict=True)
    )
    assert labels(reading) == {(IDS[n], "ann", LABELS[n]) for n in range(24)}
    assert list(recording.items["text"]) == TEXTS
    assert list(recording.items["length"]) == [float(len(text)) for text in TEXTS]


def test_wide_and_long_files_say_the_same() -> None:
    wide = read({**WIDE, "haiku": VERDICTS[::-1]})
    frame = pd.DataFrame({**WIDE, "haiku": VERDICTS[::-1]})
    long = frame.melt(["id", "reply", "ann"], ["gpt", "haiku"], "judge", "verdict")
    reading = read_file(long.sample(frac=1, random_state=0))
    assert verdicts(reading) == verdicts(wide)
    assert labels(reading) == labels(wide)


def test_what_was_read_is_analysed_like_own_runs() -> None:
    samples, people = as_samples(read(WIDE).recording)
    row = judge_table(tidy(samples), people, positive="pass")["rows"][0]
    both = [(v, label) for v, label in zip(VERDICTS, LABELS, strict=True) if label]
    passed = [v == "pass" for v, label in both if label == "pass"]
    assert row["measures"]["sensitivity"]["value"] == pytest.approx(sum(passed) / len(passed))


def test_repeats_stand_in_columns_or_rows() -> None:
    columns = read({"id": IDS, "gpt_1": VERDICTS, "gpt_2": VERDICTS[::-1], "ann": LABELS})
    rows = {
        "id": IDS * 2,
        "judge": ["gpt"] * 2 * N,
        "run": [1] * N + [2] * N,
        "verdict": VERDICTS + VERDICTS[::-1],
        "ann": LABELS * 2,
    }
    numbered = read(rows)
    assert verdicts(columns) == verdicts(numbered)
    assert {row[2] for row in verdicts(numbered)} == {0, 1}
    del rows["run"]
    unnumbered = read(rows)
    assert verdicts(unnumbered) == verdicts(columns)
    assert "repeats in the order of the file" in unnumbered.questions[0].text


def test_scores_become_labels_by_a_comparison() -> None:
    scores = [1 + n % 10 for n in range(N)]
    columns = {**WIDE, "gpt": scores}
    with pytest.raises(DesignError, match=r"mix numbers .* and words .*--score"):
        read(columns)
    reading = read(columns, score="gpt>=7")
    assert [label for *_, label in verdicts(reading)].count("pass") == sum(s >= 7 for s in scores)
    assert reading.recording.scale.positive == "pass"


def test_scores_of_a_long_file_become_labels_of_their_own() -> None:
    scores = [n / N for n in range(N)]
    columns = {"id": IDS, "judge": ["gpt"] * N, "score": scores}
    reading = read(columns, score="score>=0.5")
    assert set(reading.recording.verdicts["label"]) == {">=0.5", "not >=0.5"}
    assert reading.recording.scale.positive == ">=0.5"


def test_a_comparison_is_of_a_known_column_and_says_what_its_labels_mean() -> None:
    scores = [1 + n % 10 for n in range(N)]
    with pytest.raises(DesignError, match="unknown column 'gtp' for --score"):
        read({**WIDE, "gpt": scores}, score="gtp>=7")
    reading = read({**WIDE, "gpt": scores}, score="gpt>=7", positive="fail")
    passed = [label for *_, label in verdicts(reading)].count("pass")
    assert passed == sum(score >= 7 for score in scores), "a high score passes, whatever is counted"
    assert "Where gpt >= 7, the label is pass; else it is fail." in reading.recording.notes
    words = [{"pass": "gut", "fail": "schlecht"}.get(label, "") for label in LABELS]
    with pytest.raises(DesignError, match="say which of them is positive"):
        read({**WIDE, "gpt": scores, "ann": words}, score="gpt>=7", people=("ann",))
    both = read({"id": IDS, "gpt": scores, "human": scores[::-1]}, score="gpt>=7,human>=5")
    assert both.recording.scale.labels == ("negative", "positive")


@pytest.mark.parametrize("form", ["wide", "long", "by text"])
def test_labels_in_a_second_file_are_joined_by_item(tmp_path: Path, form: str) -> None:
    frame = pd.DataFrame(WIDE)
    second = {
        "wide": frame[["id", "ann"]].rename(columns={"id": "case"}),
        "long": pd.DataFrame({"case": IDS, "rater": "ann", "stage": LABELS}),
        "by text": frame[["reply", "ann"]],
    }[form]
    file = tmp_path / "labels.csv"
    second[second.iloc[:, -1] != ""].to_csv(file, index=False)
    reading = read({name: WIDE[name] for name in ("id", "reply", "gpt")}, labels=file)
    assert labels(reading) == labels(read(WIDE))


def test_labels_of_unknown_items_are_counted_and_those_of_no_item_refused(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("id,ann\nq1,pass\nq2,fail\nq99,pass\nq1,pass\n")
    reading = read({"id": IDS, "gpt": VERDICTS}, labels=file)
    assert len(labels(reading)) == 2
    assert "labels of 1 item without a verdict: q99" in " ".join(reading.recording.notes)
    file.write_text("id,ann\nz1,pass\nz2,fail\n")
    with pytest.raises(DesignError, match=r"labels\.csv: no column has the items"):
        read({"id": IDS, "gpt": VERDICTS}, labels=file)


def test_contradicting_labels_and_verdicts_are_shown_and_not_used() -> None:
    columns = {
        "id": ["q1", *IDS],
        "judge": ["gpt"] * (N + 1),
        "verdict": ["fail", *VERDICTS],
        "ann": ["fail", *LABELS],
    }
    reading = read(columns)
    assert [line.split(":")[0] for line in reading.conflicts] == ["q1", "q1"]
    assert "gpt says fail and pass; neither is used" in " ".join(reading.conflicts)
    assert "q1" not in {item for _, item, *_ in verdicts(reading)}
    assert "q1" not in {item for item, *_ in labels(reading)}


def test_the_same_text_with_two_labels_is_shown() -> None:
    reading = read({**WIDE, "reply": [TEXTS[1], *TEXTS[1:]]})
    assert "ann gives the same text different labels (q0: fail, q1: pass)" in reading.conflicts[0]


def test_an_id_that_names_two_texts_is_refused() -> None:
    with pytest.raises(DesignError, match=r"different values of reply: q1 \(row 1 and row 2\)"):
        read({**WIDE, "id": ["q1", *IDS[1:]]})


def test_a_known_answer_in_words_is_mapped_or_refused() -> None:
    truths = ["Pass" if n % 2 else "fail" for n in range(N)]
    reading = read({**WIDE, "truth": truths})
    assert list(reading.recording.items["truth"]) == [word.lower() for word in truths]
    assert "'Pass' (20 times)" in reading.questions[0].text
    wrong = [*truths[:-1], "Bogus"]
    with pytest.raises(DesignError, match=r"row 40 \(q39\): the known answer 'Bogus'"):
        read({**WIDE, "truth": wrong})
    mapped = read({**WIDE, "truth": wrong}, same={"Bogus": "fail", "Pass": "pass"})
    assert mapped.recording.items["truth"].iloc[-1] == "fail"
    assert mapped.questions == ()


def test_all_problems_are_in_one_message(tmp_path: Path) -> None:
    file = tmp_path / "cases.csv"
    columns = {**WIDE, "id": ["", *IDS[1:]], "cost": ["free", *["0.1"] * (N - 1)]}
    pd.DataFrame(columns).to_csv(file, index=False)
    with pytest.raises(DesignError) as refusal:
        read_file(file, FileOptions(usd="cost", truth="thruth", people=("bob",)))
    message = refusal.value.message
    assert message.startswith("cases.csv has 4 problems:")
    for part in ("line 2: id is empty", "line 2: cost 'free'", "'thruth'", "'bob'"):
        assert part in message


def test_a_judge_without_a_verdict_is_unreadable_and_words_for_it_are_statuses() -> None:
    reading = read({**WIDE, "gpt": ["refused", "", *VERDICTS[2:]]})
    statuses = {item: status for _, item, _, status, _ in verdicts(reading)}
    assert (statuses["q0"], statuses["q1"]) == ("refused", "parse_failed")
    assert "Empty verdicts of gpt, which count as unreadable: 1." in " ".join(
        reading.recording.notes
    )


def test_a_word_that_people_use_is_a_label_and_no_status() -> None:
    words = ["refused" if verdict == "pass" else "answered" for verdict in VERDICTS]
    reading = read({"id": IDS, "gpt": words, "human": words[::-1]})
    assert {status for *_, status, _ in verdicts(reading)} == {"scored"}
    assert set(reading.recording.scale.labels) == {"refused", "answered"}
    alone = read({"id": IDS, "gpt": words, "human": ["answered"] * N})
    assert "'refused' (26 rows) is no verdict" in " ".join(q.text for q in alone.questions)


def test_a_judge_that_abstains_in_its_words_is_asked_about() -> None:
    unsure = ["unsure", *VERDICTS[1:]]
    reading = read({**WIDE, "gpt": unsure})
    assert (verdicts(reading)[0][1:4], reading.recording.scale.kind) == (
        ("q0", 0, "abstained"),
        "binary",
    )
    assert [question.option for question in reading.questions] == ["--same unsure=abstained"]
    label = read({**WIDE, "gpt": unsure}, same={"unsure": "unsure"})
    assert (label.recording.scale.kind, label.questions) == ("nominal", ())
    peoples = read({**WIDE, "gpt": unsure, "ann": ["unsure", *LABELS[1:]]})
    assert "unsure" in peoples.recording.scale.labels, "people use it as a label"


def test_verdicts_that_are_missing_are_refused_with_what_may_be_some() -> None:
    reading = read({"id": IDS, "reply": TEXTS, "human": LABELS, "score": [n / 7 for n in range(N)]})
    with pytest.raises(DesignError, match=r"no verdicts of a judge.*\n- score holds 40"):
        reading.refuse_without_verdicts()


def test_a_second_file_with_a_row_for_each_person_needs_no_telling_names(tmp_path: Path) -> None:
    rows = [
        (item, who, verdict)
        for item, verdict in zip(IDS, VERDICTS, strict=True)
        for who in ("mo", "jo")
    ]
    file = tmp_path / "labels.csv"
    pd.DataFrame(rows, columns=["case", "name_", "said"]).to_csv(file, index=False)
    reading = read({"id": IDS, "reply": TEXTS, "gpt": VERDICTS}, labels=file)
    assert labels(reading) == {(item, who, verdict) for item, who, verdict in rows}
    assert reading.questions == ()
    shared = next(role for role in reading.roles if role.column == "case")
    assert shared.reason == "shared, in labels.csv"


def test_systems_make_items_of_their_own_that_share_a_cluster() -> None:
    frame = pd.DataFrame(WIDE)
    both = pd.concat(
        [frame.assign(version="v1"), frame.assign(version="v2", reply=frame["reply"] + " Yes.")]
    )
    recording = read_file(both).recording
    assert len(recording.items) == 2 * N
    assert list(recording.items["system"].unique()) == ["v1", "v2"]
    assert recording.items["cluster"].nunique() == N
    assert len(recording.labels) == 2 * 24


def test_settings_are_knobs_of_the_verdicts() -> None:
    frame = pd.DataFrame(WIDE)
    both = pd.concat([frame.assign(prompt="short"), frame.assign(prompt="long")])
    recording = read_file(both).recording
    assert set(recording.verdicts["foreign.prompt"]) == {"short", "long"}
    assert (len(recording.items), len(recording.labels)) == (N, 24)


def test_pairs_have_two_responses() -> None:
    winners = [["A", "B", "tie"][n % 3] for n in range(N)]
    columns = {"question": TEXTS, "response_a": TEXTS[::-1], "response_b": TEXTS, "gpt": winners}
    recording = read(columns).recording
    assert recording.paired
    assert recording.scale == ("nominal", ("A", "B", "tie"), None)
    assert list(recording.items["response_a"]) == TEXTS[::-1]


def test_questions_are_refused_at_once_unless_they_are_accepted() -> None:
    columns = {**WIDE, "ann": ["n/a" if n == 5 else label for n, label in enumerate(LABELS)]}
    reading = read(columns)
    with pytest.raises(DesignError, match=r"--yes accepts it(.|\n)*--missing n/a"):
        reading.refuse_open_questions()
    assert read(columns, accept=True).questions == ()
    read(columns, missing=("n/a",)).refuse_open_questions()


def test_roles_and_values_are_said_in_the_words_of_the_file() -> None:
    reading = read({**WIDE, "ann": ["PASS" if n == 1 else v for n, v in enumerate(LABELS)]})
    lines = reading.roles_text().splitlines()
    assert lines[0] == "the table was read as:"
    assert any(line.startswith("  gpt ") and "a judge's verdicts" in line for line in lines)
    assert "PASS = pass (1 label)" in reading.roles_text()


def test_a_file_of_texts_alone_has_no_verdicts() -> None:
    reading = read({"id": IDS, "reply": TEXTS})
    with pytest.raises(DesignError, match=r"no verdicts of a judge; .*--judge"):
        reading.refuse_without_verdicts()


EXPORT = {
    "judge.model": ["gpt", "gpt", "haiku"],
    "evidence": ["1", "2", "1"],
    "replicate": ["0", "0", "0"],
    "status": ["scored", "refused", "scored"],
    "stages": ["2", "", "1 2"],
    "n_stages": ["2", "2", "2"],
    "stage_names": ["fail | pass"] * 3,
    "verdict.method": ["single", "single", "subset"],
    "truth": ["2", "1", "2"],
    "text": ["one", "two", "one"],
    "label.ann": ["pass", "", "pass"],
    "label.bob": ["fail", "pass", "fail"],
}


def test_an_export_is_read_with_its_knobs_and_labels(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    pd.DataFrame(EXPORT).to_csv(file, index=False)
    reading = read_file(file)
    recording = reading.recording
    assert recording.scale == ("binary", ("fail", "pass"), "pass")
    assert list(recording.verdicts["label"]) == ["pass", "", "fail | pass"]
    assert list(recording.verdicts["verdict.method"]) == ["single", "single", "subset"]
    assert labels(reading) == {("1", "ann", "pass"), ("1", "bob", "fail"), ("2", "bob", "pass")}
    assert list(recording.items["truth"]) == ["pass", "fail"]
    assert list(recording.items["text"]) == ["one", "two"]
    samples, people = as_samples(recording)
    assert sorted(tidy(samples)["mask"]) == [0, 2, 3]
    assert len(people) == 3


def test_labels_in_a_second_file_are_joined_to_an_export(tmp_path: Path) -> None:
    columns = {name: cells for name, cells in EXPORT.items() if not name.startswith("label.")}
    columns["evidence_title"] = ["A case", "Another", "A case"]
    file = tmp_path / "labels.csv"
    file.write_text("item,rater,stage\nA case,ann,pass\nAnother,ann,1\nAnother,bob,n/a\n")
    assert labels(read(columns, labels=file)) == {("1", "ann", "pass"), ("2", "ann", "fail")}
    file.write_text("item,rater,stage\nA case,ann,good\nAnother,ann,pass\n")
    with pytest.raises(DesignError, match=r"line 2 of labels\.csv: the label 'good' is none of"):
        read(columns, labels=file)


def test_an_export_of_several_questions_is_refused() -> None:
    with pytest.raises(DesignError, match=r"2 questions \(a, b\); export one of them"):
        read({**EXPORT, "concept": ["a", "a", "b"], "evidence": ["1", "2", "3"]})


def test_the_importer_of_files_is_tried_last_and_wants_verdicts(tmp_path: Path) -> None:
    file = tmp_path / "cases.csv"
    pd.DataFrame(WIDE).to_csv(file, index=False)
    name, importer = find_importer("auto", file)
    assert name == "file"
    assert len(importer.read(file)[0].verdicts) == N
    pd.DataFrame({"reply": TEXTS}).to_csv(file, index=False)
    with pytest.raises(DesignError, match="no verdicts"):
        importer.read(file)


def test_a_transcript_is_read_as_text_and_parts_are_shown_with_their_names() -> None:
    messages = [f'[{{"role": "user", "content": "Where is {n}?"}}]' for n in range(N)]
    reading = read({"id": IDS, "log": messages, "gpt": VERDICTS, "human": LABELS})
    assert reading.recording.items["text"][3] == "user:\n  Where is 3?"
    assert reading.recording.items["length"][3] == len("user:\n  Where is 3?")
    inputs = [f"How do I do number {n}, please?" for n in range(N)]
    parts = read({"id": IDS, "input": inputs, "output": TEXTS, "gpt": VERDICTS, "human": LABELS})
    assert item_parts(parts.recording.items.iloc[2]) == {"input": inputs[2], "output": TEXTS[2]}
    assert parts.recording.items["length"][2] == len(TEXTS[2]), "the output is what is judged"
    pair = read({"input": inputs, "output_a": TEXTS, "output_b": TEXTS[::-1], "gpt": ["A"] * N})
    assert item_parts(pair.recording.items.iloc[0]) == {}


def test_a_response_that_nobody_prefers_keeps_its_place() -> None:
    pairs = {"question": TEXTS, "answer_a": TEXTS, "answer_b": TEXTS[::-1]}
    reading = read({**pairs, "gpt": ["model_b", "tie"] * (N // 2)})
    assert reading.recording.scale.labels == ("model_a", "model_b", "tie")
