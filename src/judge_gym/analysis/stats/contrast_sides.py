"""The two sides of every comparison: the values of each judge under each design, and its calls."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import cell_endpoints
from judge_gym.analysis.frames import CELL, JUDGE, only
from judge_gym.analysis.stats.intervals import Floats
from judge_gym.analysis.stats.rubric_draws import left_out, pseudo_values

Side = tuple[str, str, str]
"""Task, variant and judge."""
CALLS = ("call_id", "probe_call_id")
Pairs = Sequence[tuple[Side, Side]]
"""What is compared: a side and its base, one for each judge."""


class Sides:
    """What comparisons read of samples under own rubrics.

    Args:
        frame: tidy samples.
        endpoints: which columns of `cell_endpoints` to read.
    """

    def __init__(self, frame: pd.DataFrame, endpoints: Sequence[str]) -> None:
        self.frame = only(frame, ~frame["is_swap"].to_numpy(dtype=bool))
        self.endpoints = endpoints
        self.items = {
            str(task): pd.Index(part.unique())
            for task, part in self.frame.groupby("task")["evidence"]
        }
        self.values = self._values(self.frame)
        self.judges: dict[tuple[str, str], list[str]] = {}
        for task, variant, judge in self.values:
            self.judges.setdefault((task, variant), []).append(judge)
        self.draws = self._draws()
        self._calls = {name: self._distinct(name) for name in CALLS}

    def _values(self, frame: pd.DataFrame) -> dict[Side, Floats]:
        """By side, the endpoints of each item of the task; not a number where there is none."""
        found: dict[Side, Floats] = {}
        for task, part in cell_endpoints(frame).groupby("task"):
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

    def _draws(self) -> dict[Side, dict[int, Floats]]:
        """Of sides with many draws of rubrics, their values without each draw."""
        found: dict[Side, dict[int, Floats]] = {}
        for draw, sides in left_out(self.frame, CELL, self._values).items():
            for side, values in sides.items():
                found.setdefault(side, {})[draw] = values
        return found

    def drawn(self, pairs: Pairs) -> Floats | None:
        """By pair, draw, item and endpoint, the differences that draws of rubrics make.

        None where there are few draws; then what is found is of these rubrics.
        """
        if not all(side in self.draws for pair in pairs for side in pair):
            return None
        draws = sorted({draw for pair in pairs for side in pair for draw in self.draws[side]})
        whole = self._gaps(pairs, None)
        return np.moveaxis(pseudo_values(whole, [self._gaps(pairs, one) for one in draws]), 0, 1)

    def _gaps(self, pairs: Pairs, without: int | None) -> Floats:
        """By pair, item and endpoint, the differences without a draw, if a side has it."""
        ends = [
            [
                self.values[side]
                if without is None
                else self.draws[side].get(without, self.values[side])
                for side in pair
            ]
            for pair in pairs
        ]
        return np.stack([left - right for left, right in ends])

    def _distinct(self, column: str) -> dict[Side, tuple[int, set[int]]]:
        """By side, how many calls it has, and which of them another side has too."""
        known = self.frame.loc[self.frame[column].notna(), [*CELL, "evidence", column]]
        # As everywhere, a call belongs to an item.
        call = known.groupby(["evidence", column], sort=False).ngroup().rename("call")
        calls = pd.concat([known[CELL], call], axis=1).drop_duplicates()
        several = calls["call"].duplicated(keep=False)
        common = calls[several].groupby(CELL)["call"].agg(set)
        sizes = calls.groupby(CELL).size()
        found = zip(sizes.index.tolist(), sizes.tolist(), strict=True)
        return {side: (n, common.get(side, set())) for side, n in found}

    def shared(self, pairs: Pairs, column: str) -> float:
        """The share of all calls that both sides have; unknown where calls have no identity."""
        both = total = 0
        for side, other in pairs:
            (n, ours), (m, theirs) = (
                self._calls[column].get(one, (0, set())) for one in (side, other)
            )
            common = len(ours & theirs)
            both += common
            total += n + m - common
        return both / total if total else np.nan
