"""Variance components against published examples, statsmodels, mean squares and known truth."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

from judge_gym.analysis.planning.components import (
    COMPONENTS,
    Component,
    Components,
    Crossing,
    Size,
    components,
)
from judge_gym.analysis.stats.intervals import seeded
from tables import each_row

BRENNAN = """
5 6 5 5 5 3 4 5 6 7 3 3
9 3 7 7 7 5 5 5 7 7 5 2
3 4 3 3 5 3 3 5 6 5 1 6
7 5 5 3 3 1 4 3 5 3 3 5
9 2 9 7 7 7 3 7 2 7 5 3
3 4 3 5 3 3 6 3 4 5 1 2
7 3 7 7 7 5 5 7 5 5 5 4
5 8 5 7 7 5 5 4 3 2 1 1
9 9 8 8 6 6 6 5 5 8 1 1
4 4 4 3 3 5 6 5 5 7 1 1
"""
"""Synthetic data set 4 of Brennan (2001, table 3.2): persons by 3 tasks with 4 raters each."""
SHROUT = "9 2 5 8\n6 1 3 2\n8 4 6 8\n7 1 2 6\n10 5 6 9\n6 2 4 7"
"""Shrout and Fleiss (1979, table 2): 6 targets by 4 judges."""


def long(values: np.ndarray, **codes: Any) -> pd.DataFrame:
    """Rows of values by item and column, with codes of the columns."""
    item, column = (axis.ravel() for axis in np.indices(values.shape))
    rows = pd.DataFrame({"unit": item, "cluster": item, "value": values.ravel()})
    return rows.assign(**{name: np.asarray(code)[column] for name, code in codes.items()})


def table_of(text: str) -> np.ndarray:
    return np.array([line.split() for line in text.strip().splitlines()], dtype=float)


def world(
    rng: np.random.Generator,
    clusters: int = 20,
    each: int = 2,
    setups: int = 2,
    draws: int = 1,
    repeats: int = 2,
    kept: float = 1.0,
    *,
    sd: Mapping[str, float],
) -> pd.DataFrame:
    """Normal verdicts with known standard deviations of effects; each setup has its own author."""
    items = clusters * each
    shape = (items, setups, draws, repeats)
    item, setup, draw, _ = (axis.ravel() for axis in np.indices(shape))

    def effect(name: str, *size: int) -> np.ndarray:
        return rng.normal(0.0, sd.get(name, 0.0), size)

    value = (
        setup / 10
        + effect("cluster", clusters)[item // each]
        + effect("item", items)[item]
        + effect("item_setup", items, setups)[item, setup]
        + effect("draw", setups, draws)[setup, draw]
        + effect("item_draw", items, setups, draws)[item, setup, draw]
        + effect("repeat", len(item))
    )
    rows = pd.DataFrame({"unit": item, "cluster": item // each, "setup": setup, "value": value})
    rows = rows.assign(author=setup, draw=draw)
    return rows[rng.random(len(rows)) < kept]


def variances(rows: pd.DataFrame) -> dict[str, float]:
    found = components(Crossing.of(rows), intervals=False)
    return {name: one.variance for name, one in found.items() if one.known}


# --- estimates -----------------------------------------------------------------------------------


def test_components_of_brennans_persons_by_raters_within_tasks() -> None:
    tasks = np.repeat([0, 1, 2], 4)
    rows = long(table_of(BRENNAN), setup=tasks, author=tasks, draw=np.arange(12))
    published = {"item": 0.4731, "draw": 0.6475, "item x setup": 0.5596, "item x draw": 2.3802}
    assert variances(rows) == pytest.approx(published, abs=2e-4)


def test_components_of_shrout_and_fleiss_give_their_intraclass_correlation() -> None:
    rows = long(table_of(SHROUT), setup=np.arange(4), author=np.zeros(4), draw=np.zeros(4))
    found = variances(rows)
    assert found["item"] / (found["item"] + found["item x setup"]) == pytest.approx(0.71, abs=0.005)
    mean_squares = {"item": (11.24 - 1.02) / 4, "item x setup": 1.02}
    assert found == pytest.approx(mean_squares, abs=0.01)


@each_row("each", [1, 3])
def test_unbalanced_components_are_those_of_statsmodels(each: int) -> None:
    rng = seeded("mixed", each)
    rows = world(
        rng,
        12,
        each,
        2,
        1,
        3,
        0.8,
        sd={"cluster": 0.5, "item": 0.4, "item_setup": 0.4, "repeat": 0.3},
    )
    found = variances(rows)
    units = {"item": rows["unit"], "item x setup": rows["unit"] * 2 + rows["setup"]}
    named = rows.assign(**units)
    group = "cluster" if each > 1 else "item"
    inner = [name for name in units if name != group]
    formula = {name: f"0 + C(Q('{name}'))" for name in inner}
    fitted = MixedLM.from_formula(
        "value ~ 0 + C(setup)", groups=group, vc_formula=formula, re_formula="1", data=named
    ).fit(reml=True, method=["lbfgs"])
    theirs = dict(zip(sorted(inner), fitted.vcomp, strict=True))
    theirs |= {group: float(fitted.cov_re.iloc[0, 0]), "repeat": fitted.scale}
    assert found == pytest.approx(theirs, rel=0.02)


def test_balanced_components_are_those_of_mean_squares() -> None:
    """One setup, six draws, three repeats: the crossed two-way analysis of variance."""
    rng = seeded("mean squares")
    rows = world(
        rng, 15, 1, 1, 6, 3, sd={"item": 0.4, "draw": 0.3, "item_draw": 0.3, "repeat": 0.5}
    )
    y = rows["value"].to_numpy().reshape(15, 6, 3)
    cells, items, draws, all_ = y.mean(2), y.mean((1, 2)), y.mean((0, 2)), y.mean()
    ms_item = 18 * ((items - all_) ** 2).sum() / 14
    ms_draw = 45 * ((draws - all_) ** 2).sum() / 5
    rest = cells - items[:, None] - draws + all_
    ms_both = 3 * (rest**2).sum() / 70
    ms_repeat = ((y - cells[..., None]) ** 2).sum() / 180
    expected = {
        "item": (ms_item - ms_both) / 18,
        "draw": (ms_draw - ms_both) / 45,
        "item x draw": (ms_both - ms_repeat) / 3,
        "repeat": ms_repeat,
    }
    assert min(expected.values()) > 0
    assert variances(rows) == pytest.approx(expected, rel=1e-3)


def test_known_components_are_found_in_unbalanced_data_with_clusters_and_draws() -> None:
    rng = seeded("truth")
    sd = {"cluster": 0.3, "item": 0.4, "draw": 0.3, "item_setup": 0.3, "item_draw": 0.2}
    worlds = [world(rng, 25, 2, 2, 5, 2, 0.9, sd={**sd, "repeat": 0.5}) for _ in range(12)]
    found = pd.DataFrame([variances(one) for one in worlds])
    truth = {name.replace("_", " x "): size**2 for name, size in sd.items()} | {"repeat": 0.25}
    error = found.std() / np.sqrt(len(found))
    assert set(found) == set(truth)
    for name, value in truth.items():
        assert abs(found[name].mean() - value) < 4 * error[name]


def test_many_setups_are_estimated_from_a_draw_of_them() -> None:
    rows = world(
        seeded("many"), 60, 1, 80, 1, 2, sd={"item": 0.4, "item_setup": 0.3, "repeat": 0.2}
    )
    expected = {"item": 0.16, "item x setup": 0.09, "repeat": 0.04}
    assert variances(rows) == pytest.approx(expected, rel=0.4)


def test_the_variance_of_a_mean_is_that_of_simulated_studies() -> None:
    """Clusters, items, their draws and repeats: the formula that all planning rests on."""
    rng = seeded("means")
    sd = {"cluster": 0.3, "item": 0.4, "item_draw": 0.8, "repeat": 0.5}
    means = [world(rng, 10, 2, 1, 3, 2, sd=sd)["value"].mean() for _ in range(600)]
    known = Components(item=0.16, repeat=0.25, cluster=0.09, item_draw=0.64)
    expected = known.variance(Size(items=20, clusters=10, repeats=2, draws=3))
    # The variance of 600 normal means has a standard error of 6 %.
    assert np.var(means) == pytest.approx(expected, rel=0.25)


# --- what cannot be estimated --------------------------------------------------------------------


@each_row(
    "shape, confounded",
    [
        ({"each": 1}, {"cluster": "item", "draw": "setup", "item x draw": "item x setup"}),
        ({"clusters": 4, "each": 5}, {"cluster": "item"}),
        ({"repeats": 1}, {"repeat": "item x setup"}),
        ({"setups": 1}, {"item x setup": "item", "item x draw": "item"}),
        ({"setups": 1, "repeats": 1}, {"item x setup": "item", "repeat": "item"}),
        ({"draws": 5, "repeats": 1, "each": 1}, {"repeat": "item x draw"}),
        ({"draws": 2}, {"draw": "setup", "item x draw": "item x setup"}),
    ],
)
def test_what_cannot_be_told_apart_is_named(
    shape: dict[str, int], confounded: dict[str, str]
) -> None:
    rows = world(seeded("confounded"), **shape, sd={"item": 0.4, "item_setup": 0.3, "repeat": 0.3})
    found = components(Crossing.of(rows), intervals=False)
    assert {*found} == {*COMPONENTS}
    for name, other in confounded.items():
        assert np.isnan(found[name].variance)
        assert found[name].note == f"not estimable, confounded with {other}"


def test_a_shared_rubric_confounds_items_with_its_draw() -> None:
    rows = world(
        seeded("shared"), each=1, setups=3, sd={"item": 0.4, "item_setup": 0.3, "repeat": 0.3}
    )
    found = components(Crossing.of(rows.assign(author="provided")), intervals=False)
    assert found["item x draw"].note == "not estimable, confounded with item"


def test_repeats_that_never_differ_have_no_variance() -> None:
    rows = world(seeded("cached"), each=1, sd={"item": 0.4, "item_setup": 0.3})
    found = components(Crossing.of(rows), intervals=False)
    assert (found["repeat"].variance, found["repeat"].note) == (0.0, "repeats never differ")
    assert found["item x setup"].variance > 0


def test_four_items_are_too_few() -> None:
    found = components(Crossing.of(world(seeded("few"), 4, 1, sd={"item": 0.4, "repeat": 0.3})))
    assert not any(one.known for one in found.values())
    assert found["item"].note == "not estimable: 4 items, 5 are needed"


# --- intervals -----------------------------------------------------------------------------------


def test_intervals_are_withheld_below_twenty_clusters_and_at_zero() -> None:
    rows = world(seeded("nineteen"), 19, 1, sd={"item": 0.4, "item_setup": 0.3, "repeat": 0.3})
    few = components(Crossing.of(rows))["item"]
    assert few.known and np.isnan(few.low)
    assert few.note == "no interval: 19 clusters, 20 are needed"
    rows = world(seeded("none"), 30, 1, sd={"item": 0.4, "item_setup": 0.0, "repeat": 0.5})
    found = components(Crossing.of(rows))
    assert found["item x setup"].note == "no interval: not clearly above 0"
    assert found["item"].low < 0.16 < found["item"].high


def covers(one: Component, truth: float) -> bool:
    return bool(one.low <= truth <= one.high)


@pytest.mark.simulation
def test_intervals_cover_components_at_twenty_clusters() -> None:
    """Stages of four, as judges give them; the truth is that of many more items."""
    rng = seeded("coverage")
    sd = {"item": 1.0, "item_setup": 0.6, "repeat": 0.7}

    def stages(clusters: int) -> pd.DataFrame:
        rows = world(rng, clusters, 1, 3, 1, 3, sd=sd)
        return rows.assign(value=np.clip(np.round(rows["value"] + 1.5), 0, 3) / 3)

    truth = variances(stages(20_000))
    found = [components(Crossing.of(stages(20))) for _ in range(300)]
    for name, value in truth.items():
        known = [one[name] for one in found if np.isfinite(one[name].low)]
        assert len(known) > 0.9 * len(found)
        # At 93 % coverage, 300 panels fall below this by chance in 1 of 1,000 runs.
        assert np.mean([covers(one, value) for one in known]) > 0.93 - 3.1 * 0.0147
