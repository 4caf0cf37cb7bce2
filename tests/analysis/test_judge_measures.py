"""The measures of the judge table: which fit the labels, which decides, and what goes with them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.measures import MEASURES, Measure, registered
from judge_gym.analysis.measures.means import mean_by_setup
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.verdicts import Verdicts
from judge_gym.errors import DesignError
from judge_gym.records.judge_table import JudgeTable, Quantity, column_value

STATUSES = ("abstained", "refused", "truncated", "parse_failed")
PANDALM = Path(__file__).parents[3] / "shared" / "data" / "pandalm"


def frame_of(
    verdicts: Mapping[str, Sequence[Any] | np.ndarray],
    n_stages: int = 2,
    names: str = "",
    **columns: Any,
) -> pd.DataFrame:
    """One verdict (a stage or a status) of each judge on each item."""
    rows = [
        (f"x:{judge}", item, 0, str(verdict))
        for judge, given in verdicts.items()
        for item, verdict in enumerate(given)
    ]
    frame = pd.DataFrame(rows, columns=["judge.model", "evidence", "replicate", "verdict"])
    scored = ~frame["verdict"].isin(STATUSES)
    return frame.assign(
        status=np.where(scored, "scored", frame["verdict"]),
        stages=np.where(scored, frame["verdict"], ""),
        n_stages=n_stages,
        stage_names=names,
        tag="t",
        **columns,
    )


def raters_of(stages: Mapping[str, Sequence[int] | np.ndarray]) -> pd.DataFrame:
    rows = [
        ("t", item, rater, stage)
        for rater, given in stages.items()
        for item, stage in enumerate(given)
    ]
    return pd.DataFrame(rows, columns=["tag", "evidence", "rater", "stage"])


def measures(table: JudgeTable, setup: str) -> dict[str, float]:
    [row] = [row for row in table["rows"] if row["setup"] == setup]
    return {name: quantity["value"] for name, quantity in row["measures"].items()}


def noisy(truth: np.ndarray, right: float, stages: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(truth)) < right, truth, rng.integers(1, stages + 1, len(truth)))


# --- two labels ----------------------------------------------------------------------------------


def test_two_labels_are_measured_as_scikit_learn_does() -> None:
    truth = np.random.default_rng(1).integers(1, 3, 80)
    judge = noisy(truth, 0.7, 2, 2)
    frame = frame_of({"a": judge}, names="fail | pass").assign(truth=list(truth))
    table = judge_table(tidy(frame))
    assert table["scale"] == {"kind": "binary", "labels": ["fail", "pass"], "positive": "pass"}
    columns = [head["name"] for head in table["columns"]]
    assert columns[:5] == ["balanced", "sensitivity", "specificity", "exact", "kappa"]
    assert {name: measures(table, "a")[name] for name in columns[:5]} == pytest.approx(
        {
            "balanced": metrics.balanced_accuracy_score(truth, judge),
            "sensitivity": metrics.recall_score(truth, judge, pos_label=2),
            "specificity": metrics.recall_score(truth, judge, pos_label=1),
            "kappa": metrics.cohen_kappa_score(truth, judge),
            "exact": metrics.accuracy_score(truth, judge),
        },
        abs=1e-12,
    )
    confusion = table["confusion"]
    assert confusion is not None and confusion["verdicts"] == ["fail", "pass"]
    expected = metrics.confusion_matrix(truth, judge).T / 80
    assert np.array(confusion["shares"]) == pytest.approx(expected)


def test_a_judge_that_always_passes_is_no_better_than_a_constant_answer() -> None:
    truth = [1] * 10 + [2] * 190
    finder = [1] * 9 + [2] + [2] * 181 + [1] * 9  # finds 9 of 10 failures, at 5 % false alarms
    frame = frame_of({"always": [2] * 200, "finder": finder}, names="fail | pass", truth=truth * 2)
    table = judge_table(tidy(frame))
    assert (table["measure"], table["constant"], table["chosen"]) == ("balanced", 0.5, "finder")
    assert table["sentence"].startswith("Use finder: balanced accuracy 93 % [")
    assert "(passes 95 % [" in table["sentence"]
    assert "of what should pass and fails 90 % [" in table["sentence"]
    exact = judge_table(tidy(frame), measure="exact")
    assert exact["sentence"].startswith("No setup is recommended: ")


def test_a_setup_whose_rivals_gave_no_verdict_does_not_lack_items() -> None:
    truth = [1, 2] * 30
    frame = frame_of({"a": truth, "b": ["parse_failed"] * 60}, names="fail | pass", truth=truth * 2)
    failed = frame["judge.model"] == "x:b"
    frame.loc[failed, "status"] = "provider_error"
    text = judge_table(tidy(frame))["sentence"]
    start = "No other setup has a verdict to compare with known answers. a: balanced accuracy 100 %"
    assert text.startswith(start)
    few = frame[frame["evidence"] < 12]
    assert judge_table(tidy(few))["sentence"].startswith(
        "Too few items to compare setups: 12 items"
    )


def test_the_positive_label_is_declared_or_proposed_and_never_alphabetical() -> None:
    frame = frame_of({"a": [1, 2] * 20}, names="blue | green", truth=[1, 1, 2, 2] * 10)
    table = judge_table(tidy(frame))
    assert table["scale"] is not None and table["scale"]["positive"] is None
    assert "sensitivity" not in measures(table, "a")
    assert any("which of blue and green is the positive label" in note for note in table["notes"])
    declared = judge_table(tidy(frame), positive="blue")
    assert measures(declared, "a")["sensitivity"] == 0.5
    with pytest.raises(DesignError, match=r"unknown positive label .up.; choose"):
        judge_table(tidy(frame), positive="up")


def test_a_declared_loss_decides_and_the_lowest_is_best() -> None:
    truth = [1] * 30 + [2] * 30
    strict, lax = [1] * 60, [2] * 60
    frame = frame_of({"strict": strict, "lax": lax}, names="fail | pass", truth=truth * 2)
    table = judge_table(tidy(frame), loss={"miss": 5, "false_alarm": 1}, positive="fail")
    assert (table["measure"], table["chosen"]) == ("loss", "strict")
    assert [measures(table, name)["loss"] for name in ("strict", "lax")] == [0.5, 2.5]
    [row] = [row for row in table["rows"] if row["setup"] == "lax"]
    assert row["difference"] is not None and row["difference"]["value"] == pytest.approx(2.0)
    with pytest.raises(DesignError, match="a loss needs two labels"):
        judge_table(tidy(frame_of({"a": [1, 2, 3]}, 3, truth=[1, 2, 3])), loss={"miss": 1})


def test_verdicts_without_a_score_are_never_right_and_never_dropped() -> None:
    verdicts = [1, 1, "abstained", "refused", 2, 2, "truncated", "parse_failed"]
    frame = frame_of({"a": verdicts}, names="fail | pass", truth=[1, 1, 1, 1, 2, 2, 2, 2])
    table = judge_table(tidy(frame))
    expected = {"balanced": 0.5, "sensitivity": 0.5, "specificity": 0.5, "exact": 0.5}
    expected["kappa"] = 1 / 3
    values = measures(table, "a")
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    confusion = table["confusion"]
    assert confusion is not None
    assert confusion["verdicts"][2:] == ["abstained", "refused", "truncated", "parse failed"]
    assert np.sum(confusion["shares"]) == pytest.approx(1)


# --- ordered stages ------------------------------------------------------------------------------


def test_ordered_stages_are_measured_as_scikit_learn_and_scipy_do() -> None:
    truth = np.random.default_rng(3).integers(1, 6, 120)
    judge = noisy(truth, 0.6, 5, 4)
    table = judge_table(tidy(frame_of({"a": judge}, 5)), raters_of({"ann": truth}))
    found = measures(table, "a")
    assert found["weighted_kappa"] == pytest.approx(
        metrics.cohen_kappa_score(truth, judge, weights="quadratic"), abs=1e-12
    )
    assert found["tau_b"] == pytest.approx(stats.kendalltau(truth, judge).statistic, abs=1e-12)
    assert found["spearman"] == pytest.approx(stats.spearmanr(truth, judge).statistic, abs=1e-12)
    assert found["within_one"] == pytest.approx((np.abs(truth - judge) <= 1).mean())
    assert found["error"] == pytest.approx(np.abs(truth - judge).mean())
    assert found["bias"] == pytest.approx((judge - truth).mean())


def summaries(items: int = 300) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of summaries from 1 to 5, mostly 4: one judge is one stage strict, one says 4."""
    rng = np.random.default_rng(7)
    quality = rng.normal(3.9, 0.8, items)

    def stages(noise: float, shift: float = 0.0) -> np.ndarray:
        return np.clip(np.round(quality + shift + noise * rng.normal(size=items)), 1, 5).astype(int)

    raters = raters_of({name: stages(0.4) for name in ("ann", "ben", "cem")})
    return frame_of({"strict": stages(0.5, -1.0), "four": [4] * items}, 5), raters


