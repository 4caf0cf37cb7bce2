"""The command that shows what judges answered, word for word."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any, get_args

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, read_lab
from judge_gym.cli.options import AsJson, Target
from judge_gym.errors import DesignError, unknown
from judge_gym.records import Status


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
    shown = display.console()
    about = f"repeat {row['replicate']}, {read}; shown as {row['display']}; call {row['call_id']}"
    shown.print(
        f"--- sample {row['sample']}: {row['judge']} on {row['evidence_title']!r}", style="bold"
    )
    shown.print(f"    {row['tag']}, {about}", style="dim")
    text = row["text"] if row["text"] is not None else row["error"] or ""
    # Control characters could change what the terminal shows.
    safe = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    shown.print(f"{safe}\n", soft_wrap=True)
