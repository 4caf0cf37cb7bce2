"""One frame, whoever wrote it: every column, in one type, checked."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.analysis.frames import (
    CELL,
    JUDGE,
    NEEDED,
    level_name,
    once_per_call,
    ordinal,
    tidy,
    varied_knobs,
)
from judge_gym.errors import DesignError
from judge_gym.records import STATUSES
from tables import each_row

PLAIN = {
    JUDGE: ["a", "a", "b", "b"],
    "evidence": ["x", "y", "x", "y"],
    "replicate": [0, 0, 0, 0],
    "status": ["scored", "scored", "abstained", "scored"],
    "stages": ["1", "2 3", "", "4"],
    "n_stages": [4, 4, 4, 4],
}


def samples(**columns: Any) -> pd.DataFrame:
    """Four samples; `__` stands for a knob's dot."""
    given = {name.replace("__", "."): values for name, values in columns.items()}
    return pd.DataFrame({**PLAIN, **given})


# --- what is added -------------------------------------------------------------------------------


def test_six_columns_are_enough() -> None:
    frame = tidy(samples())
    assert list(PLAIN) == list(NEEDED)
    assert frame["mask"].tolist() == [0b0001, 0b0110, 0, 0b1000]
    assert set(frame["task"]) == {"all"} and set(frame["variant"]) == {"base"}
    assert frame["evidence_title"].tolist() == ["x", "y", "x", "y"]
    assert frame["reported_model"].tolist() == ["a", "a", "b", "b"]
    assert not frame[["pair", "flipped", "is_swap"]].any(axis=None)
    unknown = ["dose", "truth", "reference", "probe", "probe_status", "call_id", "usd"]
    assert frame[unknown].isna().all(axis=None)
    assert set(frame["rubric_kind"]) == {"ordinal"}
    assert set(frame["rubric_author"]) == set(frame["rubric.author"]) == {"provided"}
    assert set(frame["series"]) == {""} and set(frame["rubric"]) == {0}


def test_other_columns_are_kept_and_the_given_frame_is_left_alone() -> None:
    mine = samples(note=["p", "q", "r", "s"])
    before = mine.copy(deep=True)
    assert tidy(mine)["note"].tolist() == ["p", "q", "r", "s"]
    pd.testing.assert_frame_equal(mine, before)


def test_rows_keep_their_order_whatever_the_index() -> None:
    frame = tidy(samples().set_index(pd.Index([7, 7, 2, 2])))
    assert frame.index.tolist() == [0, 1, 2, 3]
    pd.testing.assert_frame_equal(frame, tidy(samples()))


@pytest.mark.parametrize("name", ["variant", "tag"])
def test_what_tells_rows_of_a_judge_apart_is_a_setting_and_no_repeat(name: str) -> None:
    mine = samples(judge__model="a", evidence=["x", "x", "y", "y"], **{name: ["old", "new"] * 2})
    frame = tidy(mine)
    assert set(frame["variant"]) == {f"foreign.{name}=old", f"foreign.{name}=new"}
    pd.testing.assert_frame_equal(tidy(frame), frame)
    by_judge = tidy(samples(**{name: ["of a", "of a", "of b", "of b"]}))
    assert set(by_judge["variant"]) == {"base"}, "judges differ already"


def test_tidy_twice_is_tidy_once() -> None:
    frame = tidy(samples(verdict__method=["single", "subset"] * 2, truth=[1, "Low", None, 3]))
    pd.testing.assert_frame_equal(tidy(frame), frame)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.integers(2, 26).flatmap(
                lambda scale: st.tuples(st.just(scale), st.sets(st.integers(1, scale), min_size=1))
            ),
            st.sampled_from(STATUSES),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_a_mask_has_the_bits_of_the_stages_that_were_scored(
    verdicts: list[tuple[tuple[int, set[int]], str]],
) -> None:
    frame = tidy(
        pd.DataFrame(
            {
                JUDGE: "a",
                "evidence": 1,
                "replicate": range(len(verdicts)),
                "status": [status for _, status in verdicts],
                "stages": [
                    " ".join(map(str, chosen)) if status == "scored" else ""
                    for (_, chosen), status in verdicts
                ],
                "n_stages": [scale for (scale, _), _ in verdicts],
                "rubric": [scale for (scale, _), _ in verdicts],
            }
        )
    )
    plain = [
        sum(2 ** (stage - 1) for stage in chosen) if status == "scored" else 0
        for (_, chosen), status in verdicts
    ]
    assert frame["mask"].tolist() == plain