@pytest.mark.slow
def test_a_shifted_judge_that_ranks_well_beats_one_that_always_says_the_same() -> None:
    frame, raters = summaries()
    exact = judge_table(tidy(frame), raters, measure="exact")
    assert exact["rows"][0]["setup"] == "four", "exact equality prefers the constant"
    for measure in (None, "weighted", "rank"):
        table = judge_table(tidy(frame), raters, measure=measure)
        assert table["chosen"] == "strict"
        assert table["rows"][-1]["standing"] in ("worse", "unknown")
    assert judge_table(tidy(frame), raters)["measure"] == "weighted"


def test_people_with_each_other_have_the_measures_of_setups() -> None:
    frame, raters = summaries()
    table = judge_table(tidy(frame), raters)
    assert table["people"] is not None
    people = table["people"]["measures"]
    assert {"weighted_kappa", "tau_b", "spearman", "exact", "within_one"} <= set(people)
    wide = raters.pivot(index="evidence", columns="rater", values="stage")
    others = [wide.drop(columns=name).mean(axis=1) for name in wide]
    tau = [
        stats.kendalltau(wide[name], mean).statistic
        for name, mean in zip(wide, others, strict=True)
    ]
    assert people["tau_b"]["value"] == pytest.approx(np.mean(tau))
    assert table["people_with_each_other"] == people["exact"]


