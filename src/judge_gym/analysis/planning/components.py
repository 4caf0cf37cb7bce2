"""Where the variance of verdicts comes from: a generalizability study (Brennan 2001).

Setups (a judge under a design) are fixed. Clusters, items within clusters and draws of rubrics
within authors are random, and so are the interactions of items with setups and with draws; what
is left is the variance between repeats. Components are estimated by restricted maximum likelihood.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from judge_gym.analysis.belief.masses import IntArray
from judge_gym.analysis.frames import first_rows
from judge_gym.analysis.stats.intervals import (
    MANY_DRAWS,
    TAILS,
    Floats,
    seeded,
    t_quantile,
    undefined,
)
from judge_gym.records.numbers import plural

CLUSTER, ITEM, DRAW, REPEAT = "cluster", "item", "draw", "repeat"
ITEM_SETUP, ITEM_DRAW = "item x setup", "item x draw"
COMPONENTS = (CLUSTER, ITEM, DRAW, ITEM_SETUP, ITEM_DRAW, REPEAT)
MIN_LEVELS = 5
"""The number of levels from which the variance of a facet can be estimated."""
MIN_CLUSTERS = 20
"""The number of clusters from which an interval covers a component in 93 % of studies."""
GROUPS = 40
"""The largest number of groups of clusters that the jackknife leaves out in turn."""
WIDEST = 100
"""A component whose interval reaches further than to this multiple is not clearly above 0."""
MOST_CELLS, LARGEST = 48, 1 << 21
"""The largest number of cells and work of a likelihood; beyond it, setups and items are drawn."""
STEP, LONGEST, STEPS = 1e-3, 2.0, 40
"""The difference for derivatives, the longest step on the scale of logarithms, and how many."""
SMALLEST = -16.0
"""The least logarithm of a component in proportion to repeats; near it, it is taken for 0."""
TINY = 1e-24
"""The least sum of squares: values that do not differ have no logarithm of it."""


class Component(NamedTuple):
    """A variance component. Without a value, the note says with what it is confounded."""

    name: str
    variance: float
    low: float
    high: float
    levels: int
    note: str = ""

    @property
    def known(self) -> bool:
        """Whether the component could be estimated."""
        return bool(np.isfinite(self.variance))


class Size(NamedTuple):
    """How much a study has, or plans to ask, of what a quantity is measured on."""

    items: float
    clusters: float
    repeats: float
    draws: float = 1
    concepts: int = 0
    """The number of concepts in each of two arms, for a test over concepts."""
    arms: int = 1


class Components(NamedTuple):
    """The variances that the error of a mean is made of, 0 where none is known."""

    item: float = 0.0
    repeat: float = 0.0
    cluster: float = 0.0
    concept: float = 0.0
    draw: float = 0.0
    item_draw: float = 0.0
    """Of an item under one setup's rubric: what the item's other draws do not share."""
    source: str = "default"

    @staticmethod
    def of(estimates: Mapping[str, Component], source: str = "") -> "Components":
        """Takes the components that could be estimated."""
        variance = {
            name: component.variance if component.known else 0.0
            for name, component in estimates.items()
        }
        return Components(
            item=variance[ITEM],
            repeat=variance[REPEAT],
            cluster=variance[CLUSTER],
            draw=variance[DRAW],
            item_draw=variance[ITEM_DRAW] + variance[ITEM_SETUP],
            source=source,
        )

    def variance(self, size: Size) -> float:
        """Predicts the variance of a mean of so much data (of one arm), for the draws it has."""
        each = self.item + self.item_draw / size.draws + self.repeat / (size.draws * size.repeats)
        between = self.cluster / size.clusters
        between += self.concept / size.concepts if size.concepts else 0.0
        return between + max(each, 0.0) / size.items


@dataclass(frozen=True, eq=False)
class Crossing:
    """Values by item and cell (a setup under a draw of its rubric), as means over repeats."""

    mean: Floats
    """By item and cell; 0 where there is no value."""
    count: Floats
    """The number of repeats, by item and cell."""
    squares: Floats
    """The sum of squares between repeats, by item and cell."""
    cluster: IntArray
    """The cluster of each item."""
    setup: IntArray
    """The setup of each cell."""
    author: IntArray
    """The author of each cell's rubric."""
    draw: IntArray
    """The rubric of each cell: a draw within an author."""

    @staticmethod
    def of(verdicts: pd.DataFrame) -> "Crossing":
        """Crosses the verdicts of a measurement: unit, cluster, setup, author, draw, value."""
        names = ["setup", "author", "draw"]
        groups = verdicts.groupby(names, sort=True, observed=True)
        cell = np.asarray(groups.ngroup(), dtype=np.intp)
        item = np.asarray(pd.factorize(verdicts["unit"], sort=True)[0], dtype=np.intp)
        shape = int(item.max()) + 1, groups.ngroups
        index, size = item * shape[1] + cell, shape[0] * shape[1]
        values = verdicts["value"].to_numpy(dtype=float)
        count = np.bincount(index, minlength=size).astype(float)
        mean = np.bincount(index, values, size) / np.maximum(count, 1)
        squares = np.bincount(index, (values - mean[index]) ** 2, size).astype(float)
        cells = verdicts[names].iloc[first_rows(cell)].reset_index(drop=True)
        return Crossing(
            mean.reshape(shape),
            count.reshape(shape),
            squares.reshape(shape),
            _numbers(verdicts["cluster"].iloc[first_rows(item)]),
            _numbers(cells["setup"]),
            _numbers(cells["author"]),
            cells.groupby(["author", "draw"]).ngroup().to_numpy().astype(np.int64),
        )

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return len(np.unique(self.cluster))

    @property
    def repeats(self) -> float:
        """The mean number of repeats of an item and cell that has any."""
        return float(self.count[self.count > 0].mean())

    @property
    def draws(self) -> int:
        """The largest number of draws of one author."""
        pairs = np.unique(np.stack([self.author, self.draw]), axis=1)
        return int(np.bincount(pairs[0]).max())

    def on(self, items: Any) -> "Crossing":
        """Selects items."""
        parts = {name: getattr(self, name)[items] for name in ("mean", "count", "squares")}
        return replace(self, cluster=self.cluster[items], **parts)

    def under(self, cells: Any) -> "Crossing":
        """Selects cells, and the items that have any of them."""
        parts = {name: getattr(self, name)[cells] for name in ("setup", "author", "draw")}
        parts |= {name: getattr(self, name)[:, cells] for name in ("mean", "count", "squares")}
        part = replace(self, **parts)
        return part.on(part.count.any(axis=1))

    @property
    def as_single_repeats(self) -> "Crossing":
        """The crossing with its means as single values, where repeats never differ."""
        return replace(self, count=(self.count > 0).astype(float))


