"""What was spent is the sum of all attempts, however often one looks."""

from pathlib import Path

from judge_gym.lab import Lab
from judge_gym.store import Spent
from served import create, fill


def summed(lab: Lab) -> dict[tuple[str, str], tuple[int, float]]:
    """The same by another way."""
    rows = lab.usage(by=["study", "tag"])
    return {(row["study"], row["tag"]): (row["attempts"], row["usd"] or 0.0) for row in rows}


def told(lab: Lab) -> dict[tuple[str, str], tuple[int, float]]:
    return {key: (sums.attempts, sums.usd) for key, sums in lab.store.spending.by_tag().items()}


def test_sums_follow_what_is_added_and_what_is_cleaned_up(tmp_path: Path) -> None:
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        window = fill(lab, tmp_path)
        create(lab, window, "one")
        create(lab, window, "two", "sim:strict")
        assert told(lab) == {}
        lab.run("one", samples=2)
        first = told(lab)
        assert first == summed(lab) and set(first) == {("", "one")}
        lab.run("two", samples=2)
        assert told(lab) == summed(lab) != first
        lab.cleanup("two", ledger=True)
        assert told(lab) == summed(lab)
        assert told(lab) == told(lab)


def test_unpriced_answers_and_failures_are_counted_apart() -> None:
    both = Spent(3, 1, 2, 0.5) + Spent(1, 0, 0, 0.25)
    assert both == Spent(4, 1, 2, 0.75)
