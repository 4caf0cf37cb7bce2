"""What to buy next: the interval to expect from more items, repeats, draws or judges, by price.

A decision study (Brennan 2001) predicts the error of a quantity under another design from its
variance components. They are estimated from the values of the quantity itself (of a difference,
from the differences on each item and repeat), so that judges may differ in how much they vary.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from judge_gym.analysis.planning.components import (
    CLUSTER,
    DRAW,
    ITEM_DRAW,
    ITEM_SETUP,
    MIN_LEVELS,
    REPEAT,
    Component,
    Components,
    Crossing,
    Size,
    components,
)
from judge_gym.analysis.planning.quantities import QUALITY, Quantity
from judge_gym.analysis.stats.clusters import ErrorPart
from judge_gym.analysis.stats.intervals import half_width
from judge_gym.records.numbers import dollars, plural

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
MANY = 50
"""How many times the items of today are too many to be advised."""
MOST = 1_000_000
"""The largest number that is considered to be bought."""
POINTS = ["quantity", "option", "more", "calls", "usd", "half_width", "lowest", "note"]


@dataclass(frozen=True)
class Option:
    """Something to buy more of. Without a price of one, the note says why it cannot be bought."""

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
        """Counts how many more make the interval as narrow as the target, None if none does."""
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
    size: Size
    """The data so far."""
    components: Mapping[str, Component]
    options: tuple[Option, ...]
    note: str = ""
    """Why nothing can be predicted; empty if it can."""
    scope: str = ""
    """To what the interval is limited: with fewer than five clusters, to these."""

    @property
    def currency(self) -> str:
        """What prices are in: usd, or calls where a price is unknown or everything is free."""
        priced = [option.usd for option in self.options if not option.note]
        return "usd" if priced and np.isfinite(priced).all() and sum(priced) > 0 else "calls"

    def price(self, option: Option, more: float) -> float:
        """Returns the price of so many more."""
        return more * (option.usd if self.currency == "usd" else option.calls)

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
                prices = [more * option.calls, more * option.usd]
                rows.append(
                    [name, option.name, more, *prices, option.half(more), option.lowest, ""]
                )
        return pd.DataFrame(rows, columns=POINTS)

    def _amounts(self, option: Option) -> list[int]:
        """Returns how many more each step buys, at least one."""
        return sorted({self.affordable(option, step) for step in STEPS} - {0}) or [1]

    def affordable(self, option: Option, step: float = 1.0) -> int:
        """Returns how many more cost at most a multiple of as many items as there are."""
        items = next((other for other in self.options if other.name == ITEMS), option)
        budget = step * self.price(items, self.size.items)
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
        items = next((option for option in self.options if option.name == ITEMS), None)
        return self._cost(items, self.size.items) if items is not None else ""

    def sentence(self, target: float | None = None) -> str:
        """Returns in a sentence what to buy, to reach a half width or for a moderate price."""
        name = self.quantity.name
        if self.note or not np.isfinite(self.half):
            return f"What to buy next for {name} cannot be predicted: {self.note}."
        available = [option for option in self.options if not option.note]
        if target is not None:
            return self._reaching(target, available)
        halves = [(self.half_after(option), option) for option in available]
        halves = [pair for pair in halves if np.isfinite(pair[0])]
        half, best = min(halves, key=lambda pair: pair[0], default=(np.inf, None))
        if best is None or half > WORTHWHILE * self.half:
            return (
                f"Nothing that can be bought narrows {name}, now ±{_half_text(self.half)}, by much."
            )
        return self._recommended(best, self.affordable(best), half, available)

    def telling_apart(self) -> str:
        """Says how many more items would tell two judges apart.

        Empty where the quantity is no difference of two judges under one design, where the data
        tell them apart already, or where that would take very many items.
        """
        names = [judge for _, judge in self.quantity.weights]
        items = next((option for option in self.options if option.name == ITEMS), None)
        is_pair = len(names) == 2 and self.quantity.is_difference and names[0] != names[1]
        if not is_pair or items is None or items.note or not np.isfinite(self.half):
            return ""
        gap = abs(self.value)
        needed = items.needed(gap) if gap < self.half else None
        if needed is None or needed > MANY * self.size.items:
            return ""
        first, second = (name.rpartition(":")[2] for name in names)
        verb = "label" if self.quantity.measure in QUALITY else "judge"
        calls = round(needed * items.calls)
        costs = [f"{calls:,} call{'' if calls == 1 else 's'}"]
        if self.currency == "usd":
            costs.append(dollars(self.price(items, needed)))
        return (
            f"To tell {first} from {second} apart, {verb} about {needed:,} more "
            f"item{'' if needed == 1 else 's'} ({', '.join(costs)})"
        )

    def _reaching(self, target: float, available: Sequence[Option]) -> str:
        name = self.quantity.name
        if self.half <= target:
            half, goal = _half_text(self.half), _half_text(target)
            return f"{name} is known to ±{half}, within ±{goal}, already."
        ways = [(option, option.needed(target)) for option in available]
        priced = [
            (self.price(option, more), option, more) for option, more in ways if more is not None
        ]
        if not priced:
            least = min(available, key=lambda option: option.lowest, default=None)
            ends = f": {least.name} reach ±{_half_text(least.lowest)} at best" if least else ""
            return f"Nothing that can be bought narrows {name} to ±{_half_text(target)}{ends}."
        _, best, more = min(priced, key=lambda way: way[0])
        return self._recommended(best, more, target, available)

    def _recommended(
        self, best: Option, more: int, half: float, available: Sequence[Option]
    ) -> str:
        return (
            f"{_quantity_text(best.name, more)} for {self._cost(best, more)} would narrow the "
            f"interval of {self.quantity.name} from ±{_half_text(self.half)} to ±{_half_text(half)}"
            f"{f' ({self.scope})' if self.scope else ''}{self._limits(best, half, available)}."
        )

    def _limits(self, best: Option, half: float, available: Sequence[Option]) -> str:
        """Says of what else could be bought what it cannot reach, or what it would cost."""
        parts = []
        for option in available:
            if option is best:
                continue
            if option.lowest > half * 1.005:
                parts.append(f"more {option.name} cannot get it below ±{_half_text(option.lowest)}")
            elif (more := option.needed(half)) is not None:
                parts.append(f"the same by {option.name} costs {self._cost(option, more)}")
        return "; " + "; ".join(parts) if parts else ""

    def _cost(self, option: Option, more: float) -> str:
        if self.currency == "usd":
            return dollars(self.price(option, more))
        calls = round(more * option.calls)
        return f"{calls:,} call{'' if calls == 1 else 's'}"


def _half_text(value: float) -> str:
    """Writes a half width with two significant digits and without a leading zero.

    >>> _half_text(0.1234), _half_text(0.0456)
    ('.12', '.046')
    """
    digits = max(2, 1 - int(np.floor(np.log10(value)))) if 0 < value < 1 else 2
    return f"{value:.{digits}f}".removeprefix("0")


def _quantity_text(option: str, more: int) -> str:
    """Names how much is bought of an option: '1 more repeat', '40 more items in the same clusters'.

    >>> _quantity_text("items in the same clusters", 1)
    '1 more item in the same clusters'
    """
    noun, _, rest = option.partition(" in ")
    noun = noun.removesuffix("s") if more == 1 else noun
    per_item = " of every item" if noun.startswith("repeat") else ""
    return f"{more:,} more {noun}{per_item}{' in ' + rest if rest else ''}"


# --- prediction ----------------------------------------------------------------------------------


def decide(quantity: Quantity, label_usd: float = 0.0) -> Decision:
    """Predicts what more data of each kind would do to a quantity.

    Args:
        quantity: one of `quantities`.
        label_usd: the price of a label of a new item, where the quantity needs one.
    """
    verdicts = quantity.measurement.weighted(quantity.weights)
    items, clusters = verdicts["unit"].nunique(), verdicts["cluster"].nunique()
    if items < MIN_LEVELS:
        note = f"{plural(items, 'item')} with values, {MIN_LEVELS} are needed"
        return Decision(quantity, np.nan, np.nan, Size(items, items, np.nan), {}, (), note)
    fixed = clusters < MIN_LEVELS
    if fixed:  # with so few clusters, the interval holds for them
        means = verdicts.groupby("cluster")["value"].transform("mean")
        value = verdicts["value"] - means + verdicts["value"].mean()
        verdicts = verdicts.assign(value=value)
    crossing = Crossing.of(verdicts)
    estimates = components(crossing, intervals=False)
    size = Size(items, items if fixed else clusters, crossing.repeats, crossing.draws)
    error = _Error(Components.of(estimates), size, estimates[DRAW].known)
    return Decision(
        quantity=quantity,
        value=float(verdicts.groupby("unit")["value"].mean().mean()),
        half=error.half(),
        size=size._replace(clusters=clusters),
        components=estimates,
        options=tuple(_options(error, estimates, quantity, label_usd)),
        note="" if error.half() > EQUAL else "its values do not differ between items",
        scope=f"for {'this cluster' if clusters == 1 else f'these {clusters} clusters'}"
        if fixed
        else "",
    )


@dataclass(frozen=True)
class _Error:
    """The error of a quantity's mean, as a function of how much of each facet there is."""

    components: Components
    size: Size
    over_draws: bool
    """Whether the interval covers other draws of rubrics."""

    def half(
        self,
        items: float = 0,
        clusters: float = 0,
        repeats: float = 0,
        draws: float = 0,
        less: float = 0,
    ) -> float:
        """Returns the half width with so many more of each, and `less` variance of an item."""
        size = Size(
            self.size.items + items,
            self.size.clusters + clusters,
            self.size.repeats + repeats,
            self.size.draws + draws,
        )
        changed = self.components._replace(item=self.components.item - less)
        parts = [ErrorPart(float(np.sqrt(changed.variance(size))), size.clusters - 1)]
        if self.over_draws:
            error = float(np.sqrt(self.components.draw / size.draws))
            parts.append(ErrorPart(error, size.draws - 1))
        return half_width(parts)


