"""The judge table: one row per setup, with its quality, consistency, price and time.

The unit is one verdict on one item (both orders of a pair), averaged over repeats and draws of
rubrics. Every column is a registered measure. One of them decides which setups are best; intervals
are over items by cluster, and hold for all rows of a column together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from typing_extensions import TypedDict

from judge_gym.analysis.belief.masses import BoolArray, FloatArray, IntArray
from judge_gym.analysis.frames import CELL, own_rows
from judge_gym.analysis.judges.beside_people import (
    judged_units,
    length_of,
    rate_of,
    replacement_test,
)
from judge_gym.analysis.judges.choice import choose, cross_fitted
from judge_gym.analysis.judges.compared import (
    compared_setups,
    label_scale,
    people_with_each_other,
)
from judge_gym.analysis.judges.quantities import as_quantity
from judge_gym.analysis.judges.sentence import reason, sentence
from judge_gym.analysis.judges.setups import Setup, setups_of, usual_level
from judge_gym.analysis.judges.splits import Part, choice_part
from judge_gym.analysis.measures import Compared, LabelScale, Measure, registered
from judge_gym.analysis.measures.confusion import UNSCORED
from judge_gym.analysis.measures.consistency import ALIKE, independence
from judge_gym.analysis.measures.rank import among_people, rank_interval
from judge_gym.analysis.measures.scales import Loss, best_constant, default_measure
from judge_gym.analysis.measures.terms import Ratio, Terms
from judge_gym.analysis.stats.comparisons import compare, simultaneous_level
from judge_gym.analysis.stats.intervals import (
    LEVEL,
    SHARE,
    SIGNED_SHARE,
    difference,
    estimate,
)
from judge_gym.analysis.verdicts import Reference, Verdicts, of_setups
from judge_gym.errors import DesignError, unknown
from judge_gym.records.judge_table import (
    MIN_CLUSTERS,
    OTHER_RUBRIC,
    ChosenQuality,
    ColumnHead,
    Confusion,
    Decider,
    JudgeRow,
    JudgeTable,
    KnobEffect,
    LengthEffect,
    MeasureName,
    PeopleMeasures,
    PeopleRate,
    Quality,
    Quantity,
    ReplacementTest,
    SplitUse,
    Standing,
    TruthKind,
)
from judge_gym.records.judge_table import LabelScale as LabelScaleRow
from judge_gym.studies.declarations import Epsilon

DECIDERS: Mapping[Decider, str] = {
    "exact": "exact",
    "balanced": "balanced",
    "weighted": "weighted_kappa",
    "rank": "tau_b",
    "error": "error",
    "loss": "loss",
}
"""What can decide standings, and the measure that each is."""
LOWER_IS_BETTER = ("error", "loss")
OWN_KEYS: tuple[str, ...] = (
    *("consistency", "position_bias", "abstained", "unreadable", "usd_per_1000", "seconds"),
    *("answered", "right_of_answered", "majority", "disagreement"),
)
"""Measures that are keys of a row; the others stand under `measures`."""
NOT_AMONG_PEOPLE = ("tau_b", "spearman", "bias")
"""Measures that are not those of random pairs of raters: correlations have their own rule, and the
bias of raters against each other is 0 by definition."""
OTHER: Mapping[TruthKind, TruthKind] = {"accuracy": "agreement", "agreement": "accuracy"}
WEIGHT = "weight"
"""The column of people's labels with the inverse of the item's chance to be labelled."""
Column = Mapping[int, Terms]
"""The terms of a measure by setup."""


def judge_table(
    frame: pd.DataFrame,
    people: pd.DataFrame | None = None,
    *,
    preparation: pd.DataFrame | None = None,
    margin: float | None = None,
    parts: Mapping[Any, str] | None = None,
    simulated: str = "",
    measure: MeasureName | None = None,
    loss: Mapping[str, float] | None = None,
    positive: str | None = None,
    alt_test: Epsilon = "expert",
) -> JudgeTable:
    """Makes the judge table of tidy samples.

    Args:
        frame: the tidy samples; a column `seconds` is the time of each call.
        people: raters' stages, with columns tag, evidence, rater, stage; with `weight`, the inverse
            of each item's chance to be labelled.
        preparation: the calls for views and rubrics, with columns tag, evidence (of a view) or
            rubric, usd, seconds. They count in full for each setup that needs them.
        margin: the difference below which the study calls two setups equally good.
        parts: the part of each item of a split. The choice of a setup is then made on dev, or on
            train without one, and quality is estimated on test.
        simulated: the warning that judges were simulated.
        measure: which measure decides; by default the one that fits the scale of the labels.
        loss: what a `miss` and a `false_alarm` cost; expected loss then decides.
        positive: the positive one of two labels; by default one is proposed by its meaning.
        alt_test: how far a judge may be behind a rater whom it replaces.
    """
    samples = own_rows(frame)
    setups = setups_of(samples)
    verdicts = of_setups(samples, setups, people, preparation)
    test, train = _parts(verdicts, parts)
    kind, weights = _leading_kind(verdicts, test), _unit_weights(verdicts, people)
    basis = None if kind is None else _Basis(verdicts, kind, test, train, loss, positive, weights)
    decider = _decider(basis, measure)
    columns = _columns(verdicts, basis)
    quantities = {
        name: _quantities(terms, len(setups), verdicts.clusters) for name, terms in columns.items()
    }
    compared = _compared(basis, decider, columns, quantities, verdicts.clusters, margin)
    rows = [
        _row(setup, index, verdicts, quantities, compared, basis)
        for index, setup in enumerate(setups)
    ]
    sticky = _mark_sticky_repeats(samples, setups, rows)
    repeating = [
        setup.name
        for index, (setup, row) in enumerate(zip(setups, rows, strict=True))
        if row["consistency"] is None and verdicts.rows["repeats"][verdicts.setup == index].any()
    ]
    _mark_frontier(rows)
    rows.sort(key=lambda row: _rank(row, decider))
    chosen_name = None if compared.chosen is None else setups[compared.chosen].name
    raters = verdicts.raters["rater"].nunique()
    table: JudgeTable = {
        "sentence": "",
        "chosen": chosen_name,
        "chosen_quality": _chosen_quality(compared, kind),
        "kind": kind,
        "measure": decider,
        "decides": "",
        "scale": None if basis is None else _scale_row(basis.scale),
        "people_with_each_other": None,
        "people": None,
        "constant": None if basis is None else basis.constant(decider),
        "confusion": _confusion(basis, compared, setups),
        **_beside_people(basis, compared, setups, alt_test),
        "raters": int(raters),
        "known_items": _known_items(verdicts),
        "compared_items": len(compared.units),
        "clusters": compared.clusters,
        "margin": margin,
        "split": _split(verdicts, test, train, choice_part(parts)) if parts else None,
        "simulated": simulated,
        "notes": [],
        "columns": _heads(columns, basis, decider),
        "effects": _effects(samples, setups, compared.terms, verdicts.clusters),
        "rows": rows,
    }
    if basis is not None and kind == "agreement":
        table["people"] = basis.people_measures()
        table["people_with_each_other"] = (
            None if table["people"] is None else table["people"]["measures"].get("exact")
        )
    table["notes"] = [
        *_notes(rows, compared, repeating, basis, _unsplit(verdicts, parts)),
        *sticky,
    ]
    declared = measure is not None or loss is not None
    return {
        **table,
        "sentence": sentence(table),
        "decides": reason(table, measure=declared, positive=positive is not None),
    }


# --- what verdicts are compared with ------------------------------------------------------------


def _parts(verdicts: Verdicts, parts: Mapping[Any, str] | None) -> tuple[BoolArray, BoolArray]:
    """Says of each row whether its item is in test, and in the part on which setups are chosen.

    Without a split every item is in test.
    """
    if not parts:
        every = np.full(len(verdicts.rows), True)
        return every, ~every
    part = verdicts.rows["evidence"].map(parts)
    return part.eq("test").to_numpy(), part.eq(choice_part(parts)).to_numpy()


def _unsplit(verdicts: Verdicts, parts: Mapping[Any, str] | None) -> int:
    return int(verdicts.rows["evidence"].map(parts).isna().sum()) if parts else 0


def _unit_weights(verdicts: Verdicts, people: pd.DataFrame | None) -> FloatArray | None:
    """Finds the inverse of each unit's chance to be labelled; None where all had the same.

    They are divided by their mean, so that sums of weights count units.
    """
    if people is None or WEIGHT not in people or people[WEIGHT].nunique() < 2:
        return None
    of_item = people.drop_duplicates("evidence").set_index("evidence")[WEIGHT]
    weights = pd.Series([unit[1] for unit in verdicts.units]).map(of_item).fillna(0.0).to_numpy()
    scaled: FloatArray = weights / weights[weights > 0].mean()
    return np.where(scaled > 0, scaled, 1.0)


def _leading_kind(verdicts: Verdicts, test: BoolArray) -> TruthKind | None:
    """Chooses what more units have: known answers, or labels of people."""
    units: dict[TruthKind, int] = {
        kind: len(np.unique(verdicts.unit[test & ~np.isnan(reference.right)]))
        for kind, reference in verdicts.references.items()
    }
    kind: TruthKind = max(units, key=units.__getitem__) if units else "accuracy"
    return kind if units.get(kind) else None


class _Basis:
    """What quality rests on: the reference, its scale, and the verdicts beside it."""

    def __init__(
        self,
        verdicts: Verdicts,
        kind: TruthKind,
        test: BoolArray,
        train: BoolArray,
        loss: Mapping[str, float] | None,
        positive: str | None,
        weights: FloatArray | None,
    ) -> None:
        self.verdicts, self.kind, self.test = verdicts, kind, test
        self.weights = weights if kind == "agreement" else None
        """By unit, the inverse of its chance to be labelled; None where all had the same."""
        self.reference: Reference = verdicts.references[kind]
        self.scale: LabelScale | None = label_scale(verdicts, self.reference, positive)
        self.loss = None if loss is None else _loss(loss, self.scale)
        self.on_test = self._compared(self.reference, test)
        self.on_train = self._compared(self.reference, train)

    def _compared(self, reference: Reference, part: BoolArray) -> dict[int, Compared]:
        return dict(compared_setups(self.verdicts, reference, part, self.scale, self.loss))

    @property
    def own_rubrics(self) -> bool:
        """Whether some compared verdicts are under a rubric that was not given by the task."""
        compared = self.test & ~np.isnan(self.reference.right)
        return bool((self.verdicts.rows["rubric.author"][compared] != "provided").any())

    def other(self) -> Column:
        """Computes exact agreement with the other reference, where items have both."""
        reference = self.verdicts.references.get(OTHER[self.kind])
        if reference is None:
            return {}
        compared = self._compared(reference, self.test)
        return {index: Ratio.mean(c.units, c.right, SHARE) for index, c in compared.items()}

    @property
    def units(self) -> IntArray:
        """The units with labels that any setup judged."""
        return np.unique(np.concatenate([c.units for c in self.on_test.values()]))

    def _labels(self) -> tuple[IntArray, FloatArray]:
        """Returns each unit once, with its labels."""
        units = np.concatenate([c.units for c in self.on_test.values()])
        labels = np.concatenate([c.label for c in self.on_test.values()])
        once, first = np.unique(units, return_index=True)
        return once, labels[first]

    def constant(self, decider: Decider) -> float | None:
        """Computes the deciding measure of the best constant answer."""
        units, labels = self._labels()
        concept = pd.factorize(np.array([self.verdicts.units[unit][0] for unit in units]))[0]
        positive = 1 if self.scale is None else self.scale.positive or 0
        criterion = self.loss if decider == "loss" and self.loss is not None else decider
        if criterion == "loss":
            return None
        weights = None if self.weights is None else self.weights[units]
        return best_constant(
            criterion, labels, positive=positive, concepts=concept, weights=weights
        )

    def quality(self, measure: Measure, compared: Mapping[int, Compared]) -> dict[int, Terms]:
        """Computes the terms of a measure of quality, by setup."""
        assert measure.quality is not None
        terms = {
            index: self.weighted(measure.quality(of_setup)) for index, of_setup in compared.items()
        }
        return {
            index: of_setup
            for index, of_setup in terms.items()
            if of_setup is not None and not np.isnan(of_setup.value)
        }

    def weighted(self, terms: Terms | None) -> Terms | None:
        """Weights units by the inverse of their chance to be labelled, where chances differ."""
        if terms is None or self.weights is None:
            return terms
        return terms.weighted(self.weights[terms.units])

    def people_measures(self) -> PeopleMeasures | None:
        """Computes every measure for people with each other."""
        people = people_with_each_other(self.verdicts, self.units, self.scale)
        if people is None:
            return None
        clusters, measures = self.verdicts.clusters, {}
        for measure in registered():
            if measure.quality is None or measure.name in (*OWN_KEYS, *NOT_AMONG_PEOPLE):
                continue
            terms = self.weighted(measure.quality(people))
            if terms is not None and not np.isnan(terms.value):
                measures[measure.name] = as_quantity(terms.estimate(clusters))
        return {"measures": measures | self._people_ranks()}

    def _people_ranks(self) -> dict[str, Quantity]:
        """Correlates each rater with the mean of the others."""
        if self.scale is None or self.scale.kind != "ordinal" or self.weights is not None:
            return {}
        labels = self.verdicts.raters
        labels = labels[labels["unit"].isin(self.units)].drop_duplicates(["unit", "rater"])
        wide = labels.pivot(index="unit", columns="rater", values="stage")
        codes = self.verdicts.clusters[wide.index.to_numpy(dtype=np.int64)]
        ranks = {}
        for kind in ("tau_b", "spearman"):
            correlation = among_people(wide.to_numpy(dtype=float), None, codes, kind)
            if correlation is not None:
                ranks[kind] = as_quantity(rank_interval(correlation.people))
        return ranks


def _loss(loss: Mapping[str, float], scale: LabelScale | None) -> Loss:
    if scale is None or scale.kind != "binary" or scale.positive is None:
        raise DesignError(
            "a loss needs two labels, one of them positive; declare it as `positive`",
            choices=() if scale is None else scale.names,
        )
    return Loss(loss["miss"], loss["false_alarm"])


def _decider(basis: _Basis | None, declared: MeasureName | None) -> Decider:
    """Chooses the measure that decides: the declared one, else the one that fits the scale."""
    if basis is None:
        return declared or "exact"
    if basis.loss is not None:
        return "loss"
    fitting: list[Decider] = ["exact"]
    if basis.scale is not None and basis.scale.kind == "ordinal":
        fitting += ["weighted", "rank", "error"]
    elif basis.scale is not None:
        fitting += ["balanced"]
    if declared is not None and declared not in fitting:
        raise DesignError(
            unknown("measure", declared, fitting, "these labels"), choices=tuple(fitting)
        )
    if declared is not None or basis.scale is None:
        return declared or "exact"
    usual = default_measure(basis.scale.kind, basis.scale.stages)
    _, labels = basis._labels()
    # With one label among all items, every constant answer would be perfect.
    return usual if (labels.sum(axis=0) > 0).sum() > 1 else "exact"


# --- columns with intervals ----------------------------------------------------------------------


def _columns(verdicts: Verdicts, basis: _Basis | None) -> dict[str, Column]:
    """Computes the terms of every registered measure, by setup."""
    columns: dict[str, Column] = {}
    for measure in registered():
        if measure.column is not None:
            columns[measure.name] = measure.column(verdicts)
        if measure.quality is not None and basis is not None:
            columns[measure.name] = basis.quality(measure, basis.on_test)
    if basis is not None:
        columns["other"] = basis.other()
    return columns


def _quantities(column: Column, setups: int, clusters: IntArray) -> list[Quantity | None]:
    """Estimates a column, with intervals that hold for all of its rows together."""
    level = _level(column, clusters)
    return [
        as_quantity(column[index].estimate(clusters, level)) if index in column else None
        for index in range(setups)
    ]


def _level(column: Column, clusters: IntArray) -> float:
    """Computes the level of each interval at which those of all rows hold together."""
    if len(column) < 2:
        return LEVEL
    return simultaneous_level(np.stack([_influence(terms, clusters) for terms in column.values()]))


def _influence(terms: Terms, clusters: IntArray) -> FloatArray:
    """Computes how far each cluster moves an estimate."""
    values = terms.contributions(clusters)
    sums = np.zeros(int(clusters.max()) + 1)
    np.add.at(sums, clusters[terms.units], (values - values.mean()) / len(values))
    return sums


# --- which setups are best ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Compared:
    """The setups that were compared, and what came out."""

    terms: Column
    """The deciding measure by setup."""
    units: IntArray
    """The units that all compared setups judged."""
    clusters: int
    standings: Mapping[int, Standing]
    at_most_worse: Mapping[int, float]
    differences: Mapping[int, Quantity]
    chosen: int | None
    quality: Quantity | None
    """The deciding measure of the chosen setup, on items that took no part in its choice."""
    method: Literal["test split", "cross-fitted", "single setup"]
    left_out: int
    """The number of setups with known answers that judged too few items to be compared."""


def _compared(
    basis: _Basis | None,
    decider: Decider,
    columns: Mapping[str, Column],
    quantities: Mapping[str, Sequence[Quantity | None]],
    clusters: IntArray,
    margin: float | None,
) -> _Compared:
    """Compares the setups on the items that all of them judged."""
    column = columns.get(DECIDERS[decider], {})
    enough = {
        index: terms
        for index, terms in column.items()
        if len(np.unique(clusters[terms.units])) >= MIN_CLUSTERS
    }
    used = enough or column
    left_out = len(column) - len(used)
    units = _shared([*used.values()])
    if basis is None or not len(units):
        return _Compared(column, units, 0, {}, {}, {}, None, None, "single setup", left_out)
    indexes = [*used]
    terms = [_on_units(used[index], units) for index in indexes]
    sign = -1.0 if decider in LOWER_IS_BETTER else 1.0
    values = sign * _matrix(terms, clusters)
    codes = np.unique(clusters[units], return_inverse=True)[1]
    prices = np.array([_price(quantities["usd_per_1000"][index]) for index in indexes])
    comparison = compare(values, codes)
    trained = _train_terms(basis, DECIDERS[decider], indexes)
    before = _shared(trained) if len(trained) == len(indexes) else units[:0]
    level = LEVEL
    if len(before):
        learnt = sign * _matrix([_on_units(part, before) for part in trained], clusters)
        choice = choose(learnt, clusters[before], prices, margin)
        quality = terms[choice]
    else:
        choice = choose(values, codes, prices, margin)
        fold_choices = cross_fitted(values, codes, prices, margin)
        parts = [terms[index].on(fold_choices == index) for index in np.unique(fold_choices)]
        quality = _on_units(parts[0].joined(parts[1:]), units)
        # The folds may choose different setups, which at 95 % covers 88 to 93 %.
        level = _level(used, clusters)
    method: Literal["test split", "cross-fitted", "single setup"] = "cross-fitted"
    if len(before):
        method = "test split"
    elif len(indexes) < 2:
        method = "single setup"
    return _Compared(
        terms=column,
        units=units,
        clusters=int(codes.max()) + 1,
        standings=dict(zip(indexes, comparison.standings, strict=True)),
        at_most_worse={
            index: float(behind)
            for index, behind in zip(indexes, comparison.at_most_worse, strict=True)
            if not np.isnan(behind)
        },
        differences={
            index: _signed(as_quantity(gap), sign)
            for index, gap in zip(indexes, comparison.differences, strict=True)
            if gap is not None
        },
        chosen=indexes[choice],
        quality=as_quantity(quality.estimate(clusters, level)),
        method=method,
        left_out=left_out,
    )


def _train_terms(basis: _Basis, name: str, indexes: Sequence[int]) -> list[Terms]:
    """Computes the deciding measure on train, for the setups that have it there."""
    measure = next(candidate for candidate in registered() if candidate.name == name)
    terms = basis.quality(measure, basis.on_train)
    return [terms[index] for index in indexes if index in terms]


def _shared(columns: Sequence[Terms]) -> IntArray:
    """Lists the units that all of some terms have, sorted."""
    if not columns:
        return np.array([], dtype=np.int64)
    shared = set.intersection(*({*terms.units.tolist()} for terms in columns))
    return np.array(sorted(shared), dtype=np.int64)


def _on_units(terms: Terms, units: IntArray) -> Terms:
    order = np.argsort(terms.units, kind="stable")
    return terms.on(order[np.searchsorted(terms.units[order], units)])


def _matrix(terms: Sequence[Terms], clusters: IntArray) -> FloatArray:
    """Puts the contributions of setups on the same units side by side."""
    return np.column_stack([column.contributions(clusters) for column in terms])


def _price(price: Quantity | None) -> float:
    return np.nan if price is None else price["value"]


def _signed(quantity: Quantity, sign: float) -> Quantity:
    """Turns a difference round where lower is better, so that it reads as the measure does."""
    if sign > 0:
        return quantity
    low, high = quantity["low"], quantity["high"]
    turned: Quantity = {
        **quantity,
        "value": -quantity["value"],
        "low": None if high is None else -high,
        "high": None if low is None else -low,
    }
    return turned


def _effects(
    own: pd.DataFrame, setups: Sequence[Setup], column: Column, clusters: IntArray
) -> list[KnobEffect]:
    """Computes what each level of each varied knob does to quality, pair by pair of setups."""
    setup_terms = [(setups[index], terms) for index, terms in column.items()]
    gaps: dict[tuple[str, Any, Any], list[pd.Series]] = {}
    for knob in setup_terms[0][0].knobs if setup_terms else ():
        base = usual_level(own, knob)
        for (setup, terms), (other, usual) in permutations(setup_terms, 2):
            differing = [name for name, level in setup.knobs.items() if level != other.knobs[name]]
            if setup.judge == other.judge and differing == [knob] and other.knobs[knob] == base:
                units = _shared([terms, usual])
                if not len(units):
                    continue
                values = _matrix([_on_units(side, units) for side in (terms, usual)], clusters)
                gap = pd.Series(values[:, 0] - values[:, 1], units)
                gaps.setdefault((knob, setup.knobs[knob], base), []).append(gap)
    means = {key: pd.concat(pairs).groupby(level=0).mean() for key, pairs in gaps.items()}
    effects: list[KnobEffect] = []
    columns = {
        cluster: Ratio.mean(mean.index.to_numpy(), mean.to_numpy(), SIGNED_SHARE)
        for cluster, mean in enumerate(means.values())
    }
    together = _level(columns, clusters)
    for key, mean in means.items():
        knob, level, base = (key[0], *map(_plain, key[1:]))
        # What a unit adds to a measure other than a mean may exceed the scale of the measure.
        reach = max(1.0, float(mean.abs().max()))
        change = estimate(mean, clusters[mean.index], scale=difference(reach), level=together)
        quantity = as_quantity(change)
        pairs = len(gaps[key])
        effects.append({"knob": knob, "level": level, "base": base, "setups": pairs, **quantity})
    return effects


# --- rows ----------------------------------------------------------------------------------------


def _row(
    setup: Setup,
    index: int,
    verdicts: Verdicts,
    quantities: Mapping[str, Sequence[Quantity | None]],
    compared: _Compared,
    basis: _Basis | None,
) -> JudgeRow:
    of_setup = {name: column[index] for name, column in quantities.items()}
    setup_rows = verdicts.rows[verdicts.setup == index]
    other, kind = of_setup.pop("other", None), None if basis is None else basis.kind
    row: dict[str, Any] = {
        "setup": setup.name,
        "judge": setup.judge,
        "knobs": {knob: _plain(level) for knob, level in setup.knobs.items()},
        "rubric": setup.rubric,
        "tags": sorted(map(str, setup_rows["tag"].unique())),
        "items": int(setup_rows["evidence"].nunique()),
        "verdicts": int(setup_rows["asked"].sum()),
        "failed_calls": int((~setup_rows["asked"]).sum()),
        "on_frontier": None,
        "difference": compared.differences.get(index),
        "at_most_worse": compared.at_most_worse.get(index),
        "truth": _quality(of_setup.get("exact"), kind),
        "standing": compared.standings.get(index, "unknown"),
        "other_truth": _quality(other, None if kind is None else OTHER[kind]),
        "measures": {
            name: quantity
            for name, quantity in of_setup.items()
            if quantity is not None and name not in OWN_KEYS
        },
        **{name: of_setup.get(name) for name in OWN_KEYS},
    }
    return row  # type: ignore[return-value]  # the keys of `quantities` are not checked


def _quality(quantity: Quantity | None, kind: TruthKind | None) -> Quality | None:
    return None if quantity is None or kind is None else {"kind": kind, **quantity}


def _plain(level: Any) -> Any:
    """Writes a level as JSON has it."""
    if level is None or pd.isna(level):
        return None
    return level.item() if isinstance(level, np.generic) else level


def _mark_sticky_repeats(
    own: pd.DataFrame, setups: Sequence[Setup], rows: Sequence[JudgeRow]
) -> list[str]:
    """Notes at a setup's consistency that its repeats resemble their neighbours too much.

    Rows are in the order of the setups. Returns the same as a note on the table.
    """
    table = independence(own, notes_only=True)
    cells = {tuple(cell) for cell in table.loc[table["note"] == ALIKE, CELL].to_numpy()}
    names = []
    for setup, row in zip(setups, rows, strict=True):
        used = {tuple(cell) for cell in own[CELL].iloc[setup.index].drop_duplicates().to_numpy()}
        if row["consistency"] is not None and cells & used:
            row["consistency"]["note"] = ALIKE
            names.append(setup.name)
    if not names:
        return []
    return [
        f"repeats of {', '.join(names)} agree with their neighbours more than with other repeats: "
        "the provider may repeat answers, and consistency looks too good"
    ]


def _mark_frontier(rows: Sequence[JudgeRow]) -> None:
    """Marks the setups that no other beats in price without being worse."""
    priced = [
        (row, row["truth"]["value"], row["usd_per_1000"]["value"])
        for row in rows
        if row["truth"] is not None and row["usd_per_1000"] is not None
    ]
    for row, quality, price in priced:
        row["on_frontier"] = not any(
            better >= quality and cheaper <= price and (better > quality or cheaper < price)
            for _, better, cheaper in priced
        )


def _rank(row: JudgeRow, decider: Decider) -> tuple[float, float, str]:
    deciding, steady = row["measures"].get(DECIDERS[decider]), row["consistency"]
    sign = 1.0 if decider in LOWER_IS_BETTER else -1.0
    return (
        sign * deciding["value"] if deciding else np.inf,
        -steady["value"] if steady else 1.0,
        row["setup"],
    )


# --- the table's own entries ----------------------------------------------------------------------


def _chosen_quality(compared: _Compared, kind: TruthKind | None) -> ChosenQuality | None:
    """Returns the deciding measure of the chosen setup, corrected for its having been chosen."""
    if compared.quality is None or kind is None:
        return None
    return {"kind": kind, **compared.quality, "method": compared.method}


def _heads(
    columns: Mapping[str, Column], basis: _Basis | None, decider: Decider
) -> list[ColumnHead]:
    """Lists the columns that any setup has, the deciding measure first, with the labels' words."""
    first = DECIDERS[decider]
    titles = {
        "exact": "accuracy" if basis and basis.kind == "accuracy" else "agreement with people"
    }
    scale = None if basis is None else basis.scale
    if scale is not None and scale.kind == "binary" and scale.positive is not None:
        titles["sensitivity"] = f"finds “{scale.names[scale.positive]}”"
        titles["specificity"] = f"finds “{scale.names[1 - scale.positive]}”"
    measures = [measure for measure in registered() if columns.get(measure.name)]
    measures.sort(key=lambda measure: measure.name != first)
    return [
        {
            "name": measure.name,
            "title": titles.get(measure.name, measure.title),
            "about": measure.about,
            "unit": measure.unit,
            # Without labels, where setups differ is all that is known of them.
            "main": measure.main
            or measure.name == first
            or (measure.name == "disagreement" and basis is None),
        }
        for measure in measures
    ]


