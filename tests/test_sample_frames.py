"""Samples out of a lab, out of a file and into a file are the same samples."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from conftest import TEXTS, Call, OnlySections
from judge_gym import pull_experiment, pull_study, read_samples
from judge_gym.analysis.report import findings, verdicts
from judge_gym.errors import ConflictError, DesignError, NotFoundError, TokenError
from judge_gym.lab import Lab
from judge_gym.lab import sample_frames as rooms
from judge_gym.lab.label_frames import label_frame
from judge_gym.lab.reports import report_file
from judge_gym.lab.sample_frames import people_of
from judge_gym.store import samples as sample_rows
from judge_gym.store import tables as t
from judge_gym.web import serve
from stores import adopt

HEADER = "judge.model,evidence,replicate,status,stages,n_stages"
ROWS = ["a,x,0,scored,1,4", "a,x,1,scored,2 3,4", "b,x,0,abstained,,4", "b,y,0,scored,4,4"]


TRUTHS: dict[str, tuple[dict[str, Any] | None, float | None]] = {
    "down": ({"value": 0.8, "direction": "down"}, 0.2),
    "up": ({"value": 0.8, "direction": "up"}, 0.8),
    "most": ({"value": 1.0}, 1.0),
    "outside": ({"value": 1.3}, None),
    "label": ({"label": "high"}, None),
    "none": (None, None),
}
"""Of a task, and the reference that it gives."""


def run_study(lab: Lab, folder: Path, **changes: Any) -> None:
    texts = [{"title": name, "text": text} for name, text in TEXTS.items()]
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, texts)))
    study = {
        "study": "small",
        "samples": 1,
        "evidence": {"here": {"files": "texts.jsonl", "window": {"country": "Valdoria"}}},
        "protocol": "contested-concepts",
        "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "here"}],
        "judges": ["sim:balanced", "sim:strict"],
        "design": {"evidence.editor": "sim:editor", "rubric.critic": "sim:critic"},
    }
    (folder / "study.yaml").write_text(json.dumps({**study, **changes}))  # JSON is YAML
    lab.runs.run(folder / "study.yaml")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a varied study with swaps and probes."""
    folder = tmp_path_factory.mktemp("made")
    with Lab.open(f"sqlite:///{folder / 'lab.db'}") as lab:
        run_study(lab, folder, vary={"verdict.method": ["single", "subset"]}, swap="all")
    return folder / "lab.db"


@pytest.fixture
def filled(made: Path, tmp_path: Path) -> Iterator[Lab]:
    """A lab of one's own with that study."""
    shutil.copy(made, tmp_path / "lab.db")
    adopt(f"sqlite:///{tmp_path / 'lab.db'}")
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        yield lab


def written(folder: Path, *rows: str, header: str = HEADER, name: str = "mine.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    return path


# --- out of a lab --------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_file_and_the_lab_give_the_same_tidy_frame(
    filled: Lab, tmp_path: Path, format: str
) -> None:
    frame = pull_study("small", url=str(filled.store.database.url))
    out = tmp_path / f"samples.{format}"
    assert filled.experiments.export(["small"], out, format=format) == len(frame)
    pd.testing.assert_frame_equal(read_samples(out), frame)
    assert frame["variant"].nunique() == 2 and frame["is_swap"].any() and frame["probe"].any()