@pytest.mark.parametrize("stages", [[1, 2, None, 4], [1.0, 2.0, np.nan, 4.0]])
def test_a_column_of_single_stages_may_be_numbers(stages: list[Any]) -> None:
    frame = tidy(samples(stages=stages))
    assert frame["mask"].tolist() == [1, 2, 0, 8]
    assert frame["stages"].tolist() == ["1", "2", "", "4"]


# --- one type per column -------------------------------------------------------------------------

WHOLE = samples(
    tag=["t", "t", "u", "u"],
    concept=["fascism"] * 4,
    country=["", "", "Valdoria", "Valdoria"],
    series=["3", "3", "4", "4"],
    evidence_title=["X", "Y", "X", "Y"],
    reported_model=["a-1", "a-1", None, "b-1"],
    probe_status=["scored", None, None, "refused"],
    verdict__method=["single", "subset", "single", "subset"],
    prompt__slots__scorer__language=["", "", "plain", ""],
    rubric_kind=["ordinal"] * 4,
)
TEXTS = [name for name in WHOLE if name not in ("replicate", "n_stages")]


@pytest.mark.parametrize("kind", ["category", "string", object])
def test_texts_may_be_stored_in_any_way(kind: Any) -> None:
    stored = WHOLE.astype({name: kind for name in TEXTS})
    pd.testing.assert_frame_equal(tidy(stored), tidy(WHOLE))


def test_texts_are_text_and_knobs_are_sorted_categories() -> None:
    frame = tidy(WHOLE)
    texts = ["tag", "series", "status", "stages", "concept", "evidence_title", "display", *CELL]
    assert {str(frame[name].dtype) for name in texts} == {"str"}
    for name in ("verdict.method", "prompt.slots.scorer.language", "rubric.author"):
        assert frame[name].dtype == "category"
        assert list(frame[name].cat.categories) == sorted(set(frame[name]))


@pytest.mark.parametrize(
    ("series", "read"),
    [([3, 3, 4, 4], ["3", "3", "4", "4"]), ([3, 3, np.nan, 4], ["3", "3", "", "4"])],
)
def test_a_series_is_text_though_a_file_wrote_a_number(series: list[Any], read: list[str]) -> None:
    assert tidy(samples(series=series))["series"].tolist() == read


@pytest.mark.parametrize(
    "flags", [[True, False, True, False], [1, 0, 1, 0], ["true", "FALSE", "1", ""], [1, 0, 1, None]]
)
def test_flags_are_read_however_they_are_written(flags: list[Any]) -> None:
    frame = tidy(samples(is_swap=flags, verdict__abstain=flags))
    for name in ("is_swap", "verdict.abstain"):
        assert frame[name].dtype == bool
        assert frame[name].tolist() == [True, False, True, False]


def test_empty_cells_have_the_default_of_a_missing_column() -> None:
    columns = ["tag", "country", "pool", "series", "rubric_kind", "rubric_author", "is_swap"]
    columns += [
        "rubric_draw",
        "rubric",
        "probe",
        "dose",
        "call_id",
        "probe_status",
        "rubric.author",
        "cluster",
    ]
    for empty in (None, np.nan, ""):
        cells = {name.replace(".", "__"): [empty] * 4 for name in columns}
        frame = tidy(samples(**cells))
        pd.testing.assert_frame_equal(
            frame[columns].astype({"rubric": str}), tidy(samples())[columns].astype({"rubric": str})
        )


@pytest.mark.parametrize(
    ("truth", "read"),
    [
        ([1, 2, None, 4], [1.0, 2.0, None, 4.0]),
        (["1", "2.0", "", "4"], [1.0, 2.0, None, 4.0]),
        ([1, "Low", None, "High"], ["1", "Low", None, "High"]),
    ],
)
def test_truths_are_numbers_if_all_of_them_are(truth: list[Any], read: list[Any]) -> None:
    found = tidy(samples(truth=truth))["truth"]
    assert found.astype(object).where(found.notna(), None).tolist() == read


def test_evidence_is_numbered_or_named() -> None:
    assert tidy(samples(evidence=[1, 2, 1, 2]))["evidence"].dtype == np.int64
    assert tidy(samples(evidence=[1.0, 2.0, 1.0, 2.0]))["evidence"].dtype == np.int64
    assert tidy(samples(evidence=["07", "7", "07", "7"]))["evidence"].nunique() == 2


