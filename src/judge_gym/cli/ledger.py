"""Commands over the ledger of calls: ledger show, export and import."""

from pathlib import Path
from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab, read_lab
from judge_gym.cli.options import AsJson

ledger_app = typer.Typer(help="The ledger of calls.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")


@ledger_app.command("show")
def show(call_id: int, json: AsJson = False) -> None:
    """Print the messages of a call and every attempt at an answer."""
    with read_lab() as lab:
        messages, attempts = lab.admin.transcript(call_id)
    if json:
        asked = [{"role": message.role, "content": message.content} for message in messages]
        display.print_json({"call": call_id, "messages": asked, "attempts": attempts})
        return
    for message in messages:
        typer.echo(f"--- {message.role}\n{message.content}\n")
    for row in attempts:
        typer.echo(
            f"--- attempt {row['id']} ({row['reported_model'] or row['error']}, {row['finish']})"
            f"\n{row['body'] or ''}\n"
        )


@ledger_app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="File to write, such as study.jsonl.gz.")],
    target: Annotated[
        str | None, typer.Argument(help="Only the calls of this study or experiment.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Write calls with every attempt to a file that another lab can import."""
    with read_lab() as lab:
        exported = lab.admin.export_ledger(file, target)
    if json:
        display.print_json({"file": str(file), **exported._asdict()})
        return
    typer.echo(
        f"wrote {exported.calls:,} calls with {exported.attempts:,} attempts, "
        f"{exported.texts:,} texts and {exported.evidence:,} items of searched or frozen evidence "
        f"to {file}"
    )


@ledger_app.command("import")
def import_calls(
    file: Annotated[Path, typer.Argument(help="A file that 'ledger export' wrote.")],
    json: AsJson = False,
) -> None:
    """Add the calls of a file, all or none; existing answers are kept."""
    with open_lab() as lab:
        imported = lab.admin.import_ledger(file)
    if json:
        display.print_json({"file": str(file), **imported._asdict()})
        return
    typer.echo(
        f"{imported.calls:,} calls: {imported.new:,} new, {imported.answered:,} answered here "
        f"before; {imported.attempts:,} attempts added"
    )
    if imported.differing:
        notes(
            f"{imported.differing:,} calls have another answer in {file}; the one in this lab "
            "is kept"
        )
