"""Commands that read results: report, judges, answers, export and usage."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, read_lab
from judge_gym.cli.file_options import (
    is_recorded_file,
    read_recorded,
    refuse_file_options,
    takes_file_options,
)
from judge_gym.cli.options import NONE, AsJson, Target, parse_pairs
from judge_gym.cli.report_display import print_chosen, print_judges, print_report, print_summary
from judge_gym.errors import DesignError, NotFoundError, unknown
from judge_gym.records import Status
from judge_gym.records.judge_table import MeasureName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judge_gym.recorded.options import FileOptions, FileReading
    from judge_gym.records.judge_table import JudgeTable

USAGE_DETAILS = ("imported", "attempts", "cached_tokens", "seconds")
"""Columns of `usage` that are left out first on a narrow terminal."""


@app.command()
@takes_file_options
def report(
    target: Annotated[
        str | None,
        typer.Argument(
            help="A study file, a study's name, an experiment's tag, or a file of verdicts."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--from", help="The same for a file of verdicts or an export; no database."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a page (.html), text (.md), or a folder with everything."),
    ] = None,
    gate: Annotated[
        list[str],
        typer.Option(help="The value at which a validity check passes: benchmark=0.7."),
    ] = NONE,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Print the whole page with its tables; with --json, further tables too."
        ),
    ] = False,
    json: AsJson = False,
    *,
    file_options: "FileOptions",
) -> None:
    """Report which judge to use, on a study or a file of verdicts; --full prints its tables."""
    from judge_gym.lab.reports import check_report_path, report_file, save_report

    gates = parse_pairs("--gate", gate)
    if out is not None:
        check_report_path(out)
    summary_only = not (full or json or out)
    if file is None and is_recorded_file(target):
        file, target = Path(str(target)), None
    if file is not None and target is None:
        built = report_file(
            file,
            gates=gates,
            summary_only=summary_only,
            read=lambda path: _read_and_tell(path, file_options, quiet=json),
            options=file_options,
        )
    elif target is not None and file is None:
        refuse_file_options(file_options, target)
        with read_lab() as lab:
            built = lab.reports.build(target, gates=gates, summary_only=summary_only)
    else:
        raise DesignError("name a study or a tag, or give samples with --from FILE; not both")
    if out is not None:
        save_report(built, out)
    if json:
        from judge_gym.analysis.report.digest import as_json

        display.print_json(as_json(built, further=full))
        return
    if full:
        print_report(built)
    else:
        print_summary(built)
    rest = "" if full else "; --full prints its tables"
    typer.echo(f"wrote {out}{rest}" if out else f"--out report.html writes the report{rest}")


@app.command()
@takes_file_options
def judges(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="STUDY|TAG|FILE...",
            help="Studies, their files, or tags; or one file of verdicts.",
        ),
    ],
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The measure that decides which judge is best, in place of the study's: exact, "
            "balanced, weighted, rank or error.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The positive one of two labels, such as pass."),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="miss=5,false_alarm=1",
            help="What wrong verdicts cost; the expected loss then decides.",
        ),
    ] = None,
    json: AsJson = False,
    *,
    file_options: "FileOptions",
) -> None:
    """Show which judge to use: how good each setup is, how consistent, and at what price."""
    files = [target for target in targets if is_recorded_file(target)]
    if files and len(targets) > 1:
        raise DesignError(f"{files[0]} is a file of verdicts, which is shown alone", choices=files)
    if files:
        table = _judges_of_file(Path(files[0]), file_options, measure, loss, json=json)
    else:
        refuse_file_options(file_options, targets[0])
        table = _judges_of_lab(targets, measure, positive, loss)
    if json:
        display.print_json(table)
        return
    print_judges(table)
    print_chosen(table)


def _judges_of_file(
    file: Path, options: "FileOptions", measure: str | None, loss: str | None, *, json: bool
) -> "JudgeTable":
    from judge_gym.lab.reports import checked_decider
    from judge_gym.recorded.check import check_reading

    declared, costs = checked_decider(measure, loss)
    reading = _read_and_tell(file, options, quiet=json)
    return check_reading(reading, measure=declared, loss=costs, positive=options.positive).table


def _read_and_tell(file: Path, options: "FileOptions", *, quiet: bool) -> "FileReading":
    """Reads a file, and prints how unless a document is printed."""
    reading = read_recorded(file, options)
    if not quiet:
        typer.echo(f"{reading.roles_text()}\n")
    return reading


def _judges_of_lab(
    targets: "Sequence[str]", measure: str | None, positive: str | None, loss: str | None
) -> "JudgeTable":
    with read_lab() as lab:
        return lab.reports.judges(
            targets[0],
            others=targets[1:],
            measure=cast("MeasureName | None", measure),  # which the lab checks
            positive=positive,
            loss=loss,
        )


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
    include: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="COLUMN,...",
            help="Also labels (people's, a column for each rater), text (of the item), answer (the "
            "judge's words).",
        ),
    ] = "",
) -> None:
    """Write one tidy row per sample, with a column per knob."""
    from judge_gym.lab.sample_frames import FORMATS, file_format, write_csv

    if out is not None:
        file_format(out, format)
    elif format == "parquet":
        raise DesignError("parquet needs --out FILE")
    elif format not in (None, "csv"):
        raise DesignError(unknown("format", format, FORMATS), choices=FORMATS)
    added = [name.strip() for name in include.split(",") if name.strip()]
    with read_lab() as lab:
        if out is None:
            frame = lab.experiments.exported_samples(*(tags or []), include=added)
            write_csv(frame, sys.stdout)
            return
        rows = lab.experiments.export(tags or [], out, format=format, include=added)
    typer.echo(f"wrote {rows:,} rows to {out}", err=True)


@app.command()
def usage(
    target: Annotated[str | None, typer.Argument(help="Only this study or experiment.")] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Group by any of study, tag, stage, model, day, provider; default: study, stage "
            "and model, or all but provider with --json."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what was paid, by experiment, step, model and day."""
    groups = by or ("study,tag,stage,model,day" if json else "study,stage,model")
    with read_lab() as lab:
        rows = lab.reports.usage(target, by=[name.strip() for name in groups.split(",")])
    if target is not None and not rows:
        raise NotFoundError(f"{target!r} has no paid calls; 'judge-gym usage' lists all usage")
    note = "seconds: from request to answer, summed over calls"
    display.show_rows(rows, json, empty="no calls yet", note=note, optional=USAGE_DETAILS)


