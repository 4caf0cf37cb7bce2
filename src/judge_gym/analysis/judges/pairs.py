"""Judges on pairs of responses with a known better one: their scores, and comparisons of judges.

Setups of the verdicts are judges, units are pairs in both orders. A decision is 1 (the first
response is better), 2 (the second) or 3 (a tie). It refers to the responses themselves, whichever
was shown first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import BoolArray, FloatArray, IntArray
from judge_gym.analysis.frames import JUDGE, tidy
from judge_gym.analysis.judges.setups import Setup, groups_as_setups
from judge_gym.analysis.measures.pairs import (
    both_correct,
    decisions,
    inconsistent,
    observations,
    pair_accuracy,
    shown_in_both_orders,
)
from judge_gym.analysis.measures.position_bias import position_bias
from judge_gym.analysis.measures.terms import Terms
from judge_gym.analysis.stats.agreement import krippendorff_alpha
from judge_gym.analysis.stats.clusters import grouped_codes
from judge_gym.analysis.stats.comparisons import compare_pair
from judge_gym.analysis.stats.intervals import Estimate
from judge_gym.analysis.stats.paired_tests import (
    among_known,
    benjamini_hochberg,
    exact_sign_test,
)
from judge_gym.analysis.verdicts import CATEGORY, Verdicts, of_setups
from judge_gym.errors import DesignError
from judge_gym.records.pairs import PairDecision

Interval = tuple[float, float]
CATEGORIES = ("knowledge", "reasoning", "math", "coding")
PUBLISHED = "Published with this rule, on 350 pairs of GPT-4o's answers: o1-mini 65.7 %."
"""What the benchmark reports of a strong judge, so that a reader sees what a good score is."""
PAIR_RULE = (
    "A pair is correct if the sum over its orders is above 0: +1 for the better response, -1 for "
    "the other, 0 for a tie or no answer; low and high are the 95 % interval of accuracy. Position "
    "bias: of the judgments with a decision, ties included, the share for the response shown first "
    "minus the share for the second."
)


# --- verdicts on pairs ---------------------------------------------------------------------------


def recorded_samples(judge: str, recorded: Sequence[PairDecision]) -> pd.DataFrame:
    """Makes tidy samples of a judge's decisions, where those of a pair and order repeat."""
    frame = pd.DataFrame(recorded, columns=PairDecision._fields)
    decision = frame.pop("decision")
    columns: dict[str, Any] = {
        JUDGE: judge,
        "pair": True,
        "rubric_kind": "nominal",
        "n_stages": 3,
        "status": np.where(decision.notna(), "scored", "parse_failed"),
        "stages": decision.map("{:.0f}".format, na_action="ignore"),
        "replicate": frame.groupby(["evidence", "flipped"]).cumcount(),
    }
    return tidy(frame.assign(**columns), source=judge)


def pair_verdicts(judges: Mapping[str, pd.DataFrame]) -> Verdicts:
    """Takes the verdicts of judges together, from the tidy samples of each."""
    sizes = np.cumsum([0, *map(len, judges.values())])
    setups = [
        Setup(name, name, {}, "", np.arange(start, end))
        for name, start, end in zip(judges, sizes[:-1], sizes[1:], strict=True)
    ]
    # A pair is the same one whatever its study calls the concept.
    every = pd.concat(judges.values(), ignore_index=True).assign(concept="")
    return of_setups(every, setups)


