"""What a study measures: its verdicts on each measure, and the means and differences of setups.

Accuracy and agreement with people are the judge table's `exact`: the comparison of each verdict
with the answers or labels of its unit, before it is averaged over repeats.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.belief.masses import FloatArray
from judge_gym.analysis.endpoints import sample_values
from judge_gym.analysis.frames import JUDGE, first_rows, own_rows
from judge_gym.analysis.judges.setups import Setup
from judge_gym.analysis.planning.components import Crossing, components
from judge_gym.analysis.stats.contrasts import Contrast, find_contrasts
from judge_gym.analysis.verdicts import Verdicts, of_setups
from judge_gym.errors import DesignError

QUALITY = ("accuracy", "agreement")
"""Measures that need known answers, or people's labels."""
STAGE = "stage"
"""The stage on the scale from 0 to 1."""
MEASURES = (*QUALITY, STAGE)
"""What verdicts are measured by, the one that says most about a setup first."""
LARGEST_VARIANCE = 0.25
"""The variance of values between 0 and 1, which all measures are, is at most this."""
MOST_NAMED = 30
"""The largest number of quantities that an error lists."""
TABLE = ["task", "measure", "component", "variance", "share", "low", "high", "levels", "note"]
SetupKey = tuple[str, str]
"""A variant and a judge."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """The verdicts of a task's setups on one measure."""

    task: str
    measure: str
    setups: tuple[SetupKey, ...]
    verdicts: pd.DataFrame
    """A verdict per row: setup, unit, cluster, author, draw and repeat in numbers; its value, and
    the price (usd) and number of its calls. A pair shown in both orders is one verdict, and so are
    replicates that repeat each other."""

    @property
    def crossing(self) -> Crossing:
        """The values by item and by setup under a draw of its rubric."""
        return Crossing.of(self.verdicts)

    def weighted(self, weights: Mapping[SetupKey, float]) -> pd.DataFrame:
        """Adds up setups on each unit, draw and repeat that all of them have."""
        key = ["unit", "cluster", "draw", "repeat"]
        wide = self.under(weights).groupby([*key, "setup"])["value"].mean().unstack("setup")
        wide = wide.reindex(columns=[self.setups.index(setup) for setup in weights]).dropna()
        value = wide.to_numpy(dtype=float) @ np.array(list(weights.values()))
        return wide.index.to_frame(index=False).assign(setup=0, author=0, value=value)

    def under(self, setups: Iterable[SetupKey]) -> pd.DataFrame:
        """Selects the verdicts of setups."""
        return self.verdicts[
            self.verdicts["setup"].isin([self.setups.index(setup) for setup in setups])
        ]


class Quantity(NamedTuple):
    """A mean of setups, or a difference, whose interval is to become narrower."""

    name: str
    measurement: Measurement
    weights: Mapping[SetupKey, float]
    """The weight of each setup."""
    panel: bool = False
    """Whether it is the mean of a panel, which another judge may join."""

    @property
    def task(self) -> str:
        """The task that it is measured on."""
        return self.measurement.task

    @property
    def measure(self) -> str:
        """What verdicts are measured by."""
        return self.measurement.measure

    @property
    def is_difference(self) -> bool:
        """Whether it compares setups."""
        return sum(self.weights.values()) < 0.5


# --- measurements --------------------------------------------------------------------------------


def measurements(
    frame: pd.DataFrame, people: pd.DataFrame | None = None, endpoints: Sequence[str] = ()
) -> list[Measurement]:
    """Measures the verdicts of each task, by every measure that they have values on.

    Args:
        frame: tidy samples.
        people: raters' stages, with columns tag, evidence, rater, stage.
        endpoints: what else is measured of single verdicts (`endpoints.AVERAGED`).
    """
    samples = own_rows(frame)
    if samples.empty:
        return []
    groups = samples.groupby(["task", JUDGE, "variant"], observed=True)
    code = groups.ngroup().to_numpy()
    names = samples[["task", JUDGE, "variant"]].iloc[first_rows(code.astype(np.int64))].astype(str)
    setups = [
        Setup(", ".join(key), key[1], {}, "", np.flatnonzero(code == index))
        for index, key in enumerate(names.itertuples(index=False, name=None))
    ]
    verdicts = of_setups(samples, setups, people)
    rows = _numbered(verdicts)
    values = sample_values(verdicts.rows)
    by_measure: dict[str, FloatArray] = {
        **{kind: reference.right for kind, reference in verdicts.references.items()},
        **{name: values[name] for name in (STAGE, *endpoints)},
    }
    measured = []
    for measure in [name for name in (*MEASURES, *endpoints) if name in by_measure]:
        table = rows.assign(value=by_measure[measure]).dropna(subset="value")
        for task in samples["task"].unique():
            of_task = np.flatnonzero(names["task"] == task)
            part = table[table["setup"].isin(of_task)]
            if len(part):
                keys = names[["variant", JUDGE]].iloc[of_task].itertuples(index=False, name=None)
                part = _single_verdicts(part.assign(setup=part["setup"] - of_task[0]))
                measured.append(Measurement(str(task), measure, tuple(keys), part))
    return measured


def _numbered(verdicts: Verdicts) -> pd.DataFrame:
    """Names what each row is a verdict of, in numbers."""
    rows = verdicts.rows
    return pd.DataFrame(
        {
            "setup": verdicts.setup,
            "unit": verdicts.unit,
            "cluster": verdicts.clusters[verdicts.unit],
            "author": pd.factorize(rows["rubric_author"], sort=True)[0],
            "draw": rows["rubric_draw"].to_numpy(),
            "repeat": rows["replicate"].to_numpy(),
            "repeats": rows["repeats"].to_numpy(dtype=bool),
            "usd": rows["usd"].fillna(np.inf).to_numpy(dtype=float),
            "calls": 1,
        }
    )


