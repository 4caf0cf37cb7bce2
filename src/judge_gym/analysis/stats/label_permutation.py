"""What chance alone makes of a measure of disagreement: judges' labels, permuted.

Among the scored verdicts on one item in one replicate labels are exchanged: all saw one display.
Where judges used many rubrics of their own, a judge's verdicts under one rubric are a block that
keeps together.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.panels import Panel
from judge_gym.analysis.stats.intervals import seeded

Statistic = Callable[[FloatArray], FloatArray]
"""From distributions (..., items, judges, stages) to values (..., items, ...)."""
MOST, FEWEST = 999, 99
"""Draws of a small panel and of a very large one."""
WORK = 1 << 22
"""Verdicts that are given a new judge, over all draws; a larger panel has fewer draws."""
LIMIT_FROM, LIMIT_DRAWS = 1000, 49
"""Items from which the mean of a permuted measure is normal, and draws that tell its spread."""
CHUNK = 1 << 19
"""Of these, how many at once."""


class Chance(NamedTuple):
    """Measures of a panel over the items that every judge scored, and what chance makes of them."""

    seen: dict[str, FloatArray]
    """The values by item."""
    mean: dict[str, FloatArray]
    """The mean of the values over draws."""
    p_value: dict[str, float]
    """The share of draws in which the mean over items is at least what was seen, or its limit."""
    draws: int

    def above(self, name: str) -> FloatArray:
        """By item, how far a measure lies above chance at this number of samples."""
        return self.seen[name] - self.mean[name]


def chance(panel: Panel, statistics: Mapping[str, Statistic], *, sharing: int = 1) -> Chance:
    """Permute the judges of a panel; without a complete item there is nothing to permute.

    Where every judge has one verdict an item, its permutations are the same verdicts: what chance
    makes of them cannot be told.

    Args:
        panel: the judges, two or more.
        statistics: what is measured, by name.
        sharing: how many such panels share the bound on the work.
    """
    seen = {name: of(panel.shares[panel.complete]) for name, of in statistics.items()}
    if not panel.complete.any():
        return Chance(seen, seen, dict.fromkeys(statistics, np.nan), 0)
    if panel.scored[panel.complete].max() < 2:
        unknown = {name: np.full_like(values, np.nan) for name, values in seen.items()}
        return Chance(seen, unknown, dict.fromkeys(statistics, np.nan), 0)
    verdicts = int(panel.scored[panel.complete].sum())
    draws = int(np.clip(WORK // (verdicts * sharing), FEWEST, MOST))
    items = int(panel.complete.sum())
    # Verdicts are dealt item by item, so that the mean over very many is normal; rubrics are not.
    limit = items >= LIMIT_FROM and not panel.in_blocks
    draws = LIMIT_DRAWS if limit else draws
    sums = {name: np.zeros_like(values) for name, values in seen.items()}
    squares = {name: np.zeros(items) for name in seen}
    above = dict.fromkeys(statistics, 0)
    for shares in (_blocks if panel.in_blocks else _verdicts)(panel, draws):
        for name, of in statistics.items():
            values = of(shares)
            sums[name] += values.sum(axis=0)
            by_item = values.reshape(len(values), items, -1).mean(axis=2)
            squares[name] += (by_item**2).sum(axis=0)
            # Sums in another order must not make a draw that equals the data fall below it.
            above[name] += int((by_item.mean(axis=1) >= seen[name].mean() - 1e-12).sum())
    mean = {name: total / draws for name, total in sums.items()}
    p_value = {name: (1 + count) / (1 + draws) for name, count in above.items()}
    if limit:
        p_value = {
            name: _limit(seen[name], mean[name], squares[name] / draws, draws) for name in seen
        }
    return Chance(seen, mean, p_value, draws)


def _limit(seen: FloatArray, mean: FloatArray, squares: FloatArray, draws: int) -> float:
    """The p-value that more and more draws come to, from the spread of some; never below theirs."""
    expected = mean.reshape(len(mean), -1).mean(axis=1)
    variance = np.maximum(squares - expected**2, 0.0) * draws / (draws - 1)
    # The mean of the draws has an error of its own.
    error = float(np.sqrt(variance.sum() * (1 + 1 / draws))) / len(mean)
    above = float(seen.mean() - expected.mean())
    if error == 0:
        return 1.0
    return max(1 / (1 + MOST), float(stats.norm.sf(above / error)))


class _Scored(NamedTuple):
    """The scored verdicts on complete items, which are numbered anew."""

    rows: pd.DataFrame
    item: IntArray
    judge: IntArray
    code: IntArray
    spread: FloatArray
    """For each code, the weight of each stage."""


def _scored(panel: Panel) -> _Scored:
    kept = panel.complete[panel.item] & (panel.mask != 0)
    number = np.cumsum(panel.complete) - 1
    masks, code = np.unique(panel.mask[kept], return_inverse=True)
    bits = (masks[:, None] >> np.arange(panel.n_stages) & 1).astype(float)
    return _Scored(
        panel.rows.loc[kept, ["replicate", "flipped", "rubric_draw"]],
        number[panel.item[kept]],
        panel.judge[kept],
        code.astype(np.int64),
        bits / bits.sum(axis=1, keepdims=True),
    )


def _verdicts(panel: Panel, draws: int) -> Iterator[FloatArray]:
    """Distributions with labels exchanged within an item and replicate, some draws at a time."""
    scored = _scored(panel)
    shown = scored.rows.groupby(["replicate", "flipped", "rubric_draw"]).ngroup().to_numpy()
    block = scored.item * (int(shown.max()) + 1) + shown
    order = np.argsort(block, kind="stable")
    _, starts, sizes = np.unique(block[order], return_index=True, return_counts=True)
    items, judges, codes = int(panel.complete.sum()), len(panel.judges), len(scored.spread)
    # Where a verdict counts, but for its judge: codes vary fastest, then judges, then items.
    base = (scored.item * judges * codes + scored.code)[order]
    label = (scored.judge * codes)[order]
    places = [starts[sizes == size, None] + np.arange(size) for size in np.unique(sizes)]
    cells = items * judges * codes
    n = np.bincount(scored.item * judges + scored.judge, minlength=items * judges)
    rng = seeded("permutation", *map(str, panel.key.values()), len(order), draws)
    step = max(1, min(CHUNK // len(order), CHUNK // cells))
    for low in range(0, draws, step):
        size = min(step, draws - low)
        offset = np.arange(size)[:, None, None] * cells
        counts = np.zeros(size * cells)
        for place in places:
            drawn = _dealt(np.broadcast_to(label[place], (size, *place.shape)), rng)
            counts += np.bincount((drawn + base[place] + offset).ravel(), minlength=size * cells)
        shares = counts.reshape(size, items * judges, codes) @ scored.spread / n[:, None]
        yield shares.reshape(size, items, judges, panel.n_stages)


def _dealt(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Labels dealt anew within each row."""
    if labels.shape[-1] == 1:
        return labels
    if labels.shape[-1] == 2:  # a coin tells, and most tables are of pairs
        return np.where(rng.random((*labels.shape[:-1], 1)) < 0.5, labels[..., ::-1], labels)
    return rng.permuted(labels, axis=-1)


