"""What to buy next, against the intervals of larger simulated studies."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.decision import (
    DRAWS,
    ITEMS,
    JUDGES,
    MORE_ITEMS,
    REPEATS,
    Decision,
    Option,
    Quantity,
    decide,
    find_quantities,
    quantities,
)
from judge_gym.analysis.frames import tidy
from judge_gym.analysis.stats.intervals import UNBOUNDED, estimate, seeded
from judge_gym.analysis.variance import measured
from judge_gym.errors import DesignError
from tables import each_row

SETUPS = [("base", "a"), ("base", "b"), ("base", "c")]


def values(
    rng: np.random.Generator,
    items: int,
    repeats: int,
    *,
    each: int = 1,
    draws: int = 1,
    measure: str = "stage",
    usd: float = 0.01,
    sd: Mapping[str, float],
) -> pd.DataFrame:
    """Verdicts of three judges in the form of `measured`, with known standard deviations."""
    shape = (items, 3, draws, repeats)
    item, judge, draw, replicate = (axis.ravel() for axis in np.indices(shape))

    def effect(name: str, *size: int) -> np.ndarray:
        return rng.normal(0.0, sd.get(name, 0.0), size)

    value = (
        effect("cluster", items)[item // each]
        + effect("item", items)[item]
        + effect("item_setup", items, 3)[item, judge]
        + effect("draw", 3, draws)[judge, draw]
        + effect("repeat", len(item))
    )
    names = np.array(["a", "b", "c"])[judge]
    return pd.DataFrame(
        {
            "task": "t",
            "variant": "base",
            "judge.model": names,
            "setup": names,
            "evidence": item,
            "cluster": item // each,
            "author": names,
            "rubric": draw,
            "replicate": replicate,
            "measure": measure,
            "value": value,
            "usd": usd,
            "calls": 1,
        }
    )


def of(judges: str, measure: str = "stage") -> Quantity:
    """The mean of one judge, the difference of two, or the panel of three."""
    weights = {1: (1.0,), 2: (1.0, -1.0), 3: (1 / 3,) * 3}[len(judges)]
    named = {("base", judge): weight for judge, weight in zip(judges, weights, strict=True)}
    return Quantity(f"q {judges}", "t", measure, named, len(judges) == 3)


def option(decision: Decision, name: str) -> Option:
    [found] = [one for one in decision.options if one.name == name]
    return found


def observed(rows: pd.DataFrame, quantity: Quantity) -> float:
    """Half of Student's interval of a quantity over items or clusters, without components."""
    wide = rows.pivot_table(index=["cluster", "evidence"], columns="judge.model", values="value")
    weights = {judge: weight for (_, judge), weight in quantity.weights.items()}
    each = (wide[list(weights)] * list(weights.values())).sum(axis=1)
    found = estimate(each.groupby(level="cluster").mean(), scale=UNBOUNDED)
    return (found.high - found.low) / 2


# --- prediction ----------------------------------------------------------------------------------


@each_row("judges", ["a", "ab", "abc"])
def test_predictions_are_the_intervals_of_larger_studies(judges: str) -> None:
    rng = seeded("larger", judges)
    sd = {"item": 0.2, "item_setup": 0.15, "repeat": 0.3}
    quantity = of(judges)
    pilots = [decide(values(rng, 150, 2, sd=sd), quantity) for _ in range(4)]

    def expected(items: int, repeats: int) -> float:
        drawn = [observed(values(rng, items, repeats, sd=sd), quantity) for _ in range(4)]
        return float(np.mean(drawn))

    now = [one.half for one in pilots]
    more = [option(one, ITEMS).half(300) for one in pilots]
    again = [option(one, REPEATS).half(6) for one in pilots]
    assert np.mean(now) == pytest.approx(expected(150, 2), rel=0.12)
    assert np.mean(more) == pytest.approx(expected(450, 2), rel=0.12)
    assert np.mean(again) == pytest.approx(expected(150, 8), rel=0.12)


def test_items_of_the_same_clusters_do_not_remove_the_variance_between_clusters() -> None:
    rng = seeded("clusters")
    sd = {"cluster": 0.3, "item": 0.2, "repeat": 0.2}
    found = [decide(values(rng, 90, 2, each=3, sd=sd), of("a")) for _ in range(8)]
    now = np.mean([one.half for one in found])
    wider = np.mean([observed(values(rng, 90, 2, each=3, sd=sd), of("a")) for _ in range(8)])
    same = np.mean([option(one, MORE_ITEMS).half(270) for one in found])
    larger = np.mean([observed(values(rng, 360, 2, each=12, sd=sd), of("a")) for _ in range(8)])
    assert now == pytest.approx(wider, rel=0.12)
    assert same == pytest.approx(larger, rel=0.12)
    assert all(option(one, ITEMS).half(270) < option(one, MORE_ITEMS).half(270) for one in found)


def test_another_judge_narrows_panel_means_alone() -> None:
    rows = values(seeded("panel"), 500, 2, sd={"item": 0.1, "item_setup": 0.4, "repeat": 0.2})
    panel, single = decide(rows, of("abc")), decide(rows, of("a"))
    assert JUDGES not in [one.name for one in single.options]
    # The variance of an item's panel mean is item + (item x setup + repeat / 2) / judges.
    variance = [0.1**2 + (0.4**2 + 0.2**2 / 2) / judges for judges in (3, 6)]
    ratio = option(panel, JUDGES).half(3) / panel.half
    assert ratio == pytest.approx(np.sqrt(variance[1] / variance[0]), rel=0.05)
    assert option(panel, JUDGES).calls == 500 * 2


