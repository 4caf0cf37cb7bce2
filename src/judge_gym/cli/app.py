"""The command-line application: its global options, and the lab that a command opens."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from judge_gym.records.environment import PROFILE, WORKER_LOG

if TYPE_CHECKING:
    from judge_gym.lab import Lab

FAILED, BAD_INPUT, STOPPED, UNDECIDED, INTERRUPTED = 1, 2, 3, 4, 130
"""Exit codes."""
FIRST_LINE = 200
"""Characters of a command's help that the list of commands shows; lines are wrapped."""
LIMITS = ("rpm", "tpm", "concurrency")
CALLING = frozenset(
    "demo run resume retry retune worker evidence rubric score swap probe benchmark suite"
    " schedule analyze plan lab mcp".split()
)
"""Commands that the limits act on."""


class SectionedGroup(typer.core.TyperGroup):
    """The commands, whose help lists them under what a user wants."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes a list for each section. A command in no section is hidden."""
        from judge_gym.cli import SECTIONS

        width = max(map(len, self.commands), default=0)
        for title, section in SECTIONS.items():
            names = [entry.partition(":")[0] for entry in section.split()]
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(FIRST_LINE))
                for name in names
                if name in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


app = typer.Typer(
    cls=SectionedGroup,
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
    context: typer.Context,
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
        bool, typer.Option("--version", help="Print the version and its build.", is_eager=True)
    ] = False,
) -> None:
    """Set the options of every command."""
    if version:
        from judge_gym.records.build import build
        from judge_gym.records.build import version as number

        typer.echo(f"judge-gym {number()} ({build()})")
        raise typer.Exit
    if profile is not None:
        os.environ[PROFILE] = profile  # also for workers that this command starts
    if log is not None:
        os.environ[WORKER_LOG] = str(log.absolute())
    settings.update(db=db, concurrency=concurrency, rpm=rpm, tpm=tpm)
    if limits() and context.invoked_subcommand not in {None, *CALLING}:
        notes(f"{_named_limits()} has no effect on {context.invoked_subcommand}")


def limits() -> dict[str, Any]:
    """The limits that were given before the command."""
    return {name: settings[name] for name in LIMITS if settings.get(name)}


def _named_limits() -> str:
    return " and ".join(f"--{name}" for name in limits())


def note_unused_limits(target: str) -> None:
    """Notes that limits have no effect on the calls that a worker, started before, will make."""
    if limits():
        notes(
            f"{_named_limits()} has no effect on a worker with limits of its own; change those of "
            f"the runs with: judge-gym {' '.join(limit_options())} retune {target}"
        )


def limit_options() -> tuple[str, ...]:
    """Writes the limits as options, for a worker that this command starts."""
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
