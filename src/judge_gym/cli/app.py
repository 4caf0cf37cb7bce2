"""The application, and what its verbs share: the lab, `--set`, progress, how a command ends."""

import os
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from typer.core import TyperGroup

from judge_gym.errors import DesignError
from judge_gym.records import bare_endpoint

if TYPE_CHECKING:
    from judge_gym.engine import Result, StagePlan
    from judge_gym.lab import Lab
    from judge_gym.lab.collection import CollectionResult


class StageGroup(TyperGroup):
    """A stage's verb takes a target at once: `rubric STUDY` is `rubric make STUDY`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Put `make` before what is no command of the group."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["make", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Options before the target belong to `make` too."""
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    help="A laboratory for LLM judges: every choice of the instrument is an axis.",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
LISTED = 12
"""So many finished experiments are listed one by one; `status` always lists them."""
PRINTED_ROWS = 20
"""A longer table is for the page."""
FINISHED = ("complete", "complete-with-failures")
settings: dict[str, Any] = {"db": None}

Target = Annotated[
    str, typer.Argument(help="A study file, a study's name, or an experiment's tag.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Set = Annotated[
    list[str],
    typer.Option("--set", metavar="GROUP.KNOB=LEVEL", help="Override the study's base design."),
]
Series = Annotated[
    str | None, typer.Option(help="Draw scores and probes afresh under this name (test-retest).")
]
Samples = Annotated[
    int | None, typer.Option(min=1, help="Replicates per cell, in the place of the study's.")
]
Private = Annotated[
    bool,
    typer.Option("--allow-private", help="Fetch from loopback and private addresses, too."),
]
NoSet: list[str] = []


@app.callback()
def options(
    db: Annotated[
        str | None,
        typer.Option(
            help="Database URL; else JUDGE_GYM_DATABASE_URL, else .judge-gym/lab.db here."
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="dev or prod; else JUDGE_GYM_PROFILE. A production database wants to hear prod."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Calls in flight at most; else 64 to each endpoint."),
    ] = None,
    rpm: Annotated[
        int | None,
        typer.Option(min=1, help="Requests a minute, in the place of each endpoint's own limit."),
    ] = None,
    tpm: Annotated[int | None, typer.Option(min=1, help="Tokens a minute, likewise.")] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True)
    ] = False,
) -> None:
    """Options of every verb."""
    if version:
        typer.echo(f"judge-gym {metadata.version('judge-gym')}")
        raise typer.Exit
    if profile is not None:
        os.environ["JUDGE_GYM_PROFILE"] = profile  # for workers that are begun here, too
    settings.update(db=db, concurrency=concurrency, rpm=rpm, tpm=tpm)


def limit_options() -> tuple[str, ...]:
    """The limits that stand before the verb, for a worker that is begun by it."""
    given = [(name, settings.get(name)) for name in ("rpm", "tpm", "concurrency")]
    return tuple(word for name, limit in given if limit for word in (f"--{name}", str(limit)))


def open_lab(url: str | None = None, *, create: bool = True) -> "Lab":
    """The lab of the database that this command names, begun where there is none."""
    from judge_gym.lab import Lab
    from judge_gym.models.cards import Limits

    limits: dict[str, Any] = {name: settings.get(name) for name in ("rpm", "tpm", "concurrency")}
    return Lab.open(url or settings["db"], limits=Limits(**limits), create=create)


def read_lab() -> "Lab":
    """The lab for a command that needs one with something in it: none is begun by a typo."""
    return open_lab(create=False)


