"""The judge table: one row per setup, with its quality, consistency, price and time.

The unit is one verdict on one item (both orders of a pair), averaged over repeats and draws of
rubrics. Intervals are over items by cluster, and hold for all rows of a column together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import (
    CELL_OF_REPLICATES,
    first_replicates,
    once_per_call,
    own_rows,
)
from judge_gym.analysis.judges.sentence import sentence
from judge_gym.analysis.judges.setups import Setup, setups_of, usual_level
from judge_gym.analysis.judges.standing import Codes, choose, cross_fitted
from judge_gym.analysis.stats.comparisons import compare, simultaneous_level
from judge_gym.analysis.stats.intervals import (
    DIFFERENCE,
    LEVEL,
    MEDIAN,
    SHARE,
    SIGNED_SHARE,
    Estimate,
    Floats,
    Scale,
    estimate,
)
from judge_gym.records.judge_table import (
    MIN_CLUSTERS,
    ChosenQuality,
    JudgeRow,
    JudgeTable,
    KnobEffect,
    Quality,
    Quantity,
    SplitUse,
    Standing,
    TruthKind,
)

QUANTITY_COLUMNS = (
    *("unit", "call_id", "asked", "status", "mask", "pair", "repeats", "usd", "seconds"),
    *("view_usd", "view_seconds", "rubric_usd", "rubric_seconds"),
    *("right", "agrees", "agrees_most", "test", "train"),
)
"""The columns of samples that a setup's quantities are computed from."""
UNIT = ["concept", "evidence"]
"""What one verdict is about."""
TIE = 3
"""The stage of a pair's rubric that says that both responses are equally good."""
UNREADABLE = ("refused", "truncated", "parse_failed")
SCALES: Mapping[str, Scale] = {
    "truth": SHARE,
    "consistency": SHARE,
    "position_bias": SIGNED_SHARE,
    "abstained": SHARE,
    "unreadable": SHARE,
    "usd_per_1000": MEDIAN,
    "seconds": MEDIAN,
    "answered": SHARE,
    "right_of_answered": SHARE,
    "majority": SHARE,
    "disagreement": SHARE,
}
"""The columns of quantities, with the scale of each."""


def judge_table(
    frame: pd.DataFrame,
    people: pd.DataFrame | None = None,
    *,
    preparation: pd.DataFrame | None = None,
    margin: float | None = None,
    in_test: Mapping[Any, bool] | None = None,
    simulated: str = "",
) -> JudgeTable:
    """Returns the judge table of tidy samples.

    Args:
        frame: the tidy samples; a column `seconds` is the time of each call.
        people: raters' stages, with columns tag, evidence, rater, stage.
        preparation: the calls for views and rubrics, with columns tag, evidence (of a view) or
            rubric, usd, seconds. They count in full for each setup that needs them.
        margin: the difference below which the study calls two setups equally good.
        in_test: which items of a split are in its test part. The choice of a setup is then made on
            the others, and quality is estimated on these.
        simulated: the warning that judges were simulated.
    """
    own, clusters = _with_units(_with_prepared(own_rows(frame), preparation))
    labels = _labels(own, people)
    own = _with_values(own, labels)
    part = own["evidence"].map(in_test) if in_test else pd.Series(True, own.index)
    own = own.assign(test=part.eq(True), train=part.eq(False))
    kind: TruthKind | None = "accuracy" if own["right"].notna().any() else None
    if kind is None and own["agrees"].notna().any():
        kind = "agreement"
    setups = setups_of(own)
    apart = _disagreements(setups)
    parts = [_unit_values(setup.rows, kind) | apart.get(setup.name, {}) for setup in setups]
    columns = {
        name: _quantities([part.get(name) for part in parts], scale, clusters)
        for name, scale in SCALES.items()
    }
    found = _compared(parts, columns, clusters, margin)
    rows = [_row(setup, place, columns, found, kind) for place, setup in enumerate(setups)]
    repeating = [
        setup.name
        for setup, row in zip(setups, rows, strict=True)
        if row["consistency"] is None and setup.rows["repeats"].any()
    ]
    _mark_frontier(rows)
    rows.sort(key=_rank)
    chosen = None if found.chosen is None else setups[found.chosen].name
    table: JudgeTable = {
        "sentence": "",
        "chosen": chosen,
        "chosen_quality": None if kind is None else _chosen_quality(found, kind),
        "kind": kind,
        "people_with_each_other": _people(labels, own, clusters) if kind == "agreement" else None,
        "constant": _constant(own, labels, kind),
        "raters": 0 if labels is None else int(labels["rater"].nunique()),
        "known_items": int(own.loc[own["known"], "evidence"].nunique()),
        "compared_items": len(found.items),
        "clusters": found.clusters,
        "margin": margin,
        "split": _split(own) if in_test else None,
        "simulated": simulated,
        "notes": [*_notes(rows, found, repeating, int(part.isna().sum()))],
        "effects": _effects(own, setups, parts, clusters),
        "rows": rows,
    }
    return {**table, "sentence": sentence(table)}


