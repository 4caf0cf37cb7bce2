"""Commands over the database itself: schema and profile, tokens for its use over HTTP, ledger."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab, read_lab, settings
from judge_gym.cli.options import AsJson
from judge_gym.errors import DesignError, unknown

if TYPE_CHECKING:
    from judge_gym.store import Database

db_app = typer.Typer(help="The database.", no_args_is_help=True)
app.add_typer(db_app, name="db")
WATCH_SECONDS = 2.0
"""Seconds between two updates of `status --watch`."""


@db_app.command("upgrade")
def upgrade() -> None:
    """Expand the schema to this version's, without changing data."""
    with _database(create=True) as database:
        _show_revision(*database.upgrade())


@db_app.command("migrate")
def migrate(
    batch: Annotated[int, typer.Option(min=1, max=100_000, help="Rows per transaction.")] = 1000,
    json: AsJson = False,
) -> None:
    """Migrate the data to this version in batches, from where it last stopped."""
    from judge_gym.store.deployment import Deployment

    def watch(state: Mapping[str, Any]) -> None:
        if not json:
            left = "" if state["left"] is None else f", {state['left']:,} left"
            notes(f"{state['name']}: {state['changed']:,} changed{left}")

    with _database() as database:
        changed = Deployment(database).migrate(size=batch, watch=watch)
    if json:
        display.print_json({"changed": changed})
    else:
        typer.echo(f"{changed:,} rows changed")


@db_app.command("contract")
def contract() -> None:
    """Tighten the schema, unless a row would violate it."""
    with _database() as database:
        database.refuse_empty()
        _show_revision(*database.upgrade(contract=True))


@db_app.command("mark")
def mark(profile: Annotated[str, typer.Argument(help="dev or prod.")]) -> None:
    """Mark the database as dev or prod. prod refuses writes without the profile prod."""
    from judge_gym.store.deployment import Deployment

    with _database() as database:
        Deployment(database).mark(profile)
    typer.echo(f"the database is marked {profile}")


@db_app.command("adopt")
def adopt(
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel the queued runs instead of continuing them.")
    ] = False,
) -> None:
    """Confirm that this copy of a database is used: its queued runs may then be paid for."""
    with read_lab() as lab:
        queued = display.plural(lab.workers.adopt(cancel=cancel), "queued run")
    typer.echo(f"{queued} cancelled" if cancel else f"{queued} will be continued by workers")


@db_app.command("status")
def status(
    watch: Annotated[
        bool, typer.Option("--watch", help="Update until everything is done.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the schema, pending migrations, and the progress of data migrations."""
    from judge_gym.store.deployment import Deployment

    while True:
        with _database() as database:
            state = Deployment(database).status()
        if json:
            display.print_json(state)
        else:
            typer.echo(f"{state['database']} ({state['profile']})")
            typer.echo(f"schema {state['revision'] or 'none'}, newest {state['newest']}")
            if state["serves"]:
                typer.echo(f"it serves versions from schema {state['serves']} on")
            _show_identity(state["identity"])
            for name in ("pending", "data"):
                if state[name]:
                    display.table(name, state[name])
        if not watch or all(row["status"] == "finished" for row in state["data"]):
            return
        time.sleep(WATCH_SECONDS)


def _show_identity(identity: Mapping[str, Any] | None) -> None:
    """Prints what differs in a copy from the places where the database was used."""
    if identity is None or not identity["copy"]:
        return
    typer.echo("it is a copy, or was moved: nothing is paid here before 'judge-gym db adopt'")
    typer.echo(f"  here: {', '.join(identity['here'].values())}")
    for location in identity["known"]:
        typer.echo(f"  used: {', '.join(location.values())}")


@contextmanager
def _database(*, create: bool = False) -> Iterator["Database"]:
    from judge_gym.store.database import open_database

    database = open_database(settings["db"], prepare=False, create=create)
    try:
        yield database
    finally:
        database.engine.dispose()


def _show_revision(before: str | None, after: str) -> None:
    current = f"schema {after} is current"
    typer.echo(current if before == after else f"schema {before or 'none'} -> {after}")


# --- tokens --------------------------------------------------------------------------------------

token_app = typer.Typer(help="Tokens for using the lab over HTTP.", no_args_is_help=True)
app.add_typer(token_app, name="token")

TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Who or what uses it.")]


@token_app.command("create")
def create(
    name: TokenName,
    scope: Annotated[
        str, typer.Option(help="read, or write: also start, change and delete.")
    ] = "read",
    json: AsJson = False,
) -> None:
    """Create a token and print it, once: only its hash is stored."""
    from judge_gym.store import SCOPES

    valid_scope = next((candidate for candidate in SCOPES if candidate == scope), None)
    if valid_scope is None:
        raise DesignError(unknown("scope", scope, SCOPES), choices=SCOPES)
    with open_lab() as lab:
        token, secret = lab.tokens.create(name, valid_scope)
    if json:
        display.print_json({**asdict(token), "token": secret})
        return
    typer.echo(secret)
    notes(f"the token {name!r} may {scope}; store it now, since it is not shown again")


@token_app.command("list")
def list_tokens(json: AsJson = False) -> None:
    """List tokens with their scope and last use, but not their secrets."""
    with read_lab() as lab:
        rows = [asdict(token) for token in lab.tokens.list()]
    empty = "no tokens yet; create one with: judge-gym token create NAME"
    display.show_rows(rows, json, empty=empty)


@token_app.command("revoke")
def revoke(name: TokenName, json: AsJson = False) -> None:
    """Revoke a token, at once and permanently."""
    with read_lab() as lab:
        lab.tokens.revoke(name)
    display.print_json({"revoked": name}) if json else typer.echo(f"revoked {name}")


# --- ledger --------------------------------------------------------------------------------------

ledger_app = typer.Typer(help="The ledger of calls.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")


@ledger_app.command("show")
def show(call_id: int, json: AsJson = False) -> None:
    """Print the messages of a call and every attempt at an answer."""
    with read_lab() as lab:
        messages, attempts = lab.pages.transcript(call_id)
    if json:
        request_messages = [
            {"role": message.role, "content": message.content} for message in messages
        ]
        display.print_json({"call": call_id, "messages": request_messages, "attempts": attempts})
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
    """Add the calls of a file, all or none, and keep existing answers."""
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
