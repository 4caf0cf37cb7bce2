"""The page on recorded judges: its own computations, and whether it is up to date."""

import numpy as np
import pytest

from judge_gym.recorded.importers import llmbar
from published_data import published
from recorded_judges import (
    PAGE,
    Data,
    best_on_other_folds,
    effective_votes,
    wrap,
    write_page,
)


def test_judges_with_equal_errors_have_one_vote() -> None:
    errors = np.tile([[0.0], [1.0], [1.0], [0.0]], (5, 3))
    assert effective_votes(errors).value == pytest.approx(1)


def test_judges_with_unrelated_errors_have_all_their_votes() -> None:
    both, first, second, none = [1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]
    assert effective_votes(np.array([both, first, second, none])).value == pytest.approx(2)


def test_the_best_judge_is_chosen_without_the_items_that_it_is_scored_on() -> None:
    """One judge is right everywhere, another only on the item of the first cluster."""
    right = np.column_stack([np.ones(40), np.eye(40)[0]])
    assert best_on_other_folds(right, np.arange(40)).mean() == 1
    alone = np.column_stack([np.full(40, 0.5), np.where(np.arange(40) < 20, 1.0, 0.2)])
    chosen = best_on_other_folds(alone, np.repeat([0, 1], 20))
    assert chosen.tolist() == [0.5] * 20 + [0.2] * 20


def test_tables_and_commands_keep_their_lines() -> None:
    page = "# A\n\nwords\nand words\n\n| a |\n| --- |\n\n    command\n    another"
    assert wrap(page) == "# A\n\nwords and words\n\n| a |\n| --- |\n\n    command\n    another"


@pytest.mark.slow
def test_the_page_is_up_to_date_with_the_published_data() -> None:
    [recording] = llmbar.read(published("llmbar"))
    page = wrap(write_page(Data(recording)).rstrip()) + "\n"
    assert page == PAGE.read_text(encoding="utf-8")
