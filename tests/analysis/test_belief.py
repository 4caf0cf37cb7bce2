"""Belief functions one at a time: published examples, two oracles, properties, refusals."""

import random
from itertools import combinations
from math import sqrt
from typing import cast

import pytest
from evtools.combinations import crc
from evtools.combinations import dempster as evtools_dempster
from evtools.corrections import discount as evtools_discount
from evtools.dsvector import DSVector, Kind
from hypothesis import given, settings
from hypothesis import strategies as st

import plain_belief as plain
from judge_gym.analysis.belief import (
    RULES,
    Combined,
    Rule,
    TotalConflict,
    belief,
    combine,
    discount,
    jousselme,
    pignistic,
    plausibility,
)
from judge_gym.errors import DesignError
from tables import each_row

Mass = dict[frozenset[int], float]
steady = settings(deadline=None, derandomize=True, max_examples=60)
several = settings(steady, max_examples=30)


def mass(**sets: float) -> Mass:
    """`mass(A=0.6, AB=0.4)`: stages by letter."""
    return {frozenset(ord(letter) - 64 for letter in name): value for name, value in sets.items()}


def combined(masses: list[Mass], rule: Rule, frame: int) -> Combined:
    found = combine(masses, rule, frame=frame)
    assert isinstance(found, Combined)
    return found


def rounded(found: Mass, digits: int = 6) -> Mass:
    return {chosen: round(value, digits) for chosen, value in found.items()}


def subsets(frame: int) -> list[frozenset[int]]:
    stages = range(1, frame + 1)
    return [frozenset(c) for size in range(1, frame + 1) for c in combinations(stages, size)]


def mass_on(frame: int, most: int = 4) -> st.SearchStrategy[Mass]:
    """Mass functions in parts of a whole, as frequencies are."""
    chosen = st.frozensets(st.integers(1, frame), min_size=1)
    counts = st.dictionaries(chosen, st.integers(1, 20), min_size=1, max_size=most)
    return counts.map(lambda c: {key: value / sum(c.values()) for key, value in c.items()})


def panels(most: int = 4, focal: int = 4) -> st.SearchStrategy[tuple[int, list[Mass]]]:
    """A frame and several mass functions on it."""
    return st.integers(2, 5).flatmap(
        lambda frame: st.tuples(
            st.just(frame), st.lists(mass_on(frame, focal), min_size=1, max_size=most)
        )
    )


# --- published examples --------------------------------------------------------------------------

ZADEH = [mass(A=0.99, B=0.01), mass(B=0.01, C=0.99)]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("dempster", mass(B=1)),
        ("yager", mass(B=0.0001, ABC=0.9999)),
        ("dubois_prade", mass(B=0.0001, AB=0.0099, AC=0.9801, BC=0.0099)),
        ("pcr5", mass(A=0.499851, B=0.000298, C=0.499851)),
        ("pcr6", mass(A=0.499851, B=0.000298, C=0.499851)),
        ("murphy", mass(A=0.499898, B=0.000204, C=0.499898)),
        ("average", mass(A=0.495, B=0.01, C=0.495)),
    ],
)
def test_zadehs_example(rule: Rule, expected: Mass) -> None:
    found = combined(ZADEH, rule, 3)
    assert rounded(found.mass) == expected
    assert found.conflict == pytest.approx(0.9999), "of the sources, whatever the rule"


def test_zadehs_example_discounted() -> None:
    found = combined([discount(m, 0.1, frame=3) for m in ZADEH], "dempster", 3)
    assert rounded(found.mass) == mass(A=0.468748, B=0.009896, C=0.468748, ABC=0.052609)


def test_shafers_two_witnesses() -> None:
    """Betty and Sally, each reliable nine times in ten (Shafer, Perspectives on belief, 1990)."""
    limb_fell = mass(A=0.9, AB=0.1)
    agreeing = combined([limb_fell, limb_fell], "dempster", 2)
    assert belief(agreeing.mass, {1}) == pytest.approx(0.99)
    opposed = combined([limb_fell, mass(B=0.9, AB=0.1)], "dempster", 2)
    assert opposed.conflict == pytest.approx(0.81)
    assert opposed.mass == pytest.approx(mass(A=9 / 19, B=9 / 19, AB=1 / 19))