def _numbers(names: pd.Series) -> IntArray:
    return pd.factorize(names)[0].astype(np.int64)


class Likelihood:
    """The restricted likelihood of components, in proportion to the variance between repeats.

    The means of cells are fixed effects. Items are independent given their clusters, and items
    that have the same numbers of repeats share a covariance.
    """

    def __init__(self, values: Crossing, kernels: Sequence[Floats], clustered: bool) -> None:
        used = values.count.any(axis=0)
        self._kernels = [kernel[np.ix_(used, used)] for kernel in kernels]
        count, mean = values.count[:, used], values.mean[:, used]
        weights, pattern = np.unique(count, axis=0, return_inverse=True)
        self._pattern = pattern.ravel()  # numpy 2.0 returns a column
        self._roots = np.sqrt(weights)
        self._n = np.bincount(self._pattern)
        parts = [mean[self._pattern == pattern] for pattern in range(len(weights))]
        self._sums = np.stack([part.sum(axis=0) for part in parts])
        self._products = np.stack([part.T @ part for part in parts])
        self._mean, self._cluster = mean, values.cluster if clustered else None
        self._within = float(values.squares.sum())
        spare, between = int((count - 1).clip(0).sum()), float(mean[count > 0].var())
        repeat = self._within / spare if spare and self._within else between
        self._start = float(np.clip(np.log(max(between, TINY) / max(repeat, TINY)), -2.0, 16.0))
        self.freedom = int(count.sum()) - count.shape[1]
        """The number of values less that of fixed effects."""
        self.fixed: Floats = np.empty(0)
        self.error: Floats = np.empty(0)
        """The means of cells and their covariance, at the last components."""
        self.scale = np.nan
        """The variance between repeats, at the last components."""

    def __call__(self, logs: Floats) -> float:
        """Returns minus twice the logarithm of the likelihood, less a constant."""
        ratios = np.exp(logs)
        spread = sum(
            (ratio * kernel for ratio, kernel in zip(ratios, self._kernels, strict=False)),
            start=np.zeros((self._roots.shape[1],) * 2),
        )
        roots = self._roots[:, :, None]
        shape = np.eye(self._roots.shape[1]) + roots * spread * self._roots[:, None, :]
        inverse = roots * np.linalg.inv(shape) * self._roots[:, None, :]
        logdet = float(self._n @ np.linalg.slogdet(shape)[1])
        q = np.einsum("g,gij->ij", self._n, inverse)
        b = np.einsum("gij,gj->i", inverse, self._sums)
        yy = float(np.einsum("gij,gij->", inverse, self._products))
        if self._cluster is not None:
            totals = inverse.sum(axis=2)[self._pattern]
            t = _sums(totals, self._cluster)
            s = t.sum(axis=1)
            r = np.bincount(self._cluster, (totals * self._mean).sum(axis=1))
            gain = ratios[-1] / (1 + ratios[-1] * s)
            q = q - (t * gain[:, None]).T @ t
            b = b - t.T @ (gain * r)
            yy -= float(gain @ r**2)
            logdet += float(np.log1p(ratios[-1] * s).sum())
        self.fixed = np.linalg.solve(q, b)
        rest = max(yy - float(b @ self.fixed) + self._within, TINY)
        self.scale = rest / self.freedom
        self.error = self.scale * np.linalg.inv(q)
        return float(logdet + np.linalg.slogdet(q)[1] + self.freedom * np.log(rest))

    def maximise(self, count: int, start: Floats | None = None) -> Floats:
        """Returns the most likely components: the given number, and the variance of repeats.

        Newton's method on the scale of logarithms; steps are limited, because the likelihood is
        flat where a component is nearly 0.
        """
        logs = np.full(count, self._start - np.log(max(count, 1))) if start is None else start
        best = self(logs)
        for _ in range(STEPS if count else 0):
            gradient, curvature = self._derivatives(logs, best)
            values, vectors = np.linalg.eigh(curvature)
            step = -vectors @ (vectors.T @ gradient / np.maximum(np.abs(values), 1e-3))
            step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-12))
            value = self(logs + step)
            while value > best and np.abs(step).max() > 1e-6:
                step /= 4
                value = self(logs + step)
            if best - value < 1e-7:
                break
            logs, best = np.maximum(logs + step, SMALLEST), value
        self(logs)
        ratios = np.exp(logs)
        positive = logs > SMALLEST + 3 + max(0.0, float(logs.max(initial=0.0)))
        return np.array([*np.where(positive, ratios * self.scale, 0.0), self.scale])

    def _derivatives(self, logs: Floats, value: float) -> tuple[Floats, Floats]:
        """Returns the gradient and the curvature, by differences."""
        steps = STEP * np.eye(len(logs))
        up, down = (np.array([self(logs + sign * step) for step in steps]) for sign in (1, -1))
        curvature = np.diag((up - 2 * value + down) / STEP**2)
        for i, j in combinations(range(len(logs)), 2):
            both = self(logs + steps[i] + steps[j])
            curvature[i, j] = curvature[j, i] = (both - up[i] - up[j] + value) / STEP**2
        return (up - down) / (2 * STEP), curvature