def given(option: str, entries: Sequence[str]) -> dict[str, Any]:
    """`name=value` as the study file would read it."""
    values = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals:
            shape = "GROUP.KNOB=LEVEL" if option == "--set" else "NAME=LIMIT"
            raise DesignError(f"{option} takes {shape}, not {entry!r}")
        try:
            values[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as fault:
            raise DesignError(f"{option} {entry}: the value is broken YAML") from fault
    return values


def carry_out(work: "Callable[[Any], Result]", *, quiet: bool) -> "Result":
    """Do long work with its progress in sight."""
    from judge_gym.cli import display

    watcher = display.Watcher()
    with watcher.shown(quiet):
        return work(watcher.watch)


def collect_missing(lab: "Lab", study: Path, allow_private: bool, *, quiet: bool) -> None:
    """Search for the evidence that a study asks for and that was never collected."""
    from judge_gym.cli import INTERRUPTED, display

    with display.counting("articles", quiet=quiet) as watch:
        made = lab.evidence.collect_missing(study, allow_private=allow_private, watch=watch)
    for name, one in made.items():
        if not quiet:
            typer.echo(f"{name}: {gathered_words(one)}", err=True)
            notes(*some(one.found.notes))
        one.raise_error()
        if one.found.interrupted:
            typer.echo(f"interrupted; go on with: {same_command()}", err=True)
            raise typer.Exit(INTERRUPTED)


def some(notes: Sequence[str], most: int = 10) -> list[str]:
    """The first of many notes."""
    more = len(notes) - most
    return [*notes[:most], *([f"and {more} more"] if more > 0 else [])]


def gathered_words(made: "CollectionResult") -> str:
    """What a search brought, in one line."""
    found = len(made.found.items) + sum(made.found.dropped.values())
    left_out = ", ".join(f"{count} {reason}" for reason, count in made.found.dropped.items())
    return (
        f"{found} found, {made.added} added to window {made.window_id}, which holds {made.held}"
        + (f"; left out: {left_out}" if left_out else "")
    )


def show_result(result: "Result", as_json: bool) -> None:
    """Show what became of runs."""
    from judge_gym.cli import display

    if as_json:
        display.print_json(result.to_json())
        return
    rows = [
        {
            "tag": run.tag,
            "status": run.status,
            "samples": ", ".join(f"{n} {name}" for name, n in run.counts.items()),
            "paid": run.calls,
            "reused": run.reused,
            "usd": run.usd,
            "saved": run.saved,
        }
        for run in result.runs
    ]
    if len(rows) > LISTED and all(run.status in FINISHED for run in result.runs):
        finished = {status: sum(run.status == status for run in result.runs) for status in FINISHED}
        rows = [
            {
                "experiments": len(rows),
                **finished,
                "samples": sum(sum(run.counts.values()) for run in result.runs),
                "paid": sum(run.calls for run in result.runs),
                "reused": sum(run.reused for run in result.runs),
                "usd": sum(run.usd for run in result.runs),
                "saved": sum(run.saved for run in result.runs),
            }
        ]
    display.table("", rows)
    notes(*result.warnings)


def end(result: "Result", again: str, *, quiet: bool, ok: Collection[str] = FINISHED) -> None:
    """Leave with the code that says how it ended."""
    from judge_gym.cli import FAILED, INTERRUPTED, STOPPED
    from judge_gym.engine import Stopped

    if result.stopped is not None:
        said = result.stopped.message
        if result.left is not None:
            said += f"; {left_words(result.left)}; raise it in the study or with --budget"
        if not quiet:
            typer.echo(f"{said}; go on with: {again}", err=True)
        raise typer.Exit(INTERRUPTED if type(result.stopped) is Stopped else STOPPED)
    if not quiet:
        typer.echo(f"{result.study}: {result.status}", err=True)
    if result.status not in ok:
        raise typer.Exit(FAILED)


def left_words(left: "StagePlan") -> str:
    """What is still to be paid."""
    usd = "an unknown price" if left.usd is None else f"about ${left.usd:,.4f}"
    tokens = left.input_tokens + left.output_tokens
    return f"left: up to {left.to_pay:,} calls, {tokens:,} tokens, {usd}"


def same_command() -> str:
    """The words of this call, to go on with; what may be secret in an address is left out."""
    words = []
    for word in sys.argv[1:]:
        flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        words.append(flag + equals + (bare_endpoint(value) if "://" in value else value))
    hidden = " (with the whole address)" if words != sys.argv[1:] else ""
    return shlex.join(["judge-gym", *words]) + hidden


def print_report(report: Any) -> None:
    """A report as text."""
    from judge_gym.cli import display

    if report.banner:
        display.out.print(report.banner, style="bold yellow")
    display.table(report.title, [{"": name, " ": value} for name, value in report.facts.items()])
    for section in report.sections:
        display.heading(section.title, section.lead)
        for table in section.tables:
            rows = table.frame.to_dict("records")
            if len(rows) > PRINTED_ROWS:
                rows, note = [], f"{len(rows):,} rows, on the page and in the folder (--out)"
                display.out.print(f"{table.title}: {note}\n", style="dim", markup=False)
            else:
                display.table(table.title, rows, note=table.note, compact=True)
    notes(*report.warnings)
    if report.banner:
        display.out.print(report.banner, style="bold yellow")


def notes(*notes: str) -> None:
    """Remarks beside the result."""
    for note in notes:
        typer.echo(f"note: {note}", err=True)