# --- answers -------------------------------------------------------------------------------------


@app.command()
def answers(
    target: Target,
    status: Annotated[
        str | None,
        typer.Option(help="Only answers that were read so; parse_failed: unreadable ones."),
    ] = None,
    after: Annotated[
        str | None, typer.Option(help="Continue after this sample, as the last page says.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most answers.")] = 20,
    json: AsJson = False,
) -> None:
    """Show what judges answered, word for word, one screen each on a terminal."""
    if status not in (None, *get_args(Status)):
        choices = get_args(Status)
        raise DesignError(unknown("status", status, choices), choices=choices)
    with read_lab() as lab:
        page = lab.experiments.page_answers(target, status=status, after=after, limit=limit)
    if json:
        display.print_json({"items": page.rows, "next": page.next})
        return
    screens = sys.stdin.isatty() and sys.stdout.isatty()
    for number, row in enumerate(page.rows, 1):
        if screens:
            display.console().clear()
        _show(row)
        if screens and number < len(page.rows):
            typer.echo(f"{number} of {len(page.rows)}: any key for the next, q to end", err=True)
            if typer.getchar() == "q":
                return
    if not page.rows:
        typer.echo(f"{target} has no such answers")
    if page.next is not None:
        notes(f"there are more; continue with --after {page.next}")


def _show(row: Mapping[str, Any]) -> None:
    """Prints one answer below a line that says of what."""
    read = f"stage {row['stages']}" if row["stages"] else row["status"]
    console = display.console()
    # People count repeats from 1, as pages do; files and the API have the index from 0.
    shown_as = f"shown as {row['display']}; " if row["display"] else ""  # own prompts have none
    about = f"repeat {row['replicate'] + 1}, {read}; {shown_as}call {row['call_id']}"
    console.print(
        f"--- sample {row['sample']}: {row['judge']} on {row['evidence_title']!r}", style="bold"
    )
    console.print(f"    {row['tag']}, {about}", style="dim")
    text = row["text"] if row["text"] is not None else row["error"] or ""
    # Control characters could change what the terminal shows.
    safe = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    console.print(f"{safe}\n", soft_wrap=True)
