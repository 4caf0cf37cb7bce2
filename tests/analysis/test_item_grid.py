"""Disagreement on items, by setups of several kinds of rubrics."""

import numpy as np
import pytest

from judge_gym.analysis.item_grid import Cell, ItemGrid


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([("1", 4, True), ("4", 4, True)], 1.0),
        ([("1,4", 4, True), ("1,4", 4, True)], 0.5),
        ([("2", 4, True), ("3", 4, True), ("3", 4, True)], 2 / 9),
        ([("2 3", 4, True), ("2", 4, True)], 1 / 6),
        ([("1", 3, True), ("3", 5, True)], 0.5),  # half of either scale
        ([("1", 3, False), ("3", 3, False)], 1.0),
        ([("1", 3, False), ("1,2", 3, False)], 0.5),
        ([("abstained", 4, True), ("1", 4, True)], np.nan),  # one verdict
        ([("1,2,refused", 2, True)], 1.0),  # two repeats of a single setup
    ],
)
def test_disagreement_is_the_expected_distance_of_two_verdicts(
    cells: list[tuple[str, int, bool]], expected: float
) -> None:
    grid = ItemGrid([Cell(0, setup, *cell) for setup, cell in enumerate(cells)], [0])
    setups = range(len(cells))
    assert grid.disagreement(setups) == pytest.approx([expected], nan_ok=True)


def test_verdicts_under_several_rubrics_add_up_and_other_setups_do_not_count() -> None:
    cells = [Cell(0, 0, "1", 2, True), Cell(0, 0, "2,2", 2, True), Cell(0, 1, "2", 2, True)]
    grid = ItemGrid([*cells, Cell(0, 2, "1", 2, True)], [2])
    assert grid.disagreement([0, 1]) == pytest.approx([1 / 3])
    assert grid.counts(0)[0] == {"1": 1, "2": 2}
    assert grid.wrong([1]).tolist() == [False] and grid.wrong([2]).tolist() == [True]
    assert grid.with_status("scored", [1]).tolist() == [True]
    assert grid.with_status("refused", [0, 1, 2]).tolist() == [False]
