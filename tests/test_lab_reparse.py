"""Reading stored answers again: what changes is shown, then written; a second time is nothing."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import study_file
from judge_gym.lab import Lab
from judge_gym.lab.reparse import Reparsed, reparse
from judge_gym.store.tables import critiques, probes, samples
from stores import adopt, blank, rows

WriteStudy = Callable[..., Path]
BUSY: dict[str, Any] = {
    "judges": ["sim:sloppy", "sim:cautious?fail=0.1"],
    "vary": {"verdict.method": ["single", "subset"], "verdict.output": ["suffix", "json"]},
    "sweep": "ablate",
    "swap": "all",
    "samples": 4,
    "tolerance": 1.0,
}
COLUMNS = ["tag", "sample", "status", "stages", "probe", "probe_status", "call_id"]


@pytest.fixture(scope="module")
def finished_lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lab with a finished study of every kind of answer, to be copied."""
    folder = tmp_path_factory.mktemp("finished")
    with Lab.open(blank(folder / "lab.db")) as lab:
        lab.runs.run(study_file(folder, **BUSY))
    return folder


@pytest.fixture
def done(finished_lab: Path, tmp_path: Path) -> Iterator[Lab]:
    """A lab with that study."""
    shutil.copytree(finished_lab, tmp_path / "done")
    adopt(f"sqlite:///{tmp_path / 'done' / 'lab.db'}")
    with Lab.open(f"sqlite:///{tmp_path / 'done' / 'lab.db'}") as opened:
        yield opened


def edit(lab: Lab, table: sa.Table, where: Any, **values: Any) -> int:
    with lab.store.database.begin() as connection:
        return connection.execute(table.update().where(where).values(values)).rowcount


def tidy(lab: Lab) -> pd.DataFrame:
    return lab.experiments.samples("small")[COLUMNS]


def reread(lab: Lab, target: str, *, write: bool = False) -> Reparsed:
    tags = [row["tag"] for row in lab.studies.find(target)]
    return reparse(lab.store, tags, write=write)


def everything(lab: Lab) -> list[Any]:
    return [rows(lab.store, table) for table in (samples, probes, critiques)]


def test_reparsing_an_unchanged_study_changes_nothing(done: Lab) -> None:
    before = everything(done)
    for write in (False, True):
        found = reread(done, "small", write=write)
        assert (found.changes, found.probes_dropped, found.examples) == ({}, 0, [])
        assert found.written is write
    assert everything(done) == before
    counts = tidy(done)["status"].value_counts()
    assert found.read["sample"] == counts.sum() - counts["provider_error"]
    assert found.read["probe"] == sum(row["status"] != "provider_error" for row in before[1])
    assert found.read["critique"] == len(before[2])


def test_what_an_older_parser_could_not_read_is_restored(done: Lab) -> None:
    before = tidy(done)
    scored = [row for row in rows(done.store, samples) if row["status"] == "scored"]
    lost = [row["id"] for row in scored[:20]]
    edit(done, samples, samples.c.id.in_(lost), status="parse_failed", stages="")
    probed = sum(row["sample_id"] in lost for row in rows(done.store, probes))
    damaged = everything(done)

    shown = reread(done, "small")
    assert shown.changes == {("sample", "parse_failed", "scored"): 20}
    assert shown.probes_dropped == probed > 0
    assert len(shown.examples) == 3
    first = shown.examples[0]
    stages = {row["call_id"]: row["stages"] for row in scored[:20]}
    assert (first.before, first.after, first.was, first.reads) == (
        "parse_failed", "scored", "", stages[first.call_id],
    )  # fmt: skip
    assert everything(done) == damaged, "nothing is written unless asked"

    written = reread(done, "small", write=True)
    assert written.changes == shown.changes
    assert reread(done, "small", write=True).changes == {}
    result = done.runs.run("small", offline=True)  # the ledger knows the probes of these verdicts
    assert sum(run.calls for run in result.runs) == 0
    pd.testing.assert_frame_equal(tidy(done), before)


