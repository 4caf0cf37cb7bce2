"""A lab of an earlier version opens, migrates, reports the same numbers and asks nothing again.

`old_lab/` was made with the code at commit 2da320e (schema 0009), by its own commands:

- `judge-gym run panel.yaml` to its end;
- `judge-gym --concurrency 1 run interrupted.yaml`, killed with SIGKILL once the ledger held more
  than 90 of its attempts: some of the answers had no sample yet;
- `judge-gym labels import` of four labels;
- `judge-gym suite run python --model sim:coder-careless` on three evals;
- `create_experiment` of three drafts on a new window, which `pool freeze` then named;
- `judge-gym ledger export interrupted.jsonl.gz interrupted`.

`lab.sql.xz` is the dump of its database. `numbers.json` holds what that code reported: store
queries, `report panel --json` (every number with a fraction, at nine digits), `suite runs --json`
and `labels list --json`; and of `run interrupted.yaml` in an empty lab, how many calls it asked.
"""

import csv
import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Call, succeed
from judge_gym.axes import V1_DEFAULTS, Design
from judge_gym.store import Progress, Store
from judge_gym.store.database import HEAD
from stores import contents
from stores import old_lab as write_old_lab

OLD = Path(__file__).parent / "old_lab"
REPORTED: dict[str, Any] = json.loads((OLD / "numbers.json").read_text())


@pytest.fixture
def old_lab(tmp_path: Path) -> Path:
    """A copy of the old lab's database where commands look for it, beside its study files."""
    for file in (*OLD.glob("*.yaml"), *OLD.glob("*.json*")):
        shutil.copy(file, tmp_path)
    database = tmp_path / ".judge-gym" / "lab.db"
    database.parent.mkdir()
    write_old_lab(database)
    return database


def attempts(database: Path) -> list[tuple[Any, ...]]:
    """Key, study and time of every attempt, in the order in which they were made."""
    query = "SELECT key, study, at FROM attempts JOIN calls ON calls.id = call_id ORDER BY 1, 3"
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


