"""What runs share: every write has a key, so saving anything again, in any order, is nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.records import (
    Completion,
    Critique,
    Draw,
    Evidence,
    Message,
    NominalRubric,
    OrdinalRubric,
    Pool,
    Request,
    Rubric,
    RubricStage,
    Status,
    View,
)
from judge_gym.store import Payer, Store
from judge_gym.store import tables as t
from stores import fresh, in_any_order, recorded, rows

ITEMS = tuple(Evidence(f"Title {n}", f"Text {n} ☃", f"https://x/{n}", truth=n) for n in range(4))
STAGES = (RubricStage("Calm", ("quiet", "still")), RubricStage("Stormy", ("loud",)))
FAILED: tuple[Status, ...] = ("provider_error", "refused", "truncated", "parse_failed")


def call(store: Store, number: int) -> int:
    """A call to point at."""
    request = Request("sim:x", (Message("user", (str(number),)),), Draw("s", number))
    said = Completion("x", "stop", "sim:x", 1, 1, 0.0)
    return recorded(store, request, Payer(1, "s", "t", "scorer"), said).call_id


# --- views, rubrics, critiques -------------------------------------------------------------------


@pytest.mark.postgres
def test_views_are_found_by_maker_if_they_have_a_text(store: Store) -> None:
    pool = store.evidence.save_pool(Pool(ITEMS))
    made = [View(pool.items[0], "short 0", "scored", call(store, 0))]
    made += [View(pool.items[1], None, "refused", call(store, 1))]
    store.evidence.save_views("maker", "sim:editor", made)
    assert store.evidence.view_texts("maker", pool) == {pool.items[0].id: "short 0"}
    assert store.evidence.view_texts("another maker", pool) == {}
    other = store.evidence.save_pool(Pool(ITEMS[1:]))
    assert store.evidence.view_texts("maker", other) == {}


@pytest.mark.parametrize("kind", [OrdinalRubric, NominalRubric])
def test_a_provided_rubric_loads_unchanged_without_critic_scores(
    store: Store, kind: type[OrdinalRubric] | type[NominalRubric]
) -> None:
    given = kind(STAGES, "provided", "severity", "")
    saved = store.rubrics.save_given(given)
    assert store.rubrics.save_given(given) == saved
    assert store.rubrics.find(id=saved.id) == saved
    assert replace(saved, id=0) == given
    assert rows(store, t.critiques) == []


def save_rubric(store: Store, key: str, what: Rubric | Status, asks: int, call_id: int) -> int:
    store.rubrics.save(
        key,
        what,
        asks=asks,
        call_id=call_id,
        author="sim:x",
        concept="fascism",
        country="Valdoria",
        scale=2,
    )
    return store.rubrics.id_of(key)


@pytest.mark.parametrize("status", FAILED)
@pytest.mark.postgres
def test_a_written_rubric_replaces_the_record_of_a_failed_one(store: Store, status: Status) -> None:
    made = OrdinalRubric(STAGES, "sim:x", "fascism", "Valdoria", reasoning="so")
    id = save_rubric(store, "key", status, 3, call(store, 0))
    assert store.rubrics.find(key="key") == status
    assert [row["stages"] for row in rows(store, t.rubrics)] == [[]]
    assert save_rubric(store, "key", made, 2, call(store, 1)) == id
    assert save_rubric(store, "key", status, 3, call(store, 0)) == id
    assert store.rubrics.find(key="key") == replace(made, id=id, call_id=call(store, 1))
    assert store.rubrics.find(key="another") is None


# --- properties ----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    in_any_order([(n, made) for n in range(3) for made in (True, False) if (n, made) != (2, True)]),
    st.sampled_from(FAILED),
)
def test_views_and_critiques_saved_in_any_order_give_the_same_rows(
    template: Path, order: list[tuple[int, bool]], failure: Status
) -> None:
    """Items 0 and 1 fail once and succeed once; item 2 only ever fails."""
    with fresh(template) as store:
        pool = store.evidence.save_pool(Pool(ITEMS))
        calls = [call(store, n) for n in range(3)]
        rubrics = [
            replace(OrdinalRubric(STAGES, "sim:x", f"c{n}", ""), id=save_rubric_of(store, n))
            for n in range(3)
        ]
        for n, made in order:
            text, status = (f"view {n}", "scored") if made else (None, failure)
            view = View(pool.items[n], text, status, calls[n])  # type: ignore[arg-type]
            store.evidence.save_views("m", "sim:e", [view, view])
            score = 0.5 + n / 8 if made else None
            critique = Critique(rubrics[n], "sim:c", view.status, score, score, calls[n])
            store.rubrics.save_critique("m", critique)
        views = {row["evidence_id"]: row["status"] for row in rows(store, t.views)}
        assert views == {pool.items[n].id: "scored" if n < 2 else failure for n in range(3)}
        assert store.evidence.view_texts("m", pool) == {
            pool.items[n].id: f"view {n}" for n in range(2)
        }
        critiques = {row["rubric_id"]: row["observability"] for row in rows(store, t.critiques)}
        assert critiques == {rubrics[n].id: 0.5 + n / 8 if n < 2 else None for n in range(3)}
        assert len(rows(store, t.views)) == len(rows(store, t.critiques)) == 3


def save_rubric_of(store: Store, number: int) -> int:
    made = OrdinalRubric(STAGES, "sim:x", f"c{number}", "")
    return save_rubric(store, f"key {number}", made, 1, call(store, number))
