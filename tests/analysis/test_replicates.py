"""Replicates that repeat each other count as one; neighbours are compared with shuffled ones."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.endpoints import cell_endpoints
from judge_gym.analysis.frames import tidy
from judge_gym.analysis.measures.consistency import (
    ALIKE,
    COLD,
    REPEATED_TEXTS,
    consistency,
    independence,
)
from judge_gym.analysis.measures.polarization import pairwise, polarization
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.protocols.conflict import conflict

JUDGE = "judge.model"


def repeated(
    copies: bool, *, items: int = 12, series: tuple[str, ...] = ("1",), **columns: Any
) -> pd.DataFrame:
    """Raw samples of two equal judges, each with four replicates of an item.

    Copies have the verdict and the text of the first; else each is drawn and worded anew.
    """
    rng, rows = seeded("repeated", copies, items), []
    for name in series:
        for judge in ("openai:a", "openai:b"):
            for item in range(items):
                stages = rng.integers(1, 5, 4)
                for replicate in range(4):
                    stage = stages[0] if copies else stages[replicate]
                    text = f"{name} {judge} {item} {0 if copies else replicate}"
                    rows.append((judge, item, replicate, str(stage), text, name))
    names = [JUDGE, "evidence", "replicate", "stages", "answer", "series"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(status="scored", n_stages=4, call_id=np.arange(len(frame)), **columns)


COLUMNS = ["p_value", "above", "low", "distance"]


def test_copies_are_no_evidence_that_equal_judges_differ() -> None:
    naive = polarization(tidy(repeated(True).drop(columns="answer")))
    assert naive["p_value"][0] < 0.01, "the fault: copies taken for independent verdicts"
    frame = tidy(repeated(True))
    assert frame["repeats"].all()
    found = polarization(frame)
    assert found[COLUMNS].isna().all(axis=None)
    assert found["replicates"][0] == 1 and found["p"][0] == pytest.approx(naive["p"][0])
    assert pairwise(frame)[COLUMNS].isna().all(axis=None)
    assert conflict(frame)["excess"].isna().all()
    assert cell_endpoints(frame)[["jitter", "entropy", "entropy_all"]].isna().all(axis=None)
    assert cell_endpoints(frame)["stage"].notna().all()
    assert consistency(frame)[["jitter", "sampling", "alpha", "icc"]].isna().all(axis=None)
    assert independence(frame)["note"].tolist() == [REPEATED_TEXTS] * 2
    assert independence(frame)["identical"].tolist() == [1, 1]


def test_a_retest_series_is_the_null_where_replicates_are_copies() -> None:
    frame = tidy(repeated(True, series=("1", "2"), display="A=1 B=2 C=3 D=4"))
    [found] = polarization(frame).to_dict("records")
    assert found["variant"] == "base" and found["replicates"] == 2
    assert found["p_value"] > 0.05 and found["low"] < 0 < found["high"]
    assert np.isfinite(found["distance"])
    table = consistency(frame)
    assert table["jitter"].isna().all() and table["sampling"].notna().all()


def test_verdicts_drawn_anew_are_compared_as_before() -> None:
    frame = tidy(repeated(False))
    assert not frame["repeats"].any()
    plain = tidy(repeated(False).drop(columns="answer"))
    pd.testing.assert_frame_equal(polarization(frame), polarization(plain))
    found = independence(frame)
    assert (found["identical"] == 0).all() and (found["note"] == "").all()
    assert (found["holm"] > 0.05).all()


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        ({"judge.temperature": 0.0}, COLD),
        ({"reported_model": "sim:a"}, ""),  # worded by a template
        ({"replicate": 0}, None),  # nothing is repeated
    ],
)
def test_what_makes_replicates_repeat_each_other(columns: dict[str, Any], note: str | None) -> None:
    samples = repeated("reported_model" in columns).assign(**columns)
    if "replicate" in columns:
        samples = samples.drop_duplicates([JUDGE, "evidence"])
    frame = tidy(samples)
    assert frame["repeats"].all() == (note == COLD) == frame["repeats"].any()
    assert independence(frame)["note"].tolist() == ([] if note is None else [note] * 2)


def test_half_of_the_pairs_with_the_same_text_are_not_enough() -> None:
    samples = repeated(False)
    pairs = samples["replicate"].map({0: "x", 1: "x", 2: "x", 3: "y"})  # three of six pairs
    assert not tidy(samples.assign(answer=pairs))["repeats"].any()
    all_but_one = samples["answer"].where((samples["evidence"] == 0) & (samples["replicate"] == 3))
    assert tidy(samples.assign(answer=all_but_one.fillna(pairs).replace("y", "x")))["repeats"].all()


def test_neighbours_that_agree_more_than_shuffled_replicates_are_warned_of() -> None:
    samples = repeated(False, items=40)
    sticky = samples[JUDGE] == "openai:a"
    halves = samples["evidence"] % 3 + (samples["replicate"] >= 2)  # two by two
    samples["stages"] = halves.add(1).astype(str).where(sticky, samples["stages"])
    found = independence(tidy(samples)).set_index(JUDGE)
    assert found["note"].to_dict() == {"openai:a": ALIKE, "openai:b": ""}
    brief = independence(tidy(samples), notes_only=True).set_index(JUDGE)
    assert brief["note"].to_dict() == found["note"].to_dict()
    assert brief.loc["openai:a", "p"] == found.loc["openai:a", "p"]
    assert brief.loc["openai:b", "p"] >= 0.05 <= found.loc["openai:b", "p"]
    a = found.loc["openai:a"]
    assert a["neighbours"] == pytest.approx(2 / 3) and a["shuffled"] == pytest.approx(
        1 / 3, abs=0.05
    )