@pytest.mark.parametrize(("s1", "s2"), [(0.9, 0.8), (0.5, 0.25), (0.1, 0.99)])
def test_shafers_simple_supports(s1: float, s2: float) -> None:
    """Homogeneous, heterogeneous and conflicting evidence (Shafer 1976, chapter 4)."""
    same = combined([mass(A=s1, AB=1 - s1), mass(A=s2, AB=1 - s2)], "dempster", 2)
    assert belief(same.mass, {1}) == pytest.approx(1 - (1 - s1) * (1 - s2))
    crossing = combined([mass(AB=s1, ABC=1 - s1), mass(BC=s2, ABC=1 - s2)], "dempster", 3)
    assert crossing.mass == pytest.approx(
        mass(B=s1 * s2, AB=s1 * (1 - s2), BC=s2 * (1 - s1), ABC=(1 - s1) * (1 - s2))
    )
    against = combined([mass(A=s1, AB=1 - s1), mass(B=s2, AB=1 - s2)], "dempster", 2)
    assert belief(against.mass, {1}) == pytest.approx(s1 * (1 - s2) / (1 - s1 * s2))


@each_row("rule", ["pcr5", "pcr6"])
@each_row(
    ("first", "second", "expected"),
    [
        # Dezert, Smarandache, Advances and Applications of DSmT 2, chapter 1.
        (mass(A=0.6, AB=0.4), mass(B=0.3, AB=0.7), mass(A=0.54, B=0.18, AB=0.28)),
        (mass(A=0.6, B=0.3, AB=0.1), mass(A=0.2, B=0.3, AB=0.5), mass(A=0.584, B=0.366, AB=0.05)),
        (mass(A=0.9, C=0.1), mass(B=0.9, C=0.1), mass(A=0.486, B=0.486, C=0.028)),
        # T. Dezert, J. Dezert, Smarandache, J. Adv. Inf. Fusion 16 (2021), example 1.
        (
            mass(A=0.1, B=0.2, AB=0.7),
            mass(A=0.4, B=0.3, AB=0.3),
            mass(A=0.410833, B=0.379167, AB=0.21),
        ),
    ],
)
def test_two_sources_under_pcr(rule: Rule, first: Mass, second: Mass, expected: Mass) -> None:
    assert rounded(combined([first, second], rule, 3).mass) == expected


THREE = [mass(A=0.6, B=0.1, AB=0.3), mass(A=0.5, B=0.3, AB=0.2), mass(A=0.4, B=0.1, AB=0.5)]
FIVE = [
    mass(AB=0.70, CD=0.06, ABCD=0.15, E=0.09),
    mass(AB=0.06, CD=0.50, ABCD=0.04, E=0.40),
    mass(B=0.01, ABCDE=0.99),
]


@each_row(
    ("masses", "rule", "expected"),
    [
        # The same article: example 2, example 4 (a vacuous source is not neutral), 3, and 5.
        (THREE, "pcr5", mass(A=0.723281, B=0.182460, AB=0.094259)),
        (THREE, "pcr6", mass(A=0.743496, B=0.162245, AB=0.094259)),
        ([*THREE, mass(AB=1)], "pcr5", mass(A=0.654604, B=0.144825, AB=0.200571)),
        ([*THREE, mass(AB=1)], "pcr6", mass(A=0.647113, B=0.128342, AB=0.224545)),
        ([mass(AB=1), mass(B=1), mass(AB=1), mass(C=1)], "pcr5", mass(AB=1 / 3, B=1 / 3, C=1 / 3)),
        ([mass(AB=1), mass(B=1), mass(AB=1), mass(C=1)], "pcr6", mass(AB=0.5, B=0.25, C=0.25)),
        (
            FIVE,
            "pcr5",
            mass(B=0.001103, AB=0.286107, CD=0.203385, ABCD=0.012203, E=0.115966, ABCDE=0.381236),
        ),
        (
            FIVE,
            "pcr6",
            mass(B=0.000962, AB=0.286107, CD=0.203454, ABCD=0.012203, E=0.116038, ABCDE=0.381236),
        ),
    ],
)
def test_several_sources_under_pcr(masses: list[Mass], rule: Rule, expected: Mass) -> None:
    found = combined(masses, rule, 5 if masses is FIVE else 3 if len(masses[0]) == 1 else 2)
    assert found.mass == pytest.approx(expected, abs=1.1e-6), "the article's last digit may be off"


