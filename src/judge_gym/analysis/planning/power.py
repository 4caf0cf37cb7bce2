"""The power of a study's tests, by simulation: before any data by defaults, else from a pilot.

A test compares a mean over items, clusters or concepts with 0. Its power follows from the variance
components of what it tests: between concepts, clusters and items, and between repeats.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.endpoints import cell_endpoints
from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.planning.components import ITEM, Components, Size
from judge_gym.analysis.planning.purchases import decide
from judge_gym.analysis.planning.quantities import Measurement, measurements, quantities
from judge_gym.analysis.stats.intervals import seeded, t_quantile
from judge_gym.errors import DesignError
from judge_gym.records.numbers import plural

STUDIES = 4_000
"""The number of simulated studies."""
POWERS = (0.8, 0.9)
MIN_UNITS, MIN_CONCEPTS = 5, 4
"""The fewest items or clusters, and concepts per arm, that a test over them needs."""
MOST = 1 << 17
"""The largest number of items or concepts that is considered."""
SIMULATED_ITEMS = 40_000
DIFFERENCE = "difference of two setups"
TABLE = [
    *("endpoint", "test", "unit", "planned", "repeats", "effect", "power", "smallest_effect"),
    *("needed_80", "needed_90", "concept", "cluster", "item", "repeat", "source", "note"),
]


class Rate(NamedTuple):
    """The components of a difference of two rates: the level implies how repeats vary."""

    item: float
    """Of the difference between the two chances on an item."""
    base: float
    """The level of the rates."""
    level: float
    """The variance of the level between items."""
    source: str = "default"

    def components(self, effect: float, repeats: float) -> Components:
        """Simulates the variance of an item's difference of two shares of its repeats."""
        rng = seeded("rate")
        count = max(round(repeats), 1)
        level = np.clip(
            self.base + np.sqrt(self.level) * rng.normal(size=SIMULATED_ITEMS), 0.0, 1.0
        )
        toward = -effect if self.base + effect > 1 else effect
        other = level + toward + np.sqrt(self.item) * rng.normal(size=SIMULATED_ITEMS)
        shares = [rng.binomial(count, chance) / count for chance in (level, np.clip(other, 0, 1))]
        return Components(item=float((shares[1] - shares[0]).var()), source=self.source)


class Endpoint(NamedTuple):
    """A measure or a hypothesis that a study tests."""

    test: str
    assumed: Components | Rate
    """What is assumed before any data, from studies of language models as judges."""


ENDPOINTS: Mapping[str, Endpoint] = {
    "stage": Endpoint(DIFFERENCE, Components(0.01, 0.04)),
    "accuracy": Endpoint(DIFFERENCE, Rate(0.02, base=0.7, level=0.06)),
    "agreement": Endpoint(DIFFERENCE, Rate(0.02, base=0.6, level=0.06)),
    "abstention": Endpoint(DIFFERENCE, Rate(0.005, base=0.1, level=0.02)),
    "probability": Endpoint(DIFFERENCE, Components(0.005, 0.02)),
    "subset_size": Endpoint(DIFFERENCE, Components(0.05, 0.3)),
    "entropy": Endpoint(DIFFERENCE, Components(0.15)),
}


def power_table(
    sizes: Mapping[str, Size],
    effect: float,
    pilot: Mapping[str, Components | Rate] | None = None,
    endpoints: Mapping[str, Endpoint] = ENDPOINTS,
) -> pd.DataFrame:
    """Returns the power of each endpoint at its planned size, and what more power would need.

    `smallest_effect` is what is detected with a power of 80 %; `needed_80` and `needed_90` are
    numbers of the unit: items or clusters, or concepts in each arm.

    Args:
        sizes: the size of the study, by endpoint.
        effect: the size of the effect, on the endpoint's own scale.
        pilot: components that are known from data, by endpoint.
        endpoints: what can be tested.
    """
    if not 0 < effect <= 1:
        raise DesignError(f"an effect of {effect}; choose a difference above 0, up to 1")
    rows = [
        dict(_row(name, endpoint.test, size, effect, (pilot or {}).get(name, endpoint.assumed)))
        for name, size in sizes.items()
        for endpoint in [endpoints[name]]
    ]
    return pd.DataFrame(rows, columns=TABLE)


def _row(
    name: str, test: str, size: Size, effect: float, assumed: Components | Rate
) -> Iterator[tuple[str, Any]]:
    study = _Study(size, assumed)
    yield from {"endpoint": name, "test": test, "unit": study.unit}.items()
    yield from {"planned": study.planned, "repeats": size.repeats, "effect": effect}.items()
    yield "power", study.power(effect, study.planned)
    yield "smallest_effect", study.smallest(study.planned)
    for power in POWERS:
        yield f"needed_{power * 100:.0f}", study.needed(effect, power)
    if isinstance(assumed, Rate):
        assumed = Components(assumed.item, np.nan, source=assumed.source)
    yield from assumed._asdict().items()
    yield "note", study.note


