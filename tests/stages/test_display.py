"""Displays: uniform, stored, and the same for all variants of an experiment."""

import itertools
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

from judge_gym.axes import Design
from judge_gym.axes.presentation import LETTERS, OPAQUE, PresentationAxes
from judge_gym.records import Display, Evidence, OrdinalRubric, RubricStage, content_hash
from judge_gym.stages.prompts import display, permutation
from judge_gym.stages.scoring import Scorer, ScoreTarget
from tables import each_row

# Keys are fixed, so a test passes or fails for good; a fair generator fails one in a million.
ALPHA = 1e-6
ITEM = content_hash("The budget was adopted.")
CELLS = [(content_hash(f"item {item}"), replicate) for item in range(12) for replicate in range(5)]


def shown(
    cell: tuple[str, int] = (ITEM, 0), *, seed: int = 7, scale: int = 4, **levels: Any
) -> Display:
    return display(PresentationAxes(**levels).resolve(), seed, cell[0], cell[1], scale)


def label_of(display: Display) -> tuple[str, ...]:
    """The labels in the order of the stages behind them."""
    return tuple(label for _, label in sorted(zip(display.stages, display.labels, strict=True)))


def draws(count: int, scale: int = 4) -> list[Display]:
    return [shown((ITEM, replicate), scale=scale) for replicate in range(count)]


# --- uniform -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_every_order_and_every_label_map_is_equally_frequent(scale: int) -> None:
    drawn = draws(200 * math.factorial(scale), scale)
    orders = Counter(display.stages for display in drawn)
    maps = Counter(label_of(display) for display in drawn)
    assert set(orders) == set(itertools.permutations(range(1, scale + 1)))
    assert set(maps) == set(itertools.permutations(LETTERS[:scale]))
    assert chisquare(list(orders.values())).pvalue > ALPHA
    assert chisquare(list(maps.values())).pvalue > ALPHA


def test_all_120_orders_of_five_stages_are_reached() -> None:
    assert len({display.stages for display in draws(3000, 5)}) == 120


@pytest.mark.parametrize("scale", [10, 26])
def test_every_stage_of_a_long_scale_reaches_every_position(scale: int) -> None:
    drawn = draws(60 * scale, scale)
    table = [
        Counter(display.stages[position] for display in drawn)[stage]
        for position in range(scale)
        for stage in range(1, scale + 1)
    ]
    # Rows and columns both sum to the number of draws, which leaves (n-1)^2 degrees of freedom.
    assert chisquare(table, ddof=2 * scale - 2).pvalue > ALPHA


def test_the_label_map_is_independent_of_the_order() -> None:
    pairs = Counter((display.stages, label_of(display)) for display in draws(7200, 3))
    orders, maps = itertools.permutations((1, 2, 3)), list(itertools.permutations("ABC"))
    table = [[pairs[order, labels] for labels in maps] for order in orders]
    assert chi2_contingency(table).pvalue > ALPHA


def test_neighbouring_replicates_are_independent() -> None:
    drawn = [display.stages[0] for display in draws(6000, 4)]
    pairs = Counter(itertools.pairwise(drawn))
    table = [[pairs[first, second] for second in range(1, 5)] for first in range(1, 5)]
    assert chi2_contingency(table).pvalue > ALPHA


@given(st.integers(0, 40), st.text())
def test_a_permutation_contains_each_number_once_and_depends_on_its_key_only(
    n: int, key: str
) -> None:
    assert sorted(permutation(n, key)) == list(range(n))
    assert permutation(n, key) == permutation(n, key)


# --- what it depends on --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        [shown(cell, seed=8) for cell in CELLS],
        [shown((item, replicate + 5)) for item, replicate in CELLS],
        [shown((content_hash(item), replicate)) for item, replicate in CELLS],
    ],
    ids=["seed", "replicate", "evidence"],
)
def test_seed_replicate_and_evidence_each_change_the_shuffle(other: list[Display]) -> None:
    pairs = [(shown(cell), display) for cell, display in zip(CELLS, other, strict=True)]
    # Of 60 pairs 2.5 agree by chance, for one order in 24.
    assert sum(one.stages == two.stages for one, two in pairs) <= 15
    assert sum(label_of(one) == label_of(two) for one, two in pairs) <= 15


