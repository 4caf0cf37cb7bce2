"""Belief functions one at a time. A mass function maps sets of stages to mass."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from judge_gym.analysis.belief.disagreement import jaccard
from judge_gym.analysis.belief.masses import Mass, Masses, bits, checked, checked_frame
from judge_gym.analysis.belief.rules import Rule, combine_groups
from judge_gym.errors import DesignError


@dataclass(frozen=True, slots=True)
class Combined:
    """The combination of several sources."""

    mass: dict[frozenset[int], float]
    conflict: float
    """K, the conjunctive mass of the empty set; it does not depend on the rule."""


@dataclass(frozen=True, slots=True)
class TotalConflict:
    """The result of Dempster's rule if the sources cannot all be true at once."""

    mass: None = None
    conflict: float = 1.0


def combine(masses: Sequence[Mass], rule: Rule, *, frame: int) -> Combined | TotalConflict:
    """Combines sources by one of `RULES`, all at once, independent of their order.

    >>> first, second = {frozenset({1}): 0.5, frozenset({1, 2}): 0.5}, {frozenset({2}): 1.0}
    >>> combine([first, second], "yager", frame=2)
    Combined(mass={frozenset({2}): 0.5, frozenset({1, 2}): 0.5}, conflict=0.5)
    >>> combine([{frozenset({1}): 1.0}, second], "dempster", frame=2)
    TotalConflict(mass=None, conflict=1.0)
    """
    checked_frame(frame)
    if not masses:
        raise DesignError("no masses to combine; give one or more")
    sources = Masses.of(masses, frame=frame)
    combination = combine_groups(sources, np.zeros(len(masses), dtype=np.int64), rule=rule)
    if not combination.masses.defined[0]:
        return TotalConflict()
    return Combined(combination.masses.mapping(0), float(combination.conflict[0]))


def belief(mass: Mass, hypothesis: Iterable[int], *, frame: int | None = None) -> float:
    """Sums the mass of the subsets of the hypothesis: the evidence for it.

    >>> belief({frozenset({1}): 0.5, frozenset({1, 2}): 0.3, frozenset({3}): 0.2}, {1, 2})
    0.8
    """
    within = frozenset(hypothesis)
    return sum(value for subset, value in checked(mass, frame).items() if subset <= within)


def plausibility(mass: Mass, hypothesis: Iterable[int], *, frame: int | None = None) -> float:
    """Sums the mass of sets that intersect the hypothesis: all but the evidence against it.

    >>> plausibility({frozenset({1}): 0.5, frozenset({1, 2}): 0.3, frozenset({3}): 0.2}, {2})
    0.3
    """
    meets = frozenset(hypothesis)
    return sum(value for subset, value in checked(mass, frame).items() if subset & meets)


def pignistic(mass: Mass, *, frame: int | None = None) -> dict[int, float]:
    """Computes the probability of each stage: every set spreads its mass equally.

    The mass of the empty set is normalised away. Without a frame, only stages with mass are listed.

    >>> pignistic({frozenset({1}): 0.5, frozenset({1, 2}): 0.5}, frame=3)
    {1: 0.75, 2: 0.25, 3: 0.0}
    """
    masses = checked(mass, frame, empty=True)
    lost = masses.pop(frozenset(), 0.0)
    if not masses:
        raise DesignError("all mass is on the empty set; a probability needs some on stages")
    listed = range(1, frame + 1) if frame else sorted(frozenset().union(*masses))
    spread = dict.fromkeys(listed, 0.0)
    for subset, value in masses.items():
        for stage in subset:
            spread[stage] += value / len(subset) / (1 - lost)
    return spread


def discount(mass: Mass, alpha: float = 0.1, *, frame: int) -> dict[frozenset[int], float]:
    """Moves a share alpha of the mass to the whole frame. With 1, no information is left.

    >>> discount({frozenset({1}): 1.0}, 0.25, frame=2)
    {frozenset({1}): 0.75, frozenset({1, 2}): 0.25}
    """
    return Masses.of([mass], frame=frame).discounted(alpha).mapping(0)


def jousselme(m1: Mass, m2: Mass, *, frame: int) -> float:
    """Computes Jousselme's distance, 0 to 1, with the Jaccard similarity of sets.

    >>> round(jousselme({frozenset({1}): 1.0}, {frozenset({1, 2}): 1.0}, frame=2), 6)
    0.707107
    """
    ours, theirs = checked(m1, frame, empty=True), checked(m2, frame, empty=True)
    sets = list(ours | theirs)
    gap = np.array([ours.get(subset, 0.0) - theirs.get(subset, 0.0) for subset in sets])
    masks = np.array([bits(subset) for subset in sets], dtype=np.int64)
    squared = gap @ jaccard(masks[:, None], masks[None, :]) @ gap / 2
    return sqrt(max(squared, 0.0))