def test_a_measure_that_does_not_fit_the_labels_is_refused_with_the_choices() -> None:
    frame = frame_of({"a": [1, 2, 3]}, 3, truth=[1, 2, 3])
    with pytest.raises(
        DesignError,
        match=r"unknown measure .balanced. for these labels; choose .exact., .weighted.",
    ):
        judge_table(tidy(frame), measure="balanced")


# --- people's rate, length, and replacing a rater ------------------------------------------------


def labelled_replies() -> tuple[pd.DataFrame, pd.DataFrame]:
    """200 replies of another length each; a mild judge on all of them, three raters on 90."""
    truth = np.random.default_rng(5).integers(1, 3, 200)
    mild = np.where(np.random.default_rng(6).random(200) < 0.3, 2, truth)
    frame = frame_of({"a": mild}, names="fail | pass")
    frame["length"] = 100 + 7 * ((frame["evidence"] * 31) % 97)
    return frame, raters_of({name: noisy(truth, 0.9, 2, n)[:90] for n, name in enumerate("xyz")})


def test_peoples_rate_corrects_the_judge_by_labels_of_some_items() -> None:
    frame, raters = labelled_replies()
    rate = judge_table(tidy(frame), raters)["rate"]
    assert rate is not None
    assert (rate["quantity"], rate["labelled"], rate["items"]) == ("pass rate", 90, 200)
    assert rate["raw"]["value"] == pytest.approx((frame["stages"] == "2").mean())
    assert rate["labels"]["value"] == pytest.approx((raters["stage"] == 2).mean())
    assert rate["corrected"]["value"] < rate["raw"]["value"]
    assert rate["sentence"].startswith("Pass rate: judge 6")


def test_items_of_a_concept_without_labels_have_no_part_in_the_rate() -> None:
    frame, raters = labelled_replies()
    other = frame.assign(concept="tone", evidence=frame["evidence"] + 1000, tag="other")
    both = pd.concat([frame.assign(concept="help"), other])
    rate, alone = (
        judge_table(tidy(part), raters)["rate"] for part in (both, frame.assign(concept="help"))
    )
    assert rate == alone


def test_length_and_the_alternative_annotator_test_are_of_the_same_labels() -> None:
    table = judge_table(tidy(labelled_replies()[0]), labelled_replies()[1])
    assert table["length"] is not None and table["length"]["unit"] == "doubling"
    effect = table["length"]["effect"]
    assert effect is not None and effect["n"] == 90
    assert "not clear yet" in table["length"]["sentence"]
    [test] = table["alt_test"]
    assert (test["raters"], test["epsilon"]) == (3, 0.2)
    assert "(expert)" in test["sentence"]
    [crowd] = judge_table(tidy(labelled_replies()[0]), labelled_replies()[1], alt_test="crowd")[
        "alt_test"
    ]
    assert crowd["epsilon"] == 0.1


# --- what goes with them -------------------------------------------------------------------------


def test_the_kind_of_labels_that_more_items_have_leads() -> None:
    truth = [1] + [None] * 59
    frame = frame_of({"a": [1, 2] * 30, "b": [1] * 60}, names="fail | pass", truth=truth * 2)
    table = judge_table(tidy(frame), raters_of({"ann": [1, 1, 2, 2] * 15}))
    assert table["kind"] == "agreement"
    row = table["rows"][0]
    assert row["truth"] is not None and row["truth"]["n"] == 60
    assert row["other_truth"] is not None
    assert (row["other_truth"]["kind"], row["other_truth"]["n"]) == ("accuracy", 1)


