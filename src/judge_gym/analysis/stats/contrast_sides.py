"""The two sides of each contrast: the values of each judge under each design, and its calls."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from judge_gym.analysis.dataset import Dataset, Samples
from judge_gym.analysis.endpoints import cell_endpoints, endpoints_without_each_draw
from judge_gym.analysis.frames import CELL, JUDGE, own_rows
from judge_gym.analysis.stats.intervals import Floats
from judge_gym.analysis.stats.rubric_draws import pseudo_values

Side = tuple[str, str, str]
"""Task, variant and judge."""
CALLS = ("call_id", "probe_call_id")
Pairs = Sequence[tuple[Side, Side]]
"""A side and its base, one pair for each judge."""


class Sides:
    """The values of endpoints (columns of `cell_endpoints`) and the calls, by side; no swaps."""

    def __init__(self, samples: Samples, endpoints: Sequence[str]) -> None:
        data = Dataset.of(samples)
        self.frame = own_rows(data.frame)
        self.endpoints = endpoints
        self.items = {
            str(task): pd.Index(part.unique())
            for task, part in self.frame.groupby("task")["evidence"]
        }
        self.values = self._values(data.compute(cell_endpoints))
        self.judges: dict[tuple[str, str], list[str]] = {}
        for task, variant, judge in self.values:
            self.judges.setdefault((task, variant), []).append(judge)
        self.without_draws: dict[Side, dict[int, Floats]] = {}
        """For sides with many draws of rubrics, their values without each draw."""
        for draw, cells in data.compute(endpoints_without_each_draw).items():
            for side, values in self._values(cells).items():
                self.without_draws.setdefault(side, {})[draw] = values
        self._calls = {name: self._calls_by_side(name) for name in CALLS}

    def _values(self, cells: pd.DataFrame) -> dict[Side, Floats]:
        """Returns the endpoints of each item of the task by side; missing ones are NaN."""
        found: dict[Side, Floats] = {}
        for task, part in cells.groupby("task"):
            item = self.items[str(task)].get_indexer(part["evidence"])
            groups = part.groupby(["variant", JUDGE], sort=False)
            side = groups.ngroup().to_numpy()
            shape = groups.ngroups, len(self.items[str(task)]), len(self.endpoints)
            table = np.full(shape, np.nan)
            table[side, item] = part[list(self.endpoints)].to_numpy(dtype=float)
            names = part[["variant", JUDGE]].iloc[np.unique(side, return_index=True)[1]]
            for values, (variant, judge) in zip(table, names.to_numpy(), strict=True):
                found[str(task), variant, judge] = values
        return found

    def draw_differences(self, pairs: Pairs) -> Floats | None:
        """Returns differences by pair, draw, item and endpoint; None if draws are few."""
        if not all(side in self.without_draws for pair in pairs for side in pair):
            return None
        draws = sorted(
            {draw for pair in pairs for side in pair for draw in self.without_draws[side]}
        )
        whole = self._differences(pairs, None)
        without = [self._differences(pairs, draw) for draw in draws]
        return np.moveaxis(pseudo_values(whole, without), 0, 1)

    def _differences(self, pairs: Pairs, without: int | None) -> Floats:
        """Returns differences by pair, item and endpoint, without a draw of a side that has it."""

        def values(side: Side) -> Floats:
            whole = self.values[side]
            return whole if without is None else self.without_draws[side].get(without, whole)

        return np.stack([values(left) - values(right) for left, right in pairs])

    def _calls_by_side(self, column: str) -> dict[Side, tuple[int, set[int]]]:
        """Returns by side the number of calls, and those that another side has too."""
        known = self.frame.loc[self.frame[column].notna(), [*CELL, "evidence", column]]
        # As everywhere, a call belongs to an item.
        call = known.groupby(["evidence", column], sort=False).ngroup().rename("call")
        calls = pd.concat([known[CELL], call], axis=1).drop_duplicates()
        several = calls["call"].duplicated(keep=False)
        common = calls[several].groupby(CELL)["call"].agg(set)
        sizes = calls.groupby(CELL).size()
        found = zip(sizes.index.tolist(), sizes.tolist(), strict=True)
        return {side: (n, common.get(side, set())) for side, n in found}

    def shared_calls(self, pairs: Pairs, column: str) -> float:
        """Returns the share of calls that both sides have; NaN if calls have no identity."""
        both = total = 0
        for side, other in pairs:
            (n, ours), (m, theirs) = (
                self._calls[column].get(one, (0, set())) for one in (side, other)
            )
            common = len(ours & theirs)
            both += common
            total += n + m - common
        return both / total if total else np.nan
