"""Checks the estimators: panels of judges with known properties, and the real analysis.

`worlds` defines panels, `prompted` and `synthetic` simulate their verdicts, `truth` computes the
exact results, `quantities` and `scenarios` list the estimates and tests, `gates` decides whether
they pass.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from typing import Any, NamedTuple

import pandas as pd

from judge_gym.errors import DesignError
from simulations.gates import (
    Calibration,
    coverage,
    decide,
    detectable,
    recovery,
    rejections,
)
from simulations.quantities import Estimator, HypothesisTest, Quantity, World, worlds
from simulations.truth import TrueValues
from simulations.worlds import Panels, Shape, Source

__all__ = [
    "Calibration",
    "HypothesisTest",
    "Panels",
    "Quantity",
    "Shape",
    "World",
    "calibrate",
    "detectable",
]

FAST, FULL = 100, 1900
"""The numbers of panels of a fast and of a full calibration."""
BATCH = 25
"""The number of panels analysed at once."""
LEAST = 20
"""The least number of panels of a world, unless a run has fewer."""
USUAL = Shape()

Results = dict[str, pd.DataFrame]
"""One row per panel, by the name of a quantity or test."""


class _Batch(NamedTuple):
    """Panels of one world, and the estimators to apply to them; it is sent to other processes."""

    numbers: range
    source: Source
    shape: Shape
    estimators: Mapping[str, Estimator]

    def results(self) -> Results:
        """Returns the results of every estimator."""
        panels = Panels(self.numbers, self.source, self.shape)
        known: dict[Estimator, pd.DataFrame] = {}
        for name, estimate in self.estimators.items():
            if estimate not in known:
                known[estimate] = estimate(panels)
            if len(known[estimate]) > len(self.numbers):
                raise DesignError(
                    f"{name} has {len(known[estimate])} rows for {len(self.numbers)} panels; it "
                    "has one for each"
                )
        # A panel without a row has no result.
        rows = range(len(self.numbers))
        return {
            name: known[estimate].reset_index(drop=True).reindex(rows)
            for name, estimate in self.estimators.items()
        }


def calibrate(
    panels: int = FAST,
    shape: Shape = USUAL,
    *,
    only: str = "",
    chosen: Sequence[World] | None = None,
    workers: int = 1,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Calibration:
    """Simulates panels of every world, and compares all estimates with the truth.

    Args:
        panels: the number of panels of a world; of slow worlds, a share of it.
        shape: the size of panels through real prompts, and the seed of all.
        only: calibrates what has this text in its name; the gates that are left out still count
            in the correction for many gates.
        chosen: the worlds, by default all.
        workers: the number of processes. With more than one, estimators must be picklable and the
            caller the main thread.
        watch: is called with the number of finished panels, and with their total number.
    """
    for what, value, least in (
        ("panels", panels, 2),
        ("items", shape.items, 3),
        ("replicates", shape.replicates, 2),
    ):
        if value < least:
            raise DesignError(f"{value} {what}; choose {least} or more")
    every = worlds(shape) if chosen is None else chosen
    kept = [one for one in (_matching(world, only) for world in every) if one.estimators]
    if not kept:
        raise DesignError(f"nothing that is calibrated has {only!r} in its name")
    counts = [min(panels, max(LEAST, round(world.share * panels))) for world in kept]
    batches = [
        (place, _Batch(range(low, min(low + BATCH, count)), world.source, size, world.estimators))
        for place, (world, count) in enumerate(zip(kept, counts, strict=True))
        for size in [Shape(world.items, world.replicates, shape.seed)]
        for low in range(0, count, BATCH)
    ]
    parts: list[list[Results]] = [[] for _ in kept]
    done = 0
    watch(done, sum(counts))
    with _run_batches([batch for _, batch in batches], workers) as results:
        for (place, batch), found in zip(batches, results, strict=True):
            parts[place].append(found)
            done += len(batch.numbers)
            watch(done, sum(counts))
    tables: dict[str, list[dict[str, Any]]] = {"coverage": [], "recovery": [], "tests": []}
    for world, held in zip(kept, parts, strict=True):
        _add_rows(tables, world, held)
    return decide(tables, sum(world.gates for world in every))


def _matching(world: World, only: str) -> World:
    """Returns a world with the quantities and tests whose names contain a text."""

    def named(one: Quantity | HypothesisTest) -> bool:
        return only in f"{one.name} ({world.source.name}, {world.items} items)"

    return replace(
        world,
        quantities=tuple(one for one in world.quantities if named(one)),
        tests=tuple(one for one in world.tests if named(one)),
    )


def _add_rows(
    tables: Mapping[str, list[dict[str, Any]]], world: World, parts: Sequence[Results]
) -> None:
    """Adds the rows of a world to the tables."""
    whole = {
        name: pd.concat([part[name] for part in parts], ignore_index=True)
        for name in world.estimators
    }
    known = TrueValues(world.source.distribution, world.replicates)
    about = {"world": world.source.name, "items": world.items}
    for one in world.quantities:
        found = whole[one.name]
        found = found if one.truth is None else found.assign(truth=one.truth(known))
        row = {**about, "name": one.name}
        covered = coverage(found, printed=world.must_print(one), withheld=one.withheld)
        tables["coverage"].append({**row, **covered})
        tables["recovery"].append({**row, **recovery(found, biased=one.biased)})
    for test in world.tests:
        rates = rejections(whole[test.name], null=test.null)
        tables["tests"].append({**about, "name": test.name, **rates})


@contextmanager
def _run_batches(batches: Sequence[_Batch], workers: int) -> Iterator[Iterator[Results]]:
    """Yields an iterator of the batches' results in order; its processes end with the context."""
    workers = min(workers, len(batches))
    if workers < 2:
        yield map(_Batch.results, batches)
        return
    # Fresh processes, because a fork would copy the locks of a progress bar. They inherit that
    # Ctrl-C is ignored, and end when this process, which handles it, leaves the pool.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pool = get_context("spawn").Pool(workers)
    finally:
        signal.signal(signal.SIGINT, before)
    with pool:
        yield pool.imap(_Batch.results, batches)
