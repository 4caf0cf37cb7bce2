"""Measures of the averaged confusion matrix, against scikit-learn and worked examples."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    confusion_matrix,
    mean_absolute_error,
    precision_recall_fscore_support,
)
from statsmodels.stats.inter_rater import fleiss_kappa

from judge_gym.analysis.measures.confusion import (
    Floats,
    MatrixFunction,
    Rate,
    absolute_error,
    averaged_confusion,
    balanced,
    confusion_tables,
    exact,
    expected_loss,
    f1,
    kappa,
    macro_f1,
    precision,
    recall,
    sensitivity,
    signed_bias,
    specificity,
    squared_error,
    statistic,
    unscored,
    weighted_kappa,
    within_one,
)
from judge_gym.analysis.measures.people import rater_pair_tables
from judge_gym.analysis.measures.rank import mean_stage, rank_correlation

DATA = Path(__file__).parents[3] / "shared" / "data"
PANDALM, LLM_RUBRIC = DATA / "pandalm", DATA / "llm-rubric"
ABSTAINED, UNREADABLE = 0, 3  # rows after the stages


def single_verdicts(categories: list[int], stages: int) -> Floats:
    return np.eye(stages + 4)[categories]


def labels(categories: list[int], stages: int) -> Floats:
    return np.eye(stages)[categories]


def measured(measure: MatrixFunction, verdict: Floats, label: Floats) -> float:
    return float(measure(averaged_confusion(confusion_tables(verdict, label))))


def panel(seed: int, stages: int) -> tuple[list[int], list[int]]:
    """A judge's stages and people's, of which some are far apart."""
    draws = np.random.default_rng(seed)
    people = draws.integers(0, stages, 150)
    judge = np.where(draws.random(150) < 0.6, people, draws.integers(0, stages, 150))
    return judge.tolist(), people.tolist()


# --- independent implementations -----------------------------------------------------------------


@pytest.mark.parametrize("stages", [2, 3, 5])
@pytest.mark.parametrize("seed", [1, 2])
def test_measures_equal_those_of_scikit_learn_for_one_rater_and_no_missing_verdict(
    seed: int, stages: int
) -> None:
    judge, people = panel(seed, stages)
    verdict, label = single_verdicts(judge, stages), labels(people, stages)
    matrix = averaged_confusion(confusion_tables(verdict, label))
    counts = confusion_matrix(people, judge, labels=range(stages)).T  # ours has verdicts as rows
    np.testing.assert_allclose(matrix[:stages], counts / len(judge), atol=1e-12)
    rates = precision_recall_fscore_support(people, judge, labels=range(stages))
    for rate, theirs in zip((precision, recall, f1), rates, strict=False):
        ours = [measured(rate(stages, place), verdict, label) for place in range(stages)]
        assert ours == pytest.approx(list(theirs), abs=1e-12)
    macro = precision_recall_fscore_support(people, judge, average="macro")[2]
    expected: dict[MatrixFunction, float] = {
        kappa: cohen_kappa_score(judge, people),
        weighted_kappa: cohen_kappa_score(judge, people, weights="quadratic"),
        balanced(stages): balanced_accuracy_score(people, judge),
        macro_f1(stages): macro,
        absolute_error(stages): mean_absolute_error(people, judge),
        signed_bias(stages): float(np.mean(np.subtract(judge, people))),
        exact(stages): float(np.mean(np.equal(judge, people))),
        within_one(stages): float(np.mean(np.abs(np.subtract(judge, people)) <= 1)),
    }
    for measure, value in expected.items():
        assert measured(measure, verdict, label) == pytest.approx(value, abs=1e-12)


def test_kappa_of_people_with_each_other_has_the_disagreement_of_fleiss() -> None:
    draws = np.random.default_rng(3)
    truth = draws.integers(0, 3, 80)
    ratings = np.where(draws.random((80, 4)) < 0.7, truth[:, None], draws.integers(0, 3, (80, 4)))
    counts = (ratings[:, :, None] == np.arange(3)).sum(axis=1).astype(float)
    tables = rater_pair_tables(counts)
    assert float(kappa(averaged_confusion(tables))) == pytest.approx(
        fleiss_kappa(counts), abs=1e-12
    )


# --- worked by hand ------------------------------------------------------------------------------


def test_raters_and_repeats_and_stages_of_a_subset_share_an_item_equally() -> None:
    # Item 1: repeats pass, pass, fail, unreadable; raters pass, fail. Item 2: {fail, pass}; pass.
    verdict = np.array([[0.25, 0.5, 0, 0, 0, 0.25], [0.5, 0.5, 0, 0, 0, 0]])
    label = np.array([[0.5, 0.5], [0.0, 1.0]])
    matrix = averaged_confusion(confusion_tables(verdict, label))
    shares: list[float] = [1 / 16, 5 / 16, 1 / 8, 3 / 8, 0, 0, 0, 0, 0, 0, 1 / 16, 1 / 16]
    assert matrix.ravel().tolist() == pytest.approx(shares)
    assert measured(exact(2), verdict, label) == pytest.approx(7 / 16)
    assert measured(sensitivity(1), verdict, label) == pytest.approx((3 / 8) / (3 / 4))
    assert measured(specificity(1), verdict, label) == pytest.approx((1 / 16) / (1 / 4))
    assert measured(unscored(2), verdict, label) == pytest.approx(1 / 8)


def test_people_with_each_other_are_all_ordered_pairs_of_raters_of_an_item() -> None:
    # Raters 1, 1, 2 of the first item: of six ordered pairs two agree; a lone rater has no pair.
    tables = rater_pair_tables(np.array([[2.0, 1.0], [0.0, 1.0], [0.0, 2.0]]))
    np.testing.assert_allclose(tables[0, :2], [[1 / 3, 1 / 3], [1 / 3, 0]])
    assert not tables[1].any()
    assert float(exact(2)(averaged_confusion(tables))) == pytest.approx((1 / 3 + 1) / 2)


def test_a_judge_that_never_answers_is_never_right_and_has_no_agreement_beyond_chance() -> None:
    people = [0, 1, 2, 2, 1, 0, 0]
    verdict, label = single_verdicts([3 + ABSTAINED] * 7, 3), labels(people, 3)
    assert measured(exact(3), verdict, label) == 0
    assert measured(kappa, verdict, label) == pytest.approx(0)
    assert measured(weighted_kappa, verdict, label) == pytest.approx(0)
    assert measured(balanced(3), verdict, label) == 0
    assert np.isnan(measured(signed_bias(3), verdict, label))
    assert measured(absolute_error(3), verdict, label) == pytest.approx((2 + 1 + 2 + 2 + 1 + 4) / 7)


def test_an_unreadable_verdict_counts_in_kappa_as_a_disagreement() -> None:
    # Verdicts A A B ?, people A B B A: agreement 2/4; by chance A 2/4 * 2/4 + B 1/4 * 2/4.
    verdict, label = single_verdicts([0, 0, 1, 2 + UNREADABLE], 2), labels([0, 1, 1, 0], 2)
    assert measured(kappa, verdict, label) == pytest.approx((1 / 2 - 3 / 8) / (1 - 3 / 8))
    assert measured(weighted_kappa, verdict, label) == pytest.approx((1 / 2 - 3 / 8) / (1 - 3 / 8))


def test_an_unreadable_verdict_has_the_largest_distance_of_its_label() -> None:
    # Stages 1 1 3 ? against 1 2 3 2: squared distances 0 1 0 and 1 (stage 2 of 3 is 1 from both).
    verdict, label = single_verdicts([0, 0, 2, 3 + UNREADABLE], 3), labels([0, 1, 2, 1], 3)
    assert measured(squared_error(3), verdict, label) == pytest.approx(2 / 4)
    # By chance: verdicts 1 (half), 3, ? against labels 1, 2 (half), 3.
    by_one, by_three, unread = (0 + 2 + 4) / 4, (4 + 2 + 0) / 4, (4 + 2 + 4) / 4
    expected = by_one / 2 + by_three / 4 + unread / 4
    assert measured(weighted_kappa, verdict, label) == pytest.approx(1 - 0.5 / expected)
    assert measured(absolute_error(3), verdict, label) == pytest.approx(2 / 4)
    assert measured(signed_bias(3), verdict, label) == pytest.approx(-1 / 3)


def test_declared_loss_counts_misses_and_false_alarms_and_unreadable_verdicts_as_either() -> None:
    # Positive is stage 2. A miss, a false alarm, both right, and unreadable on either label.
    verdict = single_verdicts([0, 1, 0, 1, 5, 5], 2)
    label = labels([1, 0, 0, 1, 1, 0], 2)
    loss = expected_loss(1, miss=5, false_alarm=1)
    assert measured(loss, verdict, label) == pytest.approx((5 + 1 + 0 + 0 + 5 + 1) / 6)
    assert loss.high == 5


def test_rates_are_ratios_of_sums_over_items() -> None:
    judge, people = panel(4, 3)
    verdict, label = single_verdicts(judge, 3), labels(people, 3)
    verdict[:20] = single_verdicts([3 + UNREADABLE] * 20, 3)
    tables = confusion_tables(verdict, label)
    rates: list[Rate] = [exact(3), recall(3, 1), precision(3, 2), f1(3, 0), signed_bias(3)]
    for rate in rates:
        numerator, denominator = rate.by_item(tables)
        value = numerator.sum() / denominator.sum()
        assert measured(rate, verdict, label) == pytest.approx(value, abs=1e-12)
        assert statistic(tables, rate).value == pytest.approx(value, abs=1e-12)
        assert rate.low <= value <= rate.high


def test_statistics_of_several_samples_are_computed_at_once() -> None:
    judge, people = panel(5, 3)
    tables = confusion_tables(single_verdicts(judge, 3), labels(people, 3))
    for measure in (kappa, weighted_kappa, balanced(3), macro_f1(3), exact(3)):
        whole = statistic(tables, measure)
        sums = np.stack([whole.rows[:50].sum(axis=0), whole.rows[50:].sum(axis=0)])
        each = [statistic(part, measure).value for part in (tables[:50], tables[50:])]
        np.testing.assert_allclose(whole.of(sums), each, atol=1e-12)


def test_undefined_measures_are_not_a_number() -> None:
    everybody_passes = labels([1, 1, 1], 2)
    verdict = single_verdicts([1, 1, 1], 2)
    for measure in (kappa, weighted_kappa, balanced(2), specificity(1), precision(2, 0)):
        assert np.isnan(measured(measure, verdict, everybody_passes))
    assert measured(sensitivity(1), verdict, everybody_passes) == 1


def test_items_without_a_verdict_or_a_label_have_no_influence() -> None:
    verdict, label = single_verdicts([0, 1, 1], 2), labels([0, 1, 0], 2)
    more_verdicts = np.vstack([verdict, np.full((1, 6), np.nan), verdict[:1]])
    more_labels = np.vstack([label, label[:1], np.zeros((1, 2))])
    tables = confusion_tables(more_verdicts, more_labels)
    assert measured(kappa, more_verdicts, more_labels) == measured(kappa, verdict, label)
    assert tables.sum(axis=(1, 2)).tolist() == [1, 1, 1, 0, 0]


# --- which judge is better depends on the measure ------------------------------------------------


def test_exact_equality_prefers_a_constant_to_a_judge_that_is_shifted_but_ranks_well() -> None:
    draws = np.random.default_rng(6)
    quality = draws.normal(size=1600)
    cuts = [-2.2, -1.5, -0.8, 0.8]  # people say 4 most often
    ratings = np.searchsorted(cuts, quality[:, None] + 0.5 * draws.normal(size=(1600, 3)))
    noisy = 0.75 * quality + 0.6 * draws.normal(size=1600)
    shifted = np.searchsorted(cuts, noisy) - 1
    label = np.eye(5)[ratings].mean(axis=1)
    judges = {
        "shifted": single_verdicts(np.maximum(shifted, 0).tolist(), 5),
        "always 4": single_verdicts([3] * 1600, 5),
    }
    people = label @ np.arange(1.0, 6)
    rank = {
        name: rank_correlation(mean_stage(verdict, 5), people, kind="spearman").jackknife.value
        for name, verdict in judges.items()
    }
    same = {name: measured(exact(5), verdict, label) for name, verdict in judges.items()}
    weighted = {name: measured(weighted_kappa, verdict, label) for name, verdict in judges.items()}
    bias = {name: measured(signed_bias(5), verdict, label) for name, verdict in judges.items()}
    assert rank["shifted"] == pytest.approx(0.6, abs=0.1) and np.isnan(rank["always 4"])
    assert bias["shifted"] == pytest.approx(-0.9, abs=0.2)
    assert same["always 4"] > same["shifted"] + 0.1
    assert weighted["shifted"] > weighted["always 4"] + 0.2
    assert weighted["always 4"] == pytest.approx(0)


# --- published data ------------------------------------------------------------------------------


def pandalm_answers(judge: str, key: str, garbage: str | None = None) -> list[int]:
    """Verdicts of a published judge: ties are the third label, garbage is unreadable or a tie."""
    stage = {"1": 0, "2": 1, "0": 2, "Tie": 2, "garbage": 3 + UNREADABLE}
    if garbage == "tie":
        stage["garbage"] = 2
    rows = json.loads((PANDALM / f"{judge}-testset-v1.json").read_text("utf-8"))
    return [stage[str(row[f"{key}_result"])] for row in rows]


def pandalm_ratings() -> list[list[int]]:
    rows: list[dict[str, Any]] = json.loads((PANDALM / "testset-v1.json").read_text("utf-8"))
    raters = ("annotator1", "annotator2", "annotator3")
    return [[(row[rater] or 3) - 1 for rater in raters] for row in rows]


needs_pandalm = pytest.mark.skipif(
    not PANDALM.is_dir(), reason="the published data of PandaLM is not beside the repository"
)


@needs_pandalm
def test_agreement_with_people_of_pandalm_is_reproduced() -> None:
    ratings = np.array(pandalm_ratings())
    counts = (ratings[:, :, None] == np.arange(3)).sum(axis=1).astype(float)
    tables = rater_pair_tables(counts)
    assert float(exact(3)(averaged_confusion(tables))) == pytest.approx(0.920, abs=5e-4)
    for judge, key, value in [
        ("gpt-3.5-turbo", "gpt", 0.689),
        ("pandalm-7b", "pandalm", 0.660),
    ]:
        verdict = single_verdicts(pandalm_answers(judge, key), 3)
        assert measured(exact(3), verdict, counts / 3) == pytest.approx(value, abs=5e-4)
    pairs = [(0, 1), (0, 2), (1, 2)]
    kappas = [
        measured(kappa, single_verdicts(ratings[:, a].tolist(), 3), np.eye(3)[ratings[:, b]])
        for a, b in pairs
    ]
    assert [round(value, 2) for value in kappas] == [0.85, 0.88, 0.86]


@needs_pandalm
def test_macro_f1_of_pandalm_holds_if_garbage_is_a_tie() -> None:
    majority = [Counter(ratings).most_common(1)[0][0] for ratings in pandalm_ratings()]
    label = labels(majority, 3)
    as_ties = single_verdicts(pandalm_answers("gpt-3.5-turbo", "gpt", garbage="tie"), 3)
    unreadable = single_verdicts(pandalm_answers("gpt-3.5-turbo", "gpt"), 3)
    own = single_verdicts(pandalm_answers("pandalm-7b", "pandalm"), 3)
    assert measured(exact(3), as_ties, label) == pytest.approx(0.7107, abs=5e-5)
    assert measured(macro_f1(3), as_ties, label) == pytest.approx(0.5755, abs=5e-5)
    assert measured(exact(3), unreadable, label) == pytest.approx(0.6977, abs=5e-5)
    assert measured(exact(3), own, label) == pytest.approx(0.6677, abs=5e-5)
    assert measured(macro_f1(3), own, label) == pytest.approx(0.5743, abs=5e-5)


@pytest.mark.skipif(
    not LLM_RUBRIC.is_dir(), reason="the published data of LLM-Rubric is not beside the repository"
)
def test_error_of_the_most_probable_stage_of_llm_rubric_is_reproduced() -> None:
    def read(name: str) -> list[dict[str, str]]:
        with (LLM_RUBRIC / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t"))

    people = {
        row["text_id"]: int(row["Q0"])
        for row in read("human_judges_real_convs_FIXED_ANON.tsv")
        if row["Q0"].isdigit()
    }
    judged = {
        row["text_id"]: int(np.argmax([float(row[f"answer{stage}_prob"]) for stage in range(1, 5)]))
        for row in read("gpt-3.5-turbo-16k_real_evaluations_FIXED.tsv")
        if row["criterion"] == "Q0"
    }
    items = sorted(people.keys() & judged.keys())
    verdict = single_verdicts([judged[item] for item in items], 4)
    label = labels([people[item] - 1 for item in items], 4)
    assert measured(squared_error(4), verdict, label) ** 0.5 == pytest.approx(1.201643, abs=5e-7)
