"""Calibration of the instrument: its truth, its panels, its gates, its verb."""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judge_gym.calibrate
from conftest import Call
from judge_gym.analysis.belief.disagreement import Verdicts, squared_distances
from judge_gym.analysis.belief.masses import sources, stage_masks
from judge_gym.analysis.stats.intervals import seeded, student
from judge_gym.axes import Design
from judge_gym.calibrate import Calibration, HypothesisTest, Panels, Quantity, Shape, calibrate
from judge_gym.calibrate.quantities import (
    QUANTITIES,
    TESTS,
    Band,
    coverage,
    coverage_band,
    errors,
    recovery,
)
from judge_gym.calibrate.truth import HUNDREDTHS, TrueValues, distribution, stated_chances
from judge_gym.calibrate.worlds import answers, conditions, evidence, population
from judge_gym.errors import DesignError
from judge_gym.models.simulated import judge_profile, verdict_distribution
from judge_gym.records import Completion, Evidence, Request
from judge_gym.stages import Prober, ProbeTarget, Scorer, ScoreTarget
from plain_belief import squared_jousselme
from tables import each_row

SHAPE = Shape()


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
    stated = stated_chances(np.linspace(0, 1, 21), judge_profile("balanced")) @ HUNDREDTHS
    assert (np.diff(stated) >= 0).all() and 0 < stated[0] < stated[-1] < 1
    calm = judge_profile("balanced?overconfidence=0")
    even = stated_chances(np.array([0.5]), calm)[0]
    assert even.sum() == pytest.approx(1) and even @ HUNDREDTHS == pytest.approx(0.5, abs=1e-9)


def test_half_the_squared_euclidean_distance_is_the_distance_of_single_verdicts() -> None:
    ours, theirs = (
        distribution("plain").share[:, [1, 2, 4, 8]],
        distribution("biased").share[:, [1, 2, 4, 8]],
    )
    plain = ((ours - theirs) ** 2).sum(axis=1) / 2
    assert TrueValues(SHAPE).distance("plain", "biased") == pytest.approx(plain.mean(), rel=1e-3)


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
    exact = TrueValues(Shape(replicates=1000)).distance(*names)
    assert exact == pytest.approx(np.mean(found), rel=1e-9)


def test_identical_judges_have_no_difference() -> None:
    known = TrueValues(SHAPE)
    assert known.endpoint("stage", "twin", "plain") == 0
    assert known.distance("twin", "plain") == 0
    assert abs(known.polarization("plain", "twin")) < 0.002, "by drawing, so not quite"


def test_texts_that_are_mostly_abstained_from_weigh_less() -> None:
    few, many = (TrueValues(Shape(replicates=n)).endpoint("stage", "cautious") for n in (1, 500))
    judge = distribution("cautious")
    assert few == pytest.approx(float(np.average(judge.stage, weights=judge.scored)))
    assert many == pytest.approx(float(judge.stage.mean()))


def test_the_truth_of_stated_agreement_agrees_with_simulation() -> None:
    """Verdicts, probabilities and triples of others drawn one by one, against the closed forms."""
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
    known, error = TrueValues(Shape(replicates=1)), 4 / np.sqrt(len(p))
    names = ("biased", "leaning")
    assert known.overconfidence("plain", names) == pytest.approx((p - y).mean(), abs=error)
    assert known.brier("plain", names) == pytest.approx(((p - y) ** 2).mean(), abs=error)
    tenth = np.minimum((p * 10 + 1e-9).astype(int), 9)
    gaps = np.abs(np.bincount(tenth, p - y)) / len(p)
    assert known.calibration_error("plain", names) == pytest.approx(gaps.sum(), abs=error)


# --- panels --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn() -> Panels:
    return Panels(range(15), SHAPE)


def test_a_panel_does_not_depend_on_the_others(drawn: Panels) -> None:
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


# --- gates ---------------------------------------------------------------------------------------


def intervals(held: int, n: int) -> pd.DataFrame:
    """So many intervals hold 0, and the others do not."""
    low = np.where(np.arange(n) < held, -1.0, 0.5)
    return pd.DataFrame({"value": low + 1, "low": low, "high": low + 2})


@each_row(
    ("held", "n", "outcome"),
    [
        (100, 100, "passes"),  # not wholly above: 93.8 to 100 %
        (95, 100, "passes"),
        (86, 100, "passes"),  # not wholly below: up to 92.7 %
        (84, 100, "fails"),
        (890, 1000, "fails"),
        (905, 1000, "passes"),
        (990, 1000, "conservative"),
        (0, 0, "no data"),
    ],
)
def test_coverage_fails_only_wholly_below_its_band(held: int, n: int, outcome: str) -> None:
    assert coverage(intervals(held, n), 0.0, coverage_band(12))["outcome"] == outcome


