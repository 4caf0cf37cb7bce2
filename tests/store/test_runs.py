"""Experiments, runs, samples and probes: targets only rise, names move, nothing is lost."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.axes import Design
from judge_gym.errors import NotFoundError
from judge_gym.records import (
    STATUSES,
    Completion,
    Display,
    Draw,
    Evidence,
    Message,
    OrdinalRubric,
    Pool,
    Probe,
    Request,
    Rubric,
    RubricStage,
    Sample,
    Status,
    Window,
)
from judge_gym.store import Payer, Run, Store, Targets
from judge_gym.store import tables as t
from judge_gym.studies import Experiment, Task
from stores import blank, fresh, recorded

STAGES = (RubricStage("Calm", ("quiet",)), RubricStage("Stormy", ("loud",)))
TARGETS = Targets(samples=2, rivals=(), probe=True, tolerance=0.05)
SHOWN = Display(("B", "A"), (2, 1))


def experiment(
    store: Store, tag: str = "study/a", *, given: Rubric | None = None, **knobs: Any
) -> Experiment:
    """A saved experiment."""
    items = tuple(Evidence(f"T{n}", f"Text {n}", truth=n) for n in range(2))
    pool = store.evidence.save_pool(Pool(items, Window("Valdoria")))
    rubric = store.rubrics.save_given(given) if given else None
    task = Task("ecc", "fascism", "here", pool, rubric, dose=1.5, truth={"source": "index"})
    chosen = {name.replace("__", "."): level for name, level in knobs.items()}
    made = Experiment(tag, task, Design.of({"judge.model": "sim:strict", **chosen}), seed=3)
    store.experiments.save(made, "study")
    return made


def run_of(store: Store, of: Experiment, series: str = "3", **targets: Any) -> Run:
    wanted = TARGETS._replace(**targets)
    return store.runs.save(of, "study", series, wanted, makers=("v", "c"))


def call(store: Store, number: int) -> int:
    request = Request("sim:x", (Message("user", (str(number),)),), Draw("s", number))
    said = Completion(f"said {number}", "stop", "sim:x", 1, 1, 0.0)
    payer = Payer(1, "study", "study/a", "scorer")
    return recorded(store, request, payer, said).call_id


def rubric_of(store: Store, key: str = "rubric") -> Rubric:
    made = OrdinalRubric(STAGES, "sim:strict", "fascism", "Valdoria")
    store.rubrics.save(
        key, made, author="sim:strict", concept="fascism", country="Valdoria", scale=2
    )
    return replace(made, id=store.rubrics.id_of(key))


def rows(store: Store, table: sa.Table) -> list[dict[str, Any]]:
    with store.database.begin() as connection:
        return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


# --- experiments and their names -----------------------------------------------------------------


@pytest.mark.parametrize("given", [None, OrdinalRubric(STAGES, "provided", "fascism", "Valdoria")])
@pytest.mark.postgres
def test_a_saved_experiment_loads_unchanged(store: Store, given: Rubric | None) -> None:
    author = {"rubric__author": "provided"} if given else {}
    made = experiment(store, given=given, verdict__method="subset", **author)
    found, study = store.experiments.find(made.tag)
    assert (found, study) == (made, "study")
    assert found.digest == made.digest


@pytest.mark.postgres
def test_saving_an_experiment_again_changes_nothing(store: Store) -> None:
    experiment(store)
    before = rows(store, t.experiments), rows(store, t.tags)
    experiment(store)
    assert (rows(store, t.experiments), rows(store, t.tags)) == before


def test_truth_and_dose_are_annotations_that_may_change_under_the_same_experiment(
    store: Store,
) -> None:
    made = experiment(store)
    task = replace(made.task, dose=2.5, truth=None)
    store.experiments.save(replace(made, task=task), "study")
    [row] = rows(store, t.tags)
    assert (row["digest"], row["dose"], row["truth"]) == (made.digest, 2.5, None)


def test_a_corrected_truth_or_cluster_of_an_item_reaches_the_experiment(store: Store) -> None:
    made = experiment(store)
    items = made.task.pool.items
    corrected = tuple(replace(item, truth=9, cluster="outlet") for item in items)
    pool = store.evidence.save_pool(replace(made.task.pool, items=corrected))
    again = replace(made, task=replace(made.task, pool=pool))
    assert again.digest == made.digest
    store.experiments.save(again, "study")
    found, _ = store.experiments.find(made.tag)
    stored = [(item.truth, item.cluster) for item in found.task.pool.items]
    assert stored == [(9, "outlet"), (9, "outlet")]
    assert store.evidence.save_pool(replace(made.task.pool, items=items)).hash == pool.hash
    found, _ = store.experiments.find(made.tag)
    kept = [item.cluster for item in found.task.pool.items]
    assert kept == ["outlet"] * 2, "a file without the column changes no cluster"


@pytest.mark.postgres
def test_a_reused_tag_keeps_the_old_experiment_as_tag_at_digest(store: Store) -> None:
    first = experiment(store, verdict__method="single")
    second = experiment(store, verdict__method="subset")
    assert first.digest != second.digest
    assert store.experiments.find("study/a")[0].digest == second.digest
    kept = f"study/a@{first.digest[:8]}"
    assert store.experiments.find(kept)[0].digest == first.digest
    experiment(store, verdict__method="single")
    assert store.experiments.find("study/a")[0].digest == first.digest
    assert store.experiments.find(f"study/a@{second.digest[:8]}")[0].digest == second.digest


def test_an_unknown_tag_is_refused_with_similar_tags(store: Store) -> None:
    experiment(store, "study/fascism/here/sim:strict")
    with pytest.raises(NotFoundError) as refusal:
        store.experiments.find("sim:strict")
    assert refusal.value.choices == ("study/fascism/here/sim:strict",)
    assert "study/fascism/here/sim:strict" in refusal.value.message
    with pytest.raises(NotFoundError, match=r"call lab\.runs\.status"):
        store.experiments.find("nothing like it")


# --- runs and their targets ----------------------------------------------------------------------


@pytest.mark.postgres
def test_targets_of_one_run_add_up(store: Store) -> None:
    made = experiment(store)
    first = run_of(store, made, samples=3, rivals=("sim:a",), probe=False)
    second = run_of(store, made, samples=4, rivals=("sim:b",), probe=True, tolerance=0.2)
    assert second == replace(first, samples=4, rivals=("sim:a", "sim:b"), probe=True, tolerance=0.2)
    assert run_of(store, made, samples=4, rivals=(), probe=False, tolerance=0.2) == second
    assert store.runs.targets(made, "study") == Targets(4, ("sim:a", "sim:b"), True, 0.2)
    assert len(rows(store, t.runs)) == 1


def test_fewer_samples_may_be_asked_for_than_before_but_not_than_there_are(store: Store) -> None:
    made = experiment(store)
    run_of(store, made, samples=5)
    assert run_of(store, made, samples=3).samples == 5

    def exactly(samples: int) -> Run:
        wanted = TARGETS._replace(samples=samples)
        return store.runs.save(made, "study", "3", wanted, makers=("v", "c"), exact=True)

    run = exactly(3)
    assert run.samples == 3
    rubric, item = rubric_of(store), made.task.pool.items[0]
    asked = [Sample(rubric, item, n, SHOWN, "scored", (1,), call_id=call(store, n)) for n in (0, 1)]
    store.verdicts.save_samples(run, asked)
    assert exactly(1).samples == 2


def test_each_series_has_its_run_and_a_new_one_supersedes(store: Store) -> None:
    made = experiment(store)
    first, other = run_of(store, made), run_of(store, made, "again")
    new = store.runs.save(made, "study", "3", TARGETS, makers=("v", "c"), new=True)
    assert len({first.id, other.id, new.id}) == 3
    assert run_of(store, made).id == new.id
    assert run_of(store, made, "again").id == other.id
    superseded = {row["id"] for row in rows(store, t.runs) if row["superseded"]}
    assert superseded == {first.id}


@pytest.mark.postgres
def test_the_database_itself_allows_one_active_run_per_experiment_and_series(store: Store) -> None:
    run = run_of(store, experiment(store))
    [row] = rows(store, t.runs)
    for superseded in (datetime.now(UTC), datetime.now(UTC)):  # of these, any number
        with store.database.begin() as connection:
            values = {k: v for k, v in row.items() if k != "id"} | {"superseded": superseded}
            connection.execute(t.runs.insert().values(values))
    with pytest.raises(sa.exc.IntegrityError), store.database.begin() as connection:
        connection.execute(t.runs.insert().values({**row, "id": run.id + 99}))


# --- samples and probes --------------------------------------------------------------------------


def sample(run: Run, rubric: Rubric, n: int, status: Status, call_id: int) -> Sample:
    """The n-th sample of a run: two items, two replicates, own and swapped."""
    scored = status == "scored"
    return Sample(
        rubric=rubric,
        evidence=run.experiment.task.pool.items[n % 2],
        replicate=n // 2 % 2,
        display=SHOWN,
        status=status,
        stages=(1, 2) if scored else (),
        is_swap=n >= 4,
        call_id=call_id,
    )


@pytest.mark.postgres
def test_samples_load_unchanged_with_their_answers(store: Store) -> None:
    run, rubric = run_of(store, experiment(store)), rubric_of(store)
    made = [sample(run, rubric, n, "scored", call(store, n)) for n in range(4)]
    store.verdicts.save_samples(run, made)
    found = store.verdicts.unprobed(run, {rubric.id: rubric}, 0, 99, answers=True)
    assert [replace(s, id=0) for s, _ in found] == made
    assert [words for _, words in found] == [f"said {n}" for n in range(4)]
    first, *_, last = [s.id for s, _ in found]
    page = store.verdicts.unprobed(run, {rubric.id: rubric}, first, last - 1, answers=False)
    assert [s for s, _ in page] == [s for s, _ in found[1:3]]
    ranges = store.verdicts.unprobed_ranges(run, 3, only_failed=False)
    assert ranges == [[first - 1, last - 1], [last - 1, last]]


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.postgres
def test_only_a_scored_sample_without_an_answered_probe_is_to_be_probed(
    store: Store, status: Status
) -> None:
    run, rubric = run_of(store, experiment(store)), rubric_of(store)
    store.verdicts.save_samples(run, [sample(run, rubric, 0, status, call(store, 0))])

    def left() -> list[Sample]:
        found = store.verdicts.unprobed(run, {rubric.id: rubric}, 0, 9, answers=False)
        return [s for s, _ in found]

    assert len(left()) == (status == "scored")
    for target in left():
        for answer in STATUSES:
            store.verdicts.save_probes(run, [Probe(target, "provider_error", None, call(store, 1))])
            probability = 0.7 if answer == "scored" else None
            store.verdicts.save_probes(run, [Probe(target, answer, probability, call(store, 1))])
            assert bool(left()) == (answer == "provider_error")
            with store.database.begin() as connection:
                connection.execute(t.probes.delete())


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("template") / "lab.db"
    blank(file)
    return file


answered = st.sampled_from([status for status in STATUSES if status != "provider_error"])
finals = st.dictionaries(st.integers(0, 7), st.one_of(st.none(), answered), min_size=1)
"""What became of each sample in the end; None where it never got an answer."""


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(finals, st.data())
def test_samples_and_probes_saved_in_any_order_any_number_of_times_give_the_same_rows(
    template: Path, final: Mapping[int, Status | None], data: st.DataObject
) -> None:
    writes = [(n, "provider_error") for n in final] + [(n, s) for n, s in final.items() if s]
    again = data.draw(st.lists(st.sampled_from(writes), max_size=8))
    order = data.draw(st.permutations(writes + again))
    cut = data.draw(st.integers(1, len(order)))
    with fresh(template) as store:
        run, rubric = run_of(store, experiment(store)), rubric_of(store)
        calls = [call(store, n) for n in range(8)]
        made = [sample(run, rubric, n, s, calls[n]) for n, s in order]  # type: ignore[arg-type]
        store.verdicts.save_samples(run, made[:cut])
        store.verdicts.save_samples(run, made[cut:])
        found = {
            (row["evidence_id"], row["replicate"], row["is_swap"]): row
            for row in rows(store, t.samples)
        }
        expected = {n: status or "provider_error" for n, status in final.items()}
        keys = {n: sample(run, rubric, n, "scored", calls[n]) for n in final}
        assert {key: row["status"] for key, row in found.items()} == {
            (s.evidence.id, s.replicate, s.is_swap): expected[n] for n, s in keys.items()
        }
        assert all(
            (row["stages"] == "1 2") == (row["status"] == "scored") for row in found.values()
        )
        for swap in (False, True):
            mine = {n: s for n, s in keys.items() if s.is_swap == swap}
            last = max((s.replicate for s in mine.values()), default=0) + 1
            assert store.verdicts.sample_keys(run, rubric.id, swap, 0, last) == {
                (s.evidence.id, s.replicate, False): expected[n] for n, s in mine.items()
            }
            counted = store.verdicts.replicate_counts(run, rubric.id, swap)
            assert sum(done for done, _ in counted.values()) == sum(bool(final[n]) for n in mine)
            assert sum(lost for _, lost in counted.values()) == sum(not final[n] for n in mine)
        probed = {row["id"]: replace(keys[min(keys)], id=row["id"]) for row in found.values()}
        probes = [Probe(s, "scored", 0.5, calls[0]) for s in probed.values()]
        missing = [Probe(s, "provider_error", None, calls[0]) for s in probed.values()]
        store.verdicts.save_probes(run, data.draw(st.permutations([*probes, *missing, *probes])))
        kept = {row["sample_id"]: row["probability"] for row in rows(store, t.probes)}
        assert kept == dict.fromkeys(probed, 0.5)


# --- forgetting ----------------------------------------------------------------------------------


def filled(store: Store, of: Experiment, numbers: list[int]) -> Run:
    """A run with a sample and a probe for each of these calls."""
    run, rubric = run_of(store, of), rubric_of(store)
    store.runs.link_rubric(run, rubric.id, is_swap=False)
    store.verdicts.save_samples(
        run, [sample(run, rubric, n, "scored", call(store, n)) for n in numbers]
    )
    found = store.verdicts.unprobed(run, {rubric.id: rubric}, 0, 99, answers=False)
    store.verdicts.save_probes(run, [Probe(s, "scored", 0.6, call(store, 100)) for s, _ in found])
    return run


@pytest.mark.parametrize("ledger", [False, True])
@pytest.mark.postgres
def test_deleting_keeps_the_ledger_or_deletes_only_unshared_calls(
    store: Store, ledger: bool
) -> None:
    filled(store, experiment(store, "study/a"), [0, 1, 2])
    filled(store, experiment(store, "study/b", verdict__method="subset"), [2, 3])
    counts = store.experiments.delete("study/a", ledger=ledger, forget=True)
    assert counts == {"runs": 1, "samples": 3, "probes": 3, "calls": 2 if ledger else 0}
    kept = {row["draw"] for row in rows(store, t.calls)}
    assert kept == ({2, 3, 100} if ledger else {0, 1, 2, 3, 100})
    assert {row["call_id"] for row in rows(store, t.attempts)} == {
        row["id"] for row in rows(store, t.calls)
    }
    assert {row["tag"] for row in rows(store, t.tags)} == {"study/b"}
    assert len(rows(store, t.samples)) == len(rows(store, t.probes)) == 2
    assert len(rows(store, t.runs)) == len(rows(store, t.run_rubrics)) == 1
    with pytest.raises(NotFoundError):
        store.experiments.delete("study/a", ledger=ledger, forget=True)


def test_deleting_one_of_two_tags_keeps_the_experiment(store: Store) -> None:
    filled(store, experiment(store, "study/a"), [0])
    experiment(store, "other/a")
    assert set(store.experiments.delete("study/a", ledger=True, forget=True).values()) == {0}
    assert store.experiments.find("other/a")
    assert len(rows(store, t.samples)) == len(rows(store, t.probes)) == 1