def _scale_row(scale: LabelScale | None) -> LabelScaleRow | None:
    if scale is None:
        return None
    positive = None if scale.positive is None else scale.names[scale.positive]
    return {"kind": scale.kind, "labels": [*scale.names], "positive": positive}


def _confusion(
    basis: _Basis | None, compared: _Compared, setups: Sequence[Setup]
) -> Confusion | None:
    """Crosses verdicts and labels of the chosen setup."""
    if basis is None or basis.scale is None or compared.chosen is None:
        return None
    chosen_setup, stages = basis.on_test[compared.chosen], basis.scale.stages
    tables = chosen_setup.tables
    weights = None if basis.weights is None else basis.weights[chosen_setup.units]
    shares = np.average(tables, axis=0, weights=weights)
    statuses = [name for name, row in zip(UNSCORED, shares[stages:], strict=True) if row.any()]
    rows = [*range(stages), *(stages + UNSCORED.index(name) for name in statuses)]
    return {
        "setup": setups[compared.chosen].name,
        "verdicts": [*basis.scale.names, *(name.replace("_", " ") for name in statuses)],
        "labels": [*basis.scale.names],
        "shares": shares[rows].tolist(),
        "n": len(tables),
    }


class _BesidePeople(TypedDict):
    rate: PeopleRate | None
    length: LengthEffect | None
    alt_test: list[ReplacementTest]