def test_a_rate_has_wilsons_interval_of_99_percent() -> None:
    found = coverage(intervals(86, 100), 0.0, coverage_band(12))
    z2 = 2.5758293**2
    centre = (0.86 + z2 / 200) / (1 + z2 / 100)
    half = np.sqrt(z2 * (0.86 * 0.14 / 100 + z2 / 40000)) / (1 + z2 / 100)
    assert found["coverage"] == 0.86
    assert [found["low"], found["high"]] == pytest.approx([centre - half, centre + half])


def test_few_items_have_a_wider_band() -> None:
    assert coverage_band(12) == (0.92, 0.97)
    assert coverage_band(13) == (0.93, 0.97)


def test_panels_without_an_interval_are_counted_apart() -> None:
    table = pd.concat(
        [intervals(9, 10), pd.DataFrame({"value": [1.0], "low": np.nan, "high": np.nan})]
    )
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
    assert recovery(table, 0.3, biased=True)["outcome"] == "biased", "known, so it is told"
    assert recovery(table, 0.0, biased=True)["outcome"] == "passes"


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
Distance = Callable[[Verdicts, Verdicts, int], np.ndarray]


def right(values: np.ndarray) -> tuple[float, float, float]:
    return student(values)[:3]


def half_as_wide(values: np.ndarray) -> tuple[float, float, float]:
    value, low, high = right(values)
    return value, (value + low) / 2, (value + high) / 2


def moved(values: np.ndarray) -> tuple[float, float, float]:
    value, low, high = right(values)
    return value + 0.1, low + 0.1, high + 0.1


def stage_by(interval: Interval) -> Quantity:
    """The expected stage of a judge, with some interval over items."""

    def estimate(panels: Panels) -> pd.DataFrame:
        frame = panels.of("twin").query("status == 'scored'")
        score = (frame["stages"].astype(int) - 1) / 3
        cells = score.groupby([frame["task"], frame["evidence"]]).mean()
        rows = [interval(part.to_numpy()) for _, part in cells.groupby(level="task")]
        return pd.DataFrame(rows, columns=["value", "low", "high"])

    return Quantity(interval.__name__, estimate, lambda known: known.endpoint("stage", "twin"))


def unbiased(ours: Verdicts, theirs: Verdicts, items: int) -> np.ndarray:
    return squared_distances([ours, theirs], items=items)[:, 0]


def of_frequencies(ours: Verdicts, theirs: Verdicts, items: int) -> np.ndarray:
    """What chance alone makes larger than 0."""
    sides = [sources(one.item, one.chosen, frame=4, cells=items).masses for one in (ours, theirs)]
    each = [[side.mapping(row) for row in range(items)] for side in sides]
    return np.array([squared_jousselme(*two) for two in zip(*each, strict=True)])


def distance_by(distance: Distance) -> Quantity:
    """The distance of two judges, by some estimator."""

    def estimate(panels: Panels) -> pd.DataFrame:
        rows = []
        for _, part in panels.of("twin", "leaning").groupby("task"):
            item = pd.factorize(part["evidence"])[0].astype(np.int64)
            sides = []
            for name in ("twin", "leaning"):
                own = (part["condition"] == name).to_numpy()
                columns = [part[column].to_numpy()[own] for column in ("replicate", "mask")]
                sides.append(Verdicts(item[own], *columns))
            rows.append(student(distance(sides[0], sides[1], 12))[:3])
        return pd.DataFrame(rows, columns=["value", "low", "high"])

    return Quantity(distance.__name__, estimate, lambda known: known.distance("twin", "leaning"))


def test_wrong_estimators_are_caught_and_right_ones_pass() -> None:
    quantities = [
        *(stage_by(one) for one in (right, half_as_wide, moved)),
        *(distance_by(one) for one in (unbiased, of_frequencies)),
    ]
    eager = HypothesisTest(
        "eager", lambda panels: pd.DataFrame({"p": np.full(len(panels.numbers), 0.04)})
    )
    found = calibrate(60, quantities=quantities, tests=[eager])
    assert set(found.failed) == {
        "coverage: half_as_wide",
        "recovery: moved",
        "coverage: of_frequencies",
        "recovery: of_frequencies",
        "tests: eager",
    }
    assert not found.passed


