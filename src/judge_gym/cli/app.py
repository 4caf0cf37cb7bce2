"""The command-line application: its global options, and the lab that a command opens."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from judge_gym.lab import Lab

FAILED, BAD_INPUT, STOPPED, UNDECIDED, INTERRUPTED = 1, 2, 3, 4, 130
"""Exit codes."""
LIMITS = ("rpm", "tpm", "concurrency")

app = typer.Typer(
    help="A laboratory for LLM judges: every choice of the instrument is an axis.",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
settings: dict[str, Any] = {"db": None}
"""The values of the global options."""


@app.callback()
def options(
    db: Annotated[
        str | None,
        typer.Option(
            help="Database URL; default: JUDGE_GYM_DATABASE_URL, or the file .judge-gym/lab.db."
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="dev or prod; default: JUDGE_GYM_PROFILE. A production database requires prod."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum calls in flight; default: 64 to each endpoint."),
    ] = None,
    rpm: Annotated[
        int | None,
        typer.Option(min=1, help="Requests per minute, instead of each endpoint's own limit."),
    ] = None,
    tpm: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens per minute, instead of each endpoint's own limit."),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The log of workers in the background; default: lab.worker.log beside the "
            "database, with Postgres .judge-gym/worker.log.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True)
    ] = False,
) -> None:
    """Set the options of every command."""
    if version:
        from importlib import metadata

        typer.echo(f"judge-gym {metadata.version('judge-gym')}")
        raise typer.Exit
    if profile is not None:
        os.environ["JUDGE_GYM_PROFILE"] = profile  # also for workers that this command starts
    if log is not None:
        os.environ["JUDGE_GYM_WORKER_LOG"] = str(log.absolute())
    settings.update(db=db, concurrency=concurrency, rpm=rpm, tpm=tpm)


def limits() -> dict[str, Any]:
    """Returns the limits that were given before the command."""
    return {name: settings[name] for name in LIMITS if settings.get(name)}


def limit_options() -> tuple[str, ...]:
    """Returns the limits as options, for a worker that this command starts."""
    return tuple(word for name, limit in limits().items() for word in (f"--{name}", str(limit)))


def open_lab(url: str | None = None, *, create: bool = True) -> "Lab":
    """Opens the lab that the command names, and creates it if it does not exist."""
    from judge_gym.lab import Lab
    from judge_gym.models.model_card import Limits

    return Lab.open(url or settings["db"], limits=Limits(**limits()), create=create)


def read_lab() -> "Lab":
    """Opens a lab that must exist, so that a typo does not create one."""
    return open_lab(create=False)


def notes(*notes: str) -> None:
    """Prints remarks on standard error."""
    for note in notes:
        typer.echo(f"note: {note}", err=True)
