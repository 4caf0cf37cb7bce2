"""What runs share: every write has a key, so saving anything again, in any order, is nothing."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.errors import NotFoundError
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
    Window,
)
from judge_gym.store import Payer, Store
from judge_gym.store import tables as t

VALDORIA = Window("Valdoria", date(2026, 1, 1), date(2026, 1, 31))
ITEMS = tuple(Evidence(f"Title {n}", f"Text {n} ☃", f"https://x/{n}", truth=n) for n in range(4))
STAGES = (RubricStage("Calm", ("quiet", "still")), RubricStage("Stormy", ("loud",)))
FAILED: tuple[Status, ...] = ("provider_error", "refused", "truncated", "parse_failed")


def call(store: Store, number: int) -> int:
    """A call to point at."""
    request = Request("sim:x", (Message("user", (str(number),)),), Draw("s", number))
    said = Completion("x", "stop", "sim:x", 1, 1, 0.0)
    return store.ledger.record(
        request.key(), request, "", Payer(None, "s", "t", "scorer"), seconds=0, completion=said
    ).call_id


def rows(store: Store, table: sa.Table) -> list[dict[str, Any]]:
    with store.database.begin() as connection:
        return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("template") / "lab.db"
    Store.open(f"sqlite:///{file}").close()
    return file


@contextmanager
def fresh(template: Path) -> Iterator[Store]:
    """A store of its own for every example of a property."""
    file = template.with_name("example.db")
    shutil.copy(template, file)
    opened = Store.open(f"sqlite:///{file}")
    try:
        yield opened
    finally:
        opened.close()
        for left in template.parent.glob("example.db*"):
            left.unlink()


# --- windows, evidence, pools --------------------------------------------------------------------


def test_a_window_is_one_row_and_comes_back_as_it_was(store: Store) -> None:
    windows = [VALDORIA, Window("Valdoria"), replace(VALDORIA, country="Norvessa")]
    ids = [store.evidence.save_window(w) for w in (*windows, *windows)]
    assert ids[:3] == ids[3:]
    assert len(set(ids)) == 3
    assert [store.evidence.find_window(id) for id in ids[:3]] == windows
    with pytest.raises(NotFoundError, match="99"):
        store.evidence.find_window(99)


@pytest.mark.parametrize("window", [VALDORIA, None])
def test_a_pool_comes_back_as_it_was(store: Store, window: Window | None) -> None:
    items = (
        replace(ITEMS[2], metadata={"latent": 0.3}, date="2026-01-04", source="wire"),
        replace(ITEMS[0], truth="Stormy"),
        replace(ITEMS[1], truth=None),
    )
    saved = store.evidence.save_pool(Pool(items, window))
    assert store.evidence.find_pool(saved.id) == saved
    assert [replace(item, id=0) for item in saved.items] == list(items)


def test_pools_are_told_apart_by_order_window_and_truth_but_share_their_texts(store: Store) -> None:
    pools = [
        Pool(ITEMS, VALDORIA),
        Pool(ITEMS[::-1], VALDORIA),
        Pool(ITEMS[:3], VALDORIA),
        Pool(ITEMS, None),
        Pool(tuple(replace(item, truth=1) for item in ITEMS), VALDORIA),
    ]
    ids = [store.evidence.save_pool(pool).id for pool in (*pools, *pools)]
    assert ids[:5] == ids[5:]
    assert len(set(ids)) == 5
    assert len(rows(store, t.evidence)) == len(rows(store, t.texts)) == len(ITEMS)
    assert len(rows(store, t.pool_items)) == 4 * len(ITEMS) + 3


# --- views, rubrics, critiques -------------------------------------------------------------------


def test_views_are_found_by_their_maker_and_only_where_there_is_a_text(store: Store) -> None:
    pool = store.evidence.save_pool(Pool(ITEMS))
    made = [View(pool.items[0], "short 0", "scored", call(store, 0))]
    made += [View(pool.items[1], None, "refused", call(store, 1))]
    store.materials.save_views("maker", "sim:editor", made)
    assert store.materials.find_views("maker", pool) == {pool.items[0].id: "short 0"}
    assert store.materials.find_views("another maker", pool) == {}
    other = store.evidence.save_pool(Pool(ITEMS[1:]))
    assert store.materials.find_views("maker", other) == {}


@pytest.mark.parametrize("kind", [OrdinalRubric, NominalRubric])
def test_a_given_rubric_comes_back_as_it_was_and_has_no_critics_scores(
    store: Store, kind: type[OrdinalRubric] | type[NominalRubric]
) -> None:
    given = kind(STAGES, "provided", "severity", "")
    saved = store.materials.save_given_rubric(given)
    assert store.materials.save_given_rubric(given) == saved
    assert store.materials.find_rubric(id=saved.id) == saved
    assert replace(saved, id=0) == given
    assert rows(store, t.critiques) == []


def save_rubric(store: Store, key: str, what: Rubric | Status, asks: int, call_id: int) -> int:
    store.materials.save_rubric(
        key,
        what,
        asks=asks,
        call_id=call_id,
        author="sim:x",
        concept="fascism",
        country="Valdoria",
        scale=2,
    )
    return store.materials.rubric_id(key)


@pytest.mark.parametrize("status", FAILED)
def test_a_rubric_that_came_after_all_replaces_the_record_that_none_came(
    store: Store, status: Status
) -> None:
    made = OrdinalRubric(STAGES, "sim:x", "fascism", "Valdoria", reasoning="so")
    id = save_rubric(store, "key", status, 3, call(store, 0))
    assert store.materials.find_rubric(key="key") == status
    assert [row["stages"] for row in rows(store, t.rubrics)] == [[]]
    assert save_rubric(store, "key", made, 2, call(store, 1)) == id
    assert save_rubric(store, "key", status, 3, call(store, 0)) == id
    assert store.materials.find_rubric(key="key") == replace(made, id=id, call_id=call(store, 1))
    assert store.materials.find_rubric(key="another") is None


# --- properties ----------------------------------------------------------------------------------


def muddled(final: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    """Records saved in any order and any number of times, each at least once."""
    return st.tuples(st.permutations(final), st.lists(st.sampled_from(final), max_size=6)).flatmap(
        lambda both: st.permutations([*both[0], *both[1]])
    )


@settings(max_examples=25, deadline=None)
@given(
    muddled([(n, size) for n in range(3) for size in (1, 3)]),
)
def test_pools_saved_in_any_order_any_number_of_times_give_the_same_rows(
    template: Path, order: list[tuple[int, int]]
) -> None:
    with fresh(template) as store:
        for start, size in order:
            store.evidence.save_pool(Pool(ITEMS[start : start + size], VALDORIA))
        of = {row["id"]: row for row in rows(store, t.evidence)}
        hash_of = {row["id"]: row["hash"] for row in rows(store, t.pools)}
        members = {
            (hash_of[row["pool_id"]], row["position"], of[row["evidence_id"]]["text"], row["truth"])
            for row in rows(store, t.pool_items)
        }
        expected = {
            (Pool(part).hash, place, item.hash, item.truth)
            for start, size in set(order)
            for part in [ITEMS[start : start + size]]
            for place, item in enumerate(part)
        }
        assert members == expected
        assert len(rows(store, t.pool_items)) == len(expected)
        assert len(of) == len({item[2] for item in expected})
        assert len(rows(store, t.windows)) == 1


@settings(max_examples=40, deadline=None)
@given(
    muddled([(n, made) for n in range(3) for made in (True, False) if (n, made) != (2, True)]),
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
            store.materials.save_views("m", "sim:e", [view, view])
            score = 0.5 + n / 8 if made else None
            critique = Critique(rubrics[n], "sim:c", view.status, score, score, calls[n])
            store.materials.save_critique("m", critique)
        views = {row["evidence_id"]: row["status"] for row in rows(store, t.views)}
        assert views == {pool.items[n].id: "scored" if n < 2 else failure for n in range(3)}
        assert store.materials.find_views("m", pool) == {
            pool.items[n].id: f"view {n}" for n in range(2)
        }
        critiques = {row["rubric_id"]: row["observability"] for row in rows(store, t.critiques)}
        assert critiques == {rubrics[n].id: 0.5 + n / 8 if n < 2 else None for n in range(3)}
        assert len(rows(store, t.views)) == len(rows(store, t.critiques)) == 3


def save_rubric_of(store: Store, number: int) -> int:
    made = OrdinalRubric(STAGES, "sim:x", f"c{number}", "")
    return save_rubric(store, f"key {number}", made, 1, call(store, number))
