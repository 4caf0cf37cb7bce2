"""The pipeline on simulated judges: what is paid and shared, what fails and is mended."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from conftest import OnlySections, Scripted, study_file
from engines import replace_engine
from judge_gym import store
from judge_gym.analysis.report import build_report
from judge_gym.analysis.report.findings import findings
from judge_gym.engine import Engine, steps
from judge_gym.engine import workflow as run_workflow
from judge_gym.engine.calls import ask
from judge_gym.engine.queue import AT_ONCE, SHARDS, RunQueue
from judge_gym.errors import ConflictError, DesignError, ProviderError, StoreError
from judge_gym.lab import Lab
from judge_gym.models.simulated import SimulatedModel
from judge_gym.models.simulated.prompts import understand
from judge_gym.records import Completion, Request
from judge_gym.store.tables import attempts, calls, metadata, rubrics, texts
from stores import adopt, blank

WriteStudy = Callable[..., Path]
Answer = Completion | str | Exception | None

# Words of mere tone make a neutral view differ from its text.
TEXTS = (
    "In an alarming step the budget was adopted unanimously. It was published in full, on paper.",
    "A shocking scene: the regulator warned two stations. One was fined and a bill is delayed.",
    "Judges were dismissed by decree in a brazen move. An editor was detained, a paper banned.",
)
ITEMS, JUDGES, SAMPLES = len(TEXTS), 2, 2
CELLS = ITEMS * JUDGES * SAMPLES


@pytest.fixture
def study(write_study: WriteStudy, tmp_path: Path) -> WriteStudy:
    """A study of three items, two judges and two samples."""

    def write(name: str = "study.yaml", **changes: Any) -> Path:
        path = write_study(name, **changes)
        write_evidence(tmp_path)
        return path

    return write


def write_evidence(folder: Path) -> None:
    lines = [json.dumps({"title": f"T{n}", "text": text}) for n, text in enumerate(TEXTS)]
    (folder / "evidence.jsonl").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a lab in which the study was run, to be copied."""
    folder = tmp_path_factory.mktemp("finished")
    path = study_file(folder)
    write_evidence(folder)
    with Lab.open(blank(folder / "lab.db")) as lab:
        assert lab.runs.run(path).status == "complete"
    return folder / "lab.db"


@pytest.fixture
def finished_lab(finished: Path, tmp_path: Path) -> Iterator[Lab]:
    """A lab in which the study was run once; what is changed in it stays in its test."""
    file = tmp_path / "finished.db"
    for suffix in (".db", ".dbos.db"):
        file.with_suffix(suffix).write_bytes(finished.with_suffix(suffix).read_bytes())
    adopt(f"sqlite:///{file}")
    with Lab.open(f"sqlite:///{file}") as lab:
        yield lab


class Disturbed(Scripted):
    """Simulated judges, except where a function has something else to say."""

    def __init__(self, answer: Callable[[Request], Answer] = lambda request: None) -> None:
        super().__init__(answer)  # type: ignore[arg-type]
        self.flying = self.most_flying = 0

    async def complete(self, request: Request) -> Completion:
        self.flying += 1
        self.most_flying = max(self.flying, self.most_flying)
        try:
            await asyncio.sleep(0.001)
            if self.answer(request) is not None:
                return await super().complete(request)
            self.asked.append(request)
            return await SimulatedModel(request.model).complete(request)
        finally:
            self.flying -= 1


def disturb(lab: Lab, answer: Callable[[Request], Answer] = lambda request: None) -> Disturbed:
    models = Disturbed(answer)
    replace_engine(lab, Engine(lab.store, models))
    return models


def kind(request: Request) -> str:
    return understand(request.messages).kind


def count(lab: Lab, table: str) -> int:
    with lab.store.database.begin() as connection:
        query = sa.select(sa.func.count()).select_from(metadata.tables[table])
        return int(connection.scalar(query) or 0)


def paid(lab: Lab) -> Counter[str]:
    """Attempts so far, by stage."""
    total: Counter[str] = Counter()
    for row in lab.reports.usage():
        total[row["stage"]] += row["attempts"]
    return total


def contents(lab: Lab) -> dict[str, list[Any]]:
    with lab.store.database.begin() as connection:
        return {
            name: list(connection.execute(sa.select(table)))
            for name, table in metadata.tables.items()
        }


def scored(frame: pd.DataFrame) -> int:
    return int((frame["status"] == "scored").sum())


# --- answers are kept as they arrive --------------------------------------------------------------


def test_every_paid_answer_of_a_stopped_run_is_a_sample_and_in_the_report(
    lab: Lab, study: WriteStudy, only_sections: OnlySections
) -> None:
    only_sections(findings)
    path = study(judges=["sim:balanced"], probe=False, margin=0.1)
    lab.runs.run(path, workflows=["evidence", "rubric"])
    others = paid(lab).total()
    result = lab.runs.run(path, budget={"calls": others + 4})
    assert (result.status, paid(lab)["scorer"]) == ("over-budget", 4)
    assert len(lab.experiments.samples("small")) == 4
    report = lab.reports.build("small")
    assert f"only 4 of {ITEMS * SAMPLES} verdicts of sim:balanced are recorded so far" in (
        report.warnings
    )
    [hypotheses] = [table for table in report.tables if table.title == "Hypotheses"]
    assert "a margin of 0.1 (declared: before the first answer)." in hypotheses.note


