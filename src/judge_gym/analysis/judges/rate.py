"""People's rate on all items, from the labels of some items and a judge's verdicts on all.

The target is what a random rater would say of all items: the share called positive, or the mean on
an ordinal scale from 0 to 1. Four estimates of it stand side by side: prediction-powered, by
Rogan and Gladen, from the labels alone, and from the judge alone.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from judge_gym.analysis.stats.clusters import (
    MIN_FREEDOM,
    Codes,
    cluster_robust,
    cluster_sums,
)
from judge_gym.analysis.stats.intervals import (
    LEVEL,
    Estimate,
    Floats,
    Statistic,
    between,
    estimate,
    jackknife_error,
    seeded,
    t_quantile,
    undefined,
)

FOLDS = 5
FITTED_FROM = 30
"""The number of labelled items from which the mean label of each verdict category is estimated."""
MIN_LABELS = 10
"""The number of labelled items below which there is no interval."""
RARE = 10
"""The number of labels, at either end of the scale, below which Student's t does not hold."""
OF_EACH_LABEL = 20
"""The number of labels of each kind below which error rates in clusters have no interval."""
RANDOM_SAMPLE_P = 0.01
ROGAN_GLADEN = (
    "Rogan-Gladen assumes that the judge errs on items without a label as often as on labelled "
    "items of the same label"
)
NOT_RANDOM = "labels do not look like a random sample; the corrected rate then does not hold"


@dataclass(frozen=True, slots=True)
class PeopleRate:
    """What people would say of all items, estimated in four ways."""

    corrected: Estimate
    """Prediction-powered: the labels, corrected by verdicts; n counts labelled items."""
    labels_alone: Estimate
    judge: Estimate
    """The judge's own rate; a verdict that cannot be read is not positive, and has no stage."""
    rogan_gladen: Estimate
    """Undefined for means; see `ROGAN_GLADEN` for what it assumes."""
    weight: float
    """How far verdicts correct the labels, from 0 (useless) to 1."""
    items: int
    labels: int
    """The number of items with labels."""
    sample_p: float
    """The p-value for labelled and other items having the same verdicts."""
    withheld: str
    """Why the corrected rate has no interval; empty if it has one."""

    @property
    def warning(self) -> str:
        """Says that labels do not look like a random sample; empty if they do."""
        return NOT_RANDOM if self.sample_p < RANDOM_SAMPLE_P else ""


def people_rate(
    labels: Floats,
    shares: Floats,
    scores: Floats,
    clusters: Codes | None = None,
    *,
    inclusion: Floats | None = None,
    scale: tuple[float, float] = (0.0, 1.0),
    is_rate: bool = True,
) -> PeopleRate:
    """Estimates the mean label of all items; no item is dropped because its verdict is missing.

    The mean difference of two systems' labels is estimated likewise, with the pair of verdicts on
    an item as its category.

    Args:
        labels: the mean label of each item over its raters; NaN for an item without a label.
        shares: the share of each item's repeats (rows) in each verdict category (columns).
            Abstained, unreadable and missing verdicts are categories too.
        scores: the label that each category stands for, on the same scale; NaN for none.
        clusters: the number of each item's cluster.
        inclusion: each item's chance of being labelled; equal chances if left out.
        scale: the smallest and the largest label: 0 and 1, or -1 and 1 for differences.
        is_rate: whether labels are positive or not, rather than stages or differences; only then
            is there an estimate by Rogan and Gladen.
    """
    each = np.arange(len(labels))
    codes = each if clusters is None else np.unique(clusters, return_inverse=True)[1]
    has_label = ~np.isnan(labels)
    weights = np.where(has_label, 1.0 if inclusion is None else 1 / inclusion, 0.0)
    count = int(has_label.sum())
    judge_means = mean_scores(shares, scores)
    judge = estimate(judge_means, codes, scale=between(*scale))
    if not count:
        nothing, withheld = undefined(), f"needs {MIN_LABELS} labelled items; there are none"
        return PeopleRate(nothing, nothing, judge, nothing, 0.0, len(labels), 0, np.nan, withheld)
    weights /= weights.sum()
    sample = _Sample(np.where(has_label, labels, 0.0), weights, codes, scale)
    corrected, weight = sample.mean(_predict(sample, shares, judge_means))
    alone, _ = sample.mean(None)
    return PeopleRate(
        corrected=corrected,
        labels_alone=alone,
        judge=judge,
        rogan_gladen=_rogan_gladen_of(sample, judge_means) if is_rate else undefined(count),
        weight=weight,
        items=len(labels),
        labels=count,
        sample_p=_same_verdicts(shares, weights, codes),
        withheld=sample.withheld,
    )


