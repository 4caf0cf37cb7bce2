"""The judge table: what counts as right, who is best, and what the sentence says."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.choice import cross_fitted
from judge_gym.analysis.judges.splits import check_shares, split_parts
from judge_gym.analysis.judges.table import judge_table
from judge_gym.analysis.report.judges import judges_table
from judge_gym.analysis.stats.comparisons import compare
from judge_gym.errors import DesignError
from judge_gym.records import Evidence
from judge_gym.records.judge_table import JudgeRow, JudgeTable, Quantity

PANDALM = Path(__file__).parents[3] / "shared" / "data" / "pandalm"


def samples(*rows: tuple[Any, ...], **columns: Any) -> pd.DataFrame:
    """Rows of judge, item, repeat, verdict (a status, or stages) and truth."""
    names = ["judge.model", "evidence", "replicate", "verdict", "truth"]
    frame = pd.DataFrame(rows, columns=names)
    scored = frame["verdict"].str.match(r"[\d ]+$")
    return frame.assign(
        status=np.where(scored, "scored", frame["verdict"]),
        stages=np.where(scored, frame["verdict"], ""),
        n_stages=3,
        **columns,
    )


def only_row(table: JudgeTable) -> JudgeRow:
    (row,) = table["rows"]
    return row


def value(quantity: Quantity | None) -> float:
    assert quantity is not None
    return quantity["value"]


def test_verdicts_without_a_score_are_not_right_and_failed_calls_do_not_count() -> None:
    verdicts = ["1", "2", "1 2", "abstained", "refused", "truncated", "parse_failed"]
    rows: list[tuple[Any, ...]]
    rows = [("x:a", item, 0, verdict, 1) for item, verdict in enumerate(verdicts)]
    rows += [("x:a", 7, 0, "provider_error", 1), ("x:a", 8, 0, "1", None)]
    row = only_row(judge_table(tidy(samples(*rows))))
    assert row["truth"] is not None
    assert (row["truth"]["kind"], row["truth"]["n"]) == ("accuracy", 7)
    assert row["truth"]["value"] == pytest.approx(1.5 / 7)  # a subset counts by its share
    assert row["failed_calls"] == 1
    assert value(row["abstained"]) == pytest.approx(1 / 8)
    assert value(row["unreadable"]) == pytest.approx(3 / 8)
    assert value(row["answered"]) == pytest.approx(3 / 7)
    assert value(row["right_of_answered"]) == pytest.approx(1.5 / 3)


@pytest.mark.parametrize("repeats", [1, 3, 5, 6, 7])
def test_a_judge_that_is_always_right_has_the_exact_interval_of_a_proportion(repeats: int) -> None:
    rows = [
        ("x:a", item, repeat, "1", 1)
        for item in range(30)
        for repeat in range(repeats)
        for _ in ("given", "reversed")
    ]
    frame = samples(*rows, pair=True)
    frame["flipped"] = [False, True] * (30 * repeats)
    row = only_row(judge_table(tidy(frame)))
    theirs = stats.binomtest(30, 30).proportion_ci(0.95, "exact")
    for quantity in (row["truth"], row["answered"]):
        assert quantity is not None and quantity["value"] == 1.0
        assert (quantity["low"], quantity["high"]) == pytest.approx((theirs.low, 1.0), abs=1e-12)


@pytest.mark.parametrize(("truths", "right"), [((1, 2, 2), 0.5), ((1, 2, 3), 1 / 3)])
def test_a_tie_counts_one_half_only_where_no_known_answer_is_a_tie(
    truths: tuple[int, ...], right: float
) -> None:
    rows = [("x:a", item, 0, "3", truth) for item, truth in enumerate(truths)]
    row = only_row(judge_table(tidy(samples(*rows, pair=True))))
    assert row["truth"] is not None
    assert row["truth"]["value"] == pytest.approx(right)


def test_a_pair_is_one_unit_in_both_orders() -> None:
    rows = [("x:a", item, 0, verdict, 1) for item in (0, 1) for verdict in ("1", "2")]
    frame = samples(*rows, pair=True, usd=0.002, seconds=1.5).assign(flipped=[False, True] * 2)
    row = only_row(judge_table(tidy(frame)))
    assert row["truth"] is not None
    assert (row["truth"]["value"], row["truth"]["n"]) == (0.5, 2)
    assert value(row["usd_per_1000"]) == pytest.approx(4)
    assert value(row["seconds"]) == pytest.approx(3)
    # In the reverse order, the second response is shown first.
    assert value(row["position_bias"]) == 1


def test_consistency_is_the_share_of_equal_pairs_of_repeats() -> None:
    verdicts = {0: ["1", "1", "2"], 1: ["1", "1", "1"], 2: ["1"], 3: ["abstained", "abstained"]}
    rows = [
        ("x:a", i, n, verdict, None) for i, all in verdicts.items() for n, verdict in enumerate(all)
    ]
    table = judge_table(tidy(samples(*rows)))
    row = only_row(table)
    assert value(row["consistency"]) == pytest.approx((1 + 3 + 1) / (3 + 3 + 1))
    assert row["truth"] is None
    assert row["standing"] == "unknown"
    assert table["sentence"].startswith("Accuracy unknown")
    assert "label 30 items" in table["sentence"]


def test_disagreement_is_the_chance_that_another_setup_gives_another_verdict() -> None:
    verdicts = {"x:a": ["1", "2"], "x:b": ["1", "1"], "x:c": ["3", "3"]}
    rows = [
        (judge, 0, n, one, None) for judge, all in verdicts.items() for n, one in enumerate(all)
    ]
    table = judge_table(tidy(samples(*rows)))
    found = {row["setup"]: value(row["disagreement"]) for row in table["rows"]}
    assert found == pytest.approx({"a": (0.5 + 1) / 2, "b": (0.5 + 1) / 2, "c": 1})
    assert "Two setups differ in 83 % of verdicts" in table["sentence"]


def test_price_and_time_include_views_and_rubrics() -> None:
    rows = [("x:a", item, n, "1", None) for item in (1, 2) for n in (0, 1)]
    frame = samples(*rows, tag="t", rubric=5, usd=0.01, seconds=1.0)
    calls = pd.DataFrame(
        [("t", 1, None, 0.02, 2.0), ("t", 2, None, 0.02, 2.0), ("t", None, 5, 0.06, 6.0)],
        columns=["tag", "evidence", "rubric", "usd", "seconds"],
    )
    row = only_row(judge_table(tidy(frame), preparation=calls))
    # One verdict, its item's view, and its share of the rubric of two items.
    assert value(row["usd_per_1000"]) == pytest.approx(10 + 20 + 30)
    assert value(row["seconds"]) == pytest.approx(1 + 2 + 3)


def test_agreement_is_with_a_random_rater_beside_people_with_each_other() -> None:
    given = {0: [1, 1, 1], 1: [1, 1, 2], 2: [1, 2, 3], 3: [2]}
    people = pd.DataFrame(
        [("t", i, f"r{n}", s) for i, all in given.items() for n, s in enumerate(all)],
        columns=["tag", "evidence", "rater", "stage"],
    )
    rows = [("x:a", item, 0, "1", None) for item in range(5)]
    table = judge_table(tidy(samples(*rows, tag="t")), people)
    row = only_row(table)
    assert row["truth"] is not None
    assert row["truth"]["kind"] == "agreement"
    assert row["truth"]["value"] == pytest.approx((1 + 2 / 3 + 1 / 3 + 0) / 4)
    assert value(row["majority"]) == pytest.approx(2 / 3)  # raters tie on item 2
    assert value(table["people_with_each_other"]) == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert (table["raters"], table["known_items"]) == (3, 4)
    assert table["constant"] == pytest.approx((1 + 2 / 3 + 1 / 3 + 0) / 4)  # always the first stage


def test_a_setup_that_does_no_better_than_a_constant_answer_is_not_recommended() -> None:
    # Always the first of two stages, of which three quarters of the items are.
    rows = [
        (judge, id, 0, "1" if judge == "x:a" else "2", 1 if id % 4 else 2)
        for judge in ("x:a", "x:b")
        for id in range(80)
    ]
    table = judge_table(tidy(samples(*rows)))
    assert table["constant"] == 0.75
    assert table["sentence"].startswith("No setup is recommended: a has 75 %")
    assert (
        "not clearly better than always giving the most frequent answer (75 %)"
        in (table["sentence"])
    )
    assert [row["standing"] for row in table["rows"]] == ["best", "worse"]


def right_on(shares: dict[str, int], items: int = 40, method: str = "single") -> pd.DataFrame:
    """Samples of judges that are right on the first so many items; items alternate in truth."""
    rows = [
        (f"x:{judge}", id, 0, str(1 + id % 2 if id < right else 3), 1 + id % 2)
        for judge, right in shares.items()
        for id in range(items)
    ]
    return samples(*rows, **{"verdict.method": method})


def test_the_sentence_groups_tied_and_worse_setups_and_separates_names_unambiguously() -> None:
    parts = [
        right_on({"a": 36, "b": 35, "c": 34, "d": 8, "e": 4}),
        right_on({"a": 33, "d": 7}, method="subset"),
    ]
    table = judge_table(tidy(pd.concat(parts)))
    by_standing = {row["setup"]: row["standing"] for row in table["rows"]}
    assert by_standing == {
        **dict.fromkeys(["a", "b", "c", "a, method subset"], "tied"),
        **dict.fromkeys(["d", "d, method subset", "e"], "worse"),
    }
    limit = max(row["at_most_worse"] or 0 for row in table["rows"] if row["standing"] == "tied")
    text = table["sentence"]
    assert text.startswith("Highest estimate: a, ")
    assert (
        f". No clear difference from b, c and “a, method subset” (each at most {100 * limit:.0f} "
        "points worse). "
    ) in text
    assert text.endswith(
        "Worse: d by 70 points, “d, method subset” by 72 points and e by 80 points."
    )
    assert len(text.split()) <= 50


def test_a_number_corrected_for_the_choice_stands_beside_that_of_the_row() -> None:
    # Of equal setups the best on these items is not the best on new ones.
    rng = np.random.default_rng(5)
    rows = [
        (f"x:{judge}", item, 0, "1" if rng.random() < 0.6 else "3", 1)
        for judge in "abcdefgh"
        for item in range(40)
    ]
    table = judge_table(tidy(samples(*rows)))
    quality = table["chosen_quality"]
    chosen = next(row for row in table["rows"] if row["setup"] == table["chosen"])
    assert quality is not None and quality["method"] == "cross-fitted"
    expected, observed = (f"{100 * value(one):.0f} %" for one in (quality, chosen["truth"]))
    assert expected != observed
    assert f"of known answers expected on new items ({observed} on these 40)" in table["sentence"]
    assert f"{chosen['setup']}" in table["sentence"] and f" {expected} [" in table["sentence"]


@pytest.mark.parametrize(
    ("names", "stages", "kind", "words"),
    [
        ("fail | pass", 2, "ordinal", "balanced accuracy, because the labels are two."),
        ("", 3, "ordinal", "accuracy, because the labels are 3 ordered stages."),
        ("", 4, "ordinal", "weighted kappa, because the labels are 4 ordered stages."),
        ("", 3, "nominal", "accuracy, because the labels have no order."),
    ],
)
def test_the_table_says_why_a_measure_decides(
    names: str, stages: int, kind: str, words: str
) -> None:
    rows = [("x:a", item, 0, str(item % 2 + 1), item % 3 % 2 + 1) for item in range(30)]
    frame = samples(*rows).assign(n_stages=stages, rubric_kind=kind, stage_names=names)
    assert judge_table(tidy(frame))["decides"].startswith(f"Decides: {words}")


def test_one_tied_and_one_worse_setup_are_named_in_one_sentence() -> None:
    frame = right_on({"a": 36, "b": 35, "c": 4})
    frame["usd"] = frame["judge.model"].map({"x:a": 0.001, "x:b": 0.004, "x:c": 0.001})
    text = judge_table(tidy(frame))["sentence"]
    assert ", $1.00 per 1,000. No clear difference from b (at most " in text
    assert text.endswith(" points worse, four times the price). c is worse by 80 points.")


def test_a_cheaper_choice_is_not_what_worse_setups_are_compared_with() -> None:
    frame = right_on({"a": 190, "b": 189, "c": 20}, items=200)
    frame["usd"] = frame["judge.model"].map({"x:a": 0.004, "x:b": 0.001, "x:c": 0.001})
    table = judge_table(tidy(frame), margin=0.2)
    assert table["chosen"] == "b"
    assert table["sentence"].endswith("c is worse than a by 85 points.")


def test_failed_calls_are_not_called_missing_answers() -> None:
    rows = [("x:a", id, 0, "provider_error", 1) for id in range(30)]
    text = judge_table(tidy(samples(*rows)))["sentence"]
    assert text == "No verdict yet: all 30 calls failed; 'judge-gym retry' asks again."


def test_verdicts_under_the_rubrics_of_others_alone_compare_no_setup() -> None:
    rows = [("x:a", id, 0, "2", 1) for id in range(30)]
    table = judge_table(tidy(samples(*rows, is_swap=True, rubric_author="x:b")))
    assert table["rows"] == [] and table["chosen"] is None
    assert table["sentence"] == "No setup has a verdict under its own rubric: none is compared."


def test_the_effect_of_a_knob_is_that_of_setups_which_differ_in_it_alone() -> None:
    usual = right_on({"a": 36, "b": 36})
    changed = right_on({"a": 20, "b": 28, "c": 40}, method="subset")
    [effect] = judge_table(tidy(pd.concat([usual, changed])))["effects"]
    assert (effect["knob"], effect["level"], effect["base"]) == (
        "verdict.method",
        "subset",
        "single",
    )
    assert effect["value"] == pytest.approx(-(16 + 8) / 2 / 40)
    assert (effect["n"], effect["setups"]) == (40, 2)
    assert effect["high"] is not None
    assert effect["high"] < 0


def test_setups_are_named_by_what_differs() -> None:
    parts = [
        samples(("x:a", 0, 0, "1", 1), ("x:b", 0, 0, "1", 1), **{"verdict.method": method})
        for method in ("single", "subset")
    ]
    table = judge_table(tidy(pd.concat(parts)))
    names = {row["setup"]: row["knobs"] for row in table["rows"]}
    assert names == {
        "a": {"verdict.method": "single"},
        "b": {"verdict.method": "single"},
        "a, method subset": {"verdict.method": "subset"},
        "b, method subset": {"verdict.method": "subset"},
    }


# --- who is best ---------------------------------------------------------------------------------


def drawn(chances: list[float], items: int, seed: int) -> np.ndarray:
    """Right and wrong answers; setups share how hard an item is."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 0.2, (items, 1))
    return (rng.random((items, len(chances))) < np.clip(np.array(chances) + hard, 0, 1)).astype(
        float
    )


