"""Polarization: how far judges' distributions on the same item lie apart.

Raw P is biased upward at few samples: identical judges do not come out at 0. Beside it stand what
chance makes of it at this n, and the squared distance, which is unbiased.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from math import log, log2
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from scipy.special import entr

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.panels import PANEL, Judged, Panel, mean_over_items, panels
from judge_gym.analysis.stats.label_permutation import Chance, chance

# --- measures of distributions (..., judges, stages) ---------------------------------------------


def divergence(shares: FloatArray) -> FloatArray:
    """The Jensen-Shannon divergence of the judges, in bits.

    >>> divergence(np.array([[1.0, 0.0], [0.0, 1.0]])).item()
    1.0
    """
    judges = shares.shape[-2]
    mixed = np.einsum("...js->...s", shares) / judges
    found: FloatArray = _entropy(mixed) - np.einsum("...j->...", _entropy(shares)) / judges
    return np.maximum(found, 0.0)


def _entropy(shares: FloatArray) -> FloatArray:
    # A product sums an axis that is this short faster than a sum does.
    bits: FloatArray = entr(shares) @ np.full(shares.shape[-1], 1 / log(2))
    return bits


def scaled_divergence(shares: FloatArray) -> FloatArray:
    """The divergence over log2 of judges or stages, whichever are fewer; not always attainable."""
    return divergence(shares) / log2(min(shares.shape[-2:]))


def lone_divergence(shares: FloatArray) -> FloatArray:
    """The divergence of each judge from the mean of the others: a value per judge."""
    judges = shares.shape[-2]
    others = (np.einsum("...js->...s", shares)[..., None, :] - shares) / (judges - 1)
    return divergence(np.stack([shares, np.maximum(others, 0.0)], axis=-2))


def wasserstein(shares: FloatArray) -> FloatArray:
    """The Wasserstein-1 distance on the scale from 0 to 1, mean over pairs of judges.

    >>> wasserstein(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])).item()
    0.5
    """
    judges, stages = shares.shape[-2:]
    ranked = np.sort(shares.cumsum(axis=-1), axis=-2)
    # In a sorted list the gaps between all pairs sum to the values, weighted by their ranks.
    weights = (2 * np.arange(judges) - judges + 1) / max(1, judges * (judges - 1) // 2)
    found: FloatArray = np.einsum("...js,j->...", ranked[..., :-1], weights) / (stages - 1)
    return found


# --- the metric ----------------------------------------------------------------------------------


_CHANCES: WeakKeyDictionary[Panel, Chance] = WeakKeyDictionary()
"""What chance makes of a panel, as long as the panel is there: it takes many draws."""


def panel_chance(panel: Panel) -> Chance:
    """P, each judge against the others and, on an ordered scale, Wasserstein-1, beside chance."""
    if panel not in _CHANCES:
        measures = {"p": scaled_divergence, "lone": lone_divergence}
        if panel.ordinal:
            measures["wasserstein"] = wasserstein
        _CHANCES[panel] = chance(panel, measures)
    return _CHANCES[panel]


def polarization(frame: Judged) -> pd.DataFrame:
    """P of each panel: raw, against chance and as the unbiased squared distance.

    `above` is raw P minus its mean under chance, item by item, with its interval over items; it is
    for this number of samples. `distance` is comparable across numbers of samples. `measures` says
    whether judges differ in their rubrics too. From five draws of rubrics on, intervals allow for
    the draws, and the distance is of what judges do over all rubrics that might have been drawn.
    """
    return pd.DataFrame([polarization_row(panel) for panel in panels(frame)])


def polarization_row(panel: Panel) -> dict[str, Any]:
    """The row of one panel."""
    items, found = int(panel.complete.sum()), panel_chance(panel)
    return {
        **panel.key,
        "measures": "judge and rubric" if panel.own_rubrics else "judge",
        "judges": len(panel.judges),
        **_against_chance(panel, panel_chance),
        "wasserstein": _mean(found.seen.get("wasserstein")),
        "wasserstein_null": _mean(found.mean.get("wasserstein")),
        **distance_columns(panel),
        "items": items,
        "dropped": len(panel.evidence) - items,
        "replicates": _replicates(panel),
        **panel.rates,
    }


def pairwise(frame: Judged) -> pd.DataFrame:
    """Every two judges of each panel: their divergence in bits against chance, and distance."""
    rows = []
    for panel in panels(frame):
        pairs = list(combinations(range(len(panel.judges)), 2))
        found = partial(chance, statistics={"p": scaled_divergence}, sharing=len(pairs))
        for place, (one, other) in enumerate(pairs):
            pair = panel.of(one, other)
            items = int(pair.complete.sum())
            rows.append(
                {
                    **panel.key,
                    "measures": "judge and rubric" if pair.own_rubrics else "judge",
                    "judge": panel.judges[one],
                    "other": panel.judges[other],
                    **_against_chance(pair, found),
                    **_distance(panel, partial(_of_pair, place)),
                    "items": items,
                    "dropped": len(panel.evidence) - items,
                    **pair.rates,
                }
            )
    return pd.DataFrame(rows)


def _of_pair(place: int, panel: Panel) -> FloatArray:
    return panel.distances[:, place]


def distance_columns(panel: Panel) -> dict[str, float]:
    """The mean squared distance over pairs of judges, with its interval over items."""
    return _distance(panel, _mean_of_pairs)


def _mean_of_pairs(panel: Panel) -> FloatArray:
    """By item, the mean over pairs; not a number where a pair has no distance, or none is there."""
    pairs = panel.distances.shape[1]
    mean: FloatArray = panel.distances.sum(axis=1) / (pairs or np.nan)
    return mean


def _distance(panel: Panel, values: Callable[[Panel], FloatArray]) -> dict[str, float]:
    found = mean_over_items(panel, values)
    if found.high > 1:  # two judges cannot lie farther apart
        found = found._replace(high=1.0)
    names = ("distance", "distance_low", "distance_high", "distance_items")
    return dict(zip(names, found, strict=True))


def above_chance(panel: Panel, found: Chance, name: str) -> FloatArray:
    """By item, how far a measure lies above chance; not a number where a judge is missing."""
    above = found.above(name)
    values = np.full((len(panel.evidence), *above.shape[1:]), np.nan)
    values[panel.complete] = above
    return values


def _against_chance(panel: Panel, of: Callable[[Panel], Chance]) -> dict[str, float]:
    found = of(panel)
    above = mean_over_items(
        panel, lambda one: above_chance(one, found if one is panel else of(one), "p")
    )
    return {
        "p": _mean(found.seen["p"]),
        "null": _mean(found.mean["p"]),
        "above": above.value,
        "low": above.low,
        "high": above.high,
        "p_value": found.p_value["p"],
        "draws": found.draws,
    }


def _mean(values: FloatArray | None) -> float:
    return float(values.mean()) if values is not None and values.size else np.nan


def _replicates(panel: Panel) -> float:
    """How many scored verdicts a cell has that has any."""
    held = panel.scored[panel.scored > 0]
    return float(held.mean()) if held.size else 0.0


# --- raw, for a first look -----------------------------------------------------------------------


def raw_polarization(frame: pd.DataFrame, by: Sequence[str] = PANEL) -> pd.DataFrame:
    """Raw P alone, per group; items on which a judge has no scored sample are dropped."""
    rows = []
    for panel in panels(frame, by):
        values = scaled_divergence(panel.shares[panel.complete])
        rows.append(
            {
                **panel.key,
                "judges": len(panel.judges),
                "p": _mean(values),
                "items": len(values),
                "dropped": len(panel.evidence) - len(values),
                "replicates": _replicates(panel),
            }
        )
    return pd.DataFrame(rows, columns=[*by, "judges", "p", "items", "dropped", "replicates"])


def divergent_pairs(frame: pd.DataFrame, by: Sequence[str] = PANEL) -> pd.DataFrame:
    """Pairs of judges per group by raw divergence, the farthest apart first."""
    rows = []
    for panel in panels(frame, by):
        for one, other in combinations(range(len(panel.judges)), 2):
            both = (panel.scored[:, [one, other]] > 0).all(axis=1)
            values = divergence(panel.shares[both][:, [one, other]])
            named = {"judge": panel.judges[one], "other": panel.judges[other]}
            rows.append({**panel.key, **named, "p": _mean(values), "items": len(values)})
    found = pd.DataFrame(rows, columns=[*by, "judge", "other", "p", "items"])
    return found[found["items"] > 0].sort_values("p", ascending=False, ignore_index=True)


def mean_divergence(pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs of judges per task, averaged over variants: opposite differences must not cancel."""
    mean = pairs.groupby(["concept", "pool", "judge", "other"])[["p"]].mean().reset_index()
    return mean.sort_values("p", ascending=False, ignore_index=True)