def mean_scores(shares: Floats, scores: Floats) -> Floats:
    """Returns the judge's mean score of each item; NaN where no verdict has a score."""
    total = shares @ np.where(np.isnan(scores), 0.0, scores)
    scored = shares @ ~np.isnan(scores)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(scored > 0, total / scored, np.nan)
    return means


def rate_sentence(rate: PeopleRate, quantity: str, *, percent: bool = True) -> str:
    """Says what judge and people say of all items: 'Pass rate: judge 68 %, corrected 63 % ...'.

    Args:
        rate: the estimates.
        quantity: what is estimated, with the word of the label: "Pass rate", "Mean stage".
        percent: whether it is a share; means on a scale are written as numbers from 0 to 1.
    """

    def words(estimate: Estimate, *, interval: bool = True) -> str:
        parts = [f"{100 * part:.0f}" if percent else f"{part:.2f}" for part in estimate[:3]]
        text = f"{parts[0]} %" if percent else parts[0]
        return f"{text} [{parts[1]}, {parts[2]}]" if interval and estimate.known else text

    if not rate.labels:
        return f"{quantity}: judge {words(rate.judge)}; {rate.withheld}."
    text = f"{quantity}: judge {words(rate.judge, interval=False)}, corrected "
    text += f"{words(rate.corrected)}; labels alone {words(rate.labels_alone)}."
    notes = [f"No interval: {rate.withheld}."] if rate.withheld else []
    notes += [f"{rate.warning[0].upper()}{rate.warning[1:]}."] if rate.warning else []
    return " ".join([text, *notes])


# --- the prediction-powered mean (Angelopoulos, Duchi and Zrnic 2023; Zrnic and Candès 2024) -----


class _Predictions(NamedTuple):
    """Predicted labels with mean 0 over all items, so that what counts is how samples differ."""

    held_out: Floats
    """By a model that has not seen the labels of the item's cluster."""
    average: Floats
    """By all models."""