@pytest.mark.parametrize(
    ("rule", "a"),
    [("pcr5", 1 / 2), ("pcr6", 2 / 3), ("murphy", 8 / 9), ("average", 2 / 3)],
)
def test_two_votes_against_one(rule: Rule, a: float) -> None:
    found = combined([mass(A=1), mass(A=1), mass(B=1)], rule, 2)
    assert found.conflict == 1
    assert found.mass == pytest.approx(mass(A=a, B=1 - a))


JOUSSELME = {
    # Jousselme, Grenier, Bosse (2001): the third focal set grows from {1} to {1, ..., 20}.
    1: 0.7858, 2: 0.6867, 3: 0.5705, 4: 0.4237, 5: 0.1323, 6: 0.3884, 7: 0.5029,
    8: 0.5705, 9: 0.6187, 10: 0.6554, 11: 0.6844, 12: 0.7082, 13: 0.7281, 14: 0.7451,
}  # fmt: skip


@each_row(("size", "distance"), JOUSSELME.items())
def test_jousselmes_example(size: int, distance: float) -> None:
    few, seven = frozenset({2, 3, 4}), frozenset({7})
    whole, growing = frozenset(range(1, 21)), frozenset(range(1, size + 1))
    first = {few: 0.05, seven: 0.05, whole: 0.1, growing: 0.8}
    second = {frozenset(range(1, 6)): 1.0}
    assert jousselme(first, second, frame=20) == pytest.approx(distance, abs=6e-5)


def test_conflict_is_not_a_distance() -> None:
    torn = mass(A=0.5, B=0.5)
    assert combined([torn, torn], "yager", 2).conflict == pytest.approx(0.5)
    assert jousselme(torn, torn, frame=2) == 0
    # It grows with the number of masses: the same judge, its support of 0.8 on three stages.
    judge = mass(A=0.8 / 3, B=0.8 / 3, C=0.8 / 3, ABC=0.2)
    for n, conflict in ((2, 0.43), (4, 0.86), (8, 0.99)):
        assert combined([judge] * n, "yager", 3).conflict == pytest.approx(conflict, abs=0.005)


# --- oracles -------------------------------------------------------------------------------------


def dsvector(one: Mass, frame: int) -> DSVector:
    names = [str(stage) for stage in range(1, frame + 1)]
    sparse = {frozenset(map(str, chosen)): value for chosen, value in one.items()}
    return DSVector.from_sparse(names, sparse, kind=Kind.M)


def from_dsvector(vector: DSVector) -> Mass:
    return {frozenset(map(int, chosen)): value for chosen, value in vector.sparse.items() if value}


@steady
@given(panels())
def test_evtools_agrees_on_dempster_and_conflict(panel: tuple[int, list[Mass]]) -> None:
    frame, masses = panel
    both = dsvector(masses[0], frame)
    for other in masses[1:]:
        both = crc(both, dsvector(other, frame))
    torn = from_dsvector(both).get(frozenset(), 0.0)
    found = combine(masses, "dempster", frame=frame)
    assert found.conflict == pytest.approx(torn, abs=1e-9)
    if isinstance(found, Combined) and torn < 0.99:
        vector = dsvector(masses[0], frame)
        for other in masses[1:]:
            vector = evtools_dempster(vector, dsvector(other, frame))
        assert found.mass == pytest.approx(from_dsvector(vector), abs=1e-9)


