"""Judges on pairs of responses with a known better one: their scores, and comparisons of judges.

A decision is 1 (the first response is better), 2 (the second) or 3 (a tie). It refers to the
responses themselves, whichever was shown first; None if there is no readable decision.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any, Literal

import numpy as np

from judge_gym.analysis.stats.agreement import krippendorff_alpha
from judge_gym.analysis.stats.clusters import Codes, grouped_codes
from judge_gym.analysis.stats.comparisons import compare_pair
from judge_gym.analysis.stats.intervals import DIFFERENCE, SHARE, Estimate, estimate
from judge_gym.analysis.stats.paired_tests import (
    among_known,
    benjamini_hochberg,
    exact_sign_test,
)
from judge_gym.errors import DesignError

Interval = tuple[float, float]
Order = Literal["given", "reversed"]
ORDERS: tuple[Order, ...] = ("given", "reversed")
CATEGORIES = ("knowledge", "reasoning", "math", "coding")
PAIR_RULE = (
    "A pair is correct if the sum over its orders is above 0: +1 for the better response, -1 for "
    "the other, 0 for a tie or no answer; low and high are the 95 % interval of accuracy. Position "
    "bias: of the judgments with a decision, ties included, the share for the response shown first "
    "minus the share for the second."
)


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A judge's decisions on one pair, in each order that was shown."""

    item: str
    truth: int
    decisions: tuple[int | None, ...]
    orders: tuple[Order, ...] = ORDERS
    """The order of the responses for each decision."""
    category: str = ""
    """Empty if unknown."""
    cluster: str = ""
    """What makes pairs dependent, such as their question; empty: nothing does."""

    def __post_init__(self) -> None:
        if self.orders not in (ORDERS, ORDERS[:1], ORDERS[1:]):
            raise DesignError(
                f"pair {self.item!r} has the orders {self.orders}; choose given, then reversed"
            )
        if len(self.decisions) != len(self.orders):
            raise DesignError(
                f"pair {self.item!r} has {len(self.decisions)} decisions in {len(self.orders)} "
                "orders; each order has one"
            )
        if self.truth not in (1, 2, 3) or not {1, 2, 3, None}.issuperset(self.decisions):
            raise DesignError(
                f"pair {self.item!r} has the truth {self.truth} and the decisions "
                f"{self.decisions}; they are 1 (first better), 2 (second better) or 3 (tie)"
            )

    def within(self, orders: tuple[Order, ...]) -> "JudgedPair":
        """Returns the decisions in the given orders only."""
        kept = [(o, d) for o, d in zip(self.orders, self.decisions, strict=True) if o in orders]
        return replace(self, orders=orders, decisions=tuple(decision for _, decision in kept))

    @property
    def correct(self) -> bool:
        """Whether JudgeBench's sum is above 0: +1 for the truth, -1 for the opposite, else 0."""
        return sum((d == self.truth) - (d == 3 - self.truth) for d in self.decisions) > 0

    @property
    def all_correct(self) -> bool:
        """Whether every decision is correct."""
        return all(decision == self.truth for decision in self.decisions)

    @property
    def inconsistent(self) -> bool:
        """Whether the decisions differ; a missing decision differs from any other."""
        return len(set(self.decisions)) > 1

    @property
    def leanings(self) -> tuple[int, ...]:
        """For each decision, 1 for the response shown first, -1 for the second, 0 for a tie."""
        shown = {"given": {1: 1, 2: -1, 3: 0}, "reversed": {1: -1, 2: 1, 3: 0}}
        both = zip(self.orders, self.decisions, strict=True)
        return tuple(shown[order][decision] for order, decision in both if decision is not None)


# --- one judge -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairScore:
    """The score of a judge on pairs; shares lie between 0 and 1, and undefined is None, never 0.

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
        """Returns the score with shares in percent, by category too if there are categories."""
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


def score_pairs(pairs: Sequence[JudgedPair]) -> PairScore:
    """Scores one judge, overall and by category. A repeated item is a replicate.

    Items are the sample, replicates are not: the interval is over the items' means, and Clopper and
    Pearson's if each item is either right or wrong.
    """
    if not pairs:
        raise DesignError("there is no judged pair to score")
    named = {pair.category for pair in pairs} - {""}
    categories = [name for name in CATEGORIES if name in named] + sorted(named - {*CATEGORIES})
    parts = {name: [pair for pair in pairs if pair.category == name] for name in categories}
    return replace(
        score_overall(pairs),
        by_category={name: score_overall(part) for name, part in parts.items()},
    )


def score_overall(pairs: Sequence[JudgedPair]) -> PairScore:
    """Scores one judge over all categories, as `score_pairs` does."""
    right = _item_means(pairs, lambda pair: pair.correct)
    clusters = _clusters({pair.item: pair for pair in pairs}.values())
    both = all(pair.orders == ORDERS for pair in pairs)
    leanings = [leaning for pair in pairs for leaning in pair.leanings]
    return PairScore(
        n=len(right),
        accuracy=fmean(right),
        both_correct=fmean(_item_means(pairs, lambda p: p.all_correct)) if both else None,
        inconsistent=fmean(_item_means(pairs, lambda p: p.inconsistent)) if both else None,
        nulls=sum(pair.decisions.count(None) for pair in pairs),
        position_bias=fmean(leanings) if both and leanings else None,
        interval=_interval(estimate(right, clusters, scale=SHARE)),
    )


def _item_means(pairs: Sequence[JudgedPair], of: Callable[[JudgedPair], bool]) -> list[float]:
    values: dict[str, list[bool]] = {}
    for pair in pairs:
        values.setdefault(pair.item, []).append(of(pair))
    return [fmean(replicates) for replicates in values.values()]


def _clusters(pairs: Iterable[JudgedPair]) -> Codes:
    """Returns the number of each pair's cluster; a pair without one is a cluster of its own."""
    return np.unique(
        [[p.cluster, "" if p.cluster else p.item] for p in pairs], axis=0, return_inverse=True
    )[1].ravel()


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
        """Returns the contrast with shares and differences in percent."""
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
        """Returns the comparison with shares in percent."""
        return {
            "shared": self.shared,
            "left_out": self.left_out,
            "scores": {name: score.to_json() for name, score in self.scores.items()},
            "contrasts": [contrast.to_json() for contrast in self.contrasts],
            "alpha": _rounded(self.alpha),
        }


