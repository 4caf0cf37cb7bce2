"""The command that revises a rubric or a prompt from people's labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, read_lab
from judge_gym.cli.options import NONE, AsJson, Budget, parse_pairs
from judge_gym.errors import DesignError

if TYPE_CHECKING:
    from judge_gym.records.improvement import Improvement, ProposalRow
    from judge_gym.records.judge_table import Quantity


@app.command()
def improve(
    study: Annotated[str, typer.Argument(help="A study file, or a study's name.")],
    proposals: Annotated[
        int, typer.Option(min=1, max=20, help="How many are made; more need a larger gain each.")
    ] = 3,
    setup: Annotated[
        str | None,
        typer.Option(
            "--setup", "--judge", metavar="NAME", help="A setup, or a judge; default: best on dev."
        ),
    ] = None,
    budget: Budget = NONE,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the accepted rubric (JSON) or prompt."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Have the assistant revise a rubric from labels; test on items that it never saw.

    The same command continues it, and pays for nothing twice.
    """
    if out is not None and not out.parent.is_dir():
        raise DesignError(f"--out {out}: there is no folder {out.parent}")
    with read_lab() as lab, display.run_progress(quiet=json) as watch:
        result = lab.improvements.improve(
            study,
            proposals=proposals,
            setup=setup,
            budget=parse_pairs("--budget", budget),
            watch=watch,
        )
    accepted = result["accepted"]
    if out is not None and accepted is not None:
        out.write_text(accepted, encoding="utf-8")
    if json:
        display.print_json(result)
        return
    _show(result)
    if accepted is not None:
        what = f"wrote {out}" if out else f"--out FILE writes the {result['revised']}"
        typer.echo(f"{what}; use it in a study of your own", err=True)


def _show(result: "Improvement") -> None:
    for row in result["rows"]:
        typer.echo(f"proposal {row['number']}: {_outcome(row)}")
        for line in row["diff"].splitlines():
            typer.echo(f"  {line}")
    if result["rows"]:
        typer.echo(
            f"dev: {result['dev']} labelled items; a proposal is accepted if its gain is above 0 "
            f"by the lower limit of {1 - result['alpha']:.2%} (.05 / {result['compared']})"
        )
    display.text(result["sentence"])
    notes(*result["notes"])
    if (tested := result["tested"]) is not None:
        typer.echo(f"the test part was used {display.times(tested['uses'])}")


def _outcome(row: "ProposalRow") -> str:
    """Says how a proposal did on dev."""
    status = row["status"].replace("_", " ")
    return f"{status}{_gain(row['difference'])}"


def _gain(difference: "Quantity | None") -> str:
    if difference is None:
        return ""
    low = difference["low"]
    limit = difference.get("withheld", "no limit") if low is None else f"at least {low:+.3f}"
    return f", {difference['value']:+.3f} on dev ({limit}; {difference['n']} items)"
