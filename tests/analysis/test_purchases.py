"""What to buy next, against the intervals of larger simulated studies."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from judge_gym.analysis.planning.purchases import (
    DRAWS,
    ITEMS,
    JUDGES,
    MORE_ITEMS,
    REPEATS,
    Decision,
    Option,
    decide,
)
from judge_gym.analysis.planning.quantities import Measurement, Quantity
from judge_gym.analysis.stats.intervals import UNBOUNDED, estimate, seeded
from judge_gym.records.numbers import dollars
from tables import each_row

JUDGE_NAMES = ("a", "b", "c")


def values(
    rng: np.random.Generator,
    items: int,
    repeats: int,
    *,
    each: int = 1,
    draws: int = 1,
    usd: float = 0.01,
    sd: Mapping[str, float],
) -> pd.DataFrame:
    """Verdicts of three judges in the form of a measurement, with known standard deviations."""
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
    return pd.DataFrame(
        {
            "setup": judge,
            "unit": item,
            "cluster": item // each,
            "author": judge,
            "draw": draw,
            "repeat": replicate,
            "value": value,
            "usd": usd,
            "calls": 1,
        }
    )


def of(judges: str, verdicts: pd.DataFrame, measure: str = "stage") -> Quantity:
    """The mean of one judge, the difference of two, or the panel of three."""
    weights = {1: (1.0,), 2: (1.0, -1.0), 3: (1 / 3,) * 3}[len(judges)]
    named = {("base", judge): weight for judge, weight in zip(judges, weights, strict=True)}
    setups = tuple(("base", judge) for judge in JUDGE_NAMES)
    return Quantity(
        f"q {judges}", Measurement("t", measure, setups, verdicts), named, len(judges) == 3
    )


def option(decision: Decision, name: str) -> Option:
    [found] = [one for one in decision.options if one.name == name]
    return found


def observed(rows: pd.DataFrame, judges: str) -> float:
    """Half of Student's interval of a quantity over items or clusters, without components."""
    quantity = of(judges, rows)
    wide = rows.pivot_table(index=["cluster", "unit"], columns="setup", values="value")
    weights = {JUDGE_NAMES.index(judge): weight for (_, judge), weight in quantity.weights.items()}
    each = (wide[list(weights)] * list(weights.values())).sum(axis=1)
    found = estimate(each.groupby(level="cluster").mean(), scale=UNBOUNDED)
    return (found.high - found.low) / 2


# --- prediction ----------------------------------------------------------------------------------


@each_row("judges", ["a", "ab", "abc"])
def test_predictions_are_the_intervals_of_larger_studies(judges: str) -> None:
    rng = seeded("larger", judges)
    sd = {"item": 0.2, "item_setup": 0.15, "repeat": 0.3}
    pilots = [decide(of(judges, values(rng, 150, 2, sd=sd))) for _ in range(4)]

    def expected(items: int, repeats: int) -> float:
        drawn = [observed(values(rng, items, repeats, sd=sd), judges) for _ in range(4)]
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
    found = [decide(of("a", values(rng, 90, 2, each=3, sd=sd))) for _ in range(8)]
    now = np.mean([one.half for one in found])
    wider = np.mean([observed(values(rng, 90, 2, each=3, sd=sd), "a") for _ in range(8)])
    same = np.mean([option(one, MORE_ITEMS).half(270) for one in found])
    larger = np.mean([observed(values(rng, 360, 2, each=12, sd=sd), "a") for _ in range(8)])
    assert now == pytest.approx(wider, rel=0.12)
    assert same == pytest.approx(larger, rel=0.12)
    assert all(option(one, ITEMS).half(270) < option(one, MORE_ITEMS).half(270) for one in found)


def test_another_judge_narrows_panel_means_alone() -> None:
    rows = values(seeded("panel"), 500, 2, sd={"item": 0.1, "item_setup": 0.4, "repeat": 0.2})
    panel, single = decide(of("abc", rows)), decide(of("a", rows))
    assert JUDGES not in [one.name for one in single.options]
    # The variance of an item's panel mean is item + (item x setup + repeat / 2) / judges.
    variance = [0.1**2 + (0.4**2 + 0.2**2 / 2) / judges for judges in (3, 6)]
    ratio = option(panel, JUDGES).half(3) / panel.half
    assert ratio == pytest.approx(np.sqrt(variance[1] / variance[0]), rel=0.05)
    assert option(panel, JUDGES).calls == 500 * 2


def test_draws_are_bought_only_where_five_show_their_variance() -> None:
    sd = {"item": 0.1, "draw": 0.3, "repeat": 0.1}
    many = decide(of("a", values(seeded("draws"), 30, 2, draws=6, sd=sd)))
    few = decide(of("a", values(seeded("draws"), 30, 2, draws=2, sd=sd)))
    assert option(many, DRAWS).half(18) < 0.6 * many.half
    assert option(many, ITEMS).lowest > 0.5 * many.half
    assert option(few, DRAWS).note == "2 draws, 5 are needed"
    assert few.half < 0.3 * many.half  # it holds for these rubrics only


