"""The command that checks the instrument itself."""

import os
from pathlib import Path
from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import FAILED, app
from judge_gym.cli.options import AsJson
from judge_gym.errors import DesignError

NOTE = (
    "Coverage of 95 % intervals among the panels that print one: at least 93 %. Bias in standard "
    "deviations of an estimate: at most 0.1. False positives: at most 5 %. Each beyond Monte-Carlo "
    "error, corrected for all gates."
)


@app.command()
def calibrate(
    full: Annotated[bool, typer.Option("--full", help="1,900 panels instead of 100.")] = False,
    panels: Annotated[int | None, typer.Option(help="Panels of each world.")] = None,
    only: Annotated[str, typer.Option(help="Calibrates what has this text in its name.")] = "",
    items: Annotated[int, typer.Option(help="Items of a panel through real prompts.")] = 12,
    replicates: Annotated[
        int, typer.Option(help="Verdicts per judge and item through real prompts.")
    ] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the panels.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the tables: coverage, recovery, tests, as CSV.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables of the documentation.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Check intervals and tests on panels with a known truth.

    Verdicts of judges with known properties are drawn in many worlds: independent, clustered, rare
    or nearly constant, through real prompts or directly, and pass through the real analysis. Exit
    code 0 if every gate passes, 1 if one fails.
    """
    from datetime import UTC, datetime

    from judge_gym.calibrate import FAST, FULL, Shape, summary
    from judge_gym.calibrate import calibrate as work

    if full and panels is not None:
        raise DesignError(f"--full is {FULL:,} panels; choose it or --panels")
    if json and markdown:
        raise DesignError("--json and --markdown are two forms of output; choose one")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    shape = Shape(items=items, replicates=replicates, seed=seed)
    count = panels if panels is not None else FULL if full else FAST
    with display.counting("panels", quiet=json) as watch:
        found = work(count, shape, only=only, workers=os.cpu_count() or 1, watch=watch)
    if out is not None:
        for name, table in found.tables.items():
            table.to_csv(out / f"{name}.csv", index=False)
    if json:
        tables = {name: display.records(table) for name, table in found.tables.items()}
        display.print_json(
            {
                "panels": count,
                "items": items,
                "replicates": replicates,
                "seed": seed,
                "gates": found.gates,
                "detects": summary.detected(found),
                "passed": found.passed,
                "failed": found.failed,
                **tables,
            }
        )
    elif markdown:
        command = f"judge-gym calibrate{' --full' if full else f' --panels {count}'} --seed {seed}"
        print(summary.markdown(found, command, datetime.now(UTC).date()))
    else:
        display.table("worlds", display.records(summary.by_world(found)), note=NOTE)
        for name, table in found.tables.items():
            failing = table[table["outcome"] == "fails"] if len(table) else table
            display.table(f"{name}: failed", display.records(failing))
        typer.echo(summary.detected(found), err=True)
        failed = "; ".join(found.failed)
        typer.echo(f"failed: {failed}" if failed else "every gate passes", err=True)
    if not found.passed:
        raise typer.Exit(FAILED)
