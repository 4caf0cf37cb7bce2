"""Disagreement on items, by setups of several kinds of rubrics."""

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.item_grid import DIVIDED, Cell, ItemGrid, most_frequent
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


# --- beside people's labels ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "labels", "expected"),
    [
        ([("1", 4, True)], [0, 0, 0, 1], 3),  # stages apart
        ([("1", 4, False)], [0, 0, 0, 1], 1),  # only unequal
        ([("2,2,4", 4, True)], [0, 1, 0, 0], 2 / 3),  # the mean over repeats
        ([("2", 4, True)], [0, 1, 0, 1], 1),  # and over raters
        ([("1 3", 4, True)], [1, 0, 0, 0], 1),  # and over the stages of one verdict
        ([("1", 4, True), ("4,4,4", 4, True)], [1, 0, 0, 0], 1.5),  # every setup alike
        ([("abstained,2", 4, True)], [1, 0, 0, 0], 1),
        ([("abstained", 4, True)], [1, 0, 0, 0], np.nan),
        ([("1", 4, True)], [0, 0, 0, 0], np.nan),
    ],
)
def test_the_distance_from_people_is_that_of_a_verdict_and_a_label(
    cells: list[tuple[str, int, bool]], labels: list[int], expected: float
) -> None:
    grid = ItemGrid(
        [Cell(0, setup, *cell) for setup, cell in enumerate(cells)], [0], np.array([labels])
    )
    assert grid.from_people(range(len(cells))) == pytest.approx([expected], nan_ok=True)


def test_a_verdict_is_held_against_what_most_people_said() -> None:
    labels = np.array([[3, 1], [1, 1], [0, 2], [0, 0]])
    said = ["1,1,2", "1", "abstained", "2"]
    grid = ItemGrid(
        [Cell(n, 0, verdicts, 2, True) for n, verdicts in enumerate(said)], [0] * 4, labels
    )
    assert grid.majority.tolist() == [1, DIVIDED, 2, 0]
    assert grid.against_people([0]).tolist() == [False, False, True, False]
    assert grid.crossed(0, grid.majority) == [(0, "1"), (1, "1"), (2, "abstained")]
    assert grid.with_verdict(["1"] * 4, [0]).tolist() == [True, True, False, False]
    assert grid.with_verdict(["abstained"] * 4, [0]).tolist() == [False, False, True, False]
    assert not grid.with_verdict(["1"] * 4, [1]).any()


def test_a_verdict_of_several_stages_is_not_held_against_people_who_named_one_of_them() -> None:
    labels = np.array([[0, 1, 0], [0, 1, 0]])
    grid = ItemGrid([Cell(0, 0, "1 2", 3, True), Cell(1, 0, "1 3", 3, True)], [2, 2], labels)
    assert grid.against_people([0]).tolist() == [False, True] == grid.wrong([0]).tolist()


def test_the_usual_verdict_is_that_of_all_rubrics_together() -> None:
    cells = [Cell(0, 0, "1", 2, True), Cell(0, 0, "2,2", 2, True), Cell(0, 1, "1", 2, True)]
    grid = ItemGrid(cells, [2])
    for setup, verdict in ((0, "2"), (1, "1")):
        assert most_frequent(grid.counts(0)[setup]) == verdict
        assert grid.with_verdict([verdict], [setup]).tolist() == [True]
    assert grid.wrong([0]).tolist() == [False]
