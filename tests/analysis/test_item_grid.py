"""Disagreement on items, by setups of several kinds of rubrics."""

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.item_grid import Cell, ItemGrid
from judge_gym.analysis.judges.table import judge_table


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([("1", 4, True), ("4", 4, True)], 1.0),
        ([("1,4", 4, True), ("1,4", 4, True)], 0.5),
        ([("2", 4, True), ("3", 4, True), ("3", 4, True)], 2 / 3),
        ([("2 3", 4, True), ("2", 4, True)], 1.0),  # another verdict than either of its stages
        ([("1", 3, True), ("1", 5, True)], np.nan),  # scales of different lengths
        ([("1", 3, True), ("1", 3, True), ("3", 5, True), ("2", 5, True)], 0.5),
        ([("1", 3, False), ("1,2", 3, False)], 0.5),
        ([("abstained", 4, True), ("1", 4, True)], np.nan),  # one verdict
        ([("1,2,refused", 2, True)], 1.0),  # two repeats of a single setup
    ],
)
def test_disagreement_is_the_chance_that_two_verdicts_differ(
    cells: list[tuple[str, int, bool]], expected: float
) -> None:
    grid = ItemGrid([Cell(0, setup, *cell) for setup, cell in enumerate(cells)], [0])
    setups = range(len(cells))
    assert grid.disagreement(setups) == pytest.approx([expected], nan_ok=True)


def test_the_disagreement_of_items_is_the_measure_of_the_judge_table() -> None:
    rng = np.random.default_rng(4)
    drawn = rng.choice(["1", "2", "3", "2 3"], (3, 30, 2))
    rows = [
        {"judge.model": f"x:{judge}", "evidence": item, "replicate": repeat, "n_stages": 3}
        | {"status": "scored", "stages": drawn[judge, item, repeat]}
        for judge, item, repeat in np.ndindex(drawn.shape)
    ]
    table = judge_table(tidy(pd.DataFrame(rows)))
    of_setups = [row["disagreement"] for row in table["rows"]]
    cells = [
        Cell(item, judge, ",".join(drawn[judge, item]), 3, True)
        for judge, item in np.ndindex(drawn.shape[:2])
    ]
    items = ItemGrid(cells, [0] * 30).disagreement(range(3))
    means = [quantity["value"] for quantity in of_setups if quantity is not None]
    assert items.mean() == pytest.approx(np.mean(means)) and len(means) == 3


def test_verdicts_under_several_rubrics_add_up_and_other_setups_do_not_count() -> None:
    cells = [Cell(0, 0, "1", 2, True), Cell(0, 0, "2,2", 2, True), Cell(0, 1, "2", 2, True)]
    grid = ItemGrid([*cells, Cell(0, 2, "1", 2, True)], [2])
    assert grid.disagreement([0, 1]) == pytest.approx([1 / 3])
    assert grid.counts(0)[0] == {"1": 1, "2": 2}
    assert grid.wrong([1]).tolist() == [False] and grid.wrong([2]).tolist() == [True]
    assert grid.with_status("scored", [1]).tolist() == [True]
    assert grid.with_status("refused", [0, 1, 2]).tolist() == [False]
