"""The verb that checks the instrument itself."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.app import AsJson, app
from judge_gym.errors import DesignError

if TYPE_CHECKING:
    import pandas as pd

NOTES = {
    "coverage": "How often 95 % intervals hold the truth; low and high: 99 % of its Monte-Carlo "
    "error. A gate fails where all of that lies below `from`; above `to` is conservative.",
    "recovery": "Truth and mean estimate; error: that of the bias, spread: that of one estimate, "
    "found: how often the interval excludes 0. Fails where the bias, less 99 % of its Monte-Carlo "
    "error, exceeds a tenth of the spread.",
    "tests": "How often p is at most 0.05; without an effect, a gate fails where all of low to "
    "high lies above `to`.",
}


@app.command()
def calibrate(
    full: Annotated[bool, typer.Option("--full", help="1,000 panels in the place of 100.")] = False,
    panels: Annotated[int | None, typer.Option(help="So many panels.")] = None,
    items: Annotated[int, typer.Option(help="Evidence items of a panel.")] = 12,
    replicates: Annotated[int, typer.Option(help="Verdicts of a judge on an item.")] = 5,
    seed: Annotated[int, typer.Option(help="Which panels are drawn.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the tables: coverage, recovery, tests, as CSV.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Check the instrument: do intervals hold the truth as often as they say, do tests err rarely?

    Panels of simulated judges with known faults pass through the real prompts, parsers and
    analyses. Exit 0 if every gate passes, 1 if one fails.
    """
    from judge_gym.calibrate import FAST, FULL, Shape
    from judge_gym.calibrate import calibrate as work
    from judge_gym.cli import FAILED, display

    if full and panels is not None:
        raise DesignError("--full is 1,000 panels; choose it or --panels")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    shape = Shape(items=items, replicates=replicates, seed=seed)
    wanted = panels if panels is not None else FULL if full else FAST
    with display.counting("panels", quiet=json) as watch:
        found = work(wanted, shape, workers=os.cpu_count() or 1, watch=watch)
    for name, table in found.tables.items():
        if out is not None:
            table.to_csv(out / f"{name}.csv", index=False)
        if not json:
            display.table(name, _rows(table), note=NOTES[name])
    if json:
        tables = {name: _rows(table) for name, table in found.tables.items()}
        display.print_json(
            {
                "panels": wanted,
                "items": items,
                "replicates": replicates,
                "seed": seed,
                "passed": found.passed,
                "failed": found.failed,
                **tables,
            }
        )
    else:
        said = "; ".join(found.failed)
        few = f"; {wanted} panels are so few that a gate can hardly fail" if wanted < FAST else ""
        typer.echo(f"failed: {said}" if said else f"every gate passes{few}", err=True)
    if not found.passed:
        raise typer.Exit(FAILED)


def _rows(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows as JSON knows them: undefined is null."""
    return [
        {str(name): None if value != value else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]
