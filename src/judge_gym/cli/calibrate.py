"""The command that checks the instrument itself."""

import os
from pathlib import Path
from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import FAILED, app
from judge_gym.cli.options import AsJson
from judge_gym.errors import DesignError

NOTES = {
    "coverage": "How often 95 % intervals contain the truth; low and high: its 99 % Monte-Carlo "
    "interval. A gate fails if all of that is below `from`; above `to` is conservative.",
    "recovery": "Truth and mean estimate; error: that of the bias, spread: that of one estimate, "
    "found: how often the interval excludes 0. A gate fails if the bias, less its 99 % "
    "Monte-Carlo error, exceeds a tenth of the spread.",
    "tests": "How often p is at most 0.05; without an effect, a gate fails if all of low to high "
    "is above `to`.",
}


@app.command()
def calibrate(
    full: Annotated[bool, typer.Option("--full", help="1,000 panels instead of 100.")] = False,
    panels: Annotated[int | None, typer.Option(help="Number of panels.")] = None,
    items: Annotated[int, typer.Option(help="Items per panel.")] = 12,
    replicates: Annotated[int, typer.Option(help="Verdicts per judge and item.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the panels.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the tables: coverage, recovery, tests, as CSV.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Check intervals and tests on panels with a known truth.

    Panels of simulated judges with known properties pass through the real prompts, parsers and
    analyses. Exit code 0 if every gate passes, 1 if one fails.
    """
    from judge_gym.calibrate import FAST, FULL, Shape
    from judge_gym.calibrate import calibrate as work

    if full and panels is not None:
        raise DesignError("--full is 1,000 panels; choose it or --panels")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    shape = Shape(items=items, replicates=replicates, seed=seed)
    count = panels if panels is not None else FULL if full else FAST
    with display.counting("panels", quiet=json) as watch:
        found = work(count, shape, workers=os.cpu_count() or 1, watch=watch)
    for name, table in found.tables.items():
        if out is not None:
            table.to_csv(out / f"{name}.csv", index=False)
        if not json:
            display.table(name, display.records(table), note=NOTES[name])
    if json:
        tables = {name: display.records(table) for name, table in found.tables.items()}
        display.print_json(
            {
                "panels": count,
                "items": items,
                "replicates": replicates,
                "seed": seed,
                "passed": found.passed,
                "failed": found.failed,
                **tables,
            }
        )
    else:
        failed = "; ".join(found.failed)
        few = f"; with only {count} panels a gate can hardly fail" if count < FAST else ""
        typer.echo(f"failed: {failed}" if failed else f"every gate passes{few}", err=True)
    if not found.passed:
        raise typer.Exit(FAILED)
