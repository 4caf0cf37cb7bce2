"""The command that lists the axes."""

from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app
from judge_gym.cli.options import AsJson

COLUMNS = ("path", "levels", "open", "default", "question", "cite")


@app.command()
def axes(
    json: AsJson = False,
    markdown: Annotated[bool, typer.Option(help="Print the page of the docs.")] = False,
    schema: Annotated[bool, typer.Option(help="Print the JSON Schema of a design.")] = False,
) -> None:
    """List every knob with its levels and its research question."""
    from judge_gym.axes import Design
    from judge_gym.cli import reference

    knobs = Design.knobs().values()
    if schema:
        display.print_json(Design.model_json_schema())
    elif markdown:
        typer.echo(reference.axes_page(), nl=False)
    elif json:
        display.print_json([{name: getattr(knob, name) for name in COLUMNS} for knob in knobs])
    else:
        rows = [
            {
                "knob": knob.path,
                "levels (default first)": reference.levels(knob),
                "question": knob.question,
            }
            for knob in knobs
        ]
        display.table("", rows)
