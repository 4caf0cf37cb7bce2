"""Commands over code suites: suite list, show, check, run, ablate and others, and schedule."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import FAILED, INTERRUPTED, STOPPED, app, notes, open_lab, read_lab
from judge_gym.cli.options import (
    NONE,
    AsJson,
    Budget,
    Condition,
    Evals,
    Jobs,
    ModelId,
    Remote,
    Replicates,
    SuiteName,
    SuiteSeries,
    Unisolated,
    parse_pairs,
)
from judge_gym.cli.results import first, same_command
from judge_gym.errors import MissingToolError, TokenError

if TYPE_CHECKING:
    from judge_gym.client import Client
    from judge_gym.client.posting import Posted
    from judge_gym.engine.suite_reports import SuiteReport
    from judge_gym.lab import Lab
    from judge_gym.records.responses import DueRow, SuiteRunRow
    from judge_gym.store import SuiteRun
    from judge_gym.suites import Effect, Suite

REMOTE_TIMEOUT = 30.0
"""Seconds that a remote lab may take to answer."""
suite_app = typer.Typer(help="Code-generation suites.", no_args_is_help=True)
app.add_typer(suite_app, name="suite")


@suite_app.command("list")
def list_suites(json: AsJson = False) -> None:
    """List the included suite and those below the working folder."""
    with open_lab() as lab:
        rows = [
            {
                "suite": suite.name,
                "folder": str(suite.folder),
                "version": version_of(suite),
                "categories": len({task.category for task in suite.evals}),
                "evals": len(suite.evals),
                "conditions": ", ".join(suite.conditions),
                "summary": suite.summary,
            }
            for suite in lab.suites.list()
        ]
    display.show_rows(rows, json)


def version_of(suite: "Suite") -> str | None:
    """Returns a suite's version; None, with a note, where a tool that is part of it is missing."""
    try:
        return suite.version
    except MissingToolError as missing:
        notes(missing.message)
        return None


@suite_app.command("show")
def show(
    target: Annotated[
        str, typer.Argument(metavar="SUITE|RUN", help="A suite, or the number of a run.")
    ],
    json: AsJson = False,
) -> None:
    """Show a suite's evals, or every eval of a run with its outcome."""
    from judge_gym.engine.suite_reports import eval_row

    with read_lab() if target.isdecimal() else open_lab() as lab:
        if target.isdecimal():
            report = lab.suites.report(int(target))
            rows = [eval_row(row) for row in report.results]
            if json:
                display.print_json({**report.to_json(), "evals": rows})
                return
            show_reports([report])
            columns = ("eval", "path", "replicate", "outcome", "why", "step", "reason", "seconds")
            display.show_rows(rows, False, columns=columns)
            return
        suite = lab.suites.find(target)
    rows = [
        {
            "eval": task.path,
            "pipeline": task.pipeline,
            "tests": task.tests,
            "files": len(task.answer),
            "gaps": bool(task.gaps),
        }
        for task in suite.evals
    ]
    if json:
        facts = {"suite": suite.name, "version": version_of(suite), "steps": list(suite.steps)}
        sections = list(suite.guidelines)
        known = {"conditions": list(suite.conditions), "guidelines": sections}
        display.print_json({**facts, **known, "evals": rows})
        return
    display.table(f"{suite.name}, version {version_of(suite) or 'unknown'}", rows)
    notes(
        f"steps: {', '.join(suite.steps)}",
        f"conditions: {', '.join(suite.conditions)}",
        f"sections of the guidelines: {', '.join(suite.guidelines) or 'none'}",
    )


