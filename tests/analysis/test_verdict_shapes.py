"""The shape of verdicts and where they stood on the display, against plain readings."""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.measures.verdict_shapes import display_bias, shapes, verdict_shapes
from judge_gym.analysis.report.biases import biases
from judge_gym.analysis.report.page import ReportInput
from judge_gym.analysis.stats.intervals import SHARE, UNBOUNDED, estimate
from judge_gym.analysis.verdicts import Dataset
from panel_frames import JUDGE, samples


def plain_shape(chosen: tuple[int, ...], n: int) -> str:
    if len(chosen) == 1:
        return "singleton"
    if len(chosen) == n or (len(chosen) > 2 and len(chosen) > n / 2):
        return "broad"
    gap = max(chosen) - min(chosen) + 1 > len(chosen)
    return "non_adjacent" if gap else "adjacent"


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
def test_every_set_has_the_expected_shape(n: int) -> None:
    sets = [one for size in range(1, n + 1) for one in combinations(range(1, n + 1), size)]
    made = samples(*({"stages": " ".join(map(str, one))} for one in sets), n_stages=n)
    assert shapes(made).tolist() == [plain_shape(one, n) for one in sets]


def test_nominal_options_are_never_adjacent() -> None:
    made = samples(
        {"stages": "1 2"}, {"stages": "1 2 3 4"}, {}, {"status": "refused"}, rubric_kind="nominal"
    )
    assert shapes(made).tolist() == ["several", "broad", "abstain", ""]


def test_shares_are_of_what_was_read_and_confidence_is_the_probe() -> None:
    made = samples(
        {"evidence": 1, "stages": "1", "probe": 0.9},
        {"evidence": 1, "stages": "1 2", "probe": 0.5},
        {"evidence": 1, "status": "truncated"},
        {"evidence": 2, "stages": "1 2", "probe": 0.3},
        {"evidence": 2, "stages": "2 3", "probe": 0.5},
        {"evidence": 2},
        {"evidence": 3, "stages": "4"},
    )
    found: Any = verdict_shapes(made).set_index("shape")
    row = found.loc["adjacent"]
    assert row[["mean", "low", "high", "items"]].tolist() == pytest.approx(
        estimate([0.5, 2 / 3, 0], scale=SHARE)[:4]
    )
    assert row[["n", "probed"]].tolist() == [3, 3]
    assert row["confidence"] == pytest.approx((0.5 + 0.4) / 2)
    assert found.loc["singleton", ["n", "probed"]].tolist() == [2, 1]
    assert np.isnan(found.loc["abstain", "confidence"]), "abstentions are not probed"


# --- position and label --------------------------------------------------------------------------


def test_bias_by_hand() -> None:
    made = samples(
        {"evidence": 1, "stages": "2", "display": "B=2 A=1"},
        {"evidence": 1, "stages": "1", "display": "A=1 B=2"},
        {"evidence": 2, "stages": "1 2", "display": "A=2 B=1"},
        {"evidence": 2, "stages": "1", "display": "A=2 B=1"},
        n_stages=2,
    )
    found: Any = display_bias(made).set_index(["kind", "place"])
    # Item 1 is always decided for the first; item 2 gives it a quarter.
    first = estimate([0.5, -0.25], scale=UNBOUNDED).clipped(-1, 1)
    row = found.loc[("position", "1")]
    assert row[["mean", "low", "high", "items"]].tolist() == pytest.approx(list(first[:4]))
    assert found.loc[("position", "2"), "mean"] == pytest.approx(-first.value)
    # Labels: item 1 takes A once and B once; of item 2, A has a quarter.
    assert found.loc[("label", "A"), "mean"] == pytest.approx((0 - 0.25) / 2)
    assert found["shuffled"].all()


def test_a_fixed_display_is_not_marked_as_shuffled() -> None:
    fixed = [{"evidence": item, "stages": "1", "display": "A=1 B=2"} for item in (1, 2)]
    assert not display_bias(samples(*fixed, n_stages=2))["shuffled"].any()
    moved = [{"stages": "1", "display": text} for text in ("A=1 B=2", "B=2 A=1")]
    found = display_bias(samples(*moved, n_stages=2)).groupby("kind")["shuffled"].all()
    assert found.to_dict() == {"label": False, "position": True}


def test_samples_without_a_display_or_a_score_are_left_out() -> None:
    assert display_bias(samples({"stages": "1"}, {"display": "A=1 B=2"})).empty


def shuffled(n: int, rng: np.random.Generator, leaning: float) -> pd.DataFrame:
    """A judge that takes the first position that often, and otherwise any stage."""
    rows = []
    for item in range(n):
        for _ in range(4):
            stages, labels = rng.permutation(4) + 1, rng.permutation(list("ABCD"))
            chosen = stages[0] if rng.random() < leaning else rng.integers(1, 5)
            display = " ".join(f"{a}={b}" for a, b in zip(labels, stages, strict=True))
            rows.append({"evidence": item, "stages": str(chosen), "display": display})
    return samples(*rows)


def test_an_injected_bias_is_found_where_it_is_and_nowhere_else() -> None:
    biases = display_bias(shuffled(300, np.random.default_rng(1), 0.3))
    found: Any = biases.set_index(["kind", "place"])
    # 0.3 of verdicts go to the first; each position has a quarter of the rest.
    expected = {("position", "1"): 0.3 * 0.75} | {
        ("position", str(place)): -0.3 * 0.25 for place in (2, 3, 4)
    }
    for place, bias in expected.items():
        assert found.loc[place, "low"] <= bias <= found.loc[place, "high"]
    labels = found.loc["label"]
    assert ((labels["low"] <= 0) & (labels["high"] >= 0)).sum() >= 3
    assert found.groupby("kind")["mean"].sum().tolist() == pytest.approx([0, 0], abs=1e-9)


def test_the_largest_of_many_preferences_is_clear_only_if_its_interval_is_wide_enough() -> None:
    rng = np.random.default_rng(3)
    judges = [shuffled(20, rng, 0.0).assign(**{JUDGE: name}) for name in "abcdef"]
    plain = display_bias(pd.concat(judges, ignore_index=True))
    assert ((plain["low"] > 0) | (plain["high"] < 0)).any(), "one of 48 looks clear by itself"

    def lead(frame: pd.DataFrame) -> str:
        section = biases(ReportInput(Dataset(frame)))
        assert section is not None
        return section.lead

    assert lead(pd.concat(judges, ignore_index=True)) == "No setup has a clear bias."
    leaning = shuffled(40, rng, 0.6).assign(**{JUDGE: "g"})
    assert lead(pd.concat([*judges, leaning], ignore_index=True)).startswith("Clear, 1 of 14: g,")


def test_judges_and_swaps_are_separate() -> None:
    made = samples(
        {"stages": "1", "display": "A=1 B=2"},
        {"stages": "2", "display": "A=1 B=2", "is_swap": True},
        {"stages": "2", "display": "A=1 B=2", JUDGE: "b"},
        n_stages=2,
    )
    found: Any = display_bias(made).set_index([JUDGE, "kind", "place"])["mean"]
    assert found[("a", "position", "1")] == 0.5
    assert found[("b", "position", "1")] == -0.5