def test_a_changed_verdict_loses_its_probe(done: Lab) -> None:
    """Verdicts that an older parser read into answers that hold none."""
    unread = samples.c.status == "parse_failed"
    wrong = edit(done, samples, unread, status="scored", stages="2")
    done.runs.run("small")  # which asks about them
    asked = len(rows(done.store, probes))
    found = reread(done, "small", write=True)
    assert found.changes == {("sample", "scored", "parse_failed"): wrong}
    assert 0 < found.probes_dropped <= wrong
    left = rows(done.store, probes)
    assert len(left) == asked - found.probes_dropped
    assert found.read["probe"] == sum(row["status"] != "provider_error" for row in left)
    read = tidy(done)
    assert read.loc[read["status"] != "scored", "probe_status"].isna().all()
    assert done.runs.run("small", offline=True).status == "complete-with-failures"


def test_other_stages_are_a_change_of_their_own(done: Lab) -> None:
    scored = [row for row in rows(done.store, samples) if row["status"] == "scored"][:5]
    for row in scored:
        other = "1" if row["stages"] != "1" else "2"
        edit(done, samples, samples.c.id == row["id"], stages=other)
    found = reread(done, "small", write=True)
    assert found.changes == {("sample", "scored", "scored"): 5}
    assert found.to_json()["stages_changed"] == 5
    kept = {row["id"]: row for row in rows(done.store, samples)}
    assert all(kept[row["id"]] == row for row in scored)


def test_probes_and_critics_are_read_again(done: Lab) -> None:
    before = everything(done)
    edit(done, probes, probes.c.status == "scored", status="parse_failed", probability=None)
    edit(done, critiques, sa.true(), observability=0.123)
    found = reread(done, "small", write=True)
    probed = sum(row["status"] == "scored" for row in before[1])
    scored = sum(row["status"] == "scored" for row in before[2])
    assert found.changes["probe", "parse_failed", "scored"] == probed > 0
    assert found.changes["critique", "scored", "scored"] == scored > 0
    assert everything(done) == before
    assert found.probes_dropped == 0


def test_refusals_and_truncations_are_not_reparsed(lab: Lab, write_study: WriteStudy) -> None:
    judge = "sim:balanced?refuse=0.3&truncate=0.3&fail=0.3"
    lab.runs.run(write_study(judges=[judge], samples=8, tolerance=1.0))
    before = everything(lab)
    assert {row["status"] for row in before[0]} >= {"refused", "truncated", "provider_error"}
    assert reread(lab, "small", write=True).changes == {}
    assert everything(lab) == before
    refused = edit(lab, samples, samples.c.status == "refused", status="scored", stages="1")
    found = reread(lab, "small", write=True)
    assert found.changes == {("sample", "scored", "refused"): refused}
    assert everything(lab) == before


def test_only_the_active_runs_of_what_is_named_are_read(done: Lab, write_study: WriteStudy) -> None:
    done.runs.run(write_study("other.yaml", study="other", seed=11))
    edit(done, samples, samples.c.status == "scored", status="parse_failed", stages="")
    done.runs.run("other", new_run=True)
    assert reread(done, "other").changes == {}
    tag = done.list_experiments(study="small")[0]["tag"]
    assert 0 < reread(done, tag).changes.total() < reread(done, "small").changes.total()


# --- any study -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("any")


@pytest.mark.slow
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    temper=st.fixed_dictionaries(
        {name: st.sampled_from([0, 0.2, 0.6]) for name in ("refuse", "truncate", "garble", "fail")}
    ),
    knobs=st.fixed_dictionaries(
        {
            "verdict.method": st.sampled_from(["single", "subset"]),
            "verdict.output": st.sampled_from(["suffix", "json"]),
            "presentation.labels": st.sampled_from(["shuffled", "fixed", "opaque"]),
            "probe.context": st.sampled_from(["fresh", "same"]),
        }
    ),
    seed=st.integers(0, 1000),
)
def test_reparsing_twice_changes_nothing_more(
    write_study: WriteStudy,
    folder: Path,
    temper: dict[str, float],
    knobs: dict[str, str],
    seed: int,
) -> None:
    judge = "sim:balanced?" + "&".join(f"{name}={value}" for name, value in temper.items())
    design = {"evidence.editor": "sim:editor", "rubric.critic": "sim:critic", **knobs}
    with Lab.open(f"sqlite:///{folder / 'lab.db'}") as lab:
        lab.runs.run(write_study(judges=[judge], design=design, seed=seed, tolerance=1.0))
        before = everything(lab)
        assert reread(lab, "small", write=True).changes == {}
        assert everything(lab) == before