@suite_app.command("check")
def check(
    suite: SuiteName = "python",
    evals: Evals = NONE,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Evals at once; default: one per core.")
    ] = None,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Test every reference answer; each must pass."""
    with open_lab() as lab:
        results = lab.suites.check(suite, evals=evals, jobs=jobs, allow_unisolated=allow_unisolated)
    rows = [
        {
            "eval": result.path,
            "outcome": result.outcome.kind,
            "step": getattr(result.outcome, "step", ""),
            "reason": getattr(result.outcome, "reason", ""),
            "seconds": sum(step.seconds for step in result.steps),
            "isolation": result.isolation,
        }
        for result in results
    ]
    passed = sum(row["outcome"] == "passed" for row in rows)
    if json:
        display.print_json({"passed": passed, "evals": rows})
    else:
        display.table("", rows)
        typer.echo(f"{passed} of {len(rows)} reference answers pass", err=True)
    if passed < len(rows):
        raise typer.Exit(FAILED)


@suite_app.command("run")
def run(
    suite: SuiteName,
    model: ModelId,
    condition: Condition = "default",
    evals: Evals = NONE,
    replicates: Replicates = 1,
    series: SuiteSeries = "0",
    jobs: Jobs = 8,
    budget: Budget = NONE,
    remote: Remote = None,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Run a suite with a model.

    Interrupt it with Ctrl-C; the same command continues it.
    """
    with open_lab() as lab, display.run_progress(quiet=json) as watch:
        report, posted = run_and_post(
            lab,
            remote,
            suite,
            model,
            condition=condition,
            evals=evals,
            replicates=replicates,
            series=series,
            jobs=jobs,
            budget=parse_pairs("--budget", budget),
            allow_unisolated=allow_unisolated,
            watch=watch,
        )
    if json:
        display.print_json(posted_json(report, posted))
    else:
        show_reports([report])
        if posted is not None:
            show_posted(posted)
        if report.score.failed or report.score.inconclusive:
            notes(f"see what did not pass with: judge-gym suite failed {report.run.id}")
    end([report], [posted] if posted else [], quiet=json)


@contextmanager
def remote_lab(url: str) -> "Iterator[Client]":
    """Connects to the lab of `--lab`; an error about its token says where the token is from."""
    from judge_gym.client import Client

    try:
        with Client(url, timeout=REMOTE_TIMEOUT) as client:
            yield client
    except TokenError as error:
        raise TokenError(f"{error.message}; --lab takes it from JUDGE_GYM_TOKEN") from error


def run_and_post(
    lab: "Lab", remote: str | None, suite: str, model: str, **options: Any
) -> "tuple[SuiteReport, Posted | None]":
    """Runs a suite; with a remote lab, posts the results there as they arrive."""
    if remote is None:
        return lab.suites.run(suite, model, **options), None
    from judge_gym.client.posting import Poster

    with remote_lab(remote) as client, Poster(lab.suites, client) as poster:

        def on_start(run: "SuiteRun") -> None:
            poster.follow(run)
            if poster.error:
                notes(f"{poster.error}; results are stored here meanwhile")

        return lab.suites.run(suite, model, on_start=on_start, **options), poster.finish()


def posted_json(report: "SuiteReport", posted: "Posted | None") -> dict[str, Any]:
    """Returns a run as `--json` prints it, with what a remote lab has of it."""
    return report.to_json() | ({"posted": asdict(posted)} if posted else {})


