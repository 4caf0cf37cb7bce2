"""The simulations themselves: their truth, their panels, their gates, their command."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.belief.disagreement import Replicates, squared_distances
from judge_gym.analysis.belief.masses import sources, stage_masks
from judge_gym.analysis.stats.intervals import UNBOUNDED, estimate, seeded
from judge_gym.axes import Design
from judge_gym.errors import DesignError
from judge_gym.models.simulated import judge_profile, verdict_distribution
from judge_gym.records import Evidence
from judge_gym.stages import Prober, ProbeTarget, Scorer, ScoreTarget
from plain_belief import squared_jousselme
from simulations import (
    HypothesisTest,
    Panels,
    Quantity,
    Shape,
    World,
    calibrate,
    detectable,
    summary,
)
from simulations.__main__ import main
from simulations.gates import coverage, decide, holm, recovery, rejections
from simulations.prompted import (
    Prompted,
    answers,
    conditions,
    distribution,
    evidence,
    population,
)
from simulations.quantities import STAGE, worlds
from simulations.synthetic import Synthetic
from simulations.truth import HUNDREDTHS, TrueValues, stated_chances
from tables import each_row

ROOT = Path(__file__).parents[2]
SHAPE = Shape()
PROMPTED = Prompted()


def true_values(replicates: int = 5) -> TrueValues:
    return TrueValues(distribution, replicates)


# --- the truth -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leaning", "leaning, fixed order"])
def test_a_distribution_is_the_mean_over_displays_as_a_study_draws_them(name: str) -> None:
    condition, kind = conditions()[name], 20
    scorer, item = Scorer(condition.design, 5, "5"), Evidence("x", "another text")
    targets = [ScoreTarget(condition.rubric, item, population()[kind], r) for r in range(600)]
    chosen, first = np.zeros((600, 5)), np.zeros(600)
    for row, request in enumerate(scorer.requests(targets)):
        shown = scorer.display(targets[row])
        for verdict, chance in verdict_distribution(request).items():
            stages = shown.decode(verdict.labels)
            chosen[row, stages[0] if stages else 0] += chance
            first[row] += chance * (stages == shown.stages[:1])
    error = 4 * chosen.std(axis=0) / np.sqrt(600) + 1e-12
    exact = distribution(name).mass[kind].mean(axis=0)
    assert (np.abs(chosen.mean(axis=0) - exact[[0, 1, 2, 4, 8]]) < error).all()
    seen = first.sum() / (1 - chosen[:, 0]).sum() - 1 / 4
    assert distribution(name).position[kind] == pytest.approx(
        seen, abs=4 * first.std() / np.sqrt(600)
    )


def test_what_a_probe_states_on_average_is_known() -> None:
    condition, text = conditions()["plain"], population()[20]
    scorer = Scorer(condition.design, 0, "0")
    scored = ScoreTarget(condition.rubric, Evidence("x", text), text, 0)
    [answer] = answers(scorer.requests([scored]))
    target = ProbeTarget(scorer.read(scored, answer), text)
    probers = [Prober(condition.design, 0, str(series)) for series in range(1000)]
    given = answers([prober.requests([target])[0] for prober in probers])
    read = [probers[0].read(target, one).probability for one in given]
    stated = np.array(read, dtype=float)
    mask = stage_masks([" ".join(map(str, target.sample.stages))], frame=4)[0]
    exact = distribution("plain").stated_of[20][:, mask]
    assert np.ptp(exact) < 1e-12, "without position bias, the same of any display"
    assert abs(stated.mean() - exact[0]) < 4 * stated.std() / np.sqrt(len(stated))


def test_what_is_stated_stays_within_the_unit_interval_and_grows_with_the_share() -> None:
    stated = (
        stated_chances(np.linspace(0, 1, 21), judge_profile("balanced").overconfidence) @ HUNDREDTHS
    )
    assert (np.diff(stated) >= 0).all() and 0 < stated[0] < stated[-1] < 1
    even = stated_chances(np.array([0.5]), overconfidence=0.0)[0]
    assert even.sum() == pytest.approx(1) and even @ HUNDREDTHS == pytest.approx(0.5, abs=1e-9)


def test_half_the_squared_euclidean_distance_is_the_distance_of_single_verdicts() -> None:
    ours, theirs = (
        distribution("plain").share[:, [1, 2, 4, 8]],
        distribution("biased").share[:, [1, 2, 4, 8]],
    )
    plain = ((ours - theirs) ** 2).sum(axis=1) / 2
    assert true_values().distance("plain", "biased") == pytest.approx(plain.mean(), rel=1e-3)


def test_the_distance_of_subsets_is_jousselmes() -> None:
    names = ("plain, subset", "biased, subset")
    ours, theirs = (
        [
            {frozenset(s + 1 for s in range(4) if mask >> s & 1): p for mask, p in enumerate(row)}
            for row in distribution(name).share
        ]
        for name in names
    )
    for table in (*ours, *theirs):
        table.pop(frozenset())
    found = [squared_jousselme(*two) for two in zip(ours, theirs, strict=True)]
    exact = true_values(1000).distance(*names)
    assert exact == pytest.approx(np.mean(found), rel=1e-9)


def test_identical_judges_have_no_difference() -> None:
    known = true_values()
    assert known.endpoint("stage", "twin", "plain") == 0
    assert known.distance("twin", "plain") == 0
    assert abs(known.polarization("plain", "twin")) < 0.002, "by drawing, so not quite"


def test_texts_that_are_mostly_abstained_from_weigh_less() -> None:
    few, many = (true_values(n).endpoint("stage", "cautious") for n in (1, 500))
    judge = distribution("cautious")
    assert few == pytest.approx(float(np.average(judge.stage, weights=judge.scored)))
    assert many == pytest.approx(float(judge.stage.mean()))


def test_the_truth_of_stated_agreement_agrees_with_simulation() -> None:
    """Replicates, probabilities and triples drawn one by one, against the closed forms."""
    rng, texts, n = seeded("experts"), len(population()), 40_000
    kind = rng.integers(texts, size=n)
    plain, others = distribution("plain"), [distribution("biased"), distribution("leaning")]
    display = rng.integers(plain.mass.shape[1], size=n)

    def picked(chances: np.ndarray) -> np.ndarray:
        return np.asarray((rng.random((len(chances), 1)) > chances.cumsum(axis=1)).sum(axis=1))

    own = picked(plain.mass[kind, display])
    scored = own > 0
    kind, display, own = kind[scored], display[scored], own[scored]
    p = picked(plain.stated_as[kind, display, own]) / 100
    pool = [
        distribution.share[kind] * distribution.scored[kind][:, None] for distribution in others
    ]
    chances = sum(pool) / sum(part.sum(axis=1, keepdims=True) for part in pool)
    agree = sum((picked(chances) & own > 0).astype(int) for _ in range(3))
    y = (np.asarray(agree) >= 2).astype(float)
    known, error = true_values(1), 4 / np.sqrt(len(p))
    names = ("biased", "leaning")
    assert known.overconfidence("plain", names) == pytest.approx((p - y).mean(), abs=error)
    assert known.brier("plain", names) == pytest.approx(((p - y) ** 2).mean(), abs=error)
    tenth = np.minimum((p * 10 + 1e-9).astype(int), 9)
    gaps = np.abs(np.bincount(tenth, p - y)) / len(p)
    assert known.calibration_error("plain", names) == pytest.approx(gaps.sum(), abs=error)


# --- panels --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn() -> Panels:
    return Panels(range(15), PROMPTED, SHAPE)


def test_a_panel_does_not_depend_on_the_others(drawn: Panels) -> None:
    alone = Panels([3], PROMPTED, SHAPE).of("plain")
    among = drawn.of("plain")
    columns = ["evidence", "replicate", "status", "stages", "display", "probe", "task"]
    same = among[among["pool"] == "panel 3"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone[columns], same[columns])


def test_another_seed_draws_other_panels() -> None:
    ours, theirs = (
        Panels([0], PROMPTED, Shape(seed=seed)).of("plain")["display"] for seed in (0, 1)
    )
    assert (ours != theirs).any()


def test_conditions_of_a_panel_see_the_same_displays_and_never_share_a_call(drawn: Panels) -> None:
    frame = drawn.of("plain", "biased")
    shown = frame.pivot(index=["evidence", "replicate"], columns="condition", values="display")
    assert (shown["plain"] == shown["biased"]).all()
    assert frame["call_id"].is_unique
    assert frame["task"].nunique() == 15


def test_conditions_that_compare_designs_differ_in_one_knob() -> None:
    base = conditions()["plain"].design.values()
    for name in ("plain, subset", "plain, evidence first"):
        other = conditions()[name].design.values()
        assert sum(base[knob] != other[knob] for knob in Design.knobs()) == 1


@pytest.mark.parametrize("name", ["plain", "leaning", "cautious"])
def test_verdicts_of_panels_come_out_as_the_distribution_says(drawn: Panels, name: str) -> None:
    frame = drawn.of(name)
    titles = {text: kind for kind, text in enumerate(population())}
    items = {
        item.title: titles[item.text.partition("). ")[2]]
        for panel in drawn.numbers
        for item in evidence(panel, conditions()[name], SHAPE)
    }
    kind = frame["evidence"].map(items).to_numpy()
    for mask in (0, 1, 2, 4, 8):
        chances = distribution(name).mass.mean(axis=1)[kind, mask]
        seen = (frame["mask"] == mask).sum()
        assert abs(seen - chances.sum()) < 4 * np.sqrt((chances * (1 - chances)).sum()) + 1e-9


def test_rubrics_are_drawn_anew_for_each_panel(drawn: Panels) -> None:
    frame = drawn.of("plain, drawn rubrics")
    used = frame.groupby(["pool", "rubric_draw"])["rubric"].agg(["nunique", "first"])
    assert (used["nunique"] == 1).all()
    by_panel = used["first"].groupby(level="pool").agg(tuple)
    assert set(by_panel.map(len)) == {6} and by_panel.nunique() == len(drawn.numbers)
    written = {rubric.id for rubric in conditions()["plain, drawn rubrics"].drawn_from}
    assert set(frame["rubric"]) <= written


@pytest.mark.slow
def test_the_distribution_of_drawn_rubrics_is_the_mean_over_them_and_they_matter() -> None:
    name, kind = "biased, drawn rubrics", 20
    condition = conditions()[name]
    scorer, item = Scorer(condition.design, 5, "5"), Evidence("x", "another text")
    placed = []
    for rubric in condition.drawn_from:
        target = ScoreTarget(rubric, item, population()[kind], 11)
        [request] = scorer.requests([target])
        shown = scorer.display(target)
        chances = [
            (chance, chance * shown.decode(one.labels)[0])
            for one, chance in verdict_distribution(request).items()
            if one.labels
        ]
        placed.append(np.sum(chances, axis=0))
    scored, stages = np.array(placed).T
    assert distribution(name).stage[kind] == pytest.approx((stages.sum() / scored.sum() - 1) / 3)
    assert np.std(stages / scored) / 3 > 0.1, "a rubric moves a judge by a tenth of the scale"


# --- synthetic worlds ----------------------------------------------------------------------------


def test_synthetic_verdicts_come_out_as_their_distribution_says() -> None:
    source = Synthetic("test", sticky=0.5, clusters=4, correlation=0.5)
    frame = Panels(range(120), source, Shape(8, 3)).of("silent at the top")
    judge = source.distribution("silent at the top")
    for mask in (0, 1, 2, 4, 8):
        by_panel = (frame["mask"] == mask).groupby(frame["pool"]).mean()
        error = 4 * by_panel.std() / np.sqrt(len(by_panel))
        assert by_panel.mean() == pytest.approx(judge.mass[:, 0, mask].mean(), abs=error)
    abstained = (frame["status"] == "abstained").groupby(frame["pool"]).mean()
    error = 4 * abstained.std() / np.sqrt(len(abstained))
    assert abstained.mean() == pytest.approx(judge.abstained.mean(), abs=error)


def test_items_of_a_cluster_and_sticky_replicates_resemble_each_other() -> None:
    loose, tight = (
        Panels(range(60), Synthetic("test", sticky=s, clusters=4, correlation=r), Shape(8, 2))
        for s, r in ((0.0, 0.0), (0.8, 0.8))
    )
    shares = []
    for panels in (loose, tight):
        scored = panels.of("plain").query("status == 'scored'")
        stage = scored["stages"].astype(int)
        clusters = stage.groupby(scored["cluster"]).mean().var() / stage.var()
        pairs = scored.pivot(index="evidence", columns="replicate", values="mask").dropna()
        shares.append((clusters, (pairs[0] == pairs[1]).mean()))
    (apart, changed), (together, same) = shares
    assert together > apart + 0.2 and same > changed + 0.1


def test_agreement_of_ratings_agrees_with_simulation() -> None:
    """Ratings of many items drawn one by one, against the closed forms."""
    source, n, replicates = Synthetic("test"), 40_000, 5
    rng, known = seeded("ratings"), TrueValues(source.distribution, replicates)
    kind = rng.integers(48, size=n)
    medians, entropies = [], []
    for name in ("plain", "biased"):
        single = source.distribution(name).mass[:, 0][:, [0, 1, 2, 4, 8]].cumsum(axis=1)
        stage = (rng.random((n, replicates, 1)) > single[kind][:, None, :4]).sum(axis=2)
        count = (stage[:, :, None] == np.arange(1, 5)).sum(axis=1)
        total = count.sum(axis=1)
        median = np.where(
            total > 0, (2 * count.cumsum(axis=1) >= total[:, None]).argmax(axis=1), -1
        )
        medians.append(median)
        share = count / np.maximum(total, 1)[:, None]
        bits = -(share * np.log2(np.maximum(share, 1e-300))).sum(axis=1)
        entropies.append(bits[total > 0].mean())
    both = (medians[0] >= 0) & (medians[1] >= 0)
    ours, theirs = medians[0][both], medians[1][both]
    shuffled = rng.permutation(theirs)
    kappa = 1 - np.abs(ours - theirs).mean() / np.abs(ours - shuffled).mean()
    assert known.agreement("kappa_linear", "plain", "biased") == pytest.approx(kappa, abs=0.02)
    assert known.entropy("plain") == pytest.approx(entropies[0], abs=0.015)


# --- gates ---------------------------------------------------------------------------------------


def intervals(held: int, n: int, printed: int | None = None) -> pd.DataFrame:
    """So many intervals hold 0, and the others do not; some may not be printed."""
    low = np.where(np.arange(n) < held, -1.0, 0.5)
    low[n if printed is None else printed :] = np.nan
    return pd.DataFrame({"value": low + 1, "low": low, "high": low + 2, "truth": 0.0})


def decided(row: dict[str, object], gates: int = 1) -> list[str]:
    tables = {"coverage": [{"world": "w", "items": 30, "name": "q", **row}]}
    return decide({**tables, "recovery": [], "tests": []}, gates).failed


@each_row(
    ("held", "n", "gates", "fails"),
    [
        (95, 100, 1, False),
        (89, 100, 1, False),  # a chance of 9.1 % at a coverage of 93 %
        (88, 100, 1, True),  # of 4.7 %
        (87, 100, 300, False),
        (1730, 1900, 300, False),  # 91.1 %, a chance of 0.08 %
        (1715, 1900, 300, True),  # 90.3 %
        (0, 0, 1, False),
    ],
)
def test_coverage_fails_beyond_chance_among_all_gates(
    held: int, n: int, gates: int, fails: bool
) -> None:
    failed = decided(coverage(intervals(held, n), printed=False), gates)
    assert failed == (["coverage: q (w, 30 items)"] if fails else [])


def test_intervals_that_are_not_printed_fail_from_30_items_on() -> None:
    few = intervals(80, 100, printed=80)
    assert decided(coverage(few, printed=False)) == []
    assert decided(coverage(few, printed=True)) == ["share printed: q (w, 30 items)"]
    row = coverage(few, printed=True)
    assert (row["panels"], row["printed"], row["coverage"]) == (100, 0.8, 1.0)
    assert coverage(intervals(0, 9, printed=0), printed=False)["outcome"] == "withheld"


@each_row(("held", "outcome"), [(1000, "conservative"), (990, "conservative"), (975, "passes")])
def test_intervals_that_are_too_wide_are_named_conservative(held: int, outcome: str) -> None:
    assert coverage(intervals(held, 1000), printed=True)["outcome"] == outcome


def test_a_rate_has_wilsons_interval_of_99_percent() -> None:
    found = coverage(intervals(86, 100), printed=False)
    z2 = 2.5758293**2
    centre = (0.86 + z2 / 200) / (1 + z2 / 100)
    half = np.sqrt(z2 * (0.86 * 0.14 / 100 + z2 / 40000)) / (1 + z2 / 100)
    assert found["coverage"] == 0.86
    assert [found["low"], found["high"]] == pytest.approx([centre - half, centre + half])


def test_recovery_fails_where_the_bias_is_beyond_chance_and_a_tenth_of_the_spread() -> None:
    noise = seeded("noise").normal(size=400)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    table = pd.DataFrame({"value": noise, "low": noise - 2, "high": noise + 2})

    def p(bias: float, *, biased: bool = False) -> float | None:
        found = recovery(table.assign(truth=bias), biased=biased)["p"]
        assert found is None or isinstance(found, float)
        return found

    # The bias of 0.2 exceeds 0.1 by two standard errors of 1/20.
    assert p(0.2) == pytest.approx(2 * 0.0231, abs=1e-3)
    assert (p(0.0) or 0) > 0.9 and (p(0.4) or 0) < 1e-6
    assert p(0.4, biased=True) is None
    assert recovery(table.assign(truth=0.4), biased=True)["outcome"] == "biased"
    assert recovery(table[:1].assign(truth=0.0))["outcome"] == "no data"


def test_a_test_fails_where_it_errs_too_often_or_misses_what_is_plain() -> None:
    p = pd.DataFrame({"p": np.linspace(0.0005, 0.9995, 1000)})
    even = rejections(p, null=True)
    assert even["rejected"] == pytest.approx(0.05) and even["p"] > 0.5
    assert rejections(p**2, null=True)["p"] < 1e-9
    assert rejections(p**0.5, null=True)["outcome"] == "conservative"
    assert rejections(p**2, null=False)["p"] < 1e-9, "it misses most of the effects"
    assert rejections(p / 20, null=False)["p"] == pytest.approx(1)


def test_holm_counts_the_gates_that_a_run_left_out() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.01, 0.04], family=100) == pytest.approx([1.0, 1.0])


def test_a_profile_names_the_coverage_that_it_detects() -> None:
    found = detectable(1900, 300).coverage
    assert found == pytest.approx(0.90, abs=0.005)
    counts, times = np.unique(seeded("power").binomial(1900, found, 4000), return_counts=True)
    failed = [bool(decided(coverage(intervals(n, 1900), printed=False), 300)) for n in counts]
    assert np.average(failed, weights=times) == pytest.approx(0.9, abs=0.02)


# --- what is wrong is caught ---------------------------------------------------------------------

Interval = Callable[[np.ndarray], tuple[float, float, float]]
Distance = Callable[[Replicates, Replicates, int], np.ndarray]


def right(values: np.ndarray) -> tuple[float, float, float]:
    return estimate(values, scale=UNBOUNDED)[:3]


def half_as_wide(values: np.ndarray) -> tuple[float, float, float]:
    value, low, high = right(values)
    return value, (value + low) / 2, (value + high) / 2


def moved(values: np.ndarray) -> tuple[float, float, float]:
    value, low, high = right(values)
    return value + 0.1, low + 0.1, high + 0.1


def stage_by(interval: Interval) -> Quantity:
    """The expected stage of a judge, with some interval over items."""

    def distances(panels: Panels) -> pd.DataFrame:
        frame = panels.of("twin").query("status == 'scored'")
        score = (frame["stages"].astype(int) - 1) / 3
        cells = score.groupby([frame["task"], frame["evidence"]]).mean()
        rows = [interval(part.to_numpy()) for _, part in cells.groupby(level="task")]
        return pd.DataFrame(rows, columns=["value", "low", "high"])

    return Quantity(interval.__name__, distances, lambda known: known.endpoint("stage", "twin"))


def unbiased(ours: Replicates, theirs: Replicates, items: int) -> np.ndarray:
    return squared_distances([ours, theirs], items=items)[:, 0]


def of_frequencies(ours: Replicates, theirs: Replicates, items: int) -> np.ndarray:
    """What chance alone makes larger than 0."""
    sides = [sources(one.item, one.chosen, frame=4, cells=items).masses for one in (ours, theirs)]
    each = [[side.mapping(row) for row in range(items)] for side in sides]
    return np.array([squared_jousselme(*two) for two in zip(*each, strict=True)])


def distance_by(distance: Distance) -> Quantity:
    """The distance of two judges, by some estimator."""

    def distances(panels: Panels) -> pd.DataFrame:
        rows = []
        for _, part in panels.of("twin", "leaning").groupby("task"):
            item = pd.factorize(part["evidence"])[0].astype(np.int64)
            sides = []
            for name in ("twin", "leaning"):
                own = (part["condition"] == name).to_numpy()
                columns = [part[column].to_numpy()[own] for column in ("replicate", "mask")]
                sides.append(Replicates(item[own], *columns))
            rows.append(estimate(distance(sides[0], sides[1], 12), scale=UNBOUNDED)[:3])
        return pd.DataFrame(rows, columns=["value", "low", "high"])

    return Quantity(distance.__name__, distances, lambda known: known.distance("twin", "leaning"))


def world(*quantities: Quantity, tests: Sequence[HypothesisTest] = ()) -> World:
    return World(PROMPTED, 12, 5, quantities, tuple(tests))


@pytest.mark.slow
def test_wrong_estimators_are_caught_and_right_ones_pass() -> None:
    quantities = [
        *(stage_by(one) for one in (right, half_as_wide, moved)),
        *(distance_by(one) for one in (unbiased, of_frequencies)),
    ]
    eager = HypothesisTest(
        "eager", lambda panels: pd.DataFrame({"p": np.full(len(panels.numbers), 0.04)})
    )
    found = calibrate(60, chosen=[world(*quantities, tests=[eager])])
    assert {failed.partition(" (")[0] for failed in found.failed} == {
        "coverage: half_as_wide",
        "recovery: moved",
        "coverage: of_frequencies",
        "recovery: of_frequencies",
        "tests: eager",
    }
    assert not found.passed


def test_the_percentile_bootstrap_is_caught_at_12_items_and_students_t_is_not() -> None:
    """As many panels as it takes to tell 90 % from 93 %, of items like those of the real ones."""
    values = distribution("plain").stage
    rng = seeded("percentiles")
    panels = values[rng.integers(len(values), size=(6000, 12))]
    picks = rng.integers(12, size=(199, 12))
    ends = np.quantile(panels[:, picks].mean(axis=2), [0.025, 0.975], axis=1)
    by_percentile = pd.DataFrame({"value": panels.mean(axis=1), "low": ends[0], "high": ends[1]})
    by_t = pd.DataFrame(
        [estimate(row, scale=UNBOUNDED)[:3] for row in panels], columns=["value", "low", "high"]
    )
    truth = float(values.mean())
    assert decided(coverage(by_percentile.assign(truth=truth), printed=True), 300)
    assert not decided(coverage(by_t.assign(truth=truth), printed=True), 300)


# --- the whole -----------------------------------------------------------------------------------


LITTLE = World(Synthetic("little"), 3, 2, (STAGE,))


def test_the_same_seed_gives_the_same_tables() -> None:
    ours, again = (calibrate(3, chosen=[LITTLE]) for _ in "ab")
    for name, table in ours.tables.items():
        pd.testing.assert_frame_equal(table, again.tables[name])


def test_progress_is_reported_from_the_first_panel_to_the_last() -> None:
    reported: list[tuple[int, int]] = []
    calibrate(27, chosen=[LITTLE], watch=lambda *counts: reported.append(counts))
    assert reported == [(0, 27), (25, 27), (27, 27)]


@pytest.mark.slow
def test_several_processes_give_the_tables_of_one() -> None:
    ours, theirs = (calibrate(27, chosen=[LITTLE], workers=n) for n in (1, 2))
    pd.testing.assert_frame_equal(ours.recovery, theirs.recovery)


def zeros(rows: int) -> Quantity:
    """An estimator with so many rows for each panel."""

    def distances(panels: Panels) -> pd.DataFrame:
        table = np.zeros((rows * len(panels.numbers), 3))
        return pd.DataFrame(table, columns=["value", "low", "high"])

    return Quantity(f"{rows} each", distances, lambda _: 0.0)


def test_a_panel_has_at_most_one_row_and_may_have_none() -> None:
    found = calibrate(2, chosen=[world(zeros(0))])
    assert found.coverage["printed"].tolist() == [0.0]
    with pytest.raises(DesignError, match="2 each has 4 rows for 2 panels; it has one for each"):
        calibrate(2, chosen=[world(zeros(2))])


@pytest.mark.parametrize(
    ("panels", "shape", "message"),
    [
        (1, Shape(), "1 panels; choose 2 or more"),
        (5, Shape(items=2), "2 items; choose 3 or more"),
        (5, Shape(replicates=1), "1 replicates; choose 2 or more"),
    ],
)
def test_too_few_panels_items_or_replicates_are_refused(
    panels: int, shape: Shape, message: str
) -> None:
    with pytest.raises(DesignError, match=message):
        calibrate(panels, shape)


def test_what_is_calibrated_can_be_selected_and_still_counts_all_gates() -> None:
    every = sum(one.gates for one in worlds(SHAPE))
    found = calibrate(2, only="prevalence (labels of people, 40 items)")
    assert found.coverage["name"].tolist() == ["prevalence"]
    assert found.gates == every
    with pytest.raises(DesignError, match="nothing that is calibrated has 'weather' in its name"):
        calibrate(2, only="weather")


def names_of(one: World) -> list[str]:
    return [*(part.name for part in one.quantities), *(part.name for part in one.tests)]


def test_names_are_unique_within_a_world() -> None:
    for one in worlds(SHAPE):
        names = names_of(one)
        assert len(set(names)) == len(names)


def test_the_page_shows_the_last_full_run_of_everything_that_is_calibrated() -> None:
    page = (ROOT / "docs" / "calibrate.md").read_text(encoding="utf-8")
    table = page.partition(summary.BEGIN)[2].partition(summary.END)[0]
    assert "make simulations" in table
    missing = [
        f"{name} in {one.source.name}"
        for one in worlds(SHAPE)
        for name in names_of(one)
        if f"| {name} | {one.source.name} |" not in table
    ]
    assert missing == [], "run make simulations"


def test_each_quantity_of_a_world_stands_once_at_each_number_of_items() -> None:
    listed = [(one.source.name, one.items, name) for one in worlds(SHAPE) for name in names_of(one)]
    assert len(listed) == len(set(listed))


# --- the command ---------------------------------------------------------------------------------

PAGE = f"""before
{summary.BEGIN}
old
{summary.END}
after"""


def test_the_command_prints_a_table_and_saves_csv_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--panels", "3", "--only", "prevalence", "--out", str(tmp_path / "made" / "here")])
    out = capsys.readouterr().out
    assert code == 0
    assert out.startswith(summary.BEGIN) and "| prevalence | labels of people | n=40: " in out
    saved = pd.read_csv(tmp_path / "made" / "here" / "coverage.csv")
    assert saved["name"].tolist() == ["prevalence"]


def test_the_table_replaces_what_stands_between_the_markers() -> None:
    table = f"{summary.BEGIN}\nnew\n{summary.END}"
    assert summary.replace_table(PAGE, table) == f"before\n{table}\nafter"
    with pytest.raises(ValueError, match="needs the markers"):
        summary.replace_table("before", table)


def test_a_part_of_the_worlds_does_not_replace_the_page() -> None:
    with pytest.raises(SystemExit):
        main(["--only", "prevalence", "--write"])


RESULTS = """<testsuites><testsuite>
<testcase classname="tests.simulations.test_hard_studies" name="test_kappa_covers[20]">
<properties><property name="at" value="items 20"/><property name="covers" value="96.7% of 60"/>
</properties></testcase>
<testcase classname="tests.simulations.test_hard_studies" name="test_rates_cover[900]">
<properties><property name="at" value="items 900"/><property name="truth" value="80.0% of 60"/>
</properties><failure message="covers 80 %"/></testcase>
<testcase classname="tests.simulations.test_hard_studies" name="test_without_a_count"/>
<testcase classname="tests.simulations.test_measures" name="test_of_another_file">
<properties><property name="covers" value="1"/></properties></testcase>
</testsuite></testsuites>"""


def test_the_page_lists_what_hard_studies_counted_and_which_fail() -> None:
    table = summary.hard_studies(RESULTS)
    assert table.splitlines()[2:] == [
        "| kappa covers | items 20 | covers 96.7% of 60 |",
        "| rates cover | items 900 | truth 80.0% of 60 **fails** |",
    ]
    page = f"before\n{summary.BEGIN_STUDIES}\nold\n{summary.END_STUDIES}\nafter"
    replaced = summary.replace_studies(page, table)
    assert replaced.startswith(f"before\n{summary.BEGIN_STUDIES}\n| study |")
    assert replaced.endswith(f"**fails** |\n{summary.END_STUDIES}\nafter")
    assert "old" not in replaced
