"""Estimates from judge tables, one row per panel: of setups, with people's labels, and of pairs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import tidy
from judge_gym.analysis.judges.table import judge_table
from judge_gym.records.judge_table import JudgeTable
from simulations.scenarios import (
    COLUMNS,
    DIFFICULTIES,
    RATERS,
    PairJudge,
    raters_of,
    recorded_pairs,
)
from simulations.synthetic import CONDITIONS
from simulations.truth import FloatArray
from simulations.worlds import BIASED, PLAIN, Analysis, Panels

SETUPS = ("plain", "twin", "much biased")
"""The conditions that tables of several setups compare: two are equal, one is worse."""


def _by_panel(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    return (part.reset_index(drop=True) for _, part in frame.groupby("pool"))


def of_setups(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the judge table of each panel."""
    return pd.DataFrame({"table": [judge_table(part) for part in _by_panel(frame)]})


def of_split(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the judge table of each panel with every second item in the test part of a split."""
    tables = [
        judge_table(
            part, parts={item: ("train", "test")[item % 2] for item in part["evidence"].unique()}
        )
        for part in _by_panel(frame)
    ]
    return pd.DataFrame({"table": tables})


def with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the judge table of each panel with the labels of people, who are one condition."""
    tables = []
    for part in _by_panel(frame.assign(truth=np.nan)):
        people = part["condition"] == "people"
        labels = raters_of(part[people & (part["replicate"] < RATERS)])
        tables.append(judge_table(part[~people].reset_index(drop=True), labels))
    return pd.DataFrame({"table": tables})


@dataclass(frozen=True, slots=True)
class FirstRow:
    """A quantity of the first setup in the tables of some conditions."""

    column: str
    tables: Analysis
    names: tuple[str, ...]

    def __call__(self, panels: Panels) -> pd.DataFrame:
        """Returns value, low and high of each panel."""
        tables = panels.analysed(self.tables, *self.names)["table"]
        return _quantities(table["rows"][0][self.column] for table in tables)


def people_with_each_other(panels: Panels) -> pd.DataFrame:
    """Returns how often two raters give the same label, by panel."""
    tables = panels.analysed(with_labels, "plain", "people")["table"]
    return _quantities(table["people_with_each_other"] for table in tables)


def _quantities(found: Iterator[Mapping[str, Any] | None]) -> pd.DataFrame:
    return pd.DataFrame([one or {} for one in found], columns=COLUMNS).astype(float)


# --- several setups ------------------------------------------------------------------------------


def _accuracies(panels: Panels) -> dict[str, float]:
    """Returns the true accuracy of each judge."""
    return {CONDITIONS[name].model: panels.truth.accuracy(name) for name in SETUPS}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The quality of the setup that the table recommends; the truth is that of this setup."""

    split: bool = False
    """Whether the setup is chosen on one part of the items and scored on the other."""

    def __call__(self, panels: Panels) -> pd.DataFrame:
        """Returns value, low, high and truth of each panel."""
        tables = panels.analysed(of_split if self.split else of_setups, *SETUPS)["table"]
        true = _accuracies(panels)
        judges = [
            row["judge"]
            for table in tables
            for row in table["rows"]
            if row["setup"] == table["chosen"]
        ]
        found = _quantities(table["chosen_quality"] for table in tables)
        return found.assign(truth=[true[judge] for judge in judges])


def furthest_off(panels: Panels) -> pd.DataFrame:
    """Returns the accuracy of the setup whose interval is furthest from its truth, by panel.

    It holds as often as the intervals of all setups hold together.
    """
    true = _accuracies(panels)

    def worst(table: JudgeTable) -> dict[str, Any]:
        known = [{**(row["truth"] or {}), "truth": true[row["judge"]]} for row in table["rows"]]
        return max(known, key=lambda q: max(q["low"] - q["truth"], q["truth"] - q["high"]))

    tables = panels.analysed(of_setups, *SETUPS)["table"]
    return pd.DataFrame([worst(table) for table in tables], columns=[*COLUMNS, "truth"])


def behind_the_best(panels: Panels) -> pd.DataFrame:
    """Returns how much better the biased setup is than the best of the table, by panel."""
    true = _accuracies(panels)

    def row(table: JudgeTable) -> dict[str, Any]:
        [best] = [row["judge"] for row in table["rows"] if row["difference"] is None]
        gap = _of_judge(table, BIASED)["difference"]
        return {**(gap or {}), "truth": true[BIASED] - true[best]}

    tables = panels.analysed(of_setups, *SETUPS)["table"]
    found = pd.DataFrame([row(table) for table in tables], columns=[*COLUMNS, "truth"])
    return found.astype(float)


def best_called_worse(panels: Panels) -> pd.DataFrame:
    """Returns a p of 0 where a setup is called worse though none is better, else of 1, by panel."""
    tables = panels.analysed(of_setups, *SETUPS)["table"]
    standings = [_of_judge(table, PLAIN)["standing"] for table in tables]
    p = {"unknown": np.nan, "worse": 0.0}
    return pd.DataFrame({"p": [p.get(standing, 1.0) for standing in standings]})


def _of_judge(table: JudgeTable, judge: str) -> Mapping[str, Any]:
    return next(row for row in table["rows"] if row["judge"] == judge)


# --- pairs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairRow:
    """A quantity of one of two judges of pairs."""

    column: str
    truth: Callable[[PairJudge, FloatArray], float]

    def __call__(self, panels: Panels) -> pd.DataFrame:
        """Returns value, low, high and truth of each panel."""
        judges = {"leaning": PairJudge(0.8, 0.3), "weak": PairJudge(0.1)}
        tables = [judge_table(_pair_frame(panels, panel, judges)) for panel in panels.numbers]
        found = _quantities(_of_judge(table, "leaning")[self.column] for table in tables)
        return found.assign(truth=self.truth(judges["leaning"], DIFFICULTIES))


def _pair_frame(panels: Panels, panel: int, judges: Mapping[str, PairJudge]) -> pd.DataFrame:
    """Returns the samples of judges that saw each pair in both orders."""
    frame = pd.concat(recorded_pairs(panels, panel, **judges).values(), ignore_index=True)
    return tidy(frame.assign(concept="pairs", rubric=1))