def test_a_report_counts_the_verdicts_of_a_judge_over_all_its_experiments(
    lab: Lab, study: WriteStudy, only_sections: OnlySections
) -> None:
    only_sections()
    path = study(
        judges=["sim:balanced"], probe=False, vary={"verdict.method": ["single", "subset"]}
    )
    lab.runs.run(path, workflows=["evidence", "rubric"])
    first, _ = [row["tag"] for row in lab.list_experiments(study="small")]
    lab.runs.run(first)
    verdicts = ITEMS * SAMPLES
    assert f"only {verdicts} of {2 * verdicts} verdicts of sim:balanced are recorded so far" in (
        lab.reports.build("small").warnings
    )


def test_declarations_count_from_their_last_change(
    lab: Lab, study: WriteStudy, only_sections: OnlySections
) -> None:
    only_sections(findings)
    first = {"knob": "verdict.method", "level": "subset", "base": "single"}
    later = {**first, "endpoint": "entropy"}
    given: dict[str, Any] = {
        "judges": ["sim:balanced"],
        "probe": False,
        "samples": 1,
        "vary": {"verdict.method": ["single", "subset"]},
        "protocol": None,
        "design": {},
        "tasks": [{"concept": "fascism", "evidence": "here"}],
    }
    lab.runs.run(study(**given, contrasts=[first], margin=0.2))
    some = 2 * ITEMS
    lab.runs.run(study(**given, contrasts=[first, later], margin=0.1, tolerance=0.1))
    lab.runs.run(study(**given | {"samples": 2}, contrasts=[first, later], margin=0.1))
    found = lab.experiments.show_study("small")
    after = f"after {some} of {2 * some} answers"
    assert [(one["what"], one["declared"]) for one in found["declarations"]] == [
        ("margin of 0.1", after),
        ("verdict.method subset against single in stage", "before the first answer"),
        ("verdict.method subset against single in entropy", after),
    ]
    [tested] = [table for table in lab.reports.build("small").tables if table.title == "Hypotheses"]
    assert tested.frame["declared"].tolist() == ["before the first answer", after]
    assert "Removed from the study after answers had come: margin of 0.2." in tested.note
    # Withdrawing a contrast and declaring it again starts anew; running a study again does not.
    lab.runs.run(study(**given | {"samples": 2}, contrasts=[later]))
    lab.runs.run(study(**given | {"samples": 2}, contrasts=[first, later]))
    lab.runs.run(study(**given | {"samples": 2}, contrasts=[first, later]))
    found = lab.experiments.show_study("small")
    assert [one["declared"] for one in found["declarations"]] == [
        f"after {2 * some} of {2 * some} answers", after,
    ]  # fmt: skip
    assert count(lab, "study_versions") == 5


def test_an_answer_is_a_sample_before_the_others_of_its_shard_have_arrived(
    lab: Lab, study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "HAND_OVER", 0.01)
    seen: list[int] = []

    class OneIsSlow(Disturbed):
        async def complete(self, request: Request) -> Completion:
            first = kind(request) == "score" and not seen
            if first:
                seen.append(0)
            completion = await super().complete(request)
            for _ in range(1000 if first else 0):  # until the others are there, or 10 s
                seen[0] = count(lab, "samples")
                if seen[0] == ITEMS * SAMPLES - 1:
                    break
                await asyncio.sleep(0.01)
            return completion

    replace_engine(lab, Engine(lab.store, OneIsSlow()))
    lab.runs.run(study(judges=["sim:balanced"], probe=False))
    assert seen == [ITEMS * SAMPLES - 1]


def count_shards(monkeypatch: pytest.MonkeyPatch, fails: int = 0) -> list[int]:
    """Makes a shard of each score; lists how many were executed at once when each began.

    The number `fails` raises an error, which no later one does.
    """
    monkeypatch.setattr(steps, "SHARD", 1)
    perform, at_once = run_workflow.perform, list[int]()
    active = 0

    async def counted(of: Any, step: str, shard: Any) -> None:
        nonlocal active
        if step != "score":
            return await perform(of, step, shard)
        active += 1
        at_once.append(active)
        try:
            await asyncio.sleep(0.01)
            if len(at_once) == fails:
                raise StoreError("a shard that fails")
            await perform(of, step, shard)
        finally:
            active -= 1

    monkeypatch.setattr(run_workflow, "perform", counted)
    return at_once