@steady
@given(panels(most=1, focal=8), st.floats(0.01, 0.9))
def test_evtools_agrees_on_belief_plausibility_and_pignistic(
    panel: tuple[int, list[Mass]], alpha: float
) -> None:
    frame, [one] = panel
    vector = dsvector(one, frame)
    bel, pl = from_dsvector(vector.to_bel()), from_dsvector(vector.to_pl())
    for chosen in subsets(frame):
        assert belief(one, chosen) == pytest.approx(bel.get(chosen, 0.0), abs=1e-9)
        assert plausibility(one, chosen) == pytest.approx(pl.get(chosen, 0.0), abs=1e-9)
    assert list(pignistic(one, frame=frame).values()) == pytest.approx(vector.to_betp().tolist())
    discounted = discount(one, alpha, frame=frame)
    expected = evtools_discount(vector, 1 - alpha)
    assert discounted == pytest.approx(from_dsvector(expected), abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
@several
@given(panels())
def test_every_rule_agrees_with_the_plain_computation(
    rule: Rule, panel: tuple[int, list[Mass]]
) -> None:
    frame, masses = panel
    found, expected = combine(masses, rule, frame=frame), plain.RULES[rule](masses, frame)
    assert found.conflict == pytest.approx(plain.conflict(masses), abs=1e-9)
    if expected is None:
        assert isinstance(found, TotalConflict)
    else:
        assert isinstance(found, Combined)
        sizeable = {chosen: value for chosen, value in expected.items() if value > 1e-12}
        assert found.mass == pytest.approx({**dict.fromkeys(found.mass, 0.0), **sizeable}, abs=1e-9)


# --- properties ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@several
@given(panels(), st.integers(0, 9))
def test_a_combination_is_a_mass_whatever_the_order_of_sources(
    rule: Rule, panel: tuple[int, list[Mass]], seed: int
) -> None:
    frame, masses = panel
    found = combine(masses, rule, frame=frame)
    turned = combine(random.Random(seed).sample(masses, len(masses)), rule, frame=frame)
    assert turned.conflict == pytest.approx(found.conflict, abs=1e-12)
    if isinstance(found, TotalConflict):
        assert turned == TotalConflict()
    else:
        assert sum(found.mass.values()) == pytest.approx(1)
        assert all(chosen and value >= 0 for chosen, value in found.mass.items())
        assert turned.mass is not None
        assert turned.mass == pytest.approx(found.mass, abs=1e-9)


@steady
@given(panels(most=1, focal=8))
def test_probability_lies_between_belief_and_plausibility(panel: tuple[int, list[Mass]]) -> None:
    frame, [one] = panel
    probability = pignistic(one, frame=frame)
    assert sum(probability.values()) == pytest.approx(1)
    for chosen in subsets(frame):
        between = sum(probability[stage] for stage in chosen)
        assert belief(one, chosen) - 1e-12 <= between <= plausibility(one, chosen) + 1e-12
        others = frozenset(range(1, frame + 1)) - chosen
        assert plausibility(one, chosen) == pytest.approx(1 - belief(one, others))


@pytest.mark.parametrize("rule", ["dempster", "yager", "pcr5", "pcr6"])
@several
@given(panels(most=1))
def test_a_vacuous_mass_changes_nothing(rule: Rule, panel: tuple[int, list[Mass]]) -> None:
    frame, [one] = panel
    vacuous = {frozenset(range(1, frame + 1)): 1.0}
    found = combined([one, vacuous], rule, frame)
    assert found.mass == pytest.approx(one)
    assert found.conflict == 0


@several
@given(panels(most=3))
def test_a_vacuous_mass_is_neutral_to_dempster_among_many(panel: tuple[int, list[Mass]]) -> None:
    frame, masses = panel
    found = combine(masses, "dempster", frame=frame)
    more = combine([*masses, {frozenset(range(1, frame + 1)): 1.0}], "dempster", frame=frame)
    assert more.mass == (found.mass and pytest.approx(found.mass))
    assert more.conflict == pytest.approx(found.conflict)


@several
@given(st.lists(mass_on(4), min_size=3, max_size=3))
def test_dempsters_rule_is_associative(masses: list[Mass]) -> None:
    discounted = [discount(one, 0.1, frame=4) for one in masses]
    first = combined(discounted[:2], "dempster", 4).mass
    last = combined(discounted[1:], "dempster", 4).mass
    at_once = combined(discounted, "dempster", 4).mass
    assert combined([first, discounted[2]], "dempster", 4).mass == pytest.approx(at_once)
    assert combined([discounted[0], last], "dempster", 4).mass == pytest.approx(at_once)


def test_yager_is_not_iterated() -> None:
    masses = [mass(A=1), mass(B=1), mass(B=1)]
    assert combined(masses, "yager", 2).mass == mass(AB=1)
    pairwise = combined([combined(masses[:2], "yager", 2).mass, masses[2]], "yager", 2).mass
    assert pairwise == mass(B=1), "iterated, the last source would decide"


@steady
@given(mass_on(4), mass_on(4), mass_on(4))
def test_jousselmes_distance_is_a_metric(first: Mass, second: Mass, third: Mass) -> None:
    there = jousselme(first, second, frame=4)
    assert there == pytest.approx(sqrt(max(0, plain.squared_jousselme(first, second))), abs=1e-7)
    assert 0 <= there <= 1 + 1e-12
    assert there == pytest.approx(jousselme(second, first, frame=4), abs=1e-12)
    assert jousselme(first, first, frame=4) == 0
    detour = jousselme(first, third, frame=4) + jousselme(third, second, frame=4)
    assert there <= detour + 1e-9


@steady
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8))
def test_on_singletons_it_is_half_the_squared_euclidean_distance(
    counts: list[tuple[int, int]],
) -> None:
    totals = [sum(column) for column in zip(*counts, strict=True)]
    if not all(totals):
        return
    p, q = ([pair[side] / totals[side] for pair in counts] for side in (0, 1))
    first, second = (
        {frozenset({stage}): value for stage, value in enumerate(side, 1)} for side in (p, q)
    )
    euclid = sum((a - b) ** 2 for a, b in zip(p, q, strict=True))
    assert jousselme(first, second, frame=8) ** 2 == pytest.approx(euclid / 2, abs=1e-12)