# --- samples with what they count ----------------------------------------------------------------


def _with_prepared(own: pd.DataFrame, preparation: pd.DataFrame | None) -> pd.DataFrame:
    """Adds the price and time of the view and of the rubric that each verdict needed."""
    for kind, key in (("view", "evidence"), ("rubric", "rubric")):
        names = {name: f"{kind}_{name}" for name in ("usd", "seconds")}
        if preparation is None or preparation.empty or preparation[key].isna().all():
            own = own.assign(**dict.fromkeys(names.values(), 0.0))
            continue
        calls = preparation.loc[preparation[key].notna(), ["tag", key, *names]]
        calls = calls.drop_duplicates(["tag", key]).astype({key: own[key].dtype})
        made = calls.rename(columns=names).assign(made=True)
        own = own.merge(made, on=["tag", key], how="left")
        none = own.pop("made").isna()
        own[[*names.values()]] = own[[*names.values()]].astype(float).mask(none, 0.0)
    return own


def _with_units(own: pd.DataFrame) -> tuple[pd.DataFrame, Codes]:
    """Returns samples with the number of the unit that each is about, and each unit's cluster."""
    own = own.reset_index(drop=True)
    unit = own.groupby(UNIT, observed=True).ngroup().to_numpy()
    names = own["evidence"].astype(str)
    if "cluster" in own:
        given = own["cluster"].astype("str").fillna("")
        names = names.where(given == "", "cluster " + given)
    first = pd.Series(unit).drop_duplicates()
    of_unit = names.iloc[first.index].to_numpy()[np.argsort(first.to_numpy())]
    return own.assign(unit=unit), pd.factorize(of_unit)[0]


def _labels(own: pd.DataFrame, people: pd.DataFrame | None) -> pd.DataFrame | None:
    """Returns people's stages with the unit of each; None without any."""
    if people is None or people.empty:
        return None
    items = own[["tag", "evidence", "unit"]].drop_duplicates()
    found = people.merge(items, on=["tag", "evidence"])
    return found if len(found) else None


def _with_values(own: pd.DataFrame, labels: pd.DataFrame | None) -> pd.DataFrame:
    """Adds how right each verdict is: `right`, `agrees` with raters, `agrees_most` of them.

    They are NaN where nothing is known or the call failed, and 0 without a score.
    """
    asked = (own["status"] != "provider_error").to_numpy()
    truth = pd.to_numeric(own["truth"], errors="coerce").to_numpy(dtype=float)
    stages = int(own["n_stages"].max()) if len(own) else 0
    known = np.zeros((len(own), stages))
    has = truth >= 1
    known[has, truth[has].astype(int) - 1] = 1.0
    given, most = np.zeros_like(known), np.zeros_like(known)
    if labels is not None:
        counts = pd.crosstab([labels["tag"], labels["evidence"]], labels["stage"])
        counts = counts.reindex(columns=range(1, stages + 1), fill_value=0)
        keys = pd.MultiIndex.from_frame(own[["tag", "evidence"]])
        place = counts.index.get_indexer(keys)
        votes = np.where((place >= 0)[:, None], counts.to_numpy(dtype=float)[place], 0.0)
        total, top = votes.sum(axis=1, keepdims=True), votes.max(axis=1, keepdims=True)
        given = votes / np.maximum(total, 1)
        most = (votes == top) & (top > 0)
        most = np.where(most.sum(axis=1, keepdims=True) == 1, most, 0.0)
    weights = {"right": known, "agrees": given, "agrees_most": most}
    made = {
        name: np.where(asked & (weight.sum(axis=1) > 0), _score(own, weight), np.nan)
        for name, weight in weights.items()
    }
    return own.assign(
        **made, asked=asked, known=asked & ~np.isnan(made["right"]) | ~np.isnan(made["agrees"])
    )


