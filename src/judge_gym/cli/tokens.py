"""Commands over the tokens for using the lab over HTTP: token create, list and revoke."""

from dataclasses import asdict
from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab, read_lab
from judge_gym.cli.options import AsJson
from judge_gym.errors import DesignError, unknown

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

    chosen = next((known for known in SCOPES if known == scope), None)
    if chosen is None:
        raise DesignError(unknown("scope", scope, SCOPES), choices=SCOPES)
    with open_lab() as lab:
        token, secret = lab.admin.create_token(name, chosen)
    if json:
        display.print_json({**asdict(token), "token": secret})
        return
    typer.echo(secret)
    notes(f"the token {name!r} may {scope}; store it now, since it is not shown again")


@token_app.command("list")
def list_tokens(json: AsJson = False) -> None:
    """List tokens with their scope and last use; secrets are not stored."""
    with read_lab() as lab:
        rows = [asdict(token) for token in lab.admin.list_tokens()]
    empty = "no tokens yet; create one with: judge-gym token create NAME"
    display.show_rows(rows, json, empty=empty)


@token_app.command("revoke")
def revoke(name: TokenName, json: AsJson = False) -> None:
    """Revoke a token, at once and permanently."""
    with read_lab() as lab:
        lab.admin.revoke_token(name)
    display.print_json({"revoked": name}) if json else typer.echo(f"revoked {name}")