@several
@given(mass_on(4), st.floats(0, 1))
def test_a_discount_moves_mass_to_the_frame(one: Mass, alpha: float) -> None:
    whole = frozenset({1, 2, 3, 4})
    found = discount(one, alpha, frame=4)
    assert sum(found.values()) == pytest.approx(1)
    assert found.get(whole, 0.0) == pytest.approx((1 - alpha) * one.get(whole, 0.0) + alpha)
    assert discount(one, 0, frame=4) == pytest.approx(one)
    assert discount(one, 1, frame=4) == {whole: 1}


# --- the ends of the range -----------------------------------------------------------------------


def test_total_conflict_is_a_distinct_result() -> None:
    apart = [mass(A=1), mass(B=0.5, C=0.5)]
    assert combine(apart, "dempster", frame=3) == TotalConflict(mass=None, conflict=1.0)
    # Nearly total is not total: 1 - K is 1e-24, which a difference from 1 would lose.
    nearly = [{**mass(A=1 - 1e-12), **mass(C=1e-12)}, {**mass(B=1 - 1e-12), **mass(C=1e-12)}]
    assert combined(nearly, "dempster", 3).mass == mass(C=1)


def test_underflowing_products_are_not_total_conflict() -> None:
    found = combined([mass(A=0.5, C=0.5), mass(B=0.5, C=0.5)] * 600, "dempster", 3)
    assert found.mass == mass(C=1)
    assert found.conflict == 1


def test_one_source_is_itself_under_every_rule() -> None:
    one = mass(A=0.5, BC=0.25, ABC=0.25)
    for rule in RULES:
        assert combine([one], rule, frame=3) == Combined(one, 0.0)