def _score(own: pd.DataFrame, weight: Floats) -> Floats:
    """Returns the weight of each verdict's stages; a subset is spread equally.

    A tie on a pair counts one half where no answer or label of the task is a tie.
    """
    masks = own["mask"].to_numpy()
    chosen = (masks[:, None] >> np.arange(weight.shape[1])) & 1
    found: Floats = (chosen * weight).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
    pair = own["pair"].to_numpy(dtype=bool)
    if pair.any() and weight.shape[1] >= TIE:
        has_ties = pd.Series(weight[:, TIE - 1] > 0).groupby(own["concept"].to_numpy())
        half = pair & (masks == 1 << (TIE - 1)) & ~has_ties.transform("any").to_numpy()
        found[half] = 0.5
    return found


# --- one setup -----------------------------------------------------------------------------------


class _Ratio(NamedTuple):
    """A quantity as a ratio of sums over units: of a mean, the denominators are 1."""

    units: Codes
    above: Floats
    below: Floats

    @classmethod
    def of(cls, above: pd.Series, below: pd.Series | None = None) -> "_Ratio":
        """Returns the ratio of two series that are indexed by unit."""
        ones = np.ones(len(above))
        under = ones if below is None else np.asarray(below.to_numpy(), dtype=np.float64)
        return cls(
            np.asarray(above.index.to_numpy(), dtype=np.intp),
            np.asarray(above.to_numpy(), dtype=np.float64),
            under,
        )


def _unit_values(samples: pd.DataFrame, kind: TruthKind | None) -> dict[str, _Ratio]:
    """Returns the quantities of a setup by unit."""
    # Selecting columns first makes it fast to select rows.
    rows = once_per_call(
        samples[[*dict.fromkeys([*CELL_OF_REPLICATES, *QUANTITY_COLUMNS])]], ["unit"]
    )
    asked = rows[rows["asked"]]
    if asked.empty:
        return {}
    status = asked["status"]
    found = {
        "abstained": _mean(asked, status == "abstained"),
        "unreadable": _mean(asked, status.isin(UNREADABLE)),
        "usd_per_1000": _sum_over_orders(asked, "usd", 1000),
        "seconds": _sum_over_orders(asked, "seconds"),
        "consistency": _equal_pairs(asked),
        "position_bias": _leanings(asked),
    }
    if kind is not None:
        column = "right" if kind == "accuracy" else "agrees"
        known = asked[asked[column].notna() & asked["test"]]
        train = asked[asked[column].notna() & asked["train"]]
        truth, answered = _mean(known, known[column]), _mean(known, known["status"] == "scored")
        found |= {
            "truth": truth,
            "train": _mean(train, train[column]),
            "answered": answered,
            "right_of_answered": _Ratio(truth.units, truth.above, answered.above),
        }
        if kind == "agreement":
            clear = asked[asked["agrees_most"].notna() & asked["test"]]
            found["majority"] = _mean(clear, clear["agrees_most"])
    return {name: ratio for name, ratio in found.items() if len(ratio.units) and ratio.below.any()}


def _mean(rows: pd.DataFrame, values: pd.Series) -> _Ratio:
    """Returns the mean of each unit, with equal weight of both orders of a pair."""
    by_order = values.astype(float).groupby([rows["unit"], rows["flipped"]]).mean()
    return _Ratio.of(by_order.groupby(level=0).mean())


def _sum_over_orders(rows: pd.DataFrame, column: str, factor: float = 1) -> _Ratio:
    """Returns a unit's sum over both orders, averaged over repeats, with what prepares it.

    A view is made once for each item, a rubric once for all items of the setup.
    """
    known = rows[rows[column].notna()]
    by_order = known[column].groupby([known["unit"], known["flipped"]]).mean()
    sums = by_order.groupby(level=0).sum()
    sums += known[f"view_{column}"].groupby(known["unit"]).mean()
    rubrics = known.drop_duplicates("rubric")[f"rubric_{column}"].sum()
    return _Ratio.of((sums + rubrics / max(len(sums), 1)).dropna() * factor)


def _equal_pairs(rows: pd.DataFrame) -> _Ratio:
    """Returns the numbers of equal and of all pairs of repeats, by unit; abstaining is a verdict.

    Another rubric, or a pair shown in the other order, is not a repeat. Where the provider repeats
    its own text, only another series is.
    """
    read = first_replicates(rows[rows["status"].isin(("scored", "abstained"))])
    by = [read["unit"], read["rubric"], read["flipped"]]
    n = read.groupby(by, observed=True).size()
    same = read.groupby([*by, read["mask"]], observed=True).size()
    equal = (same * (same - 1) / 2).groupby(level=0).sum()
    pairs = (n * (n - 1) / 2).groupby(level=0).sum()
    return _Ratio.of(equal, pairs)