def test_a_file_executes_a_few_shards_of_a_study_at_once_and_queues_none(
    lab: Lab, study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = count_shards(monkeypatch)
    assert lab.runs.run(study(), samples=4).status == "complete"
    assert len(at_once) == 2 * CELLS
    assert max(at_once) == AT_ONCE[SHARDS], "both judges are of one study"
    with closing(RunQueue(lab.store.database)) as queue:
        assert queue.client.list_workflows(name="shard") == []
        assert len(queue.client.list_workflows(name="run")) == JUDGES


def test_a_shard_that_fails_lets_no_other_of_its_run_begin(
    lab: Lab, study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = count_shards(monkeypatch, fails=AT_ONCE[SHARDS])
    path = study(judges=["sim:balanced"], samples=8)
    with pytest.raises(StoreError, match="a shard that fails"):
        lab.runs.run(path)
    assert AT_ONCE[SHARDS] <= len(at_once) < 8 * ITEMS
    monkeypatch.undo()
    assert lab.runs.run(path).status == "complete"
    assert count(lab, "samples") == 8 * ITEMS


def test_a_report_is_not_called_simulated_while_a_real_judge_has_no_answer(
    lab: Lab, study: WriteStudy, only_sections: OnlySections
) -> None:
    only_sections()
    lab.runs.run(study(judges=["sim:balanced"], probe=False, samples=1))
    frame = lab.experiments.samples("small")
    assert build_report("small", frame, None).banner.startswith("All judges were simulated")
    both = build_report("small", frame, None, judges=["sim:balanced", "own:real"])
    assert both.banner == "Some judges were simulated: sim:balanced."


# --- a study, and the same study again -----------------------------------------------------------


def test_a_study_leaves_the_rows_that_it_says(lab: Lab, study: WriteStudy) -> None:
    result = lab.runs.run(study())
    frame = lab.experiments.samples("small")
    assert (result.status, len(result.runs), len(frame)) == ("complete", JUDGES, CELLS)
    expected = {
        "evidence": ITEMS,
        "views": ITEMS,
        "rubrics": JUDGES,
        "critiques": JUDGES,
        "experiments": JUDGES,
        "runs": JUDGES,
        "samples": CELLS,
        "probes": scored(frame),
    }
    assert {name: count(lab, name) for name in expected} == expected
    assert paid(lab) == {
        "neutralizer": ITEMS,
        "rubricer": JUDGES,
        "critic": JUDGES,
        "scorer": CELLS,
        "prober": scored(frame),
    }
    assert sum(run.calls for run in result.runs) == paid(lab).total()
    keys = ["tag", "rubric", "evidence", "replicate", "flipped", "is_swap"]
    assert not frame.duplicated(keys).any()


def test_the_same_study_again_pays_nothing_and_changes_no_row(lab: Lab, study: WriteStudy) -> None:
    path = study(swap="all", judges=["sim:sloppy", "sim:cautious"])
    first = lab.runs.run(path)
    before = contents(lab)
    second = lab.runs.run(path)
    assert sum(run.calls for run in second.runs) == 0
    assert [run.run for run in second.runs] == [run.run for run in first.runs]
    assert second.status == first.status
    assert contents(lab) == before


def test_the_ledger_holds_what_was_asked_word_for_word_and_each_long_text_once(
    lab: Lab, study: WriteStudy
) -> None:
    models = disturb(lab)
    lab.runs.run(study(vary={"verdict.method": ["single", "subset"]}))
    known = lab.store.ledger.find(request.key() for request in models.asked)
    for request in models.asked:
        asked, tried = lab.store.ledger.transcript(known[request.key()].call_id)
        assert [(m.role, m.content) for m in asked] == [
            (m.role, m.content) for m in request.messages
        ]
        assert len(tried) == 1
    shown = [r for r in models.asked if kind(r) in ("score", "probe")]
    assert len(shown) > 2 * CELLS
    with lab.store.database.begin() as connection:
        bodies = list(connection.scalars(sa.select(texts.c.body)))
    assert len([body for body in bodies if body.startswith("EVIDENCE")]) == ITEMS
    assert sum(map(len, bodies)) < sum(len(m.content) for r in models.asked for m in r.messages) / 2


# --- sharing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("knob", "levels", "shared"),
    [
        ("probe.context", ["fresh", "same"], {"neutralizer", "rubricer", "critic", "scorer"}),
        ("verdict.method", ["single", "subset"], {"neutralizer", "rubricer", "critic"}),
        ("presentation.labels", ["shuffled", "opaque"], {"neutralizer", "rubricer", "critic"}),
    ],
)
def test_experiments_that_differ_in_one_knob_pay_once_for_what_they_share(
    lab: Lab, study: WriteStudy, knob: str, levels: list[str], shared: set[str]
) -> None:
    models = disturb(lab)
    lab.runs.run(study(vary={knob: levels}))
    assert models.most_flying > 1, "they were to ask at the same time"
    keys = [request.key() for request in models.asked]
    assert len(keys) == len(set(keys))
    once = {"neutralizer": ITEMS, "rubricer": JUDGES, "critic": JUDGES, "scorer": CELLS}
    stages = {stage: n for stage, n in paid(lab).items() if stage != "prober"}
    assert stages == {stage: n if stage in shared else 2 * n for stage, n in once.items()}
    frame = lab.experiments.samples("small")
    assert len(frame) == 2 * CELLS
    calls_of = frame.groupby(knob)["call_id"].apply(set)
    assert (calls_of.iloc[0] == calls_of.iloc[1]) == ("scorer" in shared)


def test_two_studies_share_what_they_ask_alike(finished_lab: Lab, study: WriteStudy) -> None:
    lab = finished_lab
    before = paid(lab)
    lab.runs.run(study("other.yaml", study="other", design={
        "evidence.editor": "sim:editor", "rubric.critic": "sim:critic", "probe.context": "same",
    }))  # fmt: skip
    assert paid(lab) - before == {"prober": scored(lab.experiments.samples("other"))}
    assert set(lab.experiments.samples("other")["call_id"]) == set(
        lab.experiments.samples("small")["call_id"]
    )


SEEN = ["judge.model", "rubric", "evidence", "replicate", "display"]


@pytest.mark.parametrize(
    ("knob", "level", "materials", "scores", "probes"),
    [
        ("probe.context", "same", {}, "none", "all"),
        ("prompt.slots.prober.panel", "historians", {}, "none", "all"),
        ("verdict.method", "subset", {}, "all", "new"),
        ("verdict.abstain", False, {}, "all", "new"),
        ("verdict.output", "json", {}, "all", "new"),
        ("presentation.first", "evidence", {}, "all", "new"),
        ("presentation.labels", "opaque", {}, "all", "all"),
        ("presentation.order", "fixed", {}, "new", "new"),
        ("prompt.slots.scorer.persona", "a judge", {}, "all", "new"),
        ("judge.temperature", 0.5, {}, "all", "all"),
        ("rubric.critic", "sim:critic?noise=0.2", {"critic": JUDGES}, "none", "none"),
        ("rubric.scale", 5, {"rubricer": JUDGES, "critic": JUDGES}, "all", "all"),
        ("prompt.slots.rubricer.persona", "a poet", {"rubricer": JUDGES, "critic": JUDGES},
         "all", "all"),
    ],
)  # fmt: skip
def test_a_changed_knob_pays_only_for_what_it_changes(
    finished_lab: Lab,
    study: WriteStudy,
    knob: str,
    level: Any,
    materials: dict[str, int],
    scores: str,
    probes: str,
) -> None:
    """A question is new where its knob is in the prompt, or where what it shows is new."""
    lab = finished_lab
    base, before = lab.experiments.samples("small"), paid(lab)
    lab.runs.run(study(), overrides={knob: level})
    frame = lab.experiments.samples("small")
    changed = frame[~frame["tag"].isin(base["tag"])]
    assert len(changed) == CELLS

    def new(rows: pd.DataFrame, old: pd.DataFrame, keys: list[str]) -> int:
        known = set(old[keys].itertuples(index=False, name=None))
        return sum(key not in known for key in rows[keys].itertuples(index=False, name=None))

    only_scored = changed[changed["status"] == "scored"]
    asked_again = base[base["status"] == "scored"]
    expected = Counter(
        {
            **materials,
            "scorer": {"none": 0, "new": new(changed, base, SEEN), "all": CELLS}[scores],
            "prober": {
                "none": 0,
                "new": new(only_scored, asked_again, [*SEEN, "stages"]),
                "all": len(only_scored),
            }[probes],
        }
    )
    assert paid(lab) - before == +expected


def test_another_view_pays_for_scores_and_probes_alone(
    finished_lab: Lab, study: WriteStudy
) -> None:
    lab = finished_lab
    before = paid(lab)
    raw = {"evidence.view": "raw", "rubric.critic": "sim:critic"}
    lab.runs.run(study("raw.yaml", study="raw", design=raw))
    assert paid(lab) - before == {"scorer": CELLS, "prober": scored(lab.experiments.samples("raw"))}
    pairs = lab.experiments.samples("small").merge(
        lab.experiments.samples("raw"), on=["judge.model", "evidence", "replicate"]
    )
    assert (pairs["display_x"] == pairs["display_y"]).all()


def test_displays_are_the_same_for_every_variant(lab: Lab, study: WriteStudy) -> None:
    lab.runs.run(
        study(vary={"verdict.method": ["single", "subset"], "probe.context": ["fresh", "same"]})
    )
    frame = lab.experiments.samples("small")
    assert (frame.groupby(["evidence", "replicate"])["display"].nunique() == 1).all()
    assert frame["display"].nunique() > 1


# --- targets, series, new runs -------------------------------------------------------------------


def test_raising_samples_goes_on_with_what_is_missing_and_lowering_deletes_nothing(
    lab: Lab, study: WriteStudy
) -> None:
    path = study()
    first = lab.runs.run(path)
    old, before = lab.experiments.samples("small"), paid(lab)
    second = lab.runs.run(path, samples=3)
    frame = lab.experiments.samples("small")
    assert [run.run for run in second.runs] == [run.run for run in first.runs]
    assert len(frame) == ITEMS * JUDGES * 3
    assert paid(lab) - before == {
        "scorer": ITEMS * JUDGES, "prober": scored(frame) - scored(old),
    }  # fmt: skip
    pd.testing.assert_frame_equal(frame[frame["replicate"] < 2].reset_index(drop=True), old)
    for fewer in (1, None):
        lowered = lab.runs.run(path, samples=fewer)
        assert (lowered.status, sum(run.calls for run in lowered.runs)) == ("complete", 0)
        pd.testing.assert_frame_equal(lab.experiments.samples("small"), frame)


def test_probes_and_swaps_can_be_asked_for_later(lab: Lab, study: WriteStudy) -> None:
    lab.runs.run(study(probe=False))
    assert paid(lab)["prober"] == 0
    before = paid(lab)
    lab.runs.run(study(probe=True))
    assert paid(lab) - before == {"prober": scored(lab.experiments.samples("small"))}
    before, probed = paid(lab), scored(lab.experiments.samples("small"))
    lab.runs.run(study(probe=True, swap="all"))
    assert paid(lab) - before == {
        "scorer": CELLS, "prober": scored(lab.experiments.samples("small")) - probed,
    }  # fmt: skip


def test_a_new_series_draws_scores_and_probes_afresh_and_nothing_else(
    lab: Lab, study: WriteStudy
) -> None:
    path = study()
    first = lab.runs.run(path)
    base, before = lab.experiments.samples("small"), paid(lab)
    second = lab.runs.run(path, series="again")
    frame = lab.experiments.samples("small")
    again = frame[frame["series"] == "again"]
    assert {run.run for run in second.runs}.isdisjoint(run.run for run in first.runs)
    assert paid(lab) - before == {"scorer": CELLS, "prober": scored(again)}
    assert set(base["call_id"]).isdisjoint(again["call_id"])
    keys = ["tag", "evidence", "replicate"]
    pairs = base.merge(again, on=keys, suffixes=("", "_again"))
    assert len(pairs) == CELLS
    assert (pairs["display"] == pairs["display_again"]).all()
    assert (pairs["rubric"] == pairs["rubric_again"]).all()
    assert sum(run.calls for run in lab.runs.run(path, series="again").runs) == 0


def test_a_new_run_supersedes_the_old_and_pays_nothing(lab: Lab, study: WriteStudy) -> None:
    path = study()
    first = lab.runs.run(path)
    base, before = lab.experiments.samples("small"), paid(lab)
    second = lab.runs.run(path, new_run=True)
    assert {run.run for run in second.runs}.isdisjoint(run.run for run in first.runs)
    assert paid(lab) == before
    assert second.status == "complete"
    frame = lab.experiments.samples("small")
    assert set(frame["run"]) == {run.run for run in second.runs}
    kept = [*SEEN, "status", "stages", "probe", "call_id"]
    pd.testing.assert_frame_equal(
        frame[kept].sort_values(SEEN, ignore_index=True),
        base[kept].sort_values(SEEN, ignore_index=True),
    )
    assert count(lab, "samples") == 2 * CELLS


# --- swap and probe ------------------------------------------------------------------------------


def test_a_swap_scores_every_rivals_rubric_as_often_and_under_the_same_displays(
    lab: Lab, study: WriteStudy
) -> None:
    judges = ["sim:balanced", "sim:strict", "sim:alarmist"]
    tasks = [
        {"type": "ecc", "concept": concept, "evidence": "here"}
        for concept in ("fascism", "populism")
    ]
    lab.runs.run(study(judges=judges, tasks=tasks, swap="all", design={
        "evidence.editor": "sim:editor", "rubric.critic": "sim:critic", "rubric.scale": 5,
    }))  # fmt: skip
    frame = lab.experiments.samples("small")
    assert paid(lab)["rubricer"] == len(judges) * len(tasks)
    own, swap = frame[~frame["is_swap"]], frame[frame["is_swap"]]
    assert (own["rubric_author"] == own["judge.model"]).all()
    sizes = swap.groupby(["concept", "judge.model", "rubric_author"]).size()
    assert dict(sizes) == {
        (task["concept"], judge, rival): ITEMS * SAMPLES
        for task in tasks
        for judge in judges
        for rival in judges
        if rival != judge
    }
    matched = swap.merge(own, on=["tag", "evidence", "replicate"], suffixes=("", "_own"))
    assert len(matched) == len(swap)
    assert (matched["display"] == matched["display_own"]).all()
    written = {
        (row["id"], row["concept"], row["country"], row["scale"]) for row in all_rubrics(lab)
    }
    assert set(zip(frame["rubric"], frame["concept"], frame["country"], frame["n_stages"],
                   strict=True)) == written  # fmt: skip
    assert set(frame["n_stages"]) == {5}


def all_rubrics(lab: Lab) -> list[Any]:
    with lab.store.database.begin() as connection:
        return [dict(row) for row in connection.execute(sa.select(rubrics)).mappings()]


def test_a_third_partys_rubric_serves_all_judges(lab: Lab, study: WriteStudy) -> None:
    lab.runs.run(study(swap=[["*", "sim:cautious"], ["sim:strict", "sim:balanced"]]))
    swap = lab.experiments.samples("small").query("is_swap")
    sizes = swap.groupby(["judge.model", "rubric_author"]).size()
    assert dict(sizes) == {
        ("sim:balanced", "sim:cautious"): ITEMS * SAMPLES,
        ("sim:strict", "sim:cautious"): ITEMS * SAMPLES,
        ("sim:strict", "sim:balanced"): ITEMS * SAMPLES,
    }
    assert paid(lab)["rubricer"] == 3


@pytest.mark.parametrize("context", ["fresh", "same"])
def test_every_scored_sample_is_probed_and_no_other(
    lab: Lab, study: WriteStudy, context: str
) -> None:
    judges = ["sim:cautious?abstain=0.7", "sim:sloppy?garble=0.4"]
    lab.runs.run(study(judges=judges, samples=4, swap="all", vary=None, design={
        "evidence.editor": "sim:editor", "rubric.critic": "sim:critic", "probe.context": context,
    }))  # fmt: skip
    frame = lab.experiments.samples("small")
    assert {"scored", "abstained", "parse_failed"} <= set(frame["status"])
    assert set(frame[frame["status"] == "scored"]["is_swap"]) == {True, False}
    assert (frame["probe_status"].notna() == (frame["status"] == "scored")).all()
    assert frame[frame["probe_status"] == "scored"]["probe"].between(0, 1).all()
    assert frame[frame["status"] != "scored"]["probe"].isna().all()
    assert (frame[frame["status"] != "scored"]["stages"] == "").all()


def test_several_draws_of_a_rubric_are_scored_each(lab: Lab, study: WriteStudy) -> None:
    lab.runs.run(study(), overrides={"rubric.draws": 3})
    frame = lab.experiments.samples("small")
    assert paid(lab)["rubricer"] == paid(lab)["critic"] == 3 * JUDGES
    assert set(frame.groupby(["judge.model", "rubric_draw"]).size()) == {ITEMS * SAMPLES}
    assert frame["rubric"].nunique() == 3 * JUDGES


def test_a_given_rubric_on_raw_texts_needs_neither_editor_nor_author_nor_critic(
    lab: Lab, study: WriteStudy, tmp_path: Path
) -> None:
    stages = [{"label": f"S{n}", "criteria": [f"c{n}"]} for n in range(3)]
    (tmp_path / "rubric.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    task = {"type": "benchmark", "concept": "severity", "evidence": "here", "rubric": "rubric.json"}
    result = lab.runs.run(study(tasks=[task], design=None))  # editor and critic default to openai
    frame = lab.experiments.samples("small")
    assert result.status == "complete"
    assert paid(lab) == {"scorer": CELLS, "prober": scored(frame)}
    assert frame["observability"].isna().all()
    assert frame["discriminability"].isna().all()
    assert set(frame["n_stages"]) == {3}


# --- failures are records ------------------------------------------------------------------------


def failing_scores(replicates: set[int]) -> Callable[[Request], Answer]:
    """No completion for the first item in some replicates."""

    def answer(request: Request) -> Answer:
        first = "budget" in request.messages[-1].content
        lost = kind(request) == "score" and first and request.draw.index in replicates
        return ProviderError("overloaded") if lost else None

    return answer


@pytest.mark.parametrize(
    ("tolerance", "status"), [(0.2, "complete-with-failures"), (0.05, "failed")]
)
def test_calls_without_an_answer_become_samples_that_say_so_and_asking_again_mends_them(
    lab: Lab, study: WriteStudy, tolerance: float, status: str
) -> None:
    """Of 3 views, 1 rubric, 6 scores and at most 5 probes one is lost: 7 % or a little more."""
    path = study(judges=["sim:balanced"], tolerance=tolerance)
    disturb(lab, failing_scores({1}))
    result = lab.runs.run(path)
    assert result.status == status
    assert result.runs[0].counts["provider_error"] == 1
    frame = lab.experiments.samples("small")
    [lost] = frame[frame["status"] == "provider_error"].to_dict("records")
    assert lost["stages"] == ""
    assert pd.isna(lost["probe_status"])
    tried = lab.store.ledger.transcript(lost["call_id"])[1]
    assert [(a["completed"], a["error"]) for a in tried] == [(False, "overloaded")]

    before = paid(lab)
    disturb(lab)
    mended = lab.runs.run(path)
    assert mended.status == "complete"
    frame = lab.experiments.samples("small")
    assert "provider_error" not in set(frame["status"])
    assert len(frame) == ITEMS * SAMPLES
    new = frame[frame["call_id"] == lost["call_id"]]
    assert paid(lab) - before == +Counter({"scorer": 1, "prober": scored(new)})
    tried = lab.store.ledger.transcript(lost["call_id"])[1]
    assert [a["completed"] for a in tried] == [False, True]


@pytest.mark.parametrize(
    ("stage", "asks"),
    [
        ("neutralizer", "neutralize"),
        ("rubricer", "write_rubric"),
        ("critic", "criticize"),
        ("scorer", "score"),
        ("prober", "probe"),
    ],
)
def test_a_stage_whose_provider_is_down_is_mended_by_asking_again(
    lab: Lab, study: WriteStudy, stage: str, asks: str
) -> None:
    reference = study(judges=["sim:balanced"])
    disturb(lab, lambda r: ProviderError("down") if kind(r) == asks else None)
    lab.runs.run(reference)
    [down] = [row for row in lab.reports.usage() if row["stage"] == stage]
    assert down["attempts"] > down["calls"] == 0
    disturb(lab)
    mended = lab.runs.run(reference)
    assert mended.status == "complete"
    frame = lab.experiments.samples("small")
    assert len(frame) == ITEMS * SAMPLES
    assert frame["observability"].notna().all()
    assert (frame["probe"].notna() == (frame["status"] == "scored")).all()
    done = Counter({row["stage"]: row["calls"] for row in lab.reports.usage()})
    assert done == {
        "neutralizer": ITEMS, "rubricer": 1, "critic": 1,
        "scorer": ITEMS * SAMPLES, "prober": scored(frame),
    }  # fmt: skip
    assert sum(run.calls for run in lab.runs.run(reference).runs) == 0


STAGES = ("STAGE {n}: Label {n}\n- one sign {n}\n- another sign {n}\n- a third sign {n}\n").format


def rubric_text(stages: int) -> str:
    return "".join(STAGES(n=n) for n in range(1, stages + 1)) + "REASONING: they rise."


def asks_of(lab: Lab) -> list[int]:
    with lab.store.database.begin() as connection:
        query = sa.select(calls.c.ask).join(attempts, attempts.c.call_id == calls.c.id)
        rubricer = query.where(attempts.c.stage == "rubricer").order_by(attempts.c.id)
        return list(connection.scalars(rubricer))


def test_a_rubric_with_the_wrong_stages_is_re_asked_twice_and_then_the_run_has_failed(
    lab: Lab, study: WriteStudy
) -> None:
    path = study(judges=["sim:balanced"])
    disturb(lab, lambda r: rubric_text(3) if kind(r) == "write_rubric" else None)
    for turn in range(2):
        result = lab.runs.run(path)
        assert (result.status, result.runs[0].status) == ("failed", "failed")
        assert asks_of(lab) == [0, 1, 2]
        assert result.runs[0].calls == (0 if turn else ITEMS + 3)
    assert any("parse_failed" in warning for warning in result.warnings)
    assert lab.experiments.samples("small").empty
    [row] = all_rubrics(lab)
    assert (row["status"], row["asks"], row["stages"]) == ("parse_failed", 3, [])
    assert count(lab, "samples") == count(lab, "critiques") == 0


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_rubric_that_comes_right_is_used_and_its_re_asks_are_counted(
    lab: Lab, study: WriteStudy, wrong: int, only_sections: OnlySections
) -> None:
    only_sections()
    path = study(judges=["sim:balanced"])

    def answer(request: Request) -> Answer:
        late = kind(request) == "write_rubric" and request.draw.ask < wrong
        return rubric_text(5) if late else None

    disturb(lab, answer)
    result = lab.runs.run(path)
    assert result.status == "complete"
    assert asks_of(lab) == list(range(wrong + 1))
    [row] = all_rubrics(lab)
    assert (row["status"], row["asks"], len(row["stages"])) == ("scored", wrong + 1, 4)
    assert lab.store.usage.asks("small") == {"asked": wrong + 1, "again": wrong}
    assert any(f"{wrong} of {wrong + 1}" in w for w in lab.reports.build("small").warnings)


def test_a_refused_rubric_is_an_answer_and_is_not_asked_for_again(
    lab: Lab, study: WriteStudy
) -> None:
    path = study(judges=["sim:balanced", "sim:strict"])
    no = Completion("I won't.", "refusal", "sim:strict", 5, 5, 0.0)
    disturb(lab, lambda r: no if kind(r) == "write_rubric" and r.model == "sim:strict" else None)
    for _ in range(2):
        result = lab.runs.run(path)
        assert [run.status for run in result.runs] == ["complete", "failed"]
        assert asks_of(lab) == [0, 0]
    assert result.status == "failed"
    assert set(lab.experiments.samples("small")["judge.model"]) == {"sim:balanced"}


def refused_view(request: Request) -> Answer:
    no = Completion("I won't.", "refusal", "sim:editor", 5, 5, 0.0)
    return (
        no if kind(request) == "neutralize" and "budget" in request.messages[-1].content else None
    )


def test_an_item_whose_view_is_refused_is_left_out_and_counted(lab: Lab, study: WriteStudy) -> None:
    path = study(tolerance=0.5)
    disturb(lab, refused_view)
    for turn in range(2):
        result = lab.runs.run(path)
        assert result.status == "complete-with-failures"
        assert (sum(run.calls for run in result.runs) == 0) == (turn > 0)
    assert any("'T0'" in warning and "refused" in warning for warning in result.warnings)
    frame = lab.experiments.samples("small")
    assert set(frame["evidence_title"]) == {"T1", "T2"}
    assert len(frame) == (ITEMS - 1) * JUDGES * SAMPLES
    [progress] = lab.store.progress.of_tag(frame["tag"].iloc[0])
    assert (progress.targets["evidence"], progress.failed["evidence"]) == (ITEMS, 1)


def refused_rubric(request: Request) -> Answer:
    no = Completion("I won't.", "refusal", "sim:strict", 5, 5, 0.0)
    return no if kind(request) == "write_rubric" and request.model == "sim:strict" else None


@pytest.mark.parametrize("answer", [refused_view, refused_rubric])
def test_stage_by_stage_what_was_refused_stands_in_the_way_of_nothing_else(
    lab: Lab, study: WriteStudy, answer: Callable[[Request], Answer], tmp_path: Path
) -> None:
    path = study(tolerance=0.5)
    disturb(lab, answer)
    for workflow in ("evidence", "rubric", "score", "probe"):
        stepped = lab.runs.run(path, workflows=[workflow])
    with Lab.open(blank(tmp_path / "other.db")) as other:
        disturb(other, answer)
        at_once = other.runs.run(path)
        assert [run.counts for run in stepped.runs] == [run.counts for run in at_once.runs]
        assert [run.status for run in stepped.runs] == [run.status for run in at_once.runs]


@pytest.mark.parametrize(
    ("said", "scores", "warned"),
    [
        ("OBSERVABILITY: 0.3\nDISCRIMINABILITY: 0.9", (0.3, 0.9), ["observability 0.30"]),
        ("OBSERVABILITY: 0.5\nDISCRIMINABILITY: 0.5", (0.5, 0.5), []),
        ("OBSERVABILITY: 0.49\nDISCRIMINABILITY: 0",
         (0.49, 0.0), ["observability 0.49", "discriminability 0.00"]),
        ("It is fine.", (None, None), []),
    ],
)  # fmt: skip
def test_a_poor_rubric_earns_a_warning_and_an_unread_critic_no_score(
    lab: Lab, study: WriteStudy, said: str, scores: tuple[float | None, ...], warned: list[str]
) -> None:
    disturb(lab, lambda r: said if kind(r) == "criticize" else None)
    result = lab.runs.run(study(judges=["sim:balanced"]))
    assert result.status == "complete"
    [row] = lab.list_experiment_rubrics(result.runs[0].tag)
    assert (row["observability"], row["discriminability"]) == scores
    assert [w for w in result.warnings if "below" in w] == [
        w for w in result.warnings if any(name in w for name in warned)
    ]
    assert len([w for w in result.warnings if "below" in w]) == len(warned)


# --- refusals before any call --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "asked", "command"),
    [
        ((), "score", "evidence"),
        ((), "swap", "evidence"),
        ((), "probe", "evidence"),
        (("rubric",), "score", "evidence"),
        (("evidence",), "score", "rubric"),
    ],
)
def test_a_stage_whose_material_is_missing_is_refused_and_says_how_to_make_it(
    lab: Lab, study: WriteStudy, made: tuple[Any, ...], asked: Any, command: str
) -> None:
    path = study(judges=["sim:balanced"], swap=[["*", "sim:strict"]])
    for workflow in made:
        lab.runs.run(path, workflows=[workflow])
    before = paid(lab)
    with pytest.raises(ConflictError, match=rf"judge-gym {command} ({path}|small/)"):
        lab.runs.run(path, workflows=[asked])
    assert paid(lab) == before


def test_stages_one_by_one_come_to_the_same_as_a_run(
    lab: Lab, study: WriteStudy, tmp_path: Path
) -> None:
    path = study(swap="all")
    for workflow in ("evidence", "rubric", "score", "swap", "probe"):
        stepped = lab.runs.run(path, workflows=[workflow])
    assert stepped.status == "complete"
    with Lab.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.runs.run(path)
        assert paid(lab) == paid(other)
        keys = ["tag", "evidence_title", "rubric_author", "replicate"]
        kept = [*keys, "status", "stages", "display", "probe"]
        pd.testing.assert_frame_equal(
            lab.experiments.samples("small")[kept].sort_values(keys, ignore_index=True),
            other.experiments.samples("small")[kept].sort_values(keys, ignore_index=True),
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"judges": ["sim:balanced", "openai:gpt-5.2"]},
        {"design": {"evidence.editor": "openai:gpt-5.2", "rubric.critic": "sim:critic"}},
        {"design": {"evidence.editor": "sim:editor", "rubric.critic": "openai:gpt-5.2"}},
        {"swap": [["*", "openai:gpt-5.2"]]},
        {"design": None, "assistant": "openai:gpt-5.2"},
    ],
    ids=["judge", "editor", "critic", "rival", "assistant"],
)
def test_a_model_that_cannot_be_called_is_refused_before_any_call(
    lab: Lab, study: WriteStudy, changes: dict[str, Any]
) -> None:
    with pytest.raises(DesignError, match=re.escape("openai:gpt-5.2")) as refusal:
        lab.runs.run(study(**changes))
    assert "sim:balanced" in refusal.value.choices
    assert count(lab, "attempts") == count(lab, "calls") == 0


def test_what_cannot_be_recorded_is_not_bought_any_longer(
    lab: Lab, study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = disturb(lab, lambda request: None)
    record, written = lab.store.ledger.record, 0

    def full(group: Sequence[store.Attempt], *, retry: bool = False) -> list[store.Answer]:
        nonlocal written
        written += len(group)
        if written > 10:
            raise StoreError("disk full")
        return record(group, retry=retry)

    monkeypatch.setattr(lab.store.ledger, "record", full)
    with pytest.raises(StoreError, match="disk full"):
        lab.runs.run(study(samples=50))
    assert len(models.asked) <= 10 + 2 * 64, "no more than was in flight"
