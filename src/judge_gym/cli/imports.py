"""The command that imports verdicts and labels that others recorded."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab
from judge_gym.cli.file_options import read_table_file, takes_file_options
from judge_gym.cli.options import AsJson
from judge_gym.errors import DesignError, JudgeGymError
from judge_gym.records.numbers import plural

if TYPE_CHECKING:
    from judge_gym.lab import Lab
    from judge_gym.lab.recordings import ImportedStudy
    from judge_gym.recorded.options import FileOptions

AUTO, TABLE = "auto", "file"
"""Formats whose files may be tables, which options describe."""


@app.command("import")
@takes_file_options
def import_recorded(
    format: Annotated[
        str,
        typer.Argument(help="How it was recorded: auto, or a format that docs/import.md lists."),
    ],
    path: Annotated[Path, typer.Argument(help="The file or folder.")],
    study: Annotated[
        str, typer.Option(metavar="NAME", help="The study that its verdicts and labels join.")
    ],
    json: AsJson = False,
    *,
    file_options: "FileOptions",
) -> None:
    """Import verdicts and labels that others recorded, all or none, without paying.

    Then judges, report, export and the lab show them as they show own runs, and NAME.yaml asks
    other judges about the same items. The options are those of check, for tables.
    """
    with open_lab() as lab:
        imported = _import(lab, format, path, study, file_options)
        file = _write_study(Path(f"{study}.yaml"), imported.file)
        if json:
            added = {name: value for name, value in imported._asdict().items() if name != "file"}
            display.print_json({**added, "file": None if file is None else str(file)})
            return
        labels = f", {imported.labels:,} labels of {_first_names(imported.raters)}" * bool(
            imported.labels
        )
        typer.echo(
            f"{_first_names(imported.sources)} ({imported.format}): "
            f"{imported.verdicts:,} verdicts of {_first_names(imported.judges)} "
            f"on {imported.items:,} items{labels}"
        )
        added_words = ", ".join(
            plural(n, name.removesuffix("s")) for name, n in imported.new.items() if n
        )
        typer.echo(f"new in {study}: {added_words}" if added_words else "nothing new")
        notes(*imported.notes)
        try:
            display.text(lab.results.judges(study)["sentence"])
        except JudgeGymError as error:  # such as one without a single verdict
            notes(error.message)
    typer.echo(f"see more with: judge-gym judges {shlex.quote(study)}", err=True)
    if file is not None:
        typer.echo(
            f"ask other judges about the same items: name them in {file}, then judge-gym plan "
            f"{file}",
            err=True,
        )


def _import(
    lab: "Lab", format: str, path: Path, study: str, options: "FileOptions"
) -> "ImportedStudy":
    """Imports a log by its format, and a table as its options and the user's answers say."""
    if format not in (AUTO, TABLE):
        if options.about_file or options.positive is not None:
            raise DesignError(
                f"{format} says itself what its fields are; options such as --human, --judge or "
                "--score are for tables: judge-gym import file"
            )
        return lab.recordings.import_file(format, path, study)
    if format == AUTO and not (options.about_file or lab.recordings.format_of(path) == TABLE):
        return lab.recordings.import_file(format, path, study)
    reading = read_table_file(path, options)
    reading.refuse_without_verdicts()
    return lab.recordings.add([reading.recording], study)


def _write_study(file: Path, text: str) -> Path | None:
    """Writes the study file if it has a text and is not there yet."""
    if text and not file.exists():
        file.write_text(text, encoding="utf-8")
    return file if text else None


def _first_names(names: tuple[str, ...], most: int = 5) -> str:
    """Lists the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
