"""Belief functions over many groups at once, against the plain computation of each."""

from itertools import combinations
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain_belief as plain
from judge_gym.analysis.belief import RULES, Rule, disagreement, rules
from judge_gym.analysis.belief.disagreement import (
    Replicates,
    conflict,
    panel_conflict,
    replicate_conflict,
    squared_distances,
)
from judge_gym.analysis.belief.masses import Masses, sources, stage_masks, summed
from judge_gym.analysis.belief.rules import combine_groups, rule_sensitivity
from judge_gym.errors import DesignError

steady = settings(deadline=None, derandomize=True, max_examples=40)
FRAME = 4
Sets = list[tuple[int, int, frozenset[int]]]
"""Replicates as (cell or item, replicate, chosen); the empty set is an abstention."""
chosen_sets = st.frozensets(st.integers(1, FRAME), max_size=FRAME)


def verdicts(cells: int, most: int = 40) -> st.SearchStrategy[Sets]:
    one = st.tuples(st.integers(0, cells - 1), st.integers(0, 4), chosen_sets)
    return st.lists(one, max_size=most)


def columns(rows: Sets) -> Replicates:
    texts = [" ".join(map(str, sorted(chosen))) for _, _, chosen in rows]
    item, replicate = (np.array([row[place] for row in rows], dtype=np.int64) for place in (0, 1))
    return Replicates(item, replicate, stage_masks(texts, frame=FRAME))


def masses_of(rows: Sets, cells: int) -> Masses:
    found = columns(rows)
    return sources(found.item, found.chosen, frame=FRAME, cells=cells).masses


def plain_masses(rows: Sets, cells: int) -> list[plain.Mass | None]:
    by_cell = [[chosen for cell, _, chosen in rows if cell == c and chosen] for c in range(cells)]
    return [plain.frequencies(found) if found else None for found in by_cell]


def ints(*values: int) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


# --- from verdicts to masses ---------------------------------------------------------------------


@steady
@given(verdicts(cells=4))
def test_a_cell_has_the_frequencies_of_its_verdicts(rows: Sets) -> None:
    found, expected = masses_of(rows, 4), plain_masses(rows, 4)
    readings = found.belief(), found.plausibility(), found.pignistic()
    for cell, mass in enumerate(expected):
        if mass is None:
            assert not found.defined[cell]
            assert np.isnan([found.uncertainty_gap()[cell], found.subset_size()[cell]]).all()
            assert all(np.isnan(reading[cell]).all() for reading in readings)
            continue
        assert found.mapping(cell) == pytest.approx(mass)
        gaps = []
        for stage in range(1, FRAME + 1):
            single = frozenset({stage})
            plainly = (
                plain.belief(mass, single),
                plain.plausibility(mass, single),
                plain.pignistic(mass, stage),
            )
            assert [reading[cell, stage - 1] for reading in readings] == pytest.approx(plainly)
            assert plainly[0] <= plainly[2] + 1e-12 and plainly[2] <= plainly[1] + 1e-12
            gaps.append(plainly[1] - plainly[0])
        assert found.uncertainty_gap()[cell] == pytest.approx(np.mean(gaps))
        sizes = [len(chosen) for c, _, chosen in rows if c == cell and chosen]
        assert found.subset_size()[cell] == pytest.approx(np.mean(sizes))


def test_abstentions_are_left_out_or_say_nothing() -> None:
    cell, chosen = ints(0, 0, 0, 1), stage_masks(["1", "1 2", "", ""], frame=2)
    out = sources(cell, chosen, frame=2, cells=2).masses
    assert out.mapping(0) == {frozenset({1}): 0.5, frozenset({1, 2}): 0.5}
    assert out.defined.tolist() == [True, False]
    vacuous = sources(cell, chosen, frame=2, cells=2, abstentions="vacuous").masses
    assert vacuous.mapping(0) == pytest.approx({frozenset({1}): 1 / 3, frozenset({1, 2}): 2 / 3})
    assert vacuous.mapping(1) == {frozenset({1, 2}): 1}