def test_draws_are_bought_only_where_five_show_their_variance() -> None:
    sd = {"item": 0.1, "draw": 0.3, "repeat": 0.1}
    many = decide(values(seeded("draws"), 30, 2, draws=6, sd=sd), of("a"))
    few = decide(values(seeded("draws"), 30, 2, draws=2, sd=sd), of("a"))
    assert option(many, DRAWS).half(18) < 0.6 * many.half
    assert option(many, ITEMS).lowest > 0.5 * many.half
    assert option(few, DRAWS).note == "2 draws, 5 are needed"
    assert few.half < 0.3 * many.half  # it holds for these rubrics only


def test_few_clusters_limit_the_interval_to_them() -> None:
    rng = seeded("four clusters")
    rows = values(rng, 40, 2, sd={"item": 0.2, "repeat": 0.2})
    rows["cluster"] = rows["evidence"] // 10
    rows["value"] += 10.0 * rows["cluster"]
    found = decide(rows, of("a"))
    assert found.half < 0.15
    assert "for these 4 clusters" in found.sentence()


@each_row(
    "change, note",
    [
        ({"items": 4}, "4 items have values, 5 are needed"),
        ({"item": 0.0, "repeat": 0.0}, "its values do not differ between items"),
    ],
)
def test_what_cannot_be_predicted_has_a_reason(change: dict[str, float], note: str) -> None:
    sd = {"item": change.get("item", 0.2), "repeat": change.get("repeat", 0.1)}
    found = decide(values(seeded("reason"), int(change.get("items", 20)), 2, sd=sd), of("a"))
    assert found.note == note
    assert found.sentence().endswith(f"cannot be predicted: {note}.")


def test_single_repeats_do_not_tell_what_more_would_do() -> None:
    found = decide(values(seeded("single"), 20, 1, sd={"item": 0.2, "repeat": 0.1}), of("a"))
    assert "it needs items with two repeats" in option(found, REPEATS).note


# --- prices and sentences ------------------------------------------------------------------------


def test_prices_are_of_all_setups_and_of_labels_where_they_are_needed() -> None:
    rows = values(seeded("prices"), 30, 2, measure="accuracy", sd={"item": 0.2, "repeat": 0.2})
    found = decide(rows, of("ab", "accuracy"), label_usd=0.5)
    assert option(found, ITEMS).usd == pytest.approx(2 * 2 * 0.01 + 0.5)
    assert option(found, REPEATS).usd == pytest.approx(30 * 2 * 0.01)
    staged = decide(rows.assign(measure="stage"), of("ab"), label_usd=0.5)
    assert option(staged, ITEMS).usd == pytest.approx(2 * 2 * 0.01)


@each_row("usd, unit", [(0.01, "$"), (0.0, "calls"), (np.nan, "calls")])
def test_free_or_unpriced_judges_are_counted_in_calls(usd: float, unit: str) -> None:
    rows = values(seeded("free"), 30, 2, usd=usd, sd={"item": 0.2, "repeat": 0.2})
    assert unit in decide(rows, of("a")).sentence().partition(" would narrow ")[0]


def test_the_sentence_names_the_cheapest_way_to_a_target_and_what_cannot_reach_it() -> None:
    rows = values(seeded("target"), 30, 2, sd={"item": 0.3, "repeat": 0.2})
    found = decide(rows, of("a"))
    items = option(found, ITEMS)
    more = items.needed(found.half / 2)
    assert more is not None and items.half(more) <= found.half / 2 < items.half(more - 1)
    sentence = found.sentence(found.half / 2)
    assert sentence.startswith(f"{more} more items for ${more * 0.02:.2f} would narrow")
    assert "more repeats cannot get it below" in sentence
    assert "already" in found.sentence(0.9)


def test_the_recommended_purchase_is_the_narrowest_for_its_price() -> None:
    rows = values(seeded("noisy"), 30, 2, sd={"item": 0.02, "repeat": 0.4})
    bought = decide(rows.assign(measure="accuracy"), of("a", "accuracy"), label_usd=5.0)
    assert "more repeats of every item" in bought.sentence()  # a label costs 5, a repeat 0.3
    assert "more items for" in decide(rows, of("a")).sentence()


# --- quantities ----------------------------------------------------------------------------------


def judged() -> pd.DataFrame:
    rng = seeded("judged")
    rows = [
        {
            "judge.model": judge,
            "verdict.method": method,
            "evidence": item,
            "replicate": replicate,
            "status": "scored",
            "stages": str(rng.integers(1, 5)),
            "n_stages": 4,
            "truth": 2,
        }
        for judge in ("x", "y")
        for method in ("single", "subset")
        for item in range(6)
        for replicate in range(2)
    ]
    return tidy(pd.DataFrame(rows))


def test_differences_of_the_most_telling_measure_come_first() -> None:
    frame = judged()
    known = quantities(frame, measured(frame))
    names = [one.name for one in known]
    assert len({*names}) == len(names)
    assert names[0].startswith("accuracy, ") and " minus " in names[0]
    effect = next(one for one in known if one.name == "stage, verdict.method subset minus single")
    assert sum(effect.weights.values()) == pytest.approx(0)
    assert len(effect.weights) == 4
    assert {one.name for one in known if one.panel} >= {"stage of the panel, verdict.method=single"}
    assert np.isfinite(decide(measured(frame), effect).half)


def test_a_part_of_a_name_finds_quantities_and_an_unknown_one_is_refused() -> None:
    frame = judged()
    known = quantities(frame, measured(frame))
    assert {one.panel for one in find_quantities(known, "of the PANEL")} == {True}
    exact = "stage of x, verdict.method=single"
    assert [one.name for one in find_quantities(known, exact)] == [exact]
    with pytest.raises(DesignError, match="no quantity contains 'price'; choose of: accuracy"):
        find_quantities(known, "price")
