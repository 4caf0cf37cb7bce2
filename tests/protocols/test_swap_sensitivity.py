"""Own and rivals' rubrics, paired by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.measures import panel_table
from judge_gym.analysis.stats.intervals import UNBOUNDED, estimate
from judge_gym.protocols.swap_sensitivity import SWAP_SENSITIVITY, swap_pairs, swap_sensitivity
from panel_frames import JUDGE, samples


def probed(
    author: str, item: int, replicate: int, probe: float | None, **more: Any
) -> dict[str, Any]:
    """A verdict of judge a under a rubric by the author."""
    row = {"evidence": item, "replicate": replicate, "stages": "1", "probe": probe}
    return {**row, "rubric_author": author, "is_swap": author != "a", **more}


PANEL = [
    *[
        probed("a", 1, 0, 0.9),
        probed("a", 1, 1, 0.8),
        probed("a", 2, 0, 0.7),
        probed("a", 3, 0, 0.6),
    ],
    *[probed("b", 1, 0, 0.5), probed("b", 1, 1, 0.6), probed("b", 2, 0, 0.6)],
    probed("b", 2, 1, 0.1),  # no partner: the own side was never asked
    probed("b", 3, 0, None),  # not probed
    *[probed("third", 1, 0, 0.85), probed("third", 2, 0, 0.7)],
    {JUDGE: "b", "stages": "1", "rubric_author": "b", "probe": 0.5},
]


def test_the_difference_is_paired_by_evidence_and_replicate() -> None:
    found: Any = swap_sensitivity(samples(*PANEL)).set_index("rubric_author")
    row = found.loc["b"]
    expected = estimate([(0.4 + 0.2) / 2, 0.1], scale=UNBOUNDED).clipped(-1, 1)
    assert row[["mean", "low", "high", "items"]].tolist() == pytest.approx(list(expected[:4]))
    assert row[["pairs", "unpaired"]].tolist() == [3, 1]
    assert row["own"] - row["other"] == pytest.approx(row["mean"])


def test_a_third_party_is_the_control() -> None:
    found: Any = swap_sensitivity(samples(*PANEL)).set_index("rubric_author")
    assert found["role"].to_dict() == {"b": "rival", "third": "third party"}
    assert found.loc["third", "mean"] == pytest.approx((0.05 + 0) / 2)
    table: Any = panel_table(samples(*PANEL), [SWAP_SENSITIVITY]).set_index("metric")
    assert table.loc["swap_sensitivity", "value"] == pytest.approx(found.loc["b", "mean"])
    assert table.loc["swap_sensitivity", "note"] == (
        "own minus rival rubric, 5 pairs; own minus a third party's 0.025"
    )


@pytest.mark.parametrize(
    "other", [{"n_stages": 5, "rubric": 9}, {"series": "retest"}, {"flipped": True}]
)
def test_another_scale_series_or_order_is_not_paired(other: dict[str, Any]) -> None:
    shared = {"series": "first", "flipped": False}
    made = samples(probed("a", 1, 0, 0.9, **shared), probed("b", 1, 0, 0.5, **shared | other))
    # What tells variants apart must not hide it: all are of one variant.
    assert swap_pairs(made.assign(variant="base")).empty


def test_without_swaps_the_table_is_empty() -> None:
    made = samples(probed("a", 1, 0, 0.9))
    assert swap_sensitivity(made).empty
    table: Any = panel_table(made, [SWAP_SENSITIVITY]).set_index("metric")
    assert np.isnan(table.loc["swap_sensitivity", "value"])


def test_a_shared_call_is_one_pair() -> None:
    made = samples(probed("a", 1, 0, 0.9), probed("b", 1, 0, 0.5))
    twice = pd.concat([made, made], ignore_index=True)
    assert len(swap_pairs(twice)) == 1


@pytest.mark.slow
def test_intervals_of_a_judge_without_preference_cover_0() -> None:
    rng = np.random.default_rng(1)
    panels, items = 300, 12
    rows = []
    level = rng.normal(0.5, 0.1, (panels, items))  # items differ, and pairing takes it out
    for author in "ab":
        stated = level[..., None] + rng.normal(0, 0.1, (panels, items, 3))
        panel, item, replicate = (axis.ravel() for axis in np.indices(stated.shape))
        rows.append(
            pd.DataFrame(
                {
                    "task": panel,
                    "variant": "base",
                    JUDGE: "a",
                    "evidence": item,
                    "cluster": "",
                    "replicate": replicate,
                    "series": "",
                    "flipped": False,
                    "n_stages": 4,
                    "rubric_draw": 0,
                    "rubric_author": author,
                    "is_swap": author != "a",
                    "probe": stated.ravel(),
                    "probe_call_id": np.nan,
                }
            )
        )
    found = swap_sensitivity(pd.concat(rows, ignore_index=True))
    covered = ((found["low"] <= 0) & (found["high"] >= 0)).mean()
    error = 2.58 * np.sqrt(0.05 * 0.95 / panels)
    assert 0.92 - error <= covered <= 0.97 + error