def test_categorical_masses_are_a_source_per_verdict() -> None:
    # methods.md: with them, two disagreeing hard verdicts conflict totally.
    cell, chosen = ints(0, 0, 1, 1, 1), stage_masks(["1", "2", "2 3", "", "3"], frame=3)
    masses, owner = sources(cell, chosen, frame=3, cells=2, mass="categorical")
    assert owner.tolist() == [0, 0, 1, 1]
    found = combine_groups(masses, owner, rule="dempster")
    assert found.total.tolist() == [True, False]
    assert found.conflict.tolist() == [1, 0]
    assert found.masses.defined.tolist() == [False, True]
    assert found.masses.mapping(1) == {frozenset({3}): 1}


def test_bad_columns_are_refused() -> None:
    with pytest.raises(DesignError, match=r"stage 5 of \[2, 5\]; choose 1 to 4"):
        stage_masks(["1", "2 5"], frame=4)
    with pytest.raises(DesignError, match="unknown mass 'frequent'; choose 'frequency' or "):
        sources(ints(0), ints(1), frame=2, cells=1, mass="frequent")  # type: ignore[arg-type]
    with pytest.raises(DesignError, match="unknown abstentions 'kept'; choose 'left_out' or "):
        sources(ints(0), ints(1), frame=2, cells=1, abstentions="kept")  # type: ignore[arg-type]
    masses = Masses.of([{frozenset({1}): 1.0}], frame=2)
    with pytest.raises(DesignError, match="2 groups for 1 masses; each mass has one"):
        combine_groups(masses, ints(0, 0), rule="yager")
    with pytest.raises(DesignError, match="unknown rule 'pcr7'"):
        combine_groups(masses, ints(0), rule=cast(Rule, "pcr7"))


@pytest.mark.parametrize("far", [1, 1 << 40])
@steady
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 9)), max_size=30))
def test_equal_keys_are_summed_however_large(far: int, rows: list[tuple[int, int, int]]) -> None:
    first, second, weight = (np.array([row[k] for row in rows], dtype=np.int64) for k in range(3))
    keys, sums = summed((first * far, second * far), weight.astype(float))
    expected: dict[tuple[int, int], int] = {}
    for one, two, value in rows:
        key = (one * far, two * far)
        expected[key] = expected.get(key, 0) + value
    assert list(zip(keys[0].tolist(), keys[1].tolist(), strict=True)) == sorted(expected)
    assert sums.tolist() == [expected[key] for key in sorted(expected)]


