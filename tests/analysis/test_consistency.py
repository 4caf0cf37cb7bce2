"""How steady judges are: against krippendorff, analysis of variance and simulated components."""

from typing import Any

import krippendorff
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.measures.consistency import conflicting_cells, consistency
from panel_frames import JUDGE, samples, simulated


def judge(found: pd.DataFrame, name: str = "a") -> Any:
    return found[found[JUDGE] == name].iloc[0]


def components(
    items: int, rng: np.random.Generator, *, display: float, series: tuple[str, ...]
) -> pd.DataFrame:
    """A scale of 26, on which each display and each sample moves the stage by a step of its own."""
    rows = []
    for item in range(items):
        for replicate in range(6):
            moved = display * rng.choice([-1, 1])
            for one in series:
                stage = int(13 + moved + rng.choice([-2, 2]))
                shown = {"display": f"A={replicate + 1}", "series": one, "replicate": replicate}
                rows.append({"evidence": item, "stages": str(stage), **shown})
    return samples(*rows, n_stages=26)


def test_two_series_split_display_from_sampling() -> None:
    found = judge(
        consistency(components(60, np.random.default_rng(1), display=3, series=("x", "y")))
    )
    for name, variance in (("sampling", 4), ("display", 9), ("jitter", 13)):
        truth = variance / 25**2
        assert found[f"{name}_low"] <= truth <= found[f"{name}_high"], name
    assert found["jitter"] == pytest.approx(found["sampling"] + found["display"])


def test_one_series_gives_only_the_total_variance() -> None:
    found = judge(consistency(components(20, np.random.default_rng(2), display=3, series=("x",))))
    assert found["jitter"] > 0
    parts = [f"{name}{end}" for name in ("display", "sampling") for end in ("", "_low", "_high")]
    assert found[parts].isna().all()


def test_with_one_display_all_variance_is_sampling() -> None:
    rows = [
        {"evidence": item, "stages": stage, "display": "A=1 B=2 C=3 D=4"}
        for item, stages in enumerate(["1123", "2224", "1111"])
        for stage in stages
    ]
    found = judge(consistency(samples(*rows)))
    places = [np.array([float(s) - 1 for s in stages]) / 3 for stages in ("1123", "2224", "1111")]
    expected = np.mean([np.var(one, ddof=1) for one in places])
    assert found["sampling"] == found["jitter"] == pytest.approx(expected)
    unknown = samples(*({**row, "display": ""} for row in rows))
    assert np.isnan(judge(consistency(unknown))["sampling"]), "what was shown is not known"


def test_alpha_is_krippendorffs_with_replicates_as_raters() -> None:
    rng = np.random.default_rng(3)
    table = rng.integers(1, 5, (20, 5))
    rows = [
        {"evidence": item, "stages": str(stage)}
        for item, stages in enumerate(table.tolist())
        for stage in stages[: 5 - item % 2]
    ]
    table = table.astype(float)
    table[1::2, 4] = np.nan
    for kind, level in (("ordinal", "ordinal"), ("nominal", "nominal")):
        found = judge(consistency(samples(*rows, rubric_kind=kind)))
        expected = krippendorff.alpha(table.T, level_of_measurement=level)  # type: ignore[arg-type]
        assert found["alpha"] == pytest.approx(expected)
        assert found["alpha_low"] < expected < found["alpha_high"]


def test_the_icc_is_that_of_one_way_analysis_of_variance() -> None:
    rng = np.random.default_rng(4)
    table = np.clip(rng.normal(13, 4, (10, 1)) + rng.normal(0, 2, (10, 5)), 1, 26).round()
    rows = [
        {"evidence": item, "stages": str(int(stage))}
        for item, stages in enumerate(table)
        for stage in stages
    ]
    found = judge(consistency(samples(*rows, n_stages=26)))
    f = stats.f_oneway(*table).statistic
    assert found["icc"] == pytest.approx((f - 1) / (f + 4))


def test_alpha_and_icc_have_an_interval_from_20_items_on_if_no_stage_is_rare() -> None:
    rng = np.random.default_rng(5)
    view = np.arange(20) % 4 + 1
    table = np.clip(view[:, None] + rng.integers(-1, 2, (20, 4)), 1, 4)

    def known(table: npt.NDArray[np.int64]) -> list[bool]:
        rows = [
            {"evidence": item, "stages": str(stage)}
            for item, stages in enumerate(table)
            for stage in stages
        ]
        found = judge(consistency(samples(*rows)))
        assert found[["alpha", "icc"]].notna().all()
        return [
            bool(pd.notna(found[name]))
            for name in ("alpha_low", "icc_low", "alpha_high", "icc_high")
        ]

    assert known(table) == [True] * 4
    assert known(table[:19]) == [False] * 4
    rare = np.where(table == 4, 3, table)
    rare[0] = 4
    assert known(rare) == [False] * 4


def test_a_constant_judge_has_undefined_agreement() -> None:
    made = samples(*({"evidence": item, "stages": "2"} for item in (1, 1, 2, 2)))
    found = judge(consistency(made))
    assert found["jitter"] == 0
    assert found[["alpha", "icc"]].isna().all()
    assert found["jitter_high"] > 0.4, "two items leave its jitter open"


def test_a_judge_without_a_score_is_undefined() -> None:
    made = samples({"stages": "1"}, {"stages": "2"}, {JUDGE: "b"})
    found = judge(consistency(made), "b")
    assert found[["jitter", "alpha", "icc"]].isna().all()
    assert found[["items", "effective_n", "flagged"]].tolist() == [0, 0, 0]


def test_replicates_that_conflict_strongly_are_flagged() -> None:
    made = samples(
        *({"evidence": 1, "stages": stage} for stage in ("1", "4", "2")),
        *({"evidence": 2, "stages": stage} for stage in ("1 2", "2", "2 3")),
        *({"evidence": 3, "stages": stage} for stage in ("1", "1", "1", "2")),
        *({"evidence": 4, "stages": stage} for stage in ("1", "2")),
    )
    found = conflicting_cells(made)
    assert found["evidence"].tolist() == [1, 4, 3]
    assert found["conflict"].tolist() == pytest.approx([1, 1, 0.5])
    assert found["effective_n"].tolist() == [3, 2, 4]
    assert judge(consistency(made))["flagged"] == 3


def test_all_judges_together_are_the_mean_item_by_item() -> None:
    rng = np.random.default_rng(5)
    found = consistency(simulated(rng.dirichlet(np.ones(4), (1, 9, 3)), 4, rng))
    each, together = found[found[JUDGE] != "all"], judge(found, "all")
    for name in ("jitter", "alpha", "icc"):
        assert together[name] == pytest.approx(each[name].mean())
    assert together["effective_n"] == each["effective_n"].sum()