@suite_app.command("ablate")
def ablate(
    suite: SuiteName,
    model: ModelId,
    section: Annotated[
        list[str], typer.Option(help="Only this section of the guidelines; repeatable.")
    ] = NONE,
    condition: Condition = "default",
    evals: Evals = NONE,
    replicates: Replicates = 3,
    series: SuiteSeries = "0",
    jobs: Jobs = 8,
    budget: Budget = NONE,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Remove the guidelines section by section, and measure the effect."""
    with open_lab() as lab, display.run_progress(quiet=json) as watch:
        reports, effects = lab.suites.ablate(
            suite,
            model,
            condition=condition,
            sections=section,
            evals=evals,
            replicates=replicates,
            series=series,
            jobs=jobs,
            budget=parse_pairs("--budget", budget),
            allow_unisolated=allow_unisolated,
            watch=watch,
        )
    if json:
        runs = [report.to_json() for report in reports]
        display.print_json({"runs": runs, "effects": effect_rows(effects)})
    else:
        show_reports(reports)
        hidden = ("changes", "unpaired")
        rows = [{k: v for k, v in row.items() if k not in hidden} for row in effect_rows(effects)]
        note = "q: p, adjusted for the number of comparisons"
        display.table(f"compared with {condition}", rows, note=note)
        changes = [
            {"condition": effect["condition"], **change}
            for effect in effect_rows(effects)
            for change in effect["changes"]
        ]
        display.table("evals that changed", changes)
    end(reports, quiet=json)


@suite_app.command("runs")
def runs(
    suite: Annotated[
        str | None, typer.Argument(help="Only runs of the suite of this name.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Only runs of this model.")] = None,
    json: AsJson = False,
) -> None:
    """List suite runs."""
    with read_lab() as lab:
        found = lab.suites.reports(suite=suite, model=model)
    display.print_json([report.to_json() for report in found]) if json else show_reports(found)


@suite_app.command("board")
def board(
    suite: Annotated[str | None, typer.Argument(help="Only the suite of this name.")] = None,
    json: AsJson = False,
) -> None:
    """Rank models by their last complete runs."""
    with read_lab() as lab:
        rows = lab.suites.leaderboard(suite=suite)
    display.print_json(rows) if json else show_leaderboard(rows)


@suite_app.command("failed")
def failed(
    run: Annotated[int, typer.Argument(help="The number of a run.")],
    json: AsJson = False,
) -> None:
    """List the evals of a run that did not pass."""
    with read_lab() as lab:
        rows = lab.suites.list_failed(run)
    columns = ("eval", "path", "replicate", "outcome", "why", "step", "reason")
    display.show_rows(rows, json, columns=columns)
    if not json:
        debug = f"inspect one with: judge-gym suite debug {rows[0]['eval']}" if rows else ""
        notes(debug or "every eval passed")


@suite_app.command("debug")
def debug(
    eval: Annotated[
        str,
        typer.Argument(
            metavar="EVAL",
            help="The number of a result, as `suite failed RUN` lists it, or CATEGORY/NAME for "
            "the eval's result in the newest run that has one.",
        ),
    ],
    run: Annotated[int | None, typer.Option(help="With CATEGORY/NAME: in this run.")] = None,
    replicate: Annotated[int, typer.Option(min=0, help="With CATEGORY/NAME: which answer.")] = 0,
    json: AsJson = False,
) -> None:
    """Show everything about one eval of a run."""
    with read_lab() as lab:
        number = eval.isdecimal()
        at = int(eval) if number else lab.suites.find_eval(eval, run=run, replicate=replicate)
        found = lab.suites.show_eval(at)
    display.print_json(found) if json else show_eval(found)


# --- suite results -------------------------------------------------------------------------------

PRINTED_LINES = 40
"""Lines of a file that are printed; `--json` has all."""
PRINTED_REFUSALS = 5
"""Results refused by a remote lab that are named."""


def show_reports(reports: "Sequence[SuiteReport]") -> None:
    """Prints runs as a table."""
    rows = [
        {
            "run": report.run.id,
            "suite": report.run.suite,
            "version": report.run.version[:8],
            "model": report.run.model,
            "condition": report.run.condition,
            "series": report.run.series,
            "status": report.status,
            "passed": report.score.passed,
            "failed": report.score.failed,
            "inconclusive": sum(report.score.inconclusive.values()),
            "evals": report.run.targets,
            "pass rate": report.score.score,
            "low": _number(report.score.estimate.low),
            "high": _number(report.score.estimate.high),
            "usd": report.score.usd,
        }
        for report in reports
    ]
    display.table("", rows, note="low, high: 95 % interval over evals")


def end(reports: "Sequence[SuiteReport]", posted: "Sequence[Posted]" = (), *, quiet: bool) -> None:
    """Ends the command with the exit code of its suite runs."""
    from judge_gym.engine import Stopped

    last = reports[-1]
    if last.stopped is not None:
        if not quiet:
            typer.echo(f"{last.stopped.message}; continue with: {same_command()}", err=True)
        raise typer.Exit(INTERRUPTED if type(last.stopped) is Stopped else STOPPED)
    results = [row.result for report in reports for row in report.results]
    inconclusive = [result for result in results if result.outcome.kind == "inconclusive"]
    empty = sum(result.settled for result in inconclusive)
    repeatable = len(inconclusive) - empty
    if empty and not quiet:
        replies = "empty replies are" if empty > 1 else "empty reply is"
        notes(f"{empty} {replies} final; --series NAME asks again")
    if repeatable and not quiet:
        notes(f"{repeatable} inconclusive without an answer; repeat with: {same_command()}")
    if any(report.failed for report in reports) or any(run.missing for run in posted):
        raise typer.Exit(FAILED)


def show_posted(posted: "Posted") -> None:
    """Prints how many results of a run a remote lab has, and why not all."""
    where = f"run {posted.run} at {posted.lab}" if posted.run is not None else posted.lab
    total = posted.stored + posted.missing
    typer.echo(f"{posted.stored} of {total} results are in {where}", err=True)
    refused = [f"refused: {name}: {why}" for name, why in posted.refused.items()]
    notes(*first(refused, PRINTED_REFUSALS))
    if posted.error:
        notes(posted.error)
    if posted.missing > len(posted.refused):
        notes(f"the other results are stored in this lab; post them with: {same_command()}")


def show_leaderboard(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints a leaderboard."""
    note = "Compare within one version and condition. usd: per run; seconds: per answer."
    display.table("leaderboard", rows, note=note)
    if not rows:
        notes("no complete run of a whole suite yet")


def effect_rows(effects: "Sequence[Effect]") -> list[dict[str, Any]]:
    """Returns the effect of each condition, with the evals that changed."""
    return [
        {
            "condition": effect.condition,
            "verdict": effect.verdict,
            "difference": _number(effect.difference.value),
            "low": _number(effect.difference.low),
            "high": _number(effect.difference.high),
            "p": _number(effect.p),
            "q": _number(effect.q),
            "regressions": len(effect.regressions),
            "improvements": len(effect.improvements),
            "changes": [
                {
                    "eval": change.eval,
                    "base": change.base,
                    "under": change.under,
                    "replicates": f"{change.replicates[0]}, {change.replicates[1]}",
                    "q": _number(change.q),
                    "beyond noise": change.beyond_noise,
                }
                for change in (*effect.regressions, *effect.improvements)
            ],
            "unpaired": list(effect.unpaired),
        }
        for effect in effects
    ]


def show_eval(found: Mapping[str, Any]) -> None:
    """Prints everything about one eval of a run."""
    names = ("model", "condition", "suite", "version", "path", "replicate", "outcome", "reason")
    facts = {name: found[name] for name in (*names, "finish")}
    display.facts("", facts)
    columns = ("name", "status", "seconds", "reason", "tests_passed", "tests_collected")
    display.table("steps", [{name: step[name] for name in columns} for step in found["steps"]])
    for step in found["steps"]:
        _show_text(f"output of {step['name']}", step["output"])
    _show_text("task", found["task"])
    for kind in ("files", "answer", "grader"):
        for path, text in found[kind].items():
            _show_text(f"{kind.removesuffix('s')}: {path}", text)
    _show_text("gaps", found["gaps"])


def _show_text(title: str, text: str) -> None:
    if text.strip():
        lines = text.rstrip().split("\n")
        more = len(lines) - PRINTED_LINES
        shown = "\n".join(lines[:PRINTED_LINES]) + (f"\n[{more} more lines]" if more > 0 else "")
        display.heading(title, shown)


def _number(value: float) -> float | None:
    """Returns None for NaN, which JSON cannot express."""
    return None if value != value else value


# --- schedule ------------------------------------------------------------------------------------


@app.command()
def schedule(
    suite: Annotated[
        str, typer.Argument(metavar="[SUITE]", help="A suite's folder, or 'python'.")
    ] = "python",
    model: Annotated[list[str], typer.Option(help="Only this model; repeatable.")] = NONE,
    run: Annotated[bool, typer.Option("--run", help="Run the models that are due.")] = False,
    most: Annotated[int | None, typer.Option(min=1, help="Run at most this many models.")] = None,
    jobs: Jobs = 8,
    budget: Budget = NONE,
    remote: Remote = None,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """List which models are due for another suite run.

    New and cheap models are due more often.
    """
    today = datetime.now(UTC).date().isoformat()
    with open_lab() as lab:
        name, ids = lab.suites.find(suite).name, [lab.admin.resolve_model(id) for id in model]
        if remote is None:
            rows: list[dict[str, Any]] = [{**row} for row in lab.suites.due(name, models=ids)]
        else:
            due = _remote_due(lab, remote, name, ids)
            rows = [{**row, "callable": lab.admin.can_call(row["model"])} for row in due]
        finished = []
        if run:
            with display.run_progress(quiet=json) as watch:
                for row in [row for row in rows if row["due"] and row.get("callable", True)][:most]:
                    report, posted = run_and_post(
                        lab,
                        remote,
                        suite,
                        row["model"],
                        series=today,
                        jobs=jobs,
                        budget=parse_pairs("--budget", budget),
                        allow_unisolated=allow_unisolated,
                        watch=watch,
                    )
                    finished.append((report, posted))
                    if report.stopped is not None:
                        break
    reports = [report for report, _ in finished]
    posts = [posted for _, posted in finished if posted is not None]
    if json:
        runs = {"runs": [posted_json(*pair) for pair in finished]} if run else {}
        display.print_json({"schedule": rows, **runs})
    else:
        display.table("", rows)
        if not rows:
            notes("no models yet: name some with --model, or run a suite first")
        if unable := [row["model"] for row in rows if row["due"] and not row.get("callable", True)]:
            notes(f"due, but not callable from here: {', '.join(unable)}; see judge-gym models")
        show_reports(reports)
        for posted in posts:
            show_posted(posted)
    if reports:
        end(reports, posts, quiet=json)


def _remote_due(lab: "Lab", remote: str, suite: str, models: list[str]) -> "Sequence[DueRow]":
    """Returns what is due by the runs of a remote lab, for its models and those of our files."""
    with remote_lab(remote) as client:
        rows = [*client.suites.due(suite, models=models)]
        known = {row["model"] for row in rows}
        own = [model for model in lab.suites.scheduled_models() if model not in known]
        if own and not models:
            rows += client.suites.due(suite, models=own)
        return _by_own_dates(lab, rows, client.suites.list_runs(suite=suite))


def _by_own_dates(
    lab: "Lab", rows: "Sequence[DueRow]", runs: "Sequence[SuiteRunRow]"
) -> "list[DueRow]":
    """Returns the rows of a remote lab, with our own dates of models whose first day we know."""
    from judge_gym.lab.suites import CHECK

    own: dict[str, list[tuple[datetime, float | None]]] = {
        row["model"]: [] for row in rows if lab.suites.first_seen(row["model"])
    }
    for run in runs:
        if run["model"] in own and run["series"] != CHECK:
            usd = run["cost"] if run["whole"] else None
            own[run["model"]].append((run["created"], usd))
    known = {due.model: due for due in lab.suites.due_by(own, datetime.now(UTC))}
    dated: list[DueRow] = [*rows]
    for row in dated:
        if due := known.get(row["model"]):
            row["due"], row["due_from"] = due.due, due.due_from
            row["days"] = due.interval.total_seconds() / 86400
    earliest = datetime.min.replace(tzinfo=UTC)
    return sorted(dated, key=lambda row: row["due_from"] or earliest)