def _single_verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """Averages the orders of a pair, and replicates that repeat each other."""
    key = ["setup", "unit", "cluster", "author", "draw", "repeat", "repeats"]
    orders = rows.groupby(key, sort=False).agg({"value": "mean", "usd": "sum", "calls": "sum"})
    table = orders.reset_index()
    if table["repeats"].any():
        # The judge table averages them too; what is bought is one of them.
        once = table.assign(repeat=table["repeat"].mask(table["repeats"], 0))
        table = once.groupby(key, sort=False)[["value", "usd", "calls"]].mean().reset_index()
    # A sum is unknown if a part is.
    return table.drop(columns="repeats").assign(usd=table["usd"].replace(np.inf, np.nan))


def primary_measure(measured: Sequence[Measurement], task: str) -> Measurement:
    """Chooses the measurement of a task that says most about its setups."""
    by_name = {m.measure: m for m in measured if m.task == task}
    return next(by_name[name] for name in (*MEASURES, *by_name) if name in by_name)


def variance_table(measured: Sequence[Measurement]) -> pd.DataFrame:
    """Estimates the variance components of each task, by the measure that says most.

    `share` is the component's part of the variance of a single verdict, where all are known.
    """
    rows = []
    for task in sorted({m.task for m in measured}):
        measurement = primary_measure(measured, task)
        estimates = components(measurement.crossing)
        total = sum(component.variance for component in estimates.values() if component.known)
        for name, variance, low, high, levels, note in estimates.values():
            share = variance / total if total > 0 else np.nan
            ends = low, np.minimum(high, LARGEST_VARIANCE)
            rows.append([task, measurement.measure, name, variance, share, *ends, levels, note])
    return pd.DataFrame(rows, columns=TABLE)


# --- means and differences -----------------------------------------------------------------------


def quantities(frame: pd.DataFrame, measured: Sequence[Measurement]) -> list[Quantity]:
    """Lists what a study estimates, the most asked for first.

    Args:
        frame: the tidy samples.
        measured: their measurements.
    """
    contrasts = find_contrasts(own_rows(frame))
    tasks = {m.task for m in measured}
    listed = []
    for measurement in measured:
        task = measurement.task
        where = f" on {task}" if len(tasks) > 1 else ""
        for name, weights, panel in _weights(measurement, [c for c in contrasts if c.task == task]):
            text = f"{measurement.measure}{name}{where}"
            listed.append(Quantity(text, measurement, weights, panel))
    primary = {task: primary_measure(measured, task) for task in tasks}
    # Differences tell which choice is better.
    return sorted(listed, key=lambda q: (q.measurement is not primary[q.task], not q.is_difference))


def _weights(
    measurement: Measurement, contrasts: Sequence[Contrast]
) -> Iterator[tuple[str, dict[SetupKey, float], bool]]:
    """Yields the name and weights of each difference and mean of a task's setups."""
    means = measurement.verdicts.groupby("setup")["value"].mean()
    setups = dict(zip([measurement.setups[index] for index in means.index], means, strict=True))
    variants: dict[str, list[str]] = {}
    for variant, judge in sorted(setups):
        variants.setdefault(variant, []).append(judge)
    ranked = sorted(sorted(setups), key=lambda setup: -setups[setup])
    several = len(variants) > 1
    if measurement.measure != STAGE:  # which setup is right most often
        for a, b in combinations(ranked, 2):
            if a[0] == b[0]:
                where = f", {a[0]}" if several else ""
                yield f", {a[1]} minus {b[1]}{where}", {a: 1.0, b: -1.0}, False
    for contrast in contrasts:
        against = variants.get(contrast.against, ())
        both = [judge for judge in variants.get(contrast.variant, ()) if judge in against]
        if both:
            at = "" if contrast.at == "base" else f" at {contrast.at}"
            weights = {(contrast.variant, judge): 1 / len(both) for judge in both}
            weights |= {(contrast.against, judge): -1 / len(both) for judge in both}
            name = f", {contrast.knob} {contrast.level} minus {contrast.base}{at}"
            yield name, weights, False
    if measurement.measure == STAGE:
        for variant, judges in variants.items():
            where = f", {variant}" if several else ""
            for judge, other in combinations(judges, 2):
                name = f", {judge} minus {other}{where}"
                yield name, {(variant, judge): 1.0, (variant, other): -1.0}, False
    for variant, judges in variants.items():
        where = f", {variant}" if several else ""
        if len(judges) > 1:
            share = {(variant, judge): 1 / len(judges) for judge in judges}
            yield f" of the panel{where}", share, True
        for judge in judges:
            yield f" of {judge}{where}", {(variant, judge): 1.0}, False


def find_quantities(listed: Sequence[Quantity], text: str | None) -> list[Quantity]:
    """Finds the quantities whose name contains a text, an exact match alone if there is one."""
    if text is None:
        return [*listed]
    exact = [quantity for quantity in listed if quantity.name.lower() == text.lower()]
    matches = exact or [quantity for quantity in listed if text.lower() in quantity.name.lower()]
    if not matches:
        names = [quantity.name for quantity in listed]
        first = "; ".join(names[:MOST_NAMED])
        raise DesignError(f"no quantity contains {text!r}; choose of: {first}", choices=names)
    return matches