def _blocks(panel: Panel, draws: int) -> Iterator[FloatArray]:
    """Distributions with the judges of whole rubrics exchanged, some draws at a time."""
    scored = _scored(panel)
    draw = pd.factorize(scored.rows["rubric_draw"])[0]
    _, first, unit = np.unique(
        scored.judge * (int(draw.max()) + 1) + draw, return_index=True, return_inverse=True
    )
    judge_of = scored.judge[first]
    items, judges = int(panel.complete.sum()), len(panel.judges)
    place = unit * items + scored.item
    held = np.stack(
        [
            np.bincount(place, scored.spread[scored.code, stage], len(first) * items)
            for stage in range(panel.n_stages)
        ],
        axis=-1,
    )
    held = held.reshape(len(first), -1)
    rng = seeded("permutation", *map(str, panel.key.values()), len(unit), draws)
    step = max(1, CHUNK // (held.shape[1] * judges))
    for low in range(0, draws, step):
        size = min(step, draws - low)
        drawn = rng.permuted(np.broadcast_to(judge_of, (size, len(first))), axis=-1)
        given = (drawn[:, None, :] == np.arange(judges)[:, None]).astype(float)
        counts = (given @ held).reshape(size, judges, items, panel.n_stages)
        total = counts.sum(axis=-1, keepdims=True)
        # A judge that was dealt no verdict on an item is there as the panel is: no divergence.
        pooled = counts.sum(axis=1, keepdims=True) / total.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, counts / np.where(total > 0, total, 1.0), pooled)
        yield np.moveaxis(shares, 1, 2)