@pytest.mark.slow
def test_few_setups_are_called_best_wrongly() -> None:
    wrong = 0
    for seed in range(400):
        values = drawn([0.8, 0.8, 0.8], 40, seed)
        wrong += "best" in compare(values, np.arange(40)).standings
    assert wrong / 400 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


def test_a_real_lead_is_found_and_few_items_decide_nothing() -> None:
    standings = [
        compare(drawn([0.9, 0.6], 100, seed), np.arange(100)).standings for seed in range(20)
    ]
    assert standings.count(("best", "worse")) >= 19
    assert compare(drawn([1.0, 0.0], 19, 0), np.arange(19)).standings == ("unknown",) * 2
    # Twenty items of four outlets are four observations.
    assert compare(drawn([1.0, 0.0], 20, 0), np.arange(20) % 4).standings == ("unknown",) * 2


def test_the_quality_of_the_chosen_setup_is_not_inflated_by_the_choice() -> None:
    highest, corrected = [], []
    none = np.full(10, np.nan)
    for seed in range(200):
        values = drawn([0.7] * 10, 40, seed)
        highest.append(values.mean(axis=0).max())
        choices = cross_fitted(values, np.arange(40), none, None)
        corrected.append(values[np.arange(40), choices].mean())
    error = np.std(corrected) / np.sqrt(len(corrected))
    assert np.mean(highest) > 0.75
    assert np.mean(corrected) == pytest.approx(0.7, abs=3 * error)


