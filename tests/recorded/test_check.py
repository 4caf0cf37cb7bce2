"""The check of a file: its numbers against other libraries, and its sentences against the rows."""

import json
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics

import judge_gym
from judge_gym.errors import DesignError
from judge_gym.recorded.check import Check, check
from judge_gym.records.check import CheckedQuantity, CheckResult

ITEMS = 400
WORDS = np.array(["bad", "poor", "fair", "good", "great"])


class World(NamedTuple):
    """A file with a known truth."""

    frame: pd.DataFrame
    rate: float
    """The share of items that people would pass."""


def binary_file(labelled: float = 1.0, *, raters: int = 2) -> World:
    """Texts that a strict and a hasty judge passed or failed, and two people, partly."""
    rng = np.random.default_rng(11)
    good = rng.random(ITEMS) < 0.65
    frame = pd.DataFrame(
        {
            "id": [f"case {number}" for number in range(ITEMS)],
            "reply": [
                "word " * int(count) + f"{n}" for n, count in enumerate(rng.integers(8, 80, ITEMS))
            ],
        }
    )
    for judge, right in {"strict": (0.8, 0.85), "hasty": (0.95, 0.45)}.items():
        frame[judge] = _words(rng, good, *right)
    for number in range(raters):
        labels = _words(rng, good, 0.96, 0.93)
        frame[f"human_{number + 1}"] = np.where(rng.random(ITEMS) < labelled, labels, "")
    return World(frame, 0.65 * 0.96 + 0.35 * 0.07)


def _words(rng: np.random.Generator, good: Any, passed: float, failed: float) -> Any:
    chance = np.where(good, passed, 1 - failed)
    return np.where(rng.random(len(good)) < chance, "pass", "fail")


def measures_of(result: CheckResult, judge: str) -> dict[str, CheckedQuantity]:
    return next(row["measures"] for row in result["judges"] if row["judge"] == judge)


@pytest.fixture(scope="module")
def checked() -> Check:
    """The check of a file of which every item has two labels."""
    return check(binary_file().frame)


def test_the_answer_is_public_and_readable(checked: Check) -> None:
    assert judge_gym.check is check
    text = repr(checked)
    assert text.startswith(("strict passes", "hasty passes"))
    assert "of what people pass and fails" in text
    assert "- No repeats: consistency needs a second verdict" in text
    assert "<iframe" in checked._repr_html_()


def test_two_labels_are_measured_as_scikit_learn_does() -> None:
    frame = binary_file(raters=1).frame
    result = check(frame, judges=["strict", "hasty"], people=["human_1"]).result
    label = frame["human_1"]
    for judge in ("strict", "hasty"):
        measured = {name: one["value"] for name, one in measures_of(result, judge).items()}
        verdict = frame[judge]
        recalls = {
            name: metrics.recall_score(label, verdict, pos_label=word)
            for name, word in (("sensitivity", "pass"), ("specificity", "fail"))
        }
        expected = {
            **recalls,
            "balanced": metrics.balanced_accuracy_score(label, verdict),
            "kappa": metrics.cohen_kappa_score(label, verdict),
            "exact": metrics.accuracy_score(label, verdict),
        }
        assert {name: measured[name] for name in expected} == pytest.approx(expected)


def test_two_raters_count_half_each(checked: Check) -> None:
    frame = binary_file().frame
    exact = np.mean([(frame["strict"] == frame[f"human_{n}"]).mean() for n in (1, 2)])
    assert measures_of(checked.result, "strict")["exact"]["value"] == pytest.approx(exact)
    assert checked.result["people"] is not None
    among = checked.result["people"]["measures"]
    equal = (frame["human_1"] == frame["human_2"]).mean()
    assert among["exact"]["value"] == pytest.approx(equal)
    people = f"people with each other {among['kappa']['value']:.2f}".replace(" 0.", " .")
    assert people in checked.result["sentence"]


