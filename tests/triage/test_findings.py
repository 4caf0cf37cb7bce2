"""Verdicts become a class with its share; quotes are checked; judges conflict."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain_belief
from judge_gym.errors import DesignError
from judge_gym.triage import CLASSES, UNDECIDED, Case, Finding, make_finding
from judge_gym.triage.findings import occurs
from made_runs import SLUG_CODE, cases, judge_verdicts
from tables import each_row

FAULT, STRICT, AMBIGUOUS, GAP = CLASSES
ONE, TWO = "sim:one", "sim:two"
ClassesByJudge = dict[str, list[list[str]]]


def judged(classes: ClassesByJudge, body: str = "", case: int = 0) -> Finding:
    one = cases()[case]
    return make_finding(one, judge_verdicts(one, classes, body))


def quoting(model: str, expected: str = "NONE") -> str:
    return (
        f"REASONING: So.\nMODEL CODE:\n````\n{model}\n````\nEXPECTED CODE:\n````\n{expected}\n````"
    )


# --- the class -----------------------------------------------------------------------------------


@each_row(
    ("classes", "classification", "share"),
    [
        ([[FAULT], [FAULT], [STRICT]], FAULT, 2 / 3),
        ([[FAULT], [STRICT]], UNDECIDED, 1 / 2),
        ([[FAULT, STRICT], [STRICT]], STRICT, 3 / 4),
        ([[FAULT, STRICT], [FAULT, STRICT]], UNDECIDED, 1 / 2),
        ([[FAULT, STRICT, GAP]] * 3 + [[GAP]], GAP, 1 / 2),
        ([["ABSTAIN"], [AMBIGUOUS]], AMBIGUOUS, 1.0),
        ([["ABSTAIN"], ["garbled"], []], UNDECIDED, None),
        ([], UNDECIDED, None),
    ],
)
def test_the_plurality_of_the_scored_mass_decides(
    classes: list[list[str]], classification: str, share: float | None
) -> None:
    found = judged({ONE: classes})
    assert found.classification == classification
    assert found.counts.share == pytest.approx(share) if share else found.counts.share is None


def test_a_tie_of_thirds_is_a_tie() -> None:
    """Sums of floats would have to be lucky."""
    found = judged({ONE: [[FAULT, STRICT, GAP]] * 3 + [[AMBIGUOUS]]})
    assert found.counts.masses == dict.fromkeys(CLASSES, Fraction(1))
    assert found.classification == UNDECIDED


def test_failed_verdicts_are_counted_and_give_no_mass() -> None:
    found = judged({ONE: [[FAULT], ["ABSTAIN"], ["garbled"]], TWO: [[FAULT], [], ["ABSTAIN"]]})
    assert found.counts.statuses == {
        "scored": 2,
        "abstained": 2,
        "parse_failed": 1,
        "provider_error": 1,
    }
    assert found.judges[TWO].statuses == {"scored": 1, "abstained": 1, "provider_error": 1}
    assert found.counts.share == 1.0


choices = st.sampled_from([list(s) for n in (1, 2, 3) for s in itertools.combinations(CLASSES, n)])
verdicts = st.lists(choices | st.sampled_from([["ABSTAIN"], ["garbled"], []]), max_size=5)


@settings(deadline=None)
@given(verdicts, verdicts)
def test_class_and_conflict_equal_a_separate_computation(
    first: list[list[str]], second: list[list[str]]
) -> None:
    found = judged({ONE: first, TWO: second})
    twelfths = dict.fromkeys(CLASSES, 0)
    for chosen in [*first, *second]:
        for name in set(chosen) & set(CLASSES):
            twelfths[name] += 12 // len(chosen)
    top = [name for name in CLASSES if twelfths[name] == max(twelfths.values())]
    assert found.classification == (top[0] if len(top) == 1 else UNDECIDED)
    assert sum(found.counts.statuses.values()) == len(first) + len(second)
    masses = [mass for mass in map(by_the_book, (first, second)) if mass]
    if len(masses) == 2:
        assert found.conflict == pytest.approx(plain_belief.conflict(masses))
    else:
        assert found.conflict is None


def by_the_book(verdicts: list[list[str]]) -> plain_belief.Mass:
    chosen = [frozenset(CLASSES.index(name) + 1 for name in s if name in CLASSES) for s in verdicts]
    scored = [one for one in chosen if one]
    return {one: scored.count(one) / len(scored) for one in scored}


def test_a_verdict_on_another_failure_is_refused() -> None:
    one, two, *_ = cases()
    with pytest.raises(DesignError, match="among those on"):
        make_finding(one, judge_verdicts(two, {ONE: [[FAULT]]}))


# --- conflict ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "between", "own", "disputed"),
    [
        ([[FAULT]] * 2, [[STRICT]] * 2, 1.0, 0.0, True),
        ([[FAULT]] * 2, [[FAULT]] * 2, 0.0, 0.0, False),
        ([[FAULT], [STRICT]], [[FAULT], [STRICT]], 0.5, 0.5, False),
        ([[FAULT, STRICT]], [[STRICT]], 0.0, 0.0, False),
        ([[FAULT], [FAULT, STRICT]], [[STRICT]], 0.5, 0.0, True),
        ([[FAULT]], [["ABSTAIN"]], None, None, False),
    ],
)
def test_judges_conflict_by_the_mass_that_excludes_the_others(
    first: list[list[str]],
    second: list[list[str]],
    between: float | None,
    own: float | None,
    disputed: bool,
) -> None:
    found = judged({ONE: first, TWO: second})
    assert found.conflict == (None if between is None else pytest.approx(between))
    assert found.own_conflict == (None if own is None else pytest.approx(own))
    assert found.disputed is disputed


def test_one_judge_has_no_conflict_with_others() -> None:
    assert judged({ONE: [[FAULT], [STRICT]]}).conflict is None


# --- explanations --------------------------------------------------------------------------------


def test_one_explanation_is_shown_where_judges_agree_and_one_each_otherwise() -> None:
    agreed = judged({ONE: [[FAULT]] * 2, TWO: [[FAULT]]})
    assert [one.classes for one in agreed.explanations] == [(FAULT,)]
    apart = judged({ONE: [[FAULT]] * 2, TWO: [[STRICT]]})
    assert [(one.judge, one.classes) for one in apart.explanations] == [
        (ONE, (FAULT,)),
        (TWO, (STRICT,)),
    ]


def test_the_explanation_for_the_joint_class_comes_first() -> None:
    found = judged({ONE: [[STRICT]], TWO: [[FAULT]] * 2})
    assert [one.judge for one in found.explanations] == [TWO, ONE]


def test_the_explanation_shown_is_of_a_verdict_for_that_class() -> None:
    found = judged({ONE: [[STRICT], [FAULT], [FAULT]]})
    assert [one.classes for one in found.explanations] == [(FAULT,)]


def test_quotes_are_found_in_their_part_of_the_evidence() -> None:
    found = judged(
        {ONE: [[FAULT]]}, quoting("return text.lower()", "assert slugify('a  b') == 'a-b'")
    )
    [one] = found.explanations
    assert one.model_code is not None and one.expected_code is not None
    assert (one.model_code.part, one.expected_code.part) == ("candidate", "grader")
    assert (found.quotes, found.missing_quotes) == (2, 0)


def test_an_invented_quote_is_marked_and_counted() -> None:
    found = judged({ONE: [[FAULT]] * 3}, quoting("return text.upper()", "assert slugify"))
    assert found.explanations[0].model_code is not None
    assert found.explanations[0].model_code.part is None
    assert (found.quotes, found.missing_quotes) == (6, 3)


def respaced(text: str) -> st.SearchStrategy[str]:
    words = text.split()
    gaps = st.lists(st.sampled_from([" ", "  ", "\n", "\t", "\n    "]), min_size=len(words))
    return gaps.map(lambda spaces: "".join(w + s for w, s in zip(words, spaces, strict=False)))


@settings(deadline=None)
@given(respaced(SLUG_CODE))
def test_a_quote_is_found_whatever_its_white_space(snippet: str) -> None:
    assert occurs(snippet, SLUG_CODE)


@settings(deadline=None)
@given(st.integers(0, len(SLUG_CODE.split()) - 1))
def test_a_quote_with_a_word_changed_is_not_found(place: int) -> None:
    words = SLUG_CODE.split()
    words[place] = f"un{words[place]}"
    assert not occurs(" ".join(words), SLUG_CODE)


def test_dots_in_a_quote_stand_for_omitted_lines() -> None:
    text = "a = 1\nb = 2\nc = 3\n"
    assert occurs("a = 1\n...\nc = 3", text)
    assert not occurs("c = 3\n...\na = 1", text)
    assert not occurs("...", text)
    assert not occurs("", text)


# --- known gaps ----------------------------------------------------------------------------------


def test_a_known_gap_without_an_entry_stays_as_scored_and_is_unsupported() -> None:
    found = judged({ONE: [[GAP]] * 3})
    assert (found.classification, found.supported) == (GAP, False)


def test_a_known_gap_with_a_matching_entry_is_supported() -> None:
    found = judged({ONE: [[GAP]]}, case=2)
    assert found.case.facts.gap is not None
    assert found.supported is True


def without_match(one: Case) -> Case:
    return replace(one, facts=replace(one.facts, gap=None))


@pytest.mark.parametrize(
    ("quote", "supported"),
    [
        ("does not say how ties are ordered", True),
        ("does not say how ties are sorted", False),
        ("the", False),
    ],
)
def test_a_quoted_entry_supports_a_gap_that_no_words_match(quote: str, supported: bool) -> None:
    one = without_match(cases()[2])
    found = make_finding(one, judge_verdicts(one, {ONE: [[GAP]]}, quoting("NONE", quote)))
    assert found.supported is supported


def test_other_classes_need_no_gap() -> None:
    assert judged({ONE: [[FAULT]]}).supported is None
