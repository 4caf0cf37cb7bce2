"""Splits of items into train, dev and test.

Rubrics and examples may be made from train, setups are chosen on dev, and estimates alone read
test. Without a dev part, setups are chosen on train.
"""

from collections.abc import Collection, Mapping, Sequence
from math import isclose
from typing import Literal, get_args

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, digest

Part = Literal["train", "dev", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
DEFAULT_SHARES = (0.2, 0.4, 0.4)
"""The shares of train, dev and test."""


def check_shares(shares: Sequence[float]) -> dict[str, float]:
    """Returns the share of each part; percentages are shares of 100."""
    total = sum(shares)
    if len(shares) != len(PARTS) or min(shares, default=-1) < 0 or total <= 0:
        raise DesignError(
            f"shares {', '.join(f'{share:g}' for share in shares)}; name three, of train, dev and "
            "test, such as 20,40,40"
        )
    if not isclose(total, 1) and not isclose(total, 100):
        raise DesignError(f"the shares of train, dev and test are {total:g} in all, not 100")
    train, dev, test = (share / total for share in shares)
    if not test or not train + dev:
        raise DesignError("test needs a share, and train or dev another one")
    return {"train": train, "dev": dev, "test": test}


def split_parts(
    items: Sequence[Evidence],
    before: Mapping[int, str],
    answers: Mapping[int, str],
    shares: Mapping[str, float],
    seed: int,
) -> dict[int, str]:
    """Divides items: those of an earlier split stay, clusters stay together.

    Clusters are divided apart by the label or known answer that most of their items have, and those
    without one, so that each part has its share of every label.

    Args:
        items: the items.
        before: the part of items that were divided earlier.
        answers: the label or known answer of the items that have one.
        shares: the share of clusters in each part.
        seed: decides which clusters.
    """
    clusters: dict[str, list[int]] = {}
    for item in items:
        clusters.setdefault(cluster_name(item), []).append(item.id)
    parts = dict(before)
    strata: dict[str, list[str]] = {}
    for name, ids in sorted(clusters.items()):
        placed = [before[id] for id in ids if id in before]
        if placed:
            parts |= dict.fromkeys(ids, placed[0])
        else:
            strata.setdefault(_usual_answer(ids, answers), []).append(name)
    if not before and len(clusters) < 2:
        raise DesignError(f"{len(clusters)} cluster of items cannot be split; two are needed")
    # One order through all strata, so that small ones do not all lose the same part to rounding.
    ordered = [
        name
        for _, names in sorted(strata.items())
        for name in sorted(names, key=lambda name: digest(["split", seed, name]))
    ]
    for name, part in zip(ordered, _spread(len(ordered), shares), strict=True):
        parts |= dict.fromkeys(clusters[name], part)
    return parts


def cluster_name(item: Evidence) -> str:
    """Returns the name of an item's cluster; an item without one is its own."""
    return f"cluster {item.cluster}" if item.cluster else f"item {item.hash}"


def choice_part(items: Mapping[int, str]) -> Part:
    """Returns the part on which setups are chosen."""
    return "dev" if "dev" in items.values() else "train"


def _usual_answer(ids: Collection[int], answers: Mapping[int, str]) -> str:
    """Returns the most frequent answer of a cluster; empty if none of its items has one."""
    cluster_answers = [answers[id] for id in ids if id in answers]
    return max(sorted(set(cluster_answers)), key=cluster_answers.count) if cluster_answers else ""


def _spread(count: int, shares: Mapping[str, float]) -> list[str]:
    """Spreads parts evenly over a sequence, each with its share of every stretch of it.

    >>> _spread(5, {"train": 0.2, "dev": 0.4, "test": 0.4})
    ['test', 'dev', 'train', 'test', 'dev']
    """
    placed = dict.fromkeys(PARTS, 0)
    sequence: list[str] = []
    for position in range(1, count + 1):
        # The part that lacks most of what it should have by now; test first among equals.
        due = {name: shares[name] * position - placed[name] for name in reversed(PARTS)}
        part = max(due, key=due.__getitem__)
        placed[part] += 1
        sequence.append(part)
    return sequence