def test_ordered_words_are_measured_as_scikit_learn_and_scipy_do() -> None:
    rng = np.random.default_rng(3)
    quality = rng.normal(size=ITEMS)
    stage = {
        name: np.clip(np.round(2 + quality + noise * rng.normal(size=ITEMS)), 0, 4).astype(int)
        for name, noise in (("judge", 0.8), ("human", 0.4))
    }
    frame = pd.DataFrame({"id": np.arange(ITEMS), **{name: WORDS[s] for name, s in stage.items()}})
    done = check(frame, judges=["judge"], people=["human"], order=[*WORDS])
    measured = {name: one["value"] for name, one in done.result["judges"][0]["measures"].items()}
    gap = stage["judge"] - stage["human"]
    expected = {
        "weighted_kappa": metrics.cohen_kappa_score(*stage.values(), weights="quadratic"),
        "tau_b": stats.kendalltau(*stage.values()).statistic,
        "spearman": stats.spearmanr(*stage.values()).statistic,
        "within_one": (abs(gap) <= 1).mean(),
        "error": abs(gap).mean(),
        "bias": gap.mean(),
    }
    assert {name: measured[name] for name in expected} == pytest.approx(expected)
    assert done.result["scale"] == {"kind": "ordinal", "labels": [*WORDS], "positive": None}
    assert done.result["disagreements"] == (abs(gap) > 1).sum()


def test_words_without_an_order_are_measured_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(4)
    topics = np.array(["billing", "delivery", "login"])
    right = rng.integers(0, 3, ITEMS)
    said = np.where(rng.random(ITEMS) < 0.8, right, rng.integers(0, 3, ITEMS))
    frame = pd.DataFrame({"id": np.arange(ITEMS), "judge": topics[said], "human": topics[right]})
    done = check(frame, judges=["judge"], people=["human"])
    measured = {name: one["value"] for name, one in done.result["judges"][0]["measures"].items()}
    expected = {
        "exact": metrics.accuracy_score(right, said),
        "kappa": metrics.cohen_kappa_score(right, said),
        "macro_f1": metrics.f1_score(right, said, average="macro"),
    }
    assert {name: measured[name] for name in expected} == pytest.approx(expected)
    assert done.result["scale"]["kind"] == "nominal"
    assert done.result["rate"] is None


def test_labels_of_a_part_correct_the_rate_of_all_items() -> None:
    world = binary_file(0.4, raters=1)
    done = check(world.frame)
    rate = done.result["rate"]
    assert rate is not None
    labels = world.frame["human_1"]
    assert rate["raw"]["value"] == (world.frame[rate["judge"]] == "pass").mean()
    assert rate["labels"]["value"] == pytest.approx((labels[labels != ""] == "pass").mean())
    assert rate["corrected"]["low"] < world.rate < rate["corrected"]["high"]
    width = rate["labels"]["high"] - rate["labels"]["low"]
    assert rate["corrected"]["high"] - rate["corrected"]["low"] < width, "verdicts add precision"
    text = f"corrected {100 * rate['corrected']['value']:.0f} %"
    assert text in done.result["sentence"]


def test_disagreements_are_the_rows_that_differ_from_people(checked: Check) -> None:
    frame = binary_file().frame
    first = checked.table["chosen"]
    people = (frame[["human_1", "human_2"]] == "pass").mean(axis=1)
    said = (frame[str(first)] == "pass").astype(float)
    differing = frame.loc[(said - people).abs() > 0.5]
    assert checked.result["disagreements"] == len(differing)
    assert {case.item for case in checked.disagreements} == {*differing["id"]}
    by_item = frame.set_index("id")
    for case in checked.disagreements:
        row = by_item.loc[case.item]
        assert case.text == row["reply"]
        assert dict(case.verdicts) == {"strict": row["strict"], "hasty": row["hasty"]}
        assert case.reference == row["human_1"]


def test_a_judge_that_is_worse_is_said_to_be(checked: Check) -> None:
    balanced = {
        row["judge"]: row["measures"]["balanced"]["value"] for row in checked.result["judges"]
    }
    gap = balanced["strict"] - balanced["hasty"]
    assert gap > 0.05
    assert f"hasty is worse than strict in balanced accuracy by {100 * gap:.0f} points [" in str(
        checked.sentences
    )


def test_repeats_show_how_often_a_judge_repeats_itself() -> None:
    rng = np.random.default_rng(2)
    first = np.where(rng.random(100) < 0.6, "yes", "no")
    second = np.where(rng.random(100) < 0.9, first, np.where(first == "yes", "no", "yes"))
    long = pd.concat(
        pd.DataFrame({"id": np.arange(100), "run": run, "judge": "gpt", "verdict": words})
        for run, words in ((1, first), (2, second))
    )
    done = check(long, item="id", repeat="run", judges=["judge"], accept=True)
    consistency = done.result["judges"][0]["consistency"]
    assert consistency is not None
    assert consistency["value"] == pytest.approx((first == second).mean())
    assert f"gpt repeats itself in {100 * consistency['value']:.0f} % [" in done.result["sentence"]
    assert done.result["sentence"].startswith("Accuracy unknown")
    assert any(text.startswith("No labels") for text in done.result["missing"])


