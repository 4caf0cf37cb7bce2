"""The section on variance components, and on what more data would do to the intervals."""

import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.planning.purchases import Decision, decide
from judge_gym.analysis.planning.quantities import (
    Quantity,
    measurements,
    quantities,
    variance_table,
)
from judge_gym.analysis.report.page import Chart, ReportInput, Section, Table, section

MOST = 6
"""The largest number of quantities in the table."""


def what_to_buy_next(given: ReportInput) -> Section | None:
    """Shows where the variance is, and which purchase narrows the main intervals most."""
    measured = measurements(given.frame, given.people)
    listed = quantities(given.frame, measured)
    decisions = [decide(quantity, given.label_usd) for quantity in _main(listed)]
    if not decisions:
        return None
    first, frame = decisions[0], pd.DataFrame([_row(decision) for decision in decisions])
    return section(
        "What should I buy next?",
        first.sentence(),
        tables=[
            Table(
                "What to buy next",
                "Half the width of the 95 % interval of one quantity to expect, now and after "
                "buying as much as doubling the items costs. `judge-gym plan STUDY --next --for "
                "QUANTITY` shows others.",
                frame,
                frame.drop(columns="recommendation"),
            ),
        ],
        charts=[Chart("Interval by money spent", figures.decision_figure, curve(first))],
    )


def variance(given: ReportInput) -> Section | None:
    """Shows where the variance of verdicts is."""
    measured = measurements(given.frame, given.people)
    if not measured:
        return None
    return section(
        "Where is the variance?",
        "Components of the variance of one verdict.",
        tables=[
            Table(
                "Variance",
                "Components of the variance of one verdict, on the scale from 0 to 1, by "
                "restricted maximum likelihood; setups are fixed. Intervals are by the jackknife "
                "over clusters, and withheld where they would not cover in 93 % of studies.",
                variance_table(measured),
            ),
        ],
    )


def _main(listed: list[Quantity]) -> list[Quantity]:
    """Returns the first quantities of each task in turn, so that no task is left out."""
    tasks: dict[str, list[Quantity]] = {}
    for quantity in listed:
        tasks.setdefault(quantity.task, []).append(quantity)
    each = max(1, MOST // max(len(tasks), 1))
    names = {quantity.name for of_task in tasks.values() for quantity in of_task[:each]}
    return [quantity for quantity in listed if quantity.name in names][:MOST]


def _row(decision: Decision) -> dict[str, object]:
    """Returns a quantity with the interval to expect from each option."""
    row: dict[str, object] = {
        "quantity": decision.quantity.name,
        "±": decision.half,
        "price": decision.budget_text(),
    }
    for option in decision.options:
        row[f"± with more {option.name}"] = decision.half_after(option)
    return {**row, "recommendation": decision.sentence()}


def curve(decision: Decision) -> pd.DataFrame:
    """Returns the half width against the money spent on each option, from nothing spent on."""
    points = decision.points()
    points = points.rename(columns={decision.currency: "spent"}).dropna(subset="half_width")
    start = points.drop_duplicates("option").assign(spent=0.0, half_width=decision.half)
    both = pd.concat([start, points]).sort_values(["option", "spent"], kind="stable")
    return both.assign(unit=decision.currency)[["option", "spent", "half_width", "unit"]]
