"""The power of a study's tests, by simulation: before any data by defaults, else from a pilot.

A test compares a mean over items, clusters or concepts with 0. Its power follows from the variance
components of what it tests: between concepts, clusters and items, and between repeats.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.stats.intervals import Floats, seeded, t_quantile
from judge_gym.errors import DesignError

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


class Spread(NamedTuple):
    """The variance components of what an endpoint tests."""

    item: float
    repeat: float = 0.0
    cluster: float = 0.0
    concept: float = 0.0
    base: float | None = None
    """The level of a rate, whose variance between repeats follows from it."""
    level: float = 0.0
    """Of a rate, the variance of its level between items."""
    source: str = "default"


class Endpoint(NamedTuple):
    """Something that a study tests."""

    test: str
    spread: Spread
    """Its components before any data, from studies of language models as judges."""


ENDPOINTS: Mapping[str, Endpoint] = {
    "stage": Endpoint(DIFFERENCE, Spread(0.01, 0.04)),
    "accuracy": Endpoint(DIFFERENCE, Spread(0.02, base=0.7, level=0.06)),
    "agreement": Endpoint(DIFFERENCE, Spread(0.02, base=0.6, level=0.06)),
    "abstention": Endpoint(DIFFERENCE, Spread(0.005, base=0.1, level=0.02)),
    "probability": Endpoint(DIFFERENCE, Spread(0.005, 0.02)),
    "subset_size": Endpoint(DIFFERENCE, Spread(0.05, 0.3)),
    "entropy": Endpoint(DIFFERENCE, Spread(0.15)),
}


class StudySize(NamedTuple):
    """How much a study asks of what an endpoint is tested on."""

    items: int
    clusters: int
    repeats: float
    concepts: int = 0
    """The number of concepts in each of two arms, for a test over concepts."""
    arms: int = 1


def power_table(
    sizes: Mapping[str, StudySize],
    effect: float,
    pilot: Mapping[str, Spread] | None = None,
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
        dict(_row(name, endpoints[name].test, size, effect, spread))
        for name, size in sizes.items()
        for spread in [(pilot or {}).get(name, endpoints[name].spread)]
    ]
    return pd.DataFrame(rows, columns=TABLE)


def _row(
    name: str, test: str, size: StudySize, effect: float, spread: Spread
) -> Iterator[tuple[str, Any]]:
    study = _Study(size, spread)
    yield from {"endpoint": name, "test": test, "unit": study.unit}.items()
    yield from {"planned": study.planned, "repeats": size.repeats, "effect": effect}.items()
    yield "power", study.power(effect, study.planned)
    yield "smallest_effect", study.smallest(study.planned)
    for power in POWERS:
        yield f"needed_{power * 100:.0f}", study.needed(effect, power)
    known = spread if spread.base is None else spread._replace(repeat=np.nan)
    yield from known._asdict().items()
    yield "note", study.note


class _Study:
    """A test over units with independent values, whose variance depends on the components."""

    def __init__(self, size: StudySize, spread: Spread) -> None:
        self._size, self._spread = size, spread
        self.planned, self._inside, self.unit = size.items, 1.0, "items"
        self.note = ""
        if size.concepts:
            self.planned, self.unit = size.concepts, "concepts per arm"
            self._inside = size.items / (size.arms * size.concepts)
            if size.concepts < MIN_CONCEPTS:
                self.note = f"{size.concepts} concepts per arm, {MIN_CONCEPTS} are needed"
        elif size.arms > 1:
            self.planned, self.unit = size.items // size.arms, "items per arm"
        elif size.clusters < size.items:
            self.planned, self.unit = size.clusters, "clusters"
            self._inside = size.items / size.clusters

    def variance(self, effect: float) -> float:
        """Returns the variance of a unit's value."""
        one = self._spread
        if one.base is not None:
            single = _rate_variance(one, effect, self._size.repeats)
        else:
            single = one.item + one.repeat / self._size.repeats
        if self.unit == "items":  # each in a cluster of its own
            return one.cluster + single
        shared = {"concepts per arm": one.concept, "clusters": one.cluster}
        return shared.get(self.unit, 0.0) + single / self._inside

    def power(self, effect: float, units: int) -> float:
        """Returns the share of simulated studies whose two-sided test at 5 % is significant."""
        fewest = MIN_CONCEPTS if self.unit == "concepts per arm" else MIN_UNITS
        if units < fewest:
            return np.nan
        rng = seeded("power", self._size.arms)  # the same studies for every size and effect
        error = np.sqrt(self.variance(effect) * self._size.arms / units)
        means = effect + error * rng.normal(size=STUDIES)
        # Of normal values, mean and variance are independent; with two arms, they are pooled.
        freedom = self._size.arms * (units - 1)
        found = error * np.sqrt(rng.chisquare(freedom, STUDIES) / freedom)
        return float((np.abs(means) > t_quantile(freedom) * found).mean())

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
        """Returns the fewest units that reach a power; not a number if more than are considered."""
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