def _beside_people(
    basis: _Basis | None, compared: _Compared, setups: Sequence[Setup], epsilon: Epsilon
) -> _BesidePeople:
    """Computes what labels say of the chosen setup beyond its measures."""
    entries: _BesidePeople = {"rate": None, "length": None, "alt_test": []}
    chosen_index = compared.chosen
    if basis is None or basis.scale is None or chosen_index is None:
        return entries
    verdicts, scale = basis.verdicts, basis.scale
    labels = np.where(basis.test[:, None], basis.reference.labels, 0.0)
    judged = judged_units(verdicts, chosen_index, scale, labels)
    if judged is not None:
        name = setups[chosen_index].name
        # Where all answers are known there is no rate to estimate.
        if basis.kind == "agreement" or np.isnan(judged.label).any():
            entries["rate"] = rate_of(name, judged, verdicts.clusters, scale, basis.weights)
        if basis.weights is not None:  # neither is a function of weighted sums
            return entries
        entries["length"] = length_of(name, chosen_index, verdicts, judged, scale, basis.kind)
    if basis.kind == "agreement" and basis.weights is None:
        tests = [
            replacement_test(setups[index].name, of_setup, verdicts, scale, epsilon)
            for index, of_setup in basis.on_test.items()
        ]
        entries["alt_test"] = [test for test in tests if test is not None]
    return entries


