"""Gates of calibrate that pass on the analysis as it is, and fail on a fault of `mutants.toml`."""

import pytest

from simulations import FAST, FULL, calibrate

PROFILES = {"fast": FAST, "full": FULL}
GATES = {
    "jitter": "jitter (independent items, 12",
    "contrast": "bias of a judge (independent items, 12",
    "stage": "expected stage (independent items, 12",
    "flip": "flipped signs, one much biased down (independent items, 12",
    "bounds": "bounds of the expected stage (silent at a stage, 30",
    "pairs": "pairs: accuracy (judged pairs, 30",
    "prevalence": "prevalence (labels",
    "position": "position bias (independent items, 12",
    "draws": "bias of a judge, drawn rubrics (drawn rubrics, 30",
    "clusters": "expected stage (8 clusters",
    "gap": "uncertainty gap (independent items, 12",
    "labels": "people's mean, a third labelled (labels of people, 30",
    "subsets": "large distance of subsets (independent items, 30",
    "rates": "abstention rate (independent items, 60",
    "concepts": "H1, 5 concepts per arm, no effect",
    "quality": "rubric quality, irrelevant",
    "alike": "H2: stated minus warranted agreement (near-constant",
}
FAST_IS_ENOUGH = tuple(GATES)[:9]


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("profile", "gate"),
    [
        pytest.param(profile, gate, id=f"{profile}-{gate}")
        for gate in GATES
        for profile in (["fast"] if gate in FAST_IS_ENOUGH else ["full"])
    ],
)
def test_honest_analysis_passes(profile: str, gate: str) -> None:
    assert calibrate(PROFILES[profile], only=GATES[gate]).failed == []