def test_the_percentile_bootstrap_is_caught_at_12_items_and_students_t_is_not() -> None:
    """As many panels as it takes to tell 90 % from 92 %, of items like those of the real ones."""
    values = distribution("plain").stage
    rng = seeded("percentiles")
    panels = values[rng.integers(len(values), size=(6000, 12))]
    picks = rng.integers(12, size=(199, 12))
    ends = np.quantile(panels[:, picks].mean(axis=2), [0.025, 0.975], axis=1)
    by_percentile = pd.DataFrame({"value": panels.mean(axis=1), "low": ends[0], "high": ends[1]})
    by_t = pd.DataFrame([student(row)[:3] for row in panels], columns=["value", "low", "high"])
    truth, band = float(values.mean()), coverage_band(12)
    assert coverage(by_percentile, truth, band)["outcome"] == "fails"
    assert coverage(by_t, truth, band)["outcome"] == "passes"


# --- the whole -----------------------------------------------------------------------------------


LITTLE = Shape(items=3, replicates=2)


def test_the_same_seed_gives_the_same_tables() -> None:
    ours, again = (calibrate(3, LITTLE, quantities=QUANTITIES[:1], tests=TESTS[:1]) for _ in "ab")
    for name, table in ours.tables.items():
        pd.testing.assert_frame_equal(table, again.tables[name])


def test_progress_is_reported_from_the_first_panel_to_the_last() -> None:
    told: list[tuple[int, int]] = []
    calibrate(
        11, Shape(items=3, replicates=2), quantities=[], tests=[], watch=lambda *x: told.append(x)
    )
    assert told == [(0, 11), (10, 11), (11, 11)]


def test_several_processes_give_the_tables_of_one() -> None:
    ours, theirs = (
        calibrate(12, LITTLE, quantities=QUANTITIES[:1], tests=[], workers=n) for n in (1, 2)
    )
    pd.testing.assert_frame_equal(ours.recovery, theirs.recovery)


def test_an_estimator_has_one_row_for_each_panel() -> None:
    none = Quantity(
        "none", lambda panels: pd.DataFrame(columns=["value", "low", "high"]), lambda _: 0
    )
    with pytest.raises(DesignError, match="none has 0 rows; it needs one for each panel"):
        calibrate(2, quantities=[none], tests=[])


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


# --- the verb ------------------------------------------------------------------------------------

SMALL = ("--panels", "2", "--items", "4", "--replicates", "4")


@pytest.mark.slow
def test_the_command_calibrates_everything_and_writes_its_tables(
    call: Call, tmp_path: Path
) -> None:
    out = tmp_path / "made" / "here"
    ended = call("calibrate", *SMALL, "--out", str(out), "--json")
    said = ended.json
    assert ended.code == (0 if said["passed"] else 1)
    assert said["passed"] is (said["failed"] == [])
    assert (said["panels"], said["items"], said["replicates"], said["seed"]) == (2, 4, 4, 0)
    listed = {name: [one.name for one in QUANTITIES] for name in ("coverage", "recovery")}
    for name, entries in (listed | {"tests": [one.name for one in TESTS]}).items():
        assert len(set(entries)) == len(entries)
        assert [row["name"] for row in said[name]] == entries
        assert pd.read_csv(out / f"{name}.csv")["name"].tolist() == entries
    assert all(np.isfinite(row["truth"]) for row in said["recovery"])
    assert all(row["panels"] + row["undefined"] == 2 for row in said["coverage"] + said["tests"])


def test_a_failed_gate_is_exit_1(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    row = pd.DataFrame([{"name": "stage", "coverage": 0.5, "outcome": "fails"}])
    none = pd.DataFrame(columns=["name", "outcome"])
    monkeypatch.setattr(
        judge_gym.calibrate, "calibrate", lambda *_, **__: Calibration(row, none, none)
    )
    said = call("calibrate")
    assert said.code == 1
    assert "failed: coverage: stage" in said.err


def test_full_and_a_number_of_panels_exclude_each_other(call: Call) -> None:
    assert call("calibrate", "--full", "--panels", "3").code == 2


def test_an_interruption_ends_cleanly(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(requests: Sequence[Request]) -> list[Completion | None]:
        signal.raise_signal(signal.SIGINT)
        return answers(requests)

    monkeypatch.setattr("judge_gym.calibrate.worlds.answers", interrupted)
    said = call("calibrate", *SMALL, "--json")
    assert (said.code, said.out) == (130, "")
