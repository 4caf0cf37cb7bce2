"""Judges against people: a plain form of the test, closed forms, simulation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.people import alternative_annotator_test
from judge_gym.analysis.judges.table import judge_table
from judge_gym.errors import DesignError
from judge_gym.records.judge_table import ReplacementTest
from judge_gym.studies.declarations import Epsilon


def verdicts(stages: Sequence[object], *, judge: str = "j", **more: Any) -> pd.DataFrame:
    """A tidy frame: the judge's verdict on items 0, 1, ...; replicates are divided by a slash."""
    rows = [
        {"judge.model": judge, "tag": "t", "evidence": item, "replicate": r, "n_stages": 4}
        | {"status": "scored", "stages": chosen}
        | more
        for item, each in enumerate(stages)
        for r, chosen in enumerate(str(each).split("/"))
    ]
    return tidy(pd.DataFrame(rows))


def labels(by_rater: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """What raters say of items 0, 1, ...; 0 is nothing."""
    rows = [
        {"tag": "t", "evidence": item, "rater": rater, "stage": stage}
        for rater, stages in by_rater.items()
        for item, stage in enumerate(stages)
        if stage
    ]
    return pd.DataFrame(rows)


def at(stages: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The verdicts of a judge with one repeat, on four stages."""
    one_hot: npt.NDArray[np.float64] = np.eye(4)[np.asarray(stages, dtype=int) - 1]
    return one_hot


def replacement(
    frame: pd.DataFrame, people: pd.DataFrame, epsilon: Epsilon = "expert"
) -> ReplacementTest:
    """The alternative annotator test of the only setup of a judge table."""
    [test] = judge_table(frame, people, alt_test=epsilon)["alt_test"]
    return test


# --- labels --------------------------------------------------------------------------------------


def test_labels_of_another_experiment_count_nowhere() -> None:
    people = pd.concat([labels({"ann": [1, 2]}), labels({"bob": [3, 3]}).assign(tag="elsewhere")])
    assert judge_table(verdicts(["1", "2"]), people)["raters"] == 1


def test_a_stage_beyond_the_scale_is_refused() -> None:
    with pytest.raises(DesignError, match="stage 5 by rater 'ann'; choose 1 to 4"):
        judge_table(verdicts(["1"]), labels({"ann": [5]}))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DesignError, match="no column 'rater'"):
        judge_table(verdicts(["1"]), labels({"ann": [1]}).drop(columns="rater"))


def test_without_labels_there_is_no_test() -> None:
    assert judge_table(verdicts(["1", "2"]), labels({"a": [1]}).iloc[:0])["alt_test"] == []


def test_agreement_with_the_majority_by_hand() -> None:
    frame = verdicts(["1/1/2/1", "3 4", "2", "4", "1"])
    last = frame["evidence"] == 4
    frame = frame.assign(
        status=frame["status"].mask(last, "abstained"),
        stages=frame["stages"].mask(last, ""),
        mask=frame["mask"].mask(last, 0),
    )
    given = labels({"a": [1, 3, 2, 1, 1], "b": [1, 3, 3, 1, 1], "c": [2, 1, 0, 1, 1]})
    table = judge_table(frame, given)
    majority = table["rows"][0]["majority"]
    assert majority is not None and table["raters"] == 3
    # The raters tie on the third item; an abstention agrees with none.
    assert majority["value"] == pytest.approx((0.75 + 0.5 + 0 + 0) / 4) and majority["n"] == 4


# --- the alternative annotator test --------------------------------------------------------------


def plain_alt_test(
    judge: list[int], raters: dict[str, list[int]], ordered: bool, epsilon: float
) -> tuple[float, float]:
    """Winning rate and advantage, written out: one rater left out, the others as the measure."""

    def score(stage: int, others: list[int]) -> float:
        if ordered:
            return -float(np.sqrt(np.mean([(stage - other) ** 2 for other in others])))
        return float(np.mean([stage == other for other in others]))

    p_values, advantages = [], []
    for name, own in raters.items():
        rater_wins, judge_wins = [], []
        for item, stage in enumerate(own):
            others = [said[item] for other, said in raters.items() if other != name and said[item]]
            if stage and others:
                mine, its = score(stage, others), score(judge[item], others)
                rater_wins.append(float(mine >= its - 1e-12))
                judge_wins.append(float(its >= mine - 1e-12))
        gap = np.array(rater_wins) - np.array(judge_wins)
        t = (gap.mean() - epsilon) / (gap.std(ddof=1) / np.sqrt(len(gap)))
        p_values.append(float(stats.t.cdf(t, len(gap) - 1)))
        advantages.append(float(np.mean(judge_wins)))
    m = len(p_values)
    harmonic = sum(1 / k for k in range(1, m + 1))
    ranked = sorted(p_values)
    passing = [k for k in range(1, m + 1) if ranked[k - 1] <= k / m * 0.05 / harmonic]
    return max(passing, default=0) / m, float(np.mean(advantages))


@pytest.mark.parametrize("kind", ["ordinal", "nominal"])
@pytest.mark.parametrize(
    ("choice", "epsilon"), [("expert", 0.2), ("skilled", 0.15), ("crowd", 0.1), (0.05, 0.05)]
)
def test_the_alt_test_is_the_plain_one(kind: str, choice: Any, epsilon: float) -> None:
    rng = np.random.default_rng(11)
    for noise in (0.2, 0.5, 0.9):
        truth = rng.integers(1, 5, 60)

        def noisy(share: float, truth: npt.NDArray[np.int64] = truth) -> list[int]:
            return [int(x) for x in np.where(rng.random(60) < share, rng.integers(1, 5, 60), truth)]

        raters = {name: noisy(0.4) for name in "abcd"}
        raters["d"] = [stage if item % 3 else 0 for item, stage in enumerate(raters["d"])]
        judge = noisy(noise)
        test = replacement(verdicts(judge, rubric_kind=kind), labels(raters), choice)
        omega, advantage = plain_alt_test(judge, raters, kind == "ordinal", epsilon)
        assert test["omega"] == pytest.approx(omega)
        assert test["advantage"] == pytest.approx(advantage)
        assert test["passed"] is (omega >= 0.5)
        assert test["missing"] == ""


def test_a_tie_is_a_win_for_both() -> None:
    """The judge is then no worse than any rater on any item."""
    test = replacement(verdicts(["2"] * 30), labels({name: [2] * 30 for name in "abc"}))
    assert (test["omega"], test["advantage"], test["passed"]) == (1.0, 1.0, True)


def test_a_judge_that_is_always_farther_off_fails() -> None:
    test = replacement(verdicts(["4"] * 30), labels({name: [1] * 30 for name in "abc"}))
    assert (test["omega"], test["advantage"], test["passed"]) == (0.0, 0.0, False)


@pytest.mark.parametrize("kind", ["ordinal", "nominal"])
def test_a_verdict_without_a_score_equals_no_label(kind: str) -> None:
    """Six of forty verdicts cannot be read: on these items raters, who agree, win alone."""
    frame = verdicts(["2"] * 40, rubric_kind=kind)
    unread = frame["evidence"] < 6
    frame = frame.assign(
        status=frame["status"].mask(unread, "unparsed"),
        stages=frame["stages"].mask(unread, ""),
        mask=frame["mask"].mask(unread, 0),
    )
    test = replacement(frame, labels({name: [2] * 40 for name in "abc"}))
    assert test["advantage"] == pytest.approx(34 / 40)


def test_a_verdict_without_a_score_is_as_far_off_as_the_scale_allows() -> None:
    """On a scale of four stages, a label of 2 is at most 2 away, and a label of 1 is 3 away."""
    unread = np.zeros((30, 4))

    def advantage(*stages: int) -> float:
        raters = np.tile(np.array(stages, dtype=float), (30, 1))
        return alternative_annotator_test(raters, unread, ordered=True).advantage

    # A rater at 4 is 2 from the two at 2, as the unread verdict is: a tie on one of three raters.
    assert advantage(2, 2, 4) == pytest.approx(1 / 3)
    assert advantage(1, 1, 3) == 0.0
    nominal = np.tile([2.0, 2.0, 4.0], (30, 1))
    # Among unordered labels the rater at 4 agrees with nobody, and neither does the verdict.
    assert alternative_annotator_test(nominal, unread, ordered=False).advantage == pytest.approx(
        1 / 3
    )


@pytest.mark.parametrize("kind", ["ordinal", "nominal"])
def test_repeats_that_tie_count_by_their_mean(kind: str) -> None:
    """Half of the repeats agree with the raters, who agree with each other."""
    frame = verdicts(["2/3"] * 40, rubric_kind=kind)
    test = replacement(frame, labels({name: [2] * 40 for name in "abc"}))
    assert test["advantage"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("items", "raters", "enough"), [(29, "abc", 0), (30, "ab", 2), (30, "a", 0)]
)
def test_missing_data_for_the_alt_test_are_named(items: int, raters: str, enough: int) -> None:
    stages = np.ones((items, len(raters)))
    test = alternative_annotator_test(stages, at(np.ones(items)), ordered=True)
    assert test.passed is None
    assert np.isnan(test.omega)
    assert test.missing.startswith(f"{enough} raters share at least 30 judged items")


@pytest.mark.simulation
def test_false_positive_rate_of_the_alt_test() -> None:
    """Raters agree; a judge that is off on a fifth of the items is just as bad as may be (.2)."""
    rng = np.random.default_rng(11)
    judges, items = 300, 40

    def passed(right: float) -> float:
        results = []
        for _ in range(judges):
            judge = at(np.where(rng.random(items) < right, 2, 4))
            test = alternative_annotator_test(np.full((items, 3), 2.0), judge, ordered=True)
            results.append(test.passed)
        return float(np.mean([bool(result) for result in results]))

    reach = stats.binomtest(round(passed(0.8) * judges), judges).proportion_ci(0.99, "wilson")
    assert reach.low <= 0.06
    assert passed(1.0) == 1.0


def test_unknown_annotators_are_refused() -> None:
    with pytest.raises(DesignError, match="choose 'expert', 'skilled' or 'crowd'"):
        replacement(verdicts(["1"]), labels({name: [1] for name in "abc"}), "wizards")  # type: ignore[arg-type]


def test_the_sentence_names_the_kind_of_raters_and_epsilon() -> None:
    frame, people = verdicts(["2"] * 30), labels({name: [2] * 30 for name in "abc"})
    assert replacement(frame, people)["sentence"] == (
        "j passes the alternative annotator test: it wins against 3 of 3 raters; a judge passes "
        "if it is at most .2 behind the rater (expert), for at least half of the raters."
    )
    assert "at most .1 behind the rater (crowd)" in replacement(frame, people, "crowd")["sentence"]
    number = replacement(frame, people, 0.05)["sentence"]
    assert "at most .05 behind the rater, for at least half" in number


def test_where_clusters_change_the_result_both_are_told() -> None:
    """The judge errs on all items of one cluster of ten: few errors, all of one kind."""
    stages = np.full((60, 3), 2.0)
    judge = at(np.where(np.arange(60) < 5, 4, 2))
    by_item = alternative_annotator_test(stages, judge, ordered=True)
    codes = np.arange(60) // 6
    by_cluster = alternative_annotator_test(stages, judge, codes, ordered=True)
    assert (by_item.passed, by_item.published_passed) == (True, True)
    assert (by_cluster.passed, by_cluster.published_passed) == (False, True)
    assert by_cluster.sentence("j").endswith(
        "Here items are in clusters; by the published procedure, which takes items as "
        "independent, it passes (3 of 3 raters)."
    )
    assert by_cluster.row()["published_passed"] is True


def test_with_too_few_clusters_the_published_result_stands_alone() -> None:
    codes = np.repeat([0, 1, 2], 20)
    test = alternative_annotator_test(
        np.full((60, 3), 2.0), at(np.tile([2, 2, 3], 20)), codes, ordered=True
    )
    assert test.passed is None
    assert test.sentence("j").startswith(
        "Whether j can replace a rater is not known: the items of 3 raters lie in too few clusters"
    )


def test_two_raters_are_no_test() -> None:
    test = alternative_annotator_test(np.full((30, 2), 2.0), at(np.full(30, 2)), ordered=True)
    assert test.sentence("j") == (
        "Whether j can replace a rater is not known: 2 raters share at least 30 judged items with "
        "another; 3 are needed."
    )