def test_few_clusters_limit_the_interval_to_them() -> None:
    rng = seeded("four clusters")
    rows = values(rng, 40, 2, sd={"item": 0.2, "repeat": 0.2})
    rows["cluster"] = rows["unit"] // 10
    rows["value"] += 10.0 * rows["cluster"]
    found = decide(of("a", rows))
    assert found.half < 0.15
    assert "for these 4 clusters" in found.sentence()


@each_row(
    "change, note",
    [
        ({"items": 4}, "4 items with values, 5 are needed"),
        ({"item": 0.0, "repeat": 0.0}, "its values do not differ between items"),
    ],
)
def test_what_cannot_be_predicted_has_a_reason(change: dict[str, float], note: str) -> None:
    sd = {"item": change.get("item", 0.2), "repeat": change.get("repeat", 0.1)}
    found = decide(of("a", values(seeded("reason"), int(change.get("items", 20)), 2, sd=sd)))
    assert found.note == note
    assert found.sentence().endswith(f"cannot be predicted: {note}.")


def test_single_repeats_do_not_tell_what_more_would_do() -> None:
    found = decide(of("a", values(seeded("single"), 20, 1, sd={"item": 0.2, "repeat": 0.1})))
    assert "it needs items with two repeats" in option(found, REPEATS).note


# --- prices and sentences ------------------------------------------------------------------------


def test_prices_are_of_all_setups_and_of_labels_where_they_are_needed() -> None:
    rows = values(seeded("prices"), 30, 2, sd={"item": 0.2, "repeat": 0.2})
    found = decide(of("ab", rows, "accuracy"), label_usd=0.5)
    assert option(found, ITEMS).usd == pytest.approx(2 * 2 * 0.01 + 0.5)
    assert option(found, REPEATS).usd == pytest.approx(30 * 2 * 0.01)
    staged = decide(of("ab", rows), label_usd=0.5)
    assert option(staged, ITEMS).usd == pytest.approx(2 * 2 * 0.01)


@each_row("usd, unit", [(0.01, "$"), (0.0, "calls"), (np.nan, "calls")])
def test_free_or_unpriced_judges_are_counted_in_calls(usd: float, unit: str) -> None:
    rows = values(seeded("free"), 30, 2, usd=usd, sd={"item": 0.2, "repeat": 0.2})
    assert unit in decide(of("a", rows)).sentence().partition(" would narrow ")[0]


def test_the_sentence_names_the_cheapest_way_to_a_target_and_what_cannot_reach_it() -> None:
    rows = values(seeded("target"), 30, 2, sd={"item": 0.3, "repeat": 0.2})
    found = decide(of("a", rows))
    items = option(found, ITEMS)
    more = items.needed(found.half / 2)
    assert more is not None and items.half(more) <= found.half / 2 < items.half(more - 1)
    sentence = found.sentence(found.half / 2)
    assert sentence.startswith(f"{more} more items for {dollars(more * 0.02)} would narrow")
    assert "more repeats cannot get it below" in sentence
    assert "already" in found.sentence(0.9)


def test_judges_are_told_apart_where_the_interval_is_shorter_than_their_gap() -> None:
    rows = values(seeded("apart"), 20, 2, sd={"item": 0.2, "item_setup": 0.3, "repeat": 0.3})
    rows.loc[rows["setup"] == 1, "value"] += 0.05 - _gap(rows)
    found = decide(of("ab", rows, "accuracy"))
    items = option(found, ITEMS)
    more = items.needed(0.05)
    assert more is not None and more > 1 and items.half(more) <= abs(found.value)
    price = dollars(more * items.usd)
    assert found.telling_apart() == (
        f"To tell a from b apart, label about {more:,} more items "
        f"({round(more * items.calls):,} calls, {price})"
    )
    assert decide(of("a", rows, "accuracy")).telling_apart() == "", "no two judges"
    rows.loc[rows["setup"] == 1, "value"] += 5.0
    assert decide(of("ab", rows, "accuracy")).telling_apart() == "", "they are apart already"


def _gap(rows: pd.DataFrame) -> float:
    """By how much the second judge is ahead of the first."""
    means = rows.groupby("setup")["value"].mean()
    return float(means[1] - means[0])


def test_the_recommended_purchase_is_the_narrowest_for_its_price() -> None:
    rows = values(seeded("noisy"), 30, 2, sd={"item": 0.02, "repeat": 0.4})
    bought = decide(of("a", rows, "accuracy"), label_usd=5.0)
    assert "more repeats of every item" in bought.sentence()  # a label costs 5, a repeat 0.3
    assert "more items for" in decide(of("a", rows)).sentence()
