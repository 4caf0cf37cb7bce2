"""Commands over frozen, ordered sets of evidence: pool freeze, list, show and diff."""

from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, open_lab, read_lab
from judge_gym.cli.evidence import Window
from judge_gym.cli.options import NONE, AsJson

pool_app = typer.Typer(help="Frozen, ordered sets of evidence.", no_args_is_help=True)
app.add_typer(pool_app, name="pool")


@pool_app.command("freeze")
def freeze(
    name: Annotated[str, typer.Argument(help="The pool's name, which is permanent.")],
    files: Annotated[list[str], typer.Argument(help="Files, instead of --window.")] = NONE,
    window: Window = None,
    experiment: Annotated[
        str | None, typer.Option(metavar="TAG", help="The evidence that this experiment judges.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Freeze what a window holds, for studies to name: `evidence: {usa: {pool: NAME}}`."""
    with open_lab() as lab:
        pool = lab.evidence.freeze_pool(
            name, window_id=window, files=files, experiment_tag=experiment
        )
    if json:
        display.print_json(pool)
    else:
        typer.echo(f"froze {name}: {pool['items']} items, {pool['hash'][:12]}")


@pool_app.command("list")
def list_pools(json: AsJson = False) -> None:
    """List the frozen pools."""
    with read_lab() as lab:
        rows = lab.evidence.list_pools()
    empty = "no pools yet; freeze one with: judge-gym pool freeze NAME --window ID"
    shown = rows if json else [{**row, "hash": row["hash"][:12]} for row in rows]
    display.show_rows(shown, json, empty=empty)


@pool_app.command("show")
def show_pool(name: str, json: AsJson = False) -> None:
    """List the items of a frozen pool."""
    with read_lab() as lab:
        rows = lab.evidence.list_pool_items(name)
    display.show_rows(rows, json, compact=True)


@pool_app.command("diff")
def diff(before: str, after: str, json: AsJson = False) -> None:
    """Show how two frozen pools differ."""
    with read_lab() as lab:
        difference = lab.evidence.diff_pools(before, after)
    if json:
        display.print_json(difference)
        return
    if difference["same"] and not difference["truths_changed"]:
        typer.echo(f"{before} and {after} are the same pool")
        return
    order = ", in another order" if difference["reordered"] else ""
    typer.echo(f"{difference['shared']} items in both{order}")
    display.table(f"only in {after}", difference["added"], compact=True)
    display.table(f"only in {before}", difference["removed"], compact=True)
    display.table("with another known answer", difference["truths_changed"], compact=True)