def _rate_variance(spread: Spread, effect: float, repeats: float) -> float:
    """Returns the variance of an item's difference of two shares of its repeats, simulated."""
    rng = seeded("rate")
    count = max(round(repeats), 1)
    assert spread.base is not None
    level = np.clip(
        spread.base + np.sqrt(spread.level) * rng.normal(size=SIMULATED_ITEMS), 0.0, 1.0
    )
    toward = -effect if spread.base + effect > 1 else effect
    other = np.clip(level + toward + np.sqrt(spread.item) * rng.normal(size=SIMULATED_ITEMS), 0, 1)
    shares = [rng.binomial(count, chance) / count for chance in (level, other)]
    return float((shares[1] - shares[0]).var())


# --- from a pilot --------------------------------------------------------------------------------

SAMPLED = ("abstention", "probability", "subset_size")
"""Endpoints of single verdicts beside the measures of quality."""
PILOTED = 6
"""The largest number of differences whose components are averaged."""


def pilot_spreads(frame: pd.DataFrame, people: pd.DataFrame | None = None) -> dict[str, Spread]:
    """Returns the components of each endpoint that a pilot has enough data for.

    Those of a difference are averaged over the differences of setups that the pilot has.
    """
    from judge_gym.analysis.decision import decide, quantities
    from judge_gym.analysis.endpoints import cell_endpoints
    from judge_gym.analysis.variance import CLUSTER, ITEM, REPEAT, measured

    values = measured(frame, people, SAMPLED)
    cells = cell_endpoints(frame).dropna(subset="entropy")
    whole = dict.fromkeys(("author", "setup"), "") | dict.fromkeys(("rubric", "replicate"), 0)
    entropy = cells.assign(measure="entropy", value=cells["entropy"], usd=0.0, calls=1, **whole)
    entropy = entropy.assign(cluster=entropy["evidence"])
    values = pd.concat([values, entropy[values.columns]], ignore_index=True)
    known: dict[str, list[Floats]] = {}
    for one in quantities(frame, values):
        if sum(one.weights.values()) < 0.5 and len(known.get(one.measure, ())) < PILOTED:
            found = decide(values, one)
            if found.components and found.components[ITEM].known:
                parts = [found.components[name].variance for name in (CLUSTER, ITEM, REPEAT)]
                known.setdefault(one.measure, []).append(np.nan_to_num(parts))
    means = values.groupby("measure")["value"].mean()
    spreads = {}
    for name, rows in known.items():
        cluster, item, repeat = np.mean(rows, axis=0)
        default = ENDPOINTS[name].spread
        spreads[name] = Spread(float(item), float(repeat), float(cluster), source="pilot")
        if default.base is not None and not repeat:  # single repeats: their variance is the items'
            spreads[name] = default._replace(base=float(means[name]), source="pilot's rate")
    return spreads
