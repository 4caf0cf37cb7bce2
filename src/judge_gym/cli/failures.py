"""The command that explains why the evals of a suite run failed."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import FAILED, app, notes, open_lab, read_lab
from judge_gym.cli.options import NONE, AsJson, Budget, FromLab, Set, Unisolated, parse_pairs
from judge_gym.cli.remote import remote_lab
from judge_gym.cli.results import end
from judge_gym.client.pages import choose_lab
from judge_gym.errors import DesignError, NotFoundError

if TYPE_CHECKING:
    from judge_gym.lab.failures import Analysis
    from judge_gym.records.outcomes import EvalResult


@app.command()
def analyze(
    run: Annotated[
        str | None,
        typer.Argument(
            help="A suite run: its number, the start of its key, or its page's URL, which names "
            "the lab that is asked."
        ),
    ] = None,
    judge: Annotated[
        list[str],
        typer.Option(
            metavar="MODEL",
            help="A judge that classifies failures; repeatable. Default where the model is "
            "simulated: two simulated judges.",
        ),
    ] = NONE,
    samples: Annotated[int, typer.Option(min=1, help="Verdicts per judge and failure.")] = 3,
    reports: Annotated[
        Path, typer.Option(help="Folder of reports; earlier reports on the model are read.")
    ] = Path("reports"),
    suite: Annotated[
        str | None, typer.Option(help="Folder of the run's suite, if it is not below this one.")
    ] = None,
    set: Set = NONE,
    budget: Budget = NONE,
    allow_self: Annotated[
        bool, typer.Option("--allow-self", help="Let a model judge its own failures.")
    ] = False,
    allow_unisolated: Unisolated = False,
    remote: FromLab = None,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Call no judge; every answer must be in the ledger."),
    ] = False,
    lint: Annotated[
        Path | None,
        typer.Option(metavar="REPORT", help="Instead: check the arithmetic of this report."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Explain why the evals of a suite run failed.

    Judges classify the failures, and a report is written.
    """
    if (run is None) == (lint is None):
        raise DesignError("name a run to analyze, or a report to check with --lint, and not both")
    if lint is not None:
        _check_report(lint, as_json=json)
        return
    assert run is not None
    url = choose_lab(run, remote)
    with ExitStack() as stack:
        client = stack.enter_context(remote_lab(url)) if url is not None else None
        lab = stack.enter_context(read_lab() if client is None else open_lab())
        watch = stack.enter_context(display.run_progress(quiet=json))
        analysis = lab.failures.analyze(
            run,
            judges=judge,
            samples=samples,
            reports=reports,
            suite=suite,
            overrides=parse_pairs("--set", set),
            budget=parse_pairs("--budget", budget),
            allow_self=allow_self,
            allow_unisolated=allow_unisolated,
            lab=client,
            offline=offline,
            watch=watch,
        )
    display.print_json(analysis.to_json()) if json else show_analysis(analysis)
    if analysis.judging is not None:
        end(analysis.judging, quiet=json)
    if analysis.findings and not json:
        from judge_gym.lab.failures import QUESTION

        typer.echo(f"\n{QUESTION}")
    if analysis.findings and not analysis.verdicts["scored"]:
        raise typer.Exit(FAILED)


def _check_report(report: Path, *, as_json: bool) -> None:
    """Prints the numbers of a report that do not add up."""
    from judge_gym.triage import lint_report

    try:
        text = report.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"the report {report} cannot be read: {error}") from error
    try:
        mismatches = lint_report(text)
    except DesignError as error:
        raise DesignError(f"{report}: {error.message}") from error
    if as_json:
        rows = [mismatch._asdict() for mismatch in mismatches]
        display.print_json({"report": str(report), "mismatches": rows})
    else:
        for mismatch in mismatches:
            typer.echo(f"{report}: {mismatch}")
        if not mismatches:
            typer.echo(f"{report}: all numbers add up", err=True)
    if mismatches:
        raise typer.Exit(FAILED)


def show_analysis(analysis: "Analysis") -> None:
    """Prints what an analysis found, and where its report is."""
    results = analysis.results
    display.table(
        f"why {_results(results.failed)} of run {analysis.run.id} failed",
        [
            {
                **{name: row[name] for name in ("eval", "step", "class", "share")},
                "judges": ", ".join(f"{name} {choice}" for name, choice in row["judges"].items()),
                "differ": row["differ"],
                "conflict": row["conflict"],
            }
            for row in analysis.rows()
        ],
        essential=["class"],
        note="share: of the scored verdicts; conflict: how far two judges exclude each other, "
        "from 0 to 1.",
    )
    notes(*analysis.notes)
    if results.inconclusive:
        notes(f"inconclusive and not judged: {_results(results.inconclusive)}")
    if not results.failed:
        typer.echo(f"no eval of run {analysis.run.id} failed ({len(results.passed)} passed)")
    if analysis.judging is not None:
        runs = analysis.judging.runs
        paid, reused = sum(run.calls for run in runs), sum(run.reused for run in runs)
        usd = sum(run.usd for run in runs)
        notes(*analysis.judging.warnings, f"{paid:,} calls paid ({usd:.4f} USD), {reused:,} reused")
    unscored = {name: n for name, n in analysis.verdicts.items() if name != "scored"}
    if unscored:
        counts = ", ".join(f"{count} {name}" for name, count in unscored.items())
        total = analysis.verdicts.total()
        notes(f"{sum(unscored.values())} of {total} verdicts not scored: {counts}")
    for row in analysis.rows():
        if row["fix"]:
            notes(f"proposed fix of {row['eval']}: {row['fix']['file']}: {row['fix']['change']}")
    for fix in analysis.fixes:
        since = "has changed" if fix.benchmark_changed else "has not changed"
        notes(f"fix recorded in {fix.report}: {fix.action} The benchmark {since} since; {fix.now}")
    if analysis.report is not None:
        typer.echo(f"report: {analysis.report}")


def _results(results: "Sequence[EvalResult]") -> str:
    """Counts the evals, and the results if there are several per eval."""
    evals = len({result.path for result in results})
    count = display.plural(evals, "eval")
    return count if len(results) == evals else f"{len(results)} results ({count})"
