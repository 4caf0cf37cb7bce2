"""The null distribution of a measure of disagreement, by permuting the judges' labels.

Labels are exchanged among the scored verdicts on one item in one replicate, which all saw one
display. If judges used many rubrics of their own, the verdicts of a judge under one rubric stay
together as a block.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from judge_gym.analysis.belief.masses import FloatArray, IntArray
from judge_gym.analysis.stats.intervals import seeded
from judge_gym.analysis.verdicts import Verdicts

Statistic = Callable[[FloatArray], FloatArray]
"""Maps distributions (..., items, judges, stages) to values (..., items, ...)."""
MOST, FEWEST = 999, 99
"""The numbers of draws for a small panel and for a very large one."""
WORK = 1 << 22
"""The number of relabelled verdicts over all draws; a larger panel has fewer draws."""
LIMIT_FROM, LIMIT_DRAWS = 1000, 49
"""The number of items from which the permuted mean is taken as normal, and draws for its spread."""
CHUNK = 1 << 19
"""The number of relabelled verdicts held in memory at once."""


class PermutationNull(NamedTuple):
    """Measures of a panel on the items that every judge scored, beside their null distribution."""

    observed: dict[str, FloatArray]
    """The values by item."""
    expected: dict[str, FloatArray]
    """The mean of the values over permutations."""
    p_value: dict[str, float]
    """The share of permutations whose mean over items is at least the observed one."""
    draws: int

    def excess(self, name: str) -> FloatArray:
        """Returns by item how far a measure lies above its expectation under the null."""
        return self.observed[name] - self.expected[name]


def permutation_null(
    panel: Verdicts, statistics: Mapping[str, Statistic], *, panels: int = 1
) -> PermutationNull:
    """Permutes the judges' labels of a panel.

    With one verdict per judge and item, permutations give the same verdicts, and the null
    distribution is unknown. `panels` is how many such panels share the limit on the work.
    """
    observed = {name: of(panel.shares[panel.complete]) for name, of in statistics.items()}
    if not panel.complete.any():
        return PermutationNull(observed, observed, dict.fromkeys(statistics, np.nan), 0)
    if panel.scored[panel.complete].max() < 2:
        unknown = {name: np.full_like(values, np.nan) for name, values in observed.items()}
        return PermutationNull(observed, unknown, dict.fromkeys(statistics, np.nan), 0)
    verdicts = int(panel.scored[panel.complete].sum())
    draws = int(np.clip(WORK // (verdicts * panels), FEWEST, MOST))
    items = int(panel.complete.sum())
    # Verdicts are permuted item by item, so the mean over very many is normal; rubrics are not.
    limit = items >= LIMIT_FROM and not panel.in_blocks
    draws = LIMIT_DRAWS if limit else draws
    sums = {name: np.zeros_like(values) for name, values in observed.items()}
    squares = {name: np.zeros(items) for name in observed}
    above = dict.fromkeys(statistics, 0)
    for shares in (_permuted_blocks if panel.in_blocks else _permuted_verdicts)(panel, draws):
        for name, of in statistics.items():
            values = of(shares)
            sums[name] += values.sum(axis=0)
            by_item = values.reshape(len(values), items, -1).mean(axis=2)
            squares[name] += (by_item**2).sum(axis=0)
            # Rounding must not put a draw that equals the data below it.
            above[name] += int((by_item.mean(axis=1) >= observed[name].mean() - 1e-12).sum())
    expected = {name: total / draws for name, total in sums.items()}
    p_value = {name: (1 + count) / (1 + draws) for name, count in above.items()}
    if limit:
        p_value = {
            name: _limit_p(observed[name], expected[name], squares[name] / draws, draws)
            for name in observed
        }
    return PermutationNull(observed, expected, p_value, draws)


def _limit_p(observed: FloatArray, expected: FloatArray, squares: FloatArray, draws: int) -> float:
    """Returns the p-value in the limit of many draws, at least that of the most draws."""
    means = expected.reshape(len(expected), -1).mean(axis=1)
    variance = np.maximum(squares - means**2, 0.0) * draws / (draws - 1)
    # The mean over the draws has an error of its own.
    error = float(np.sqrt(variance.sum() * (1 + 1 / draws))) / len(means)
    above = float(observed.mean() - means.mean())
    if error == 0:
        return 1.0
    return max(1 / (1 + MOST), float(special.ndtr(-above / error)))


class _Scored(NamedTuple):
    """The scored verdicts on complete items, which are renumbered."""

    shown: IntArray
    """The number of each verdict's replicate and display."""
    draw: IntArray
    """The draw of each verdict's rubric."""
    item: IntArray
    judge: IntArray
    code: IntArray
    spread: FloatArray
    """For each code, the weight of each stage."""


