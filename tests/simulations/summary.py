"""What a calibration shows in few lines, and as the dated table of the documentation."""

from collections.abc import Iterator
from datetime import date
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from simulations.gates import Calibration, detectable

BEGIN, END = "<!-- begin: written by make simulations -->", "<!-- end -->"
"""What encloses the generated part of a page."""
BEGIN_STUDIES, END_STUDIES = "<!-- begin: hard studies -->", "<!-- end: hard studies -->"


def by_world(found: Calibration) -> pd.DataFrame:
    """Returns one row per world and number of items, with its worst rates."""
    rows = []
    keys = ["world", "items"]
    tests = dict(list(found.tests.groupby(keys))) if len(found.tests) else {}
    every = [part[keys] for part in (found.coverage, found.tests) if len(part)]
    for world, items in pd.concat(every).drop_duplicates().itertuples(index=False, name=None):
        row: dict[str, Any] = {"world": world, "items": items}
        here = [
            table[(table["world"] == world) & (table["items"] == items)]
            for table in (found.coverage, found.recovery)
            if len(table)
        ]
        if here:
            covered, recovered = here
            row |= {
                "quantities": len(covered),
                "least coverage": covered["coverage"].min(),
                "median coverage": covered["coverage"].median(),
                "withheld": int((covered["outcome"] == "withheld").sum()),
                "conservative": int((covered["outcome"] == "conservative").sum()),
                "largest bias": (recovered["bias"].abs() / recovered["spread"]).max(),
            }
        if (world, items) in tests:
            nulls = tests[world, items].query("effect == 'none'")
            row["most false positives"] = nulls["rejected"].max()
        rows.append(row)
    return pd.DataFrame(rows)


def detected(found: Calibration) -> str:
    """Says what faults the run can detect; where worlds have fewer panels, the range."""
    tables = [table for table in (found.coverage, found.tests) if len(table)]
    counts = pd.concat([table["panels"] for table in tables])
    most, least = (detectable(int(n), found.gates) for n in (counts.max(), counts.min()))
    text = f"With {counts.max():,} panels and {found.gates} gates, power 90 %: {most}."
    if counts.min() < counts.max():
        text += (
            f" Slow worlds have {counts.min():,} panels or more, which tell coverage below "
            f"{least.coverage:.1%} and false positives above {least.rejected:.1%}."
        )
    return text


def markdown(found: Calibration, command: str, on: date) -> str:
    """Returns the tables of a run as a part of a Markdown page."""
    verdict = "Every gate passes." if found.passed else f"Failed: {'; '.join(found.failed)}."
    lines = [BEGIN, f"`{command}` on {on.isoformat()}. {verdict} {detected(found)}", ""]
    if len(found.coverage):
        lines += [*_coverage_lines(found), ""]
    if len(found.tests):
        lines += [*_test_lines(found.tests), ""]
    return "\n".join([*lines, END])


def replace_table(page: str, table: str) -> str:
    """Puts the table of a run, with its two markers, in the place of that of the last run."""
    return _replace(page, table, BEGIN, END)


def replace_studies(page: str, table: str) -> str:
    """Puts the table of hard studies in the place of the last one."""
    return _replace(page, f"{BEGIN_STUDIES}\n{table}\n{END_STUDIES}", BEGIN_STUDIES, END_STUDIES)


def _replace(page: str, text: str, begin: str, end: str) -> str:
    if begin not in page or end not in page:
        raise ValueError(f"the page needs the markers {begin} and {end}")
    return page.partition(begin)[0] + text + page.partition(end)[2]


def hard_studies(results: str) -> str:
    """Makes a table of what the tests of hard studies recorded, from pytest's XML."""
    rows = ["| study | at | result |", "| --- | --- | --- |"]
    for case in ElementTree.fromstring(results).iter("testcase"):
        if not str(case.get("classname")).endswith("test_hard_studies"):
            continue
        properties = {
            str(entry.get("name")): str(entry.get("value")) for entry in case.iter("property")
        }
        place = properties.pop("at", "")
        if properties:
            study = str(case.get("name")).partition("[")[0].removeprefix("test_").replace("_", " ")
            failed = " **fails**" if case.find("failure") is not None else ""
            result = ", ".join(f"{name} {value}" for name, value in properties.items())
            rows.append(f"| {study} | {place} | {result}{failed} |")
    return "\n".join(rows)


def _coverage_lines(found: Calibration) -> Iterator[str]:
    """Yields a line per quantity and world, with coverage by the number of items."""
    both = found.coverage.merge(found.recovery, on=["world", "items", "name"], suffixes=("", "_r"))
    title = "coverage at n items (share of panels that print an interval, unless all do)"
    yield f"| quantity | world | {title} | withheld by rule | largest bias |"
    yield "| --- | --- | --- | --- | --- |"
    for (name, world), part in both.groupby(["name", "world"], sort=False):
        rules = part.loc[part["printed"] < 1, "withheld"].unique()
        bias = float((part["bias"].abs() / part["spread"].where(part["spread"] > 0)).max())
        shown = f"{bias:.2f} sd" if np.isfinite(bias) else "–"
        yield f"| {name} | {world} | {_cells(part, 'coverage')} | {'; '.join(rules)} | {shown} |"


def _test_lines(tests: pd.DataFrame) -> Iterator[str]:
    yield "| test | world | effect | p at most 0.05 at n items |"
    yield "| --- | --- | --- | --- |"
    for (name, world, effect), part in tests.groupby(["name", "world", "effect"], sort=False):
        yield f"| {name} | {world} | {effect} | {_cells(part, 'rejected')} |"


def _cells(part: pd.DataFrame, column: str) -> str:
    """Returns a rate by the number of items, with the share of panels that print one."""
    cells = []
    for row in part.sort_values("items").to_dict("records"):
        printed = f" ({row['printed']:.1%})" if row["printed"] < 1 else ""
        rate = "withheld" if np.isnan(row[column]) else f"{row[column]:.1%}{printed}"
        cells.append(f"n={row['items']}: {rate}")
    return ", ".join(cells)
