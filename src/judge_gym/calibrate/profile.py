"""What a study looks like to its estimates: size, clusters, labels, setups and their repeats.

Everything is a plain moment of the data. Nothing here needs to be precise, and nothing is shared
with the estimators: the profile says what kind of study is simulated, not what is true of this one.
"""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.frames import own_rows
from judge_gym.analysis.judges.setups import Setup, setups_of
from judge_gym.errors import ConflictError

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
LabelKind = Literal["answers", "raters", "none"]
READABLE = ("scored", "abstained")
LIMIT = 0.95
"""The largest correlation that is simulated: at 1 all items would be one."""


@dataclass(frozen=True, eq=False)
class SetupProfile:
    """How a setup judges, given what an item is."""

    name: str
    confusion: Floats
    """The chance of each readable verdict: labels by stages, then abstained."""
    unreadable: float
    persistence: float
    """The chance that a repeat is the setup's own verdict on the item, and not drawn anew."""
    prefers_first: float
    """The chance that it names the response that is shown first; below 0, the second."""

    def by_order(self, orders: int) -> Floats:
        """Returns the chance of each verdict: orders of a pair by labels by verdicts."""
        if orders == 1:
            return self.confusion[None]
        lean, chances = abs(self.prefers_first), np.repeat(self.confusion[None], 2, axis=0)
        chances = (1 - lean) * chances
        for order in (0, 1):  # the first response is shown first in the first order
            chances[order, :, order if self.prefers_first > 0 else 1 - order] += lean
        return chances


@dataclass(frozen=True, eq=False)
class StudyProfile:
    """The size of a study, and the distributions that its data come from."""

    cluster_sizes: tuple[int, ...]
    scale: int
    ordered: bool
    pair: bool
    orders: int
    """2 where pairs are shown in both orders."""
    labels: LabelKind
    prevalence: Floats
    raters: int
    rater_accuracy: float
    """The chance that a rater gives an item's label, and not one drawn from all labels."""
    labelled: int
    """The number of items with a known answer or labels."""
    repeats: int
    label_correlation: float
    """The correlation of labels within a cluster."""
    error_correlation: float
    """The correlation of a setup's errors within a cluster."""
    setup_correlation: float
    """The share of errors that two setups would make on the same items."""
    setups: tuple[SetupProfile, ...]
    notes: tuple[str, ...]

    @property
    def items(self) -> int:
        """The number of items."""
        return sum(self.cluster_sizes)

    def with_equal_setups(self) -> "StudyProfile":
        """Returns a profile whose setups all judge like their average."""
        mean = SetupProfile(
            "",
            np.mean([setup.confusion for setup in self.setups], axis=0),
            *(
                float(np.mean([getattr(setup, name) for setup in self.setups]))
                for name in ("unreadable", "persistence", "prefers_first")
            ),
        )
        setups = tuple(replace(mean, name=setup.name) for setup in self.setups)
        return replace(self, setups=setups)

    def with_items(self, items: int) -> "StudyProfile":
        """Returns a profile of so many independent items, all labelled."""
        return replace(self, cluster_sizes=(1,) * items, labelled=items)


class _Units(NamedTuple):
    """What is judged: an item, or a pair in both orders."""

    number: pd.Series
    """The number of each sample's unit."""
    cluster: Codes
    label: Codes
    """The label of each unit from 0 on; -1 without one."""


