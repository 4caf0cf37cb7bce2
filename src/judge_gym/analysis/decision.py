"""What to buy next: the interval to expect from more items, repeats, draws or judges, by price.

A decision study (Brennan 2001) predicts the error of a quantity under another design from its
variance components. They are estimated from the values of the quantity itself (of a difference,
from the differences on each item and repeat), so that judges may differ in how much they vary.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import JUDGE, own_rows
from judge_gym.analysis.stats.clusters import ErrorPart
from judge_gym.analysis.stats.contrasts import Contrast, find_contrasts
from judge_gym.analysis.stats.intervals import half_width
from judge_gym.analysis.variance import (
    CLUSTER,
    DRAW,
    ITEM,
    ITEM_DRAW,
    ITEM_SETUP,
    MIN_LEVELS,
    REPEAT,
    Component,
    Crossing,
    components,
    primary_measure,
)
from judge_gym.errors import DesignError

ITEMS, MORE_ITEMS, REPEATS, DRAWS, JUDGES = (
    "items",
    "items in the same clusters",
    "repeats",
    "rubric draws",
    "judges",
)
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""What is spent on each option, as multiples of the price of as many items as there are."""
WORTHWHILE = 0.95
"""An option that leaves more than this share of the interval is not recommended."""
EQUAL = 1e-9
"""The half width up to which values are taken to be equal."""
NEGLIGIBLE = 1e-3
"""The share of today's half width below which a limit is taken for 0."""
MOST = 1_000_000
"""The largest number that is considered to be bought."""
POINTS = ["quantity", "option", "more", "calls", "usd", "half_width", "lowest", "note"]
MOST_NAMED = 30
"""The largest number of quantities that an error lists."""


class Quantity(NamedTuple):
    """A mean of setups, or a difference, whose interval is to become narrower."""

    name: str
    task: str
    measure: str
    weights: Mapping[tuple[str, str], float]
    """The weight of each setup: a variant and a judge."""
    panel: bool = False
    """Whether it is the mean of a panel, which another judge may join."""


@dataclass(frozen=True)
class Option:
    """Something to buy more of; without a price of one, the note says why it cannot be bought."""

    name: str
    usd: float
    """The price of one more; unknown if a call's is."""
    calls: float
    half: Callable[[float], float]
    """The half width of the interval with so many more."""
    note: str = ""

    @property
    def lowest(self) -> float:
        """The half width that no number of these makes smaller."""
        limit = self.half(1000.0 * MOST)
        return limit if limit > NEGLIGIBLE * self.half(0) else 0.0

    def needed(self, target: float) -> int | None:
        """Returns how many more make the interval as narrow as the target; None if none does."""
        if not self.half(MOST) <= target:
            return None
        low, high = 0, MOST
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.half(middle) <= target else (middle, high)
        return high