class _Study:
    """A test over units with independent values, whose variance depends on the components."""

    def __init__(self, size: Size, assumed: Components | Rate) -> None:
        self._assumed = assumed
        self.arms, self.note = size.arms, ""
        self._arm = size._replace(
            items=size.items / size.arms, clusters=size.clusters / size.arms, arms=1
        )
        """The size of one arm."""
        self.planned, self.unit = int(size.items), "items"
        if size.concepts:
            self.planned, self.unit = size.concepts, "concepts per arm"
            if size.concepts < MIN_CONCEPTS:
                self.note = f"{plural(size.concepts, 'concept')} per arm, {MIN_CONCEPTS} are needed"
        elif size.arms > 1:
            self.planned, self.unit = int(size.items) // size.arms, "items per arm"
        elif size.clusters < size.items:
            self.planned, self.unit = int(size.clusters), "clusters"

    def variance(self, effect: float) -> float:
        """Returns the variance of a unit's value: that of the mean of an arm, times its units."""
        assumed = self._assumed
        if isinstance(assumed, Rate):
            assumed = assumed.components(effect, self._arm.repeats)
        units = {"clusters": self._arm.clusters, "concepts per arm": self._arm.concepts}
        return assumed.variance(self._arm) * units.get(self.unit, self._arm.items)

    def power(self, effect: float, units: int) -> float:
        """Returns the share of simulated studies whose two-sided test at 5 % is significant."""
        fewest = MIN_CONCEPTS if self.unit == "concepts per arm" else MIN_UNITS
        if units < fewest:
            return np.nan
        rng = seeded("power", self.arms)  # the same studies for every size and effect
        error = np.sqrt(self.variance(effect) * self.arms / units)
        means = effect + error * rng.normal(size=STUDIES)
        # Of normal values, mean and variance are independent; with two arms, they are pooled.
        freedom = self.arms * (units - 1)
        errors = error * np.sqrt(rng.chisquare(freedom, STUDIES) / freedom)
        return float((np.abs(means) > t_quantile(freedom) * errors).mean())

    def smallest(self, units: int) -> float:
        """Returns the smallest effect that is detected with a power of 80 %, at most 1."""
        if not self.power(1.0, units) >= POWERS[0]:
            return np.nan
        low, high = 0.0, 1.0
        while high - low > 1e-3:
            middle = (low + high) / 2
            enough = self.power(middle, units) >= POWERS[0]
            low, high = (low, middle) if enough else (middle, high)
        return high

    def needed(self, effect: float, power: float) -> float:
        """Finds the fewest units that reach a power, NaN if more than are considered."""
        low, high = 1, MIN_UNITS
        while not self.power(effect, high) >= power:
            low, high = high, high * 2
            if high > MOST:
                return np.nan
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.power(effect, middle) >= power
            low, high = (low, middle) if enough else (middle, high)
        return high


# --- from a pilot --------------------------------------------------------------------------------

SAMPLED = ("abstention", "probability", "subset_size")
"""Endpoints of single verdicts beside the measures of quality."""
PILOTED = 6
"""The largest number of differences whose components are averaged."""


def pilot_components(
    frame: pd.DataFrame, people: pd.DataFrame | None = None
) -> dict[str, Components | Rate]:
    """Estimates the components of each endpoint that a pilot has enough data for.

    Those of a difference are averaged over the differences of setups that the pilot has.
    """
    measured = [*measurements(frame, people, SAMPLED), *_entropy(frame)]
    estimates: dict[str, list[Components]] = {}
    for quantity in quantities(frame, measured):
        listed = estimates.setdefault(quantity.measure, [])
        if quantity.is_difference and len(listed) < PILOTED:
            decision = decide(quantity)
            if decision.components and decision.components[ITEM].known:
                listed.append(Components.of(decision.components))
    assumed: dict[str, Components | Rate] = {}
    for name, listed in estimates.items():
        if not listed:
            continue
        item, repeat, cluster = np.mean([components[:3] for components in listed], axis=0).tolist()
        assumed[name] = Components(item, repeat, cluster, source="pilot")
        default = ENDPOINTS[name].assumed
        if isinstance(default, Rate) and not repeat:  # the variance of single repeats is the items'
            values = [m.verdicts["value"] for m in measured if m.measure == name]
            base = float(pd.concat(values).mean())
            assumed[name] = default._replace(base=base, source="pilot's rate")
    return assumed


def _entropy(frame: pd.DataFrame) -> Iterator[Measurement]:
    """Yields the entropy of the repeats of each item, which single verdicts do not have."""
    cells = cell_endpoints(frame).dropna(subset="entropy")
    for task, part in cells.groupby("task", sort=False, observed=True):
        setups = sorted({*zip(part["variant"], part[JUDGE], strict=True)})
        keys = zip(part["variant"], part[JUDGE], strict=True)
        unit = pd.factorize(part["evidence"])[0]
        zero = dict.fromkeys(("author", "draw", "repeat", "usd"), 0)
        rows = {"setup": [setups.index(key) for key in keys], "unit": unit, "cluster": unit}
        verdicts = pd.DataFrame({**rows, "value": part["entropy"].to_numpy(), **zero, "calls": 1})
        yield Measurement(str(task), "entropy", tuple(setups), verdicts)


# --- in words ------------------------------------------------------------------------------------


def power_sentence(table: pd.DataFrame) -> str:
    """States in a sentence how likely the tests are to find the effect."""
    if table.empty:
        return "Nothing is compared: a test needs two judges or two levels of a knob."
    tested = table[table["power"].notna()]
    if tested.empty:
        return "Too few items for any test: five are needed."
    weak = tested[tested["power"] < 0.8]
    effect = float(table["effect"].iloc[0])
    if weak.empty:
        return f"Every test finds an effect of {effect:g} in at least 80 % of studies."
    weakest = weak.sort_values("power").iloc[0]
    need = weakest["needed_80"]
    more = "more than can be planned" if need != need else f"{int(need):,} {weakest['unit']}"
    return (
        f"{len(tested) - len(weak)} of {len(tested)} tests find an effect of {effect:g} in at "
        f"least 80 % of studies; the weakest, {weakest['endpoint']}, in {weakest['power']:.0%}: "
        f"it has {int(weakest['planned']):,} {weakest['unit']} and needs {more}."
    )
