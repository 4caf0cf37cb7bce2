"""Recorded verdicts and labels as a study: stored whole or not at all, and marked as recorded."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
import yaml

from conftest import Call, OnlySections, succeed
from forked import forkserver
from judge_gym.axes import RECORDED, Design, expand
from judge_gym.errors import ConflictError, DesignError, MissingFileError
from judge_gym.lab import Lab
from judge_gym.lab.reports import report_file
from judge_gym.recorded import (
    ITEM_COLUMNS,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    LabelScale,
    Recording,
    importers,
)
from judge_gym.recorded.recording import complete_columns
from judge_gym.store import tables as t
from lab_server import ServedLab, serve_lab
from stores import blank, rows

STUDY = "triage"
ITEMS = 24
NAMES = [str(number) for number in range(1, ITEMS + 1)]
"""The user's own ids, which are numbers as those of the lab are, in another order."""
PASSES = LabelScale("binary", ("fail", "pass"), "pass")
RESPONSES = LabelScale("nominal", ("a", "b", "tie"))
WRITTEN = (
    *("evidence", "texts", "pools", "rubrics", "experiments", "tags", "runs", "calls"),
    *("attempts", "samples", "labels", "events", "studies", "pool_names"),
)


def truth(number: int) -> str:
    """Two of three cases should pass."""
    return "fail" if number % 3 == 0 else "pass"


