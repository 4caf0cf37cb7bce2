"""Ranks of levels at matched design points, worked by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.stats.contrasts import RANKS, ranking
from judge_gym.errors import DesignError


def rows(judge: str, levels: dict[str, Any], stages: list[int], **columns: Any) -> pd.DataFrame:
    """One judge's samples under a design: a stage per item."""
    given = {"judge.model": judge, "replicate": 0, "status": "scored", "n_stages": 4, **columns}
    return pd.DataFrame({"stages": stages, "evidence": range(len(stages))}).assign(
        **given, **levels
    )


def samples(*parts: pd.DataFrame) -> pd.DataFrame:
    return tidy(pd.concat(parts, ignore_index=True))


def shares(table: pd.DataFrame, knob: str, level: str) -> dict[float, float]:
    part = table[(table["knob"] == knob) & (table["level"] == level)]
    return dict(zip(part["rank"], part["share"], strict=True))


SINGLE, SUBSET = {"verdict.method": "single"}, {"verdict.method": "subset"}


def test_levels_are_ranked_where_all_else_is_matched() -> None:
    table = ranking(
        samples(
            rows("sim:a", SINGLE, [1, 2]), rows("sim:a", SUBSET, [2, 2]),
            rows("sim:b", SINGLE, [4, 4]), rows("sim:b", SUBSET, [3, 4]),
            rows("sim:c", SINGLE, [2, 2]), rows("sim:c", SUBSET, [3, 3]),
        )
    )  # fmt: skip
    assert list(table.columns) == RANKS
    assert shares(table, "verdict.method", "subset") == pytest.approx({1.0: 2 / 3, 2.0: 1 / 3})
    assert shares(table, "verdict.method", "single") == pytest.approx({1.0: 1 / 3, 2.0: 2 / 3})
    part = table[table["level"] == "subset"]
    assert (part["points"] == 3).all() and part["mean_rank"].to_numpy() == pytest.approx(4 / 3)
    # Ranks 1, 2 and 1: the interval of one of three, between the ranks.
    exact = stats.binomtest(1, 3).proportion_ci()
    assert part[["low", "high"]].to_numpy()[0] == pytest.approx([1 + exact.low, 1 + exact.high])


def test_the_judge_is_an_axis_too() -> None:
    table = ranking(
        samples(
            rows("sim:a", SINGLE, [1, 2]), rows("sim:a", SUBSET, [2, 2]),
            rows("sim:b", SINGLE, [4, 4]), rows("sim:b", SUBSET, [1, 1]),
        )
    )  # fmt: skip
    assert shares(table, "judge.model", "sim:a") == {1.0: 0.5, 2.0: 0.5}


def test_equal_values_share_their_ranks() -> None:
    scales = [{"rubric.scale": scale} for scale in (4, 5, 7)]
    stages = [[1, 3], [3, 1], [4, 4]]
    table = ranking(samples(*(rows("sim:a", s, v) for s, v in zip(scales, stages, strict=True))))
    assert shares(table, "rubric.scale", "7") == {1.0: 1.0}
    assert shares(table, "rubric.scale", "4") == shares(table, "rubric.scale", "5") == {2.5: 1.0}
    assert table["low"].isna().all()  # one point tells nothing about others


def test_items_that_a_level_lacks_and_points_that_lack_a_level_are_left_out() -> None:
    missing = rows("sim:a", SUBSET, [1, 4]).assign(status=["scored", "abstained"], stages=["1", ""])
    table = ranking(
        samples(
            rows("sim:a", SINGLE, [2, 1]), missing,
            rows("sim:b", SINGLE, [2, 2]),
        )
    )  # fmt: skip
    methods = table[table["knob"] == "verdict.method"]
    assert (methods["points"] == 1).all()
    assert shares(table, "verdict.method", "single") == {1.0: 1.0}


def test_an_editor_that_a_raw_view_does_not_use_leaves_points_matched() -> None:
    neutral = {"evidence.view": "neutralized", "evidence.editor": "sim:editor"}
    raw = {"evidence.view": "raw", "evidence.editor": "openai:gpt-5.3"}
    table = ranking(samples(rows("sim:a", neutral, [1, 2]), rows("sim:a", raw, [3, 3])))
    assert set(table["knob"]) == {"evidence.view"}
    assert shares(table, "evidence.view", "raw") == {1.0: 1.0}


def test_tasks_and_series_are_points_of_their_own() -> None:
    parts = [
        rows("sim:a", levels, stages, concept=concept, series=series)
        for concept in ("x", "y")
        for series in ("first", "second")
        for levels, stages in ((SINGLE, [1, 1]), (SUBSET, [2, 3]))
    ]
    methods = ranking(samples(*parts)).query("knob == 'verdict.method'")
    assert (methods["points"] == 4).all() and (methods["share"] == 1).all()


def test_other_endpoints_rank_as_well_and_unknown_ones_are_refused() -> None:
    abstaining = rows("sim:a", SUBSET, [1, 1]).assign(
        status=["abstained", "scored"], stages=["", "1"]
    )
    frame = samples(rows("sim:a", SINGLE, [4, 4]), abstaining)
    assert shares(ranking(frame, "abstention"), "verdict.method", "subset") == {1.0: 1.0}
    with pytest.raises(DesignError, match="unknown endpoint 'speed'"):
        ranking(frame, "speed")


def test_a_single_design_has_nothing_to_rank() -> None:
    table = ranking(samples(rows("sim:a", SINGLE, [1, 2])))
    assert table.empty and list(table.columns) == RANKS


def test_shares_sum_to_one_and_ranks_to_their_triangle() -> None:
    rng = np.random.default_rng(0)
    parts = [
        rows(f"sim:{judge}", {"rubric.scale": scale}, rng.integers(1, 5, 6).tolist())
        for judge in range(7)
        for scale in (4, 5, 6)
    ]
    table = ranking(samples(*parts)).query("knob == 'rubric.scale'")
    assert table.groupby("level")["share"].sum().to_numpy() == pytest.approx(1.0)
    assert table.drop_duplicates("level")["mean_rank"].sum() == pytest.approx(6.0)