def test_known_answers_stand_for_people() -> None:
    frame = binary_file(raters=1).frame.rename(columns={"human_1": "truth"})
    done = check(frame[["id", "strict", "truth"]], judges=["strict"])
    assert done.result["people"] is None
    recall = metrics.recall_score(frame["truth"], frame["strict"], pos_label="pass")
    assert done.result["sentence"].startswith(f"strict passes {100 * recall:.0f} % [")
    assert "of what should pass and fails" in done.result["sentence"]


def system_file(*, same_labels: bool) -> pd.DataFrame:
    """Two versions that people like equally; the judge likes the longer answers of the second."""
    rng = np.random.default_rng(7)
    parts, chosen = [], rng.random(ITEMS) < 0.4
    for version, favour in (("v1", 0.0), ("v2", 0.4)):
        good = rng.random(ITEMS) < 0.6
        labelled = chosen if same_labels else rng.random(ITEMS) < 0.4
        chance = np.where(good, 0.85, 0.2 + favour)
        texts = ["word " * (10 + 20 * (version == "v2")) + f"{n} {version}" for n in range(ITEMS)]
        parts.append(
            pd.DataFrame(
                {
                    "id": [f"question {number}" for number in range(ITEMS)],
                    "version": version,
                    "answer": texts,
                    "gpt": np.where(rng.random(ITEMS) < chance, "pass", "fail"),
                    "human": np.where(labelled, np.where(good, "pass", "fail"), ""),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("same_labels", [True, False])
def test_the_judges_taste_does_not_make_a_system_better(same_labels: bool) -> None:
    frame = system_file(same_labels=same_labels)
    done = check(
        frame, item="id", system="version", judges=["gpt"], people=["human"], text="answer"
    )
    systems = done.result["systems"]
    assert systems is not None
    assert (systems["a"], systems["b"]) == ("v2", "v1")
    passed = (frame["gpt"] == "pass").groupby(frame["version"]).mean()
    assert systems["judged"]["value"] == pytest.approx(passed["v2"] - passed["v1"])
    corrected = systems["corrected"]
    assert systems["judged"]["low"] > 0 > corrected["low"]
    assert corrected["high"] > 0
    text = f"v2 minus v1: judge says {100 * systems['judged']['value']:+.1f} points, corrected "
    assert f"{text}{100 * corrected['value']:+.1f} [" in done.result["sentence"]
    lengths = frame["answer"].str.len().groupby(frame["version"]).mean()
    assert f"mean length {lengths['v2'] - lengths['v1']:+,.0f}" in done.result["sentence"]


def test_prompts_are_compared_like_judges() -> None:
    rng = np.random.default_rng(5)
    good = rng.random(200) < 0.5
    frame = pd.concat(
        pd.DataFrame(
            {
                "id": np.arange(200),
                "prompt": prompt,
                "judge": "gpt",
                "verdict": _words(rng, good, right, right),
                "human": np.where(good, "pass", "fail"),
            }
        )
        for prompt, right in (("short", 0.65), ("rubric", 0.9))
    )
    done = check(frame, knobs=["prompt"])
    best, other = (row["judge"] for row in done.result["judges"])
    assert (best, other) == ("gpt, prompt rubric", "gpt, prompt short")
    assert f"{other} is worse than {best} in balanced accuracy by" in done.result["sentence"]


def test_the_result_is_plain_json_with_an_interval_or_a_reason(checked: Check) -> None:
    few = check(binary_file().frame.head(12)).result
    for result in (checked.result, few):
        assert json.loads(json.dumps(result)) == result
        quantities = [one for row in result["judges"] for one in row["measures"].values()]
        for one in quantities:
            assert {*one} in ({"value", "low", "high", "n"}, {"value", "n", "withheld"})
    assert any("withheld" in one for one in few["judges"][0]["measures"].values())
    assert any(text.startswith("No interval of") for text in few["missing"])


def test_an_uncertain_file_is_refused_with_the_proposal() -> None:
    frame = pd.DataFrame(
        {
            "id": np.arange(30),
            "gpt": ["low", "medium", "high"] * 10,
            "human": ["medium", "high", "low"] * 10,
        }
    )
    with pytest.raises(DesignError, match=r"--yes accepts it(.|\n)*--order low,medium,high"):
        check(frame)
    assert check(frame, accept=True).result["scale"]["labels"] == ["low", "medium", "high"]


def test_the_page_shows_both_verdicts_the_text_and_the_reasons() -> None:
    frame = binary_file(raters=1).frame
    frame["why"] = [f"<b>reason {number}</b>" for number in range(ITEMS)]
    done = check(frame, judges=["hasty"], people=["human_1"], rationale="why")
    page = done.page().html()
    case = done.disagreements[0]
    number = case.item.removeprefix("case ")
    assert f"&lt;b&gt;reason {number}&lt;/b&gt;" in page, "what others wrote is text"
    assert f"<h4>{case.item}</h4>" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "src=" not in page
    for text in ("finds “pass”", "Verdicts and labels", "people</strong>: ", done.sentences[0]):
        assert text in page


def test_items_without_a_verdict_count_in_the_rate_of_all_items() -> None:
    frame = binary_file(raters=1).frame
    # The judge was not asked about what comes last, of which people pass more.
    order = np.argsort(frame["human_1"] == "pass", kind="stable")
    frame = frame.iloc[order].reset_index(drop=True)
    frame["strict"] = np.where(frame.index < 300, frame["strict"], "")
    done = check(frame, judges=["strict"], people=["human_1"])
    rate = done.result["rate"]
    assert rate is not None
    assert rate["labels"]["value"] == pytest.approx((frame["human_1"] == "pass").mean())
    assert rate["labels"]["n"] == ITEMS
    judged = frame[frame["strict"] != ""]
    assert rate["raw"]["value"] == pytest.approx((judged["strict"] == "pass").mean())
    exact = (judged["strict"] == judged["human_1"]).mean()
    measured = measures_of(done.result, "strict")["exact"]
    assert measured["n"] == 300
    assert measured["value"] == pytest.approx(exact)
    assert any("no verdict on 100 items" in note for note in done.table["notes"])


def test_labels_of_items_that_nobody_judged_are_named() -> None:
    frame = binary_file(raters=1).frame
    first = frame.index < 200
    frame["strict"] = np.where(first, frame["strict"], "")
    frame["human_1"] = np.where(first, "", frame["human_1"])
    done = check(frame[["id", "strict", "human_1"]], judges=["strict"], people=["human_1"])
    assert done.result["missing"][0] == (
        "None of the 200 items with labels has a verdict: judge those"
    )


def test_a_file_with_one_label_is_refused() -> None:
    frame = pd.DataFrame({"id": np.arange(30), "judge": "pass", "human": "pass"})
    with pytest.raises(DesignError, match="has a single label, 'pass'"):
        check(frame, judges=["judge"], people=["human"])


def test_systems_are_compared_item_by_item_whatever_the_cluster_is() -> None:
    frame = system_file(same_labels=True)
    frame["topic"] = frame["id"].str.extract(r"(\d+)", expand=False).astype(int) % 40
    compare = partial(
        check, frame, judges=["gpt"], people=["human"], item="id", system="version", text="answer"
    )
    alone = compare().result["systems"]
    together = compare(cluster="topic")
    systems = together.result["systems"]
    assert alone is not None and systems is not None
    assert systems["judged"]["n"] == ITEMS, "items, not topics"
    assert systems["judged"]["value"] == pytest.approx(alone["judged"]["value"])
    assert "On 400 items that both answered." in together.result["sentence"]


def test_pairs_are_compared_by_the_better_response() -> None:
    rng = np.random.default_rng(9)
    better = rng.random(200) < 0.5
    frame = pd.DataFrame(
        {
            "id": np.arange(200),
            "question": [f"What should be done about case {n}?" for n in range(200)],
            "response_a": [f"Answer {n} of the first system" for n in range(200)],
            "response_b": [f"Answer {n} of the second system" for n in range(200)],
            "judge": np.where(rng.random(200) < np.where(better, 0.9, 0.3), "a", "b"),
            "human": np.where(better, "a", "b"),
        }
    )
    done = check(frame, judges=["judge"], people=["human"], accept=True)
    assert done.result["roles"]["responses"] == ["response_a", "response_b"]
    exact = (frame["judge"] == frame["human"]).mean()
    assert f"judge gives {100 * exact:.0f} % [" in done.result["sentence"]
    case = done.disagreements[0]
    assert f"A: Answer {case.item} of the first system" in case.text