def numbers_in(tree: Any) -> Iterator[float]:
    """Every number in a JSON document."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list):
        for branch in tree:
            yield from numbers_in(branch)
    elif isinstance(tree, float):
        yield tree


def needed(progress: Progress, counts: Mapping[str, int]) -> dict[str, int]:
    """Returns counts of targets without those that need no call, as they were once counted."""
    return {step: count - progress.not_needed.get(step, 0) for step, count in counts.items()}


def once_wanted(progress: Progress) -> dict[str, int]:
    """Returns the targets as they were once counted: probes only of what is scored already."""
    probes = progress.statuses.get("scored", 0) if progress.targets["probe"] else 0
    return {**needed(progress, progress.targets), "probe": probes}


def test_it_migrates_and_keeps_digests_studies_and_progress(old_lab: Path, call: Call) -> None:
    succeed(call("db", "migrate", "--json"))
    succeed(call("db", "contract"))
    store = Store.open(f"sqlite:///{old_lab}")
    assert store.database.revision() == HEAD
    rows = store.experiments.rows()
    assert {row["tag"]: [row["digest"], row["study"]] for row in rows} == {
        tag: [one["digest"], one["study"]] for tag, one in REPORTED["experiments"].items()
    }
    for row in rows:
        experiment, _ = store.experiments.find(row["tag"])
        assert experiment.digest == row["digest"]
        assert experiment.design.identity() == REPORTED["experiments"][row["tag"]]["chosen"]
        assert row["protocol"] == "contested-concepts"
    for study in ("panel", "interrupted"):  # when they were saved was not recorded
        declared = store.studies.declarations(study).declared
        assert [(one.what, one.when) for one in declared] == [
            (name, "unknown") for name in ("H1", "H2", "H3", "H4")
        ]
    stored = contents(old_lab)["experiments"]
    for *_, design in stored:  # knobs that are added after a migration are completed when read
        assert {*V1_DEFAULTS} <= json.loads(design).keys() <= {*Design.knobs()}
    assert [
        [p.tag, p.series, p.status, once_wanted(p), needed(p, p.done), p.failed, p.statuses]
        for row in rows
        for p in store.progress.of_tag(row["tag"])
    ] == REPORTED["progress"]
    store.close()


def test_it_reports_the_same_numbers(old_lab: Path, call: Call, tmp_path: Path) -> None:
    report = succeed(call("report", "panel", "--json", "--full")).json
    now = np.unique(list(numbers_in(report["tables"])))
    # Without ends of intervals, corrected p-values, agreements and errors of regressions, whose
    # methods changed since, and what tables said that are gone: accuracy by task, and epsilon of
    # tests that nobody could take.
    then = np.array(REPORTED["report"])
    nearest = now[np.abs(now[None, :] - then[:, None]).argmin(axis=1)]
    np.testing.assert_allclose(nearest, then, rtol=1e-7)

    columns = REPORTED["sample_columns"]
    succeed(call("export", *REPORTED["experiments"], "--out", tmp_path / "samples.csv"))
    with (tmp_path / "samples.csv").open(newline="") as file:
        exported = [[row[name] for name in columns] for row in csv.DictReader(file)]
    assert sorted(exported) == sorted(
        [_cell(value) for value in row] for row in REPORTED["samples"]
    )

    usage = succeed(call("usage", "--by", "study,tag,stage,model", "--json")).json
    counted = ("attempts", "calls", "input_tokens", "output_tokens", "usd")
    names = ("study", "tag", "stage", "model", *counted)
    assert sorted([[row[name] for name in names] for row in usage], key=repr) == REPORTED["usage"]

    [suite] = succeed(call("suite", "runs", "--json")).json
    assert {name: suite[name] for name in REPORTED["suite"]} == REPORTED["suite"]
    labels = succeed(call("labels", "list", "--json")).json
    assert [[one["evidence"], one["rater"], one["stage"]] for one in labels] == REPORTED["labels"]


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def test_a_finished_study_is_found_under_its_names_and_asks_nothing(
    old_lab: Path, call: Call
) -> None:
    before = attempts(old_lab)
    ran = succeed(call("run", "panel.yaml", "--json")).json
    assert {run["tag"] for run in ran["runs"]} == {
        tag for tag, one in REPORTED["experiments"].items() if one["study"] == "panel"
    }
    assert ran["status"] == "complete"
    assert sum(run["calls"] for run in ran["runs"]) == 0
    assert attempts(old_lab) == before


def test_an_interrupted_run_continues_and_no_answered_call_is_repeated(
    old_lab: Path, call: Call
) -> None:
    before = attempts(old_lab)
    ran = succeed(call("run", "interrupted.yaml", "--json")).json
    assert ran["status"] == "complete"
    after = attempts(old_lab)
    fresh = [one for one in after if one not in before]
    assert [one for one in after if one in before] == before
    assert not {key for key, *_ in fresh} & {key for key, *_ in before}
    assert len({key for key, *_ in fresh}) == len(fresh)
    # Its views were shared with the finished study.
    answered = sum(study == "interrupted" for _, study, _ in before) + 3
    assert len(fresh) == REPORTED["whole_study_calls"] - answered


def test_a_study_without_a_protocol_pays_for_new_calls_only_when_confirmed(
    old_lab: Path, call: Call
) -> None:
    study = old_lab.parents[1] / "interrupted.yaml"
    study.write_text(study.read_text().replace("protocol: contested-concepts\n", ""))
    before = attempts(old_lab)
    planned = succeed(call("plan", study, "--json")).json
    new = planned["stages"]["all"]["to_pay"]
    calls = {stage: planned["stages"][stage]["calls"] for stage in ("neutralizer", "critic")}
    assert calls == {"neutralizer": 0, "critic": 2}, "the file names a critic"
    message = f"{new:,} calls are new because defaults changed since the last run"
    assert message in planned["warnings"]
    assert any("protocol: contested-concepts" in warning for warning in planned["warnings"])

    refused = call("run", study)
    assert refused.code == 2
    assert message in refused.err and "--yes" in refused.err
    assert attempts(old_lab) == before

    confirmed = succeed(call("run", study, "--yes", "--json")).json
    assert confirmed["status"] == "complete"
    assert 0 < sum(run["calls"] for run in confirmed["runs"]) <= new
    again = succeed(call("plan", study, "--json")).json
    assert again["stages"]["all"]["to_pay"] == 0
    assert not any("defaults" in warning for warning in again["warnings"])


def test_its_exported_ledger_answers_in_another_lab(
    call: Call, tmp_path: Path, old_lab: Path
) -> None:
    old_lab.unlink()
    imported = succeed(call("ledger", "import", "interrupted.jsonl.gz", "--json")).json
    assert imported["calls"] == imported["new"] == imported["attempts"] == 94
    ran = succeed(call("run", "interrupted.yaml", "--json")).json
    assert ran["status"] == "complete"
    assert sum(run["calls"] for run in ran["runs"]) == REPORTED["whole_study_calls"] - 94
    keys = [key for key, *_ in attempts(old_lab)]
    assert len(keys) == len(set(keys)) == REPORTED["whole_study_calls"]


def test_studies_that_shared_a_run_keep_their_numbers_and_have_a_run_each(
    old_lab: Path, call: Call
) -> None:
    with closing(sqlite3.connect(old_lab)) as connection:
        connection.execute(
            "INSERT INTO tags (tag, digest, study, pool_name, pool_id, dose, truth) "
            "SELECT 'other/' || tag, digest, 'other', pool_name, pool_id, dose, truth "
            "FROM tags WHERE study = 'panel'"
        )
        connection.commit()
    store = Store.open(f"sqlite:///{old_lab}")
    tags = [row["tag"] for row in store.experiments.rows(study="panel")]
    own, runs = {"run", "sample", "study", "tag"}, set()
    for tag in tags:
        rows, copies = store.samples.rows([tag]), store.samples.rows([f"other/{tag}"])
        pairs = [*zip(rows, copies, strict=True)]
        assert pairs and all(
            {name: row[name] for name in row.keys() - own}
            == {name: copy[name] for name in copy.keys() - own}
            for row, copy in pairs
        )
        [progress], [copied] = store.progress.of_tag(tag), store.progress.of_tag(f"other/{tag}")
        runs |= {progress.run_id, copied.run_id}
        assert (progress.done, progress.status) == (copied.done, copied.status)
    assert len(runs) == 2 * len(tags)
    store.close()