def test_samples_are_fetched_and_written_in_parts(
    filled: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = filled.experiments.samples("small")
    filled.experiments.export(["small"], tmp_path / "whole.parquet", format="parquet")
    monkeypatch.setattr(sample_rows, "CHUNK", 7)
    monkeypatch.setattr(rooms, "PART", 5)
    pd.testing.assert_frame_equal(filled.experiments.samples("small"), whole)
    filled.experiments.export(["small"], tmp_path / "parts.parquet", format="parquet")
    one, other = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    pd.testing.assert_frame_equal(one, other)
    assert not any(one[name].dtype == "category" for name in one)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_an_export_is_the_same_bytes_every_time(filled: Lab, tmp_path: Path, format: str) -> None:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        filled.experiments.export(["small"], path, format=format)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_length_is_that_of_the_text_which_judges_read(lab: Lab, tmp_path: Path) -> None:
    tasks = [{"concept": "fascism", "evidence": "here"}]
    run_study(lab, tmp_path, study="raw", protocol=None, tasks=tasks, design={})
    frame = lab.experiments.samples("raw")
    texts = frame["evidence_title"].map(TEXTS)
    assert frame["length"].tolist() == texts.str.len().tolist()
    run_study(lab, tmp_path)  # its views are as long as their sources
    with lab.store.database.begin() as connection:
        connection.execute(t.texts.insert().values(hash="summary", body="Brèves."))
        connection.execute(t.views.update().values(text="summary"))
    assert set(lab.experiments.samples("small")["length"]) == {7}
    assert lab.experiments.samples("raw")["length"].tolist() == texts.str.len().tolist()


def test_rows_and_the_frame_agree(filled: Lab) -> None:
    frame = filled.experiments.exported_samples("small")
    tag = frame["tag"].iloc[0]
    rows = pd.DataFrame(filled.list_experiment_samples(tag))
    same = frame[frame["tag"] == tag].reset_index(drop=True)
    unset = same[list(rows)].isna()
    pd.testing.assert_frame_equal(unset, rows.isna())
    found = same[list(rows)].astype(object).where(~unset, None)
    assert found.to_dict("records") == rows.astype(object).where(~unset, None).to_dict("records")


@pytest.mark.slow
def test_a_lab_that_is_served_gives_the_same_frame(
    filled: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(filled.store.database.url)
    whole = pull_study("small", url=url)
    tag = whole["tag"].iloc[0]
    with serve(filled, port=0, work=False) as at:
        monkeypatch.setenv("JUDGE_GYM_TOKEN", str(at.token))
        pd.testing.assert_frame_equal(pull_study("small", url=at.url), whole)
        one, other = (pull_experiment(tag, url=where) for where in (at.url, url))
        pd.testing.assert_frame_equal(one, other)
        with pytest.raises(NotFoundError, match="there is no study 'smal'; choose small"):
            pull_study("smal", url=at.url)
        with pytest.raises(NotFoundError, match="there is no experiment 'small'"):
            pull_experiment("small", url=at.url)
        monkeypatch.setenv("JUDGE_GYM_TOKEN", "none")
        with pytest.raises(TokenError):
            pull_study("small", url=at.url)


def test_one_experiment_is_pulled_alone(filled: Lab) -> None:
    url = str(filled.store.database.url)
    whole = pull_study("small", url=url)
    tag = whole["tag"].iloc[0]
    one = pull_experiment(tag, url=url)
    assert set(one["tag"]) == {tag} and len(one) == (whole["tag"] == tag).sum()


def test_a_reference_points_to_higher_stages(lab: Lab, tmp_path: Path) -> None:
    tasks = [
        {"type": "control", "concept": concept, "evidence": "here"}
        | ({"truth": {"source": "a table", **truth}} if truth else {})
        for concept, (truth, _) in TRUTHS.items()
    ]
    run_study(lab, tmp_path, tasks=tasks, judges=["sim:strict"], probe=False)
    frame = lab.experiments.samples("small")
    found = frame.groupby("concept")["reference"].first()
    for concept, (_, reference) in TRUTHS.items():
        known = np.nan if reference is None else reference
        assert found[concept] == pytest.approx(known, nan_ok=True), concept
    assert frame["truth"].isna().all(), "items have truths of their own"


def test_an_unknown_study_is_refused_with_the_known_ones(filled: Lab) -> None:
    url = str(filled.store.database.url)
    with pytest.raises(NotFoundError, match="there is no study 'smal'; choose small"):
        pull_study("smal", url=url)
    with pytest.raises(NotFoundError, match="there is no experiment 'small/none'"):
        pull_experiment("small/none", url=url)


def test_pulling_leaves_the_database_as_it_is(filled: Lab, tmp_path: Path) -> None:
    filled.close()
    before = (tmp_path / "lab.db").read_bytes()
    pull_study("small", url=f"sqlite:///{tmp_path / 'lab.db'}")
    assert (tmp_path / "lab.db").read_bytes() == before


def test_pulling_makes_no_database_and_upgrades_none(lab: Lab, tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    with pytest.raises(NotFoundError, match=r"there is no lab at sqlite:///.*none\.db"):
        pull_study("small", url=f"sqlite:///{missing}")
    assert not missing.exists()
    lab.close()
    old = tmp_path / "old.db"
    shutil.copy(tmp_path / "lab.db", old)
    with sqlite3.connect(old) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0024'")
    connection.close()
    with pytest.raises(ConflictError, match="is at schema 0024"):
        pull_study("small", url=f"sqlite:///{old}")


# --- out of a file -------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_recorded_verdicts_need_six_columns(tmp_path: Path, mark: str) -> None:
    text = "\n".join([HEADER, *ROWS]).replace(",", mark)
    path = tmp_path / "mine.csv"
    path.write_text("\ufeff" + text, encoding="utf-8")
    frame = read_samples(path)
    assert frame["mask"].tolist() == [1, 6, 0, 8]
    assert frame["evidence"].tolist() == ["x", "x", "x", "y"]


def test_texts_stay_as_they_are_written(tmp_path: Path) -> None:
    header = f"{HEADER},series,country,prompt.slots.scorer.language,evidence_title,mine"
    path = written(
        tmp_path, 'NA,07,0,scored,1,4,01,NA,,"two\nlines, one cell",5',
        "null,7,0,scored,2,4,1,,plain,,6", header=header,
    )  # fmt: skip
    frame = read_samples(path)
    assert frame["judge.model"].tolist() == ["NA", "null"]
    assert frame["evidence"].tolist() == ["07", "7"]
    assert frame["series"].tolist() == ["01", "1"]
    assert frame["country"].tolist() == ["NA", ""]
    assert frame["prompt.slots.scorer.language"].tolist() == ["", "plain"]
    assert frame["evidence_title"].tolist() == ["two\nlines, one cell", ""]
    assert frame["mine"].tolist() == [5, 6], "other columns are kept"


def test_numbered_evidence_is_numbers(tmp_path: Path) -> None:
    rows = [row.replace(",x,", ",3,").replace(",y,", ",12,") for row in ROWS]
    assert read_samples(written(tmp_path, *rows))["evidence"].tolist() == [3, 3, 3, 12]


def test_a_recorded_parquet_file_is_read(tmp_path: Path) -> None:
    plain = read_samples(written(tmp_path, *ROWS))
    plain[HEADER.split(",")].to_parquet(tmp_path / "mine.parquet", index=False)
    pd.testing.assert_frame_equal(read_samples(tmp_path / "mine.parquet"), plain)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "mine.csv has no samples"),
        (HEADER, "mine.csv has no samples"),
        ("a,b\n1,2", "has no column 'judge.model', 'evidence', 'replicate', 'status',"),
        (f"{HEADER}\n{ROWS[0]},9\n", "cannot be read as csv: CSV parse error"),
        (f"{HEADER},status\n{ROWS[0]},9", "names the column 'status' twice"),
        (f"{HEADER}\na,x,0,done,1,4", "unknown status 'done' for mine.csv; choose 'scored', "),
        (f"{HEADER}\na,x,0,scored,5,4", "mine.csv: stage 5 of [5]; choose 1 to 4"),
        (f"{HEADER}\na,x,one,scored,1,4", "mine.csv: replicate 'one' of sample 1 is not a number"),
        (
            f"{HEADER}\n{ROWS[0]}\n{ROWS[1]}\n{ROWS[0]}",
            "mine.csv has two samples of judge.model a, evidence x, replicate 0; number replicates",
        ),
        (
            f"{HEADER},series\n{ROWS[0]},s\n{ROWS[0]},t\n{ROWS[0]},t",
            "judge.model a, evidence x, replicate 0, variant series=t, series t;",
        ),
    ],
)
def test_an_invalid_file_is_refused_with_the_reason(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(DesignError) as fault:
        read_samples(path)
    assert says in fault.value.message


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_bytes_that_are_not_a_table_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(bytes(range(256)) * 4)
    with pytest.raises(DesignError, match="mine"):
        read_samples(tmp_path / name)


def test_a_missing_file_or_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no file .*none\.csv"):
        read_samples(tmp_path / "none.csv")
    with pytest.raises(DesignError, match=r"unknown format 'xlsx'") as fault:
        read_samples(tmp_path / "mine.xlsx")
    assert fault.value.choices == ("csv", "parquet")


# --- reports -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_report_of_a_file_needs_no_database(
    call: Call, tmp_path: Path, only_sections: OnlySections
) -> None:
    only_sections(verdicts.chosen_stages)
    written(tmp_path, *ROWS)
    said = call("report", "--from", "mine.csv", "--out", "mine.html")
    assert said.code == 0, said.err
    assert "mine.csv" in said.out and "wrote mine.html" in said.out
    assert "Expected stage" in call("report", "--from", "mine.csv", "--full").out
    assert "<html" in (tmp_path / "mine.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.csv", "mine.html"]
    assert call("report", "--from", "mine.csv", "--json").json["title"] == "mine.csv"