def recording(**changes: Any) -> Recording:
    """Two judges with two prompts; gpt errs on every eighth case, haiku on every fourth."""
    numbers = range(1, ITEMS + 1)
    items = pd.DataFrame(
        {
            "item": NAMES,
            "text": [f"Reply to case {number}." for number in reversed(numbers)],
            "truth": [truth(number) for number in numbers],
            "cluster": [f"week {number // 2}" for number in numbers],
            "channel": ["mail", "chat"] * (ITEMS // 2),
        }
    )
    verdicts = [
        {
            "judge": judge,
            "item": str(number),
            "label": label(number, wrong=number % every == 0),
            "usd": 0.5,
            "prompt": json.dumps([{"role": "user", "content": f"{prompt}: case {number}?"}]),
            "answer": f"Hm.\nVERDICT: {label(number, wrong=number % every == 0)}",
            "foreign.prompt": prompt,
        }
        for judge, every in (("gpt", 8), ("haiku", 4))
        for prompt in ("short", "long")
        for number in numbers
    ]
    labels = [
        {"item": str(number), "rater": rater, "label": truth(number)}
        for number in numbers
        for rater in ("ann", "bo")
    ]
    made = Recording(
        source="cases.csv",
        format="file",
        question="quality",
        scale=PASSES,
        items=complete_columns(items, ITEM_COLUMNS),
        verdicts=complete_columns(pd.DataFrame(verdicts), VERDICT_COLUMNS),
        labels=complete_columns(pd.DataFrame(labels), LABEL_COLUMNS),
        notes=("The column zip was not mapped.",),
    )
    return replace(made, **changes)


def label(number: int, *, wrong: bool) -> str:
    right = truth(number)
    return {"pass": "fail", "fail": "pass"}[right] if wrong else right


def pairs(*, flipped: bool = True) -> Recording:
    """Four pairs in both orders; the judge always decides for the response shown first."""
    names = [f"pair {number}" for number in range(4)]
    items = pd.DataFrame(
        {"item": names, "text": "Which?", "truth": ["a", "b", "a", "b"]}
        | {"response_a": [f"one {n}" for n in names], "response_b": [f"two {n}" for n in names]}
    )
    verdicts = [
        {"judge": "gpt", "item": name, "flipped": turned, "label": "b" if turned else "a"}
        for name in names
        for turned in ((False, True) if flipped else (False,))
    ]
    return Recording(
        source="pairs.json",
        format="judgebench",
        question="the better response",
        scale=RESPONSES,
        items=complete_columns(items, ITEM_COLUMNS),
        verdicts=complete_columns(pd.DataFrame(verdicts), VERDICT_COLUMNS),
        labels=complete_columns(pd.DataFrame({"item": []}, dtype=str), LABEL_COLUMNS),
    )


def with_verdict(column: str, value: Any) -> Recording:
    """The recording with one cell of its second verdict changed."""
    verdicts = recording().verdicts.astype({column: object})
    verdicts.loc[1, column] = value
    return recording(verdicts=verdicts)


def counts(lab: Lab) -> dict[str, int]:
    """The number of rows of every table that an import writes."""
    tables = t.metadata.tables
    with lab.store.database.read() as connection:
        return {
            name: connection.scalar(sa.select(sa.func.count()).select_from(tables[name])) or 0
            for name in WRITTEN
        }


# --- what is stored -------------------------------------------------------------------------------


@pytest.mark.postgres
def test_recorded_judges_are_compared_with_known_answers_as_own_ones(lab: Lab) -> None:
    imported = lab.recordings.add([recording()], STUDY)
    assert imported.new == {"experiments": 4, "verdicts": 4 * ITEMS, "labels": 2 * ITEMS}
    table = lab.reports.judges(STUDY)
    accuracy = {row["setup"]: row["measures"]["exact"]["value"] for row in table["rows"]}
    assert accuracy == {
        "gpt, prompt long": 1 - 3 / ITEMS,
        "gpt, prompt short": 1 - 3 / ITEMS,
        "haiku, prompt long": 1 - 6 / ITEMS,
        "haiku, prompt short": 1 - 6 / ITEMS,
    }
    prices = [row["usd_per_1000"] for row in table["rows"]]
    assert [price and price["value"] for price in prices] == [500] * 4
    assert {row["seconds"] for row in table["rows"]} == {None}  # not recorded


def test_every_number_says_where_it_was_recorded(lab: Lab) -> None:
    lab.recordings.add([recording()], STUDY)
    mark = "Recorded in cases.csv, not asked by this lab."
    table = lab.reports.judges(STUDY)
    assert table["sentence"].endswith(mark)
    assert mark in table["notes"]
    assert mark in lab.reports.compare(STUDY)["notes"]
    assert {*lab.experiments.samples(STUDY)[RECORDED]} == {"in cases.csv"}


def test_an_imported_study_is_finished_and_spends_no_money(lab: Lab) -> None:
    lab.recordings.add([recording()], STUDY)
    status = lab.runs.status(STUDY)
    assert {run["status"] for run in status["runs"]} == {"complete"}
    assert status["usd"] == 0
    assert {row["imported"] for row in lab.reports.usage()} == {True}


def test_a_judge_that_saw_some_of_the_items_is_finished_too(lab: Lab) -> None:
    verdicts = recording().verdicts
    partly = verdicts[(verdicts["judge"] == "gpt") | (verdicts["item"].astype(int) < 5)]
    lab.recordings.add([recording(verdicts=partly.reset_index(drop=True))], STUDY)
    runs = lab.runs.status(STUDY)["runs"]
    assert {(run["status"], run["done"]["score"]) for run in runs} == {
        ("complete", ITEMS),
        ("complete", 4),
    }


def test_an_export_has_what_was_recorded_of_a_judge_as_columns(lab: Lab, tmp_path: Path) -> None:
    lab.recordings.add([recording()], STUDY)
    lab.experiments.export([STUDY], tmp_path / "out.csv")
    frame = pd.read_csv(tmp_path / "out.csv")
    assert {*frame["foreign.prompt"]} == {"short", "long"}
    assert {*frame["foreign.recorded"]} == {"in cases.csv"}
    assert [*frame["evidence_title"].astype(str)[:2]] == ["1", "2"]


def test_a_report_on_an_exported_study_says_where_it_was_recorded(
    lab: Lab, tmp_path: Path, only_sections: OnlySections
) -> None:
    lab.recordings.add([recording()], STUDY)
    lab.experiments.export([STUDY], tmp_path / "out.csv")
    only_sections()
    report = report_file(tmp_path / "out.csv", summary_only=True)
    assert report.warnings == ("Recorded in cases.csv, not asked by this lab.",)


def test_prompt_and_answer_are_kept_in_the_ledger_under_an_endpoint_of_their_own(lab: Lab) -> None:
    lab.recordings.add([recording()], STUDY)
    calls = rows(lab.store, t.calls)
    assert {call["endpoint"] for call in calls} == {"recorded:cases.csv"}
    tag = "triage/quality/triage/gpt/prompt=short/recorded=cases.csv"
    [first] = lab.experiments.list_samples(tag, evidence=1)
    messages, attempts = lab.pages.transcript(first["call_id"] or 0)
    assert [message.content for message in messages] == ["short: case 1?"]
    assert attempts[0]["body"] == "Hm.\nVERDICT: pass"


def test_verdicts_without_words_can_be_exported_and_imported_with_the_ledger(
    lab: Lab, tmp_path: Path
) -> None:
    verdicts = recording().verdicts.assign(prompt="", answer="")
    lab.recordings.add([recording(verdicts=verdicts)], STUDY)
    exported = lab.admin.export_ledger(tmp_path / "calls.jsonl")
    with Lab.open(blank(tmp_path / "other.db")) as other:
        assert other.admin.import_ledger(tmp_path / "calls.jsonl").new == exported.calls
    assert exported.calls == 4 * ITEMS


def test_pairs_are_judged_by_response_whichever_was_shown_first(lab: Lab) -> None:
    lab.recordings.add([pairs()], STUDY)
    frame = lab.experiments.samples(STUDY)
    assert frame["pair"].all()
    assert [*frame.groupby("flipped")["stages"].unique().map(list)] == [["1"], ["2"]]
    [row] = lab.reports.judges(STUDY)["rows"]
    assert row["position_bias"] is not None
    assert row["position_bias"]["value"] == 1
    assert row["measures"]["exact"]["value"] == 0.5


def test_items_with_one_text_stay_items_of_their_own(lab: Lab) -> None:
    items = recording().items.assign(text="The same reply.")
    imported = lab.recordings.add([recording(items=items)], STUDY)
    assert lab.labels.status(STUDY)["items"] == ITEMS
    assert f"cases.csv: {ITEMS - 1} items have the text of another; each stays an item" in (
        imported.notes
    )


def test_items_without_a_text_have_no_length_and_no_study_file(lab: Lab) -> None:
    items = recording().items.assign(text="")
    imported = lab.recordings.add([recording(items=items)], STUDY)
    assert imported.file == ""
    assert lab.experiments.samples(STUDY)["length"].isna().all()


def test_a_recorded_length_counts_in_place_of_that_of_the_text(lab: Lab) -> None:
    items = recording().items.assign(length=7.0)
    lab.recordings.add([recording(items=items)], STUDY)
    assert {*lab.experiments.samples(STUDY)["length"]} == {7.0}


@pytest.mark.postgres
def test_texts_that_no_database_takes_are_stored_readably(lab: Lab) -> None:
    odd = "nothing \x00 here"
    items, verdicts = recording().items, recording().verdicts
    made = recording(
        question=odd,
        items=items.assign(title=odd, note=odd, cluster=odd, day=pd.Timestamp("2026-01-02")),
        verdicts=verdicts.assign(judge=odd, answer=odd, prompt=odd, rationale=odd)[:ITEMS],
    )
    lab.recordings.add([made], STUDY)
    [row] = lab.reports.judges(STUDY)["rows"]
    assert row["judge"] == "nothing \ufffd here"
    assert lab.evidence.show(1)["metadata"]["day"] == "2026-01-02 00:00:00"


def test_numbers_as_ids_and_empty_labels_are_read_as_they_are_meant(lab: Lab) -> None:
    labels = recording().labels
    made = recording(
        items=recording().items.astype({"item": int}),
        labels=labels.assign(label=labels["label"].where(labels["rater"] == "ann", "")),
    )
    assert lab.recordings.add([made], STUDY).new["labels"] == ITEMS


def test_verdicts_that_share_a_call_are_one_observation(lab: Lab) -> None:
    verdicts = recording().verdicts
    shared = verdicts.assign(call=verdicts["item"].map("batch {}".format), prompt="", answer="")
    lab.recordings.add([recording(verdicts=shared)], STUDY)
    assert lab.experiments.samples(STUDY).groupby("judge.model")["call_id"].nunique().to_dict() == {
        "gpt": ITEMS,
        "haiku": ITEMS,
    }


# --- again, changed, refused ----------------------------------------------------------------------


@pytest.mark.postgres
def test_the_same_recording_again_adds_nothing(lab: Lab) -> None:
    lab.recordings.add([recording()], STUDY)
    before = counts(lab)
    again = lab.recordings.add([recording()], STUDY)
    assert again.new == {"experiments": 0, "verdicts": 0, "labels": 0}
    assert counts(lab) == before


def test_a_further_judge_of_the_same_file_joins_the_study(lab: Lab) -> None:
    verdicts = recording().verdicts
    lab.recordings.add([recording(verdicts=verdicts[verdicts["judge"] == "gpt"])], STUDY)
    assert lab.recordings.add([recording()], STUDY).new["verdicts"] == 2 * ITEMS
    assert len(lab.reports.judges(STUDY)["rows"]) == 4


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda: with_verdict("label", "pass" if truth(2) == "fail" else "fail"), "1 verdicts of"),
        (lambda: recording(items=recording().items.assign(truth="pass")), "with other items"),
        (lambda: recording(verdicts=recording().verdicts.drop(index=1)), "1 verdicts less of"),
    ],
)
def test_a_file_that_was_changed_since_is_refused_and_changes_nothing(
    lab: Lab, changed: Callable[[], Recording], words: str
) -> None:
    lab.recordings.add([recording()], STUDY)
    before = counts(lab)
    with pytest.raises(ConflictError, match=words):
        lab.recordings.add([changed()], STUDY)
    assert counts(lab) == before