# --- combination ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@settings(steady, max_examples=25)
@given(verdicts(cells=8), st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_groups_are_combined_as_if_each_were_alone(
    rule: Rule, rows: Sets, owners: list[int]
) -> None:
    masses = masses_of(rows, 8)
    found = combine_groups(masses, ints(*owners), rule=rule, groups=4)
    each = plain_masses(rows, 8)
    for group in range(4):
        members = [
            mass for mass, owner in zip(each, owners, strict=True) if mass and owner == group
        ]
        if not members:
            assert np.isnan(found.conflict[group]) and not found.masses.defined[group]
            continue
        assert found.conflict[group] == pytest.approx(plain.conflict(members), abs=1e-9)
        expected = plain.RULES[rule](members, FRAME)
        assert bool(found.total[group]) == (plain.dempster(members, FRAME) is None)
        assert found.masses.mapping(group) == pytest.approx(expected or {}, abs=1e-9)


@pytest.mark.parametrize("cells", [1, 7, 60])
@pytest.mark.parametrize("rule", ["pcr5", "pcr6"])
def test_tuples_may_be_visited_in_any_portions(
    rule: Rule, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    chosen = rng.integers(1, 1 << FRAME, 240)
    cell = np.repeat(np.arange(24), 10)
    owner = np.repeat(np.arange(7), [1, 2, 2, 3, 4, 4, 8])[:24]
    masses = sources(cell, chosen, frame=FRAME, cells=24).masses.take(np.arange(20))
    at_once = combine_groups(masses, owner[:20], rule=rule)
    monkeypatch.setattr(rules, "CELLS", cells)
    assert_same(combine_groups(masses, owner[:20], rule=rule).masses, at_once.masses)


def assert_same(found: Masses, expected: Masses) -> None:
    assert found.focal.row.tolist() == expected.focal.row.tolist()
    assert found.focal.mask.tolist() == expected.focal.mask.tolist()
    assert found.focal.weight == pytest.approx(expected.focal.weight)


def test_empty_groups_and_verdicts_are_accepted() -> None:
    empty = masses_of([], 0)
    for rule in RULES:
        assert combine_groups(empty, ints(), rule=rule).masses.count == 0
        assert np.isnan(combine_groups(masses_of([], 2), ints(0, 0), rule=rule).conflict).all()
    assert np.isnan(squared_distances([columns([]), columns([])], items=3)).all()


# --- conflict and distance -----------------------------------------------------------------------


@steady
@given(verdicts(cells=6), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_conflict_of_pairs_and_panels(rows: Sets, owners: list[int]) -> None:
    masses, each = masses_of(rows, 6), plain_masses(rows, 6)
    left, right = (np.array(side) for side in zip(*combinations(range(6), 2), strict=True))
    found = conflict(masses, left, right)
    for place, (one, other) in enumerate(combinations(each, 2)):
        if one is None or other is None:
            assert np.isnan(found[place])
        else:
            assert found[place] == pytest.approx(plain.conflict([one, other]))
    panel = panel_conflict(masses, ints(*owners), groups=3)
    for group in range(3):
        members = [m for m, owner in zip(each, owners, strict=True) if m and owner == group]
        if len(members) < 2:
            assert np.isnan([panel.pairwise[group], panel.own[group], panel.joint[group]]).all()
            continue
        pairs = [plain.conflict(list(pair)) for pair in combinations(members, 2)]
        own = np.mean([plain.conflict([m, m]) for m in members])
        assert panel.pairwise[group] == pytest.approx(np.mean(pairs))
        assert panel.own[group] == pytest.approx(own)
        assert panel.excess[group] == pytest.approx(np.mean(pairs) - own, abs=1e-12)
        assert panel.joint[group] == pytest.approx(plain.conflict(members))


@steady
@given(verdicts(cells=3), verdicts(cells=3))
def test_the_unbiased_distance_leaves_out_pairs_of_one_replicate(ours: Sets, theirs: Sets) -> None:
    found = squared_distances([columns(ours), columns(theirs)], items=3)[:, 0]
    for item in range(3):
        mine, yours = (
            [(replicate, chosen) for i, replicate, chosen in rows if i == item and chosen]
            for rows in (ours, theirs)
        )
        expected = plain.squared_distance(mine, yours)
        if expected is None:
            assert np.isnan(found[item])
        else:
            assert found[item] == pytest.approx(expected, abs=1e-9)


@steady
@given(verdicts(cells=3))
def test_replicates_that_conflict_are_counted_in_pairs(rows: Sets) -> None:
    found = replicate_conflict(columns(rows), items=3)
    for item in range(3):
        mine = [(r, chosen) for i, r, chosen in rows if i == item and chosen]
        pairs = [not a & b for (r, a), (s, b) in combinations(mine, 2) if r != s]
        assert np.isnan(found[item]) if not pairs else found[item] == pytest.approx(np.mean(pairs))


def test_small_blocks_change_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    item, replicate = np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    ours, theirs = (Replicates(item, replicate, rng.integers(0, 16, 120)) for _ in range(2))
    at_once = squared_distances([ours, theirs], items=20)
    monkeypatch.setattr(disagreement, "BLOCK", 5)
    assert squared_distances([ours, theirs], items=20) == pytest.approx(at_once, nan_ok=True)


def simulated(rng: np.random.Generator, items: int, replicates: int, bias: float) -> Replicates:
    """Replicates of one and the same judge; `shown` is the display that both judges see."""
    item = np.repeat(np.arange(items), replicates)
    replicate = np.tile(np.arange(replicates), items)
    shown = np.random.default_rng(1).integers(0, 4, len(item))
    drawn = np.where(rng.random(len(item)) < bias, shown, rng.integers(0, 4, len(item)))
    return Replicates(item, replicate, 1 << drawn | rng.integers(0, 2, len(item)))


@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_the_distance_of_identical_judges_is_0_on_average(bias: float) -> None:
    rng = np.random.default_rng(11)
    ours, theirs = (simulated(rng, 4000, 5, bias) for _ in range(2))
    found = squared_distances([ours, theirs], items=4000)[:, 0]
    error = found.std() / np.sqrt(len(found))
    assert abs(found.mean()) < 3 * error
    # Distances of the frequencies themselves are far above 0, and a shared display is no likeness.
    both = [sources(one.item, one.chosen, frame=4, cells=4000).masses for one in (ours, theirs)]
    naive = np.mean(
        [plain.squared_jousselme(*(one.mapping(item) for one in both)) for item in range(200)]
    )
    assert naive > 0.05


def test_on_single_verdicts_it_estimates_half_the_squared_euclidean_distance() -> None:
    rng = np.random.default_rng(2)
    p, q = np.array([0.6, 0.3, 0.1, 0.0]), np.array([0.1, 0.2, 0.3, 0.4])
    item, replicate = np.repeat(np.arange(3000), 5), np.tile(np.arange(5), 3000)
    ours, theirs = (
        Replicates(item, replicate, 1 << rng.choice(4, size=len(item), p=probability))
        for probability in (p, q)
    )
    found = squared_distances([ours, theirs], items=3000)[:, 0]
    error = found.std() / np.sqrt(len(found))
    assert found.mean() == pytest.approx(((p - q) ** 2).sum() / 2, abs=3 * error)


# --- the rule-sensitivity table ------------------------------------------------------------------


def test_the_table_shows_where_a_rule_flips_the_winner() -> None:
    # Zadeh's judges on the first item; on the second all agree.
    one, two, three = (frozenset({stage}) for stage in (1, 2, 3))
    masses = Masses.of(
        [{one: 0.99, two: 0.01}, {two: 0.01, three: 0.99}, {one: 1.0}, {one: 1.0}], frame=3
    )
    table = {
        effect.rule: effect
        for effect in rule_sensitivity(masses, ints(0, 0, 1, 1), groups=2, alpha=0.0)
    }
    assert tuple(table) == RULES
    assert table["dempster"].winners.tolist() == [2, 1]
    assert table["average"].winners.tolist() == [0, 1]
    assert (table["average"].tied, table["dempster"].tied) == (1, 0)
    assert table["dempster"].differs == 0, "a tie is no winner to differ from"
    assert table["yager"].winners.tolist() == [2, 1], "0.3334 against 0.3333 and 0.3333"
    assert table["yager"].gap == pytest.approx(0.9999 / 2)
    assert table["dempster"].gap == 0


def test_the_table_counts_total_conflict_and_flips() -> None:
    # Two for stage 1 and one for stages 2 or 3, then two hard verdicts that exclude each other.
    cell, chosen = ints(0, 1, 2, 3, 4), stage_masks(["1", "1", "2", "1", "2"], frame=2)
    masses = sources(cell, chosen, frame=2, cells=5).masses
    effects = rule_sensitivity(masses, ints(0, 0, 0, 1, 1), groups=2, alpha=0.0)
    table = {effect.rule: effect for effect in effects}
    assert (table["dempster"].groups, table["dempster"].total_conflict) == (0, 2)
    assert table["dempster"].gap is None and table["dempster"].differs is None
    assert table["pcr5"].winners.tolist() == [0, 0] and table["pcr6"].winners.tolist() == [1, 0]
    assert (table["pcr6"].groups, table["pcr6"].total_conflict, table["pcr6"].tied) == (2, 0, 1)
    discounted = {e.rule: e for e in rule_sensitivity(masses, ints(0, 0, 0, 1, 1), groups=2)}
    assert discounted["dempster"].groups == 2, "discounted sources are never in total conflict"


def test_a_rule_with_too_many_tuples_says_why_it_was_not_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "MOST_TUPLES", 3)
    masses = Masses.of([{frozenset({1}): 0.5, frozenset({2}): 0.5}] * 2, frame=2)
    table = {e.rule: e for e in rule_sensitivity(masses, ints(0, 0), groups=1)}
    assert "9 tuples of focal sets, more than 3" in table["pcr6"].reason
    assert table["pcr6"].groups == 0 and table["pcr6"].gap is None
    assert table["yager"].groups == 1 and not table["yager"].reason
