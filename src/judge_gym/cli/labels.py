"""Commands over people's labels of the evidence: labels import and list."""

from pathlib import Path
from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, open_lab, read_lab
from judge_gym.cli.options import AsJson

labels_app = typer.Typer(help="People's labels of the evidence.", no_args_is_help=True)
app.add_typer(labels_app, name="labels")


@labels_app.command("import")
def import_labels(
    file: Annotated[
        Path, typer.Argument(help="A CSV file with the columns item, rater and stage.")
    ],
    study: Annotated[
        str | None, typer.Option(help="The study or tag whose items were labelled.")
    ] = None,
    concept: Annotated[str, typer.Option(help="The concept that was judged; default: any.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace earlier labels that differ.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Import people's labels, all or none; an item is a number, a URL, an id or a title."""
    with open_lab() as lab:
        counts = lab.labels.import_file(file, target=study, concept=concept, replace=replace)
    if json:
        display.print_json(counts)
    else:
        typer.echo(", ".join(f"{count} {kind}" for kind, count in counts.items()) + " labels")


@labels_app.command("list")
def list_labels(json: AsJson = False) -> None:
    """List people's labels."""
    with read_lab() as lab:
        rows = lab.labels.list()
    empty = "no labels yet; import some with: judge-gym labels import FILE.csv"
    display.show_rows(rows, json, empty=empty)
