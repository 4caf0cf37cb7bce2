"""Counts and statuses are derived from rows; nothing is counted across runs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from judge_gym.axes import Design, defaults
from judge_gym.errors import NotFoundError
from judge_gym.lab import Lab
from judge_gym.records import (
    Completion,
    Critique,
    Display,
    Draw,
    Evidence,
    Message,
    OrdinalRubric,
    Pool,
    Probe,
    Request,
    RubricStage,
    Sample,
    Status,
    TaskType,
    View,
)
from judge_gym.store import Payer, Progress, Run, Store, Targets
from judge_gym.studies import Experiment, Task
from stores import recorded
from tables import each_row

STAGES = tuple(RubricStage(f"Stage {n}", ("a", "b")) for n in range(1, 5))
RUBRIC = OrdinalRubric(STAGES, "sim:strict", "fascism", "")
SHOWN = Display(("C", "A", "D", "B"), (1, 2, 3, 4))


def call(store: Store, number: int, *, ask: int = 0, stage: str = "scorer") -> int:
    request = Request("sim:x", (Message("user", (str(number),)),), Draw("s", number, ask))
    said = Completion("x", "stop", "sim:x-2026", 1, 1, 0.5)
    payer = Payer(1, "study", "study/a", stage)
    return recorded(store, request, payer, said).call_id


def experiment(
    store: Store, tag: str = "study/a", study: str = "study", type: TaskType = "ecc", **knobs: Any
) -> Experiment:
    items = (Evidence("T0", "Text 0", truth=2), Evidence("T1", "Text 1"))
    task = Task(type, "fascism", "here", store.evidence.save_pool(Pool(items)), dose=1.0)
    chosen = {name.replace("__", "."): level for name, level in knobs.items()}
    made = Experiment(tag, task, Design.of({"judge.model": "sim:strict", **chosen}), 3)
    store.experiments.save(made, study)
    return made


def start(store: Store, of: Experiment, *, new: bool = False, **targets: Any) -> Run:
    wanted = Targets(samples=2, rivals=(), probe=True, tolerance=0.0)._replace(**targets)
    return store.runs.save(of, "study", "3", wanted, makers=("v", "c"), new=new)


def make_views(store: Store, run: Run, *statuses: Status) -> None:
    views = [
        View(item, f"short {item.id}" if status == "scored" else None, status, call(store, n))
        for n, (item, status) in enumerate(
            zip(run.experiment.task.pool.items, statuses, strict=True)
        )
    ]
    store.evidence.save_views("v", "sim:editor", views)


def make_rubric(store: Store, run: Run, *, key: str = "own", is_swap: bool = False) -> int:
    store.rubrics.save(key, RUBRIC, author=key, concept="fascism", country="", scale=4)
    id = store.rubrics.id_of(key)
    store.runs.link_rubric(run, id, is_swap)
    return id


def make_samples(
    store: Store, run: Run, rubric_id: int, *statuses: Status, is_swap: bool = False
) -> None:
    """Item by item within a replicate."""
    items = run.experiment.task.pool.items
    made = [
        Sample(
            replace(RUBRIC, id=rubric_id),
            items[n % 2],
            n // 2,
            SHOWN,
            status,
            (2, 3) if status == "scored" else (),
            is_swap=is_swap,
            call_id=call(store, 10 + n),
        )
        for n, status in enumerate(statuses)
    ]
    store.verdicts.save_samples(run, made)


def make_probes(store: Store, run: Run, rubric_ids: list[int], *statuses: Status) -> None:
    by_id = {id: replace(RUBRIC, id=id) for id in rubric_ids}
    found = store.verdicts.unprobed(run, by_id, 0, 99, answers=False)
    store.verdicts.save_probes(
        run,
        [
            Probe(sample, status, 0.6 if status == "scored" else None, call(store, 90))
            for (sample, _), status in zip(found, statuses, strict=False)
        ],
    )


def progress(store: Store) -> Progress:
    [found] = store.progress.of_tag("study/a")
    return found


# --- the status of a run -------------------------------------------------------------------------


def stages(evidence: int, rubric: int, score: int, swap: int, probe: int) -> Mapping[str, int]:
    return {
        "evidence": evidence, "rubric": rubric, "score": score, "swap": swap, "probe": probe,
    }  # fmt: skip


WANTED = stages(2, 2, 4, 4, 8)


@each_row(
    ("targets", "done", "failed", "status"),
    [
        (WANTED, stages(0, 0, 0, 0, 0), {}, "pending"),
        (WANTED, stages(1, 0, 0, 0, 0), {}, "pending"),
        (WANTED, stages(0, 2, 0, 0, 0), {}, "pending"),
        (WANTED, stages(2, 0, 0, 0, 0), {}, "evidence-done"),
        (WANTED, stages(2, 1, 0, 0, 0), {}, "evidence-done"),
        (WANTED, stages(2, 2, 0, 0, 0), {}, "rubric-done"),
        (stages(0, 1, 4, 0, 0), stages(0, 0, 0, 0, 0), {}, "evidence-done"),
        (stages(0, 1, 4, 0, 0), stages(0, 1, 0, 0, 0), {}, "rubric-done"),
        (WANTED, stages(2, 2, 1, 0, 0), {}, "scoring"),
        (WANTED, stages(2, 2, 4, 3, 0), {}, "scoring"),
        (WANTED, stages(2, 1, 4, 0, 0), {}, "scoring"),
        (WANTED, stages(2, 2, 4, 4, 0), {}, "probing"),
        (WANTED, stages(2, 2, 4, 4, 7), {}, "probing"),
        (WANTED, WANTED, {}, "complete"),
        (WANTED, WANTED, {"score": 1}, "complete-with-failures"),
        (WANTED, WANTED, {"evidence": 1}, "complete-with-failures"),
        (stages(2, 1, 0, 0, 0), stages(2, 1, 0, 0, 0), {"rubric": 1}, "failed"),
    ],
)
def test_a_status_is_derived_from_targets_and_rows(
    targets: Mapping[str, int], done: Mapping[str, int], failed: Mapping[str, int], status: str
) -> None:
    lost = {**dict.fromkeys(WANTED, 0), **failed}
    assert Progress(1, "t", "s", targets, done, lost, {}, 0.05).status == status


@pytest.mark.postgres
def test_progress_counts_targets_results_and_failures_of_each_stage(store: Store) -> None:
    run = start(store, experiment(store), rivals=("sim:rival",))
    assert progress(store).targets == stages(2, 1, 4, 4, 8)
    make_views(store, run, "scored", "scored")
    own, rival = make_rubric(store, run), make_rubric(store, run, key="sim:rival", is_swap=True)
    make_samples(store, run, own, "scored", "abstained", "refused", "provider_error")
    make_samples(store, run, rival, "scored", "scored", "truncated", is_swap=True)
    make_probes(store, run, [own, rival], "scored", "provider_error")
    found = progress(store)
    assert found.targets == stages(2, 1, 4, 4, 8), "it stays as it was"
    assert found.done == stages(2, 1, 4, 3, 2 + 4), "four verdicts are not scored"
    assert found.not_needed == {"score": 0, "swap": 0, "probe": 4}
    assert found.failed == stages(0, 0, 1, 0, 1)
    assert found.statuses == {
        "scored": 3, "abstained": 1, "refused": 1, "provider_error": 1, "truncated": 1,
    }  # fmt: skip
    assert found.status == "scoring"
    assert found.failed_share == pytest.approx(2 / 15)


def test_an_item_without_a_view_counts_as_failed(store: Store) -> None:
    run = start(store, experiment(store))
    make_views(store, run, "scored", "refused")
    found = progress(store)
    assert (found.targets["score"], found.not_needed["score"], found.done["score"]) == (4, 2, 2)
    assert (found.done["evidence"], found.failed["evidence"]) == (2, 1)
    assert found.status == "evidence-done", "nothing is scored yet"


def test_a_run_without_any_rubric_has_failed(store: Store) -> None:
    run = start(store, experiment(store))
    make_views(store, run, "scored", "scored")
    store.rubrics.save(
        "own", "parse_failed", asks=3, author="x", concept="fascism", country="", scale=4
    )
    store.runs.link_rubric(run, store.rubrics.id_of("own"), is_swap=False)
    found = progress(store)
    assert (found.status, found.failed["rubric"]) == ("failed", 1)
    assert found.targets["score"] == found.not_needed["score"] == 4
    assert found.message == "nothing can be scored: there is no rubric"


@pytest.mark.postgres
def test_a_superseded_run_is_counted_nowhere(store: Store) -> None:
    made = experiment(store)
    old = start(store, made)
    make_samples(store, old, make_rubric(store, old), "scored", "scored", "scored", "scored")
    new = start(store, made, new=True)
    assert progress(store).run_id == new.id
    assert progress(store).done == stages(0, 0, 0, 0, 0)
    assert list(store.samples.rows(["study/a"])) == []
    assert store.rubrics.of_experiment("study/a") == []
    make_samples(store, new, make_rubric(store, new), "scored")
    assert [row["run"] for row in store.samples.rows(["study/a"])] == [new.id]


def make_many(store: Store, count: int) -> list[str]:
    """Experiments on one pool, each with a run of which some calls failed, under two tags."""
    tags = []
    for number in range(count):
        one = experiment(store, f"study/{number}", judge__max_tokens=100 + number)
        store.experiments.save(replace(one, tag=f"again/{number}"), "study")
        run = start(store, one, samples=1 + number % 3)
        rubric_id = make_rubric(store, run, key=f"rubric {number}")
        make_samples(store, run, rubric_id, "scored", "provider_error", "abstained")
        store.events.record([run.id], "started", f"number {number}")
        tags += [f"study/{number}", f"again/{number}"]
    return tags


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """The SQL that is executed meanwhile."""
    seen: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    sa.event.listen(store.database.engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(store.database.engine, "before_cursor_execute", note)


@pytest.mark.postgres
def test_progress_of_many_experiments_is_that_of_each(store: Store) -> None:
    tags = [*make_many(store, 4), "study/unrun"]
    experiment(store, "study/unrun", judge__max_tokens=9)
    found = store.progress.of_tags(tags)
    assert list(found) == tags and found["study/unrun"] == []
    for tag in tags:
        assert found[tag] == store.progress.of_tag(tag)
    for number in range(4):
        [one], [again] = found[f"study/{number}"], found[f"again/{number}"]
        assert one == replace(again, tag=one.tag)
        assert one.targets["score"] == 2 * (1 + number % 3)
        assert one.done["score"] == 3 and one.failed["score"] == 1
        [reason] = store.progress.failures([one.run_id])[one.run_id]
        assert (reason["stage"], reason["count"]) == ("score", 1)


@pytest.mark.postgres
def test_listing_needs_as_many_statements_for_many_experiments_as_for_few(store: Store) -> None:
    lab = Lab(store)

    def listing(limit: int) -> list[str]:
        with statements(store) as seen:
            assert len(lab.experiments.page(limit=limit).rows) == limit
        return seen

    make_many(store, 20)
    assert len(listing(2)) == len(listing(40)) < 25


# --- tidy rows and lists -------------------------------------------------------------------------


@pytest.mark.postgres
def test_a_tidy_row_carries_verdict_display_rubric_probe_and_call(store: Store) -> None:
    run = start(store, experiment(store))
    rubric_id = make_rubric(store, run)
    make_samples(store, run, rubric_id, "scored", "abstained")
    make_probes(store, run, [rubric_id], "scored")
    critique = Critique(replace(RUBRIC, id=rubric_id), "sim:c", "scored", 0.8, 0.4, call(store, 5))
    store.rubrics.save_critique("c", critique)
    store.rubrics.save_critique("another critic", replace(critique, observability=0.1))
    first, second = store.samples.rows(["study/a"])
    expected = {
        "tag": "study/a",
        "study": "study",
        "task_type": "ecc",
        "concept": "fascism",
        "pool": "here",
        "dose": 1.0,
        "series": "3",
        "evidence_title": "T0",
        "cluster": "",
        "truth": 2,
        "replicate": 0,
        "flipped": False,
        "is_swap": False,
        "status": "scored",
        "stages": "2 3",
        "n_stages": 4,
        "display": "C=1 A=2 D=3 B=4",
        "probe": 0.6,
        "probe_status": "scored",
        "rubric_kind": "ordinal",
        "rubric_author": "own",
        "observability": 0.8,
        "discriminability": 0.4,
        "call_id": call(store, 10),
        "reported_model": "sim:x-2026",
        "usd": 0.5,
    }
    assert {name: first[name] for name in expected} == expected
    empty = ("truth", "probe", "probe_status")
    assert [second[name] for name in empty] == [None, None, None]
    assert (second["status"], second["stages"]) == ("abstained", "")


def test_critics_scores_are_null_until_given(store: Store) -> None:
    run = start(store, experiment(store))
    make_rubric(store, run)
    [row] = store.rubrics.of_experiment("study/a")
    assert (row["observability"], row["discriminability"], row["critic"]) == (None, None, None)
    assert [label for label, *_ in row["stages"]] == [stage.label for stage in STAGES]


@pytest.mark.postgres
def test_experiments_are_listed_by_study_type_and_tag(store: Store) -> None:
    experiment(store, "study/a")
    experiment(store, "study/b", type="control")
    experiment(store, "other/a", study="other", verdict__method="subset")

    def listed(**wanted: Any) -> list[str]:
        return [row["tag"] for row in store.experiments.rows(**wanted)]

    assert listed() == ["other/a", "study/a", "study/b"]
    assert listed(study="study") == ["study/a", "study/b"]
    assert listed(task_type="control") == ["study/b"]
    assert listed(study="other", task_type="control") == []
    assert listed(tags=["other/a"]) == ["other/a"]
    [row] = store.experiments.rows(tags=["other/a"])
    assert row["design"] == {**defaults(), "judge.model": "sim:strict", "verdict.method": "subset"}
    with pytest.raises(NotFoundError, match="study/c"):
        store.experiments.rows(tags=["study/a", "study/c"])


def test_re_asks_of_rubrics_are_counted(store: Store) -> None:
    assert store.usage.asks("study") == {"asked": 0, "again": 0}
    for number, ask in ((0, 0), (0, 1), (0, 2), (1, 0)):
        call(store, number, ask=ask, stage="rubricer")
    call(store, 7)
    assert store.usage.asks("study") == {"asked": 4, "again": 2}
    assert store.usage.asks("other") == {"asked": 0, "again": 0}
