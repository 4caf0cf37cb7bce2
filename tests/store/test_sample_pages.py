"""Samples are found by what is asked of them, page by page, from either end."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.measures.consistency import conflicting_cells
from judge_gym.errors import NotFoundError
from judge_gym.lab import Lab
from judge_gym.store import Selection, samples
from judge_gym.store import tables as t
from lab_server import create, fill

TAG = "pilot"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """An experiment with two series, two rubrics of its own, a rival's, and some failures."""
    folder = tmp_path_factory.mktemp("browsed")
    with Lab.open(f"sqlite:///{folder / 'lab.db'}") as opened:
        window = fill(opened, folder)
        config: dict[str, Any] = {"rubric.draws": 2, "verdict.method": "subset"}
        create(opened, window, TAG, **config)
        create(opened, window, "other", "sim:strict")
        opened.runs.run(TAG, samples=6, rivals=["sim:strict"])
        opened.runs.run(TAG, samples=2, series="again")
        opened.runs.run("other", samples=1)
        rows = opened.list_experiment_samples(TAG)
        ids = [row["sample"] for row in rows][::7]
        disputed = [row for row in rows if row["evidence"] == rows[-1]["evidence"]]
        failed = {"status": "provider_error", "stages": ""}
        with opened.store.database.begin() as connection:
            for row in disputed:
                stages = "4" if row["replicate"] % 2 else "1 2"
                one = t.samples.c.id == row["sample"]
                connection.execute(sa.update(t.samples).where(one).values(stages=stages))
            lost = t.samples.c.id.in_(ids)
            connection.execute(sa.update(t.samples).where(lost).values(failed))
        yield opened


def cells(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int, int], list[set[str]]]:
    """The scored sets of stages of each run, rubric and item."""
    found: dict[tuple[int, int, int], list[set[str]]] = {}
    for row in rows:
        chosen = found.setdefault((row["run"], row["rubric"], row["evidence"]), [])
        if row["status"] == "scored":
            chosen.append(set(row["stages"].split()))
    return found


def is_disputed(chosen: list[set[str]]) -> bool:
    pairs = [one & other for n, one in enumerate(chosen) for other in chosen[n + 1 :]]
    return bool(pairs) and sum(not both for both in pairs) >= len(pairs) / 2


def wanted(lab: Lab, which: Selection) -> set[int]:
    """What a filter means, said without a database."""
    rows = lab.list_experiment_samples(TAG)
    disputed = {key for key, chosen in cells(rows).items() if is_disputed(chosen)}
    return {
        row["sample"]
        for row in rows
        if which.run in (None, row["run"])
        and which.rubric in (None, row["rubric"])
        and which.evidence in (None, row["evidence"])
        and which.status in (None, row["status"])
        and which.swap in (None, row["is_swap"])
        and (which.stage is None or str(which.stage) in row["stages"].split())
        and (not which.disputed or (row["run"], row["rubric"], row["evidence"]) in disputed)
    }


def walk(lab: Lab, which: Selection, limit: int) -> list[int]:
    """All pages one after the other, each found again from the page behind it."""
    ids: list[int] = []
    page = lab.store.samples.browse(TAG, which, limit=limit)
    assert page.before is None
    for _ in range(500):
        ids += [row["sample"] for row in page.rows]
        if page.after is None:
            return ids
        behind = lab.store.samples.browse(TAG, which, after=page.after, limit=limit)
        if page.rows and behind.rows:
            back = lab.store.samples.browse(TAG, which, before=behind.before, limit=1)
            while not back.rows and back.before is not None:  # a search may take several pages
                back = lab.store.samples.browse(TAG, which, before=back.before, limit=1)
            assert [row["sample"] for row in back.rows] == ids[-1:]
        page = behind
    raise AssertionError("pages without end")


def filters(lab: Lab) -> list[Selection]:
    rows = lab.list_experiment_samples(TAG)
    first = rows[0]
    return [
        Selection(),
        Selection(run=first["run"]),
        Selection(rubric=first["rubric"]),
        Selection(evidence=first["evidence"]),
        Selection(status="scored"),
        Selection(status="provider_error"),
        Selection(status="refused"),
        Selection(status="provider_error", evidence=first["evidence"]),
        Selection(status="scored", rubric=first["rubric"]),
        *(Selection(stage=stage) for stage in range(1, 5)),
        Selection(stage=2, status="scored", swap=True),
        Selection(swap=True),
        Selection(swap=False),
        Selection(disputed=True),
        Selection(disputed=True, swap=False, stage=3),
        Selection(disputed=True, evidence=first["evidence"]),
    ]


@pytest.mark.slow
def test_every_filter_returns_its_samples_once_and_in_order(lab: Lab) -> None:
    for which in filters(lab):
        ids = walk(lab, which, 7)
        assert len(ids) == len(set(ids)), which
        assert set(ids) == wanted(lab, which), which
        for limit in (3, 1000):
            assert walk(lab, which, limit) == ids, which
    assert wanted(lab, Selection(disputed=True)) and wanted(lab, Selection(status="provider_error"))


@pytest.mark.slow
def test_a_page_continues_where_the_scan_limit_stopped_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "SCAN", 9)
    for which in filters(lab):
        assert set(walk(lab, which, 3)) == wanted(lab, which), which
    first = lab.store.samples.browse(TAG, Selection(stage=9), limit=3)
    assert first.rows == [] and first.cut and first.after is not None


def test_disputed_cells_are_those_that_analysis_calls_conflicting(tmp_path: Path) -> None:
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as opened:
        create(opened, fill(opened, tmp_path), TAG, "sim:cautious")
        opened.runs.run(TAG, samples=12)
        found = conflicting_cells(tidy(opened.experiments.samples(TAG)))
        rows = opened.store.samples.browse(TAG, Selection(disputed=True), limit=1000).rows
    assert {row["evidence"] for row in rows} == set(found["evidence"])
    assert rows


def test_an_unknown_cursor_or_tag_gives_an_empty_page(lab: Lab) -> None:
    assert lab.store.samples.browse(TAG, Selection(), after=10**6, limit=3).rows == []
    assert lab.store.samples.browse("nothing", Selection(), limit=3).rows == []


def test_a_sample_is_found_by_its_number_under_its_experiment(lab: Lab) -> None:
    for row in lab.list_experiment_samples(TAG)[:3]:
        found, listed = lab.store.samples.find(row["sample"], "other"), dict(row)
        same = {name: listed[name] for name in found}
        assert {**found, "truth": None} == {**same, "truth": None}
    with pytest.raises(NotFoundError, match="no sample 999999"):
        lab.store.samples.find(999999)


def test_experiment_list_paginates_in_both_directions(lab: Lab) -> None:
    experiments = lab.store.experiments
    every = sorted(row["tag"] for row in experiments.rows())
    first = experiments.page(limit=1)
    assert ([row["tag"] for row in first.rows], first.previous) == (every[:1], None)
    second = experiments.page(after=first.next, limit=1)
    assert [row["tag"] for row in second.rows] == every[1:2]
    assert (second.next, second.previous) == (None, every[1])
    assert experiments.page(before=second.previous, limit=1) == first
    assert experiments.page(before=every[0], limit=1).rows == []


def test_experiments_are_paged_by_their_judge(lab: Lab) -> None:
    experiments = lab.store.experiments
    assert sorted(experiments.judges()) == ["sim:balanced", "sim:strict"]
    assert [
        row["tag"] for row in experiments.page(after=None, limit=9, judge="sim:strict").rows
    ] == ["other"]
    assert lab.store.studies.counts() == {"": 2}