def test_both_orders_of_a_pair_have_equal_weight() -> None:
    verdicts = [("1", False, 0), ("1", False, 1), ("1", False, 2), ("2", True, 0)]
    frame = pd.DataFrame(verdicts, columns=["stages", "flipped", "replicate"]).assign(
        **{"judge.model": "x:a"}, evidence=0, status="scored", n_stages=3, pair=True, truth=1
    )
    [row] = judge_table(tidy(frame))["rows"]
    assert row["truth"] is not None and row["truth"]["value"] == pytest.approx(0.5)


def test_repeats_that_resemble_their_neighbours_are_noted_at_the_consistency() -> None:
    rng = np.random.default_rng(8)
    rows = []
    for judge, stickiness in (("sticky", 0.8), ("fresh", 0.0)):
        for item in range(60):
            stage = 1
            for repeat in range(6):
                stage = stage if rng.random() < stickiness else int(rng.integers(1, 5))
                rows.append((f"x:{judge}", item, repeat, "scored", str(stage), 4))
    columns = ["judge.model", "evidence", "replicate", "status", "stages", "n_stages"]
    table = judge_table(tidy(pd.DataFrame(rows, columns=columns)))
    quantities = {row["setup"]: row["consistency"] for row in table["rows"]}
    sticky, fresh = quantities["sticky"], quantities["fresh"]
    assert sticky is not None and "neighbours agree more" in sticky["note"]
    assert fresh is not None and "note" not in fresh
    assert any(note.startswith("repeats of sticky agree") for note in table["notes"])


def test_an_interval_is_withheld_with_its_reason() -> None:
    frame = frame_of({"a": [1, 2] * 6}, names="fail | pass", truth=[1, 2, 2] * 4)
    [row] = judge_table(tidy(frame))["rows"]
    kappa: Quantity = row["measures"]["kappa"]
    assert kappa["low"] is None
    assert kappa["withheld"] == "12 items, and 20 are needed"


def test_a_new_measure_is_a_column_by_its_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def even(verdicts: Verdicts) -> dict[int, Terms]:
        return mean_by_setup(verdicts, verdicts.rows["evidence"] % 2 == 0)

    added = {**MEASURES, "even": Measure(99, "even", "even items", "", "share", column=even)}
    monkeypatch.setattr("judge_gym.analysis.measures.MEASURES", added)
    table = judge_table(tidy(frame_of({"a": [1, 2, 1, 2, 1]}, truth=[1, 1, 1, 2, 2])))
    assert table["columns"][-1] == {
        "name": "even", "title": "even items", "about": "", "unit": "share", "main": True
    }  # fmt: skip
    quantity = column_value(table["rows"][0], "even")
    assert quantity is not None and (quantity["value"], quantity["n"]) == (0.6, 5)


def test_every_measure_says_what_it_is_and_asks_a_question() -> None:
    for measure in registered():
        assert measure.about.endswith("?") or "?" in measure.about, measure.name
        assert len(measure.about.split()) >= 6


@pytest.mark.skipif(not PANDALM.is_dir(), reason="no ../shared/data/pandalm")
def test_the_published_numbers_of_pandalm_are_reproduced() -> None:
    """Gold is the majority of three; GPT-3.5's 25 garbage answers count as ties."""
    items = json.loads((PANDALM / "testset-v1.json").read_text(encoding="utf-8"))
    answers = json.loads((PANDALM / "gpt-3.5-turbo-testset-v1.json").read_text(encoding="utf-8"))
    verdicts = [str(row["gpt_result"]) for row in answers]
    stage = {"1": 1, "2": 2, "0": 3, "Tie": 3}
    gold = [
        pd.Series([item[f"annotator{n}"] or 3 for n in (1, 2, 3)]).mode().iloc[0] for item in items
    ]
    frame = frame_of(
        {"gpt": [stage.get(text, 3) for text in verdicts]}, 3, rubric_kind="nominal", truth=gold
    )
    found = measures(judge_table(tidy(frame)), "gpt")
    assert found["exact"] == pytest.approx(0.7107, abs=5e-5)
    assert found["macro_f1"] == pytest.approx(0.5755, abs=5e-5)


def test_an_unreadable_verdict_is_not_positive_in_a_judges_rate() -> None:
    rng = np.random.default_rng(6)
    truth = 1 + (rng.random(200) < 0.6)
    said = np.where(rng.random(200) < 0.9, truth, 3 - truth).astype(object)
    said[:40] = "parse_failed"
    labels = raters_of({"ann": truth})
    table = judge_table(
        tidy(frame_of({"a": said}, 2, "fail | pass")), labels[labels["evidence"] < 120]
    )
    rate = table["rate"]
    assert rate is not None
    assert rate["raw"]["value"] == (said == 2).mean()
    assert rate["raw"]["n"] == 200
    found = rate["rogan_gladen"]
    assert found is not None and found["low"] is not None
