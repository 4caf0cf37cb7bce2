"""Belief functions one at a time: a mass function is a mapping from sets of stages to mass."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from judge_gym.analysis.belief.disagreement import jaccard
from judge_gym.analysis.belief.masses import Masses
from judge_gym.analysis.belief.rules import Rule, combine_groups
from judge_gym.analysis.belief.sets import Mass, bits, checked, checked_frame
from judge_gym.errors import DesignError


@dataclass(frozen=True, slots=True)
class Combined:
    """What several sources say together."""

    mass: dict[frozenset[int], float]
    conflict: float
    """K, the conjunctive mass of the empty set; of the sources alone, so the same for each rule."""


@dataclass(frozen=True, slots=True)
class TotalConflict:
    """Dempster's rule has no answer: the sources cannot all be true at once."""

    mass: None = None
    conflict: float = 1.0


def combine(masses: Sequence[Mass], rule: Rule, *, frame: int) -> Combined | TotalConflict:
    """Combine sources by one of `RULES`, all at once, whatever their order.

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
    found = combine_groups(sources, np.zeros(len(masses), dtype=np.int64), rule=rule)
    if not found.masses.defined[0]:
        return TotalConflict()
    return Combined(found.masses.mapping(0), float(found.conflict[0]))


def belief(mass: Mass, hypothesis: Iterable[int], *, frame: int | None = None) -> float:
    """The mass of sets that lie within the hypothesis: what speaks for it.

    >>> belief({frozenset({1}): 0.5, frozenset({1, 2}): 0.3, frozenset({3}): 0.2}, {1, 2})
    0.8
    """
    within = frozenset(hypothesis)
    return sum(value for chosen, value in checked(mass, frame).items() if chosen <= within)


def plausibility(mass: Mass, hypothesis: Iterable[int], *, frame: int | None = None) -> float:
    """The mass of sets that meet the hypothesis: what does not speak against it.

    >>> plausibility({frozenset({1}): 0.5, frozenset({1, 2}): 0.3, frozenset({3}): 0.2}, {2})
    0.3
    """
    meets = frozenset(hypothesis)
    return sum(value for chosen, value in checked(mass, frame).items() if chosen & meets)


def pignistic(mass: Mass, *, frame: int | None = None) -> dict[int, float]:
    """The probability of each stage: a set spreads its mass equally, the empty set's is shared.

    Without a frame only stages that have some mass are listed.

    >>> pignistic({frozenset({1}): 0.5, frozenset({1, 2}): 0.5}, frame=3)
    {1: 0.75, 2: 0.25, 3: 0.0}
    """
    found = checked(mass, frame, empty=True)
    lost = found.pop(frozenset(), 0.0)
    if not found:
        raise DesignError("all mass is on the empty set; a probability needs some on stages")
    listed = range(1, frame + 1) if frame else sorted(frozenset().union(*found))
    spread = dict.fromkeys(listed, 0.0)
    for chosen, value in found.items():
        for stage in chosen:
            spread[stage] += value / len(chosen) / (1 - lost)
    return spread


def discount(mass: Mass, alpha: float = 0.1, *, frame: int) -> dict[frozenset[int], float]:
    """The mass with a share alpha moved to the whole frame: at 1 the source says nothing.

    >>> discount({frozenset({1}): 1.0}, 0.25, frame=2)
    {frozenset({1}): 0.75, frozenset({1, 2}): 0.25}
    """
    return Masses.of([mass], frame=frame).discounted(alpha).mapping(0)


def jousselme(m1: Mass, m2: Mass, *, frame: int) -> float:
    """Jousselme's distance, 0 to 1; sets are as alike as the share of stages they have in common.

    >>> round(jousselme({frozenset({1}): 1.0}, {frozenset({1, 2}): 1.0}, frame=2), 6)
    0.707107
    """
    ours, theirs = checked(m1, frame, empty=True), checked(m2, frame, empty=True)
    sets = list(ours | theirs)
    gap = np.array([ours.get(chosen, 0.0) - theirs.get(chosen, 0.0) for chosen in sets])
    masks = np.array([bits(chosen) for chosen in sets], dtype=np.int64)
    squared = gap @ jaccard(masks[:, None], masks[None, :]) @ gap / 2
    return sqrt(max(squared, 0.0))


def weights_of_evidence(mass: Mass, *, frame: int) -> dict[frozenset[int], float]:
    """How much evidence speaks for each set; weights add up where Dempster's rule combines.

    A source that supports a set to the degree s and says no more has the weight -ln(1 - s) there.
    Any mass function with some mass on the frame is a combination of such sources (Smets 1995); a
    negative weight is a reason not to believe the set, and one on the empty set is conflict that
    was normalised away. Only intersections of focal sets can have a weight.

    >>> weights = weights_of_evidence({frozenset({1}): 0.5, frozenset({1, 2}): 0.5}, frame=2)
    >>> {tuple(chosen): round(weight, 6) for chosen, weight in weights.items()}
    {(1,): 0.693147}
    """
    found = checked(mass, frame)
    everything = frozenset(range(1, frame + 1))
    if everything not in found:
        raise DesignError("no mass on the whole frame, so weights are infinite; discount it first")
    closed = {everything}
    for chosen in found:
        closed |= {chosen & other for other in closed}
    weights: dict[frozenset[int], float] = {}
    # The weights of all sets that contain one add up to its commonality over the frame's, in logs.
    for chosen in sorted(closed - {everything}, key=len, reverse=True):
        common = sum(value for other, value in found.items() if chosen <= other)
        larger = sum(weight for other, weight in weights.items() if chosen < other)
        weights[chosen] = log(common / found[everything]) - larger
    return weights
