"""Panels of judges whose verdicts have a known distribution.

A *condition* is one judge under one design and one rubric. All conditions of a panel see the same
items, so that analyses can compare them. A panel is a task of a tidy frame, with its own evidence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import tidy
from simulations.truth import TrueValues, VerdictDistribution, generator

Analysis = Callable[[pd.DataFrame], pd.DataFrame]
"""Maps a tidy frame to a table."""
DRAWS, PER_DRAW = 6, 2
"""If rubrics are drawn: their number per panel, and the replicates under each."""
PLAIN = "sim:balanced"
BIASED, LEANING = f"{PLAIN}?bias=0.5", f"{PLAIN}?position=1.5&label=0.5"
"""Judges: an unbiased one, one that scores higher, one that prefers the first position or label."""
CALLS = 10**9
"""More calls than a condition has, so that no two conditions share a call."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a panel, and the seed."""

    items: int = 12
    replicates: int = 5
    seed: int = 0


class Source(Protocol):
    """What simulates the verdicts of conditions, and knows their distribution."""

    @property
    def name(self) -> str:
        """The name in tables."""

    def samples(self, condition: str, panels: Sequence[int], shape: Shape) -> pd.DataFrame:
        """Returns one row per verdict, with a pool per panel and a column `condition`."""

    def distribution(self, condition: str) -> VerdictDistribution:
        """Returns the distribution of the verdicts of a condition."""


class Panels:
    """Panels, each on its own evidence; a panel does not depend on the others.

    A condition is simulated on its first use.
    """

    def __init__(self, numbers: Sequence[int], source: Source, shape: Shape) -> None:
        self.numbers = numbers
        self.source = source
        self.shape = shape
        self._samples: dict[str, pd.DataFrame] = {}
        self._frames: dict[tuple[str, ...], pd.DataFrame] = {}
        self._tables: dict[tuple[Analysis, tuple[str, ...]], pd.DataFrame] = {}

    def of(self, *names: str) -> pd.DataFrame:
        """Returns the tidy samples of conditions: a task per panel, and a column `condition`."""
        if names not in self._frames:
            parts = [self._condition(name) for name in names]
            self._frames[names] = tidy(pd.concat(parts, ignore_index=True))
        return self._frames[names]

    def analysed(self, analysis: Analysis, *names: str) -> pd.DataFrame:
        """Returns the result of an analysis of conditions, computed once."""
        if (analysis, names) not in self._tables:
            self._tables[analysis, names] = analysis(self.of(*names))
        return self._tables[analysis, names]

    def generator(self, panel: int, *key: object) -> np.random.Generator:
        """Returns a random generator for what is drawn for a panel beside its samples."""
        return generator("calibrate", self.source.name, self.shape.seed, panel, *key)

    def _condition(self, name: str) -> pd.DataFrame:
        if name not in self._samples:
            self._samples[name] = self.source.samples(name, self.numbers, self.shape)
        return self._samples[name]

    @property
    def truth(self) -> TrueValues:
        """The true values of this world."""
        return TrueValues(self.source.distribution, self.shape.replicates)