def _leanings(rows: pd.DataFrame) -> _Ratio:
    """Returns, by pair shown in both orders, decisions for the first minus the second, and all."""
    both = rows.groupby("unit")["flipped"].transform("nunique") == 2
    decided = rows[rows["pair"].astype(bool) & both & rows["mask"].isin((1, 2, 1 << (TIE - 1)))]
    side = decided["mask"].map({1: 1.0, 2: -1.0}).fillna(0.0)
    shown = side.where(~decided["flipped"].astype(bool), -side)
    sums = shown.groupby(decided["unit"]).agg(["sum", "count"])
    return _Ratio.of(sums["sum"], sums["count"])


def _disagreements(setups: Sequence[Setup]) -> dict[str, dict[str, _Ratio]]:
    """Returns, by setup and unit, the chance that another setup gives another verdict.

    Setups are compared where their scales have the same number of stages.
    """
    key = ["unit", "n_stages"]
    scored = [
        rows[[*key, "mask"]].assign(setup=setup.name)
        for setup in setups
        for rows in [setup.rows[setup.rows["status"] == "scored"]]
        if len(rows)
    ]
    if len(scored) < 2:
        return {}
    counts = pd.concat(scored).groupby(["setup", *key, "mask"]).size().rename("share")
    frame = (counts / counts.groupby(level=["setup", *key]).transform("sum")).reset_index()
    frame["all"] = frame.groupby([*key, "mask"])["share"].transform("sum")
    others = frame.groupby(key)["setup"].transform("nunique") - 1
    frame["equal"] = frame["share"] * (frame["all"] - frame["share"]) / others.where(others > 0)
    equal = frame.dropna().groupby(["setup", "unit"])["equal"].sum()
    return {
        str(name): {"disagreement": _Ratio.of(1 - part.droplevel("setup"))}
        for name, part in equal.groupby(level="setup")
    }


# --- columns with intervals ----------------------------------------------------------------------


def _quantities(
    ratios: Sequence[_Ratio | None], scale: Scale, clusters: Codes
) -> list[Quantity | None]:
    """Returns a column of the table, with intervals that hold for all of its rows together."""
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return [None] * len(ratios)
    level = _level(known, scale, clusters)
    return [None if ratio is None else _quantity(ratio, scale, clusters, level) for ratio in ratios]


def _level(ratios: Sequence[_Ratio], scale: Scale, clusters: Codes) -> float:
    """Returns the level of each interval at which those of all ratios hold together."""
    return simultaneous_level(np.stack([_influence(ratio, scale, clusters) for ratio in ratios]))


def _influence(ratio: _Ratio, scale: Scale, clusters: Codes) -> Floats:
    """Returns how far each cluster moves an estimate."""
    if scale == MEDIAN:
        moved = (ratio.above > np.median(ratio.above)) - 0.5
    else:
        value = ratio.above.sum() / ratio.below.sum()
        moved = (ratio.above - value * ratio.below) / ratio.below.sum()
    sums = np.zeros(int(clusters.max()) + 1)
    np.add.at(sums, clusters[ratio.units], moved)
    return sums


def _quantity(ratio: _Ratio, scale: Scale, clusters: Codes, level: float = LEVEL) -> Quantity:
    """Returns an estimate with its interval."""
    codes = clusters[ratio.units]
    below = None if scale == MEDIAN or (ratio.below == 1).all() else ratio.below
    return as_quantity(estimate(ratio.above, codes, scale=scale, below=below, level=level))


def as_quantity(estimate: Estimate) -> Quantity:
    """Returns an estimate as tables have it."""
    value, low, high, n = estimate[:4]
    if not estimate.known:
        return {"value": value, "low": None, "high": None, "n": n}
    return {"value": value, "low": min(low, value), "high": max(high, value), "n": n}


def _people(labels: pd.DataFrame | None, own: pd.DataFrame, clusters: Codes) -> Quantity | None:
    """Returns the share of equal labels among pairs of raters, on the items of `truth`."""
    if labels is None:
        return None
    given = labels[labels["unit"].isin(own.loc[own["known"] & own["test"], "unit"])]
    given = given.drop_duplicates(["unit", "rater"])
    n = given.groupby("unit").size()
    same = given.groupby(["unit", "stage"]).size()
    equal = (same * (same - 1)).groupby(level=0).sum() / (n * (n - 1)).where(n > 1)
    equal = equal.dropna()
    if equal.empty:
        return None
    return _quantity(_Ratio.of(equal), SHARE, clusters)


