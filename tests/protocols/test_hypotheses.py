"""The four hypotheses on panels whose truth is known."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.declared import contrast_tests, equivalence_p, one_sample, outcomes
from judge_gym.analysis.frames import tidy
from judge_gym.analysis.measures.polarization import polarization
from judge_gym.analysis.verdicts import Dataset
from judge_gym.protocols.hypotheses import (
    HYPOTHESES,
    contested_distance,
    hypotheses,
    overstated_agreement,
)
from judge_gym.studies import ContrastSpec, Declaration, Declarations
from verdict_frames import Chances, draw_verdicts

Judges = Mapping[str, Chances]
LEFT, RIGHT = [0.8, 0.2, 0, 0], [0, 0, 0.2, 0.8]
ALIKE = [0.25, 0.5, 0.25, 0]


def panel(contested: Judges, plain: Judges, seed: int = 0) -> pd.DataFrame:
    return tidy(
        pd.concat(
            [
                draw_verdicts(contested, seed=seed, task_type="ecc", concept="a"),
                draw_verdicts(plain, seed=seed + 1, first=100, task_type="control", concept="b"),
            ]
        )
    )


def row(frame: pd.DataFrame, name: str) -> pd.Series:
    found = hypotheses(frame)
    return found[found["hypothesis"].str[:2] == name].iloc[0]


def test_every_hypothesis_has_a_row() -> None:
    found = hypotheses(panel({"a": LEFT, "b": RIGHT}, {"a": ALIKE, "b": ALIKE}))
    assert [name[:2] for name in found["hypothesis"]] == ["H1", "H2", "H3", "H4"]
    assert len(HYPOTHESES) == len(found)


def test_judges_that_disagree_on_contested_concepts_only_support_h1() -> None:
    found = row(panel({"a": LEFT, "b": RIGHT}, {"a": ALIKE, "b": ALIKE}), "H1")
    assert found["outcome"] == "supported"
    # Of singletons the distance is half the squared Euclidean one: (.8 .2 .2 .8) gives .68.
    assert found["low"] < 0.68 < found["high"]
    assert found["items"] == 24


def test_own_rubrics_are_not_evidence_for_h1() -> None:
    frame = panel({"a": LEFT, "b": RIGHT}, {"a": ALIKE, "b": ALIKE})
    frame["rubric_author"] = frame["judge.model"]
    found = row(frame, "H1")
    assert found["outcome"] == "no data"
    assert "third party" in found["note"]
    assert np.isnan(found["value"])


def test_h1_lacks_data_where_no_two_judges_can_be_compared() -> None:
    frame = panel({"a": LEFT, "b": RIGHT}, {"a": ALIKE, "b": ALIKE})
    alone = frame["judge.model"] == "a"
    for kinds, rows in {
        "ecc or control": alone,
        "control": alone | (frame["task_type"] == "ecc"),
    }.items():
        found = row(frame[rows], "H1")
        assert found["outcome"] == "no data"
        assert found["note"] == f"no two judges scored an item of type {kinds} at least twice each"


def test_an_untested_hypothesis_counts_as_one_in_the_family() -> None:
    found = row(panel({"a": LEFT, "b": RIGHT}, {"a": ALIKE, "b": ALIKE}), "H1")
    assert found["holm"] == pytest.approx(4 * found["p"])


@pytest.mark.simulation
def test_false_positive_rate_of_h1() -> None:
    same = {"a": ALIKE, "b": ALIKE, "c": ALIKE}
    found = [contested_distance(panel(same, same, seed=2 * n)).p < 0.05 for n in range(50)]
    assert np.mean(found) <= 0.05 + 2.6 * np.sqrt(0.05 * 0.95 / 50)  # 99 % of Monte Carlo


def methods(single: Judges, subset: Judges) -> pd.DataFrame:
    knobs: list[dict[str, Any]] = [{"verdict.method": "single"}, {"verdict.method": "subset"}]
    parts = [
        draw_verdicts(chances, seed=number, items=40, replicates=8, **knob)
        for number, (chances, knob) in enumerate(zip((single, subset), knobs, strict=True))
    ]
    return tidy(pd.concat(parts))


def test_subsets_that_absorb_forced_choices_support_h4() -> None:
    forced = {"a": [0.5, 0.5, 0, 0], "b": [0, 0.5, 0.5, 0]}
    free = {"a": {"1 2": 1.0}, "b": {"1 2": 0.5, "2 3": 0.5}}
    found = row(methods(forced, free), "H4")
    # Single: (.25 + 0 + .25) / 2. Subset: half of 2 x .25 x (1 - 1/3).
    truth = 0.25 - 0.5**2 * (1 - 1 / 3)
    assert found["low"] < truth < found["high"]
    assert found["outcome"] == "supported"


def test_p_above_chance_is_noted_beside_h4() -> None:
    frame = methods({"a": [0.5, 0.5, 0, 0], "b": [0, 0.5, 0.5, 0]}, {"a": {"1": 1}, "b": {"1": 1}})
    note = row(frame, "H4")["note"]
    # Judges who always agree have no divergence, so the difference is that of single verdicts.
    apart = polarization(frame)
    above = float(apart.loc[apart["variant"] == "verdict.method=single", "above"].item())
    assert note.startswith(f"P above chance: {above:+.2f} [")


def test_a_probe_that_variants_share_counts_once_in_h2() -> None:
    said = probed(0.95, 0.95)
    said = said[~said["is_swap"]].assign(call_id=np.nan)
    said = said.assign(probe_call_id=np.arange(len(said)))
    unsure = said.assign(probe=0.2, probe_call_id=said["probe_call_id"] + len(said))
    critics = [("first", said), ("second", said), ("third", unsure)]
    frames = [part.assign(variant=name) for name, part in critics]
    thrice, twice = (pd.concat(some) for some in (frames, frames[1:]))
    expected = overstated_agreement(twice).estimate
    assert overstated_agreement(thrice).estimate[:4] == pytest.approx(expected[:4])


def test_the_other_direction_contradicts() -> None:
    found = row(methods({"a": ALIKE, "b": ALIKE}, {"a": {"1": 1.0}, "b": {"4": 1.0}}), "H4")
    assert found["high"] < 0
    assert found["outcome"] == "contradicted"


def probed(own: float, rival: float, noise: float = 0.05) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    parts = []
    for author, is_swap, mean in (("own", False, own), ("rival", True, rival)):
        part = draw_verdicts({"a": ALIKE, "b": ALIKE}, seed=9, is_swap=is_swap)
        rivals = {"a": "a", "b": "b"} if author == "own" else {"a": "b", "b": "a"}
        part["rubric_author"] = part["judge.model"].map(rivals)
        part["probe"] = (mean + noise * rng.standard_normal(len(part))).clip(0, 1)
        parts.append(part)
    return tidy(pd.concat(parts))


def test_confidence_that_drops_under_a_rivals_rubric_supports_h3() -> None:
    found = row(probed(0.8, 0.6), "H3")
    assert found["outcome"] == "supported"
    assert found["low"] < 0.2 < found["high"]


def test_overconfident_judges_support_h2() -> None:
    found = row(probed(0.95, 0.95), "H2")
    assert found["outcome"] == "supported"


def test_without_probes_h2_and_h3_lack_data() -> None:
    frame = panel({"a": LEFT, "b": RIGHT}, {"a": ALIKE, "b": ALIKE})
    for name in ("H2", "H3"):
        assert row(frame, name)["outcome"] == "no data"
        assert row(frame, name)["note"]


# --- what a result may claim ---------------------------------------------------------------------


def concepts(per_arm: int, spread: float, seed: int, lift: float = 0.0) -> pd.DataFrame:
    """Two judges who disagree on each concept by another amount, on average alike in both arms."""
    rng, parts = np.random.default_rng(seed), []
    for place in range(2 * per_arm):
        contested = place < per_arm
        apart = np.clip(0.3 + lift * contested + spread * rng.standard_normal(), 0, 1)
        chances = {"a": [0.5, 0.5, 0, 0], "b": [0.5 - apart / 2, 0.5 - apart / 2, apart, 0]}
        kind = "ecc" if contested else "control"
        parts.append(
            draw_verdicts(
                chances, seed=seed * 50 + place, first=100 * place, task_type=kind,
                concept=f"c{place}", items=6, replicates=3,
            )
        )  # fmt: skip
    return tidy(pd.concat(parts))


def test_h1_is_tested_over_concepts_where_there_are_enough_of_them() -> None:
    nulls = [contested_distance(concepts(4, 0.25, seed)) for seed in range(12)]
    assert all(one.note == "over 4 contested and 4 control concepts" for one in nulls)
    # Over items, a third of such nulls would be rejected.
    assert np.mean([one.p < 0.05 for one in nulls]) <= 0.09
    assert contested_distance(concepts(5, 0.02, 1, lift=0.5)).p < 0.05


def test_with_few_concepts_h1_claims_no_more_than_these() -> None:
    frame = concepts(3, 0.25, 0)
    found = contested_distance(frame)
    assert found.scope == "on these concepts, pools and rubrics"
    assert found.note == "3 contested and 3 control concepts"
    assert row(frame, "H1")["claim"].startswith("On these concepts, pools and rubrics, judges")


def test_a_small_effect_is_equivalent_only_within_a_declared_margin() -> None:
    same = {"a": ALIKE, "b": ALIKE}
    frame = methods(same, same)
    by_margin = {
        margin: hypotheses(frame, Declarations(margin=margin))["outcome"].iloc[3]
        for margin in (None, 0.001, 0.2)
    }
    assert by_margin == {None: "undecided", 0.001: "undecided", 0.2: "equivalent"}


def test_equivalence_is_tested_as_by_two_one_sided_t_tests() -> None:
    values = np.random.default_rng(2).normal(0.02, 0.1, 25)
    above = stats.ttest_1samp(values, -0.05, alternative="greater").pvalue
    below = stats.ttest_1samp(values, 0.05, alternative="less").pvalue
    found = equivalence_p(one_sample(values), 0.05)
    assert found == pytest.approx(max(above, below), rel=1e-6)
    far = stats.ttest_1samp(values, 0.005, alternative="less").pvalue
    assert equivalence_p(one_sample(values), 0.005) == pytest.approx(far, rel=1e-6)


def test_a_clear_effect_within_the_margin_is_negligible() -> None:
    frame = methods({"a": LEFT, "b": ALIKE}, {"a": ALIKE, "b": ALIKE})
    found = hypotheses(frame, Declarations(margin=0.9))
    assert found["outcome"].iloc[3] == "supported, negligible"


# --- declared contrasts --------------------------------------------------------------------------


def contrast(**given: Any) -> ContrastSpec:
    return ContrastSpec(**{"knob": "verdict.method", "level": "subset", "base": "single", **given})


def test_a_declared_contrast_is_one_paired_test_over_all_judges_and_tasks() -> None:
    """Subsets of these judges name stage 1 too, so that their mean stage is lower."""
    low, high = {"1 2": 1.0}, {"2": 0.9, "3": 0.1}
    frame = methods({"a": high, "b": high}, {"a": low, "b": low})
    declared = [contrast(), contrast(expect="lower"), contrast(expect="higher")]
    missing = [contrast(level="single", base="json")]
    found = outcomes(contrast_tests(Dataset(frame), [*declared, *missing])).set_index("claim")
    stages = frame["stages"].map({"1 2": 1 / 6, "2": 1 / 3, "3": 2 / 3})
    means = stages.groupby([frame["verdict.method"], frame["evidence"]]).mean()
    gaps = np.subtract(*(means.unstack(level=0)[name].to_numpy() for name in ("subset", "single")))
    assert found["value"].iloc[0] == pytest.approx(gaps.mean())
    assert found["value"].iloc[1] == pytest.approx(-gaps.mean())
    assert found["p"].iloc[0] == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue, rel=1e-6)
    assert found["holm"].iloc[0] == pytest.approx(4 * found["p"].iloc[0])
    assert found["outcome"].tolist() == ["supported", "supported", "contradicted", "no data"]
    assert found["note"].iloc[0] == "mean over 2 judges"
    assert found.index[1] == "verdict.method subset is lower than single in stage."


def test_judges_and_any_two_levels_can_be_contrasted() -> None:
    frame = methods({"a": [1, 0, 0, 0], "b": [0, 0, 1, 0]}, {"a": [0, 1, 0, 0], "b": [0, 0, 0, 1]})
    tests = contrast_tests(
        Dataset(frame),
        [
            contrast(knob="judge.model", level="b", base="a", expect="higher"),
            contrast(level="single", base="subset"),
        ],
    )
    values = [test.result.estimate.value for test in tests]
    assert values == pytest.approx([2 / 3, -1 / 3])


def test_a_declaration_says_how_many_answers_there_were() -> None:
    spec = contrast()
    declared = Declarations(
        contrasts=(spec,),
        hypotheses=("H4",),
        declared=(Declaration("H4", 0, 90), Declaration(spec.name, 30, 90)),
    )
    same = {"a": ALIKE, "b": ALIKE}
    found = hypotheses(methods(same, same), declared)
    assert found["hypothesis"].str[:2].tolist() == ["H4", "ve"]
    assert found["declared"].tolist() == ["before the first answer", "after 30 of 90 answers"]
    assert set(hypotheses(methods(same, same))["declared"]) == {"unknown"}