def test_a_report_of_an_export_has_the_tables_of_the_lab(
    filled: Lab, call: Call, tmp_path: Path, only_sections: OnlySections
) -> None:
    only_sections(
        verdicts.response_outcomes,
        verdicts.chosen_stages,
        findings.findings,
        findings.rubrics_and_evidence,
        findings.cost,
    )
    filled.experiments.export(["small"], tmp_path / "samples.csv")
    made = {table.title: table.frame for table in filled.reports.build("small").tables}
    parsed = call("report", "--from", "samples.csv", "--json").json["tables"]
    read = {table["title"]: table["rows"] for table in parsed}
    assert made.keys() - read.keys() <= {"Views", "Cost"}, "a file knows nothing of these"
    means = pd.DataFrame(read["Expected stage"])
    pd.testing.assert_frame_equal(means, made["Expected stage"], check_dtype=False)


MINE = pd.DataFrame(
    {
        "judge.model": ["a"] * 40 + ["b"] * 40,
        "evidence": [f"q{n}" for n in range(40)] * 2,
        "replicate": 0,
        "status": "scored",
        "stages": ["1" if n % 3 else "2" for n in range(80)],
        "n_stages": 2,
        "stage_names": "fail | pass",
    }
)


def test_the_options_of_a_file_hold_for_an_export_too(call: Call, tmp_path: Path) -> None:
    MINE.to_csv(tmp_path / "mine.csv", index=False)
    people = pd.DataFrame({"case": MINE["evidence"][:40], "ann": ["pass", "fail"] * 20})
    people.to_csv(tmp_path / "labels.csv", index=False)
    options = ("--labels", "labels.csv", "--positive", "fail", "--json")
    for words in (["report", "--from", "mine.csv"], ["report", "mine.csv"]):
        sentence = call(*words, *options).json["sentence"]
        assert "of what people fail and passes" in sentence, "fail is the positive label"
    assert call("judges", "mine.csv", *options).json["known_items"] == 40
    refused = call("report", "mine.csv", "--item", "evidence")
    assert refused.code == 2
    assert "--item cannot be given" in refused.err


