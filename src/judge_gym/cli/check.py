"""The command that checks the judges of a file."""

import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app
from judge_gym.cli.file_options import read_recorded, takes_file_options
from judge_gym.cli.options import AsJson
from judge_gym.cli.report_display import print_judge_rows
from judge_gym.errors import DesignError, NotFoundError, unknown
from judge_gym.records.judge_table import MeasureName

if TYPE_CHECKING:
    from judge_gym.recorded.check import Check
    from judge_gym.recorded.options import FileOptions

PAGES = (".html", ".md")
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)


@app.command()
@takes_file_options
def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Verdicts and labels: CSV, JSON, JSONL, parquet, Excel, or the log of a tool.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="PAGE", help="Write a page (.html) or its text (.md)."),
    ] = None,
    open: Annotated[
        bool,
        typer.Option(
            "--open", help="Open the page in the browser: where verdicts and labels differ."
        ),
    ] = False,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The measure that decides between judges: exact, balanced, weighted, rank or "
            "error.",
        ),
    ] = None,
    json: AsJson = False,
    *,
    file_options: "FileOptions",
) -> None:
    """Say how good the judges of a file are, by people's labels or known answers in it."""
    if measure not in (None, *MEASURES):
        raise DesignError(unknown("measure", str(measure), MEASURES), choices=MEASURES)
    if out is not None:
        _check_page(out)
    from judge_gym.recorded.check import check_reading

    reading = read_recorded(file, file_options)
    result = check_reading(
        reading,
        measure=measure,
        positive=file_options.positive,
    )
    if out is not None:
        page = result.page()
        text = page.html() if out.suffix == ".html" else page.markdown()
        out.write_text(text, encoding="utf-8")
    if json:
        display.print_json(result.result)
    else:
        _print(result)
        if out is not None:
            typer.echo(f"wrote {out}")
    if open:
        _open(result, out)


def _print(check: "Check") -> None:
    """Prints the answer, the judges, what is missing, and how the file was read."""
    if check.table["simulated"]:
        display.warning(check.table["simulated"])
    *sentences, last = check.sentences
    for sentence in sentences:
        display.text(sentence)
    display.text(f"{last.removesuffix('.')}: --open" if check.disagreements else last)
    typer.echo()
    # The sentences have the numbers of the rows, whichever judge was chosen.
    print_judge_rows({**check.table, "chosen_quality": None})
    if check.result["missing"]:
        typer.echo("What the file does not support:")
        for line in check.result["missing"]:
            display.text(f"- {line}")
        typer.echo()
    typer.echo(check.reading.roles_text())


def _check_page(out: Path) -> None:
    if out.suffix not in PAGES:
        raise DesignError(unknown("kind of page", out.suffix, PAGES), choices=PAGES)
    if not out.parent.is_dir():
        raise NotFoundError(f"there is no folder {out.parent}")


def _open(check: "Check", out: Path | None) -> None:
    """Opens the page in the browser, from a temporary file if it has none of its own."""
    from judge_gym.analysis.report.page import slug
    from judge_gym.recorded.check_page import DISAGREEMENTS

    page = out
    if page is None or page.suffix != ".html":
        folder = Path(tempfile.mkdtemp(prefix="judge-gym-"))
        page = folder / f"{Path(check.reading.recording.source).stem or 'check'}.html"
        page.write_text(check.page().html(), encoding="utf-8")
    address = page.resolve().as_uri()
    opened = webbrowser.open(f"{address}#{slug(DISAGREEMENTS)}")
    typer.echo(f"{'opened' if opened else 'no browser; open'} {page}", err=True)
