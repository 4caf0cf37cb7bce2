"""Draws of rubrics as blocks: what they add to intervals and tests, on data of known truth."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.declared import one_sample, two_samples
from judge_gym.analysis.endpoints import (
    cell_endpoints,
    expected_stage,
    judge_endpoints,
    means_over_items,
)
from judge_gym.analysis.frames import CELL, ordinal, tidy
from judge_gym.analysis.measures.abstention import abstention
from judge_gym.analysis.measures.polarization import distance_columns, polarization
from judge_gym.analysis.measures.uncertainty import uncertainty
from judge_gym.analysis.stats import label_permutation
from judge_gym.analysis.stats.agreement import nominal_agreement, ordinal_agreement
from judge_gym.analysis.stats.clusters import ErrorPart
from judge_gym.analysis.stats.contrasts import Sides, contrasts, judge_contrasts
from judge_gym.analysis.stats.intervals import (
    DISTANCE,
    UNBOUNDED,
    Estimate,
    draw_part,
    estimate,
    half_width,
    p_value,
    pseudo_values,
    widened_by_draws,
)
from judge_gym.analysis.stats.paired_tests import sign_flip
from judge_gym.analysis.verdicts import Dataset, Verdicts, panels
from judge_gym.protocols.conflict import conflict
from judge_gym.protocols.entrenchment import entrenchment
from judge_gym.protocols.hypotheses import forced_choice_distance, overstated_agreement
from judge_gym.protocols.stated_agreement import (
    calibration,
    probed_verdicts,
    verdicts_without_draws,
)
from judge_gym.protocols.validity import _slope, validity
from panel_frames import simulated

JUDGE = "judge.model"
LEAN, OF_ITEM, OF_DRAW = np.array([0.35, 0.65]), 0.15, 0.2
"""The chance of the first stage that each judge has, and how far items and draws move it."""


def error_of(rate: float, panels: int) -> float:
    """99 % of the Monte-Carlo error of a rate."""
    return float(2.58 * np.sqrt(rate * (1 - rate) / panels))


def held(low: Any, high: Any, truth: float) -> float:
    """The share of intervals that hold the truth."""
    return float(np.mean((np.asarray(low) <= truth) & (np.asarray(high) >= truth)))


def drawn_rubrics(
    count: int, draws: int, items: int, *, lean: np.ndarray = LEAN, of_draw: float = OF_DRAW
) -> pd.DataFrame:
    """Two judges on two stages, each with draws of own rubrics that move all its verdicts."""
    rng = np.random.default_rng([draws, items, round(100 * of_draw)])
    of_item = rng.uniform(-OF_ITEM, OF_ITEM, (count, items, 2))
    parts = []
    for draw in range(draws):
        chance = lean + of_item + rng.uniform(-of_draw, of_draw, (count, 1, 2))
        part = simulated(np.stack([chance, 1 - chance], axis=-1), 3, rng)
        second = (part[JUDGE] == "judge 1").to_numpy()
        parts.append(part.assign(rubric_draw=draw, rubric=second * draws + draw))
    made = pd.concat(parts, ignore_index=True)
    return made.assign(call_id=np.arange(len(made)))


# --- the parts of an error -----------------------------------------------------------------------


def test_draws_that_move_every_item_alike_add_their_variance_over_their_number() -> None:
    of_draw, of_item = np.array([0.1, -0.2, 0.3, 0.0, 0.5]), np.linspace(-1, 1, 12)
    part = draw_part(of_draw[:, None] + of_item)
    assert part.error == pytest.approx(of_draw.std(ddof=1) / np.sqrt(5))
    assert part.freedom == 4


def test_the_interaction_of_draw_and_item_is_not_counted_twice() -> None:
    rng = np.random.default_rng(1)
    found = [draw_part(rng.normal(size=(6, 12))).error ** 2 for _ in range(2000)]
    # Without a draw effect half of the estimates are 0, and the others far below one item's share.
    assert np.mean(np.array(found) == 0) == pytest.approx(0.55, abs=0.1)
    assert np.mean(found) < 0.5 / 72


def test_items_that_lack_a_draw_are_left_out() -> None:
    table = np.random.default_rng(2).normal(size=(5, 8))
    holed = np.column_stack([table, np.full(5, 9.0)])
    holed[2, -1] = np.nan
    assert draw_part(holed) == draw_part(table)
    assert np.isnan(draw_part(table[:, :1]).error), "one item cannot tell draws from noise"


def test_pseudo_values_of_a_mean_are_what_was_averaged() -> None:
    table = np.random.default_rng(3).normal(size=(6, 4))
    without = [np.delete(table, draw, axis=0).mean(axis=0) for draw in range(6)]
    np.testing.assert_allclose(pseudo_values(table.mean(axis=0), without), table)


def test_one_part_is_students_t_and_the_p_value_belongs_to_the_interval() -> None:
    values = np.random.default_rng(4).normal(0.3, 1, 20)
    theirs = stats.ttest_1samp(values, 0)
    items = ErrorPart(float(stats.sem(values)), 19)
    assert half_width([items]) == pytest.approx(
        estimate(values, scale=UNBOUNDED).high - values.mean()
    )
    assert p_value(float(values.mean()), [items]) == pytest.approx(theirs.pvalue)
    parts = [items, ErrorPart(0.2, 4)]
    assert p_value(half_width(parts), parts) == pytest.approx(0.05)
    assert p_value(half_width(parts, 0.999), parts) == pytest.approx(0.001)
    assert half_width(parts) > max(half_width([part]) for part in parts)


def test_hypotheses_without_draws_are_scipys_tests() -> None:
    rng = np.random.default_rng(5)
    ours, theirs = rng.normal(0.5, 1, 15), rng.normal(0, 2, 9)
    expected: Any = stats.ttest_ind(ours, theirs, equal_var=False)
    found = two_samples(ours, theirs)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.estimate[1:3] == pytest.approx(tuple(expected.confidence_interval()))
    alone: Any = stats.ttest_1samp(ours, 0)
    assert one_sample(ours).p == pytest.approx(alone.pvalue)
    assert one_sample(ours).estimate[1:3] == pytest.approx(tuple(alone.confidence_interval()))


# --- rates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("draws", "items"), [(5, 12), (10, 40)])
def test_coverage_of_a_mean_over_items_and_draws(draws: int, items: int) -> None:
    rng, count = np.random.default_rng(6), 600
    plain, blocks = [], []
    for _ in range(count):
        effects = rng.normal(0, 0.5, (draws, 1)) + rng.normal(0, 1, items)
        table = effects + rng.normal(0, 1, (draws, items))
        plain.append(estimate(table.mean(axis=0), scale=UNBOUNDED))
        blocks.append(widened_by_draws(plain[-1], table))
    lows, highs = (np.array(part) for part in list(zip(*blocks, strict=True))[1:3])
    assert 0.92 - error_of(0.92, count) <= held(lows, highs, 0) <= 0.97 + error_of(0.97, count)
    lows, highs = (np.array(part) for part in list(zip(*plain, strict=True))[1:3])
    assert held(lows, highs, 0) < 0.9, "items alone are too sure"


def by_items_alone(panel: Verdicts) -> Estimate:
    return estimate(panel.distances.mean(axis=1), scale=UNBOUNDED)


@pytest.mark.simulation
def test_coverage_of_the_distance_beyond_the_rubrics_drawn() -> None:
    count = 120
    found = list(panels(drawn_rubrics(count, 6, 24)))
    # On two stages the distance is the squared difference of chances; both judges move by item.
    truth = float(np.diff(LEAN)[0]) ** 2 + 2 * OF_ITEM**2 / 3
    table = pd.DataFrame([distance_columns(panel) for panel in found])
    assert table["distance"].mean() == pytest.approx(truth, abs=0.01)
    covered = held(table["distance_low"], table["distance_high"], truth)
    assert covered >= 0.93
    alone = pd.DataFrame([by_items_alone(panel) for panel in found])
    assert held(alone["low"], alone["high"], truth) < 0.85


def test_judges_with_rubrics_of_one_population_have_distance_0() -> None:
    alike = drawn_rubrics(60, 5, 12, lean=np.array([0.5, 0.5]))
    made = alike.assign(evidence=alike["evidence"] % 12)
    mean = np.mean([distance_columns(panel)["distance"] for panel in panels(made)])
    assert mean == pytest.approx(2 * OF_ITEM**2 / 3, abs=0.012), "only items part them"


@pytest.mark.simulation
def test_coverage_of_p_above_chance_and_of_entrenchment(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 80
    # The number of permutations hardly changes an interval over items and draws.
    monkeypatch.setattr(label_permutation, "MOST", 99)
    data = Dataset(drawn_rubrics(count, 6, 12))
    apart = polarization(data)
    sure = entrenchment(data)
    sure = sure[sure[JUDGE] == "all"]
    for value, low, high in (
        (apart["above"], apart["low"], apart["high"]),
        (sure["mean"], sure["low"], sure["high"]),
    ):
        # Their expectation at this number of samples has no closed form: the mean of all panels.
        covered = held(low, high, float(value.mean()))
        assert covered >= 0.92 - error_of(0.92, count)


@pytest.mark.simulation
def test_a_difference_of_rubrics_is_not_mistaken_for_one_of_judges() -> None:
    count = 80
    made = drawn_rubrics(count, 6, 20, lean=np.array([0.5, 0.5]), of_draw=0.3)
    named = made.assign(
        pool=made["task"].astype(str), stages=np.where(made["mask"] == 1, "1", "2"), display=""
    )
    found = judge_contrasts(tidy(named.drop(columns=["mask", "task"])), endpoints=["stage"])
    assert len(found) == count and set(found["test"]) == {"t of items and draws"}
    assert (found["p"] <= 0.05).mean() <= 0.06 + error_of(0.06, count)
    covered = held(found["low"], found["high"], 0)
    assert covered >= 0.93 - error_of(0.93, count)
    assert ((found["p"] <= 0.05) == (found["low"] > 0) | (found["high"] < 0)).all()
    means = named.assign(value=named["mask"] - 1.5).groupby(["task", JUDGE, "evidence"])["value"]
    wide = means.mean().unstack(JUDGE)
    gaps = (wide["judge 1"] - wide["judge 0"]).groupby(level="task")
    alone = [sign_flip(part.to_numpy(), key=task) for task, part in gaps]
    assert (np.array(alone) <= 0.05).mean() > 0.3, "over items alone it would be"


def test_few_draws_leave_intervals_over_items() -> None:
    found = list(panels(drawn_rubrics(3, 4, 12)))
    for panel in found:
        assert not panel.many_draws
        expected = estimate(panel.distances.mean(axis=1), scale=DISTANCE)
        assert tuple(distance_columns(panel).values()) == pytest.approx(tuple(expected[:4]))


# --- what is read off many draws -----------------------------------------------------------------


def samples(made: pd.DataFrame, **columns: Any) -> pd.DataFrame:
    """A tidy frame of such verdicts, a pool per panel."""
    stages = np.where(made["mask"] == 1, "1", "2")
    named = made.assign(pool=made["task"].astype(str), stages=stages, display="", **columns)
    return tidy(named.drop(columns=["mask", "task"]))


def covers(found: pd.DataFrame, truth: float, columns: str, least: float = 0.92) -> float:
    """How many intervals hold the truth, which should be enough; above 97 % they are cautious."""
    value, low, high = (found[name] for name in columns.split())
    assert len(found) >= 50 and low.notna().all()
    assert value.mean() == pytest.approx(truth, abs=3.5 * value.std() / np.sqrt(len(found)))
    rate = held(low, high, truth)
    assert rate >= least - error_of(least, len(found))
    return rate


@pytest.fixture(scope="module")
def judged() -> pd.DataFrame:
    made = drawn_rubrics(80, 6, 12)
    stated = np.random.default_rng(7).normal(0.6, 0.1, len(made)).clip(0, 1)
    return samples(made, probe=stated)


@pytest.mark.simulation
def test_coverage_of_a_judges_means(judged: pd.DataFrame) -> None:
    found = judge_endpoints(judged)
    first = found[found[JUDGE] == "judge 0"]
    of_draw, of_item = OF_DRAW**2 / 3, OF_ITEM**2 / 3
    rate = covers(first[first["endpoint"] == "stage"], 1 - LEAN[0], "mean low high")
    cells = cell_endpoints(judged)
    alone = means_over_items(cells[cells[JUDGE] == "judge 0"], CELL, "stage", UNBOUNDED)
    assert held(alone["low"], alone["high"], 1 - LEAN[0]) < rate, "items alone are too sure"
    # Within a rubric chances vary by c (1 - c); what draws and items move is no jitter.
    jitter = LEAN[0] * (1 - LEAN[0]) - of_draw - of_item
    covers(first[first["endpoint"] == "jitter"], jitter, "mean low high")
    stage = expected_stage(ordinal(judged), CELL)
    columns = ["mean", "low", "high"]
    expected = first.loc[first["endpoint"] == "stage", columns].to_numpy()
    np.testing.assert_allclose(stage.loc[stage[JUDGE] == "judge 0", columns], expected)


@pytest.mark.simulation
def test_coverage_of_conflict(judged: pd.DataFrame) -> None:
    # Two judges name different stages: one the first and the other the second, either way round.
    truth = LEAN[0] * (1 - LEAN[1]) + LEAN[1] * (1 - LEAN[0])
    covers(conflict(judged), truth, "k low high")


@pytest.mark.simulation
def test_coverage_of_stated_agreement(judged: pd.DataFrame) -> None:
    whole, *without = (
        part[(part[JUDGE] == "judge 0").to_numpy()]
        for part in (probed_verdicts(judged), *verdicts_without_draws(judged))
    )
    found = calibration(whole, CELL, without)
    # The reference rests on this number of verdicts: the mean of all panels is its truth.
    means = found[["bias", "brier", "error"]].mean()
    rates = [
        covers(found, float(truth), f"{name} {name}_low {name}_high")
        for name, truth in means.items()
    ]
    alone = calibration(whole, CELL)
    assert held(alone["bias_low"], alone["bias_high"], float(means["bias"])) < rates[0]
    tested = [overstated_agreement(part) for _, part in judged.groupby("task")]
    second = pd.DataFrame([one.estimate for one in tested])
    covers(second, float(second["value"].mean()), "value low high")


@pytest.mark.simulation
def test_coverage_of_the_fourth_hypothesis_and_of_the_checks() -> None:
    made = drawn_rubrics(60, 6, 12)
    nearer = drawn_rubrics(60, 6, 12, lean=np.array([0.45, 0.55]), of_draw=OF_DRAW - 1e-3)
    both = samples(
        pd.concat(
            [
                made.assign(**{"verdict.method": "single"}),
                nearer.assign(
                    call_id=nearer["call_id"] + len(made), **{"verdict.method": "subset"}
                ),
            ],
            ignore_index=True,
        ),
        task_type="control",
    )
    parts = [part for _, part in both.groupby("task")]
    fourth = pd.DataFrame([forced_choice_distance(part).estimate for part in parts])
    covers(fourth, 0.3**2 - 0.1**2, "value low high")
    single = [part[(part["verdict.method"] == "single").to_numpy()] for part in parts]
    checks = pd.concat([validity(part) for part in single]).groupby("check")
    truth = float(np.diff(LEAN)[0]) ** 2 + 2 * OF_ITEM**2 / 3
    covers(checks.get_group("discriminant control"), truth, "value low high")
    within = LEAN[0] * (1 - LEAN[0]) - OF_DRAW**2 / 3 - OF_ITEM**2 / 3
    covers(checks.get_group("internal consistency"), within, "value low high")


def test_coverage_of_the_slope_over_doses() -> None:
    rng, count, draws = np.random.default_rng(8), 150, 6
    slopes = []
    for _ in range(count):
        of_draw = rng.normal(0, 0.05, (draws, 3))[:, np.repeat(np.arange(3), 12)]
        dose = np.repeat(np.arange(3.0), 12)
        table = 0.1 * dose + of_draw + rng.normal(0, 0.1, (draws, 36)) + rng.normal(0, 0.1, 36)
        found = pd.DataFrame({"dose": dose, "evidence": range(36), "distance": table.mean(axis=0)})
        without = [pd.Series(np.delete(table, one, axis=0).mean(axis=0)) for one in range(draws)]
        slopes.append((_slope(found, without), _slope(found, [])))
    rate = covers(pd.DataFrame([one for one, _ in slopes]), 0.1, "value low high", 0.93)
    alone = pd.DataFrame([one for _, one in slopes])
    assert held(alone["low"], alone["high"], 0.1) < rate


@pytest.mark.simulation
def test_coverage_of_agreement() -> None:
    rng, count, draws, items = np.random.default_rng(9), 50, 6, 60
    place = rng.uniform(0, 3, (count, items, 1)) + rng.normal(0, 0.5, (count, items, 2))
    parts = []
    for draw in range(draws):
        moved = place + rng.normal(0, 0.4, (count, 1, 2))
        odds = np.exp(-((moved[..., None] - np.arange(4)) ** 2))
        part = simulated(odds / odds.sum(axis=-1, keepdims=True), 3, rng)
        parts.append(part.assign(rubric_draw=draw, rubric=draw))
    made = pd.concat(parts, ignore_index=True)
    made = made.assign(
        call_id=np.arange(len(made)),
        pool=made["task"].astype(str),
        stages=np.bitwise_count(made["mask"] - 1) + 1,
    )
    frame = tidy(made.drop(columns=["mask", "task"]))
    for _, part in ordinal_agreement(ordinal(frame)).groupby("measure"):
        covers(part, part["value"].mean(), "value low high", 0.9)


@pytest.mark.simulation
def test_draws_without_an_effect_hardly_widen_an_interval() -> None:
    made = samples(drawn_rubrics(40, 6, 12, of_draw=0.0))
    with_draws = judge_endpoints(made)
    alone = judge_endpoints(made.assign(rubric_draw=0))
    stage = with_draws["endpoint"] == "stage"
    width, narrow = ((one["high"] - one["low"])[stage].mean() for one in (with_draws, alone))
    assert narrow < width < 1.5 * narrow


@pytest.mark.parametrize("draws", [1, 4])
def test_few_draws_change_nothing(draws: int) -> None:
    few = samples(drawn_rubrics(2, draws, 12))
    one = few.assign(rubric_draw=0)
    verdicts = probed_verdicts(few)
    assert verdicts_without_draws(few) == ()
    for table in (judge_endpoints, conflict, uncertainty, abstention, nominal_agreement, validity):
        pd.testing.assert_frame_equal(table(few), table(one))
    pd.testing.assert_frame_equal(
        calibration(verdicts, CELL), calibration(probed_verdicts(one), CELL)
    )


def test_a_design_with_more_draws_is_compared_over_all_of_them() -> None:
    made = drawn_rubrics(1, 10, 12)
    few = made[(made["rubric_draw"] < 5).to_numpy()]
    few = few.assign(call_id=few["call_id"] + len(made))
    levels = pd.concat([made.assign(**{"rubric.draws": 10}), few.assign(**{"rubric.draws": 5})])
    frame = samples(levels.reset_index(drop=True))
    found = contrasts(frame, endpoints=["stage"])
    assert len(found) and found[["low", "high"]].notna().all().all()
    # The five draws of each side have four degrees of freedom, whatever another task has.
    sides = Sides(frame, ["stage"])
    assert {len(draws) for draws in sides.without_draws.values()} == {5, 10}
