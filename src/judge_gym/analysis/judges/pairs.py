"""Judges on pairs of which the better response is known: their score, and how they compare.

A decision is 1 (the first response is better), 2 (the second) or 3 (a tie), always in the identity
of the responses, whichever was shown first; None where there is none to read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any, Literal

import krippendorff
import numpy as np
from scipy import stats

from judge_gym.analysis.stats.intervals import Estimate, share, student
from judge_gym.errors import DesignError
from judge_gym.records import digest

Interval = tuple[float, float]
Order = Literal["given", "reversed"]
ORDERS: tuple[Order, ...] = ("given", "reversed")
CATEGORIES = ("knowledge", "reasoning", "math", "coding")
RESAMPLES = 10_000
FEW = 40
"""Below this many items a percentile bootstrap covers too little; Student's interval stands in."""
PAIR_RULE = (
    "Right: +1 for each order that names the better response, -1 for the other, 0 for a tie or no "
    "answer, above 0 in sum; low and high are 95 % of accuracy. Position bias: verdicts for the "
    "response shown first minus those for the second."
)


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """What a judge decided on one pair, in each order that it was shown."""

    item: str
    truth: int
    decisions: tuple[int | None, ...]
    orders: tuple[Order, ...] = ORDERS
    """How the responses were shown, for each decision."""
    category: str = ""
    """Empty where none is known."""

    def __post_init__(self) -> None:
        if self.orders not in (ORDERS, ORDERS[:1], ORDERS[1:]):
            raise DesignError(
                f"pair {self.item!r} has the orders {self.orders}; they are given, then reversed"
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
        """What was decided in these orders alone."""
        kept = [(o, d) for o, d in zip(self.orders, self.decisions, strict=True) if o in orders]
        return replace(self, orders=orders, decisions=tuple(decision for _, decision in kept))

    @property
    def correct(self) -> bool:
        """JudgeBench's rule: +1 for the truth, -1 for its opposite, else 0; the sum is above 0."""
        return sum((d == self.truth) - (d == 3 - self.truth) for d in self.decisions) > 0

    @property
    def all_correct(self) -> bool:
        """Whether every order was decided rightly."""
        return all(decision == self.truth for decision in self.decisions)

    @property
    def inconsistent(self) -> bool:
        """Whether the orders were decided differently; no decision differs from any decision."""
        return len(set(self.decisions)) > 1

    @property
    def leanings(self) -> tuple[int, ...]:
        """Of each decision: 1 for the response shown first, -1 for the second, 0 for a tie."""
        shown = {"given": {1: 1, 2: -1, 3: 0}, "reversed": {1: -1, 2: 1, 3: 0}}
        both = zip(self.orders, self.decisions, strict=True)
        return tuple(shown[order][decision] for order, decision in both if decision is not None)


# --- one judge -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairScore:
    """How a judge did on pairs; shares lie between 0 and 1, and undefined is null, never 0.

    What compares the two orders is null unless every pair was shown in both.
    """

    n: int
    """Items; replicates of an item are averaged first."""
    accuracy: float
    both_correct: float | None
    """The share of pairs decided rightly in both orders."""
    inconsistent: float | None
    """The share of pairs whose two decisions differ."""
    nulls: int
    """Judgments without a decision."""
    position_bias: float | None
    """Among judgments with a decision, the share for the response shown first minus the share for
    the one shown second: 1 is a judge that always takes the first. Ties count in the whole."""
    interval: Interval | None
    """95 % of accuracy, over items."""

    def to_json(self) -> dict[str, Any]:
        """The score with shares in percent."""
        return {
            "n": self.n,
            "accuracy": _percent(self.accuracy),
            "both_correct": _percent(self.both_correct),
            "inconsistent": _percent(self.inconsistent),
            "nulls": self.nulls,
            "position_bias": _percent(self.position_bias),
            "interval": _percents(self.interval),
        }


@dataclass(frozen=True, slots=True)
class PairScores(PairScore):
    """A score, overall and by category."""

    by_category: Mapping[str, PairScore]

    def to_json(self) -> dict[str, Any]:
        """The score with shares in percent, overall and by category."""
        parts = {name: score.to_json() for name, score in self.by_category.items()}
        return {**PairScore.to_json(self), "by_category": parts}


def score_pairs(pairs: Sequence[JudgedPair]) -> PairScores:
    """The score of one judge. An item that comes up again is a replicate.

    The interval is Wilson's where each item is plainly right or wrong (one replicate, or all of
    them agree), else Student's over the items' means: items are the sample, replicates are not.
    """
    if not pairs:
        raise DesignError("there is no judged pair to score")
    named = {pair.category for pair in pairs} - {""}
    categories = [name for name in CATEGORIES if name in named] + sorted(named - {*CATEGORIES})
    parts = {name: [pair for pair in pairs if pair.category == name] for name in categories}
    scores = {name: PairScore(**score_fields(part)) for name, part in parts.items()}
    return PairScores(**score_fields(pairs), by_category=scores)


def score_fields(pairs: Sequence[JudgedPair]) -> dict[str, Any]:
    """What a score holds, of one judge's pairs."""
    right = _item_means(pairs, lambda pair: pair.correct)
    both = all(pair.orders == ORDERS for pair in pairs)
    leanings = [leaning for pair in pairs for leaning in pair.leanings]
    return {
        "n": len(right),
        "accuracy": fmean(right),
        "both_correct": fmean(_item_means(pairs, lambda p: p.all_correct)) if both else None,
        "inconsistent": fmean(_item_means(pairs, lambda p: p.inconsistent)) if both else None,
        "nulls": sum(pair.decisions.count(None) for pair in pairs),
        "position_bias": fmean(leanings) if both and leanings else None,
        "interval": _interval(share(right)),
    }


def _item_means(pairs: Sequence[JudgedPair], holds: Callable[[JudgedPair], bool]) -> list[float]:
    values: dict[str, list[bool]] = {}
    for pair in pairs:
        values.setdefault(pair.item, []).append(holds(pair))
    return [fmean(found) for found in values.values()]


# --- judges compared -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgeContrast:
    """Two judges on the same pairs."""

    judge: str
    other: str
    only_judge: int
    """Pairs that the judge alone has right."""
    only_other: int
    p: float
    """McNemar's exact test of equal accuracy, two-sided."""
    difference: float
    """Accuracy of the judge minus that of the other."""
    interval: Interval | None
    """95 % of the difference, over items: paired bootstrap, Student's below 40 items."""
    agreement: float | None
    """The share of equal decisions among judgments (pair and order) that both decided."""
    alpha: float | None
    """Krippendorff's alpha of the same, nominal; null where it is undefined."""

    def to_json(self) -> dict[str, Any]:
        """The contrast with shares and differences in percent."""
        return {
            **asdict(self),
            "p": float(f"{self.p:.4g}"),
            "difference": _percent(self.difference),
            "interval": _percents(self.interval),
            "agreement": _percent(self.agreement),
            "alpha": _rounded(self.alpha),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Judges on the pairs, and in the orders, that all of them judged."""

    shared: int
    left_out: int
    """Pairs that some judge lacks."""
    scores: Mapping[str, PairScores]
    """By judge, on the shared pairs."""
    contrasts: tuple[JudgeContrast, ...]
    """One for each two judges, in the order of their names."""
    alpha: float | None
    """Krippendorff's alpha of all judges' decisions, nominal."""

    def to_json(self) -> dict[str, Any]:
        """The comparison with shares in percent."""
        return {
            "shared": self.shared,
            "left_out": self.left_out,
            "scores": {name: score.to_json() for name, score in self.scores.items()},
            "contrasts": [contrast.to_json() for contrast in self.contrasts],
            "alpha": _rounded(self.alpha),
        }


def compare(judges: Mapping[str, Sequence[JudgedPair]]) -> Comparison:
    """Two or more judges on the pairs that all of them share, by the id of the item."""
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
    for item in shared:  # a judgment more would be an advantage, so only orders that all have
        judged = [found[item] for found in items.values()]
        orders = [order for order in ORDERS if all(order in pair.orders for pair in judged)]
        for name, pair in zip(items, judged, strict=True):
            if orders:
                pairs[name].append(pair.within(tuple(orders)))
    compared = len(next(iter(pairs.values())))
    if not compared:
        raise DesignError(f"the judges {', '.join(items)} share no order of any pair")
    decisions = {name: _decisions(found) for name, found in pairs.items()}
    return Comparison(
        shared=compared,
        left_out=len(set().union(*items.values())) - compared,
        scores={name: score_pairs(found) for name, found in pairs.items()},
        contrasts=tuple(_contrast(*two, pairs, decisions) for two in combinations(pairs, 2)),
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
    ours, theirs = decisions[judge], decisions[other]
    decided = ~np.isnan(ours) & ~np.isnan(theirs)
    return JudgeContrast(
        judge=judge,
        other=other,
        only_judge=wins,
        only_other=losses,
        p=float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0,
        difference=(wins - losses) / len(right),
        interval=_difference_interval(judge, other, wins, losses, len(right)),
        agreement=float((ours == theirs)[decided].mean()) if decided.any() else None,
        alpha=_alpha(np.array([ours, theirs])),
    )


def _difference_interval(judge: str, other: str, wins: int, losses: int, n: int) -> Interval | None:
    if not wins + losses:
        return None  # nothing tells them apart, and nothing tells how alike they are
    ties = n - wins - losses
    if n < FEW:
        found = _interval(student(np.repeat([1.0, -1.0, 0.0], [wins, losses, ties])))
        return found and (max(-1.0, found[0]), min(1.0, found[1]))
    # To draw items with replacement is to draw how many wins, losses and ties there are.
    generator = np.random.default_rng(int(digest(["pairs", judge, other]), 16))
    drawn = generator.multinomial(n, np.array([wins, losses, ties]) / n, size=RESAMPLES)
    low, high = np.percentile((drawn[:, 0] - drawn[:, 1]) / n, [2.5, 97.5])
    return float(low), float(high)


def _interval(found: Estimate) -> Interval | None:
    return (found.low, found.high) if found.known else None


def _decisions(pairs: Sequence[JudgedPair]) -> np.ndarray:
    """The decisions on each pair in each order; what is missing is not a number."""
    by_order = [dict(zip(pair.orders, pair.decisions, strict=True)) for pair in pairs]
    return np.array([found.get(order) for found in by_order for order in ORDERS], dtype=float)


def _alpha(decisions: np.ndarray) -> float | None:
    """Krippendorff's alpha; undefined where no two judges decided, or all decided the same."""
    paired = decisions[:, (~np.isnan(decisions)).sum(axis=0) > 1]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        return None
    return float(krippendorff.alpha(reliability_data=paired, level_of_measurement="nominal"))


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 2)


def _percents(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [_percent(bound) for bound in interval]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
