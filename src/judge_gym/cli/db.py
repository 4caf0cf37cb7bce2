"""Verbs on the database itself: its schema, its data, and what it is for."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.app import AsJson, app, notes, settings

if TYPE_CHECKING:
    from judge_gym.store.deployment import Deployment

db_app = typer.Typer(help="The database.", no_args_is_help=True)
app.add_typer(db_app, name="db")
NAP = 2.0
"""Seconds between two looks of a watcher."""


@db_app.command("upgrade")
def upgrade() -> None:
    """Expand the schema to this version's; what is there stays as it is."""
    from judge_gym.store.database import open_database

    _moved(*open_database(settings["db"], prepare=False).upgrade())


@db_app.command("migrate")
def migrate(
    batch: Annotated[int, typer.Option(min=1, max=100_000, help="Rows of a transaction.")] = 1000,
    json: AsJson = False,
) -> None:
    """Change the data as this version wants it, batch by batch; the same command goes on."""
    from judge_gym.cli import display

    def watch(stand: Mapping[str, Any]) -> None:
        if not json:
            left = "" if stand["left"] is None else f", {stand['left']:,} left"
            notes(f"{stand['name']}: {stand['changed']:,} changed{left}")

    changed = _deployment().migrate(size=batch, watch=watch)
    if json:
        display.print_json({"changed": changed})
    else:
        typer.echo(f"{changed:,} rows changed")


@db_app.command("contract")
def contract() -> None:
    """Tighten the schema; refused while a row would not fit."""
    from judge_gym.store.database import open_database

    _moved(*open_database(settings["db"], prepare=False, create=False).upgrade(contract=True))


@db_app.command("mark")
def mark(profile: Annotated[str, typer.Argument(help="dev or prod.")]) -> None:
    """Say what the database is for; production refuses writes of sessions that do not say so."""
    _deployment().mark(profile)
    typer.echo(f"the database is {profile}")


@db_app.command("status")
def status(
    watch: Annotated[bool, typer.Option("--watch", help="Look again until all is done.")] = False,
    json: AsJson = False,
) -> None:
    """Show the schema, what is pending, and how far changes of data are."""
    from judge_gym.cli import display

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
        time.sleep(NAP)


def _deployment() -> "Deployment":
    from judge_gym.store.database import open_database
    from judge_gym.store.deployment import Deployment

    return Deployment(open_database(settings["db"], prepare=False, create=False))


def _moved(before: str | None, after: str) -> None:
    same = f"schema {after} is current"
    typer.echo(same if before == after else f"schema {before or 'none'} -> {after}")