@dataclass(frozen=True)
class Decision:
    """What more of each kind of data would do to one quantity."""

    quantity: Quantity
    value: float
    half: float
    """Half the width of the interval to expect with the data so far."""
    items: int
    clusters: int
    repeats: float
    draws: int
    components: Mapping[str, Component]
    options: tuple[Option, ...]
    note: str = ""
    """Why nothing can be predicted; empty if it can."""
    scope: str = ""
    """To what the interval is limited: with fewer than five clusters, to these."""

    @property
    def sold_by(self) -> str:
        """What prices are in: usd, or calls where a price is unknown or everything is free."""
        priced = [option.usd for option in self.options if not option.note]
        return "usd" if priced and np.isfinite(priced).all() and sum(priced) > 0 else "calls"

    def price(self, option: Option, more: float) -> float:
        """Returns the price of so many more."""
        return more * (option.usd if self.sold_by == "usd" else option.calls)

    def points(self) -> pd.DataFrame:
        """Returns the half width after each of a few amounts spent on each option."""
        rows = []
        for option in self.options:
            name = self.quantity.name
            if option.note:
                empty = [np.nan] * 5
                rows.append([name, option.name, *empty, option.note])
                continue
            for more in self._amounts(option):
                bought = [more, more * option.calls, more * option.usd, option.half(more)]
                rows.append([name, option.name, *bought, option.lowest, ""])
        return pd.DataFrame(rows, columns=POINTS)

    def _amounts(self, option: Option) -> list[int]:
        """Returns how many more each step buys, at least one."""
        return sorted({self.affordable(option, step) for step in STEPS} - {0}) or [1]

    def affordable(self, option: Option, step: float = 1.0) -> int:
        """Returns how many more cost at most a multiple of as many items as there are."""
        first = next((one for one in self.options if one.name == ITEMS), option)
        budget = step * self.price(first, self.items)
        each = self.price(option, 1)
        return int(budget / each * (1 + 1e-9)) if each > 0 else 0

    def half_after(self, option: Option) -> float:
        """Returns the half width after spending as much on an option as doubling the items costs.

        Unknown if that does not buy one, or if the option's effect cannot be predicted.
        """
        more = self.affordable(option)
        return option.half(more) if more and not option.note else np.nan

    def budget_text(self) -> str:
        """Returns the price of as many items as there are."""
        first = next((one for one in self.options if one.name == ITEMS), None)
        return self._cost(first, self.items) if first is not None else ""

    def sentence(self, target: float | None = None) -> str:
        """Returns in a sentence what to buy, to reach a half width or for a moderate price."""
        name = self.quantity.name
        if self.note or not np.isfinite(self.half):
            return f"What to buy next for {name} cannot be predicted: {self.note}."
        sold = [option for option in self.options if not option.note]
        if target is not None:
            return self._reaching(target, sold)
        halves = [(self.half_after(option), option) for option in sold]
        halves = [pair for pair in halves if np.isfinite(pair[0])]
        half, best = min(halves, key=lambda pair: pair[0], default=(np.inf, None))
        if best is None or half > WORTHWHILE * self.half:
            return f"Nothing that can be bought narrows {name}, now ±{_short(self.half)}, by much."
        return self._recommended(best, self.affordable(best), half, sold)

    def _reaching(self, target: float, sold: Sequence[Option]) -> str:
        name = self.quantity.name
        if self.half <= target:
            return f"{name} is known to ±{_short(self.half)}, within ±{_short(target)}, already."
        ways = [(option, option.needed(target)) for option in sold]
        priced = [
            (self.price(option, more), option, more) for option, more in ways if more is not None
        ]
        if not priced:
            least = min(sold, key=lambda option: option.lowest, default=None)
            ends = f": {least.name} reach ±{_short(least.lowest)} at best" if least else ""
            return f"Nothing that can be bought narrows {name} to ±{_short(target)}{ends}."
        _, best, more = min(priced, key=lambda way: way[0])
        return self._recommended(best, more, target, sold)

    def _recommended(self, best: Option, more: int, half: float, sold: Sequence[Option]) -> str:
        return (
            f"{_bought(best.name, more)} for {self._cost(best, more)} would narrow the interval "
            f"of {self.quantity.name} from ±{_short(self.half)} to ±{_short(half)}"
            f"{f' ({self.scope})' if self.scope else ''}{self._limits(best, half, sold)}."
        )

    def _limits(self, best: Option, half: float, sold: Sequence[Option]) -> str:
        """Says of what else could be bought what it cannot reach, or what it would cost."""
        parts = []
        for option in sold:
            if option is best:
                continue
            if option.lowest > half * 1.005:
                parts.append(f"more {option.name} cannot get it below ±{_short(option.lowest)}")
            elif (more := option.needed(half)) is not None:
                parts.append(f"the same by {option.name} costs {self._cost(option, more)}")
        return "; " + "; ".join(parts) if parts else ""

    def _cost(self, option: Option, more: float) -> str:
        if self.sold_by == "usd":
            usd = self.price(option, more)
            return f"${usd:,.2f}" if usd >= 0.01 else "under $0.01"
        return f"{round(more * option.calls):,} calls"


def _short(value: float) -> str:
    """Writes a half width with two significant digits and without a leading zero.

    >>> _short(0.1234), _short(0.0456)
    ('.12', '.046')
    """
    digits = max(2, 1 - int(np.floor(np.log10(value)))) if 0 < value < 1 else 2
    return f"{value:.{digits}f}".removeprefix("0")


def _bought(option: str, more: int) -> str:
    """Names a number of something: '1 more repeat', '40 more items in the same clusters'.

    >>> _bought("items in the same clusters", 1)
    '1 more item in the same clusters'
    """
    noun, _, rest = option.partition(" in ")
    noun = noun.removesuffix("s") if more == 1 else noun
    per_item = " of every item" if noun.startswith("repeat") else ""
    return f"{more:,} more {noun}{per_item}{' in ' + rest if rest else ''}"


# --- quantities ----------------------------------------------------------------------------------


def quantities(frame: pd.DataFrame, values: pd.DataFrame) -> list[Quantity]:
    """Returns what a study measures, the most asked for first.

    Args:
        frame: the tidy samples.
        values: their verdicts, from `variance.measured`.
    """
    contrasts = find_contrasts(own_rows(frame))
    found = []
    several = values["task"].nunique() > 1
    for (task, measure), part in values.groupby(["task", "measure"], sort=False, observed=True):
        place = f" on {task}" if several else ""
        for name, weights, panel in _weighted(part, [c for c in contrasts if c.task == task]):
            text = f"{measure}{name}{place}"
            found.append(Quantity(text, str(task), str(measure), weights, panel))
    best = {task: primary_measure(part) for task, part in values.groupby("task", observed=True)}
    # Differences tell which choice is better; the most telling measure of each task comes first.
    return sorted(
        found, key=lambda one: (one.measure != best[one.task], sum(one.weights.values()) > 0.5)
    )