def _known_items(verdicts: Verdicts) -> int:
    """Counts the items with a known answer or labels."""
    has_reference = np.zeros(len(verdicts.rows), dtype=bool)
    for reference in verdicts.references.values():
        has_reference |= ~np.isnan(reference.right)
    return int(verdicts.rows.loc[has_reference, "evidence"].nunique())


def _split(verdicts: Verdicts, test: BoolArray, train: BoolArray, chosen_on: Part) -> SplitUse:
    """Counts the items with known answers or labels in each part of a split."""
    has_reference = np.zeros(len(verdicts.rows), dtype=bool)
    for reference in verdicts.references.values():
        has_reference |= ~np.isnan(reference.right)
    evidence = verdicts.rows["evidence"]
    return {
        "chosen_on": chosen_on,
        "choice": int(evidence[has_reference & train].nunique()),
        "test": int(evidence[has_reference & test].nunique()),
        "uses": 0,
    }


def _notes(
    rows: Sequence[JudgeRow],
    compared: _Compared,
    repeating: Sequence[str],
    basis: _Basis | None,
    unsplit: int,
) -> Iterator[str]:
    """Yields what a reader must know beside the numbers."""
    if unsplit:
        yield (
            f"{unsplit:,} verdicts are on items that joined the study after its split, and count "
            "in no estimate of quality; 'judge-gym labels split' adds them"
        )
    if compared.left_out:
        yield (
            f"not compared, with fewer than {MIN_CLUSTERS} judged clusters of items with a known "
            f"answer or labels: {compared.left_out} of {len(rows)} setups"
        )
    if basis is not None and basis.kind == "agreement" and basis.own_rubrics:
        yield OTHER_RUBRIC
    if basis is not None and basis.scale is not None and basis.scale.kind == "binary":
        if basis.scale.positive is None:
            yield (
                f"which of {' and '.join(basis.scale.names)} is the positive label is not known: "
                "sensitivity and specificity need it, as the study's key `positive`"
            )
    if basis is not None and basis.weights is not None:
        yield (
            "items were drawn for labels with different chances: every number on labels is "
            "weighted by them, and holds approximately; correlations of ranks, the effect of "
            "length and the replacement of a rater are left out"
        )
    if repeating:
        yield (
            f"the repeats of {', '.join(repeating)} have the same texts or temperature 0: "
            "consistency needs a further series ('judge-gym run --series NAME')"
        )
    for row in rows:
        if row["failed_calls"]:
            yield (
                f"{row['setup']}: {row['failed_calls']:,} failed calls are left out; "
                "'judge-gym retry' asks again"
            )