def measure_study(frame: pd.DataFrame, people: pd.DataFrame | None = None) -> StudyProfile:
    """Measures tidy samples, and the labels of raters: tag, evidence, rater, stage."""
    samples = own_rows(frame)
    answered = samples[samples["status"] != "provider_error"].reset_index(drop=True)
    if answered.empty:
        raise ConflictError("the study has no verdicts yet; run a small part of it first")
    notes = []
    shapes = answered.groupby(["n_stages", "pair"]).ngroup()
    if shapes.nunique() > 1:
        answered = answered[shapes == shapes.mode().iloc[0]].reset_index(drop=True)
        notes.append("Scales differ: only the most frequent one is simulated.")
    scale, pair = int(answered["n_stages"].iloc[0]), bool(answered["pair"].iloc[0])
    if (np.bitwise_count(answered["mask"].to_numpy()) > 1).any():
        notes.append("Verdicts of several stages are simulated as one of them.")
    if answered["rubric_draw"].nunique() > 1:
        notes.append("All verdicts are simulated under one draw of the rubric.")
    number = pd.Series(answered.groupby(["concept", "evidence"]).ngroup())
    first = ~number.duplicated()
    names = (
        answered["evidence"].astype(str).mask(answered["cluster"] != "", "c:" + answered["cluster"])
    )
    by_unit = np.argsort(number[first].to_numpy())
    cluster = pd.factorize(names[first].to_numpy()[by_unit])[0]
    votes, kind, raters = _votes(answered, people, number, scale)
    label = np.where(votes.sum(axis=1) > 0, votes.argmax(axis=1), -1)
    units = _Units(number, cluster, label)
    shares = votes[label >= 0] / votes[label >= 0].sum(axis=1, keepdims=True)
    prevalence = shares.mean(axis=0)
    # Two raters agree by chance as often as two labels that are drawn at random.
    by_chance = float((prevalence**2).sum())
    rater_accuracy = 1.0 if kind != "raters" else _copied(_agreement(votes), by_chance)
    orders = 2 if pair and answered["flipped"].nunique() == 2 else 1
    cells = answered.groupby([number, "judge.model", "variant", "rubric", "flipped"], observed=True)
    repeats = 1 if answered["repeats"].any() else int(cells.size().median())
    parts = setups_of(answered)
    setups = [
        _setup(answered, part, units, scale, orders, prevalence, rater_accuracy) for part in parts
    ]
    errors = np.array([_errors(answered, part, units) for part in parts])
    return StudyProfile(
        cluster_sizes=tuple(map(int, np.bincount(cluster))),
        scale=scale,
        ordered=str(answered["rubric_kind"].iloc[0]) == "ordinal" and not pair,
        pair=pair,
        orders=orders,
        labels=kind,
        prevalence=prevalence,
        raters=raters,
        rater_accuracy=rater_accuracy,
        labelled=int((label >= 0).sum()) if kind != "none" else 0,
        repeats=max(1, repeats),
        label_correlation=_label_correlation(units, prevalence),
        error_correlation=_error_correlation(errors, setups, units, prevalence),
        setup_correlation=_setup_correlation(errors, setups, prevalence),
        setups=tuple(setups),
        notes=tuple(notes),
    )


def _votes(
    asked: pd.DataFrame, people: pd.DataFrame | None, number: pd.Series, scale: int
) -> tuple[Floats, LabelKind, int]:
    """Returns how often each unit has each label, what the labels are, and the raters per unit.

    Where both known answers and raters exist, those of more units count; without either, what most
    setups say stands for the label.
    """
    units = int(number.max()) + 1
    answers = pd.to_numeric(asked["truth"], errors="coerce")
    answer_votes = np.zeros((units, scale))
    has = answers.between(1, scale).to_numpy()
    answer_votes[number[has], answers[has].astype(int) - 1] = 1.0
    rated = np.zeros((units, scale))
    if people is not None and len(people):
        keys = asked[["tag", "evidence"]].assign(unit=number).drop_duplicates()
        ratings = people.merge(keys, on=["tag", "evidence"])
        ratings = ratings[ratings["stage"].between(1, scale)]
        np.add.at(rated, (ratings["unit"].to_numpy(), ratings["stage"].to_numpy() - 1), 1.0)
    counts = [int((votes.sum(axis=1) > 0).sum()) for votes in (answer_votes, rated)]
    if max(counts) == 0:
        scored = (asked["mask"] > 0).to_numpy()
        np.add.at(rated, (number[scored], _stage(asked)[scored]), 1.0)
        if not scored.any():
            raise ConflictError("no verdict has a score; nothing can be simulated")
        return rated, "none", 0
    if counts[0] >= counts[1]:
        return answer_votes, "answers", 1
    per_unit = rated.sum(axis=1)
    return rated, "raters", max(1, int(np.median(per_unit[per_unit > 0])))


def _stage(rows: pd.DataFrame) -> Codes:
    """Finds the lowest stage of each verdict, from 0 on, 0 without a score."""
    masks = rows["mask"].to_numpy()
    return np.asarray(np.log2(np.maximum(1, masks & -masks)), dtype=np.intp)


def _agreement(votes: Floats) -> float:
    """Computes the share of equal labels among pairs of raters, 1 without pairs."""
    n = votes.sum(axis=1)
    pairs = float((n * (n - 1)).sum())
    return float((votes * (votes - 1)).sum()) / pairs if pairs else 1.0


def _copied(equal: float, by_chance: float) -> float:
    """Returns the chance of copying with which two draws are equal so often."""
    excess = (equal - by_chance) / (1 - by_chance) if by_chance < 1 else 1.0
    return float(np.sqrt(np.clip(excess, 0.0, 1.0)))


