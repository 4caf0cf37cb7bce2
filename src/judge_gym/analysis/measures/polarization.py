"""Polarization P: how far the judges' distributions on the same item diverge.

Raw P is biased upward with few samples: identical judges do not reach 0. So it is given beside its
expectation by chance at this number of samples, and beside the squared distance, which is unbiased.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from math import log, log2
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import entr

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.frames import without_series
from judge_gym.analysis.measures import TOO_FEW_JUDGES, Summary, note_number, panel_measure
from judge_gym.analysis.stats.intervals import ABOVE_CHANCE, Estimate
from judge_gym.analysis.stats.label_permutation import PermutationNull, permutation_null
from judge_gym.analysis.stats.paired_tests import among_known, benjamini_hochberg, holm
from judge_gym.analysis.verdicts import (
    Dataset,
    Samples,
    Verdicts,
    mean_over_items,
    once_per_slice,
    panels,
)

# --- measures of distributions (..., judges, stages) ---------------------------------------------


def divergence(shares: FloatArray) -> FloatArray:
    """Computes the Jensen-Shannon divergence of the judges, in bits.

    >>> divergence(np.array([[1.0, 0.0], [0.0, 1.0]])).item()
    1.0
    """
    judges = shares.shape[-2]
    mixed = np.einsum("...js->...s", shares) / judges
    excess: FloatArray = _entropy(mixed) - np.einsum("...j->...", _entropy(shares)) / judges
    return np.maximum(excess, 0.0)


def _entropy(shares: FloatArray) -> FloatArray:
    # One product of a flat matrix sums so short an axis faster than a sum does.
    stages = shares.shape[-1]
    bits: FloatArray = entr(shares).reshape(-1, stages) @ np.full(stages, 1 / log(2))
    return bits.reshape(shares.shape[:-1])


def scaled_divergence(shares: FloatArray) -> FloatArray:
    """Divides the divergence by log2 of judges or stages, whichever are fewer."""
    return divergence(shares) / log2(min(shares.shape[-2:]))


def lone_divergence(shares: FloatArray) -> FloatArray:
    """Computes the divergence of each judge from the mean of the others."""
    judges = shares.shape[-2]
    other_shares = (np.einsum("...js->...s", shares)[..., None, :] - shares) / (judges - 1)
    other_shares = np.maximum(other_shares, 0.0)
    # As `divergence` of both, without a copy that holds both.
    each = (_entropy(shares) + _entropy(other_shares)) / 2
    return np.maximum(_entropy((shares + other_shares) / 2) - each, 0.0)


def wasserstein(shares: FloatArray) -> FloatArray:
    """Computes the Wasserstein-1 distance from 0 to 1, mean over pairs of judges.

    >>> wasserstein(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])).item()
    0.5
    """
    judges, stages = shares.shape[-2:]
    ranked = np.sort(shares.cumsum(axis=-1), axis=-2)
    # In a sorted list, the gaps between all pairs sum to the values weighted by their ranks.
    weights = (2 * np.arange(judges) - judges + 1) / max(1, judges * (judges - 1) // 2)
    distances: FloatArray = np.einsum("...js,j->...", ranked[..., :-1], weights) / (stages - 1)
    return distances


# --- the metric ----------------------------------------------------------------------------------


@once_per_slice
def panel_null(panel: Verdicts) -> PermutationNull:
    """Computes P, each judge against the others and, for ordered stages, Wasserstein-1."""
    measures = {"p": scaled_divergence, "lone": lone_divergence}
    if panel.ordinal:
        measures["wasserstein"] = wasserstein
    return permutation_null(panel, measures)


def compared_panels(data: Dataset) -> Sequence[Verdicts]:
    """Selects the panels in which judges are compared.

    Where replicates repeat each other and a retest series exists, series are pooled: then the
    verdicts of different series are the ones that were drawn anew.
    """
    frame = data.frame
    if not frame["repeats"].any() or frame["series"].nunique() < 2:
        return data.panels
    return tuple(panels(frame.assign(variant=without_series(frame))))


def polarization(samples: Samples) -> pd.DataFrame:
    """Estimates P of each panel: raw, above chance, and as the unbiased squared distance.

    `above` is raw P minus its expectation by chance, item by item, with an interval over items; it
    holds for this number of samples. `holm` corrects the p-value over panels. `distance` is
    comparable across numbers of samples. `measures` says whether judges differ in their rubrics
    too. From five draws of rubrics on, intervals cover the draws, and the distance generalises
    beyond the rubrics drawn.
    """
    table = pd.DataFrame([_row(panel) for panel in compared_panels(Dataset.of(samples))])
    return table.assign(holm=among_known(holm, table["p_value"]))


@once_per_slice
def _row(panel: Verdicts) -> dict[str, Any]:
    items, null = int(panel.complete.sum()), panel_null(panel)
    return {
        **panel.key,
        "measures": _measures(panel),
        "judges": len(panel.setups),
        **_against_chance(panel, panel_null),
        "wasserstein": _mean(null.observed.get("wasserstein")),
        "wasserstein_null": _mean(null.expected.get("wasserstein")),
        **distance_columns(panel),
        "items": items,
        "dropped": len(panel.units) - items,
        "replicates": _replicates(panel),
        **panel.rates,
    }


@panel_measure("polarization", order=1)
def _summary(data: Dataset, panel: Verdicts) -> Summary:
    """Summarises P above chance, with raw P in the note."""
    row = _row(panel)
    excess = Estimate(row["above"], row["low"], row["high"], row["items"])
    if not row["items"]:
        return Summary(excess, TOO_FEW_JUDGES)
    tested = "one verdict per cell cannot be compared with chance"
    if row["draws"]:
        tested = f"p {row['p_value']:.3f} ({row['draws']} draws)"
    note = (
        f"above chance at {row['replicates']:.1f} samples per cell; raw P {row['p']:.3f}, "
        f"{tested}; squared distance {note_number(row['distance'])}; "
        f"measures {row['measures']}; {row['dropped']} items dropped"
    )
    return Summary(excess, note)


def pairwise(samples: Samples) -> pd.DataFrame:
    """Estimates P against chance and the distance of every two judges of each panel."""
    rows = []
    for panel in compared_panels(Dataset.of(samples)):
        pairs = list(combinations(range(len(panel.setups)), 2))
        null = partial(permutation_null, statistics={"p": scaled_divergence}, panels=len(pairs))
        for number, (first, other) in enumerate(pairs):
            pair = panel.of(first, other)
            items = int(pair.complete.sum())
            rows.append(
                {
                    **panel.key,
                    "measures": _measures(pair),
                    "judge": panel.setups[first],
                    "other": panel.setups[other],
                    **_against_chance(pair, null),
                    **_distance(panel, partial(_of_pair, number)),
                    "items": items,
                    "dropped": len(panel.units) - items,
                    **pair.rates,
                }
            )
    table = pd.DataFrame(rows)
    return table.assign(q=among_known(benjamini_hochberg, table["p_value"])) if rows else table


def _measures(panel: Verdicts) -> str:
    return "judge and rubric" if panel.own_rubrics else "judge"


def _of_pair(place: int, panel: Verdicts) -> FloatArray:
    return panel.distances[:, place]


def distance_columns(panel: Verdicts) -> dict[str, float]:
    """Averages the squared distance over pairs of judges, with its interval over items."""
    return _distance(panel, _mean_of_pairs)


def _mean_of_pairs(panel: Verdicts) -> FloatArray:
    """Averages over pairs by item, NaN if a pair has no distance."""
    pairs = panel.distances.shape[1]
    mean: FloatArray = panel.distances.sum(axis=1) / (pairs or np.nan)
    return mean


def _distance(panel: Verdicts, values: Callable[[Verdicts], FloatArray]) -> dict[str, float]:
    mean = mean_over_items(panel, values)
    return {**mean.columns("distance"), "distance_items": mean.n}


def excess_by_item(panel: Verdicts, null: PermutationNull, name: str) -> FloatArray:
    """Computes by item how far a measure lies above chance, NaN if a judge has no score."""
    above = null.excess(name)
    values = np.full((len(panel.units), *above.shape[1:]), np.nan)
    values[panel.complete] = above
    return values


def _against_chance(
    panel: Verdicts, null_of: Callable[[Verdicts], PermutationNull]
) -> dict[str, float]:
    null = null_of(panel)
    above = mean_over_items(
        panel,
        lambda one: excess_by_item(one, null if one is panel else null_of(one), "p"),
        ABOVE_CHANCE,
    )
    return {
        "p": _mean(null.observed["p"]),
        "null": _mean(null.expected["p"]),
        **above.named("above", "low", "high"),
        "p_value": null.p_value["p"],
        "draws": null.draws,
    }


def _mean(values: FloatArray | None) -> float:
    return float(values.mean()) if values is not None and values.size else np.nan


def _replicates(panel: Verdicts) -> float:
    """Averages the number of scored verdicts over the cells that have any."""
    counts = panel.scored[panel.scored > 0]
    return float(counts.mean()) if counts.size else 0.0


def divergent_pairs(frame: pd.DataFrame) -> pd.DataFrame:
    """Ranks the pairs of judges of each task by raw divergence in bits, the largest first.

    The divergence is averaged over variants, because opposite differences must not cancel.
    """
    rows = []
    for panel in panels(frame, ["concept", "pool", "variant"]):
        for first, other in combinations(range(len(panel.setups)), 2):
            both = (panel.scored[:, [first, other]] > 0).all(axis=1)
            names = {"judge": panel.setups[first], "other": panel.setups[other]}
            p = _mean(divergence(panel.shares[both][:, [first, other]]))
            rows.append({**panel.key, **names, "p": p})
    by = ["concept", "pool", "judge", "other"]
    table = pd.DataFrame(rows, columns=[*by, "p"]).dropna(subset="p")
    mean = table.groupby(by)[["p"]].mean().reset_index()
    return mean.sort_values("p", ascending=False, ignore_index=True)