def test_a_label_that_contradicts_a_stored_one_is_refused_and_changes_nothing(lab: Lab) -> None:
    lab.recordings.add([recording()], STUDY)
    before = counts(lab)
    labels = recording().labels.assign(label="pass")
    with pytest.raises(ConflictError, match="nothing was imported"):
        lab.recordings.add([recording(labels=labels)], STUDY)
    assert counts(lab) == before


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: with_verdict("label", "great"), "label of a verdict 'great'; choose 'fail' or"),
        (lambda: with_verdict("label", ""), "unknown label of a verdict ''"),
        (lambda: with_verdict("status", "lost"), "status of a verdict 'lost'; choose 'scored'"),
        (lambda: with_verdict("item", "99"), "unknown item of a verdict '99'"),
        (lambda: with_verdict("item", "1"), "gpt has two verdicts on '1'"),
        (lambda: with_verdict("judge", ""), "no judge is named for item '2'"),
        (
            lambda: recording(verdicts=recording().verdicts.assign(**{"judge.mood": "bad"})),
            "unknown knob 'judge.mood'",
        ),
        (
            lambda: recording(verdicts=recording().verdicts.assign(**{RECORDED: "me"})),
            "the column 'foreign.recorded' is ours",
        ),
        (
            lambda: recording(labels=recording().labels.assign(label="good")),
            "label of a label of a person 'good'",
        ),
        (
            lambda: recording(
                labels=pd.concat([recording().labels, recording().labels.assign(label="pass")])
            ),
            "ann labels '3' as 'fail' and 'pass' .and 15 more.",
        ),
        (lambda: recording(items=recording().items.assign(truth="ok")), "known answer 'ok'"),
        (lambda: recording(items=recording().items.assign(item="1")), "'1' .* stands there twice"),
        (
            lambda: recording(scale=LabelScale("ordinal", tuple(map(str, range(101))))),
            "'quality' has 101 labels",
        ),
        (lambda: recording(verdicts=recording().verdicts[:0]), "no verdict of a judge"),
        (lambda: replace(pairs(), items=pairs().items.assign(response_b="")), "is no pair"),
        (lambda: with_verdict("flipped", True), "'2' is no pair, and has a verdict in reverse"),
    ],
)
def test_what_contradicts_itself_is_refused_in_one_message_and_nothing_is_stored(
    lab: Lab, made: Callable[[], Recording], words: str
) -> None:
    with pytest.raises(DesignError, match=words):
        lab.recordings.add([recording(question="kept"), made()], STUDY)
    assert set(counts(lab).values()) == {0}


