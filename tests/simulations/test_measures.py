"""Whether the intervals of agreement measures cover: two labels and five stages, rare labels too.

Raters and judge see the same latent quality with noise; 3 % of verdicts cannot be read. Items are
their own clusters, or four share a part of their quality and of the judge's error. The truth is the
measure on a large sample of the same population.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special, stats

from judge_gym.analysis.measures.confusion import (
    Floats,
    MatrixFunction,
    MeanOfRates,
    Rate,
    absolute_error,
    averaged_confusion,
    balanced,
    confusion_tables,
    exact,
    expected_loss,
    f1,
    items_by_label,
    kappa,
    macro_f1,
    precision,
    sensitivity,
    signed_bias,
    specificity,
    statistic,
    weighted_kappa,
    within_one,
)
from judge_gym.analysis.measures.jackknife import Codes
from judge_gym.analysis.measures.rank import (
    Correlation,
    mean_stage,
    rank_correlation,
    rank_interval,
)
from judge_gym.analysis.stats.intervals import (
    KAPPA,
    Estimate,
    between,
    difference,
    estimate,
    seeded,
)

PANELS = 300
POPULATION = 200_000
ITEMS = (20, 30, 60, 200)
LEAST = 0.93
"""The share of printed intervals that must cover."""
FEW = 100
"""The number of printed intervals from which their coverage is checked."""
CUTS: dict[tuple[int, float], list[float]] = {
    (2, 0.5): [0.5],
    (2, 0.2): [0.8],
    (2, 0.05): [0.95],
    (5, 0.5): [0.15, 0.35, 0.65, 0.85],
    (5, 0.2): [0.4, 0.6, 0.8, 0.93],
    (5, 0.05): [0.05, 0.1, 0.2, 0.5],
}
"""By number of stages and share of the rarest label (of five stages: how skewed they are), the
quantiles of quality between stages."""


class Panel(NamedTuple):
    """Verdicts and labels of items."""

    verdict: Floats
    label: Floats
    clusters: Codes | None

    @property
    def tables(self) -> Floats:
        return confusion_tables(self.verdict, self.label)


class World(NamedTuple):
    """A population of items with a judge and its raters."""

    stages: int
    rarest: float
    cluster_size: int
    judge_noise: float
    people_noise: float
    raters: int
    repeats: int

    def draw(self, rng: np.random.Generator, items: int) -> Panel:
        """Draws items, in clusters of equal size but for the last."""
        clusters = np.arange(items) // self.cluster_size
        shared = 0.3 if self.cluster_size > 1 else 0.0
        effect, error = rng.normal(size=(2, clusters[-1] + 1))[:, clusters]
        quality = np.sqrt(shared) * effect + np.sqrt(1 - shared) * rng.normal(size=items)
        cuts = special.ndtri(CUTS[self.stages, self.rarest])
        people = quality[:, None] + self.people_noise * rng.normal(size=(items, self.raters))
        noise = rng.normal(size=(items, self.repeats)) + np.sqrt(shared) * 0.6 * error[:, None]
        judge = quality[:, None] + self.judge_noise * noise
        ratings = np.searchsorted(cuts, people / np.hypot(1, self.people_noise))
        verdicts = np.searchsorted(cuts, judge / np.hypot(1, self.judge_noise))
        verdicts = np.where(rng.random(verdicts.shape) < 0.03, self.stages + 3, verdicts)
        return Panel(
            np.eye(self.stages + 4)[verdicts].mean(axis=1),
            np.eye(self.stages)[ratings].mean(axis=1),
            clusters if self.cluster_size > 1 else None,
        )


class Check(NamedTuple):
    """A measure: its true value in a population, and its estimate from a panel."""

    truth: Callable[[Panel], float]
    estimate: Callable[[Panel], Estimate]


def rate_check(rate: Rate) -> Check:
    def interval(panel: Panel) -> Estimate:
        above, below = rate.by_item(panel.tables)
        scale = difference(rate.high) if rate.low < 0 else between(rate.low, rate.high)
        return estimate(above, panel.clusters, scale=scale, below=below)

    return Check(lambda panel: matrix_value(rate, panel), interval)


def mean_check(mean: MeanOfRates) -> Check:
    def interval(panel: Panel) -> Estimate:
        parts = [rate.by_item(panel.tables) for rate in mean.rates]
        above, below = (np.column_stack([part[end] for part in parts]) for end in (0, 1))
        return estimate(above, panel.clusters, scale=between(0, 1), below=below)

    return Check(lambda panel: matrix_value(mean, panel), interval)


def kappa_check(measure: MatrixFunction) -> Check:
    def interval(panel: Panel) -> Estimate:
        counts = tuple(int(count) for count in items_by_label(panel.label) if count)
        sums = statistic(panel.tables, measure)._replace(labels=counts)
        return estimate(sums, panel.clusters, scale=KAPPA)

    return Check(lambda panel: matrix_value(measure, panel), interval)


def rank_check(kind: Correlation) -> Check:
    def stages(panel: Panel) -> tuple[Floats, Floats]:
        count = panel.label.shape[1]
        return mean_stage(panel.verdict, count), panel.label @ np.arange(1.0, count + 1)

    def truth(panel: Panel) -> float:
        correlate = stats.kendalltau if kind == "tau_b" else stats.spearmanr
        return float(correlate(*stages(panel), nan_policy="omit").statistic)

    def interval(panel: Panel) -> Estimate:
        return rank_interval(rank_correlation(*stages(panel), panel.clusters, kind))

    return Check(truth, interval)


def matrix_value(measure: MatrixFunction, panel: Panel) -> float:
    return float(measure(averaged_confusion(panel.tables)))


BINARY = {
    "exact": rate_check(exact(2)),
    "sensitivity": rate_check(sensitivity(1)),
    "specificity": rate_check(specificity(1)),
    "precision": rate_check(precision(2, 1)),
    "F1": rate_check(f1(2, 1)),
    "loss": rate_check(expected_loss(1, miss=5, false_alarm=1)),
    "balanced": mean_check(balanced(2)),
    "macro F1": mean_check(macro_f1(2)),
    "kappa": kappa_check(kappa),
}
ORDINAL = {
    "exact": rate_check(exact(5)),
    "within one": rate_check(within_one(5)),
    "error": rate_check(absolute_error(5)),
    "bias": rate_check(signed_bias(5)),
    "macro F1": mean_check(macro_f1(5)),
    "kappa": kappa_check(kappa),
    "weighted kappa": kappa_check(weighted_kappa),
    "tau-b": rank_check("tau_b"),
    "Spearman": rank_check("spearman"),
}


def populations(stages: int) -> Iterator[World]:
    raters, repeats = (1, 1) if stages == 2 else (3, 2)
    for rarest in (0.5, 0.2, 0.05):
        for size in (1, 4):
            for judge_noise, people_noise in ((0.8, 0.4), (0.25, 0.15)):
                yield World(stages, rarest, size, judge_noise, people_noise, raters, repeats)


def coverage(world: World, checks: dict[str, Check], items: int) -> dict[str, tuple[float, int]]:
    """The share of printed intervals that cover, and how many are printed, by measure."""
    rng = seeded("measures", *world, items)
    population = world.draw(seeded("population", *world), POPULATION)
    truths = {name: check.truth(population) for name, check in checks.items()}
    covers: dict[str, list[bool]] = {name: [] for name in checks}
    for _ in range(PANELS):
        panel = world.draw(rng, items)
        for name, check in checks.items():
            interval = check.estimate(panel)
            if interval.known:
                within = interval.low - 1e-12 <= truths[name] <= interval.high + 1e-12
                covers[name].append(within)
    return {name: (float(np.mean(hits or [True])), len(hits)) for name, hits in covers.items()}


@pytest.mark.simulation
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize(("stages", "checks"), [(2, BINARY), (5, ORDINAL)])
def test_printed_intervals_of_measures_cover(
    stages: int, checks: dict[str, Check], items: int
) -> None:
    results = {world: coverage(world, checks, items) for world in populations(stages)}
    cells = [
        (world, name, share, printed)
        for world, by_name in results.items()
        for name, (share, printed) in by_name.items()
        if printed >= FEW
    ]
    # The lowest share that 93 % coverage would give by chance, in any of the cells.
    z = -special.ndtri(0.05 / len(cells))
    low = [cell for cell in cells if cell[2] < LEAST - z * np.sqrt(LEAST * (1 - LEAST) / cell[3])]
    assert not low
    for name in checks:
        shares = [share for _, other, share, _ in cells if other == name]
        assert not shares or np.mean(shares) >= LEAST, name