def _sums(values: Floats, code: IntArray) -> Floats:
    """Returns the sums of rows by group."""
    sums = np.zeros((int(code.max()) + 1, values.shape[1]))
    np.add.at(sums, code, values)
    return sums


class Model(NamedTuple):
    """The components that values can tell apart, and what is confounded with what."""

    values: Crossing
    kernels: dict[str, Floats]
    """Which cells of an item share an effect, by component."""
    last: str
    """The component that has an effect of its own for each value."""
    confounded: dict[str, str]
    clustered: bool

    @property
    def names(self) -> list[str]:
        """The components of a likelihood, in its order."""
        return [*self.kernels, *([CLUSTER] if self.clustered else []), self.last]

    def fit(self, start: Floats | None = None) -> tuple[Floats, Likelihood]:
        """Returns the most likely components, and their likelihood."""
        likelihood = Likelihood(self.values, list(self.kernels.values()), self.clustered)
        return likelihood.maximise(len(self.names) - 1, start), likelihood


def model(values: Crossing) -> Model:
    """Returns which components can be told apart in values."""
    repeated = bool((values.count > 1).any() and values.squares.any())
    if not repeated:
        values = values.as_single_repeats
    many = _many_draws(values)
    cell = np.arange(len(values.setup))
    kernels = {
        ITEM: np.ones((len(cell),) * 2),
        ITEM_SETUP: _same(values.setup) * (1.0 if many else _same(values.draw)),
        ITEM_DRAW: _same(values.draw),
    }
    observed = (values.count > 0).astype(float)
    together = (observed.T @ observed) > 0
    last, basis = REPEAT, {}
    if not repeated:
        single = [name for name in kernels if not (kernels[name] != np.eye(len(cell))).any()]
        last = single[0] if single else REPEAT
        basis = {last: np.eye(len(cell))}
    confounded = {REPEAT: last} if last != REPEAT else {}
    for name, kernel in kernels.items():
        if name == last:
            continue
        other = _spanned(kernel[together], {k: v[together] for k, v in basis.items()})
        if name == ITEM_DRAW and not many:
            other = other or confounded.get(ITEM_SETUP, ITEM_SETUP)
        if other:
            confounded[name] = other
        else:
            basis[name] = kernel
    clusters = values.clusters
    if clusters < MIN_LEVELS or clusters == len(values.cluster):
        confounded[CLUSTER] = ITEM
    if not many:
        confounded[DRAW] = "setup"
    kernels = {name: kernel for name, kernel in basis.items() if name != last}
    return Model(values, kernels, last, confounded, CLUSTER not in confounded)


