"""Executes long work with its progress shown, prints its result, and ends with its exit code."""

import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import FAILED, INTERRUPTED, STOPPED, notes
from judge_gym.errors import JudgeGymError
from judge_gym.records import bare_endpoint

if TYPE_CHECKING:
    from judge_gym.engine import Result
    from judge_gym.engine.planner import StagePlan
    from judge_gym.lab import Lab
    from judge_gym.lab.collection import CollectionResult
    from judge_gym.lab.studies import Target

LISTED = 12
"""Finished experiments that are listed one by one; `status` lists any number."""
COUNTED = (
    "verdicts: so far; paid: attempts at calls by this command, with rubrics, probes and "
    "retries; reused: answers that were in the ledger; saved: US dollars that reuse saved"
)
TAKES_BUDGET = frozenset({"run", "resume", "analyze"})
"""Commands with the option --budget."""
REMOTE = re.compile(r"(?!sqlite:)[\w+.-]+://")
"""How a URL begins that may hold a password; that of a database in a file holds none."""
FINISHED = ("complete", "complete-with-failures")


def execute(work: "Callable[[Any], Result]", as_json: bool) -> "Result":
    """Executes `work`, which gets a function that shows its progress."""
    with display.run_progress(quiet=as_json) as watch:
        return work(watch)


def execute_and_end(lab: "Lab", work: "Callable[[Any], Result]", as_json: bool) -> None:
    """Executes runs, prints the result, and ends the command with its exit code."""
    result = execute(work, as_json)
    show_result(result, as_json)
    if not as_json and result.study and result.stopped is None:
        _show_answer(lab, result.study)
    end(result, quiet=as_json)


def _show_answer(lab: "Lab", study: str) -> None:
    """Prints what a study says, if it says anything yet, and what shows more of it."""
    command = "judges"
    try:
        table = lab.results.judges(study)
    except JudgeGymError:  # such as one without a single verdict: its report says why
        command = "report"
    else:
        if table["simulated"]:
            display.warning(table["simulated"])
        display.text(table["sentence"])
    typer.echo(f"see more with: judge-gym {command} {shlex.quote(study)}", err=True)


def show_result(result: "Result", as_json: bool) -> None:
    """Prints the outcome of runs."""
    if as_json:
        display.print_json(result.to_json())
        return
    rows = [
        {
            "tag": run.tag,
            "status": run.status,
            "verdicts": ", ".join(f"{n} {name}" for name, n in run.counts.items()),
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
                "verdicts": sum(sum(run.counts.values()) for run in result.runs),
                "paid": sum(run.calls for run in result.runs),
                "reused": sum(run.reused for run in result.runs),
                "usd": sum(run.usd for run in result.runs),
                "saved": sum(run.saved for run in result.runs),
            }
        ]
    display.table("", rows, note=COUNTED, one_line=True, optional=("saved", "reused", "usd"))
    notes(*result.warnings)


def end(
    result: "Result", *, quiet: bool, ok: Collection[str] = FINISHED, again: str | None = None
) -> None:
    """Ends the command with the exit code of a result."""
    from judge_gym.engine import Stopped

    if result.stopped is not None:
        message = result.stopped.message
        if result.left is not None:
            message += f"; {_remaining(result.left)}"
        if not quiet:
            command = again or command_with_budget(result.enough, f"resume {result.study}")
            typer.echo(f"{message}; continue with: {command}", err=True)
        raise typer.Exit(INTERRUPTED if type(result.stopped) is Stopped else STOPPED)
    if not quiet:
        typer.echo(f"{result.study}: {result.status}", err=True)
    if result.status not in ok:
        raise typer.Exit(FAILED)


def _remaining(left: "StagePlan") -> str:
    usd = "an unknown price" if left.usd is None else f"about ${left.usd:,.4f}"
    tokens = left.input_tokens + left.output_tokens
    return f"remaining: up to {left.to_pay:,} calls, {tokens:,} tokens, {usd}"


def command_with_budget(limits: Mapping[str, float], other: str) -> str:
    """Writes a command that continues with higher limits.

    Args:
        limits: by name, in place of those that were given.
        other: a command that takes a budget, for one that does not.
    """
    words = sys.argv[1:]
    if not limits:
        return same_command()
    if not TAKES_BUDGET.intersection(words):
        words = shlex.split(other)
    left: list[str] = []
    rest = iter(words)
    for word in rest:
        value = next(rest, "") if word == "--budget" else word.removeprefix("--budget=")
        if word.startswith("--budget"):
            if value.partition("=")[0] not in limits:
                left += ["--budget", value]
        else:
            left.append(word)
    raised = [w for name, limit in limits.items() for w in ("--budget", f"{name}={_plain(limit)}")]
    return same_command([*left, *raised])


def _plain(limit: float) -> str:
    return f"{limit:.6f}".rstrip("0").rstrip(".")


def same_command(arguments: Sequence[str] | None = None) -> str:
    """Writes this command line, or other arguments, without what may be secret in a URL."""
    command_words = sys.argv[1:] if arguments is None else arguments
    words = []
    for word in command_words:
        flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        words.append(flag + equals + (bare_endpoint(value) if REMOTE.match(value) else value))
    hidden = " (with the whole URL)" if words != [*command_words] else ""
    return shlex.join(["judge-gym", *words]) + hidden


# --- evidence that was collected -----------------------------------------------------------------


def collect_missing(lab: "Lab", study: "Target", allow_private: bool, *, quiet: bool) -> None:
    """Searches for the evidence that a study names and that was never collected."""
    with display.counting("articles", quiet=quiet) as watch:
        collected = lab.evidence.collect_missing(study, allow_private=allow_private, watch=watch)
    for name, result in collected.items():
        if not quiet:
            typer.echo(f"{name}: {collection_summary(result)}", err=True)
            notes(*first(result.found.notes))
        result.raise_error()
        if result.found.interrupted:
            typer.echo(f"interrupted; continue with: {same_command()}", err=True)
            raise typer.Exit(INTERRUPTED)


def collection_summary(result: "CollectionResult") -> str:
    """Says in one line what a search found."""
    total = len(result.found.items) + sum(result.found.dropped.values())
    left_out = ", ".join(f"{count} {reason}" for reason, count in result.found.dropped.items())
    return (
        f"{total} found, {result.added} added to window {result.window_id}, which holds "
        f"{result.held}" + (f"; left out: {left_out}" if left_out else "")
    )


def first(messages: Sequence[str], most: int = 10) -> list[str]:
    """Lists the first of many messages, and how many more there are."""
    more = len(messages) - most
    return [*messages[:most], *([f"and {more} more"] if more > 0 else [])]