def test_many_votes_and_many_doubtful_sources() -> None:
    votes = [mass(A=1)] * 60 + [mass(B=1)] * 30
    assert combined(votes, "pcr6", 2).mass == pytest.approx(mass(A=2 / 3, B=1 / 3))
    assert combined(votes, "pcr5", 2).mass == pytest.approx(mass(A=0.5, B=0.5))
    mixed = [*votes, mass(A=0.5, B=0.5)]
    assert combined(mixed, "pcr6", 2).mass == pytest.approx(plain.pcr6(mixed, 2))
    doubtful = [discount(vote, 0.1, frame=2) for vote in votes]
    assert combined(doubtful, "dempster", 2).mass[frozenset({1})] > 0.99
    with pytest.raises(DesignError, match="tuples of focal sets, more than"):
        combine(doubtful, "pcr6", frame=2)


@pytest.mark.parametrize("rule", RULES)
def test_a_scale_of_26_stages_is_sparse(rule: Rule) -> None:
    rng = random.Random(7)
    whole = frozenset(range(1, 27))
    masses = [
        {**{frozenset(rng.sample(range(1, 27), 20)): 0.15 for _ in range(6)}, whole: 0.1}
        for _ in range(4)
    ]
    found = combined(masses, rule, 26)
    assert found.mass == pytest.approx(plain.RULES[rule](masses, 26), abs=1e-9)
    assert jousselme(masses[0], masses[1], frame=26) == pytest.approx(
        sqrt(plain.squared_jousselme(masses[0], masses[1]))
    )


def test_the_empty_set_is_treated_as_in_methods() -> None:
    torn = {frozenset[int](): 0.5, **mass(A=0.25, AB=0.25)}
    assert pignistic(torn, frame=2) == pytest.approx({1: 0.75, 2: 0.25})
    assert jousselme(torn, {frozenset(): 1.0}, frame=2) == pytest.approx(
        sqrt(0.5 * (0.25 + 0.25**2 + 0.25**2 + 2 * 0.25 * 0.25 / 2))
    )


# --- what is refused -----------------------------------------------------------------------------


@each_row(
    ("one", "message"),
    [
        (mass(A=0.5), "masses sum to 0.5; they must sum to 1"),
        ({}, "masses sum to 0; they must sum to 1"),
        (mass(A=0.6, B=0.6), "masses sum to 1.2; they must sum to 1"),
        (mass(A=1.5, B=-0.5), r"mass 1.5 on \[1\]; masses lie between 0 and 1"),
        (mass(A=float("nan")), r"mass nan on \[1\]"),
        ({frozenset(): 0.5, frozenset({1}): 0.5}, "mass 0.5 on the empty set"),
        (mass(A=0.5, D=0.5), r"stage 4 of \[4\]; choose 1 to 3"),
        ({frozenset({0, 1}): 1.0}, r"stage 0 of \[0, 1\]; choose 1 to 3"),
    ],
)
def test_invalid_masses_are_refused(one: Mass, message: str) -> None:
    for refuse in (
        lambda: combine([mass(A=1), one], "dempster", frame=3),
        lambda: discount(one, frame=3),
        lambda: belief(one, {1}, frame=3),
        lambda: plausibility(one, {1}, frame=3),
    ):
        with pytest.raises(DesignError, match=message):
            refuse()


def test_an_unknown_rule_is_refused_with_the_choices() -> None:
    with pytest.raises(DesignError, match="unknown rule 'dempser'; choose 'dempster', ") as refused:
        combine([mass(A=1)], cast(Rule, "dempser"), frame=2)
    assert refused.value.choices == RULES


def test_other_bad_input_is_refused() -> None:
    with pytest.raises(DesignError, match="no masses to combine; give one or more"):
        combine([], "yager", frame=3)
    for frame in (0, 1, 27):
        with pytest.raises(DesignError, match=f"a frame of {frame} stages; choose 2 to 26"):
            combine([mass(A=1)], "yager", frame=frame)
    with pytest.raises(DesignError, match=r"alpha is 1\.5; choose 0 to 1"):
        discount(mass(A=1), 1.5, frame=2)
    with pytest.raises(DesignError, match="all mass is on the empty set"):
        pignistic({frozenset(): 1.0})
