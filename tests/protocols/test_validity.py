"""The five checks on panels whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.measures.polarization import polarization
from judge_gym.errors import DesignError
from judge_gym.protocols.validity import Thresholds, control_descriptions, validity
from verdict_frames import Chances, draw_verdicts

ALIKE = [0.05, 0.9, 0.05, 0]
LEFT, RIGHT = [1, 0, 0, 0], [0, 0, 0, 1]


def checked(frame: pd.DataFrame, name: str, **gates: float) -> pd.Series:
    found = validity(tidy(frame), Thresholds.of(gates))
    return found[found["check"] == name].iloc[0]


CHECKS = [
    "discriminant control",
    "dose-response",
    "external benchmark",
    "internal consistency",
    "belief functions",
]


def described(frame: pd.DataFrame, name: str) -> pd.Series:
    found = control_descriptions(tidy(frame))
    return found[found["quantity"] == name].iloc[0]


def control(judges: dict[str, Chances], **columns: object) -> pd.DataFrame:
    return draw_verdicts(judges, task_type="control", concept="plain", **columns)  # type: ignore[arg-type]


def test_judges_that_agree_on_controls_pass() -> None:
    found = checked(control({"a": ALIKE, "b": ALIKE}, items=60), "discriminant control")
    assert found["result"] == "pass"
    assert found["items"] == 60


def test_judges_that_disagree_on_controls_fail() -> None:
    found = checked(control({"a": ALIKE, "b": [0, 0.1, 0.9, 0]}), "discriminant control")
    assert found["result"] == "fail"
    assert found["low"] > 0.1


def test_a_control_that_passes_by_abstaining_fails() -> None:
    shy: Chances = {"2": 0.3, "abstain": 0.7}
    found = checked(control({"a": shy, "b": shy}), "discriminant control")
    assert found["result"] == "fail"
    assert "abstaining" in found["note"]


def test_without_a_control_there_is_nothing_to_check() -> None:
    found = checked(draw_verdicts({"a": ALIKE, "b": ALIKE}), "discriminant control")
    assert found["result"] == "lacks data"
    assert np.isnan(found["value"])


def test_there_are_five_checks_and_each_that_does_not_decide_says_what_it_needs() -> None:
    frame = draw_verdicts({"a": ALIKE}, items=60)
    found = validity(tidy(frame)).set_index("check")
    assert found.index.tolist() == CHECKS
    assert found["needs"].to_dict() == {
        "discriminant control": "a task of type control",
        "dose-response": "tasks of two doses",
        "external benchmark": "a benchmark with known answers",
        "internal consistency": "",
        "belief functions": "items that two judges scored with verdict.method single",
    }


def test_a_check_that_too_few_items_cannot_pass_names_the_number() -> None:
    """Judges who agree always cannot show it on fewer items; that many are enough."""
    perfect: Chances = {"1": 1.0}
    for name, needed in (("discriminant control", 36), ("internal consistency", 32)):
        few, enough = (
            checked(control({"a": perfect, "b": perfect}, items=items), name)
            for items in (needed - 1, needed)
        )
        assert (few["result"], few["needs"]) == ("too few items", f"{needed} items")
        assert (enough["result"], enough["needs"]) == ("pass", "")


def test_a_threshold_that_nothing_can_pass_is_called_so() -> None:
    found = checked(control({"a": {"1": 1.0}, "b": {"1": 1.0}}), "discriminant control", control=0)
    assert found["result"] == "undecided" and found["needs"].startswith("another threshold")


def test_an_undecided_check_says_how_many_items_would_decide_it() -> None:
    near: dict[str, Chances] = {"a": [0.65, 0.35, 0, 0], "b": [0.35, 0.65, 0, 0]}  # distance .09
    found = checked(control(near, items=60), "discriminant control")
    assert found["result"] == "undecided"
    assert found["needs"].endswith(" items at this estimate")
    assert int(found["needs"].split()[1].replace(",", "")) > 60


def test_a_control_has_conflict_k_beside_the_distance_that_decides() -> None:
    torn = [0.5, 0, 0, 0.5]
    for judges in ("ab", "abcd"):  # k of all four at once would be 0.875
        frame = control(dict.fromkeys(judges, torn), items=60, replicates=10)
        assert checked(frame, "discriminant control")["result"] == "pass"
        found = described(frame, "conflict k")
        assert found["items"] == 60
        assert found["low"] < 0.5 < found["high"], "two identical judges"
    assert described(control({"a": torn}), "conflict k")["note"] == "needs two judges with repeats"
    assert control_descriptions(tidy(draw_verdicts({"a": torn, "b": torn}))).empty


def test_a_control_compares_mean_verdicts_with_the_reference_value() -> None:
    name = "error against the reference"
    panel: dict[str, Chances] = {"a": [0, 1, 0, 0], "b": [0, 0, 1, 0]}
    found = described(control(panel, reference=0.6), name)
    assert found["value"] == pytest.approx(1 / 3 - 0.6)  # stages 2 and 3 of 4 are at 1/3 and 2/3
    assert found["note"] == "the judge with the largest error, a"
    # Articles differ from the value for the country; their mean does not.
    found = described(control({"a": [0.5, 0, 0, 0.5]}, items=30, reference=0.5), name)
    assert found["low"] < 0 < found["high"]
    found = described(control({"a": [0, 0, 0.1, 0.9]}, items=8, reference=0.9), name)
    assert found["high"] <= 0.1 + 1e-12  # the mean stage is at most 1
    assert described(control(panel), name)["note"] == "needs a reference value"


def test_distances_of_single_verdicts_are_those_of_plain_counts() -> None:
    panel: dict[str, Chances] = {
        "a": [0.5, 0.3, 0.1, 0.1],
        "b": [0.1, 0.1, 0.3, 0.5],
        "c": {"1": 0.2, "4": 0.4, "abstain": 0.4},
    }
    found = checked(draw_verdicts(panel, items=12), "belief functions")
    assert (found["result"], found["items"]) == ("pass", 12)
    assert 0 <= found["value"] <= 1e-9


def test_verdicts_of_several_stages_do_not_test_the_belief_functions() -> None:
    wide: Chances = {"2 3": 0.5, "1": 0.5}
    frame = draw_verdicts({"a": wide, "b": wide}).assign(**{"verdict.method": "subset"})
    found = checked(frame, "belief functions")
    assert found["result"] == "lacks data" and np.isnan(found["value"])


def doses(*distances: float) -> pd.DataFrame:
    """Two judges who part, on a share of the scale that grows with the dose."""
    return pd.concat(
        draw_verdicts(
            {"a": [1, 0, 0, 0], "b": [1 - apart, 0, 0, apart]},
            dose=dose,
            concept=f"c{dose}",
            seed=10 + dose,
            items=60,
        )
        for dose, apart in enumerate(distances)
    )


def test_distance_that_grows_with_the_dose_passes() -> None:
    found = checked(doses(0.1, 0.5, 0.9), "dose-response")
    assert found["result"] == "pass"
    # Distances .01, .25 and .81, so that the slope of the line through them is .4.
    assert found["low"] < 0.4 < found["high"]


def test_distance_that_falls_with_the_dose_fails() -> None:
    assert checked(doses(0.9, 0.5, 0.1), "dose-response")["result"] == "fail"


def test_the_dose_response_is_over_concepts_where_there_are_enough_of_them() -> None:
    few = checked(doses(0.1, 0.5, 0.9), "dose-response")
    assert few["note"].endswith("on these 3 concepts, pools and rubrics")
    parts = [
        draw_verdicts(
            {"a": [1, 0, 0, 0], "b": [1 - apart, apart, 0, 0]},
            dose=place % 3, concept=f"c{place}", seed=place, first=20 * place, items=8,
        )
        for place, apart in enumerate([0.1, 0.5, 0.6, 0.3, 0.4, 0.9])
    ]  # fmt: skip
    found = checked(pd.concat(parts), "dose-response")
    assert found["note"].endswith("over 6 concepts") and found["items"] == 6
    frame = tidy(pd.concat(parts))
    means = polarization(frame).set_index("task")["distance"]
    doses_of = frame.drop_duplicates("task").set_index("task")["dose"]
    line = stats.linregress(doses_of[means.index].to_numpy(float), means.to_numpy(float))
    reach = stats.t.ppf(0.975, 4) * line.stderr
    expected = [line.slope, line.slope - reach, line.slope + reach]
    assert [found[name] for name in ("value", "low", "high")] == pytest.approx(expected)


def test_one_dose_is_no_response() -> None:
    assert checked(doses(0.3), "dose-response")["result"] == "lacks data"


def test_without_repeats_there_is_no_distance_and_no_response() -> None:
    samples = doses(0.1, 0.5, 0.9)
    found = checked(samples[samples["replicate"] == 0], "dose-response")
    assert found["result"] == "lacks data"
    assert found["needs"] == "at two doses, two judges with repeats"


def benchmark(right: float) -> pd.DataFrame:
    chances: Chances = {"1": right, "2": 1 - right}
    return draw_verdicts({"a": chances}, items=40, task_type="benchmark", truth=1)


@pytest.mark.parametrize(("right", "result"), [(0.9, "pass"), (0.2, "fail"), (0.6, "undecided")])
def test_a_benchmark_is_judged_by_its_interval(right: float, result: str) -> None:
    # Known answers of another type of task are known answers, too.
    for kind in ("benchmark", "ecc"):
        frame = benchmark(right).assign(task_type=kind)
        assert checked(frame, "external benchmark")["result"] == result


def test_a_gate_can_be_moved() -> None:
    assert checked(benchmark(0.9), "external benchmark", benchmark=0.99)["result"] == "fail"


def test_the_accuracy_on_pairs_is_that_of_the_judge_table() -> None:
    """A judge that names the response shown first is right in one of two orders."""
    rows = [
        {"evidence": pair, "flipped": flipped, "stages": str(1 + flipped), "truth": 1 + pair % 2}
        for pair in range(40)
        for flipped in (False, True)
    ]
    constants = {"judge.model": "x:a", "replicate": 0, "status": "scored", "n_stages": 3}
    frame = pd.DataFrame([row | constants for row in rows]).assign(pair=True, rubric_kind="nominal")
    found = checked(frame, "external benchmark")
    accuracy = judge_table(tidy(frame))["rows"][0]["truth"]
    assert accuracy is not None
    assert found["value"] == accuracy["value"] == 0.5
    assert (found["items"], found["note"]) == (40, "the weakest judge, x:a")


def test_an_unknown_gate_is_refused_with_the_choices() -> None:
    with pytest.raises(DesignError, match=r"unknown gate 'bench'.*benchmark"):
        Thresholds.of({"bench": 1})


def test_replicates_that_agree_are_consistent() -> None:
    same = control({"a": [0, 1, 0, 0]}, items=40)
    assert checked(same, "internal consistency")["result"] == "pass"
    found = checked(control({"a": ALIKE}, replicates=20, items=60), "internal consistency")
    assert found["result"] == "pass"
    # .1 of the verdicts lie one stage of three off the mean.
    assert found["low"] < 0.1 / 9 < found["high"]


def test_replicates_that_differ_are_not_consistent() -> None:
    torn = control({"a": [0.5, 0, 0, 0.5]})
    assert checked(torn, "internal consistency")["result"] == "fail"


def test_repeats_at_temperature_0_say_nothing_about_consistency() -> None:
    frame = control({"a": LEFT}, items=60).assign(**{"judge.temperature": 0.0})
    assert checked(frame, "internal consistency")["result"] == "lacks data"


def test_differing_rubrics_are_not_inconsistency() -> None:
    low, high = (
        draw_verdicts({"a": chances, "b": chances}, rubric=number, rubric_draw=number)
        for number, chances in enumerate(([1, 0, 0, 0], [0, 0, 0, 1]))
    )
    assert checked(pd.concat([low, high]), "internal consistency")["value"] == 0


def test_a_call_that_variants_share_counts_once_in_a_check() -> None:
    shown = control({"a": ALIKE, "b": ALIKE}, items=20)
    shown = shown.assign(call_id=range(len(shown)))
    asked, other = (shown.assign(**{"probe.context": context}) for context in ("fresh", "same"))
    apart = control({"a": LEFT, "b": RIGHT}, items=20, **{"presentation.first": "evidence"})
    apart = apart.assign(call_id=range(1000, 1000 + len(apart)), **{"probe.context": "fresh"})
    once = pd.concat([asked.assign(**{"presentation.first": "rubric"}), apart])
    twice = pd.concat([once, other.assign(**{"presentation.first": "rubric"})])
    name = "discriminant control"
    assert checked(twice, name)["value"] == pytest.approx(checked(once, name)["value"])
