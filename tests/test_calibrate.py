"""Whether intervals hold at the size of one study: profile, panels, their truth, the verb."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.inter_rater import cohens_kappa

from conftest import Call
from judge_gym.analysis.judges.table import judge_table
from judge_gym.calibrate import SetupProfile, StudyProfile, check_coverage, measure_study
from judge_gym.calibrate.panels import UNREAD, draw_panel, generator, panel_frames
from judge_gym.calibrate.truths import joint_matrix, true_values

TABLE = "judge_gym.calibrate.coverage.judge_table"
HONEST: Any = judge_table
CONFUSION = np.array([[0.7, 0.2, 0.05, 0.05], [0.1, 0.8, 0.1, 0.0], [0.05, 0.25, 0.6, 0.1]])
STUDY = StudyProfile(
    cluster_sizes=(4,) * 10 + (1,) * 20,
    scale=3,
    ordered=True,
    pair=False,
    orders=1,
    labels="answers",
    prevalence=np.array([0.5, 0.3, 0.2]),
    raters=1,
    rater_accuracy=1.0,
    labelled=60,
    repeats=2,
    label_correlation=0.3,
    error_correlation=0.4,
    setup_correlation=0.5,
    setups=(
        SetupProfile("sim:a", CONFUSION, 0.1, 0.6, 0.0),
        SetupProfile("sim:b", CONFUSION[:, [0, 1, 2, 3]], 0.0, 0.9, 0.0),
    ),
    notes=(),
)
RATED = replace(STUDY, labels="raters", raters=3, rater_accuracy=0.8)
PAIRS = replace(
    STUDY,
    pair=True,
    orders=2,
    prevalence=np.array([0.6, 0.4, 0.0]),
    setups=(SetupProfile("sim:a", CONFUSION, 0.0, 0.6, 0.25),),
)


def frames(profile: StudyProfile, number: int = 0) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    rng = generator("test", number)
    return panel_frames(profile, draw_panel(profile, rng), rng)


# --- the truth -----------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [STUDY, RATED, PAIRS], ids=["answers", "raters", "pairs"])
def test_verdicts_and_labels_come_out_as_the_joint_matrix_says(profile: StudyProfile) -> None:
    panel = draw_panel(profile.with_items(60_000), generator("joint"))
    label = panel.ratings[:, 0] if profile.labels == "raters" else panel.label
    verdict = np.where(panel.verdicts[0, :, :, 0] == UNREAD, 4, panel.verdicts[0, :, :, 0])
    seen = np.zeros((3, 5))
    for order in range(profile.orders):
        np.add.at(seen, (label, verdict[:, order]), 1 / len(label) / profile.orders)
    assert joint_matrix(profile, profile.setups[0]) == pytest.approx(seen, abs=0.006)


def test_measures_are_those_of_statsmodels_on_a_large_panel() -> None:
    answered = CONFUSION[:, :3] / CONFUSION[:, :3].sum(axis=1, keepdims=True)
    setup = SetupProfile("sim:a", np.column_stack([answered, np.zeros(3)]), 0.0, 0.5, 0.0)
    profile = replace(STUDY, setups=(setup,), repeats=1)
    panel = draw_panel(profile.with_items(60_000), generator("kappa"))
    counts = pd.crosstab(panel.label, panel.verdicts[0, :, 0, 0])
    truth = true_values(profile, 0)["sim:a"]
    plain, weighted = cohens_kappa(counts), cohens_kappa(counts, wt="quadratic")
    assert truth["kappa"] == pytest.approx(plain.kappa, abs=0.02)
    assert truth["weighted_kappa"] == pytest.approx(weighted.kappa, abs=0.02)


def test_the_truth_of_repeats_and_orders_is_that_of_a_large_panel() -> None:
    for profile in (STUDY, PAIRS):
        panel = draw_panel(profile.with_items(60_000), generator("repeats"))
        verdicts, truth = panel.verdicts[0], true_values(profile, 0)["sim:a"]
        both = (verdicts != UNREAD).all(axis=2)
        equal = (verdicts[..., 0] == verdicts[..., 1])[both].mean()
        assert truth["consistency"] == pytest.approx(equal, abs=0.01)
        if profile.orders == 2:
            decided = (verdicts < 3) & (verdicts != UNREAD)
            first = (verdicts == np.array([0, 1])[:, None]).sum()
            second = (verdicts == np.array([1, 0])[:, None]).sum()
            bias = (first - second) / decided.sum()
            assert truth["position_bias"] == pytest.approx(bias, abs=0.01)


def test_unequal_raters_agree_as_often_as_the_truth_says() -> None:
    ratings = draw_panel(RATED.with_items(60_000), generator("raters")).ratings
    agreement = np.mean([ratings[:, a] == ratings[:, b] for a, b in ((0, 1), (0, 2), (1, 2))])
    assert true_values(RATED, 0)[""]["people_with_each_other"] == pytest.approx(agreement, abs=0.01)


# --- the profile ---------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [STUDY, RATED], ids=["answers", "raters"])
def test_the_profile_of_a_large_panel_is_the_one_that_it_was_drawn_from(
    profile: StudyProfile,
) -> None:
    large = replace(profile, cluster_sizes=(4,) * 2000, labelled=8000)
    measured = measure_study(*frames(large))
    assert measured.cluster_sizes == large.cluster_sizes
    assert (measured.scale, measured.repeats, measured.labelled) == (3, 2, 8000)
    assert measured.prevalence == pytest.approx(large.prevalence, abs=0.03)
    assert measured.rater_accuracy == pytest.approx(large.rater_accuracy, abs=0.03)
    for ours, theirs in zip(measured.setups, large.setups, strict=True):
        assert ours.unreadable == pytest.approx(theirs.unreadable, abs=0.01)
    if profile.labels == "answers":  # raters hide a part of the errors
        ours, theirs = measured.setups[0], large.setups[0]
        assert ours.confusion == pytest.approx(theirs.confusion, abs=0.04)
        assert ours.persistence == pytest.approx(theirs.persistence, abs=0.05)
        assert measured.label_correlation == pytest.approx(0.3, abs=0.05)
        assert measured.error_correlation == pytest.approx(0.4, abs=0.1)
        assert measured.setup_correlation == pytest.approx(0.5, abs=0.1)


def test_the_preference_for_the_first_response_is_measured_on_pairs() -> None:
    large = replace(PAIRS, cluster_sizes=(1,) * 5000, labelled=5000)
    measured = measure_study(*frames(large))
    assert (measured.pair, measured.orders) == (True, 2)
    assert measured.setups[0].prefers_first == pytest.approx(0.25, abs=0.03)
    assert measured.setups[0].confusion[:2] == pytest.approx(CONFUSION[:2], abs=0.04)


def test_without_labels_what_most_setups_say_stands_for_them() -> None:
    frame, _ = frames(STUDY)
    measured = measure_study(frame.assign(truth=np.nan))
    assert (measured.labels, measured.labelled) == ("none", 0)
    names = {
        row["quantity"]
        for row in check_coverage(frame.assign(truth=np.nan), panels=10)["quantities"]
    }
    assert {"consistency", "unreadable", "disagreement"} <= names and "truth" not in names


# --- coverage ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report_and_progress_is_complete() -> None:
    frame, people = frames(RATED)
    steps: list[tuple[int, int]] = []
    reports = [
        check_coverage(frame, people, panels=10, watch=lambda *step: steps.append(step))
        for _ in "ab"
    ]
    assert reports[0] == reports[1]
    assert steps[0] == (1, 15) and steps[14] == (15, 15)
    assert reports[0]["sentence"].startswith("At this size, 95 % intervals cover ")
    assert "10 panels of 60 items in 30 clusters and 2 setups" in reports[0]["sentence"]
    names = {row["quantity"] for row in reports[0]["quantities"]}
    assert {"truth", "majority", "people_with_each_other", "difference"} <= names


def narrow(table: dict[str, Any], quantity: str, factor: float) -> dict[str, Any]:
    for row in table["rows"]:
        estimate = row[quantity]
        for end in ("low", "high"):
            estimate[end] = estimate["value"] + factor * (estimate[end] - estimate["value"])
    return table


@pytest.mark.slow
def test_intervals_that_are_too_narrow_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrowed(*frames: Any, **options: Any) -> Any:
        return narrow(HONEST(*frames, **options), "truth", 0.2)

    monkeypatch.setattr(TABLE, narrowed)
    report = check_coverage(*frames(STUDY), panels=40)
    verdicts = {row["quantity"]: row["verdict"] for row in report["quantities"]}
    assert verdicts["truth"] == "fails" and verdicts["abstained"] != "fails"
    assert "The interval of accuracy does not hold: it covers " in report["sentence"]


@pytest.mark.slow
def test_measures_that_a_table_adds_are_checked_where_their_truth_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide = {"value": 0.5, "low": -1.0, "high": 1.0, "n": 60}
    few = {"value": 0.5, "low": None, "high": None, "n": 60, "withheld": "too few items"}

    def with_measures(*frames: Any, **options: Any) -> Any:
        table = HONEST(*frames, **options)
        for row in table["rows"]:
            row["measures"] = {"kappa": wide, "macro_f1": few, "loss": wide}
        return table

    monkeypatch.setattr(TABLE, with_measures)
    report = check_coverage(*frames(STUDY), panels=10)
    rows = {row["quantity"]: row for row in report["quantities"]}
    assert rows["kappa"]["coverage"] is not None and rows["kappa"]["coverage"]["value"] == 1
    assert (rows["macro_f1"]["verdict"], rows["macro_f1"]["reason"]) == (
        "withheld",
        "too few items",
    )
    assert report["unchecked"] == ["loss"]
    assert "No interval is printed of macro f1." in report["sentence"]


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "verdicts.csv"
    frames(STUDY)[0].drop(columns=["mask", "task", "variant", "repeats"]).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_the_command_answers_for_a_file(call: Call, file: Path) -> None:
    ended = call("calibrate", "--like", str(file), "--panels", "10", "--json")
    assert ended.code == 0
    assert ended.json["study"]["items"] == 60 and ended.json["panels"] == 10
    assert ended.json["quantities"][0]["quantity"] == "truth"
    shown = call("calibrate", "--like", str(file), "--panels", "10")
    assert shown.out.startswith("At this size, 95 % intervals cover ")
    assert "consistency" in shown.out


def test_the_command_says_what_to_choose_without_a_study(call: Call) -> None:
    ended = call("calibrate")
    assert ended.code == 2
    assert "--like" in ended.err and "make simulations" in ended.err
