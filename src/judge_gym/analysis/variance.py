"""Where the variance of verdicts comes from: a generalizability study (Brennan 2001).

Setups (a judge under a design) are fixed. Clusters, items within clusters and draws of rubrics
within authors are random, and so are the interactions of items with setups and with draws; what
is left is the variance between repeats. Components are estimated by restricted maximum likelihood.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from judge_gym.analysis.belief.masses import IntArray
from judge_gym.analysis.endpoints import sample_values
from judge_gym.analysis.frames import (
    CELL,
    JUDGE,
    first_replicates,
    first_rows,
    once_per_call,
    own_rows,
)
from judge_gym.analysis.stats.intervals import (
    MANY_DRAWS,
    TAILS,
    Floats,
    seeded,
    t_quantile,
    undefined,
)

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
TABLE = ["task", "measure", "component", "variance", "share", "low", "high", "levels", "note"]


class Component(NamedTuple):
    """A variance component; without a value, the note says with what it is confounded."""

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
    def of(rows: pd.DataFrame) -> "Crossing":
        """Returns the crossing of rows with cluster, evidence, setup, author, rubric and value."""
        cells = rows.groupby(["setup", "author", "rubric"], sort=True, observed=True)
        cell = np.asarray(cells.ngroup(), dtype=np.intp)
        item = np.asarray(pd.factorize(rows["evidence"], sort=True)[0], dtype=np.intp)
        shape = int(item.max()) + 1, cells.ngroups
        place, size = item * shape[1] + cell, shape[0] * shape[1]
        values = rows["value"].to_numpy(dtype=float)
        count = np.bincount(place, minlength=size).astype(float)
        mean = np.bincount(place, values, size) / np.maximum(count, 1)
        squares = np.bincount(place, (values - mean[place]) ** 2, size).astype(float)
        first = rows["cluster"].iloc[first_rows(item)]
        names = rows[["setup", "author", "rubric"]].iloc[first_rows(cell)].reset_index(drop=True)
        rubric = names.groupby(["author", "rubric"]).ngroup()
        return Crossing(
            mean.reshape(shape),
            count.reshape(shape),
            squares.reshape(shape),
            pd.factorize(first)[0].astype(np.int64),
            pd.factorize(names["setup"])[0].astype(np.int64),
            pd.factorize(names["author"])[0].astype(np.int64),
            rubric.to_numpy().astype(np.int64),
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

    def on(self, kept: Any) -> "Crossing":
        """Returns the crossing on some of the items."""
        parts = {name: getattr(self, name)[kept] for name in ("mean", "count", "squares")}
        return replace(self, cluster=self.cluster[kept], **parts)

    def under(self, kept: Any) -> "Crossing":
        """Returns the crossing of some of the cells, with the items that have any of them."""
        parts = {name: getattr(self, name)[kept] for name in ("setup", "author", "draw")}
        parts |= {name: getattr(self, name)[:, kept] for name in ("mean", "count", "squares")}
        part = replace(self, **parts)
        return part.on(part.count.any(axis=1))

    @property
    def as_single_repeats(self) -> "Crossing":
        """The crossing with its means as single values, where repeats never differ."""
        return replace(self, count=(self.count > 0).astype(float))


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
        patterns = range(len(weights))
        parts = [mean[self._pattern == one] for one in patterns]
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
            found = self(logs + step)
            while found > best and np.abs(step).max() > 1e-6:
                step /= 4
                found = self(logs + step)
            if best - found < 1e-7:
                break
            logs, best = np.maximum(logs + step, SMALLEST), found
        self(logs)
        ratios = np.exp(logs)
        kept = logs > SMALLEST + 3 + max(0.0, float(logs.max(initial=0.0)))
        return np.array([*np.where(kept, ratios * self.scale, 0.0), self.scale])

    def _derivatives(self, logs: Floats, here: float) -> tuple[Floats, Floats]:
        """Returns the gradient and the curvature, by differences."""
        steps = STEP * np.eye(len(logs))
        up, down = (np.array([self(logs + sign * one) for one in steps]) for sign in (1, -1))
        curvature = np.diag((up - 2 * here + down) / STEP**2)
        for i, j in combinations(range(len(logs)), 2):
            both = self(logs + steps[i] + steps[j])
            curvature[i, j] = curvature[j, i] = (both - up[i] - up[j] + here) / STEP**2
        return (up - down) / (2 * STEP), curvature


def _sums(values: Floats, code: IntArray) -> Floats:
    """Returns the sums of rows by group."""
    found = np.zeros((int(code.max()) + 1, values.shape[1]))
    np.add.at(found, code, values)
    return found


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
    """Returns the component of which a kernel is a combination; empty if it is none."""
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
    fitted = model(_drawn(values))
    estimates, likelihood = fitted.fit()
    ends, reason = {}, ""
    if intervals and values.clusters >= MIN_CLUSTERS:
        ends = _jackknife(fitted, estimates)
        reason = "no interval: not clearly above 0"
    elif intervals:
        reason = f"no interval: {values.clusters} clusters, {MIN_CLUSTERS} are needed"
    found = {}
    for name in COMPONENTS:
        if name in fitted.confounded:
            why = f"not estimable, confounded with {fitted.confounded[name]}"
            found[name] = Component(name, *undefined()[:3], levels[name], why)
        elif name == DRAW:
            found[name] = _draw_component(fitted.values, likelihood, levels[name])
        else:
            value = float(estimates[fitted.names.index(name)])
            low, high = ends.get(name, (np.nan, np.nan))
            note = "" if np.isfinite(low) else reason
            found[name] = Component(name, value, low, high, levels[name], note)
    if fitted.confounded.get(REPEAT) and (values.count > 1).any():
        # Repeats were asked for and never differed: that is an estimate.
        note = "repeats never differ"
        found[REPEAT] = Component(REPEAT, 0.0, np.nan, np.nan, levels[REPEAT], note)
    return found


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


def _drawn(values: Crossing) -> Crossing:
    """Returns a draw of setups and clusters, if the likelihood of all would take too long."""
    cells = len(values.setup)
    if cells > MOST_CELLS:
        setups = np.unique(values.setup)
        kept = max(2, len(setups) * MOST_CELLS // cells)
        chosen = seeded("setups", len(setups)).permutation(setups)[:kept]
        values = values.under(np.isin(values.setup, chosen))
    work = len(np.unique(values.count, axis=0)) * len(values.setup) ** 3
    if work > LARGEST:
        clusters = np.unique(values.cluster)
        kept = max(GROUPS, int(len(clusters) * LARGEST / work))
        chosen = seeded("clusters", len(clusters)).permutation(clusters)[:kept]
        values = values.on(np.isin(values.cluster, chosen))
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
    for one in range(groups):
        kept = group != one
        part = fitted._replace(values=values.on(kept))
        without.append(part.fit(start)[0])
    table = np.stack(without)
    found = {}
    for place, name in enumerate(fitted.names):
        if estimates[place] > 0 and (table[:, place] > 0).all():
            logs = np.log(table[:, place])
            error = float(np.sqrt((groups - 1) * logs.var()))
            # With t of groups - 1, 1,000 panels of 20 clusters covered 92.6 %: values are skewed.
            reach = np.exp(float(t_quantile(groups / 2)) * error)
            if reach < WIDEST:
                found[name] = float(estimates[place] / reach), float(estimates[place] * reach)
    return found


def _draw_component(values: Crossing, likelihood: Likelihood, levels: int) -> Component:
    """Returns the variance between draws within authors, from the means of cells."""
    used = values.count.any(axis=0)
    setup, same = values.setup[used], _same(values.draw[used])
    own = _same(setup)
    centred = np.eye(len(setup)) - own / own.sum(axis=1, keepdims=True)
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


# --- from samples --------------------------------------------------------------------------------

MEASURES = ("accuracy", "agreement", "stage")
"""What verdicts are measured by, the most telling first: whether they are right, how far people
agree, and the stage on the scale from 0 to 1."""
LARGEST_VARIANCE = 0.25
"""The variance of values between 0 and 1, which all measures are, is at most this."""
UNIT = ["task", "variant", JUDGE, "evidence", "author", "rubric", "replicate"]
"""The columns that identify one verdict of a setup; a pair shown in both orders is one."""


def measured(
    frame: pd.DataFrame, people: pd.DataFrame | None = None, endpoints: Sequence[str] = ()
) -> pd.DataFrame:
    """Returns the verdicts of setups in long form, by task and measure.

    Columns: UNIT, cluster, setup (the name of judge and variant), measure, value, usd, calls.
    Accuracy and agreement count a verdict that is not scored as wrong, unless the provider failed.
    Replicates that repeat each other count as one.

    Args:
        frame: tidy samples.
        people: raters' stages, with columns tag, evidence, rater, stage.
        endpoints: what else is measured of single verdicts (`endpoints.AVERAGED`).
    """
    rows = once_per_call(first_replicates(own_rows(frame)), CELL)
    alone = rows["cluster"] == ""
    rows = rows.assign(
        cluster=rows["cluster"].where(~alone, "item " + rows["evidence"].astype(str)),
        author=rows["rubric_author"],
        rubric=rows["rubric_draw"],
        setup=_setup_names(rows),
        calls=1,
    )
    answered = rows["status"] == "scored"
    wrong = ~answered & (rows["status"] != "provider_error")
    values = sample_values(rows)
    known = pd.to_numeric(rows["truth"], errors="coerce").notna()
    found = {
        "accuracy": np.where(wrong & known, 0.0, values["agreement"]),
        "agreement": _agreement(rows, people),
        "stage": values["stage"],
    }
    found |= {name: values[name] for name in endpoints}
    parts = [_units(rows, name, value) for name, value in found.items()]
    return pd.concat(parts, ignore_index=True)


def _units(rows: pd.DataFrame, measure: str, values: Floats) -> pd.DataFrame:
    """Returns the verdicts that have a value, averaged over the orders of a pair."""
    part = rows.assign(value=values, usd=rows["usd"].fillna(np.inf)).dropna(subset="value")
    groups = part.groupby([*UNIT, "cluster", "setup"], observed=True, sort=False)
    sums = groups.agg({"value": "mean", "usd": "sum", "calls": "sum"}).reset_index()
    # A sum is unknown if a part is.
    return sums.assign(measure=measure, usd=sums["usd"].replace(np.inf, np.nan))


def _setup_names(rows: pd.DataFrame) -> pd.Series:
    """Returns the judge and the variant of each row, without what does not vary."""
    judge, variant = rows[JUDGE].astype(str), rows["variant"].astype(str)
    if variant.nunique() == 1:
        return judge
    return variant if judge.nunique() == 1 else judge + ", " + variant


def _agreement(rows: pd.DataFrame, people: pd.DataFrame | None) -> Floats:
    """Returns the share of raters whose stage each verdict is; NaN without raters."""
    found: Floats = np.full(len(rows), np.nan)
    if people is None or people.empty:
        return found
    keys = rows[["tag", "evidence", "mask"]].assign(row=np.arange(len(rows)))
    both = keys.merge(people[["tag", "evidence", "stage"]], on=["tag", "evidence"])
    if both.empty:
        return found
    masks = both["mask"].to_numpy(dtype=np.int64)
    share = (masks >> (both["stage"].to_numpy(dtype=np.int64) - 1) & 1) / np.maximum(
        np.bitwise_count(masks), 1
    )
    mean = pd.Series(share).groupby(both["row"].to_numpy()).mean()
    found[mean.index] = mean.to_numpy()
    failed = (rows["status"] == "provider_error").to_numpy()
    return np.where(failed, np.nan, found)


def primary_measure(values: pd.DataFrame) -> str:
    """Returns the most telling measure that verdicts have."""
    return next((name for name in MEASURES if (values["measure"] == name).any()), "")


def variance_table(values: pd.DataFrame) -> pd.DataFrame:
    """Returns the variance components of each task, by its most telling measure.

    `share` is the component's part of the variance of a single verdict, where all are known.
    """
    rows = []
    for task, part in values.groupby("task", sort=True, observed=True):
        measure = primary_measure(part)
        found = components(Crossing.of(part[part["measure"] == measure]))
        total = sum(one.variance for one in found.values() if one.known)
        for one in found.values():
            share = one.variance / total if total > 0 else np.nan
            high = np.minimum(one.high, LARGEST_VARIANCE)
            rows.append([task, measure, *one[:2], share, one.low, high, *one[4:]])
    return pd.DataFrame(rows, columns=TABLE)