def _same(code: IntArray) -> Floats:
    return np.asarray(code[:, None] == code, dtype=float)


def _many_draws(values: Crossing) -> bool:
    """Whether draws within authors have as many degrees of freedom as five draws of one author."""
    pairs = np.unique(np.stack([values.author, values.draw]), axis=1)
    return int((np.bincount(pairs[0]) - 1).clip(0).sum()) >= MANY_DRAWS - 1


def _spanned(kernel: Floats, basis: dict[str, Floats]) -> str:
    """Finds the component of which a kernel is a combination, empty if it is none."""
    if not basis:
        return ""
    columns = np.stack(list(basis.values()), axis=1)
    weights = np.linalg.lstsq(columns, kernel, rcond=None)[0]
    if np.abs(columns @ weights - kernel).max() > 1e-9:
        return ""
    return [*basis][int(np.abs(weights).argmax())]


def components(values: Crossing, *, intervals: bool = True) -> dict[str, Component]:
    """Returns every variance component, by name.

    Intervals are by the jackknife over clusters, on the scale of logarithms, and that of draws by
    Satterthwaite's approximation. They are withheld below 20 clusters, and where a component is
    not clearly above 0.
    """
    levels = _levels(values)
    if levels[ITEM] < MIN_LEVELS:
        note = f"not estimable: {levels[ITEM]} items, {MIN_LEVELS} are needed"
        return {name: Component(name, *undefined()[:3], levels[name], note) for name in COMPONENTS}
    fitted = model(_sample(values))
    estimates, likelihood = fitted.fit()
    ends, reason = {}, ""
    if intervals and values.clusters >= MIN_CLUSTERS:
        ends = _jackknife(fitted, estimates)
        reason = "no interval: not clearly above 0"
    elif intervals:
        reason = f"no interval: {plural(values.clusters, 'cluster')}, {MIN_CLUSTERS} are needed"
    table = {}
    for name in COMPONENTS:
        if name in fitted.confounded:
            why = f"not estimable, confounded with {fitted.confounded[name]}"
            table[name] = Component(name, *undefined()[:3], levels[name], why)
        elif name == DRAW:
            table[name] = _draw_component(fitted.values, likelihood, levels[name])
        else:
            value = float(estimates[fitted.names.index(name)])
            low, high = ends.get(name, (np.nan, np.nan))
            note = "" if np.isfinite(low) else reason
            table[name] = Component(name, value, low, high, levels[name], note)
    if fitted.confounded.get(REPEAT) and (values.count > 1).any():
        # Repeats were asked for and never differed: that is an estimate.
        note = "repeats never differ"
        table[REPEAT] = Component(REPEAT, 0.0, np.nan, np.nan, levels[REPEAT], note)
    return table