def compare_judges(judges: Mapping[str, Sequence[JudgedPair]]) -> Comparison:
    """Compares two or more judges on the pairs that all of them judged, matched by item id."""
    if len(judges) < 2:
        raise DesignError(f"a comparison needs two judges; there is {', '.join(judges) or 'none'}")
    items = {name: _by_item(name, judges[name]) for name in sorted(judges)}
    shared = sorted(set.intersection(*(set(found) for found in items.values())))
    if not shared:
        raise DesignError(f"the judges {', '.join(items)} share no pair")
    for item in shared:
        if len(truths := {found[item].truth for found in items.values()}) > 1:
            raise DesignError(f"the judges' files give pair {item!r} the truths {sorted(truths)}")
    pairs: dict[str, list[JudgedPair]] = {name: [] for name in items}
    for item in shared:  # an additional order would be an advantage, so only shared orders count
        judged = [found[item] for found in items.values()]
        orders = [order for order in ORDERS if all(order in pair.orders for pair in judged)]
        for name, pair in zip(items, judged, strict=True):
            if orders:
                pairs[name].append(pair.within(tuple(orders)))
    compared = len(next(iter(pairs.values())))
    if not compared:
        raise DesignError(f"the judges {', '.join(items)} share no order of any pair")
    decisions = {name: _decisions(found) for name, found in pairs.items()}
    contrasts = [_contrast(*two, pairs, decisions) for two in combinations(pairs, 2)]
    corrected = among_known(benjamini_hochberg, [contrast.p for contrast in contrasts])
    return Comparison(
        shared=compared,
        left_out=len(set().union(*items.values())) - compared,
        scores={name: score_pairs(found) for name, found in pairs.items()},
        contrasts=tuple(
            replace(contrast, q=float(q)) for contrast, q in zip(contrasts, corrected, strict=True)
        ),
        alpha=_alpha(np.array(list(decisions.values()))),
    )


def _by_item(judge: str, pairs: Sequence[JudgedPair]) -> dict[str, JudgedPair]:
    found: dict[str, JudgedPair] = {}
    for pair in pairs:
        if pair.item in found:
            raise DesignError(f"{judge} has pair {pair.item!r} twice; compare one replicate")
        found[pair.item] = pair
    return found


def _contrast(
    judge: str,
    other: str,
    pairs: Mapping[str, Sequence[JudgedPair]],
    decisions: Mapping[str, np.ndarray],
) -> JudgeContrast:
    right, other_right = (
        np.array([pair.correct for pair in pairs[name]]) for name in (judge, other)
    )
    wins, losses = int((right & ~other_right).sum()), int((~right & other_right).sum())
    p = exact_sign_test(wins, losses)
    interval = _interval(estimate(right.astype(float) - other_right, scale=DIFFERENCE))
    codes = grouped_codes(_clusters(pairs[judge]), np.full(len(right), True))
    if codes is not None:
        found = compare_pair(right, other_right, codes, key=["pairs", judge, other])
        p, interval = found.p, _interval(found.difference)
    ours, theirs = decisions[judge], decisions[other]
    decided = ~np.isnan(ours) & ~np.isnan(theirs)
    return JudgeContrast(
        judge=judge,
        other=other,
        only_judge=wins,
        only_other=losses,
        p=p,
        q=np.nan,  # known once all pairs of judges are compared
        difference=(wins - losses) / len(right),
        interval=interval,
        agreement=float((ours == theirs)[decided].mean()) if decided.any() else None,
        alpha=_alpha(np.array([ours, theirs])),
    )


def _interval(found: Estimate) -> Interval | None:
    return (found.low, found.high) if found.known else None


def _decisions(pairs: Sequence[JudgedPair]) -> np.ndarray:
    """Returns the decisions on each pair in each order; missing ones are NaN."""
    by_order = [dict(zip(pair.orders, pair.decisions, strict=True)) for pair in pairs]
    return np.array([found.get(order) for found in by_order for order in ORDERS], dtype=float)


def _alpha(decisions: np.ndarray) -> float | None:
    """Returns Krippendorff's alpha; None if no two judges decided, or all decided the same."""
    counts = (decisions[:, :, None] == [1, 2, 3]).sum(axis=0).astype(float)
    alpha = krippendorff_alpha(counts[counts.sum(axis=1) > 1], "nominal").value
    return None if np.isnan(alpha) else alpha


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def _percents(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [_percent(bound) for bound in interval]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
