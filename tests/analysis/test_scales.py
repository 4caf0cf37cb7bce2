"""Which measure fits a scale, and what a constant answer gets under it."""

import numpy as np
import pytest

from judge_gym.analysis.measures.confusion import (
    absolute_error,
    averaged_confusion,
    balanced,
    confusion_tables,
    exact,
    expected_loss,
    weighted_kappa,
)
from judge_gym.analysis.measures.scales import (
    Loss,
    MeasureName,
    best_constant,
    best_constant_verdicts,
    default_measure,
    propose_positive,
    scale_of,
)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (["fail", "pass"], "pass"),
        (["Yes", "No"], "Yes"),
        (["0", "1"], "1"),
        (["TRUE", "FALSE"], "TRUE"),
        (["harmful", "harmless"], "harmful"),
        (["reject", "accept"], "accept"),
        (["1", "2"], None),  # two stages or two responses
        (["A", "B"], None),
        (["cat", "dog"], None),
        (["bad", "fair", "good"], None),
    ],
)
def test_the_positive_label_is_proposed_by_meaning_and_never_by_alphabet(
    labels: list[str], positive: str | None
) -> None:
    assert propose_positive(labels) == positive


@pytest.mark.parametrize(
    ("stages", "ordered", "measure"),
    [
        (2, True, "balanced"),
        (2, False, "balanced"),
        (3, True, "exact"),
        (4, True, "weighted"),
        (7, True, "weighted"),
        (5, False, "exact"),
    ],
)
def test_the_measure_that_decides_fits_the_scale(
    stages: int, ordered: bool, measure: MeasureName
) -> None:
    assert default_measure(scale_of(stages, ordered), stages) == measure


def test_a_rare_failure_makes_a_constant_right_often_but_not_better_than_half() -> None:
    label = np.eye(2)[[1] * 95 + [0] * 5]
    assert best_constant("exact", label) == pytest.approx(0.95)
    assert best_constant("balanced", label) == 0.5
    assert best_constant(Loss(miss=5, false_alarm=1), label) == pytest.approx(0.05)
    assert best_constant(Loss(miss=5, false_alarm=1), label, positive=0) == pytest.approx(0.25)


def test_the_best_constant_under_exact_knows_the_concept() -> None:
    label = np.eye(3)[[0, 0, 1, 2, 2, 2, 1]]
    concepts = np.array([0, 0, 0, 1, 1, 1, 1])
    assert best_constant("exact", label) == pytest.approx(3 / 7)
    assert best_constant("exact", label, concepts=concepts) == pytest.approx(5 / 7)
    verdicts = best_constant_verdicts("exact", label, concepts=concepts)
    assert verdicts.argmax(axis=1).tolist() == [0, 0, 0, 2, 2, 2, 2]


def test_the_best_constant_under_error_is_the_median_stage() -> None:
    label = np.eye(5)[[0, 0, 0, 1, 4, 4, 1]]
    assert best_constant_verdicts("error", label)[0].argmax() == 1
    assert best_constant("error", label) == pytest.approx((3 + 0 + 6) / 7)


def test_what_a_constant_gets_is_what_its_verdicts_measure() -> None:
    draws = np.random.default_rng(1)
    four, two = draws.dirichlet(np.ones(4), 50), draws.dirichlet(np.ones(2), 50)
    loss = Loss(miss=3, false_alarm=2)
    cases = [
        ("exact", four, exact(4)),
        ("balanced", four, balanced(4)),
        ("weighted", four, weighted_kappa),
        ("error", four, absolute_error(4)),
        (loss, two, expected_loss(1, miss=3, false_alarm=2)),
    ]
    for measure, label, of in cases:
        verdicts = best_constant_verdicts(measure, label)  # type: ignore[arg-type]
        value = of(averaged_confusion(confusion_tables(verdicts, label)))  # type: ignore[operator]
        assert best_constant(measure, label) == pytest.approx(float(value))  # type: ignore[arg-type]


def test_no_constant_is_better_than_the_best_one() -> None:
    label = np.random.default_rng(2).dirichlet(np.ones(4), 30)
    for stage in range(4):
        constant = np.zeros((30, 8))
        constant[:, stage] = 1
        matrix = averaged_confusion(confusion_tables(constant, label))
        assert float(exact(4)(matrix)) <= best_constant("exact", label) + 1e-12
        assert float(absolute_error(4)(matrix)) >= best_constant("error", label) - 1e-12