# --- one judge -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairScore:
    """The score of a judge on pairs. Shares lie between 0 and 1, and undefined is None, never 0.

    Values that compare the two orders are None unless every pair was shown in both.
    """

    n: int
    """The number of items; replicates of an item are averaged first."""
    accuracy: float
    both_correct: float | None
    """The share of pairs decided correctly in both orders."""
    inconsistent: float | None
    """The share of pairs whose two decisions differ."""
    nulls: int
    """The number of judgments without a decision."""
    position_bias: float | None
    """Among judgments with a decision, the share for the response shown first minus the share for
    the one shown second. It is 1 for a judge that always chooses the first; ties are counted."""
    interval: Interval | None
    """The 95 % interval of accuracy, over items."""
    by_category: "Mapping[str, PairScore] | None" = None

    def to_json(self) -> dict[str, Any]:
        """Writes shares in percent, by category too if there are categories."""
        parts = {name: part.to_json() for name, part in (self.by_category or {}).items()}
        return {
            "n": self.n,
            "accuracy": _percent(self.accuracy),
            "both_correct": _percent(self.both_correct),
            "inconsistent": _percent(self.inconsistent),
            "nulls": self.nulls,
            "position_bias": _percent(self.position_bias),
            "interval": _percents(self.interval),
            **({} if self.by_category is None else {"by_category": parts}),
        }


def score_pairs(verdicts: Verdicts, setup: int = 0) -> PairScore:
    """Scores one judge, overall and by category. A repeated item is a replicate.

    Items are the sample, replicates are not: the interval is over the items' means, and Clopper and
    Pearson's if each item is either right or wrong.
    """
    score = _Scorer(verdicts)
    total = score(setup)
    if total is None:
        raise DesignError("there is no judged pair to score")
    if CATEGORY not in verdicts.rows:
        return replace(total, by_category={})
    category = score.verdicts.rows[CATEGORY].fillna("").astype(str)
    units = {name: np.unique(score.verdicts.unit[category == name]) for name in category.unique()}
    further_categories = sorted(units.keys() - {*CATEGORIES, ""})
    parts = {
        name: score(setup, units[name])
        for name in (*CATEGORIES, *further_categories)
        if name in units
    }
    return replace(
        total, by_category={name: part for name, part in parts.items() if part is not None}
    )


class _Scorer:
    """Scores judges by measures that are computed once for all of them."""

    def __init__(self, verdicts: Verdicts) -> None:
        reference = verdicts.references.get("accuracy")
        label_weight = 0.0 if reference is None else reference.labels.sum(axis=1)
        self.verdicts = verdicts.on(np.full(len(verdicts.rows), label_weight) > 0)
        self._right, self._both = pair_accuracy(self.verdicts), both_correct(self.verdicts)
        self._differ = inconsistent(self.verdicts)
        self._bias = position_bias(verdicts)  # of pairs without a known answer, too
        self._in_both_orders = shown_in_both_orders(self.verdicts)
        self._undecided = decisions(self.verdicts) == 0

    def __call__(self, setup: int, units: IntArray | None = None) -> PairScore | None:
        """Scores a judge on some pairs, all by default. None without a known answer."""

        def part(terms: Terms | None) -> Terms | None:
            if terms is None or units is None:
                return terms
            rows = np.isin(terms.units, units)
            return terms.on(rows) if rows.any() else None

        if (right := part(self._right.get(setup))) is None:
            return None
        accuracy = right.estimate(self.verdicts.clusters)
        bias = self._bias.get(setup) if setup in self._in_both_orders else None
        of_setup = self.verdicts.setup == setup
        if units is not None:
            of_setup &= np.isin(self.verdicts.unit, units)
        return PairScore(
            n=accuracy.n,
            accuracy=accuracy.value,
            both_correct=_value(part(self._both.get(setup))),
            inconsistent=_value(part(self._differ.get(setup))),
            nulls=int(self._undecided[of_setup].sum()),
            position_bias=_value(part(bias)),
            interval=_interval(accuracy),
        )


def _value(terms: Terms | None) -> float | None:
    return None if terms is None else terms.value


