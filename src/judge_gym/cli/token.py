"""Verbs about who may use the lab over the network."""

from dataclasses import asdict
from typing import Annotated

import typer

from judge_gym.cli.app import AsJson, app, notes, open_lab, read_lab
from judge_gym.errors import DesignError, unknown

token_app = typer.Typer(help="Tokens of those who use the lab over HTTP.", no_args_is_help=True)
app.add_typer(token_app, name="token")

TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, or what for.")]


@token_app.command("create")
def create(
    name: TokenName,
    scope: Annotated[
        str, typer.Option(help="read, or write: also start, change and delete.")
    ] = "read",
    json: AsJson = False,
) -> None:
    """Make a token and print it, once: only its hash is kept."""
    from judge_gym.cli import display
    from judge_gym.store import SCOPES

    chosen = next((known for known in SCOPES if known == scope), None)
    if chosen is None:
        raise DesignError(unknown("scope", scope, SCOPES), choices=SCOPES)
    with open_lab() as lab:
        made, secret = lab.store.tokens.create(name, chosen)
    if json:
        display.print_json({**asdict(made), "token": secret})
        return
    typer.echo(secret)
    notes(f"the token {name!r} may {scope}; it is shown this once, so keep it now")


@token_app.command("list")
def list_tokens(json: AsJson = False) -> None:
    """List tokens with their scope and last use; the tokens themselves are kept nowhere."""
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = [asdict(token) for token in lab.store.tokens.listed()]
    if json:
        display.print_json(rows)
    elif rows:
        display.table("", rows)
    else:
        typer.echo("no tokens yet; make one with: judge-gym token create NAME")


@token_app.command("revoke")
def revoke(name: TokenName, json: AsJson = False) -> None:
    """End a token, at once and for good."""
    from judge_gym.cli import display

    with read_lab() as lab:
        lab.store.tokens.revoke(name)
    display.print_json({"revoked": name}) if json else typer.echo(f"revoked {name}")