def _another_judge(quantity: Quantity) -> Callable[[float], float] | None:
    """Predicts by how much the variance of an item's panel mean falls with more judges."""
    crossing = Crossing.of(quantity.measurement.under(quantity.weights))
    estimates = components(crossing, intervals=False)
    judge_variances = [
        estimates[name].variance for name in (ITEM_SETUP, ITEM_DRAW) if estimates[name].known
    ]
    if not judge_variances:
        return None
    repeat = estimates[REPEAT]
    noise = repeat.variance / crossing.repeats if repeat.known else 0.0
    each, judges = sum(judge_variances) + noise, len(quantity.weights)
    return lambda more: each * (1 / judges - 1 / (judges + more))


def _prices(quantity: Quantity) -> tuple[float, float]:
    """Returns the calls and the price of one verdict of each setup together."""
    verdicts = quantity.measurement.under(quantity.weights)
    means = verdicts.groupby("setup")[["calls", "usd"]].mean()
    return float(means["calls"].sum()), float(means["usd"].sum(skipna=False))


def _options(
    error: _Error, estimates: Mapping[str, Component], quantity: Quantity, label_usd: float
) -> Iterator[Option]:
    """Yields everything that can be bought, and what cannot be predicted with the reason."""
    size = error.size
    calls, usd = _prices(quantity)
    per_item = size.draws * size.repeats
    label = label_usd if quantity.measure in QUALITY else 0.0
    price, requests = per_item * usd + label, per_item * calls
    growth = size.clusters / size.items
    yield Option(
        ITEMS, price, requests, lambda more: error.half(items=more, clusters=more * growth)
    )
    if estimates[CLUSTER].known:
        yield Option(MORE_ITEMS, price, requests, lambda more: error.half(items=more))
    once = size.items * size.draws
    yield Option(
        REPEATS,
        once * usd,
        once * calls,
        lambda more: error.half(repeats=more),
        ""
        if estimates[REPEAT].known
        else f"{estimates[REPEAT].note}: it needs items with two repeats that can differ",
    )
    per_draw = size.items * size.repeats
    if size.draws > 1 or error.over_draws:
        yield Option(
            DRAWS,
            per_draw * usd,
            per_draw * calls,
            lambda more: error.half(draws=more),
            "" if error.over_draws else f"{size.draws} draws, {MIN_LEVELS} are needed",
        )
    less = _another_judge(quantity) if quantity.panel else None
    if less is not None:
        share = size.items * per_item / len(quantity.weights)
        yield Option(JUDGES, share * usd, share * calls, lambda more: error.half(less=less(more)))