# --- tasks and variants --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"concept": ["f", "f", "g", "g"]}, ["f", "g"]),
        ({"pool": ["p", "p", "q", "q"]}, ["all (p)", "all (q)"]),
        (
            {"concept": ["f"] * 4, "task_type": ["ecc"] * 4, "country": ["V", "V", "W", "W"]},
            ["f (ecc, V)", "f (ecc, W)"],
        ),
        (
            {"concept": ["f"] * 4, "country": ["V"] * 4, "pool": ["p", "p", "q", "q"]},
            ["f (V, p)", "f (V, q)"],
        ),
        (
            {"concept": ["f"] * 4, "country": ["V", "V", "W", "W"], "pool": ["p", "p", "q", "q"]},
            ["f (V)", "f (W)"],
        ),
    ],
)
def test_a_task_is_named_by_what_distinguishes_it(
    columns: dict[str, list[str]], names: list[str]
) -> None:
    assert tidy(samples(**columns))["task"].tolist() == [names[0]] * 2 + [names[1]] * 2


def test_a_variant_names_what_varies_within_its_task() -> None:
    frame = tidy(
        samples(
            concept=["f", "f", "g", "g"],
            evidence__view=["raw", "raw", "neutralized", "neutralized"],  # a task forces it
            verdict__method=["single", "subset", "single", "single"],
            verdict__abstain=[True, True, True, False],
        )
    )
    assert frame["variant"].tolist() == [
        "verdict.method=single",
        "verdict.method=subset",
        "verdict.abstain=true",
        "verdict.abstain=false",
    ]
    assert varied_knobs(frame) == ["evidence.view", "verdict.method", "verdict.abstain"]


def test_series_are_variants_and_judges_are_not() -> None:
    frame = tidy(samples(series=["3", "3", "3", "retest"]))
    assert frame["variant"].tolist() == ["series=3"] * 3 + ["series=retest"]


def test_an_unset_level_is_a_level() -> None:
    frame = tidy(
        samples(
            judge__temperature=[None, 0.0, None, 0.5],
            prompt__slots__scorer__framing=["", "Be calm.", "", ""],
        )
    )
    framing = "prompt.slots.scorer.framing"
    assert frame["variant"].tolist() == [
        f"judge.temperature=unset, {framing}=unset",
        f"judge.temperature=0.0, {framing}=Be calm.",
        f"judge.temperature=unset, {framing}=unset",
        f"judge.temperature=0.5, {framing}=unset",
    ]
    assert [level_name(level) for level in (None, np.nan, "", True, 4)] == [
        "unset", "unset", "unset", "true", "4",
    ]  # fmt: skip


def test_the_same_samples_are_the_same_frame_in_any_order_of_rows() -> None:
    frame = tidy(WHOLE)
    for seed in range(5):
        pd.testing.assert_frame_equal(tidy(WHOLE.sample(frac=1, random_state=seed)), frame)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("column", NEEDED)
def test_a_missing_column_is_named_with_those_needed(column: str) -> None:
    with pytest.raises(DesignError) as fault:
        tidy(samples().drop(columns=column), source="mine.csv")
    assert fault.value.message.startswith(f"mine.csv has no column {column!r}; samples need ")
    assert fault.value.choices == NEEDED


@each_row(
    ("columns", "says"),
    [
        ({"status": ["scored", "score"] * 2}, "unknown status 'score' for mine.csv"),
        ({"status": ["scored", None, "scored", "scored"]}, "unknown status '' for mine.csv"),
        ({"rubric_kind": ["cardinal"] * 4}, "unknown rubric_kind 'cardinal' for mine.csv; choose"),
        ({"stages": ["1", "5", "", "4"]}, "mine.csv: stage 5 of [5]; choose 1 to 4"),
        ({"stages": ["1", "0", "", "4"]}, "mine.csv: stage 0 of [0]; choose 1 to 4"),
        ({"stages": ["1", "two", "", "4"]}, "stages are written '2' or '2 3'"),
        ({"stages": [1.0, 2.5, None, 4.0]}, "stages are written '2' or '2 3'"),
        ({"stages": ["1", "", "", "4"]}, "mine.csv: sample 2 is scored, but names no stage"),
        ({"n_stages": [4, 4, 4, 40]}, "a frame of 40 stages; choose 2 to 26"),
        ({"n_stages": [4, 4, None, 4]}, "mine.csv: n_stages of sample 3 is not a whole number"),
        ({"replicate": [0, 1.5, 0, 0]}, "replicate 1.5 of sample 2 is not a whole number"),
        ({"replicate": ["0", "b", "0", "0"]}, "replicate 'b' of sample 2 is not a number"),
        ({JUDGE: ["a", "a", None, "b"]}, "mine.csv: judge.model of sample 3 is missing"),
        ({"evidence": ["x", "", "x", "y"]}, "mine.csv: evidence of sample 2 is missing"),
        ({"flipped": ["no"] * 4}, "flipped 'no' of sample 1 is neither true nor false"),
        ({"probe": [0.5, 70, None, None]}, "probe 70.0 of sample 2 is not between 0 and 1"),
        ({"reference": [-0.1] * 4}, "reference -0.1 of sample 1 is not between 0 and 1"),
        ({"judge.temperature": ["hot"] * 4}, "judge.temperature 'hot' of sample 1 is not a number"),
    ],
)  # fmt: skip
def test_a_wrong_cell_is_refused_by_name_value_and_place(
    columns: dict[str, list[Any]], says: str
) -> None:
    with pytest.raises(DesignError) as fault:
        tidy(samples(**columns), source="mine.csv")
    assert says in fault.value.message


