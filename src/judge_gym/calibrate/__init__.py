"""The check on the instrument itself: judges with known faults, through real stages and analysis.

`worlds` says who judges what, `panels` asks and reads, `truth` knows what should come out,
`quantities` lists what is calibrated, and `gates` decides.
"""

from collections.abc import Callable, Sequence

import pandas as pd

from judge_gym.calibrate.gates import (
    Calibration,
    Quantity,
    Check,
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


def calibrate(
    panels: int = FAST,
    shape: Shape = Shape(),
    *,
    quantities: Sequence[Quantity] = QUANTITIES,
    tests: Sequence[Check] = TESTS,
    watch: Callable[[int, int], None] = lambda done, wanted: None,
) -> Calibration:
    """Judge panels on fresh evidence, and compare all that is estimated with what is true.

    Args:
        panels: how many.
        shape: items and replicates of each, and the seed.
        quantities: what is estimated.
        tests: what is tested.
        watch: is told how many panels are done, and of how many.
    """
    for what, value, least in (
        ("panels", panels, 2),
        ("items", shape.items, 3),
        ("replicates", shape.replicates, 2),
    ):
        if value < least:
            raise DesignError(f"{value} {what}; choose {least} or more")
    found: dict[str, list[pd.DataFrame]] = {one.name: [] for one in (*quantities, *tests)}
    watch(0, panels)
    for first in range(0, panels, BATCH):
        drawn = Panels(range(first, min(first + BATCH, panels)), shape)
        for quantity in quantities:
            found[quantity.name].append(quantity.estimate(drawn))
        for test in tests:
            found[test.name].append(test.p(drawn))
        watch(min(first + BATCH, panels), panels)
    whole = {name: pd.concat(parts, ignore_index=True) for name, parts in found.items()}
    known, band = Known(shape), coverage_band(shape.items)
    truths = {one.name: one.truth(known) for one in quantities}
    return Calibration(
        coverage=pd.DataFrame(
            {"name": name, **coverage(whole[name], true, band)} for name, true in truths.items()
        ),
        recovery=pd.DataFrame(
            {"name": name, **recovery(whole[name], true)} for name, true in truths.items()
        ),
        tests=pd.DataFrame(
            {"name": one.name, **errors(whole[one.name], null=one.null)} for one in tests
        ),
    )