def test_the_quality_of_the_chosen_setup_does_not_depend_on_the_order_of_setups() -> None:
    rng = np.random.default_rng(1)
    verdicts = np.where(rng.random((40, 3, 2)) < 0.6, "1", "3")

    def quality(names: str) -> Quantity:
        rows = [
            (f"x:{name}", item, repeat, verdicts[item, repeat, judge], 1)
            for judge, name in enumerate(names)
            for item in range(40)
            for repeat in range(3)
        ]
        chosen = judge_table(tidy(samples(*rows)))["chosen_quality"]
        assert chosen is not None and chosen["method"] == "cross-fitted"
        return chosen

    ours, theirs = quality("ab"), quality("ba")
    right = (verdicts == "1").mean(axis=1)
    folds = cross_fitted(right, np.arange(40), np.full(2, np.nan), None)
    assert len(np.unique(folds)) == 2, "folds choose different setups"
    for end in ("value", "low", "high"):
        assert theirs[end] == pytest.approx(ours[end], abs=1e-12)


@pytest.mark.skipif(not PANDALM.is_dir(), reason="the published data is not beside the repository")
def test_published_agreement_with_people_is_reproduced() -> None:
    def read(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((PANDALM / name).read_text())
        return found

    items, stage = read("testset-v1.json"), {"0": "3", "Tie": "3", "garbage": "parse_failed"}
    people = pd.DataFrame(
        [
            ("t", item["idx"], rater, item[rater] or 3)
            for item in items
            for rater in ("annotator1", "annotator2", "annotator3")
        ],
        columns=["tag", "evidence", "rater", "stage"],
    )
    answers = {"gpt": "gpt-3.5-turbo", "pandalm": "pandalm-7b"}
    rows = [
        (f"x:{file}", row["idx"], 0, stage.get(text := str(row[f"{key}_result"]), text), None)
        for key, file in answers.items()
        for row in read(f"{file}-testset-v1.json")
    ]
    table = judge_table(tidy(samples(*rows, tag="t", pair=True, rubric_kind="nominal")), people)
    found = {row["setup"]: round(value(row["truth"]), 3) for row in table["rows"]}
    assert found == {"gpt-3.5-turbo": 0.689, "pandalm-7b": 0.660}
    assert value(table["people_with_each_other"]) == pytest.approx(0.920, abs=5e-4)
    # 2.9 points apart: a two-sided interval of the difference includes 0.
    assert [row["standing"] for row in table["rows"]] == ["tied", "tied"]
    difference = table["rows"][1]["difference"]
    assert difference is not None and (difference["high"] or 0.0) >= 0


# --- splits --------------------------------------------------------------------------------------


def item(id: int, cluster: str = "") -> Evidence:
    return Evidence(title=f"item {id}", text=f"text {id}", cluster=cluster, id=id)


SHARES = {"train": 0.2, "dev": 0.4, "test": 0.4}


def test_a_split_keeps_clusters_together_and_items_where_they_are() -> None:
    items = [item(id, f"outlet {id % 10}") for id in range(40)] + [item(id) for id in range(40, 60)]
    answers = dict.fromkeys(range(20), "pass")
    first = split_parts(items, {}, answers, SHARES, seed=1)
    assert all(len({first[id] for id in range(n, 40, 10)}) == 1 for n in range(10))
    assert Counter(first[id] for id in range(40, 60)) == {"train": 4, "dev": 8, "test": 8}
    assert split_parts(items[::-1], {}, answers, SHARES, seed=1) == first
    assert split_parts(items, {}, answers, SHARES, seed=2) != first
    # Another seed would draw others.
    later = split_parts([*items, item(60, "outlet 3"), item(61)], first, answers, SHARES, seed=2)
    assert first.items() <= later.items()
    assert later[60] == first[3]


def test_each_part_of_a_split_has_its_share_of_every_label() -> None:
    items = [item(id) for id in range(100)]
    answers = {id: "fail" if id < 20 else "pass" for id in range(100)}
    parts = split_parts(items, {}, answers, SHARES, seed=3)
    failed = Counter(parts[id] for id in range(20))
    assert failed == {"train": 4, "dev": 8, "test": 8}
    assert Counter(parts.values()) == {"train": 20, "dev": 40, "test": 40}


@pytest.mark.parametrize("shares", [(50, 50), (10, 10, 10), (50, 50, 0), (0, 0, 100), (-1, 51, 50)])
def test_shares_that_are_no_split_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(DesignError, match="share"):
        check_shares(shares)
    assert check_shares((20, 40, 40)) == SHARES


def test_one_cluster_cannot_be_split() -> None:
    with pytest.raises(DesignError, match="1 cluster of items cannot be split"):
        split_parts([item(1, "a"), item(2, "a")], {}, {}, SHARES, seed=0)


@pytest.mark.parametrize("part", ["train", "dev"])
def test_the_choice_is_made_outside_of_test_and_quality_is_of_test(part: str) -> None:
    # One judge is right on all of the part and never on test, the other the reverse.
    rows = [
        (judge, id, 0, "1" if (id < 30) == (judge == "x:a") else "2", 1)
        for judge in ("x:a", "x:b")
        for id in range(60)
    ]
    table = judge_table(
        tidy(samples(*rows)), parts={id: part if id < 30 else "test" for id in range(60)}
    )
    assert table["chosen"] == "a"
    assert table["chosen_quality"] is not None
    assert (table["chosen_quality"]["value"], table["chosen_quality"]["method"]) == (
        0,
        "test split",
    )
    assert {row["setup"]: value(row["truth"]) for row in table["rows"]} == {"a": 0, "b": 1}
    assert table["split"] == {"chosen_on": part, "choice": 30, "test": 30, "uses": 0}
    assert f"best on {part}, but not on test" in table["sentence"]


@pytest.mark.parametrize("note", ["recorded by others", "recorded by others."])
def test_a_note_under_the_table_of_a_report_ends_in_one_full_stop(note: str) -> None:
    table = judge_table(tidy(right_on({"a": 36})))
    text = judges_table({**table, "notes": [note]}).note
    assert text.endswith(" Recorded by others.")
