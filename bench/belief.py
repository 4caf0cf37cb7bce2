"""How fast belief functions are over many groups: `python bench/belief.py`.

Simulates cells of 30 verdicts, some of them subsets, on a scale of 5 and of 11 stages. Beside each
step stands the same by the book, with frozensets and loops (the oracle of the tests), on as many
groups as it can do in a moment; both per group, and their results must agree. Dempster's rule is
pitted against sources combined one after the other; Yager's is the same work.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from judge_gym.analysis.belief import RULES, Rule
from judge_gym.analysis.belief.disagreement import Verdicts, conflict, squared_distances
from judge_gym.analysis.belief.masses import Masses, sources, stages
from judge_gym.analysis.belief.rules import combine_groups

sys.path.append(str(Path(__file__).parent.parent / "tests"))
import plain_belief as plain

CELLS, VERDICTS, JUDGES = 2_000, 30, 4
PLAIN_GROUPS = 10
"""How many groups are computed by the book."""
SCALES = (5, 11)
SUBSETS = 0.4
"""Share of verdicts that name the next stage too."""


def simulated(frame: int, seed: int = 7) -> Verdicts:
    """Verdicts of cells in which one stage is likelier than the others."""
    rng = np.random.default_rng(seed)
    cell = np.repeat(np.arange(CELLS), VERDICTS)
    favoured = np.repeat(rng.integers(0, frame, CELLS), VERDICTS)
    stage = np.where(rng.random(len(cell)) < 0.5, favoured, rng.integers(0, frame, len(cell)))
    more = (rng.random(len(cell)) < SUBSETS) & (stage < frame - 1)
    replicate = np.tile(np.arange(VERDICTS), CELLS)
    return Verdicts(cell, replicate, 1 << stage | np.where(more, 1 << (stage + 1), 0))


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, the best of three."""
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def report(name: str, groups: int, ours: float, by_the_book: float) -> None:
    """A line of the table, in microseconds per group."""
    each, plainly = 1e6 * ours / groups, 1e6 * by_the_book / PLAIN_GROUPS
    print(f"{name:24} {each:10.1f} {plainly:12.1f} {plainly / each:9.1f}", flush=True)


def read_off(masses: Masses) -> list[np.ndarray]:
    """Everything that is read off each cell."""
    return [masses.belief(), masses.plausibility(), masses.pignistic(), masses.uncertainty_gap()]


def plain_readings(mass: plain.Mass, frame: int) -> list[tuple[float, float, float]]:
    """The same of one cell by the book."""
    singles = [frozenset({stage}) for stage in range(1, frame + 1)]
    return [
        (plain.belief(mass, one), plain.plausibility(mass, one), plain.pignistic(mass, *one))
        for one in singles
    ]


def measure(frame: int) -> None:
    """All steps on one scale."""
    cell, replicate, chosen = verdicts = simulated(frame)
    masses = sources(cell, chosen, frame=frame, cells=CELLS).masses
    sets = [[stages(int(mask)) for mask in line] for line in chosen.reshape(CELLS, VERDICTS)]
    book = [plain.frequencies(one) for one in sets[: PLAIN_GROUPS * JUDGES]]
    panels = [book[start : start + JUDGES] for start in range(0, len(book), JUDGES)]
    print(f"\n{frame} stages, {CELLS:,} cells of {VERDICTS} verdicts, panels of {JUDGES} judges")
    print(f"{'':24} {'us a group':>10} {'by the book':>12} {'ratio':>9}")

    def from_verdicts() -> None:
        read_off(sources(cell, chosen, frame=frame, cells=CELLS).masses)

    def plainly() -> None:
        for one in sets[:PLAIN_GROUPS]:
            plain_readings(plain.frequencies(one), frame)

    report("masses, Bel, Pl, BetP", CELLS, seconds(from_verdicts), seconds(plainly))

    left = np.arange(0, CELLS, JUDGES)
    report(
        "conflict of two", len(left),
        seconds(lambda: conflict(masses, left, left + 1)),
        seconds(lambda: [plain.conflict(panel[:2]) for panel in panels]),
    )  # fmt: skip

    def side(offset: int) -> Verdicts:
        mine = cell % JUDGES == offset
        return Verdicts(cell[mine] // JUDGES, replicate[mine], verdicts.chosen[mine])

    sides = [list(enumerate(one)) for one in sets]
    report(
        "unbiased distance", len(left),
        seconds(lambda: squared_distances([side(0), side(1)], items=len(left))),
        seconds(lambda: [
            plain.squared_distance(sides[JUDGES * item], sides[JUDGES * item + 1])
            for item in range(PLAIN_GROUPS)
        ]),
    )  # fmt: skip

    panel = np.arange(CELLS) // JUDGES
    for rule in RULES:
        if rule != "yager":
            combined(rule, masses, panel, panels, frame)


def one_by_one(masses: Sequence[plain.Mass], frame: int) -> plain.Mass | None:
    """Dempster's rule over one source after the other, as one would write it."""
    found: plain.Mass | None = dict(masses[0])
    for mass in masses[1:]:
        found = plain.dempster([found, mass], frame) if found else None
    return found


def combined(
    rule: Rule, masses: Masses, panel: np.ndarray, panels: list[list[plain.Mass]], frame: int
) -> None:
    """One rule, over all panels and over a few by the book."""
    found = combine_groups(masses, panel, rule=rule).masses
    for group, members in enumerate(panels):
        expected, ours = plain.RULES[rule](members, frame) or {}, found.mapping(group)
        assert all(abs(ours[key] - value) < 1e-9 for key, value in expected.items()), rule
    rival = one_by_one if rule == "dempster" else plain.RULES[rule]
    report(
        rule, found.count,
        seconds(lambda: combine_groups(masses, panel, rule=rule)),
        seconds(lambda: [rival(members, frame) for members in panels]),
    )  # fmt: skip


def main() -> None:
    """Measure and print."""
    for frame in SCALES:
        measure(frame)


if __name__ == "__main__":
    main()
