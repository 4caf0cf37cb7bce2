"""What is judged: windows that fill up, pools that never change, and what people say of both."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.errors import ConflictError, NotFoundError
from judge_gym.records import Evidence, Pool, Window, storable
from judge_gym.store import Store
from judge_gym.store import tables as t
from stores import fresh, in_any_order, rows

VALDORIA = Window("Valdoria", date(2026, 1, 1), date(2026, 1, 31))
SEARCHED = replace(VALDORIA, search="gdelt: court")
ITEMS = tuple(Evidence(f"Title {n}", f"Text {n} ☃", f"https://x/{n}", truth=n) for n in range(4))
PAIR = Evidence(
    'Which is "better"?', 'A [task] with "quotes"', truth=2, responses=("one\n☃", '["two"]')
)


def titles(items: tuple[Evidence, ...]) -> list[str]:
    return [item.title for item in items]


def filled(store: Store, *items: Evidence, window: Window = VALDORIA) -> int:
    """A window that holds these."""
    id = store.evidence.save_window(window)
    assert store.evidence.add_to_window(id, items) == len(items)
    return id


# --- windows -------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_a_saved_window_is_one_row_and_loads_unchanged(store: Store) -> None:
    windows = [
        VALDORIA,
        Window("Valdoria"),
        replace(VALDORIA, country="Norvessa"),
        replace(VALDORIA, end=None),
        SEARCHED,
        replace(VALDORIA, search="gdelt: press"),
    ]
    ids = [store.evidence.save_window(w) for w in (*windows, *windows)]
    assert ids[:6] == ids[6:]
    assert len(set(ids)) == 6
    assert [store.evidence.find_window(id) for id in ids[:6]] == windows
    assert [store.evidence.window_id(window) for window in windows] == ids[:6]


def test_an_unknown_window_is_not_found(store: Store) -> None:
    store.evidence.save_window(VALDORIA)
    assert store.evidence.window_id(SEARCHED) is None
    with pytest.raises(NotFoundError, match=r"99.*lab.evidence.list_windows"):
        store.evidence.find_window(99)


@pytest.mark.postgres
def test_windows_are_listed_with_item_and_dropped_counts(store: Store) -> None:
    full, empty = filled(store, *ITEMS), store.evidence.save_window(SEARCHED)
    store.evidence.drop(full, [store.evidence.window_items(full)[0].id])
    assert store.evidence.list_windows() == [
        {"window": full, "country": "Valdoria", "start": VALDORIA.start, "end": VALDORIA.end,
         "search": "", "items": 3, "dropped": 1},
        {"window": empty, "country": "Valdoria", "start": VALDORIA.start, "end": VALDORIA.end,
         "search": "gdelt: court", "items": 0, "dropped": 0},
    ]  # fmt: skip


# --- what windows hold ---------------------------------------------------------------------------


@pytest.mark.postgres
def test_adding_items_again_adds_none(store: Store) -> None:
    window = filled(store, *ITEMS[:2])
    before = store.evidence.window_items(window)
    assert store.evidence.add_to_window(window, ITEMS[:2]) == 0
    assert store.evidence.window_items(window) == before
    assert store.evidence.add_to_window(window, ITEMS) == 2
    assert store.evidence.add_to_window(window, [*ITEMS, *ITEMS]) == 0
    assert store.evidence.add_to_window(window, []) == 0
    assert titles(store.evidence.window_items(window)) == titles(ITEMS)


def test_an_item_twice_in_one_load_is_added_once(store: Store) -> None:
    window = store.evidence.save_window(VALDORIA)
    assert store.evidence.add_to_window(window, [ITEMS[0], ITEMS[1], ITEMS[0]]) == 2
    assert titles(store.evidence.window_items(window)) == titles(ITEMS[:2])


def test_a_window_keeps_the_order_of_arrival_whatever_other_windows_held_before(
    store: Store,
) -> None:
    filled(store, *ITEMS[::-1])
    window = filled(store, *ITEMS[2:], window=SEARCHED)
    store.evidence.add_to_window(window, ITEMS)
    found = store.evidence.window_items(window)
    assert titles(found) == titles((*ITEMS[2:], *ITEMS[:2]))
    ids = [item.id for item in found]
    assert ids != sorted(ids), "the order is not that of the rows"


@pytest.mark.postgres
def test_windows_share_texts_but_not_truths(store: Store) -> None:
    first = filled(store, *ITEMS)
    second = filled(store, *(replace(item, truth="Calm") for item in ITEMS), window=SEARCHED)
    third = filled(store, replace(ITEMS[0], truth=None), window=Window("Norvessa"))
    assert [item.truth for item in store.evidence.window_items(first)] == [0, 1, 2, 3]
    assert [item.truth for item in store.evidence.window_items(second)] == ["Calm"] * 4
    assert [item.truth for item in store.evidence.window_items(third)] == [None]
    assert len(rows(store, t.evidence)) == len(rows(store, t.texts)) == 4


@pytest.mark.postgres
def test_dropped_items_stay_out_until_restored(store: Store) -> None:
    window = filled(store, *ITEMS)
    ids = [item.id for item in store.evidence.window_items(window)]
    assert store.evidence.drop(window, ids[1:3]) == 2
    assert titles(store.evidence.window_items(window)) == ["Title 0", "Title 3"]
    assert store.evidence.add_to_window(window, ITEMS) == 0
    assert titles(store.evidence.window_items(window)) == ["Title 0", "Title 3"]
    assert titles(store.evidence.window_items(window, dropped=True)) == titles(ITEMS)
    assert store.evidence.drop(window, ids[1:]) == 1, "one was still in"
    assert store.evidence.drop(window, ids, undo=True) == 3
    assert titles(store.evidence.window_items(window)) == titles(ITEMS)
    assert store.evidence.drop(window, ids, undo=True) == 0


def test_dropping_changes_no_other_window_or_pool(store: Store) -> None:
    window, other = filled(store, *ITEMS), filled(store, *ITEMS, window=SEARCHED)
    pool = store.evidence.save_pool(Pool(store.evidence.window_items(window), VALDORIA))
    ids = [item.id for item in pool.items]
    assert store.evidence.windows_of(ids[:1]) == [window, other]
    store.evidence.drop(window, ids)
    assert store.evidence.window_items(window) == ()
    assert titles(store.evidence.window_items(other)) == titles(ITEMS)
    assert store.evidence.find_pool(pool.id) == pool
    assert store.evidence.windows_of(ids[:1]) == [window, other], "so that it can be put back"


def test_dropping_an_item_of_another_window_drops_nothing(store: Store) -> None:
    window, other = filled(store, *ITEMS[:2]), filled(store, ITEMS[3], window=SEARCHED)
    mine = [item.id for item in store.evidence.window_items(window)]
    [foreign] = store.evidence.window_items(other)
    for undo in (False, True):
        with pytest.raises(NotFoundError, match=rf"window {window} holds no evidence {foreign.id}"):
            store.evidence.drop(window, [*mine, foreign.id], undo=undo)
    assert titles(store.evidence.window_items(window)) == titles(ITEMS[:2])
    assert store.evidence.windows_of([99]) == []


@pytest.mark.postgres
def test_every_search_is_recorded_with_its_dropped_counts(store: Store) -> None:
    window, other = store.evidence.save_window(VALDORIA), store.evidence.save_window(SEARCHED)
    store.evidence.record_collection(window, "files", 4, {"same text": 1}, "")
    store.evidence.record_collection(other, "gdelt", 0, {}, "timed out")
    store.evidence.record_collection(window, "files", 0, {"already there": 4}, "")
    kept = ("source", "added", "dropped", "error")
    assert [[made[name] for name in kept] for made in store.evidence.collections(window)] == [
        ["files", 4, {"same text": 1}, ""],
        ["files", 0, {"already there": 4}, ""],
    ]
    assert [made["error"] for made in store.evidence.collections(other)] == ["timed out"]
    assert store.evidence.collections(99) == []


# --- items ---------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_a_pair_loads_unchanged_from_window_pool_and_row(store: Store) -> None:
    window = filled(store, PAIR, ITEMS[0])
    saved = store.evidence.save_pool(Pool((PAIR, ITEMS[0]), VALDORIA))
    for found in (store.evidence.window_items(window), store.evidence.find_pool(saved.id).items):
        assert [replace(item, id=0) for item in found] == [PAIR, ITEMS[0]]
    alone = store.evidence.find_evidence(saved.items[0].id)
    assert (alone.text, alone.responses) == (PAIR.text, PAIR.responses)
    assert alone.hash == PAIR.hash
    assert titles(store.evidence.all_evidence()) == [PAIR.title, "Title 0"]


def test_two_pairs_that_differ_in_order_or_in_one_response_are_two_items(store: Store) -> None:
    turned = replace(PAIR, responses=PAIR.responses[::-1])
    other = replace(PAIR, responses=(PAIR.responses[0], "three"))
    window = filled(store, PAIR, turned, other, replace(PAIR, responses=()))
    assert len(store.evidence.window_items(window)) == 4


def test_an_unknown_item_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError, match=r"99.*lab.evidence.list_windows"):
        store.evidence.find_evidence(99)
    assert store.evidence.find_views(99) == []
    assert store.evidence.all_evidence() == ()


# --- pools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [VALDORIA, SEARCHED, None])
@pytest.mark.postgres
def test_a_saved_pool_loads_unchanged(store: Store, window: Window | None) -> None:
    items = (
        replace(ITEMS[2], metadata={"latent": 0.3}, date="2026-01-04", source="wire"),
        replace(ITEMS[0], truth="Stormy"),
        replace(ITEMS[1], truth=None),
    )
    saved = store.evidence.save_pool(Pool(items, window))
    assert store.evidence.find_pool(saved.id) == saved
    assert [replace(item, id=0) for item in saved.items] == list(items)


def test_pools_differ_by_order_window_and_truth_but_share_texts(store: Store) -> None:
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


@pytest.mark.postgres
def test_a_pool_name_never_refers_to_another_pool(store: Store) -> None:
    first = store.evidence.save_pool(Pool(ITEMS, VALDORIA))
    others = [
        store.evidence.save_pool(other)
        for other in (Pool(ITEMS[::-1], VALDORIA), Pool(ITEMS[:2], VALDORIA), Pool(ITEMS))
    ]
    store.evidence.name_pool("baseline", first)
    for other in others:
        with pytest.raises(ConflictError, match=r"'baseline'.*another name"):
            store.evidence.name_pool("baseline", other)
    store.evidence.name_pool("baseline", first)
    assert store.evidence.find_named_pool("baseline") == first
    assert len(rows(store, t.pool_names)) == 1


def test_frozen_pools_are_listed_and_named_as_choices(store: Store) -> None:
    with pytest.raises(NotFoundError, match=r"evidence\.freeze_pool"):
        store.evidence.find_named_pool("baseline")
    pools = [store.evidence.save_pool(Pool(ITEMS[:n], VALDORIA)) for n in (1, 3)]
    for name, pool in (("late", pools[1]), ("early", pools[0]), ("again", pools[0])):
        store.evidence.name_pool(name, pool)
    listed = store.evidence.list_pools()
    assert [(row["name"], row["items"], row["hash"]) for row in listed] == [
        ("again", 1, pools[0].hash), ("early", 1, pools[0].hash), ("late", 3, pools[1].hash),
    ]  # fmt: skip
    assert {row["window_id"] for row in listed} == {store.evidence.window_id(VALDORIA)}
    with pytest.raises(NotFoundError, match="'erly'") as refusal:
        store.evidence.find_named_pool("erly")
    assert refusal.value.choices == ("again", "early", "late")


# --- labels --------------------------------------------------------------------------------------


def label(evidence: int, rater: str, stage: str, concept: str = "") -> dict[str, Any]:
    return {"evidence_id": evidence, "concept": concept, "rater": rater, "stage": stage}


def said(store: Store) -> list[tuple[Any, ...]]:
    return [
        (row["evidence"], row["concept"], row["rater"], row["stage"]) for row in store.labels.all()
    ]


@pytest.mark.postgres
def test_labels_change_only_with_replace(store: Store) -> None:
    filled(store, *ITEMS)
    given = [label(1, "ann", "2"), label(1, "bob", "3"), label(2, "ann", "Stormy")]
    assert store.labels.save(given, replace=False) == {"new": 3, "same": 0, "changed": 0}
    assert store.labels.save(given, replace=False) == {"new": 0, "same": 3, "changed": 0}
    revised = [label(1, "ann", "4"), label(1, "bob", "3"), label(3, "ann", "1")]
    assert store.labels.save(revised, replace=True) == {"new": 1, "same": 1, "changed": 1}
    assert said(store) == [
        (1, "", "bob", "3"), (2, "", "ann", "Stormy"), (1, "", "ann", "4"), (3, "", "ann", "1"),
    ]  # fmt: skip
    assert [row["title"] for row in store.labels.all()] == [
        "Title 0", "Title 1", "Title 0", "Title 2",
    ]  # fmt: skip
    # What a rater said before stays.
    assert [row["stage"] for row in store.labels.history([1]) if row["rater"] == "ann"] == [
        "2", "4",
    ]  # fmt: skip


def test_labels_that_contradict_earlier_ones_are_imported_all_or_not_at_all(store: Store) -> None:
    filled(store, *ITEMS)
    store.labels.save([label(1, "ann", "2")], replace=False)
    with pytest.raises(ConflictError, match=r"ann.*evidence 1.*'2'.*'3'.*replace"):
        store.labels.save([label(2, "ann", "1"), label(1, "ann", "3")], replace=False)
    assert said(store) == [(1, "", "ann", "2")]


def test_a_rater_may_judge_an_item_once_for_each_concept(store: Store) -> None:
    filled(store, *ITEMS)
    given = [label(1, "ann", "2", concept) for concept in ("", "fascism", "democracy")]
    assert store.labels.save(given, replace=False)["new"] == 3
    assert len(said(store)) == 3


# --- properties ----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    in_any_order([(n, size) for n in range(3) for size in (1, 3)]),
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


LOADS = [(SEARCHED, 0, 2), (SEARCHED, 1, 4), (VALDORIA, 0, 1), (VALDORIA, 0, 4)]


@settings(max_examples=25, deadline=None)
@given(in_any_order(LOADS))
def test_loads_in_any_order_any_number_of_times_fill_windows_alike(
    template: Path, order: list[tuple[Window, int, int]]
) -> None:
    with fresh(template) as store:
        added = [
            store.evidence.add_to_window(store.evidence.save_window(window), ITEMS[start:end])
            for window, start, end in order
        ]
        assert sum(added) == len(rows(store, t.window_items)) == 8
        for window in (SEARCHED, VALDORIA):
            id = store.evidence.window_id(window)
            assert id is not None
            held = store.evidence.window_items(id)
            assert {(item.hash, item.truth) for item in held} == {
                (item.hash, item.truth) for item in ITEMS
            }
        assert len(rows(store, t.windows)) == 2
        assert len(rows(store, t.evidence)) == len(ITEMS)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "drop", "undo"]),
            st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True),
        ),
        max_size=8,
    )
)
def test_a_window_is_what_was_added_in_that_order_less_what_was_dropped(
    template: Path, steps: list[tuple[str, list[int]]]
) -> None:
    arrived: list[int] = []
    out: set[int] = set()
    with fresh(template) as store:
        window = store.evidence.save_window(VALDORIA)
        for step, numbers in steps:
            if step == "add":
                news = [n for n in numbers if n not in arrived]
                assert store.evidence.add_to_window(window, [ITEMS[n] for n in numbers]) == len(
                    news
                )
                arrived += news
                continue
            known = [n for n in numbers if n in arrived]
            id_of = {
                item.title: item.id for item in store.evidence.window_items(window, dropped=True)
            }
            ids = [id_of[ITEMS[n].title] for n in known]
            changes = out & set(known) if step == "undo" else set(known) - out
            assert store.evidence.drop(window, ids, undo=step == "undo") == len(changes)
            out = out - changes if step == "undo" else out | changes
        held = store.evidence.window_items(window)
        assert titles(held) == [ITEMS[n].title for n in arrived if n not in out]


LABELS = [label(n, rater, str(n)) for n in (1, 2) for rater in ("ann", "bob")]


@settings(max_examples=25, deadline=None)
@given(in_any_order(LABELS), st.booleans())
def test_labels_imported_in_any_order_any_number_of_times_give_the_same_rows(
    template: Path, order: list[dict[str, Any]], replace: bool
) -> None:
    with fresh(template) as store:
        filled(store, *ITEMS)
        counts = [store.labels.save([row], replace=replace) for row in order]
        assert sum(count["new"] for count in counts) == len(LABELS)
        assert sum(count["same"] for count in counts) == len(order) - len(LABELS)
        assert sorted(said(store)) == sorted(
            (row["evidence_id"], "", row["rater"], row["stage"]) for row in LABELS
        )


plain = st.text(max_size=12).map(storable)  # others are mended on the way in


@settings(max_examples=60, deadline=None)
@given(
    st.builds(
        Evidence,
        title=plain,
        text=plain,
        url=plain,
        date=plain,
        source=plain,
        truth=st.none() | st.integers(1, 26) | plain,
        metadata=st.dictionaries(plain, st.none() | st.booleans() | st.integers() | plain),
        responses=st.just(()) | st.tuples(plain, plain),
    )
)
def test_any_item_loads_unchanged(template: Path, item: Evidence) -> None:
    with fresh(template) as store:
        [held] = store.evidence.window_items(filled(store, item))
        assert replace(held, id=0) == item
        pool = store.evidence.save_pool(Pool((item,)))
        assert store.evidence.find_pool(pool.id).items == (held,)


@pytest.mark.postgres
def test_a_nul_character_is_replaced_when_saved(store: Store) -> None:
    [held] = store.evidence.window_items(filled(store, Evidence("a\x00b", "c\x00d")))
    assert (held.title, held.text) == ("a\ufffdb", "c\ufffdd")
