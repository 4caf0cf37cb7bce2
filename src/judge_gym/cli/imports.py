"""The command that imports verdicts and labels that others recorded."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab
from judge_gym.cli.options import AsJson
from judge_gym.errors import JudgeGymError


@app.command("import")
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
) -> None:
    """Import verdicts and labels that others recorded, all or none; asks and pays nothing.

    Then judges, report, export and the lab show them as they show own runs, and NAME.yaml asks
    other judges about the same items.
    """
    with open_lab() as lab:
        imported = lab.recordings.import_file(format, path, study)
        file = _write_study(Path(f"{study}.yaml"), imported.file)
        if json:
            added = {name: value for name, value in imported._asdict().items() if name != "file"}
            display.print_json({**added, "file": None if file is None else str(file)})
            return
        labels = f", {imported.labels:,} labels of {_listed(imported.raters)}" * bool(
            imported.labels
        )
        typer.echo(
            f"{_listed(imported.sources)} ({imported.format}): {imported.verdicts:,} verdicts of "
            f"{_listed(imported.judges)} on {imported.items:,} items{labels}"
        )
        added_words = ", ".join(f"{n:,} {name}" for name, n in imported.new.items() if n)
        typer.echo(f"new in {study}: {added_words}" if added_words else "nothing new")
        notes(*imported.notes)
        try:
            display.text(lab.reports.judges(study)["sentence"])
        except JudgeGymError as error:  # such as one without a single verdict
            notes(error.message)
    typer.echo(f"see more with: judge-gym judges {shlex.quote(study)}", err=True)
    if file is not None:
        typer.echo(
            f"ask other judges about the same items: name them in {file}, then judge-gym plan "
            f"{file}",
            err=True,
        )


def _write_study(file: Path, text: str) -> Path | None:
    """Writes the study file if it has a text and is not there yet."""
    if text and not file.exists():
        file.write_text(text, encoding="utf-8")
    return file if text else None


def _listed(names: tuple[str, ...], most: int = 5) -> str:
    """Lists the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
