"""Which designs may be compared, and what the comparison says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.stats.contrasts import (
    UNAFFECTED,
    changed_knobs,
    contrasts,
    find_contrasts,
    judge_contrasts,
    register,
)
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.axes import Design
from judge_gym.axes.presentation import PresentationAxes
from judge_gym.errors import DesignError
from judge_gym.stages.prompts import display

Levels = dict[str, Any]
BASE: Levels = {"verdict.method": "single", "presentation.first": "rubric"}
SUBSET: Levels = {**BASE, "verdict.method": "subset"}
EVIDENCE_FIRST: Levels = {**BASE, "presentation.first": "evidence"}
TASK = "all"


def panel(designs: Sequence[Levels], stages: np.ndarray, **columns: Any) -> pd.DataFrame:
    """Tidy samples of designs x judges x items x replicates; stage 0 is an abstention."""
    design, judge, item, replicate = (axis.ravel() for axis in np.indices(stages.shape))
    chosen = stages.ravel()
    frame = pd.DataFrame(
        {
            "judge.model": np.array([f"sim:{n}" for n in range(stages.shape[1])])[judge],
            "evidence": item,
            "replicate": replicate,
            "status": np.where(chosen > 0, "scored", "abstained"),
            "stages": np.where(chosen > 0, chosen.astype(str), ""),
            "n_stages": 4,
            "call_id": np.arange(len(chosen)),
        }
    )
    for knob in designs[0]:
        frame[knob] = [designs[int(n)][knob] for n in design]
    return tidy(frame.assign(**columns))


def random_stages(key: str, *shape: int) -> np.ndarray:
    return seeded(key).integers(1, 5, shape)


def only(table: pd.DataFrame, **where: Any) -> pd.Series:
    """The one row of a table with these values."""
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


# --- what differs --------------------------------------------------------------------------------


def test_a_diff_names_the_knobs_that_differ() -> None:
    base = Design.of({"judge.model": "sim:a"})
    other = base.replace({"verdict.method": "subset", "rubric.scale": 5})
    assert set(changed_knobs(base, other)) == {"verdict.method", "rubric.scale"}
    assert changed_knobs(base, base) == ()
    assert changed_knobs(base, base.replace({"judge.model": "sim:b"})) == ("judge.model",)


def test_an_unset_level_equals_itself() -> None:
    assert changed_knobs({"judge.temperature": np.nan}, {"judge.temperature": None}) == ()
    assert changed_knobs({"judge.temperature": np.nan}, {"judge.temperature": 0.5}) == (
        "judge.temperature",
    )


def test_a_knob_without_an_effect_does_not_differ() -> None:
    neutral = {"evidence.view": "neutralized", "evidence.editor": "sim:editor"}
    raw = {"evidence.view": "raw", "evidence.editor": "openai:gpt-5.3"}
    assert changed_knobs(neutral, raw) == ("evidence.view",)
    assert changed_knobs(neutral, {**neutral, "evidence.editor": "sim:other"}) == (
        "evidence.editor",
    )


def test_designs_that_differ_in_two_knobs_are_refused_by_name() -> None:
    both = {"verdict.method": "subset", "presentation.first": "evidence"}
    frame = panel([BASE, both], random_stages("two", 2, 1, 4, 2))
    with pytest.raises(DesignError, match=r"differ in presentation.first, verdict.method") as fault:
        register(frame, both, BASE, task=TASK)
    assert set(fault.value.choices) == set(both)
    assert find_contrasts(frame) == []


def test_a_design_is_not_contrasted_with_itself_or_its_retest() -> None:
    stages = random_stages("retest", 2, 1, 4, 2)
    with pytest.raises(DesignError, match="differ in none"):
        register(panel([BASE], stages[:1]), BASE, BASE, task=TASK)
    series = np.repeat(["first", "second"], stages[0].size)
    retest = panel([BASE, BASE], stages, series=series)
    with pytest.raises(DesignError, match="differ in series"):
        register(retest, {"series": "second"}, {"series": "first"}, task=TASK)
    assert find_contrasts(retest) == []
    moved = panel([BASE, SUBSET], stages, series=series)
    with pytest.raises(DesignError, match=r"verdict\.method, series"):
        register(moved, SUBSET, BASE, task=TASK)


def test_levels_must_match_one_variant_of_a_known_task() -> None:
    frame = panel([BASE, SUBSET, EVIDENCE_FIRST], random_stages("pick", 3, 1, 4, 2))
    with pytest.raises(DesignError, match="matches 2 variants"):
        register(frame, {"verdict.method": "single"}, SUBSET, task=TASK)
    with pytest.raises(DesignError, match="unknown task 'none'"):
        register(frame, SUBSET, BASE, task="none")
    assert register(frame, SUBSET, BASE, task=TASK) in find_contrasts(frame)


def test_levels_are_compared_with_the_default_or_with_the_first() -> None:
    scales = [{"rubric.scale": scale} for scale in (3, 4, 5)]
    found = find_contrasts(panel(scales, random_stages("scale", 3, 1, 4, 2) % 3 + 1))
    assert [(one.level, one.base) for one in found] == [("3", "4"), ("5", "4")]
    others = [{"rubric.scale": scale} for scale in (7, 5, 10)]
    found = find_contrasts(panel(others, random_stages("scale", 3, 1, 4, 2)))
    assert [(one.level, one.base) for one in found] == [("10", "5"), ("7", "5")]


def test_a_grid_is_contrasted_at_every_level_of_the_other_knob() -> None:
    grid = [
        {"verdict.method": method, "presentation.first": first}
        for method in ("single", "subset")
        for first in ("rubric", "evidence")
    ]
    found = find_contrasts(panel(grid, random_stages("grid", 4, 1, 4, 2)))
    assert sorted((one.knob, one.at) for one in found) == [
        ("presentation.first", "verdict.method=single"),
        ("presentation.first", "verdict.method=subset"),
        ("verdict.method", "presentation.first=evidence"),
        ("verdict.method", "presentation.first=rubric"),
    ]


# --- displays ------------------------------------------------------------------------------------


def shown(knob: str, levels: Sequence[Any], seeds: Sequence[int] = (1, 1)) -> pd.DataFrame:
    """Two levels of a knob with the displays that the scoring stage would show."""
    frame = panel([{knob: level} for level in levels], random_stages("shown", 2, 2, 6, 3))
    texts = []
    for level, item, replicate in zip(
        frame[knob], frame["evidence"], frame["replicate"], strict=True
    ):
        axes = PresentationAxes()
        if knob.startswith("presentation."):
            axes = PresentationAxes.model_validate({knob.split(".")[1]: level})
        seed = seeds[0] if level == levels[0] else seeds[1]
        scale = level if knob == "rubric.scale" else 4
        made = display(axes.resolve(), seed, str(item), replicate, scale)
        texts.append(" ".join(f"{a}={b}" for a, b in zip(made.labels, made.stages, strict=True)))
    scales = frame[knob] if knob == "rubric.scale" else 4
    return frame.assign(display=texts, n_stages=scales)


@pytest.mark.parametrize(
    ("knob", "levels"),
    [
        ("verdict.method", ["single", "subset"]),
        ("presentation.labels", ["shuffled", "opaque"]),
        ("presentation.labels", ["shuffled", "fixed"]),
        ("presentation.order", ["shuffled", "fixed"]),
        ("presentation.first", ["rubric", "evidence"]),
        ("rubric.scale", [4, 5]),
    ],
)
def test_displays_may_differ_in_what_the_knob_changes(knob: str, levels: list[Any]) -> None:
    frame = shown(knob, levels)
    made = register(frame, {knob: levels[1]}, {knob: levels[0]}, task=TASK)
    assert (made.knob, made.base) == (knob, str(levels[0]))
    assert contrasts(frame, [made])["value"].notna().all()


@pytest.mark.parametrize(
    ("knob", "levels"),
    [
        ("verdict.method", ["single", "subset"]),
        ("presentation.labels", ["shuffled", "opaque"]),
        ("presentation.labels", ["shuffled", "fixed"]),
        ("presentation.order", ["shuffled", "fixed"]),
    ],
)
def test_another_shuffle_is_refused_and_not_tested(knob: str, levels: list[str]) -> None:
    frame = shown(knob, levels, seeds=(1, 2))
    with pytest.raises(DesignError, match=r"displays differ in \d+ of 36"):
        register(frame, {knob: levels[1]}, {knob: levels[0]}, task=TASK)
    table = contrasts(frame)
    assert table[["value", "p", "q"]].isna().all(axis=None)
    assert table["note"].str.startswith("displays differ").all()


def test_other_labels_in_the_same_order_are_refused_too() -> None:
    frame = shown("verdict.method", ["single", "subset"])
    exchanged = frame["display"].str.translate(str.maketrans("AB", "BA"))
    frame["display"] = frame["display"].where(frame["verdict.method"] == "single", exchanged)
    with pytest.raises(DesignError, match="displays differ in 36 of 36"):
        register(frame, {"verdict.method": "subset"}, {"verdict.method": "single"}, task=TASK)


# --- numbers -------------------------------------------------------------------------------------


def test_a_judges_row_is_the_paired_difference_over_items() -> None:
    stages = random_stages("rows", 2, 2, 15, 4)
    table = contrasts(panel([BASE, SUBSET], stages))
    means = (stages - 1).mean(axis=-1) / 3
    theirs = stats.ttest_rel(means[1, 0], means[0, 0])
    row = only(table, judge="sim:0", endpoint="stage")
    assert (row["knob"], row["level"], row["base"]) == ("verdict.method", "subset", "single")
    assert row["value"] == pytest.approx((means[1, 0] - means[0, 0]).mean())
    assert [row["low"], row["high"]] == pytest.approx(list(theirs.confidence_interval()))
    assert row["items"] == 15 and row["shared"] == 0 and row["note"] == ""


def test_over_all_judges_items_stay_the_units() -> None:
    stages = random_stages("all", 2, 3, 15, 4)
    row = only(contrasts(panel([BASE, SUBSET], stages)), judge="all", endpoint="stage")
    means = ((stages - 1).mean(axis=-1) / 3).mean(axis=1)
    theirs = stats.ttest_rel(means[1], means[0])
    assert row["items"] == 15
    assert [row["low"], row["high"]] == pytest.approx(list(theirs.confidence_interval()))


def test_one_judge_has_no_row_for_all() -> None:
    table = contrasts(panel([BASE, SUBSET], random_stages("one", 2, 1, 8, 2)))
    assert table["judge"].unique().tolist() == ["sim:0"]


def test_items_without_a_scored_sample_are_dropped_and_counted() -> None:
    stages = random_stages("dropped", 2, 2, 10, 2)
    stages[0, 0, 3] = 0
    table = contrasts(panel([BASE, SUBSET], stages))
    for judge in ("sim:0", "all"):
        row = only(table, judge=judge, endpoint="stage")
        assert row["items"] == 9 and row["note"] == "1 item dropped"
    assert only(table, judge="sim:1", endpoint="stage")["items"] == 10
    assert only(table, judge="sim:0", endpoint="abstention")["items"] == 10


def test_a_judge_that_never_scores_leaves_the_others_their_row() -> None:
    stages = random_stages("silent", 2, 3, 10, 2)
    stages[:, 1] = 0
    row = only(contrasts(panel([BASE, SUBSET], stages)), judge="all", endpoint="stage")
    assert row["items"] == 10 and row["note"] == "1 judge without values"


def test_endpoints_without_values_have_no_row() -> None:
    table = contrasts(panel([BASE, SUBSET], random_stages("none", 2, 1, 8, 2)))
    assert set(table["endpoint"]) == {"stage", "abstention", "subset_size", "entropy"}
    with pytest.raises(DesignError, match="unknown endpoint 'score'"):
        contrasts(panel([BASE], random_stages("none", 1, 1, 8, 2)), endpoints=["score"])


def test_single_right_or_wrong_answers_are_compared_by_mcnemar() -> None:
    stages = random_stages("right", 2, 1, 40, 1)
    row = only(contrasts(panel([BASE, SUBSET], stages, truth=2)), endpoint="agreement")
    right = stages[:, 0, :, 0] == 2
    more, less = (right[1] & ~right[0]).sum(), (right[0] & ~right[1]).sum()
    assert row["test"] == "McNemar"
    assert row["p"] == pytest.approx(stats.binomtest(int(more), int(more + less)).pvalue)


def test_swaps_are_left_out_of_contrasts() -> None:
    stages = random_stages("swap", 2, 1, 8, 2)
    plain = panel([BASE, SUBSET], stages)
    swapped = plain.assign(is_swap=True, mask=8, call_id=plain["call_id"] + 1000)
    both = pd.concat([plain, swapped], ignore_index=True)
    pd.testing.assert_frame_equal(contrasts(both), contrasts(plain))


# --- shared calls --------------------------------------------------------------------------------


def test_contrasts_that_share_all_calls_are_not_tested() -> None:
    stages = np.repeat(random_stages("same", 1, 2, 8, 3), 2, axis=0)
    calls = np.tile(np.arange(stages[0].size), 2)
    table = contrasts(panel([BASE, SUBSET], stages, call_id=calls))
    assert (table["note"] == UNAFFECTED).all() and (table["shared"] == 1).all()
    assert (table["value"] == 0).all() and table[["p", "q", "low"]].isna().all(axis=None)


def test_the_share_of_shared_calls_is_of_all_calls() -> None:
    stages = random_stages("half", 2, 1, 8, 2)
    calls = np.arange(32)
    calls[16:24] = calls[:8]
    table = contrasts(panel([BASE, SUBSET], stages, call_id=calls))
    assert table["shared"].to_numpy() == pytest.approx(8 / 24)
    unknown_calls = contrasts(panel([BASE, SUBSET], stages, call_id=np.nan))
    assert unknown_calls["shared"].isna().all() and unknown_calls["p"].notna().all()


def test_a_probe_in_another_context_shares_verdicts_but_not_probes() -> None:
    designs = [{"probe.context": "fresh"}, {"probe.context": "same"}]
    stages = np.repeat(random_stages("probe", 1, 1, 8, 3), 2, axis=0)
    frame = panel(
        designs,
        stages,
        call_id=np.tile(np.arange(24), 2),
        probe=seeded("probes").random(48),
        probe_call_id=np.arange(48),
    )
    table = contrasts(frame)
    assert only(table, endpoint="stage")["note"] == UNAFFECTED
    probability = only(table, endpoint="probability")
    assert probability["shared"] == 0 and probability["p"] > 0


# --- corrections ---------------------------------------------------------------------------------


def test_p_values_are_corrected_over_everything_that_the_table_shows() -> None:
    designs = [BASE, SUBSET, EVIDENCE_FIRST]
    stages = random_stages("family", 3, 3, 10, 3)
    table = contrasts(panel(designs, stages))
    assert table["endpoint"].nunique() > 1
    tested = table[table["p"].notna()]
    np.testing.assert_allclose(tested["q"], multipletests(tested["p"], method="fdr_bh")[1])


def test_a_frame_without_contrasts_gives_an_empty_table() -> None:
    assert contrasts(panel([BASE], random_stages("empty", 1, 2, 4, 2))).empty


# --- judges --------------------------------------------------------------------------------------


def test_every_two_judges_are_compared_under_one_design() -> None:
    stages = random_stages("judges", 1, 3, 12, 3)
    table = judge_contrasts(panel([BASE], stages))
    stage = table[table["endpoint"] == "stage"]
    assert list(zip(stage["level"], stage["base"], strict=True)) == [
        ("sim:1", "sim:0"),
        ("sim:2", "sim:0"),
        ("sim:2", "sim:1"),
    ]
    means = (stages[0] - 1).mean(axis=-1) / 3
    row = only(stage, level="sim:2", base="sim:1")
    assert row["value"] == pytest.approx((means[2] - means[1]).mean())
    assert (table["knob"] == "judge.model").all() and (table["note"] == "").all()
    tested = table[table["p"].notna()]
    np.testing.assert_allclose(tested["q"], multipletests(tested["p"], method="fdr_bh")[1])


def test_judges_with_their_own_rubrics_differ_in_judge_and_rubric() -> None:
    frame = panel([BASE], random_stages("own", 1, 2, 8, 2))
    table = judge_contrasts(frame.assign(rubric_author=frame["judge.model"]))
    assert (table["note"] == "judge and rubric").all()


# --- calibration ---------------------------------------------------------------------------------


def simulated(panels: int, items: int, effect: float, key: str) -> pd.DataFrame:
    """The rows of many panels, each with fresh items: three judges, three replicates.

    An item's chance of each step up the scale is its own; the level adds its own amount to it, on
    average `effect`, so the mean difference of the normalised stage is `effect` over items.
    """
    rng = seeded("panels", key, items)
    shape = (panels, 1, items, 1)
    base = rng.uniform(0.2, 0.6, shape) + rng.uniform(-0.1, 0.1, (panels, 3, items, 1))
    # Items differ in effect, and judges do not make up for it: replicates are not the units.
    chance = np.stack([base, base + effect + rng.uniform(-0.1, 0.1, shape)])
    stages = 1 + rng.binomial(3, np.repeat(chance, 3, axis=-1))
    frames = panel([BASE, SUBSET], stages.reshape(2, panels * 3, items, 3))
    number = frames["judge.model"].str.removeprefix("sim:").astype(int)
    frames["task"] = "panel " + (number // 3).astype(str)
    frames["judge.model"] = "sim:" + (number % 3).astype(str)
    return contrasts(frames, endpoints=["stage"])


@pytest.mark.simulation
@pytest.mark.parametrize(("items", "least"), [(12, 0.92), (40, 0.93)])
def test_paired_intervals_cover_the_effect(items: int, least: float) -> None:
    table = simulated(200, items, 0.15, "cover")
    for judge in ("all", "sim:1"):
        rows = table[table["judge"] == judge]
        covered = int(((rows["low"] <= 0.15) & (rows["high"] >= 0.15)).sum())
        interval = stats.binomtest(covered, len(rows)).proportion_ci(0.99)
        assert len(rows) == 200 and interval.high >= least and interval.low <= 0.97


@pytest.mark.simulation
def test_false_positive_rate_of_contrasts() -> None:
    rows = simulated(300, 12, 0.0, "null").query("judge == 'all'")
    hits = int((rows["p"] <= 0.05).sum())
    assert stats.binomtest(hits, len(rows)).proportion_ci(0.99).low <= 0.06
    assert hits / len(rows) > 0.02


@pytest.mark.parametrize(("missing", "shown"), [(0, False), (1, True), (4, True)])
def test_bounds_of_missing_verdicts_are_shown_where_they_change_the_outcome(
    missing: int, shown: bool
) -> None:
    """A small, steady difference on 30 items, of whose 120 verdicts one (0.8 %) is missing."""
    rows = []
    for method, item, replicate in np.ndindex(2, 30, 2):
        lost = method == 1 and item < missing and replicate == 0
        stage = 13 + method * replicate * (item % 3 > 0)
        rows.append(
            {
                "judge.model": "a",
                "evidence": item,
                "replicate": replicate,
                "verdict.method": ("single", "subset")[method],
                "status": "abstained" if lost else "scored",
                "stages": "" if lost else str(stage),
                "n_stages": 26,
            }
        )
    found = contrasts(tidy(pd.DataFrame(rows)), endpoints=["stage"]).iloc[0]
    assert found["low"] > 0, "the difference itself is clear"
    assert np.isfinite(found["lowest"]) == shown
    assert not shown or found["lowest"] <= 0 <= found["highest"]
