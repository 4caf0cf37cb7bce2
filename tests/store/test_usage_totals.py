"""What was spent is the sum of all attempts, however often one looks."""

from pathlib import Path

import pytest

from judge_gym.lab import Lab
from judge_gym.records import Completion, Draw, Message, Request
from judge_gym.store import Payer, Store
from lab_server import create, fill
from stores import recorded


def summed(lab: Lab) -> dict[tuple[str, str], tuple[int, float]]:
    """The same by another way."""
    rows = lab.reports.usage(by=["study", "tag"])
    return {(row["study"], row["tag"]): (row["attempts"], row["usd"] or 0.0) for row in rows}


def told(lab: Lab) -> dict[tuple[str, str], tuple[int, float]]:
    found: dict[tuple[str, str], tuple[int, float]] = {}
    for row in lab.store.usage_totals.rows():
        key = (row["study"], row["tag"])
        attempts, usd = found.get(key, (0, 0.0))
        found[key] = (attempts + row["attempts"], usd + (row["usd"] or 0.0))
    return found


def test_usage_totals_follow_added_and_deleted_attempts(tmp_path: Path) -> None:
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as lab:
        window = fill(lab, tmp_path)
        create(lab, window, "one")
        create(lab, window, "two", "sim:strict")
        assert told(lab) == {}
        lab.runs.run("one", samples=2)
        first = told(lab)
        assert first == summed(lab) and set(first) == {("", "one")}
        lab.runs.run("two", samples=2)
        assert told(lab) == summed(lab) != first
        lab.experiments.cleanup("two", ledger=True)
        assert told(lab) == summed(lab)
        assert told(lab) == told(lab)


@pytest.mark.postgres
def test_unpriced_calls_and_failures_are_counted_separately(store: Store) -> None:
    payer = Payer(1, "study", "study/tag", "scorer")
    for index, usd in enumerate((0.25, None, 0.5)):
        request = Request("lab:any", (Message("user", ("Judge",)),), Draw("7", index, 0))
        recorded(store, request, payer, Completion("yes", "stop", "any", 10, 4, usd))
    lost = Request("lab:any", (Message("user", ("Judge",)),), Draw("7", 9, 0))
    recorded(store, lost, payer, error="gone")
    [row] = store.usage_totals.rows()
    assert (row["attempts"], row["calls"], row["unpriced"], row["usd"]) == (4, 3, 1, 0.75)


@pytest.mark.postgres
def test_usage_by_provider_adds_up_the_models_of_each(store: Store) -> None:
    payer = Payer(1, "study", "study/tag", "scorer")
    models = {"openai:gpt-4.1": 0.25, "openai:gpt-5.2": 0.5, "xai:grok-4": 0.125}
    for model, usd in models.items():
        request = Request(model, (Message("user", ("Judge",)),), Draw("7", 0, 0))
        recorded(store, request, payer, Completion("yes", "stop", model, 10, 4, usd))
    rows = store.usage.rows(by=["stage", "provider"])
    assert [(row["provider"], row["calls"], row["usd"]) for row in rows] == [
        ("openai", 2, 0.75),
        ("xai", 1, 0.125),
    ]
    assert all(row["stage"] == "scorer" and "model" not in row for row in rows)