Weighted = tuple[str, dict[tuple[str, str], float], bool]


def _weighted(part: pd.DataFrame, contrasts: Sequence[Contrast]) -> Iterator[Weighted]:
    """Yields the name and weights of each difference and mean of a task's setups."""
    setups = part.groupby(["variant", JUDGE], observed=True)["value"].mean()
    variants: dict[str, list[str]] = {}
    for variant, judge in setups.index:
        variants.setdefault(variant, []).append(judge)
    ranked = sorted(setups.index, key=lambda setup: -setups[setup])
    several = len(variants) > 1
    if part["measure"].iloc[0] != "stage":  # which setup is right most often
        for a, b in combinations(ranked, 2):
            if a[0] == b[0]:
                where = f", {a[0]}" if several else ""
                yield f", {a[1]} minus {b[1]}{where}", {a: 1.0, b: -1.0}, False
    for one in contrasts:
        both = [j for j in variants.get(one.variant, ()) if j in variants.get(one.against, ())]
        if both:
            at = "" if one.at == "base" else f" at {one.at}"
            weights = {(one.variant, judge): 1 / len(both) for judge in both}
            weights |= {(one.against, judge): -1 / len(both) for judge in both}
            yield f", {one.knob} {one.level} minus {one.base}{at}", weights, False
    if part["measure"].iloc[0] == "stage":
        for variant, judges in variants.items():
            for a, b in combinations(judges, 2):
                where = f", {variant}" if several else ""
                yield f", {a} minus {b}{where}", {(variant, a): 1.0, (variant, b): -1.0}, False
    for variant, judges in variants.items():
        where = f", {variant}" if several else ""
        if len(judges) > 1:
            share = {(variant, judge): 1 / len(judges) for judge in judges}
            yield f" of the panel{where}", share, True
        for judge in judges:
            yield f" of {judge}{where}", {(variant, judge): 1.0}, False


def find_quantities(known: Sequence[Quantity], text: str | None) -> list[Quantity]:
    """Returns the quantities whose name contains a text, the exact one alone; all without one."""
    if text is None:
        return [*known]
    exact = [one for one in known if one.name.lower() == text.lower()]
    found = exact or [one for one in known if text.lower() in one.name.lower()]
    if not found:
        names = [one.name for one in known]
        shown = "; ".join(names[:MOST_NAMED])
        raise DesignError(f"no quantity contains {text!r}; choose of: {shown}", choices=names)
    return found


# --- prediction ----------------------------------------------------------------------------------


def decide(values: pd.DataFrame, quantity: Quantity, label_usd: float = 0.0) -> Decision:
    """Returns what more data of each kind would do to a quantity.

    Args:
        values: the verdicts, from `variance.measured`.
        quantity: one of `quantities`.
        label_usd: the price of a label of a new item, where the quantity needs one.
    """
    part = values[(values["task"] == quantity.task) & (values["measure"] == quantity.measure)]
    setup = pd.MultiIndex.from_frame(part[["variant", JUDGE]])
    part = part[setup.isin(quantity.weights)]
    units = _units(part, quantity.weights)
    if units["evidence"].nunique() < MIN_LEVELS:
        count = units["evidence"].nunique()
        note = f"{count} items have values, {MIN_LEVELS} are needed"
        return Decision(quantity, np.nan, np.nan, count, count, np.nan, 1, {}, (), note)
    clusters = units["cluster"].nunique()
    fixed = clusters < MIN_LEVELS
    if fixed:  # with so few clusters, the interval holds for them
        means = units.groupby("cluster")["value"].transform("mean")
        units = units.assign(value=units["value"] - means + units["value"].mean())
    crossing = Crossing.of(units.assign(setup=0, author=0))
    found = components(crossing, intervals=False)
    error = _Error.of(crossing, found, fixed)
    spread = _another_judge(part, len(quantity.weights)) if quantity.panel else None
    calls, usd = _prices(part)
    return Decision(
        quantity=quantity,
        value=float(units.groupby("evidence")["value"].mean().mean()),
        half=error.half(),
        items=error.items,
        clusters=clusters,
        repeats=error.repeats,
        draws=error.draws,
        components=found,
        options=tuple(_options(error, found, calls, usd, quantity, label_usd, spread)),
        note="" if error.half() > EQUAL else "its values do not differ between items",
        scope=f"for these {clusters} clusters" if fixed else "",
    )