def test_an_unknown_status_comes_with_the_choices() -> None:
    with pytest.raises(DesignError) as fault:
        tidy(samples(status="fine"))
    assert fault.value.choices == STATUSES


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (
            {"status": ["scored", "abstained", "scored", "scored"], "stages": ["1", "2", "3", "4"]},
            "mine.csv: stages '2' of sample 2 names a stage, but its status",
        ),
        ({"truth": [1, 2, 9, 4]}, "truth 9 of sample 3 is not a stage of its scale; choose"),
        ({"display": "fail pass"}, "mine.csv: display 'fail pass' of sample 1 is not LABEL=STAGE"),
        ({"truth": [1.5, 2, 3, 4]}, "mine.csv: truth 1.5 of sample 1 is not a stage"),
        ({"cluster": ["A", "B", "A", "C"]}, "mine.csv: cluster 'C' of sample 4 differs from other"),
        ({"n_stages": [4, 4, 4, 5]}, "mine.csv: n_stages 5 of sample 4 differs from other samples"),
        (
            {"task_type": ["ecc", "ecc", "ECC", "ecc"]},
            "unknown task_type 'ECC' for mine.csv; choose 'ecc', 'control' or 'benchmark' "
            "(sample 3)",
        ),
        (
            {"verdict__method": ["single", "multi"] * 2},
            "unknown verdict.method 'multi' for mine.csv; choose 'single' or 'subset' (sample 2)",
        ),
        ({"stages": ["1", "2", "", "two"]}, "stages are written '2' or '2 3' (sample 4)"),
    ],
)
def test_contradictory_cells_are_refused_with_their_row(columns: dict[str, Any], says: str) -> None:
    with pytest.raises(DesignError, match=re.escape(says)):
        tidy(samples(**columns), source="mine.csv")


def test_a_truth_may_lie_on_the_longest_scale_of_its_item() -> None:
    scales = samples(n_stages=[4, 5, 4, 5], rubric=[1, 2, 1, 2], evidence=1, truth=5)
    assert tidy(scales)["truth"].tolist() == [5.0] * 4


def test_a_stage_that_a_spreadsheet_wrote_as_a_fraction_is_whole() -> None:
    frame = tidy(samples(stages=["1.0", "2", "", "3.0 4.0"]))
    assert frame["mask"].tolist() == [1, 2, 0, 12]
    assert frame["stages"].tolist() == ["1", "2", "", "3 4"]


def test_all_missing_columns_are_named_at_once() -> None:
    with pytest.raises(DesignError, match="has no column 'evidence', 'n_stages'; samples need"):
        tidy(samples().drop(columns=["evidence", "n_stages"]))


def test_no_samples_are_refused() -> None:
    with pytest.raises(DesignError, match=r"mine\.csv has no samples"):
        tidy(samples().iloc[:0], source="mine.csv")


# --- what analyses share -------------------------------------------------------------------------


def test_a_shared_call_counts_once_per_group_and_item() -> None:
    frame = tidy(samples(call_id=[1, 1, 1, None], evidence=["x", "x", "y", "y"]))
    assert len(once_per_call(frame, [])) == 3
    assert len(once_per_call(frame, [JUDGE])) == 3
    unknown = tidy(samples(evidence=["x"] * 4))
    assert len(once_per_call(unknown, [])) == 4, "without calls every row is an observation"


def test_a_nominal_rubric_has_no_order() -> None:
    frame = tidy(samples())
    assert ordinal(frame) is frame
    with pytest.raises(DesignError, match="options of a nominal rubric have no order"):
        ordinal(tidy(samples(rubric_kind=["nominal"] * 4)))
