"""Commands over the database itself: its schema, its data migrations and its profile."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, read_lab, settings
from judge_gym.cli.options import AsJson

if TYPE_CHECKING:
    from judge_gym.store import Database
    from judge_gym.store.deployment import Deployment

db_app = typer.Typer(help="The database.", no_args_is_help=True)
app.add_typer(db_app, name="db")
WATCH_SECONDS = 2.0
"""Seconds between two updates of `status --watch`."""


@db_app.command("upgrade")
def upgrade() -> None:
    """Expand the schema to this version's; the data stay unchanged."""
    _show_revision(*_database(create=True).upgrade())


@db_app.command("migrate")
def migrate(
    batch: Annotated[int, typer.Option(min=1, max=100_000, help="Rows per transaction.")] = 1000,
    json: AsJson = False,
) -> None:
    """Migrate the data to this version in batches; the same command continues."""

    def watch(state: Mapping[str, Any]) -> None:
        if not json:
            left = "" if state["left"] is None else f", {state['left']:,} left"
            notes(f"{state['name']}: {state['changed']:,} changed{left}")

    changed = _deployment().migrate(size=batch, watch=watch)
    if json:
        display.print_json({"changed": changed})
    else:
        typer.echo(f"{changed:,} rows changed")


@db_app.command("contract")
def contract() -> None:
    """Tighten the schema; refused while a row would violate it."""
    _show_revision(*_database().upgrade(contract=True))


@db_app.command("mark")
def mark(profile: Annotated[str, typer.Argument(help="dev or prod.")]) -> None:
    """Mark the database as dev or prod; prod refuses writes without the profile prod."""
    _deployment().mark(profile)
    typer.echo(f"the database is marked {profile}")


@db_app.command("adopt")
def adopt(
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel the queued runs instead of continuing them.")
    ] = False,
) -> None:
    """Confirm that this copy of a database is used: its queued runs may then be paid for."""
    with read_lab() as lab:
        queued = display.plural(lab.runs.adopt(cancel=cancel), "queued run")
    typer.echo(f"{queued} cancelled" if cancel else f"{queued} will be continued by workers")


@db_app.command("status")
def status(
    watch: Annotated[
        bool, typer.Option("--watch", help="Update until everything is done.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the schema, pending migrations, and the progress of data migrations."""
    while True:
        found = _deployment().status()
        if json:
            display.print_json(found)
        else:
            typer.echo(f"{found['database']} ({found['profile']})")
            typer.echo(f"schema {found['revision'] or 'none'}, newest {found['newest']}")
            for name in ("pending", "data"):
                if found[name]:
                    display.table(name, found[name])
        if not watch or all(row["status"] == "finished" for row in found["data"]):
            return
        time.sleep(WATCH_SECONDS)


def _database(*, create: bool = False) -> "Database":
    from judge_gym.store.database import open_database

    return open_database(settings["db"], prepare=False, create=create)


def _deployment() -> "Deployment":
    from judge_gym.store.deployment import Deployment

    return Deployment(_database())


def _show_revision(before: str | None, after: str) -> None:
    current = f"schema {after} is current"
    typer.echo(current if before == after else f"schema {before or 'none'} -> {after}")
