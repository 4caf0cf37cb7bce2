"""The check on the instrument itself: judges with known faults, through real stages and analysis.

`worlds` says who judges what, `panels` asks and reads, `laws` and `truth` know what should come
out, `quantities` lists what is calibrated, and `gates` decides.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context

import pandas as pd

from judge_gym.calibrate.gates import (
    Calibration,
    Check,
    Estimator,
    Quantity,
    coverage,
    coverage_band,
    errors,
    recovery,
)
from judge_gym.calibrate.panels import Panels, Shape
from judge_gym.calibrate.quantities import QUANTITIES, TESTS
from judge_gym.calibrate.truth import Known
from judge_gym.errors import DesignError

__all__ = ["Calibration", "Check", "Panels", "Quantity", "Shape", "calibrate"]

FAST, FULL = 100, 1000
"""How many panels are drawn for a look, and for the record."""
BATCH = 10
"""Panels that are analysed at once."""
USUAL = Shape()

Found = dict[str, pd.DataFrame]
"""By the name of a quantity or test, a row per panel."""


def calibrate(
    panels: int = FAST,
    shape: Shape = USUAL,
    *,
    quantities: Sequence[Quantity] = QUANTITIES,
    tests: Sequence[Check] = TESTS,
    workers: int = 1,
    watch: Callable[[int, int], None] = lambda done, wanted: None,
) -> Calibration:
    """Judge panels on fresh evidence, and compare all that is estimated with what is true.

    Args:
        panels: how many.
        shape: items and replicates of each, and the seed.
        quantities: what is estimated.
        tests: what is tested.
        workers: processes that share the work; with more than one, estimators must be picklable
            and the caller the main thread.
        watch: is told how many panels are done, and of how many.
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
    with _shared_out(partial(_found, estimators, shape), batches, workers) as founds:
        for batch, found in zip(batches, founds, strict=True):
            parts.append(found)
            watch(batch.stop, panels)
    whole = {
        name: pd.concat([part[name] for part in parts], ignore_index=True) for name in estimators
    }
    known, band = Known(shape), coverage_band(shape.items)
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
    """What every estimator says of these panels."""
    panels = Panels(numbers, shape)
    found = {name: estimate(panels) for name, estimate in estimators.items()}
    for name, table in found.items():
        if len(table) != len(numbers):
            raise DesignError(f"{name} has {len(table)} rows; it needs one for each panel")
    return found


@contextmanager
def _shared_out(
    work: Callable[[range], Found], batches: Sequence[range], workers: int
) -> Iterator[Iterator[Found]]:
    """The results of batches in their order; the work ends when the reader leaves."""
    workers = min(workers, len(batches))
    if workers < 2:
        yield map(work, batches)
        return
    # Fresh processes, because a fork would copy the locks of whoever shows progress; they inherit
    # that Ctrl-C is ignored, and end when this one, who minds it, leaves the pool.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pool = get_context("spawn").Pool(workers)
    finally:
        signal.signal(signal.SIGINT, before)
    with pool:
        yield pool.imap(work, batches)
