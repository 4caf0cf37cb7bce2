"""Belief functions by the book: frozensets, loops and no thought of speed. An oracle for tests."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

Mass = dict[frozenset[int], float]
Choice = tuple[tuple[frozenset[int], float], ...]


def tuples(masses: Sequence[Mass]) -> Iterator[tuple[Choice, float]]:
    """Every choice of one focal set a source, with the product of its masses."""
    for choice in product(*(mass.items() for mass in masses)):
        yield choice, prod(value for _, value in choice)


def add(into: Mass, chosen: frozenset[int], value: float) -> None:
    into[chosen] = into.get(chosen, 0.0) + value


def conjunctive(masses: Sequence[Mass]) -> Mass:
    found: Mass = {}
    for choice, pi in tuples(masses):
        add(found, frozenset.intersection(*(chosen for chosen, _ in choice)), pi)
    return found


def conflict(masses: Sequence[Mass]) -> float:
    return conjunctive(masses).get(frozenset(), 0.0)


def dempster(masses: Sequence[Mass], frame: int) -> Mass | None:
    found = {chosen: value for chosen, value in conjunctive(masses).items() if chosen}
    total = sum(found.values())
    return {chosen: value / total for chosen, value in found.items()} if found else None


def yager(masses: Sequence[Mass], frame: int) -> Mass:
    found = conjunctive(masses)
    if frozenset() in found:
        add(found, frozenset(range(1, frame + 1)), found.pop(frozenset()))
    return found


def in_conflict(masses: Sequence[Mass], give: Callable[[Mass, Choice, float], None]) -> Mass:
    """What agrees stays; `give` says where the mass of a tuple in conflict goes."""
    found: Mass = {}
    for choice, pi in tuples(masses):
        if meet := frozenset.intersection(*(chosen for chosen, _ in choice)):
            add(found, meet, pi)
        else:
            give(found, choice, pi)
    return found


def dubois_prade(masses: Sequence[Mass], frame: int) -> Mass:
    def give(found: Mass, choice: Choice, pi: float) -> None:
        add(found, frozenset[int]().union(*(chosen for chosen, _ in choice)), pi)

    return in_conflict(masses, give)


def pcr5(masses: Sequence[Mass], frame: int) -> Mass:
    def give(found: Mass, choice: Choice, pi: float) -> None:
        weights: Mass = {}
        for chosen, value in choice:
            weights[chosen] = weights.get(chosen, 1.0) * value
        for chosen, weight in weights.items():
            add(found, chosen, pi * weight / sum(weights.values()))

    return in_conflict(masses, give)


def pcr6(masses: Sequence[Mass], frame: int) -> Mass:
    def give(found: Mass, choice: Choice, pi: float) -> None:
        for chosen, value in choice:
            add(found, chosen, pi * value / sum(other for _, other in choice))

    return in_conflict(masses, give)


def average(masses: Sequence[Mass], frame: int) -> Mass:
    found: Mass = {}
    for mass in masses:
        for chosen, value in mass.items():
            add(found, chosen, value / len(masses))
    return found


def murphy(masses: Sequence[Mass], frame: int) -> Mass | None:
    mean = average(masses, frame)
    found: Mass | None = mean
    for _ in masses[1:]:
        assert found is not None
        found = dempster([found, mean], frame)
    return found


RULES: dict[str, Callable[[Sequence[Mass], int], Mass | None]] = {
    "dempster": dempster,
    "yager": yager,
    "dubois_prade": dubois_prade,
    "pcr5": pcr5,
    "pcr6": pcr6,
    "murphy": murphy,
    "average": average,
}


def frequencies(verdicts: Sequence[frozenset[int]]) -> Mass:
    return {chosen: verdicts.count(chosen) / len(verdicts) for chosen in set(verdicts)}


def belief(mass: Mass, hypothesis: frozenset[int]) -> float:
    return sum(value for chosen, value in mass.items() if chosen <= hypothesis)


def plausibility(mass: Mass, hypothesis: frozenset[int]) -> float:
    return sum(value for chosen, value in mass.items() if chosen & hypothesis)


def pignistic(mass: Mass, stage: int) -> float:
    return sum(value / len(chosen) for chosen, value in mass.items() if stage in chosen)


def jaccard(a: frozenset[int], b: frozenset[int]) -> float:
    return len(a & b) / len(a | b)


def squared_jousselme(m1: Mass, m2: Mass) -> float:
    sets = list({*m1, *m2})
    gap = {chosen: m1.get(chosen, 0.0) - m2.get(chosen, 0.0) for chosen in sets}
    return sum(gap[a] * gap[b] * jaccard(a, b) for a in sets for b in sets) / 2


Replicates = Sequence[tuple[int, frozenset[int]]]
"""A judge's verdicts on an item: replicate number and chosen set."""


def squared_distance(ours: Replicates, theirs: Replicates) -> float | None:
    def likeness(first: Replicates, second: Replicates) -> float | None:
        found = [jaccard(a, b) for i, a in first for j, b in second if i != j]
        return sum(found) / len(found) if found else None

    terms = likeness(ours, ours), likeness(theirs, theirs), likeness(ours, theirs)
    if terms[0] is None or terms[1] is None or terms[2] is None:
        return None
    return (terms[0] + terms[1] - 2 * terms[2]) / 2
