"""Calibration of the instrument: its truth, its panels, its gates, its verb."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judge_gym.calibrate
from conftest import Call, succeed
from judge_gym.analysis.belief import Masses, squared_distance
from judge_gym.analysis.belief.disagreement import Verdicts, squared_jousselme
from judge_gym.analysis.belief.masses import sources
from judge_gym.analysis.intervals import bootstrap, seeded, student
from judge_gym.axes import Design
from judge_gym.calibrate import Calibration, Check, Panels, Quantity, Shape, calibrate
from judge_gym.calibrate.gates import Band, coverage, coverage_band, errors, recovery
from judge_gym.calibrate.laws import law, stated_probability
from judge_gym.calibrate.quantities import QUANTITIES, TESTS
from judge_gym.calibrate.truth import Known
from judge_gym.calibrate.worlds import answers, conditions, population
from judge_gym.errors import DesignError
from judge_gym.models.simulated import temper, verdict_distribution
from judge_gym.records import Evidence
from judge_gym.stages import Prober, ProbeTarget, Scorer, ScoreTarget

SHAPE = Shape()


# --- the truth -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leaning", "leaning, fixed order"])
def test_a_law_is_the_mean_over_displays_as_a_study_draws_them(name: str) -> None:
    condition, kind = conditions()[name], 20
    scorer, item = Scorer(condition.design, 5, "5"), Evidence("x", "another text")
    targets = [ScoreTarget(condition.rubric, item, population()[kind], r) for r in range(1500)]
    chosen, first = np.zeros((1500, 5)), np.zeros(1500)
    for row, request in enumerate(scorer.requests(targets)):
        shown = scorer.display(targets[row])
        for verdict, chance in verdict_distribution(request).items():
            stages = shown.decode(verdict.labels)
            chosen[row, stages[0] if stages else 0] += chance
            first[row] += chance * (stages == shown.stages[:1])
    error = 4 * chosen.std(axis=0) / np.sqrt(1500) + 1e-12
    exact = law(name).mass[kind].mean(axis=0)
    assert (np.abs(chosen.mean(axis=0) - exact[[0, 1, 2, 4, 8]]) < error).all()
    seen = first.sum() / (1 - chosen[:, 0]).sum() - 1 / 4
    assert law(name).position[kind] == pytest.approx(seen, abs=4 * first.std() / np.sqrt(1500))


def test_what_a_probe_states_on_average_is_known() -> None:
    condition, text = conditions()["plain"], population()[20]
    item = Evidence("x", text)
    scorer, prober = (made(condition.design, 0, "0") for made in (Scorer, Prober))
    target = ScoreTarget(condition.rubric, item, text, 0)
    [sample] = [scorer.read(target, answer) for answer in answers(scorer.requests([target]))]
    assert sample.status == "scored"
    [request] = prober.requests([ProbeTarget(sample, text)])
    again = [Prober(condition.design, 0, f"{n}").requests([ProbeTarget(sample, text)])[0] for n in range(2000)]
    assert again[0].messages == request.messages
    given = [prober.read(ProbeTarget(sample, text), one).probability for one in answers(again)]
    stated = np.array(given, dtype=float)
    exact = law("plain").stated_of[20]
    mask = sum(1 << stage - 1 for stage in sample.stages)
    assert np.ptp(exact[:, mask]) < 1e-12, "a judge without position bias says the same of any display"
    assert abs(stated.mean() - exact[0, mask]) < 4 * stated.std() / np.sqrt(len(stated))


def test_what_is_stated_stays_within_the_unit_interval_and_grows_with_the_share() -> None:
    stated = stated_probability(np.linspace(0, 1, 21), temper("balanced"))
    assert (np.diff(stated) >= 0).all() and 0 < stated[0] < stated[-1] < 1
    calm = temper("balanced?overconfidence=0")
    assert stated_probability(np.array([0.5]), calm)[0] == pytest.approx(0.5, abs=1e-9)


def test_half_the_squared_euclidean_distance_is_the_distance_of_single_verdicts() -> None:
    ours, theirs = law("plain").share[:, [1, 2, 4, 8]], law("biased").share[:, [1, 2, 4, 8]]
    plain = ((ours - theirs) ** 2).sum(axis=1) / 2
    assert Known(SHAPE).distance("plain", "biased") == pytest.approx(plain.mean(), rel=1e-3)


def test_the_distance_of_subsets_is_that_of_the_belief_room() -> None:
    kinds = np.arange(len(population()))
    rows = [law(name).share for name in ("plain, subset", "biased, subset")]
    tables = [
        {frozenset(s + 1 for s in range(4) if mask >> s & 1): p for mask, p in enumerate(row) if p}
        for row in np.concatenate(rows)
    ]
    masses = Masses.of(tables, frame=4)
    found = squared_jousselme(masses, kinds, kinds + len(kinds))
    exact = Known(Shape(replicates=1000)).distance("plain, subset", "biased, subset")
    assert exact == pytest.approx(float(found.mean()), rel=1e-9)


def test_judges_that_are_alike_differ_in_nothing() -> None:
    known = Known(SHAPE)
    assert known.endpoint("stage", "twin", "plain") == 0
    assert known.distance("twin", "plain") == 0
    assert abs(known.polarization("plain", "twin")) < 0.002, "by drawing, so not quite"


def test_texts_that_are_mostly_abstained_from_weigh_less() -> None:
    few, many = (Known(Shape(replicates=n)).endpoint("stage", "cautious") for n in (1, 500))
    judge = law("cautious")
    assert few == pytest.approx(float(np.average(judge.stage, weights=judge.scored)))
    assert many == pytest.approx(float(judge.stage.mean()))


# --- panels --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn() -> Panels:
    return Panels(range(25), SHAPE)


def test_a_panel_is_the_same_in_whichever_company(drawn: Panels) -> None:
    alone = Panels([3], SHAPE).of("plain")
    among = drawn.of("plain")
    columns = ["evidence", "replicate", "status", "stages", "display", "probe", "task"]
    same = among[among["pool"] == "panel 3"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone[columns], same[columns])


def test_another_seed_draws_other_panels() -> None:
    ours, theirs = (Panels([0], Shape(seed=seed)).of("plain")["display"] for seed in (0, 1))
    assert (ours != theirs).any()


def test_conditions_of_a_panel_see_the_same_displays_and_never_share_a_call(drawn: Panels) -> None:
    frame = drawn.of("plain", "biased")
    shown = frame.pivot(index=["evidence", "replicate"], columns="condition", values="display")
    assert (shown["plain"] == shown["biased"]).all()
    assert frame["call_id"].is_unique
    assert frame["task"].nunique() == 25


def test_conditions_that_compare_designs_differ_in_one_knob() -> None:
    base = conditions()["plain"].design.values()
    for name in ("plain, subset", "plain, evidence first"):
        other = conditions()[name].design.values()
        assert sum(base[knob] != other[knob] for knob in Design.knobs()) == 1


@pytest.mark.parametrize("name", ["plain", "leaning", "cautious"])
def test_verdicts_of_panels_come_out_as_the_law_says(drawn: Panels, name: str) -> None:
    frame = drawn.of(name)
    titles = {text: kind for kind, text in enumerate(population())}
    items = {item.title: titles[item.text.partition(". ")[2]] for item in drawn._evidence}
    kind = frame["evidence"].map(items).to_numpy()
    for mask in (0, 1, 2, 4, 8):
        chances = law(name).mass.mean(axis=1)[kind, mask]
        seen = (frame["mask"] == mask).sum()
        assert abs(seen - chances.sum()) < 4 * np.sqrt((chances * (1 - chances)).sum()) + 1e-9


# --- gates ---------------------------------------------------------------------------------------


def intervals(held: int, n: int) -> pd.DataFrame:
    """So many intervals hold 0, and the others do not."""
    low = np.where(np.arange(n) < held, -1.0, 0.5)
    return pd.DataFrame({"value": low + 1, "low": low, "high": low + 2})


@pytest.mark.parametrize(
    ("held", "n", "outcome"),
    [
        (95, 100, "passes"),
        (84, 100, "passes"),  # 99 %: 72 to 91 % lies below 92, so this one fails
        (100, 100, "passes"),  # 99 %: from 93.8 %, not wholly above
        (1000, 1000, "conservative"),
        (905, 1000, "passes"),
        (890, 1000, "fails"),
        (0, 0, "no data"),
    ],
)
def test_coverage_fails_only_wholly_below_its_band(held: int, n: int, outcome: str) -> None:
    found = coverage(intervals(held, n), 0.0, coverage_band(12))
    if n:
        share = held / n
        centre = (share + 6.635 / (2 * n)) / (1 + 6.635 / n)  # Wilson by hand, z = 2.5758
        half = 2.5758 / (1 + 6.635 / n) * np.sqrt(share * (1 - share) / n + 6.635 / (4 * n * n))
        assert found["low"] == pytest.approx(centre - half, abs=1e-4)
        assert found["high"] == pytest.approx(min(1.0, centre + half), abs=1e-4)
        outcome = "fails" if centre + half < 0.92 else outcome
    assert found["outcome"] == outcome


def test_few_items_have_a_wider_band() -> None:
    assert coverage_band(12) == (0.92, 0.97)
    assert coverage_band(13) == (0.93, 0.97)


def test_panels_without_an_interval_are_counted_apart() -> None:
    table = pd.concat([intervals(9, 10), pd.DataFrame({"value": [1.0], "low": np.nan, "high": np.nan})])
    found = coverage(table, 0.0, Band(0.92, 0.97))
    assert (found["panels"], found["undefined"], found["coverage"]) == (10, 1, 0.9)


def test_recovery_fails_where_the_bias_is_beyond_chance_and_a_tenth_of_the_spread() -> None:
    noise = seeded("noise").normal(size=400)
    noise -= noise.mean()
    table = pd.DataFrame({"value": noise, "low": noise - 2, "high": noise + 2})
    assert recovery(table, 0.0)["outcome"] == "passes"
    assert recovery(table, 0.2)["outcome"] == "passes", "0.2 less 0.13 of error is below 0.1"
    assert recovery(table, 0.3)["outcome"] == "fails"
    assert recovery(table[:1], 0.0)["outcome"] == "no data"


def test_a_test_fails_where_it_errs_too_often_and_power_is_only_shown() -> None:
    p = pd.DataFrame({"p": np.linspace(0.0005, 0.9995, 1000)})
    assert errors(p, null=True)["rejected"] == pytest.approx(0.05)
    assert errors(p, null=True)["outcome"] == "passes"
    eager = p**2
    assert errors(eager, null=True)["outcome"] == "fails"
    assert errors(eager, null=False)["outcome"] == "passes"
    assert errors(p**0.5, null=True)["outcome"] == "conservative"


# --- what is wrong is caught ---------------------------------------------------------------------

Interval = Callable[[np.ndarray], tuple[float, float, float]]


def stage_by(interval: Interval) -> Quantity:
    """The expected stage of the plain judge, with some interval over items."""

    def estimate(panels: Panels) -> pd.DataFrame:
        frame = panels.of("plain").query("status == 'scored'")
        score = (frame["stages"].astype(int) - 1) / 3
        cells = score.groupby([frame["task"], frame["evidence"]]).mean()
        rows = [interval(part.to_numpy()) for _, part in cells.groupby(level="task")]
        return pd.DataFrame(rows, columns=["value", "low", "high"])

    return Quantity("stage", estimate, lambda known: known.endpoint("stage", "plain"))


def right(values: np.ndarray) -> tuple[float, float, float]:
    return student(values)[:3]


def half_as_wide(values: np.ndarray) -> tuple[float, float, float]:
    value, low, high = right(values)
    return value, (value + low) / 2, (value + high) / 2


def moved(values: np.ndarray) -> tuple[float, float, float]:
    value, low, high = right(values)
    return value + 0.1, low + 0.1, high + 0.1


@pytest.mark.parametrize(
    ("interval", "failed"),
    [
        (right, []),
        (half_as_wide, ["coverage: stage"]),
        (moved, ["coverage: stage", "recovery: stage"]),
    ],
)
def test_a_wrong_interval_is_caught_and_a_right_one_passes(
    interval: Interval, failed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[int, Panels] = KEPT
    monkeypatch.setattr(
        judge_gym.calibrate,
        "Panels",
        lambda numbers, shape: kept.setdefault(numbers[0], Panels(numbers, shape)),
    )
    found = calibrate(100, quantities=[stage_by(interval)], tests=[])
    assert found.failed == failed
    assert found.passed is not failed


KEPT: dict[int, Panels] = {}