def test_a_different_scale_has_its_own_shuffle() -> None:
    cells = [(ITEM, replicate) for replicate in range(240)]
    kept = [tuple(s for s in shown(cell, scale=5).stages if s <= 4) for cell in cells]
    assert sum(shown(c).stages == order for c, order in zip(cells, kept, strict=True)) <= 40


TARGETS = [
    ScoreTarget(
        OrdinalRubric(
            tuple(RubricStage(f"Stage {n}", ("a", "b")) for n in range(4)),
            "sim:strict",
            "fascism",
            "Valdoria",
        ),
        Evidence("Title", f"Text {item}."),
        f"Text {item}.",
        replicate,
    )
    for item, replicate in itertools.product(range(4), range(3))
]
OTHER_KNOBS = [
    (path, level)
    for path, knob in Design.knobs().items()
    if path not in ("presentation.labels", "presentation.order")
    for level in knob.levels
    if level != knob.default
]


def displays(targets: list[ScoreTarget], series: str = "7", **knobs: Any) -> list[Display]:
    scorer = Scorer(Design.of({"judge.model": "sim:balanced", **knobs}), 7, series)
    return [scorer.display(target) for target in targets]


@each_row(("knob", "level"), OTHER_KNOBS)
def test_designs_that_differ_in_another_knob_see_the_same_display(knob: str, level: Any) -> None:
    assert displays(TARGETS, **{knob: level}) == displays(TARGETS)


def test_view_rubric_swap_and_series_do_not_change_the_display() -> None:
    rival = OrdinalRubric(
        tuple(RubricStage(f"Other {n}", ("c",)) for n in range(4)), "sim:lenient", "else", ""
    )
    others = [
        ScoreTarget(rival, target.evidence, "A neutral view.", target.replicate, is_swap=True)
        for target in TARGETS
    ]
    assert displays(others, series="retest") == displays(TARGETS)


def test_title_and_truth_of_an_item_do_not_change_the_display() -> None:
    others = [
        ScoreTarget(
            target.rubric,
            Evidence("Other", target.evidence.text, url="https://example.org", truth=4, id=9),
            target.text,
            target.replicate,
        )
        for target in TARGETS
    ]
    assert displays(others) == displays(TARGETS)


# --- levels --------------------------------------------------------------------------------------


@each_row("cell", CELLS[:12])
def test_opaque_labels_replace_the_letters_one_by_one(cell: tuple[str, int]) -> None:
    letters, opaque = shown(cell, scale=6), shown(cell, scale=6, labels="opaque")
    assert opaque.stages == letters.stages
    assert [OPAQUE.index(name) for name in opaque.labels] == [
        LETTERS.index(name) for name in letters.labels
    ]


def test_labels_and_order_are_fixed_separately() -> None:
    for cell in CELLS:
        both, labels = shown(cell), shown(cell, labels="fixed")
        order, neither = shown(cell, order="fixed"), shown(cell, labels="fixed", order="fixed")
        assert label_of(labels) == ("A", "B", "C", "D") and labels.stages == both.stages
        assert order.stages == (1, 2, 3, 4) and label_of(order) == label_of(both)
        assert neither == Display(("A", "B", "C", "D"), (1, 2, 3, 4))


@given(st.integers(2, 26), st.integers(0, 99), st.sampled_from(["shuffled", "fixed", "opaque"]))
def test_decoding_undoes_the_display(scale: int, replicate: int, labels: str) -> None:
    made = shown((ITEM, replicate), scale=scale, labels=labels)
    assert len(set(made.labels)) == scale
    for label, stage in zip(made.labels, made.stages, strict=True):
        assert made.decode([label]) == (stage,)
    assert made.decode(made.labels) == tuple(range(1, scale + 1))
    assert made.decode([]) == ()
