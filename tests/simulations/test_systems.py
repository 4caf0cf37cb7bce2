"""Whether intervals of a corrected rate, and of the difference of two systems, cover.

People and judge see the same latent quality with noise. The judge also likes what system A does and
people do not care about, so that its own difference is wrong; 3 % of its verdicts cannot be read.
Items are their own clusters, or four share a part of their quality and of the judge's error.
"""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import special

from judge_gym.analysis.judges.rate import people_rate
from judge_gym.analysis.judges.systems import SystemItems, system_difference
from judge_gym.analysis.stats.intervals import Estimate, seeded

FILES = 400
LEAST = 0.93
"""The share of intervals that must cover."""
SCORES = np.array([0.0, 1.0, 0.0])
"""What a verdict stands for: fail, pass, unreadable."""
FAVOUR = 0.5
"""How much the judge favours system A, in standard deviations of quality."""
SHARED = 0.4
"""The share of variance that items of a cluster have in common."""


class World(NamedTuple):
    """How files come about: two systems, their items and their labels."""

    items: int
    """The number of items of each system."""
    labelled: float
    cluster_size: int
    design: str
    """`same items`, `same items, labels apart` or `other items`."""
    prevalence: float
    gap: float
    """How much better A is, in standard deviations of quality."""

    @property
    def rates(self) -> tuple[float, float]:
        """The share that people pass, of A and of B."""
        cut = special.ndtri(1 - self.prevalence)
        return float(special.ndtr(self.gap - cut)), float(special.ndtr(-cut))

    def draw(self, rng: np.random.Generator) -> tuple[SystemItems, SystemItems]:
        """Draws a file."""
        own = self.design == "other items"
        topic = [rng.normal(size=self.items)]
        topic.append(rng.normal(size=self.items) if own else topic[0])
        chosen = rng.random(self.items) < self.labelled
        sides = []
        for system, bonus in enumerate((self.gap, 0.0)):
            clusters = np.arange(self.items) // self.cluster_size
            group = rng.normal(size=(2, clusters[-1] + 1))[:, clusters]
            shared = SHARED if self.cluster_size > 1 else 0.0
            # Half of the quality of an answer is that of its question.
            alone = np.sqrt(0.5) * (topic[system] + rng.normal(size=self.items))
            quality = np.sqrt(shared) * group[0] + np.sqrt(1 - shared) * alone + bonus
            error = np.sqrt(shared) * group[1] + np.sqrt(1 - shared) * rng.normal(size=self.items)
            label = (quality > special.ndtri(1 - self.prevalence)).astype(float)
            seen = quality + 0.6 * error + (FAVOUR if system == 0 else 0.0)
            verdict = (seen > 1.1 * special.ndtri(1 - self.prevalence)).astype(int)
            verdict[rng.random(self.items) < 0.03] = 2
            if self.design != "same items":
                chosen = rng.random(self.items) < self.labelled
            offset = self.items * system * own
            sides.append(
                SystemItems(
                    items=np.arange(self.items) + offset,
                    labels=np.where(chosen, label, np.nan),
                    shares=np.eye(3)[verdict],
                    clusters=clusters + offset,
                    lengths=np.exp(rng.normal(size=self.items) + 5 + 0.3 * (system == 0)),
                )
            )
        return sides[0], sides[1]


def worlds() -> list[World]:
    return [
        World(items, labelled, size, design, prevalence, gap)
        for items, labelled in ((120, 0.3), (400, 0.25))
        for size in (1, 4)
        for design in ("same items", "same items, labels apart", "other items")
        for prevalence, gap in ((0.6, 0.0), (0.85, 0.3))
    ]


def held(estimates: list[Estimate], truth: float) -> tuple[float, int]:
    """The share of printed intervals that have the truth, and their number."""
    hits = [found.low - 1e-12 <= truth <= found.high + 1e-12 for found in estimates if found.known]
    return float(np.mean(hits or [True])), len(hits)


def coverage(world: World, files: int) -> dict[str, tuple[float, int]]:
    """The coverage of the corrected rate of A, and of the corrected difference."""
    rng = seeded("systems", *world)
    rates, gaps, judged = [], [], []
    for _ in range(files):
        a, b = world.draw(rng)
        rates.append(people_rate(a.labels, a.shares, SCORES, a.clusters).corrected)
        difference = system_difference(a, b, SCORES)
        gaps.append(difference.corrected)
        judged.append(difference.judged)
    truth = world.rates[0] - world.rates[1]
    return {
        "rate": held(rates, world.rates[0]),
        "difference": held(gaps, truth),
        "judge alone": held(judged, truth),
        "half width": (float(np.median([(g.high - g.low) / 2 for g in gaps])), files),
    }


@pytest.mark.simulation
@pytest.mark.timeout(3600)
def test_corrected_rates_and_differences_of_systems_cover() -> None:
    results = {world: coverage(world, FILES) for world in worlds()}
    z = -special.ndtri(0.05 / (2 * len(results)))
    low = [
        (world, name, share)
        for world, found in results.items()
        for name in ("rate", "difference")
        for share, printed in [found[name]]
        if share < LEAST - z * np.sqrt(LEAST * (1 - LEAST) / printed)
    ]
    assert not low
    for name in ("rate", "difference"):
        assert np.mean([found[name][0] for found in results.values()]) >= LEAST, name
    biased = np.mean([found["judge alone"][0] for found in results.values()])
    assert biased < 0.7, "the judge's own difference is wrong in these worlds"


if __name__ == "__main__":
    for world in worlds():
        print(world, coverage(world, FILES))