@dataclass(frozen=True, slots=True)
class _Sample:
    labels: Floats
    """0 where there is none."""
    weights: Floats
    """Their sum is 1; 0 for an item without a label."""
    codes: Codes
    """The number of each item's cluster, from 0 on."""
    scale: tuple[float, float]

    def on(self, rows: np.ndarray) -> "_Sample":
        """Selects items, at least one of which has a label."""
        weights = self.weights[rows] / self.weights[rows].sum()
        codes = np.unique(self.codes[rows], return_inverse=True)[1]
        return _Sample(self.labels[rows], weights, codes, self.scale)

    @property
    def has_label(self) -> np.ndarray:
        return self.weights > 0

    @property
    def count(self) -> int:
        return int(self.has_label.sum())

    @property
    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom of the mean label."""
        root = np.sqrt(self.weights[self.has_label])
        codes = self.codes[self.has_label]
        fit = cluster_robust(root * self.labels[self.has_label], root[:, None], codes)
        return float(fit.freedoms[0])

    @property
    def withheld(self) -> str:
        if self.count < MIN_LABELS:
            return f"needs {MIN_LABELS} labelled items; there are {self.count}"
        if self.freedom < MIN_FREEDOM:
            clusters = len(np.unique(self.codes[self.has_label]))
            return f"labels lie in too few clusters ({clusters}), or most of them in one"
        return ""

    def mean(self, predictions: _Predictions | None) -> tuple[Estimate, float]:
        """Returns the mean label, corrected by predictions, and their weight in it.

        The error is made of each cluster's influence: that of its labels, and that of all of its
        items on the mean prediction. Because the weight is estimated, a degree of freedom is lost.
        """
        zero = np.zeros(len(self.labels))
        held_out, average = predictions or (zero, zero)
        label, prediction = float(self.weights @ self.labels), float(self.weights @ held_out)
        gaps = np.column_stack([self.labels - label, held_out - prediction])
        by_cluster = cluster_sums(self.weights[:, None] * gaps, self.codes)
        by_all = cluster_sums(average / len(average), self.codes)
        part = cluster_sums(self.weights, self.codes)
        part_of_all = np.bincount(self.codes) / len(self.codes)
        if part.max() > 1 - 1e-9:  # all labels lie in one cluster
            return undefined(self.count, float(np.clip(label, *self.scale))), 0.0
        # The residuals of a cluster are too small by its share of the mean (CR2).
        robust = by_cluster / np.sqrt(1 - part)[:, None]
        shift = robust[:, 1] - by_all / np.sqrt(1 - np.minimum(part_of_all, 1 - 1e-9))
        power = float(shift @ shift)
        weight = float(np.clip(robust[:, 0] @ shift / power, 0, 1)) if power > 1e-18 else 0.0
        value = label - weight * prediction
        estimate = undefined(self.count, float(np.clip(value, *self.scale)))
        if self.withheld:
            return estimate, weight
        influence = robust[:, 0] - weight * shift
        error = float(np.sqrt(influence @ influence))
        freedom = self.freedom - (weight > 0)
        if self._is_rare() or not error > 1e-12:
            if len(by_cluster) < len(self.codes):
                ends = self._korn_graubard(value, error, freedom)
            else:
                plain = by_cluster[:, 0] - weight * (by_cluster[:, 1] - by_all)
                ends = self._bounded(value, plain, weight * held_out, freedom)
        else:
            half = float(t_quantile(freedom)) * error
            ends = value - half, value + half
        low, high = np.clip(ends, *self.scale)
        return estimate._replace(low=float(low), high=float(high)), weight

    def _is_rare(self) -> bool:
        """Whether few labels differ from one end of the scale."""
        low, high = self.scale
        labels = self.labels[self.has_label]
        return bool(min((labels - low).sum(), (high - labels).sum()) < RARE * (high - low))

    def _bounded(
        self, value: float, influence: Floats, moved: Floats, freedom: float
    ) -> tuple[float, float]:
        """Returns the ends of the bounded interval on influence values of independent items.

        Each labelled item has one value, around the mean; chances of inclusion differ, so that the
        scale of these values is wider than that of labels. `moved` are the weighted predictions.
        Items without labels add a component of their own, which is a mean of many items.
        """
        values = value + self.count * influence[self.has_label]
        reach = self.count * float(self.weights.max())
        least = value + reach * (self.scale[0] - float(moved.max()) - value)
        most = value + reach * (self.scale[1] - float(moved.min()) - value)
        reached = between(min(least, float(values.min())), max(most, float(values.max())))
        bounded = estimate(values, scale=reached)
        unlabelled_variance = (influence[~self.has_label] ** 2).sum()
        half = float(t_quantile(freedom) * np.sqrt(unlabelled_variance))
        low = value - float(np.hypot(value - bounded.low, half))
        return low, value + float(np.hypot(bounded.high - value, half))

    def _korn_graubard(self, value: float, error: float, freedom: float) -> tuple[float, float]:
        """Returns Clopper and Pearson's interval with the effective number of labels.

        With few labels of a kind the gain by verdicts cannot be relied upon: there are at most as
        many effective labels as labels. Where labels do not vary, clusters are counted.
        """
        low, high = self.scale
        share = float(np.clip((value - low) / (high - low), 0, 1))
        size = float(len(np.unique(self.codes[self.has_label])))
        if error > 1e-12:
            ratio = float(t_quantile(np.inf) / t_quantile(freedom))
            size = share * (1 - share) * ((high - low) * ratio / error) ** 2
            size = min(max(size, 1.0), self.count)
        yes, no, tail = share * size, (1 - share) * size, (1 - LEVEL) / 2
        lower = special.betaincinv(yes, no + 1, tail) if yes > 0 else 0.0
        upper = special.betaincinv(yes + 1, no, 1 - tail) if no > 0 else 1.0
        return low + (high - low) * float(lower), low + (high - low) * float(upper)


def _predict(sample: _Sample, shares: Floats, judge_means: Floats) -> _Predictions | None:
    """Predicts labels from verdicts: the mean label per category, or with few labels the score.

    Categories are estimated in folds over clusters. A category's mean is shrunk to that of all by
    one label, so that a category of one labelled item does not predict its label.
    """
    if sample.count > len(shares) - 2:
        return None
    if sample.count < FITTED_FROM:
        if np.isnan(judge_means).all():
            return None
        score = np.where(np.isnan(judge_means), np.nanmean(judge_means), judge_means)
        return _Predictions(score - score.mean(), score - score.mean())
    clusters = np.unique(sample.codes[sample.has_label])
    order = seeded("people's rate", len(shares), len(clusters)).permutation(len(clusters))
    fold = np.zeros(int(sample.codes.max()) + 1, dtype=int)
    fold[clusters] = order % FOLDS
    weights = sample.weights * sample.count
    models = []
    for number in range(FOLDS):
        train = weights * (fold[sample.codes] != number)
        if not train.any():
            return None
        overall = float(train @ sample.labels / train.sum())
        means = (shares.T @ (train * sample.labels) + overall) / (shares.T @ train + 1)
        models.append(shares @ means)
    by_fold = np.stack(models)
    by_fold -= by_fold.mean(axis=1, keepdims=True)
    held_out = by_fold[fold[sample.codes], np.arange(len(shares))]
    return _Predictions(held_out, by_fold.mean(axis=0))


def _same_verdicts(shares: Floats, weights: Floats, codes: Codes) -> float:
    """Returns the p-value for labelled and other items having the same verdicts.

    Pearson's chi-square, divided by the design effect of clusters (Rao and Scott 1981). Categories
    of which fewer than 5 labelled items are expected are one.
    """
    labelled_items = weights > 0
    count, unlabelled = int(labelled_items.sum()), int((~labelled_items).sum())
    if not count or not unlabelled:
        return np.nan
    rare = shares.mean(axis=0) * min(count, unlabelled) < 5
    table = np.column_stack([shares[:, ~rare], shares[:, rare].sum(axis=1)])
    table = table[:, table.mean(axis=0) > 1e-12]
    if table.shape[1] < 2:
        return np.nan
    contrast = weights - ~labelled_items / unlabelled
    gaps = table - table.mean(axis=0)
    # In coordinates in which the verdicts of an item have unit variance.
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(gaps.T)))
    varying = values > 1e-9 * values.max()
    rank = int(varying.sum())
    if not values.max() > 0:
        return np.nan
    white = gaps @ vectors[:, varying] / np.sqrt(values[varying])
    alone = float(contrast @ contrast)
    together = cluster_sums(contrast[:, None] * white, codes)
    effect = float((together**2).sum() / ((contrast[:, None] * white) ** 2).sum())
    statistic = float(((contrast @ white) ** 2).sum()) / (alone * max(effect, 1.0))
    return float(special.chdtrc(rank, statistic))


# --- Rogan and Gladen ----------------------------------------------------------------------------


def _rogan_gladen_of(sample: _Sample, called: Floats) -> Estimate:
    """Returns the rate corrected by the judge's error rates on the labelled items.

    Independent items with labels 0 or 1 have Lang and Reiczigel's interval, others that of the
    jackknife over clusters, which needs enough labels of both kinds. Items without any verdict are
    left out.
    """
    judged = ~np.isnan(called)
    if not judged.all():
        if not sample.weights[judged].any():
            return undefined(sample.count)
        sample, called = sample.on(judged), called[judged]
    labels, weights = sample.labels[sample.has_label], sample.weights[sample.has_label]
    alone = len(np.unique(sample.codes)) == len(sample.codes)
    if alone and np.isin(labels, (0, 1)).all() and np.ptp(weights) < 1e-12:
        right = called[sample.has_label]
        estimate = rogan_gladen(called, right[labels == 1], 1 - right[labels == 0])
        return estimate._replace(n=sample.count)
    yes = sample.weights * sample.labels
    no = sample.weights * (1 - sample.labels)
    terms = [np.ones(len(called)), called, yes, yes * called, no, no * (1 - called)]
    rows = cluster_sums(np.column_stack(terms), sample.codes)

    def prevalence(sums: Floats) -> Floats:
        items, positive, yes, right_yes, no, right_no = np.moveaxis(sums, -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            specificity = right_no / no
            sharpness = right_yes / yes + specificity - 1
            value: Floats = (positive / items + specificity - 1) / sharpness
        return np.where(sharpness > 0, np.clip(value, 0, 1), np.nan)

    statistic = Statistic(rows, prevalence)
    value, few = statistic.value, min(labels.sum(), (1 - labels).sum()) < OF_EACH_LABEL
    error = float(jackknife_error(rows, statistic))
    if few or sample.withheld or not error > 0:
        return undefined(sample.count, value)
    half = float(t_quantile(sample.freedom)) * error
    return Estimate(value, value - half, value + half, sample.count).clipped(0, 1)


def rogan_gladen(called: Floats, right_yes: Floats, right_no: Floats) -> Estimate:
    """Returns a prevalence corrected for error rates that were estimated on other items.

    The estimate is Rogan and Gladen's, the interval Lang and Reiczigel's (2014), for shares per
    item as well as for plain decisions: pseudo-items are added, so that no variance is 0. `called`
    has the share of positive calls on items of unknown truth, `right_yes` and `right_no` the shares
    of right calls on positive and on negative items.
    """
    if not (len(called) and len(right_yes) and len(right_no)):
        return undefined(len(called))
    sharpness = float(right_yes.mean() + right_no.mean()) - 1
    if sharpness <= 0:
        return undefined(len(called))
    value = float(np.clip((called.mean() + right_no.mean() - 1) / sharpness, 0, 1))
    z = float(special.ndtri((1 + LEVEL) / 2))
    p, p_error = _padded(called, z**2)
    yes, yes_error = _padded(right_yes, 2)
    no, no_error = _padded(right_no, 2)
    if yes + no <= 1:  # too few items to distinguish it from chance
        return undefined(len(called), value)
    middle = (p + no - 1) / (yes + no - 1)
    error = np.sqrt(p_error + yes_error * middle**2 + no_error * (1 - middle) ** 2)
    error = error / (yes + no - 1)
    middle += 2 * z**2 * (middle * yes_error - (1 - middle) * no_error)
    low, high = np.clip([middle - z * error, middle + z * error], 0, 1)
    return Estimate(value, float(low), float(high), len(called))


def _padded(values: Floats, items: float) -> tuple[float, float]:
    """Returns the mean with pseudo-items, half of them 0 and half 1, and its squared error."""
    n = len(values) + items
    mean = (values.sum() + items / 2) / n
    variance = ((values**2).sum() + items / 2) / n - mean**2
    return float(mean), float(variance / n)
