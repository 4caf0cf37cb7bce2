"""Which items people are asked to label, each drawn with a known chance, and who labels which.

Estimates weight an item by the inverse of its chance, so a draw may favour items on which judges
disagree, where labels say more, without making any rate wrong. A core is always drawn at random
among all items: it alone bounds the weights, and the alternative annotator test needs it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from judge_gym.errors import DesignError
from judge_gym.records import digest
from judge_gym.records.judge_table import Quantity

UNIFORM_DIGITS = 13
"""Hexadecimal digits of a hash that make a number between 0 and 1: as many as a float holds."""


@dataclass(frozen=True, slots=True)
class LabelDraw:
    """How the items of a queue are drawn."""

    items: int
    """How many items are drawn; by disagreement about as many, since each is drawn by itself."""
    disputed: bool = False
    """Whether items on which setups disagree are more likely to be drawn."""
    core: float = 0.5
    """The share of items that is drawn at random all the same."""
    hard: int = 0
    """The number of most disputed items that are added, and that enter no rate."""
    seed: int = 0


def draw_items(
    hashes: Mapping[int, str], draw: LabelDraw, disagreement: Mapping[int, float] | None = None
) -> dict[int, float | None]:
    """Draws items to be labelled, with the chance of each, or None for those added as hard.

    Args:
        hashes: the hash of each item, which decides its draw, so that ids do not.
        draw: how they are drawn.
        disagreement: how much setups disagree on each item; needed where disputed items count.
    """
    if draw.items < 1:
        raise DesignError(f"{draw.items} items to label; at least 1 is needed")
    if not 0 < draw.core <= 1:
        raise DesignError(f"a core of {draw.core}; choose a share above 0, up to 1")
    if (draw.disputed or draw.hard) and not disagreement:
        raise DesignError(
            "no setups disagree yet: items can be drawn by disagreement, or added as hard ones, "
            "once two setups judged them; draw at random first"
        )
    scores = {item: max((disagreement or {}).get(item, 0.0), 0.0) for item in hashes}
    random = {item: _uniform(draw.seed, "core", key) for item, key in hashes.items()}
    core_size = min(ceil(draw.core * draw.items) if draw.disputed else draw.items, len(hashes))
    core = {*sorted(random, key=random.__getitem__)[:core_size]}
    core_chance = core_size / len(hashes)
    extra = _extra_chances(scores, draw.items - core_size, core_chance) if draw.disputed else {}
    chances: dict[int, float | None] = {
        item: 1 - (1 - core_chance) * (1 - extra.get(item, 0.0))
        for item, key in hashes.items()
        if item in core or _uniform(draw.seed, "disputed", key) < extra.get(item, 0.0)
    }
    hardest = sorted(
        (item for item in hashes if item not in chances and scores[item] > 0),
        key=lambda item: (-scores[item], random[item]),
    )
    return chances | dict.fromkeys(hardest[: draw.hard])


def assign(
    drawn: Mapping[int, float | None],
    hashes: Mapping[int, str],
    raters: Sequence[str],
    *,
    overlap: float,
    seed: int,
) -> dict[str, list[int]]:
    """Divides drawn items among raters, each with an order of their own.

    Args:
        drawn: the items.
        hashes: the hash of each item.
        raters: who labels.
        overlap: the share of items that two raters label.
        seed: decides who labels what, and in which order.
    """
    if not raters or len({*raters}) < len(raters):
        raise DesignError("name each rater once, at least one", choices=raters)
    if not 0 <= overlap <= 1:
        raise DesignError(f"an overlap of {overlap}; choose a share from 0 to 1")
    if overlap and len(raters) < 2:
        raise DesignError("an overlap needs two raters; name another one, or set it to 0")
    shuffled = sorted(drawn, key=lambda item: digest(["rater", seed, hashes[item]]))
    twice = round(overlap * len(shuffled))
    queues: dict[str, list[int]] = {rater: [] for rater in raters}
    for position, item in enumerate(shuffled):
        first = position % len(raters)
        queues[raters[first]].append(item)
        if position < twice:
            # Every pair of raters in turn, so that all of them can be compared.
            distance = 1 + position // len(raters) % (len(raters) - 1)
            queues[raters[(first + distance) % len(raters)]].append(item)
    return {
        rater: sorted(items, key=lambda item: digest(["order", seed, rater, hashes[item]]))
        for rater, items in queues.items()
    }


def after_more_labels(quantity: Quantity, more: int) -> tuple[float, float] | None:
    """Predicts the interval of an estimate after more labels, if it stays where it is.

    Both ends come closer as one over the root of the number of items; None without an interval.
    """
    value, low, high = quantity["value"], quantity["low"], quantity["high"]
    if low is None or high is None or not quantity["n"]:
        return None
    shrink = sqrt(quantity["n"] / (quantity["n"] + more))
    return value - shrink * (value - low), value + shrink * (high - value)


def _extra_chances(scores: Mapping[int, float], count: int, core_chance: float) -> dict[int, float]:
    """Computes the chance of each item to be drawn beside the core, in proportion to its score.

    The chances are so large that about `count` items outside the core are drawn.
    """
    outside = 1 - core_chance
    if not outside or not any(scores.values()):
        return {}
    chances: dict[int, float] = {}
    rest, wanted = {item: score for item, score in scores.items() if score}, count / outside
    while rest and wanted > 0:
        factor = wanted / sum(rest.values())
        certain = [item for item, score in rest.items() if factor * score >= 1]
        if not certain:
            return chances | {item: factor * score for item, score in rest.items()}
        # What is certain to be drawn leaves fewer draws to the others.
        chances |= dict.fromkeys(certain, 1.0)
        wanted -= len(certain)
        rest = {item: score for item, score in rest.items() if item not in chances}
    return chances


def _uniform(seed: int, purpose: str, key: str) -> float:
    """Maps an item to a number between 0 and 1, the same for every draw with this seed."""
    number = int(digest(["label", purpose, seed, key])[:UNIFORM_DIGITS], 16)
    return float(number / 16**UNIFORM_DIGITS)
