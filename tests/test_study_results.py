"""Results of studies are stored when they are computed, and computed again when data change."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judge_gym.lab import Lab
from judge_gym.lab.reports import Reports
from judge_gym.store.deployment import Deployment

WriteStudy = Callable[..., Path]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The studies whose judge tables were computed, in order."""
    names: list[str] = []
    compute = Reports.judges

    def count(self: Reports, target: str, **options: Any) -> Any:
        names.append(target)
        return compute(self, target, **options)

    monkeypatch.setattr(Reports, "judges", count)
    yield names


def test_a_judge_table_is_computed_once_for_all_processes(
    lab: Lab, write_study: WriteStudy, computed: list[str]
) -> None:
    lab.runs.run(write_study())
    assert lab.results.stored_judges("small") is None and computed == []
    table = lab.results.judges("small")
    with Lab.open(lab.admin.database_url) as other:
        assert other.results.stored_judges("small") == table == other.results.judges("small")
    assert computed == ["small"]


def test_results_are_computed_again_when_the_study_grows(
    lab: Lab, write_study: WriteStudy, computed: list[str]
) -> None:
    lab.runs.run(write_study())
    lab.results.judges("small")
    lab.runs.run(write_study(samples=3))
    assert lab.results.stored_judges("small") is None
    assert len(lab.results.judges("small")["rows"]) == 2
    assert computed == ["small", "small"]


def test_changes_in_place_are_noticed(lab: Lab, write_study: WriteStudy, tmp_path: Path) -> None:
    lab.runs.run(write_study())
    labels = tmp_path / "labels.csv"
    item = lab.experiments.list_items("small")[0]["evidence"]
    for stage in (1, 2):
        labels.write_text(f"item,rater,stage\n{item},ann,{stage}\n")
        lab.labels.import_file(labels, replace=True)
        assert lab.results.stored_judges("small") is None
        lab.results.judges("small")
    lab.labels.split("small")
    assert lab.results.stored_judges("small") is None


def test_reading_writes_nothing_to_a_production_database(
    lab: Lab, write_study: WriteStudy, computed: list[str]
) -> None:
    lab.runs.run(write_study())
    Deployment(lab.store.database).mark("prod")
    assert not lab.store.database.may_write
    assert lab.results.judges("small") == lab.results.judges("small")
    assert lab.results.stored_judges("small") is None
    assert computed == ["small", "small"]