def _constant(
    own: pd.DataFrame, labels: pd.DataFrame | None, kind: TruthKind | None
) -> float | None:
    """Returns the quality of always giving the most frequent answer or label of each concept."""
    known = own[own["known"] & own["test"]].drop_duplicates("unit")
    if kind is None or known.empty:
        return None
    if kind == "accuracy" or labels is None:
        given = known.assign(weight=1.0, stage=pd.to_numeric(known["truth"], errors="coerce"))
        given = given.dropna(subset="stage")
    else:
        given = labels.drop_duplicates(["unit", "rater"]).merge(
            known[["unit", "concept"]], on="unit"
        )
        given = given.assign(weight=1 / given.groupby("unit")["rater"].transform("size"))
    weights = given.groupby(["concept", "stage"], observed=True)["weight"].sum()
    best = float(weights.groupby(level="concept", observed=True).max().sum())
    return best / given["unit"].nunique() if len(given) else None


# --- standings and rows --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Compared:
    """The setups that were compared, and what came out."""

    items: Codes
    """The units that all of them judged."""
    clusters: int
    standings: Mapping[int, Standing]
    at_most_worse: Mapping[int, float]
    differences: Mapping[int, Quantity]
    chosen: int | None
    quality: Quantity | None
    """The quality of the chosen setup, on items that did not take part in its choice."""
    method: Literal["test split", "cross-fitted", "single setup"]
    left_out: int
    """The number of setups with known answers that judged too few items to be compared."""


def _compared(
    parts: Sequence[Mapping[str, _Ratio]],
    columns: Mapping[str, Sequence[Quantity | None]],
    clusters: Codes,
    margin: float | None,
) -> _Compared:
    """Compares the setups on the items that all of them judged."""
    known = {place: part["truth"] for place, part in enumerate(parts) if "truth" in part}
    enough = {
        place: ratio
        for place, ratio in known.items()
        if len(np.unique(clusters[ratio.units])) >= MIN_CLUSTERS
    }
    used = enough or known
    if not used:
        return _Compared(np.array([], dtype=np.intp), 0, {}, {}, {}, None, None, "single setup", 0)
    items = _shared([*used.values()])
    of_cluster = np.unique(clusters[items], return_inverse=True)[1]
    groups = int(of_cluster.max(initial=-1)) + 1
    places = [*used]
    left_out = len(known) - len(used)
    if not len(items):
        return _Compared(items, 0, {}, {}, {}, None, None, "single setup", left_out)
    table = _matrix([used[place] for place in places], items)
    prices = np.array(
        [np.nan if (q := columns["usd_per_1000"][p]) is None else q["value"] for p in places]
    )
    found = compare(table, of_cluster)
    trained = [parts[place]["train"] for place in places if "train" in parts[place]]
    before = _shared(trained) if len(trained) == len(places) else items[:0]
    level = LEVEL
    if len(before):
        choice = choose(_matrix(trained, before), clusters[before], prices, margin)
        scored = table[:, choice]
    else:
        choice = choose(table, of_cluster, prices, margin)
        scored = cross_fitted(table, of_cluster, prices, margin)
        # The folds may choose different setups, which at 95 % covers 88 to 93 %.
        level = _level([*used.values()], SHARE, clusters)
    return _Compared(
        items=items,
        clusters=groups,
        standings=dict(zip(places, found.standings, strict=True)),
        at_most_worse={
            place: float(worse)
            for place, worse in zip(places, found.at_most_worse, strict=True)
            if not np.isnan(worse)
        },
        differences={
            place: as_quantity(difference)
            for place, difference in zip(places, found.differences, strict=True)
            if difference is not None
        },
        chosen=places[choice],
        quality=_quantity(_Ratio(items, scored, np.ones(len(items))), SHARE, clusters, level),
        method="single setup"
        if len(places) < 2
        else "test split"
        if len(before)
        else "cross-fitted",
        left_out=left_out,
    )


def _shared(ratios: Sequence[_Ratio]) -> Codes:
    """Returns the units that all of some ratios have, sorted."""
    return np.array(sorted(set.intersection(*({*one.units} for one in ratios))), dtype=np.intp)


def _matrix(ratios: Sequence[_Ratio], units: Codes) -> Floats:
    """Returns the values of ratios on the same units, a column for each ratio."""
    return np.column_stack([one.above[np.searchsorted(one.units, units)] for one in ratios])