def test_advice_for_a_file_needs_no_lab(call: Call, tmp_path: Path) -> None:
    MINE.to_csv(tmp_path / "mine.csv", index=False)
    said = call("report", "--from", "mine.csv")
    assert "--labels FILE" in said.out
    assert "labels import" not in said.out


@pytest.mark.parametrize("command", [["report", "--from"], ["report"], ["judges"], ["check"]])
def test_a_known_answer_in_words_is_a_stage_or_refused(
    call: Call, tmp_path: Path, command: list[str]
) -> None:
    words = ["Yes" if n % 2 else "fail" for n in range(80)]
    MINE.assign(truth=words).to_csv(tmp_path / "mine.csv", index=False)
    refused = call(*command, "mine.csv")
    assert refused.code == 2
    assert "'Yes' for mine.csv; choose 'fail' or 'pass'" in refused.err
    said = call(*command, "mine.csv", "--same", "Yes=pass", "--json")
    assert said.code == 0, said.err
    frame = read_samples(tmp_path / "mine.csv", truths={"Yes": "pass"})
    truths = dict(zip(frame["evidence"], frame["truth"], strict=True))
    assert truths == {f"q{n}": 1.0 + n % 2 for n in range(40)}


def test_words_that_judges_own_rubrics_lack_stay_as_they_are(tmp_path: Path) -> None:
    own = MINE.assign(truth="harsh", rubric_author=MINE["judge.model"])
    own.to_csv(tmp_path / "mine.csv", index=False)
    assert set(read_samples(tmp_path / "mine.csv")["truth"]) == {"harsh"}


