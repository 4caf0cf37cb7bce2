"""Judges against people: a plain form of the test, closed forms, simulation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.people import (
    alt_test,
    alt_test_raters,
    alt_tests,
    alternative_annotator_test,
    labelled,
)
from judge_gym.analysis.judges.table import judge_table
from judge_gym.errors import DesignError


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


def only(found: pd.DataFrame) -> dict[str, Any]:
    [row] = found.to_dict("records")
    return {str(name): value for name, value in row.items()}


# --- labels --------------------------------------------------------------------------------------


def test_labels_go_to_the_cells_of_their_experiment() -> None:
    frame = verdicts(["1", "2"])
    given = pd.concat([labels({"ann": [1, 2]}), labels({"bob": [3, 3]}).assign(tag="elsewhere")])
    assert labelled(frame, given)["rater"].tolist() == ["ann", "ann"]


def test_a_stage_beyond_the_scale_is_refused() -> None:
    with pytest.raises(DesignError, match="stage 5 by rater 'ann'; choose 1 to 4"):
        labelled(verdicts(["1"]), labels({"ann": [5]}))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DesignError, match="no column 'rater'"):
        labelled(verdicts(["1"]), labels({"ann": [1]}).drop(columns="rater"))


def test_without_labels_there_are_tables_without_rows() -> None:
    frame, none = verdicts(["1", "2"]), labels({"a": [1]}).iloc[:0]
    assert alt_test(frame, none).empty


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
        found = only(alt_test(verdicts(judge, rubric_kind=kind), labels(raters), choice))
        omega, advantage = plain_alt_test(judge, raters, kind == "ordinal", epsilon)
        assert found["omega"] == pytest.approx(omega)
        assert found["advantage"] == pytest.approx(advantage)
        assert found["passed"] is (omega >= 0.5)
        assert found["missing"] == ""


def test_a_tie_is_a_win_for_both() -> None:
    frame = verdicts(["2"] * 30)
    each = alt_test_raters(frame, labels({name: [2] * 30 for name in "abc"}))
    assert each["advantage"].tolist() == [1.0] * 3
    assert each["difference"].tolist() == [0.0] * 3
    assert each["p"].tolist() == [0.0] * 3  # no worse than any rater on any item
    assert only(alt_test(frame, labels({name: [2] * 30 for name in "abc"})))["passed"] is True


def test_a_judge_that_is_always_farther_off_fails() -> None:
    found = only(alt_test(verdicts(["4"] * 30), labels({name: [1] * 30 for name in "abc"})))
    assert (found["omega"], found["advantage"], found["passed"]) == (0.0, 0.0, False)


@pytest.mark.parametrize(
    ("items", "raters", "enough"), [(29, "abc", 0), (30, "ab", 2), (30, "a", 0)]
)
def test_missing_data_for_the_alt_test_are_named(items: int, raters: str, enough: int) -> None:
    given = labels({name: [1] * items for name in raters})
    found = only(alt_test(verdicts(["1"] * items), given))
    assert found["passed"] is None
    assert np.isnan(found["omega"])
    assert found["missing"].startswith(f"{enough} raters share at least 30 judged items")


@pytest.mark.simulation
def test_false_positive_rate_of_the_alt_test() -> None:
    """Raters agree; a judge that is off on a fifth of the items is just as bad as may be (.2)."""
    rng = np.random.default_rng(11)
    judges, items = 300, 40
    given = labels({rater: [2] * items for rater in ("ann", "bob", "cid")})

    def passed(right: float) -> float:
        judge, item = (axis.ravel() for axis in np.indices((judges, items)))
        frame = pd.DataFrame(
            {
                "judge.model": [f"j{number}" for number in judge],
                "evidence": item,
                "stages": np.where(rng.random(len(item)) < right, "2", "4"),
                **{"tag": "t", "replicate": 0, "n_stages": 4, "status": "scored"},
            }
        )
        found = alt_test(tidy(frame), given)
        assert len(found) == judges
        return float(found["passed"].astype(bool).mean())

    reach = stats.binomtest(round(passed(0.8) * judges), judges).proportion_ci(0.99, "wilson")
    assert reach.low <= 0.06
    assert passed(1.0) == 1.0


def test_unknown_annotators_are_refused() -> None:
    with pytest.raises(DesignError, match="choose 'expert', 'skilled' or 'crowd'"):
        alt_test(verdicts(["1"]), labels({"a": [1]}), "wizards")  # type: ignore[arg-type]


def test_the_sentence_names_the_kind_of_raters_and_epsilon() -> None:
    frame, people = verdicts(["2"] * 30), labels({name: [2] * 30 for name in "abc"})
    [expert], [crowd] = (
        alt_tests(frame, people).values(),
        alt_tests(frame, people, "crowd").values(),
    )
    assert expert.sentence("j") == (
        "j passes the alternative annotator test: it wins against 3 of 3 raters; a judge passes "
        "if it is at most .2 behind the rater (expert), for at least half of the raters."
    )
    assert "at most .1 behind the rater (crowd)" in crowd.sentence("j")
    [number] = alt_tests(frame, people, 0.05).values()
    assert "at most .05 behind the rater, for at least half" in number.sentence("j")


def test_where_clusters_change_the_result_both_are_told() -> None:
    """The judge errs on all items of one cluster of ten: few errors, all of one kind."""
    stages = np.full((60, 3), 2.0)
    judge = np.where(np.arange(60) < 5, 4.0, 2.0)
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
        np.full((60, 3), 2.0), np.tile([2.0, 2.0, 3.0], 20), codes, ordered=True
    )
    assert test.passed is None
    assert test.sentence("j").startswith(
        "Whether j can replace a rater is not known: the items of 3 raters lie in too few clusters"
    )


def test_two_raters_are_no_test() -> None:
    [test] = alt_tests(verdicts(["2"] * 30), labels({name: [2] * 30 for name in "ab"})).values()
    assert test.sentence("j") == (
        "Whether j can replace a rater is not known: 2 raters share at least 30 judged items with "
        "another; 3 are needed."
    )