def _units(part: pd.DataFrame, weights: Mapping[tuple[str, str], float]) -> pd.DataFrame:
    """Returns the quantity on each item, draw and repeat that every setup has."""
    key = ["cluster", "evidence", "rubric", "replicate"]
    setup = ["variant", JUDGE]
    wide = part.groupby([*key, *setup], observed=True)["value"].mean().unstack(setup)
    wide = wide.reindex(columns=pd.MultiIndex.from_tuples(list(weights))).dropna()
    value = wide.to_numpy(dtype=float) @ np.array(list(weights.values()))
    return wide.index.to_frame(index=False).assign(value=value)


def _prices(part: pd.DataFrame) -> tuple[float, float]:
    """Returns the calls and the price of one verdict of each setup together."""
    means = part.groupby(["variant", JUDGE], observed=True)[["calls", "usd"]].mean()
    return float(means["calls"].sum()), float(means["usd"].sum(skipna=False))


@dataclass(frozen=True)
class _Error:
    """The error of a quantity's mean, as a function of how much of each facet there is."""

    cluster: float
    item: float
    draw: float
    item_draw: float
    repeat: float
    items: int
    clusters: int
    draws: int
    repeats: float
    over_draws: bool
    """Whether the interval covers other draws of rubrics."""

    @staticmethod
    def of(values: Crossing, found: Mapping[str, Component], fixed: bool) -> "_Error":
        def variance(name: str) -> float:
            return found[name].variance if found[name].known else 0.0

        clusters = len(values.mean) if fixed else values.clusters
        return _Error(
            variance(CLUSTER),
            variance(ITEM),
            variance(DRAW),
            variance(ITEM_DRAW) + variance(ITEM_SETUP),
            variance(REPEAT),
            len(values.mean),
            clusters,
            values.draws,
            values.repeats,
            found[DRAW].known,
        )

    def half(
        self,
        items: float = 0,
        clusters: float = 0,
        repeats: float = 0,
        draws: float = 0,
        less: float = 0,
    ) -> float:
        """Returns the half width with so many more of each, and `less` variance of an item."""
        n, c = self.items + items, self.clusters + clusters
        d, r = self.draws + draws, self.repeats + repeats
        one = self.item + self.item_draw / d + self.repeat / (d * r) - less
        between = self.cluster / c + max(one, 0.0) / n
        parts = [ErrorPart(float(np.sqrt(between)), c - 1)]
        if self.over_draws:
            parts.append(ErrorPart(float(np.sqrt(self.draw / d)), d - 1))
        return half_width(parts)


def _another_judge(part: pd.DataFrame, judges: int) -> Callable[[float], float] | None:
    """Returns by how much the variance of an item's panel mean falls with more judges."""
    found = components(Crossing.of(part), intervals=False)
    own = [found[name] for name in (ITEM_SETUP, ITEM_DRAW)]
    known = [one.variance for one in own if one.known]
    if not known:
        return None
    repeats = Crossing.of(part).repeats
    noise = found[REPEAT].variance / repeats if found[REPEAT].known else 0.0
    each = sum(known) + noise
    return lambda more: each * (1 / judges - 1 / (judges + more))


def _options(
    error: _Error,
    found: Mapping[str, Component],
    calls: float,
    usd: float,
    quantity: Quantity,
    label_usd: float,
    spread: Callable[[float], float] | None,
) -> Iterator[Option]:
    """Yields everything that can be bought, and what cannot be predicted with the reason."""
    per_item = error.draws * error.repeats
    label = label_usd if quantity.measure != "stage" else 0.0
    price, asked = per_item * usd + label, per_item * calls
    grown = error.clusters / error.items
    yield Option(ITEMS, price, asked, lambda more: error.half(items=more, clusters=more * grown))
    if found[CLUSTER].known:
        yield Option(MORE_ITEMS, price, asked, lambda more: error.half(items=more))
    once = error.items * error.draws
    yield Option(
        REPEATS,
        once * usd,
        once * calls,
        lambda more: error.half(repeats=more),
        ""
        if found[REPEAT].known
        else f"{found[REPEAT].note}: it needs items with two repeats that can differ",
    )
    drawn = error.items * error.repeats
    if error.draws > 1 or error.over_draws:
        yield Option(
            DRAWS,
            drawn * usd,
            drawn * calls,
            lambda more: error.half(draws=more),
            "" if error.over_draws else f"{error.draws} draws, {MIN_LEVELS} are needed",
        )
    if quantity.panel and spread is not None:
        share = error.items * per_item / len(quantity.weights)
        yield Option(
            JUDGES,
            share * usd,
            share * calls,
            lambda more: error.half(less=spread(more)),
        )