@pytest.mark.parametrize("words", [[], ["small", "--from", "mine.csv"]])
def test_a_report_is_of_one_thing(call: Call, words: list[str]) -> None:
    said = call("report", *words)
    assert said.code == 2
    assert "--from FILE" in said.err


# --- labels --------------------------------------------------------------------------------------


def test_an_exported_study_keeps_its_labels(filled: Lab, tmp_path: Path) -> None:
    stages = {"calm": "1", "tense": "2", "harsh": "4"}
    rows = [
        {"item": title, "rater": rater, "stage": stage}
        for title, stage in stages.items()
        for rater in ("=ann", "ben")
        if (rater, title) != ("ben", "tense")
    ]
    filled.labels.add(rows, target="small")
    for name in ("labelled.csv", "labelled.parquet"):
        filled.experiments.export(["small"], tmp_path / name, include=["labels"])
        people = people_of(read_samples(tmp_path / name))
        expected = label_frame(filled.store, filled.studies.find("small"))
        columns = [*expected]
        pd.testing.assert_frame_equal(
            people.sort_values(columns, ignore_index=True)[columns],
            expected.sort_values(columns, ignore_index=True),
            check_dtype=False,
        )


def test_labels_of_a_file_are_words_or_numbers_of_its_scale(tmp_path: Path) -> None:
    header = f"{HEADER},stage_names,label.ann,label.ben"
    lines = ["a,x,0,scored,1,2,fail | pass,pass,1", "a,y,0,scored,1,2,fail | pass,,fail"]
    people = people_of(read_samples(written(tmp_path, *lines, header=header)))
    given = {(row.evidence, row.rater): row.stage for row in people.itertuples()}
    assert given == {("x", "ann"): 2, ("x", "ben"): 1, ("y", "ben"): 1}
    lines[1] = "a,y,0,scored,1,2,fail | pass,,maybe"
    with pytest.raises(DesignError, match="label of ben for y 'maybe'; choose 'fail' or 'pass'"):
        people_of(read_samples(written(tmp_path, *lines, header=header)))


def test_a_report_on_an_export_compares_with_the_labels_of_the_lab(
    filled: Lab, tmp_path: Path
) -> None:
    rows = [{"item": title, "rater": "ann", "stage": "2"} for title in TEXTS]
    filled.labels.add(rows, target="small")
    for include, kind in ((["labels"], "agreement"), ([], None)):
        filled.experiments.export(["small"], tmp_path / "s.csv", include=include)
        table = report_file(tmp_path / "s.csv", summary_only=True).judge_table
        assert table is not None
        assert table["kind"] == kind
        if kind:
            of_lab = {row["setup"]: row["truth"] for row in filled.reports.judges("small")["rows"]}
            assert {row["setup"]: row["truth"] for row in table["rows"]} == of_lab