def pair_table(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Scores each group of samples on pairs, with `low` and `high` of accuracy.

    Replicates and intervals are as in `score_pairs`. A group without a known truth has no row.
    """
    columns = [*by, "n", "accuracy", "low", "high"]
    columns += ["both_correct", "inconsistent", "nulls", "position_bias"]
    groups = groups_as_setups(frame, by)
    if not groups:
        return pd.DataFrame(columns=columns)
    scorer, rows = _Scorer(of_setups(frame, [setup for _, setup in groups])), []
    for number, (key, _) in enumerate(groups):
        if (score := scorer(number)) is not None:
            low, high = score.interval or (None, None)
            rows.append(
                {**dict(zip(by, key, strict=True)), **asdict(score), "low": low, "high": high}
            )
    return pd.DataFrame(rows, columns=columns)


# --- comparison of judges ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgeContrast:
    """The difference of two judges on the same pairs."""

    judge: str
    other: str
    only_judge: int
    """The number of pairs that only this judge has right."""
    only_other: int
    """The number of pairs that only the other judge has right."""
    p: float
    """McNemar's exact test of equal accuracy, two-sided; by flipping signs if pairs have clusters.
    Not a number with too few clusters."""
    q: float
    """The p-value after Benjamini and Hochberg's correction over all pairs of judges."""
    difference: float
    """The accuracy of the judge minus that of the other."""
    interval: Interval | None
    """The 95 % interval of the difference; None if no pair is judged differently, or with too few
    clusters."""
    agreement: float | None
    """The share of equal decisions among judgments (pair and order) that both made."""
    alpha: float | None
    """Krippendorff's nominal alpha of these decisions; None if undefined."""

    def to_json(self) -> dict[str, Any]:
        """Writes shares and differences in percent."""
        return {
            **asdict(self),
            "p": None if np.isnan(self.p) else float(f"{self.p:.4g}"),
            "q": None if np.isnan(self.q) else float(f"{self.q:.4g}"),
            "difference": _percent(self.difference),
            "interval": _percents(self.interval),
            "agreement": _percent(self.agreement),
            "alpha": _rounded(self.alpha),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Judges compared on the pairs, and in the orders, that all of them judged."""

    shared: int
    left_out: int
    """The number of pairs that some judge lacks."""
    scores: Mapping[str, PairScore]
    """The scores by judge, on the shared pairs."""
    contrasts: tuple[JudgeContrast, ...]
    """One for each pair of judges, sorted by their names."""
    alpha: float | None
    """Krippendorff's nominal alpha of all judges' decisions."""

    def to_json(self) -> dict[str, Any]:
        """Writes shares in percent."""
        return {
            "shared": self.shared,
            "left_out": self.left_out,
            "scores": {name: score.to_json() for name, score in self.scores.items()},
            "contrasts": [contrast.to_json() for contrast in self.contrasts],
            "alpha": _rounded(self.alpha),
        }


def compare_judges(verdicts: Verdicts) -> Comparison:
    """Compares two or more judges on the pairs, and in the orders, that all of them judged."""
    names = verdicts.setups
    if len(names) < 2:
        raise DesignError(f"a comparison needs two judges; there is {', '.join(names) or 'none'}")
    verdicts = verdicts.of(*np.argsort(names).tolist())
    verdicts = verdicts.on(verdicts.references["accuracy"].labels.sum(axis=1) > 0)
    _check_pairs(verdicts)
    # An additional order would be an advantage, so only shared orders count.
    shared = verdicts.on(_in_shared_orders(verdicts))
    units, decided = np.unique(shared.unit), _decisions(shared)
    contrasts = [_contrast(pair, shared, decided) for pair in combinations(range(len(names)), 2)]
    corrected = among_known(benjamini_hochberg, [contrast.p for contrast in contrasts])
    return Comparison(
        shared=len(units),
        left_out=len(np.unique(verdicts.unit)) - len(units),
        scores={name: score_pairs(shared, number) for number, name in enumerate(shared.setups)},
        contrasts=tuple(
            replace(contrast, q=float(q)) for contrast, q in zip(contrasts, corrected, strict=True)
        ),
        alpha=_alpha(decided),
    )


def _check_pairs(verdicts: Verdicts) -> None:
    """Refuses replicates, which are no items, and judges whose answers to a pair differ."""
    sizes = observations(verdicts).groupby(level=["setup", "unit"]).size()
    for setup, unit in sizes.index[sizes > 1]:
        evidence = verdicts.units[unit][1]
        raise DesignError(
            f"{verdicts.setups[setup]} has pair {evidence!r} twice; compare one replicate"
        )
    truth = pd.Series(verdicts.references["accuracy"].labels.argmax(axis=1) + 1)
    truths = truth.groupby(verdicts.unit).agg(["min", "max"])
    for unit, (low, high) in truths[truths["min"] < truths["max"]].iterrows():
        evidence = verdicts.units[int(str(unit))][1]
        raise DesignError(f"the judges' files give pair {evidence!r} the truths {[low, high]}")


def _in_shared_orders(verdicts: Verdicts) -> BoolArray:
    """Says of each row whether all judges saw its pair in its order."""
    judges, setup = ", ".join(verdicts.setups), pd.Series(verdicts.setup)

    def shared(code: IntArray) -> BoolArray:
        seen = setup.groupby(code).transform("nunique")
        return (seen == len(verdicts.setups)).to_numpy(dtype=bool)

    if not shared(verdicts.unit).any():
        raise DesignError(f"the judges {judges} share no pair")
    rows = shared(_order(verdicts))
    if not rows.any():
        raise DesignError(f"the judges {judges} share no order of any pair")
    return rows


def _order(verdicts: Verdicts) -> IntArray:
    """Numbers the pair and the order of each row."""
    flipped: IntArray = verdicts.rows["flipped"].to_numpy(dtype=np.int64)
    return 2 * verdicts.unit + flipped


def _decisions(verdicts: Verdicts) -> FloatArray:
    """Tabulates the decisions of judges on each pair in each order, NaN where missing."""
    orders, column = np.unique(_order(verdicts), return_inverse=True)
    table = np.full((len(verdicts.setups), len(orders)), np.nan)
    decision = decisions(verdicts)
    table[verdicts.setup, column] = np.where(decision > 0, decision, np.nan)
    return table


def _contrast(pair: tuple[int, int], verdicts: Verdicts, decided: FloatArray) -> JudgeContrast:
    """Compares two judges on the same pairs."""
    accuracies = pair_accuracy(verdicts)
    right, other_right = (_contributions(accuracies[setup], verdicts) for setup in pair)
    names = [verdicts.setups[setup] for setup in pair]
    clusters = verdicts.clusters[np.unique(verdicts.unit)]
    result = compare_pair(right, other_right, clusters, key=["pairs", *names])
    wins, losses = (int((gap > 0).sum()) for gap in (right - other_right, other_right - right))
    clustered = grouped_codes(clusters, np.full(len(right), True)) is not None
    ours, theirs = (decided[setup] for setup in pair)
    both = ~np.isnan(ours) & ~np.isnan(theirs)
    return JudgeContrast(
        judge=names[0],
        other=names[1],
        only_judge=wins,
        only_other=losses,
        p=result.p if clustered else exact_sign_test(wins, losses),
        q=np.nan,  # known once all pairs of judges are compared
        difference=(wins - losses) / len(right),
        interval=_interval(result.difference),
        agreement=float((ours == theirs)[both].mean()) if both.any() else None,
        alpha=_alpha(np.array([ours, theirs])),
    )


def _contributions(accuracy: Terms, verdicts: Verdicts) -> FloatArray:
    """Says whether each pair is right. All judges have the same pairs, sorted."""
    return np.round(accuracy.contributions(verdicts.clusters), 12)


def _interval(estimate: Estimate) -> Interval | None:
    return (estimate.low, estimate.high) if estimate.known else None


def _alpha(decided: FloatArray) -> float | None:
    """Computes Krippendorff's alpha, or None if no two judges decided, or all alike."""
    counts = (decided[:, :, None] == [1, 2, 3]).sum(axis=0).astype(float)
    alpha = krippendorff_alpha(counts[counts.sum(axis=1) > 1], "nominal").value
    return None if np.isnan(alpha) else alpha


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def _percents(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [_percent(bound) for bound in interval]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
