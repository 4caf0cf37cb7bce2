"""Commands that read results: report, export and usage."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, read_lab
from judge_gym.cli.options import NONE, AsJson, parse_pairs
from judge_gym.cli.results import print_report
from judge_gym.errors import DesignError, NotFoundError, unknown


@app.command()
def report(
    target: Annotated[
        str | None, typer.Argument(help="A study file, a study's name, or an experiment's tag.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--from", help="Report on samples in a .csv or .parquet file; no database."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a page (.html), text (.md), or a folder with everything."),
    ] = None,
    gate: Annotated[
        list[str],
        typer.Option(help="The value at which a validity check passes: benchmark=0.7."),
    ] = NONE,
    json: AsJson = False,
) -> None:
    """Report on a study or a file of samples."""
    from judge_gym.lab.reports import report_file, save_report

    gates = parse_pairs("--gate", gate)
    if file is not None and target is None:
        built = report_file(file, gates=gates)
    elif target is not None and file is None:
        with read_lab() as lab:
            built = lab.reports.build(target, gates=gates)
    else:
        raise DesignError("name a study or a tag, or give samples with --from FILE; not both")
    if out is not None:
        save_report(built, out)
    if json:
        display.print_json(
            {
                "title": built.title,
                "banner": built.banner,
                "facts": built.facts,
                "warnings": built.warnings,
                "tables": {table.title: display.records(table.frame) for table in built.tables},
            }
        )
        return
    print_report(built)
    if out is not None:
        typer.echo(f"\nwrote {out}")


@app.command()
def export(
    tags: Annotated[
        list[str] | None, typer.Argument(help="Tags or studies; default: everything.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="csv or parquet; default: by the file's name.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; without it, CSV goes to standard output.")
    ] = None,
) -> None:
    """Write one tidy row per sample, with a column per knob."""
    from judge_gym.samples import FORMATS, file_format

    if out is not None:
        file_format(out, format)
    elif format == "parquet":
        raise DesignError("parquet needs --out FILE")
    elif format not in (None, "csv"):
        raise DesignError(unknown("format", format, FORMATS), choices=FORMATS)
    with read_lab() as lab:
        if out is None:
            lab.experiments.samples(*(tags or [])).to_csv(sys.stdout, index=False)
            return
        rows = lab.experiments.export(tags or [], out, format=format)
    typer.echo(f"wrote {rows:,} rows to {out}", err=True)


@app.command()
def usage(
    target: Annotated[str | None, typer.Argument(help="Only this study or experiment.")] = None,
    by: Annotated[
        str, typer.Option(help="Group by any of study, tag, stage, model, day.")
    ] = "study,tag,stage,model,day",
    json: AsJson = False,
) -> None:
    """Show what was paid, by experiment, step, model and day."""
    with read_lab() as lab:
        rows = lab.reports.usage(target, by=[name.strip() for name in by.split(",")])
    if target is not None and not rows:
        raise NotFoundError(f"{target!r} has no paid calls; 'judge-gym usage' lists all usage")
    note = "seconds: from request to answer, summed over calls"
    display.show_rows(rows, json, empty="no calls yet", note=note)
