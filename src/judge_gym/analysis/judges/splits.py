"""Splits of items into train, on which choices are made, and test, which estimates alone read."""

from collections.abc import Collection, Mapping, Sequence

from judge_gym.errors import DesignError
from judge_gym.records import Evidence, digest


def split_parts(
    items: Sequence[Evidence],
    before: Mapping[int, bool],
    known: Collection[int],
    test: float,
    seed: int,
) -> dict[int, bool]:
    """Returns which items are in test: those of an earlier split stay, clusters stay together.

    Clusters with and without known answers are drawn separately, so that both parts have theirs.
    """
    clusters: dict[str, list[int]] = {}
    for item in items:
        clusters.setdefault(cluster_name(item), []).append(item.id)
    parts = dict(before)
    new: dict[bool, list[str]] = {True: [], False: []}
    for name, ids in sorted(clusters.items()):
        placed = [before[id] for id in ids if id in before]
        if placed:
            parts |= dict.fromkeys(ids, placed[0])
        else:
            new[any(id in known for id in ids)].append(name)
    if not before and len(clusters) < 2:
        raise DesignError(f"{len(clusters)} cluster of items cannot be split; two are needed")
    for names in new.values():
        drawn = sorted(names, key=lambda name: digest(["split", seed, name]))
        for place, name in enumerate(drawn):
            parts |= dict.fromkeys(clusters[name], place < round(test * len(drawn)))
    return parts


def cluster_name(item: Evidence) -> str:
    """Returns the name of an item's cluster; an item without one is its own."""
    return f"cluster {item.cluster}" if item.cluster else f"item {item.hash}"