def _setup(
    own: pd.DataFrame,
    setup: Setup,
    units: _Units,
    scale: int,
    orders: int,
    prevalence: Floats,
    accuracy: float,
) -> SetupProfile:
    rows = own.iloc[setup.index]
    unit = units.number[rows.index].to_numpy()
    readable = rows["status"].isin(READABLE).to_numpy()
    verdict = np.where(rows["mask"].to_numpy() > 0, _stage(rows), scale)
    counts = np.zeros((len(units.label), scale + 1))
    np.add.at(counts, (unit[readable], verdict[readable]), 1.0)
    judged = counts.sum(axis=1) > 0
    counts[judged] /= counts[judged].sum(axis=1, keepdims=True)
    margin = counts.sum(axis=0)
    margin[:scale] += 0.5  # no stage is impossible, so that a perfect judge can err
    margin /= margin.sum()
    lean = _lean(rows, verdict, readable) if orders == 2 else 0.0
    confusion = np.empty((scale, scale + 1))
    for label in range(scale):
        of_label = counts[judged & (units.label == label)]
        row = (of_label.sum(axis=0) + margin) / (len(of_label) + 1)
        # A rater's label is the item's own with the rater's accuracy, else any.
        row = (row - (1 - accuracy) * margin) / max(accuracy, 0.2)
        row[:2] -= abs(lean) / 2
        row = np.maximum(row, 1e-6 * margin)
        confusion[label] = row / row.sum()
    profile = SetupProfile(setup.name, confusion, 1 - float(readable.mean()), 1.0, lean)
    cells = pd.DataFrame({"u": unit, "o": rows["flipped"], "r": rows["rubric"], "v": verdict})
    n = cells[readable].groupby(["u", "o", "r"], observed=True).size()
    same = cells[readable].groupby(["u", "o", "r", "v"], observed=True).size()
    pairs = float((n * (n - 1)).sum())
    if not pairs:
        return profile
    by_label = (profile.by_order(orders) ** 2).sum(axis=2).mean(axis=0)
    equal = float((same * (same - 1)).sum()) / pairs
    return replace(profile, persistence=_copied(equal, float(prevalence @ by_label)))


def _lean(rows: pd.DataFrame, verdict: Codes, readable: npt.NDArray[np.bool_]) -> float:
    """Returns by how much of all verdicts the response that is shown first is preferred."""
    flipped = rows["flipped"].to_numpy(dtype=bool)
    for_first = np.where(flipped, verdict == 1, verdict == 0)[readable]
    for_second = np.where(flipped, verdict == 0, verdict == 1)[readable]
    return float(np.clip(for_first.mean() - for_second.mean(), -0.9, 0.9)) if readable.any() else 0


# --- correlations --------------------------------------------------------------------------------


def _errors(own: pd.DataFrame, setup: Setup, units: _Units) -> Floats:
    """Returns by unit how much more often than usual for its label a setup is right."""
    rows = own.iloc[setup.index]
    rows = rows[rows["status"].isin(READABLE)]
    unit = units.number[rows.index].to_numpy()
    right = (_stage(rows) == units.label[unit]) & (rows["mask"] > 0).to_numpy()
    rate = pd.Series(right.astype(float)).groupby(unit).mean().reindex(range(len(units.label)))
    usual = rate.groupby(units.label).transform("mean")
    errors = (rate - usual).to_numpy(dtype=float).copy()
    errors[units.label < 0] = np.nan
    return errors


def _within_clusters(values: Floats, cluster: Codes) -> float:
    """Averages the product of two units' values within a cluster, NaN without any."""
    has_value = ~np.isnan(values)
    sums = np.bincount(cluster[has_value], values[has_value])
    squares = np.bincount(cluster[has_value], values[has_value] ** 2)
    n = np.bincount(cluster[has_value])
    pairs = float((n * (n - 1)).sum())
    return float((sums**2 - squares).sum()) / pairs if pairs else np.nan


def _share(numerator: float, denominator: float) -> float:
    ratio = numerator / denominator if denominator > 0 else 0.0
    return float(np.clip(np.nan_to_num(ratio), 0.0, LIMIT))


def _label_correlation(units: _Units, prevalence: Floats) -> float:
    one_hot = (units.label[:, None] == np.arange(len(prevalence))) - prevalence
    one_hot[units.label < 0] = np.nan
    covariance = sum(_within_clusters(column, units.cluster) for column in one_hot.T)
    return _share(covariance, float((prevalence * (1 - prevalence)).sum()))


def _error_correlation(
    errors: Floats, setups: list[SetupProfile], units: _Units, prevalence: Floats
) -> float:
    # Two repeats on two items resemble each other only where both are the setup's own verdicts.
    right = [np.diag(setup.confusion) for setup in setups]
    most = [
        setup.persistence**2 * float(prevalence @ (p * (1 - p)))
        for setup, p in zip(setups, right, strict=True)
    ]
    return _share(sum(_within_clusters(row, units.cluster) for row in errors), sum(most))


def _setup_correlation(errors: Floats, setups: list[SetupProfile], prevalence: Floats) -> float:
    seen = most = 0.0
    for a in range(len(setups)):
        for b in range(a):
            right = [np.diag(setups[setup].confusion) for setup in (a, b)]
            both = np.minimum(*right) - right[0] * right[1]
            most += setups[a].persistence * setups[b].persistence * float(prevalence @ both)
            products = errors[a] * errors[b]
            seen += float(np.nanmean(products)) if (~np.isnan(products)).any() else 0.0
    return _share(seen, most)
