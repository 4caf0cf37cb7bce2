"""Tidy samples with the analyses of them, each computed at most once."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, Union

import pandas as pd

from judge_gym.analysis.frames import own_rows, select_rows
from judge_gym.analysis.panels import Panel, panels

Result = TypeVar("Result")
Samples = Union[pd.DataFrame, "Dataset"]
"""A tidy frame, or a dataset that shares its results with other analyses."""


class Dataset:
    """A tidy frame that keeps the results of analyses which several others read."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self._results: dict[Callable[[pd.DataFrame], Any], Any] = {}

    @staticmethod
    def of(samples: Samples) -> "Dataset":
        """Returns the dataset of a frame; a dataset is returned as it is."""
        return samples if isinstance(samples, Dataset) else Dataset(samples)

    def compute(self, analysis: Callable[[pd.DataFrame], Result]) -> Result:
        """Returns the result of an analysis of the frame, computing it on the first call."""
        if analysis not in self._results:
            self._results[analysis] = analysis(self.frame)
        result: Result = self._results[analysis]
        return result

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """The judges of each task and variant, under the rubrics of their designs."""
        return tuple(panels(self.frame))

    @cached_property
    def without_pairs(self) -> "Dataset":
        """The samples that are not pairwise comparisons, which have their own rules."""
        return self._where(~self.frame["pair"])

    @cached_property
    def ordinal(self) -> "Dataset":
        """The samples under ordinal rubrics."""
        return self._where(self.frame["rubric_kind"] == "ordinal")

    @cached_property
    def own(self) -> pd.DataFrame:
        """The samples under the rubrics of their designs, without swaps."""
        return own_rows(self.frame)

    @cached_property
    def scored(self) -> bool:
        """Whether any sample without a swapped rubric has a score."""
        return bool((self.own["status"] == "scored").any())

    def _where(self, kept: pd.Series) -> "Dataset":
        rows = select_rows(self.frame, kept)
        return self if rows is self.frame else Dataset(rows)
