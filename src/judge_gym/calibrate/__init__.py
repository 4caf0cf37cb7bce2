"""Checks the instrument itself: simulated judges with known faults, real stages and analyses.

`worlds` defines judges and conditions and simulates verdicts, `truth` computes the exact results,
and `quantities` lists the estimates and tests, and decides whether they pass.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context

import pandas as pd

from judge_gym.calibrate.quantities import (
    QUANTITIES,
    TESTS,
    Calibration,
    Estimator,
    HypothesisTest,
    Quantity,
    coverage,
    coverage_band,
    errors,
    recovery,
)
from judge_gym.calibrate.truth import TrueValues
from judge_gym.calibrate.worlds import Panels, Shape
from judge_gym.errors import DesignError

__all__ = ["Calibration", "HypothesisTest", "Panels", "Quantity", "Shape", "calibrate"]

FAST, FULL = 100, 1000
"""The numbers of panels of a fast and of a full calibration."""
BATCH = 10
"""The number of panels analysed at once."""
USUAL = Shape()

Found = dict[str, pd.DataFrame]
"""One row per panel, by the name of a quantity or test."""


def calibrate(
    panels: int = FAST,
    shape: Shape = USUAL,
    *,
    quantities: Sequence[Quantity] = QUANTITIES,
    tests: Sequence[HypothesisTest] = TESTS,
    workers: int = 1,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Calibration:
    """Simulates panels on fresh evidence, and compares all estimates with the truth.

    With more than one worker, estimators must be picklable and the caller the main thread. `watch`
    is called with the number of finished panels, and with their total number.
    """
    for what, value, least in (
        ("panels", panels, 2),
        ("items", shape.items, 3),
        ("replicates", shape.replicates, 2),
    ):
        if value < least:
            raise DesignError(f"{value} {what}; choose {least} or more")
    batches = [range(low, min(low + BATCH, panels)) for low in range(0, panels, BATCH)]
    parts: list[Found] = []
    watch(0, panels)
    estimators = {one.name: one.estimate for one in quantities} | {one.name: one.p for one in tests}
    with _run_batches(partial(_found, estimators, shape), batches, workers) as founds:
        for batch, found in zip(batches, founds, strict=True):
            parts.append(found)
            watch(batch.stop, panels)
    whole = {
        name: pd.concat([part[name] for part in parts], ignore_index=True) for name in estimators
    }
    known, band = TrueValues(shape), coverage_band(shape.items)
    truths = {one.name: one.truth(known) for one in quantities}
    return Calibration(
        coverage=pd.DataFrame(
            {"name": name, **coverage(whole[name], true, band)} for name, true in truths.items()
        ),
        recovery=pd.DataFrame(
            {
                "name": one.name,
                **recovery(whole[one.name], truths[one.name], biased=one.biased),
            }
            for one in quantities
        ),
        tests=pd.DataFrame(
            {"name": one.name, **errors(whole[one.name], null=one.null)} for one in tests
        ),
    )


def _found(estimators: Mapping[str, Estimator], shape: Shape, numbers: range) -> Found:
    """Returns the results of every estimator on these panels."""
    panels = Panels(numbers, shape)
    found = {name: estimate(panels) for name, estimate in estimators.items()}
    for name, table in found.items():
        if len(table) != len(numbers):
            raise DesignError(f"{name} has {len(table)} rows; it needs one for each panel")
    return found


@contextmanager
def _run_batches(
    work: Callable[[range], Found], batches: Sequence[range], workers: int
) -> Iterator[Iterator[Found]]:
    """Yields an iterator of the batches' results in order; its processes end with the context."""
    workers = min(workers, len(batches))
    if workers < 2:
        yield map(work, batches)
        return
    # Fresh processes, because a fork would copy the locks of a progress bar. They inherit that
    # Ctrl-C is ignored, and end when this process, which handles it, leaves the pool.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pool = get_context("spawn").Pool(workers)
    finally:
        signal.signal(signal.SIGINT, before)
    with pool:
        yield pool.imap(work, batches)
