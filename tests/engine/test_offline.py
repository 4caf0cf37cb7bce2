"""Replay: a finished study elsewhere, from its ledger alone; what is missing is said."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from engines import replace_engine
from judge_gym.analysis.report import Report
from judge_gym.engine import Engine
from judge_gym.engine.calls.offline import OfflineError
from judge_gym.errors import ConflictError, DesignError
from judge_gym.lab import Lab
from judge_gym.models import Model, Registry
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import Completion, Request
from judge_gym.stages.rubric import AUTHOR_TOKENS
from judge_gym.store.tables import attempts, calls, critiques, probes, rubrics, samples, views
from stores import blank, rows

pytestmark = pytest.mark.slow

WriteStudy = Callable[..., Path]
KEYS = ["tag", "rubric_author", "evidence_title", "replicate", "is_swap", "flipped"]
OWN_IDS = ["run", "sample", "evidence", "rubric", "call_id", "probe_call_id"]
BUSY: dict[str, Any] = {
    "judges": ["sim:sloppy", "sim:cautious?fail=0.1"],
    "vary": {"verdict.method": ["single", "subset"], "probe.context": ["fresh", "same"]},
    "sweep": "ablate",
    "swap": "all",
    "tolerance": 1.0,
}
"""Every kind of answer, calls that none came to, and all five workflows."""


class Closed(Registry):
    """Models that are known and that nobody may open."""

    def open(self, id: str, *, web_search: bool = False) -> Model:
        raise AssertionError(f"{id} was opened")


class Hosted(Registry):
    """Every model answers, whatever its name; behind it is a simulated judge."""

    def open(self, id: str, *, web_search: bool = False) -> Model:
        return SimulatedModel(id if id.startswith("sim:") else "sim:balanced")


class HastyModel(SimulatedModel):
    """An author who is asked twice."""

    async def complete(self, request: Request) -> Completion:
        if request.max_tokens == AUTHOR_TOKENS and request.draw.ask == 0:
            return Completion("STAGE 1: All of it\n- all", "stop", request.model, 9, 9, 0.0)
        return await super().complete(request)


class Hasty(Registry):
    """Authors who are asked twice."""

    def open(self, id: str, *, web_search: bool = False) -> Model:
        return HastyModel(id)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Lab]:
    """An empty lab that cannot open a model."""
    with Lab.open(blank(tmp_path / "elsewhere" / "lab.db")) as opened:
        opened.models = Closed()
        opened.engine = Engine(opened.store, opened.models)
        yield opened


def tidy(lab: Lab, target: str = "small") -> pd.DataFrame:
    frame = lab.experiments.samples(target)
    return frame.drop(columns=OWN_IDS).sort_values(KEYS, ignore_index=True)


def tables(report: Report) -> dict[str, pd.DataFrame]:
    return {
        table.title: table.frame.drop(columns="rubric", errors="ignore") for table in report.tables
    }


def paid(result: Any) -> int:
    return sum(run.calls for run in result.runs)


# --- a finished study ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_finished_study_is_the_same_elsewhere(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    study = write_study(**BUSY)
    first = lab.runs.run(study)
    lab.admin.export_ledger(tmp_path / "small.jsonl.gz", "small")
    elsewhere.admin.import_ledger(tmp_path / "small.jsonl.gz")
    again = elsewhere.runs.run(study, offline=True)
    assert (paid(again), sum(run.usd for run in again.runs)) == (0, 0)
    assert again.status == first.status == "complete-with-failures"
    assert [run.counts for run in again.runs] == [run.counts for run in first.runs]
    pd.testing.assert_frame_equal(tidy(elsewhere), tidy(lab))
    assert set(tidy(lab)["status"]) >= {"scored", "provider_error", "parse_failed"}
    here, there = lab.reports.build("small"), elsewhere.reports.build("small")
    reported = tables(there)
    for title, table in tables(here).items():
        when = ["declared"] if "declared" in table else []  # elsewhere, after the answers came
        pd.testing.assert_frame_equal(reported[title].drop(columns=when), table.drop(columns=when))
    assert all(row["imported"] for row in elsewhere.reports.usage())
    assert "imported" in there.facts["calls paid"]
    assert "imported" not in here.facts["calls paid"]
    assert len(rows(elsewhere.store, attempts)) == len(rows(lab.store, attempts))
    assert elsewhere.runs.reparse("small")["changes"] == []


@pytest.mark.slow
def test_what_another_study_paid_for_goes_along(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    lab.runs.run(write_study("other.yaml", study="other"))
    study = write_study(vary={"verdict.abstain": [True, False]})
    lab.runs.run(study)
    lab.runs.run(write_study("third.yaml", study="third", seed=99))
    made = lab.admin.export_ledger(tmp_path / "small.jsonl.gz", "small")
    assert 0 < made.calls < len(rows(lab.store, calls))
    elsewhere.admin.import_ledger(tmp_path / "small.jsonl.gz")
    elsewhere.runs.run(study, offline=True)
    pd.testing.assert_frame_equal(tidy(elsewhere), tidy(lab))


def test_one_experiment_alone_can_be_exported(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    lab.runs.run(write_study())
    tag = "small/fascism/here/sim:strict"
    lab.admin.export_ledger(tmp_path / "one.jsonl.gz", tag)
    elsewhere.admin.import_ledger(tmp_path / "one.jsonl.gz")
    result = elsewhere.runs.run(write_study(judges=["sim:strict"]), offline=True)
    assert result.status == "complete"
    pd.testing.assert_frame_equal(tidy(elsewhere), tidy(lab, tag))


def test_the_asks_before_a_rubric_go_along_whoever_paid(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    """A rubric that took two asks rests on both."""
    replace_engine(lab, Engine(lab.store, Hasty()))
    lab.runs.run(write_study("other.yaml", study="other"))
    lab.runs.run(write_study())
    assert {row["asks"] for row in rows(lab.store, rubrics)} == {2}
    lab.admin.export_ledger(tmp_path / "small.jsonl.gz", "small")
    elsewhere.admin.import_ledger(tmp_path / "small.jsonl.gz")
    elsewhere.runs.run(write_study(), offline=True)
    pd.testing.assert_frame_equal(tidy(elsewhere), tidy(lab))


def test_a_study_of_models_that_cannot_be_called_is_replayed(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    few = {
        "judges": ["openai:gpt-5.2"],
        "samples": 1,
        "probe": False,
    }  # within the provider's burst
    study = write_study("poor.yaml", **few, budget={"usd": 1e-9, "calls": 1})
    with pytest.raises(DesignError, match="cannot be called"):
        lab.runs.run(study)
    replace_engine(lab, Engine(lab.store, Hosted()))
    lab.runs.run(write_study(**few))
    lab.admin.export_ledger(tmp_path / "small.jsonl.gz", "small")
    elsewhere.admin.import_ledger(tmp_path / "small.jsonl.gz")
    assert elsewhere.runs.run(study, offline=True).status == "complete"  # whatever the budget
    pd.testing.assert_frame_equal(tidy(elsewhere), tidy(lab))


# --- what is missing -----------------------------------------------------------------------------


def test_an_empty_ledger_says_what_is_missing_and_nothing_is_written(
    elsewhere: Lab, write_study: WriteStudy
) -> None:
    with pytest.raises(OfflineError) as fault:
        elsewhere.runs.run(write_study(), offline=True)
    message = fault.value.message
    assert "5 requests are not in the ledger" in message
    assert "3 neutralizer of sim:editor" in message
    assert "1 rubricer of sim:balanced, 1 rubricer of sim:strict" in message
    assert "without --offline" in message
    assert "judge-gym ledger import FILE" in message
    for table in (attempts, views, rubrics, critiques, samples, probes):
        assert rows(elsewhere.store, table) == [], table.name


def test_what_is_there_is_written_and_the_run_goes_on_later(
    lab: Lab, elsewhere: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    lab.runs.run(write_study(samples=2))
    lab.admin.export_ledger(tmp_path / "two.jsonl.gz")
    elsewhere.admin.import_ledger(tmp_path / "two.jsonl.gz")
    more = write_study(samples=3)
    with pytest.raises(OfflineError, match=r"6 requests .* 3 scorer of sim:balanced, 3 scorer of"):
        elsewhere.runs.run(more, offline=True)
    found = elsewhere.experiments.samples("small")
    assert len(found) == 12
    assert "provider_error" not in set(found["status"])
    assert {row["status"] for row in elsewhere.list_experiments()} == {"scoring"}
    lab.runs.run(more)
    lab.admin.export_ledger(tmp_path / "three.jsonl.gz")
    elsewhere.admin.import_ledger(tmp_path / "three.jsonl.gz")
    assert elsewhere.runs.run(more, offline=True).status == "complete"
    pd.testing.assert_frame_equal(tidy(elsewhere), tidy(lab))


def test_after_a_gap_a_run_with_models_pays_for_the_gap_alone(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.runs.run(write_study(samples=2))
    more = write_study(samples=3)
    with pytest.raises(OfflineError):
        lab.runs.run(more, offline=True)
    result = lab.runs.run(more)
    assert result.status == "complete"
    scored = lab.experiments.samples("small")
    third = scored[(scored["replicate"] == 2)]
    assert paid(result) == len(third) + int((third["status"] == "scored").sum())


def test_a_critique_that_is_missing_holds_up_no_verdict(lab: Lab, write_study: WriteStudy) -> None:
    lab.runs.run(write_study())
    other = write_study(
        design={"evidence.editor": "sim:editor", "rubric.critic": "sim:critic?bias=0.1"}
    )
    with pytest.raises(OfflineError, match=r"2 requests .* 2 critic of sim:critic"):
        lab.runs.run(other, offline=True)
    assert len(lab.experiments.samples("small")) == 12


def test_no_search_is_made_offline(elsewhere: Lab, write_study: WriteStudy) -> None:
    window = {"country": "Norway", "start": "2026-01-01", "end": "2026-01-31"}
    study = write_study(evidence={"here": {"gdelt": "court", "window": window}})
    with pytest.raises(ConflictError, match="nothing has been collected yet"):
        elsewhere.runs.run(study, offline=True)