def _effects(
    own: pd.DataFrame,
    setups: Sequence[Setup],
    parts: Sequence[Mapping[str, _Ratio]],
    clusters: Codes,
) -> list[KnobEffect]:
    """Returns what each level of each varied knob does to quality, pair by pair of setups."""
    known = [
        (one, part["truth"]) for one, part in zip(setups, parts, strict=True) if "truth" in part
    ]
    gaps: dict[tuple[str, Any, Any], list[pd.Series]] = {}
    for knob in known[0][0].knobs if known else ():
        base = usual_level(own, knob)
        for (one, right), (other, usual) in permutations(known, 2):
            apart = [name for name, level in one.knobs.items() if level != other.knobs[name]]
            if one.judge == other.judge and apart == [knob] and other.knobs[knob] == base:
                items = _shared([right, usual])
                values = _matrix([right, usual], items)
                gap = pd.Series(values[:, 0] - values[:, 1], items)
                gaps.setdefault((knob, one.knobs[knob], base), []).append(gap)
    means = {key: pd.concat(pairs).groupby(level=0).mean() for key, pairs in gaps.items()}
    means = {key: mean for key, mean in means.items() if len(mean)}
    level = _level([*map(_Ratio.of, means.values())], SIGNED_SHARE, clusters) if means else LEVEL
    found: list[KnobEffect] = []
    for key, mean in means.items():
        codes = clusters[mean.index]
        quantity = as_quantity(estimate(mean.to_numpy(), codes, scale=DIFFERENCE, level=level))
        knob, changed, base = (key[0], *map(_plain, key[1:]))
        pairs = len(gaps[key])
        found.append({"knob": knob, "level": changed, "base": base, "setups": pairs, **quantity})
    return found


def _row(
    setup: Setup,
    place: int,
    columns: Mapping[str, Sequence[Quantity | None]],
    found: _Compared,
    kind: TruthKind | None,
) -> JudgeRow:
    quantities = {name: column[place] for name, column in columns.items()}
    truth = quantities.pop("truth")
    quality: Quality | None = None
    if truth is not None and kind is not None:
        quality = {"kind": kind, **truth}
    rows = setup.rows
    row: dict[str, Any] = {
        "setup": setup.name,
        "judge": setup.judge,
        "knobs": {knob: _plain(level) for knob, level in setup.knobs.items()},
        "rubric": setup.rubric,
        "tags": sorted(map(str, rows["tag"].unique())),
        "items": int(rows["evidence"].nunique()),
        "verdicts": int(rows["asked"].sum()),
        "failed_calls": int((~rows["asked"]).sum()),
        "on_frontier": None,
        "difference": found.differences.get(place),
        "at_most_worse": found.at_most_worse.get(place),
        "truth": quality,
        "standing": found.standings.get(place, "unknown"),
        **quantities,
    }
    return row  # type: ignore[return-value]  # the keys of `quantities` are not checked


def _plain(level: Any) -> Any:
    """Returns a level as JSON has it."""
    if level is None or pd.isna(level):
        return None
    return level.item() if isinstance(level, np.generic) else level


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


def _rank(row: JudgeRow) -> tuple[float, float, str]:
    truth, steady = row["truth"], row["consistency"]
    return (
        -truth["value"] if truth else 1.0,
        -steady["value"] if steady else 1.0,
        row["setup"],
    )


def _chosen_quality(found: _Compared, kind: TruthKind) -> ChosenQuality | None:
    """Returns the quality of the recommended setup, corrected for its having been chosen."""
    if found.quality is None:
        return None
    return {"kind": kind, **found.quality, "method": found.method}


def _split(own: pd.DataFrame) -> SplitUse:
    """Returns how many items with known answers or labels are in each part of a split."""
    known = own[own["known"]]
    train, test = (int(known.loc[known[name], "evidence"].nunique()) for name in ("train", "test"))
    return {"train": train, "test": test, "uses": 0}


def _notes(
    rows: Sequence[JudgeRow], found: _Compared, repeating: Sequence[str], unsplit: int
) -> Iterator[str]:
    """Yields what a reader must know beside the numbers."""
    if unsplit:
        yield (
            f"{unsplit:,} verdicts are on items that joined the study after its split, and count "
            "in no estimate of quality; 'judge-gym labels split' adds them"
        )
    if found.left_out:
        yield (
            f"not compared, with fewer than {MIN_CLUSTERS} judged clusters of items with a known "
            f"answer or labels: {found.left_out} of {len(rows)} setups"
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
