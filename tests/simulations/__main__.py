"""Runs the simulations and writes their table into `docs/calibrate.md`: `make simulations`."""

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from judge_gym.cli import display
from simulations import FAST, FULL, Calibration, Shape, calibrate, summary

PAGE = Path(__file__).parents[2] / "docs" / "calibrate.md"


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for; returns 1 if a gate fails."""
    parser = argparse.ArgumentParser(prog="simulations", description=__doc__)
    parser.add_argument("--panels", type=int, default=FAST, help=f"of each world; full: {FULL}")
    parser.add_argument("--only", default="", help="only what has this text in its name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a folder for the tables as CSV")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    parser.add_argument("--studies", type=Path, help="results of pytest to write into the page")
    parser.add_argument("--studies-only", action="store_true", help="run no world")
    options = parser.parse_args(arguments)
    if options.studies is not None:
        page = PAGE.read_text(encoding="utf-8")
        studies = summary.hard_studies(options.studies.read_text(encoding="utf-8"))
        PAGE.write_text(summary.replace_studies(page, studies), encoding="utf-8")
    if options.studies_only:
        return 0
    if options.write and options.only:
        parser.error("the page holds all worlds; choose --write or --only")
    with display.counting("panels", quiet=False) as watch:
        result = calibrate(
            options.panels,
            Shape(seed=options.seed),
            only=options.only,
            workers=os.cpu_count() or 1,
            watch=watch,
        )
    if options.out is not None:
        save_tables(result, options.out)
    command = f"make simulations PANELS={options.panels}"
    table = summary.markdown(result, command, datetime.now(UTC).date())
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(summary.replace_table(page, table), encoding="utf-8")
    else:
        print(table)
    print("; ".join(result.failed) or "every gate passes", file=sys.stderr)
    return int(not result.passed)


def save_tables(result: Calibration, folder: Path) -> None:
    """Writes each table as CSV into a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in result.tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)


if __name__ == "__main__":
    sys.exit(main())