def test_a_column_that_is_no_setting_is_refused(lab: Lab) -> None:
    many = pd.concat([recording().verdicts] * 12, ignore_index=True)
    many = many.assign(repeat=many.index, **{"foreign.time": many.index.map(str)})
    with pytest.raises(DesignError, match=r"foreign\.time has 1,152 levels in 1,152 verdicts"):
        lab.recordings.add([recording(verdicts=many)], STUDY)


@pytest.mark.slow
def test_an_import_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    url = blank(tmp_path / "lab.db")
    process = forkserver().Process(target=_import_and_die, args=(url,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with Lab.open(url) as lab:
        assert set(counts(lab).values()) == {0}
        assert lab.recordings.add([recording()], STUDY).new["verdicts"] == 4 * ITEMS


def _import_and_die(url: str) -> None:
    """Imports, and is killed when two of four judges are written."""
    from judge_gym.store import RecordedVerdicts

    saved: list[int] = []
    save = RecordedVerdicts.save

    def save_two(self: RecordedVerdicts, *arguments: Any) -> int:
        if len(saved) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        saved.append(save(self, *arguments))
        return saved[-1]

    RecordedVerdicts.save = save_two  # type: ignore[assignment, method-assign]
    with Lab.open(url) as lab:
        lab.recordings.add([recording()], STUDY)


# --- what follows an import -----------------------------------------------------------------------


def test_other_judges_are_asked_about_the_same_items_by_the_study_file(
    lab: Lab, tmp_path: Path
) -> None:
    text = lab.recordings.add([recording()], STUDY).file
    before = rows(lab.store, t.attempts)
    study = yaml.safe_load(text) | {"judges": ["sim:strict"]}
    (tmp_path / "triage.yaml").write_text(yaml.safe_dump(study))
    assert lab.runs.run(tmp_path / "triage.yaml").status == "complete"
    table = lab.reports.judges(STUDY)
    assert {row["judge"] for row in table["rows"]} == {"gpt", "haiku", "sim:strict"}
    assert "gpt, haiku: recorded in cases.csv, not asked by this lab." in table["sentence"]
    assert rows(lab.store, t.attempts)[: len(before)] == before
    assert lab.recordings.add([recording()], STUDY).new["verdicts"] == 0
    assert "sim:strict" in str(lab.store.studies.file(STUDY))


def test_an_own_run_of_a_recorded_judge_reuses_no_recorded_answer(lab: Lab, tmp_path: Path) -> None:
    verdicts = recording().verdicts.assign(judge="sim:strict").drop_duplicates(["item"])
    text = lab.recordings.add([recording(verdicts=verdicts)], STUDY).file
    study = yaml.safe_load(text) | {"judges": ["sim:strict"]}
    (tmp_path / "triage.yaml").write_text(yaml.safe_dump(study))
    [run] = lab.runs.run(tmp_path / "triage.yaml").runs
    assert (run.calls, run.reused) == (ITEMS, 0)
    assert len(lab.reports.judges(STUDY)["rows"]) == 2


def test_a_recorded_judge_is_not_asked_again_about_an_item(lab: Lab) -> None:
    lab.recordings.add([recording()], STUDY)
    before = counts(lab)
    with pytest.raises(ConflictError, match=r"recorded in cases\.csv: its judges cannot be asked"):
        lab.runs.rerun_sample(1)
    assert counts(lab) == before


@pytest.mark.parametrize("verb", ["run", "start", "resume", "retry"])
def test_recorded_judges_are_not_asked(lab: Lab, verb: str) -> None:
    lab.recordings.add([recording()], STUDY)
    with pytest.raises(ConflictError, match=r"recorded in cases\.csv: its judges cannot be asked"):
        getattr(lab.runs, verb)(STUDY)


def test_a_study_cannot_set_what_was_recorded_elsewhere() -> None:
    with pytest.raises(DesignError, match=r"foreign\.prompt was recorded elsewhere"):
        expand("foreign.prompt", "short")


def test_a_design_with_recorded_levels_is_the_same_after_it_was_stored() -> None:
    levels = {"judge.model": "gpt", "foreign.read.by": "regex"}
    design = Design.of(levels)
    assert design.values().items() >= levels.items()
    assert Design.of(design.values()) == design != Design.of({"judge.model": "gpt"})


def test_our_reading_of_recorded_answers_is_shown_and_changes_no_verdict(lab: Lab) -> None:
    answers = recording().verdicts["answer"].tolist()
    answers[:3] = ["VERDICT: pass", "VERDICT: fail", "I cannot tell."]  # recorded: pass, pass, fail
    lab.recordings.add([recording(verdicts=recording().verdicts.assign(answer=answers))], STUDY)
    before = rows(lab.store, t.samples)
    read = lab.runs.reparse(STUDY, write=True)
    assert read["recorded"] == {"same": 4 * ITEMS - 2, "other": 1, "none": 1}
    assert rows(lab.store, t.samples) == before


def test_labels_name_items_by_the_ids_of_the_users_file(lab: Lab, tmp_path: Path) -> None:
    lab.recordings.add([recording(labels=recording().labels[:0])], STUDY)
    backwards = recording(items=recording().items[::-1].reset_index(drop=True), source="b.csv")
    lab.recordings.add([replace(backwards, labels=backwards.labels[:0])], "backwards")
    (tmp_path / "labels.csv").write_text("item,rater,stage\n1,cy,pass\n2,cy,fail\n")
    lab.labels.import_file(tmp_path / "labels.csv", target="backwards")
    texts = {row["evidence"]: row["stage"] for row in lab.labels.list()}
    stored = {lab.evidence.show(id)["text"]: stage for id, stage in texts.items()}
    assert stored == {
        f"Reply to case {ITEMS}.": "pass",
        f"Reply to case {ITEMS - 1}.": "fail",
    }


def test_an_item_is_known_by_its_id_in_each_file_that_has_its_text(
    lab: Lab, tmp_path: Path
) -> None:
    first = recording()
    lab.recordings.add([first], STUDY)
    renamed = {name: f"case-{name}" for name in NAMES}
    second = replace(
        first,
        source="other.csv",
        items=first.items.replace({"item": renamed}),
        verdicts=first.verdicts.replace({"item": renamed}),
        labels=first.labels[:0],
    )
    lab.recordings.add([second], "other")
    (tmp_path / "labels.csv").write_text("item,rater,stage\ncase-7,cy,pass\n")
    assert lab.labels.import_file(tmp_path / "labels.csv", target="other")["new"] == 1


def test_labels_of_one_recording_are_no_labels_of_another_on_the_same_texts(lab: Lab) -> None:
    first = recording()
    assert not first.labels.empty
    lab.recordings.add([first], STUDY)
    lab.recordings.add([replace(first, source="other.csv", labels=first.labels[:0])], "other")
    assert lab.labels.status(STUDY)["labelled"]
    assert lab.labels.status("other")["labelled"] == 0
    assert lab.reports.judges("other")["kind"] != "agreement"


def test_a_split_divides_recorded_items(lab: Lab) -> None:
    lab.recordings.add([recording()], STUDY)
    split = lab.labels.split(STUDY)
    assert sum(part["items"] for part in split["parts"]) == ITEMS


def test_questions_of_one_file_are_tasks_of_one_study(lab: Lab) -> None:
    lab.recordings.add([recording(), recording(question="tone")], STUDY)
    assert {*lab.pages.list_tasks(STUDY)} == {
        "quality (triage-quality)",
        "tone (triage-tone)",
    }
    file = yaml.safe_load(str(lab.store.studies.file(STUDY)))
    assert [task["question"] for task in file["tasks"]] == ["quality", "tone"]


# --- the pages ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("imported"), run=False) as opened:
        wordless = pairs().verdicts.assign(prompt="", answer="")
        opened.lab.recordings.add([recording()], STUDY)
        opened.lab.recordings.add([replace(pairs(), verdicts=wordless)], "compared")
        yield opened


@pytest.mark.parametrize(
    "path",
    [
        "/studies/triage/items",
        "/parts/study/judges?study=triage",
        "/parts/compare?of=triage",
        "/experiments/triage/quality/triage/gpt/prompt=short/recorded=cases.csv",
        "/samples/1",
    ],
)
def test_a_page_says_where_its_numbers_were_recorded(served: ServedLab, path: str) -> None:
    said = served.ask("GET", path, headers={"Accept": "text/html"})
    assert said.status_code == 200, said.text[:300]
    assert "Recorded in cases.csv, not asked by this lab." in said.text


def test_a_sample_says_what_was_not_recorded(served: ServedLab) -> None:
    tag = "compared/the-better-response/compared/gpt/recorded=pairs.json"
    [first, *_] = served.lab.experiments.list_samples(tag)
    page = served.ask("GET", f"/samples/{first['sample']}", headers={"Accept": "text/html"}).text
    assert "The prompt was not recorded." in page
    assert "The answer was not recorded." in page
    assert "Recorded by judgebench (pairs.json), not asked by this lab." in page


def test_the_design_of_recorded_judges_names_what_varies(served: ServedLab) -> None:
    page = served.ask("GET", "/studies/triage/design", headers={"Accept": "text/html"}).text
    assert "foreign.prompt" in page


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a format that reads as the recording above."""
    reader = SimpleNamespace(
        ABOUT="cases", detect=lambda path: path.suffix == ".cases", read=lambda _: [recording()]
    )
    others = importers.importers()
    monkeypatch.setattr(importers, "importers", lambda: {**others, "cases": reader})
    (tmp_path / "week.cases").write_text("")
    return tmp_path / "week.cases"


def test_the_command_finds_the_format_and_writes_a_study_file(
    call: Call, cases: Path, tmp_path: Path
) -> None:
    said = succeed(call("import", "auto", cases, "--study", STUDY))
    assert "cases.csv (file): 96 verdicts of gpt, haiku on 24 items, 48 labels of ann, bo" in (
        said.out
    )
    assert "new in triage: 4 experiments, 96 verdicts, 48 labels" in said.out
    assert "note: The column zip was not mapped." in said.err
    assert "Recorded in cases.csv" in " ".join(said.out.split())
    assert yaml.safe_load((tmp_path / "triage.yaml").read_text())["items"] == {
        "triage": {"pool": "triage"}
    }
    again = succeed(call("import", "cases", cases, "--study", STUDY, "--json")).json
    assert set(again["new"].values()) == {0}
    assert again["file"] == "triage.yaml"


def test_the_command_keeps_a_study_file_that_the_user_changed(
    call: Call, cases: Path, tmp_path: Path
) -> None:
    (tmp_path / "triage.yaml").write_text("mine")
    succeed(call("import", "auto", cases, "--study", STUDY))
    assert (tmp_path / "triage.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nope", "week.cases", "--study", STUDY), "unknown format 'nope'"),
        (("auto", "gone.cases", "--study", STUDY), "there is no file gone.cases"),
        (("cases", "week.cases", "--study", "a/b"), "a study's name has letters"),
    ],
)
def test_a_refused_import_leaves_no_lab(
    call: Call, cases: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    said = call("import", *words)
    assert (said.code, message in said.err) == (2, True)
    assert not (tmp_path / ".judge-gym" / "lab.db").exists()


def test_a_missing_file_is_named(lab: Lab) -> None:
    with pytest.raises(MissingFileError, match=r"no file gone\.csv"):
        lab.recordings.import_file("auto", Path("gone.csv"), STUDY)
