"""The verb that explains a suite run, and the one that checks the arithmetic of a report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli.app import AsJson, NoSet, Set, app, end, given, notes, read_lab, same_command
from judge_gym.cli.steering import Budget
from judge_gym.cli.suite import Unisolated
from judge_gym.errors import DesignError, NotFoundError

if TYPE_CHECKING:
    from judge_gym.lab.failures import Analysis
    from judge_gym.records.outcomes import EvalResult


@app.command()
def analyze(
    run: Annotated[
        str | None,
        typer.Argument(help="A suite run: its number, the start of its key, or its page's URL."),
    ] = None,
    judge: Annotated[
        list[str],
        typer.Option(
            metavar="MODEL",
            help="Who classifies failures; repeatable. A simulated model has simulated judges.",
        ),
    ] = NoSet,
    samples: Annotated[int, typer.Option(min=1, help="Verdicts of a judge on a failure.")] = 3,
    reports: Annotated[
        Path, typer.Option(help="Folder of reports; earlier ones on the model are read.")
    ] = Path("reports"),
    suite: Annotated[
        str | None, typer.Option(help="Folder of the run's suite, where it is not here.")
    ] = None,
    set: Set = NoSet,
    budget: Budget = NoSet,
    allow_self: Annotated[
        bool, typer.Option("--allow-self", help="A model may judge its own failures.")
    ] = False,
    allow_unisolated: Unisolated = False,
    lint: Annotated[
        Path | None,
        typer.Option(metavar="REPORT", help="Instead: check the arithmetic of this report."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Say why the evals of a run failed: judges classify, a report is written."""
    from judge_gym.cli import FAILED, display

    if (run is None) == (lint is None):
        raise DesignError("name a run to analyze, or a report to check with --lint, and not both")
    if lint is not None:
        check(lint, as_json=json)
        return
    assert run is not None
    watcher = display.Watcher()
    with read_lab() as lab, watcher.shown(json):
        made = lab.failures.analyze(
            run,
            judges=judge,
            samples=samples,
            reports=reports,
            suite=suite,
            overrides=given("--set", set),
            budget=given("--budget", budget),
            allow_self=allow_self,
            allow_unisolated=allow_unisolated,
            watch=watcher.watch,
        )
    display.print_json(made.to_json()) if json else show_analysis(made)
    if made.judging is not None:
        end(made.judging, same_command(), quiet=json)
    if made.findings and not made.verdicts["scored"]:
        raise typer.Exit(FAILED)


def check(report: Path, *, as_json: bool) -> None:
    """Print the numbers of a report that do not add up."""
    from judge_gym.cli import FAILED, display
    from judge_gym.triage import lint_report

    try:
        text = report.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise NotFoundError(f"the report {report} cannot be read: {fault}") from fault
    try:
        mismatches = lint_report(text)
    except DesignError as fault:
        raise DesignError(f"{report}: {fault.message}") from fault
    if as_json:
        display.print_json(
            {"report": str(report), "mismatches": [one._asdict() for one in mismatches]}
        )
    else:
        for one in mismatches:
            typer.echo(f"{report}: {one}")
        if not mismatches:
            typer.echo(f"{report}: all numbers add up", err=True)
    if mismatches:
        raise typer.Exit(FAILED)


def show_analysis(made: "Analysis") -> None:
    """What an analysis found, and where it is written."""
    from judge_gym.cli import display

    failed, lost = len(made.gated.failed), len(made.gated.inconclusive)
    display.table(
        f"why {_results(made.gated.failed)} of run {made.run.id} failed",
        [
            {
                **{name: row[name] for name in ("eval", "step", "class", "share")},
                "judges": ", ".join(f"{name} {said}" for name, said in row["judges"].items()),
                "differ": row["differ"],
                "conflict": row["conflict"],
            }
            for row in made.rows()
        ],
        note="share: of the scored verdicts; conflict: the mass on which two judges exclude "
        "each other.",
    )
    notes(*made.notes)
    if lost:
        notes(f"inconclusive and shown to no judge: {_results(made.gated.inconclusive)}")
    if not failed:
        typer.echo(f"no eval of run {made.run.id} failed ({len(made.gated.passed)} passed)")
    if made.judging is not None:
        paid = sum(run.calls for run in made.judging.runs)
        reused = sum(run.reused for run in made.judging.runs)
        usd = sum(run.usd for run in made.judging.runs)
        notes(*made.judging.warnings, f"{paid:,} calls paid ({usd:.4f} USD), {reused:,} reused")
    unscored = {name: n for name, n in made.verdicts.items() if name != "scored"}
    if unscored:
        told = ", ".join(f"{count} {name}" for name, count in unscored.items())
        notes(f"{sum(unscored.values())} of {made.verdicts.total()} verdicts not scored: {told}")
    if made.report is not None:
        typer.echo(f"report: {made.report}")


def _results(those: "Sequence[EvalResult]") -> str:
    """How many evals; where there are replicates, how many results of them."""
    evals = len({one.path for one in those})
    many = f"{evals} eval{'s' * (evals != 1)}"
    return many if len(those) == evals else f"{len(those)} results ({many})"