def _scored(panel: Verdicts) -> _Scored:
    is_scored = panel.complete[panel.unit] & (panel.mask != 0)
    number = np.cumsum(panel.complete) - 1
    masks, code = np.unique(panel.mask[is_scored], return_inverse=True)
    bits = (masks[:, None] >> np.arange(panel.n_stages) & 1).astype(float)
    return _Scored(
        panel.rows["shown"].to_numpy()[is_scored],
        panel.rows["rubric_draw"].to_numpy()[is_scored],
        number[panel.unit[is_scored]],
        panel.setup[is_scored],
        code.astype(np.int64),
        bits / bits.sum(axis=1, keepdims=True),
    )


def _permuted_verdicts(panel: Verdicts, draws: int) -> Iterator[FloatArray]:
    """Yields distributions with labels exchanged within items and replicates, in chunks."""
    scored = _scored(panel)
    block = scored.item * (int(scored.shown.max()) + 1) + scored.shown
    order = np.argsort(block, kind="stable")
    _, starts, sizes = np.unique(block[order], return_index=True, return_counts=True)
    items, judges, codes = int(panel.complete.sum()), len(panel.setups), len(scored.spread)
    # The index of a count is that of its item, judge and code, in this order.
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
        for rows_of_block in places:
            permutation = _shuffled(
                np.broadcast_to(label[rows_of_block], (size, *rows_of_block.shape)), rng
            )
            counts += np.bincount(
                (permutation + base[rows_of_block] + offset).ravel(), minlength=size * cells
            )
        shares = counts.reshape(size, items * judges, codes) @ scored.spread / n[:, None]
        yield shares.reshape(size, items, judges, panel.n_stages)


def _shuffled(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Returns the labels of each row in random order."""
    if labels.shape[-1] == 1:
        return labels
    if labels.shape[-1] == 2:  # one coin is faster, and most tables are of pairs
        return np.where(rng.random((*labels.shape[:-1], 1)) < 0.5, labels[..., ::-1], labels)
    return rng.permuted(labels, axis=-1)


def _permuted_blocks(panel: Verdicts, draws: int) -> Iterator[FloatArray]:
    """Yields distributions with the judges of whole rubrics exchanged, in chunks."""
    scored = _scored(panel)
    draw = pd.factorize(scored.draw)[0]
    _, first, unit = np.unique(
        scored.judge * (int(draw.max()) + 1) + draw, return_index=True, return_inverse=True
    )
    judge_of = scored.judge[first]
    items, judges = int(panel.complete.sum()), len(panel.setups)
    cell = unit * items + scored.item
    block_counts = np.stack(
        [
            np.bincount(cell, scored.spread[scored.code, stage], len(first) * items)
            for stage in range(panel.n_stages)
        ],
        axis=-1,
    )
    block_counts = block_counts.reshape(len(first), -1)
    rng = seeded("permutation", *map(str, panel.key.values()), len(unit), draws)
    step = max(1, CHUNK // (block_counts.shape[1] * judges))
    for low in range(0, draws, step):
        size = min(step, draws - low)
        judges_by_draw = rng.permuted(np.broadcast_to(judge_of, (size, len(first))), axis=-1)
        is_judge = (judges_by_draw[:, None, :] == np.arange(judges)[:, None]).astype(float)
        counts = (is_judge @ block_counts).reshape(size, judges, items, panel.n_stages)
        total = counts.sum(axis=-1, keepdims=True)
        # A judge without a verdict on an item gets the panel's distribution: no divergence.
        pooled = counts.sum(axis=1, keepdims=True) / total.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, counts / np.where(total > 0, total, 1.0), pooled)
        yield np.moveaxis(shares, 1, 2)