# --- one setup against another --------------------------------------------------------------------


class QualityGain(NamedTuple):
    """The deciding measure of two setups on the items that both judged, and their difference."""

    measure: Decider
    base: Quantity
    other: Quantity
    gain: Quantity
    """The other minus the base, positive where the other is better, at the level asked for."""


def quality_gain(
    frame: pd.DataFrame,
    people: pd.DataFrame,
    *,
    knob: str,
    base: Any,
    measure: MeasureName | None = None,
    loss: Mapping[str, float] | None = None,
    positive: str | None = None,
    level: float = LEVEL,
) -> QualityGain | None:
    """Compares the deciding measure of two setups that differ in one knob, paired by item.

    Args:
        frame: the tidy samples of two setups.
        people: as in `judge_table`.
        knob: in which they differ.
        base: the level of the setup that the other is compared with.
        measure: as in `judge_table`.
        loss: as in `judge_table`.
        positive: as in `judge_table`.
        level: of the interval of the difference.

    Returns:
        None where fewer than two setups have verdicts on items with labels or known answers.
    """
    own = own_rows(frame)
    setups = setups_of(own)
    verdicts = of_setups(own, setups, people)
    every = np.full(len(verdicts.rows), True)
    kind, weights = _leading_kind(verdicts, every), _unit_weights(verdicts, people)
    if kind is None:
        return None
    basis = _Basis(verdicts, kind, every, ~every, loss, positive, weights)
    decider = _decider(basis, measure)
    deciding = next(one for one in registered() if one.name == DECIDERS[decider])
    terms = basis.quality(deciding, basis.on_test)
    indexes = sorted(terms, key=lambda index: setups[index].knobs.get(knob) != base)
    if len(indexes) != 2 or setups[indexes[0]].knobs.get(knob) != base:
        return None
    units = _shared([*terms.values()])
    if not len(units):
        return None
    pair = [_on_units(terms[index], units) for index in indexes]
    sign = -1.0 if decider in LOWER_IS_BETTER else 1.0
    values = sign * _matrix(pair, verdicts.clusters)
    gain = compare(values, verdicts.clusters[units], against=0, level=level).differences[1]
    assert gain is not None, "only the base has no difference from itself"
    before, after = (as_quantity(one.estimate(verdicts.clusters)) for one in pair)
    return QualityGain(decider, before, after, as_quantity(gain))