def _levels(values: Crossing) -> dict[str, int]:
    """Returns the number of levels of each component's effect."""
    observed = values.count > 0
    pairs = [
        np.unique(np.nonzero(observed)[0] * (code.max() + 1) + code[np.nonzero(observed)[1]])
        for code in (values.setup, values.draw)
    ]
    return {
        CLUSTER: values.clusters,
        ITEM: len(values.mean),
        DRAW: len(np.unique(values.draw)),
        ITEM_SETUP: len(pairs[0]),
        ITEM_DRAW: len(pairs[1]),
        REPEAT: int(values.count.sum()),
    }


def _sample(values: Crossing) -> Crossing:
    """Draws a sample of setups and clusters, if the likelihood of all would take too long."""
    cells = len(values.setup)
    if cells > MOST_CELLS:
        setups = np.unique(values.setup)
        count = max(2, len(setups) * MOST_CELLS // cells)
        sample = seeded("setups", len(setups)).permutation(setups)[:count]
        values = values.under(np.isin(values.setup, sample))
    work = len(np.unique(values.count, axis=0)) * len(values.setup) ** 3
    if work > LARGEST:
        clusters = np.unique(values.cluster)
        count = max(GROUPS, int(len(clusters) * LARGEST / work))
        sample = seeded("clusters", len(clusters)).permutation(clusters)[:count]
        values = values.on(np.isin(values.cluster, sample))
    return values


def _jackknife(fitted: Model, estimates: Floats) -> dict[str, tuple[float, float]]:
    """Returns the interval of each component that stays above 0 whatever clusters are left out."""
    values = fitted.values
    clusters = np.unique(values.cluster)
    groups = min(GROUPS, len(clusters))
    order = seeded("jackknife", len(clusters)).permutation(len(clusters)) % groups
    group = order[np.searchsorted(clusters, values.cluster)]
    start = np.log(np.maximum(estimates[:-1] / estimates[-1], np.exp(SMALLEST)))
    without = []
    for index in range(groups):
        part = fitted._replace(values=values.on(group != index))
        without.append(part.fit(start)[0])
    table = np.stack(without)
    intervals = {}
    for index, name in enumerate(fitted.names):
        if estimates[index] > 0 and (table[:, index] > 0).all():
            logs = np.log(table[:, index])
            error = float(np.sqrt((groups - 1) * logs.var()))
            # With t of groups - 1, 1,000 panels of 20 clusters covered 92.6 %: values are skewed.
            reach = np.exp(float(t_quantile(groups / 2)) * error)
            if reach < WIDEST:
                intervals[name] = float(estimates[index] / reach), float(estimates[index] * reach)
    return intervals


def _draw_component(values: Crossing, likelihood: Likelihood, levels: int) -> Component:
    """Returns the variance between draws within authors, from the means of cells."""
    used = values.count.any(axis=0)
    setup, same = values.setup[used], _same(values.draw[used])
    same_setup = _same(setup)
    centred = np.eye(len(setup)) - same_setup / same_setup.sum(axis=1, keepdims=True)
    share = float(np.trace(centred @ same @ centred))
    noise = centred @ likelihood.error @ centred
    total = float(likelihood.fixed @ centred @ likelihood.fixed)
    variance = max(0.0, (total - float(np.trace(noise))) / share)
    spread = variance * (centred @ same @ centred) + noise
    freedom = float(np.trace(spread)) ** 2 / float((spread * spread).sum())
    ends = [
        max(
            0.0,
            (
                total / (2 * special.gammaincinv(freedom / 2, tail) / freedom)
                - float(np.trace(noise))
            )
            / share,
        )
        for tail in reversed(TAILS)
    ]
    return Component(DRAW, variance, ends[0], ends[1], levels)
