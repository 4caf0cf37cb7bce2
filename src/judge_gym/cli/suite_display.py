"""Prints suite runs, leaderboards and results, and ends commands that ran suites."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import FAILED, INTERRUPTED, STOPPED, notes
from judge_gym.cli.plan_display import exceeded_limits, planned_cost, show_endpoints
from judge_gym.cli.results import command_with_budget, first, same_command
from judge_gym.records.outcomes import IN_PROCESS

if TYPE_CHECKING:
    from judge_gym.client.posting import Posted
    from judge_gym.lab.suite_reports import SuiteReport
    from judge_gym.records.responses import SuitePlan
    from judge_gym.suites import Effect

PRINTED_LINES = 40
"""Lines of a file that are printed; `--json` has all."""
PRINTED_REFUSALS = 5
"""Results refused by a remote lab that are named."""


def show_reports(reports: "Sequence[SuiteReport]") -> None:
    """Prints runs that were just executed."""
    show_runs([report.to_json() for report in reports])


def show_runs(runs: Sequence[Mapping[str, Any]]) -> None:
    """Prints runs as a table, whose title has what all of them share."""
    rows = [
        {
            "run": run["run"],
            "suite": run["suite"],
            "version": run["version"][:8],
            "model": run["model"],
            "condition": run["condition"],
            "series": run["series"],
            "status": run["label"],
            "passed": f"{run['counts']['passed']} of {run['targets']}",
            "failed": run["counts"]["failed"],
            "inconclusive": run["counts"]["inconclusive"],
            "pass rate": _interval(run["score"], run["low"], run["high"], run["in_process"]),
            "usd": run["cost"],
        }
        for run in runs
    ]
    shared = [
        name for name in ("suite", "version", "series") if len({row[name] for row in rows}) == 1
    ]
    title = ", ".join(f"{name} {rows[0][name]}" for name in shared)
    hidden = {*shared, *(["inconclusive"] if not any(row["inconclusive"] for row in rows) else [])}
    listed = [{name: row[name] for name in row if name not in hidden} for row in rows]
    note = "pass rate: with its 95 % interval over evals"
    if any(run["in_process"] for run in runs):
        note += (
            f"; {IN_PROCESS}: the graders import candidate code, which could change their verdict"
        )
    display.table(title, listed, note=note)


def _interval(
    score: float | None, low: float | None, high: float | None, in_process: bool
) -> str | None:
    if score is None or low is None or high is None:
        return None
    mark = f", {IN_PROCESS}" if in_process else ""
    return f"{score:.0%} ({low:.0%} to {high:.0%}){mark}"


def end(reports: "Sequence[SuiteReport]", posted: "Sequence[Posted]" = (), *, quiet: bool) -> None:
    """Ends the command with the exit code of its suite runs."""
    from judge_gym.engine import Stopped

    stopped = next((report.stopped for report in reports if report.stopped is not None), None)
    if stopped is not None:
        if not quiet:
            enough = next((report.enough for report in reports if report.enough), {})
            command = command_with_budget(enough, "")
            typer.echo(f"{stopped.message}; continue with: {command}", err=True)
        raise typer.Exit(INTERRUPTED if type(stopped) is Stopped else STOPPED)
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


def show_plan(plan: "SuitePlan") -> None:
    """Prints what a run of a suite would ask, and what it would cost."""
    calls, runs = plan["calls"], plan["runs"]
    size = display.plural(len(runs), "run")
    cost = planned_cost(plan["endpoints"], calls)
    typer.echo(f"{plan['suite']}, version {plan['version'][:8]}: {size}, {cost}")
    display.table(
        "by run",
        runs,
        note="targets: answers that are asked for; missing: without a result; in_ledger: graded "
        "without a call; shared: the same call as another run's; to_pay: new calls.",
    )
    if calls["to_pay"]:
        show_endpoints(plan["endpoints"])
        tokens = f"{calls['input_tokens']:,} input and about {calls['output_tokens']:,} output"
        notes(f"{tokens} tokens to pay; answers differ in length, a --budget is kept")
    notes(*exceeded_limits(calls, plan["budget"]), *plan["uncallable"])


def show_leaderboard(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints a leaderboard."""
    note = "Compare within one version and condition. usd: per run; seconds: per answer."
    listed = [
        {
            "suite": row["suite"],
            "version": row["version"][:8],
            "condition": row["condition"],
            "model": row["model"],
            "pass rate": _interval(row["score"], row["low"], row["high"], row["in_process"]),
            "sd": row["sd"],
            "runs": row["runs"],
            "passed": row["passed"],
            "failed": row["failed"],
            "inconclusive": row["inconclusive"],
            "usd": row["usd"],
            "seconds": row["seconds"],
        }
        for row in rows
    ]
    display.table("leaderboard", listed, note=note)
    if not rows:
        notes("no complete run of a whole suite yet")


def effect_rows(effects: "Sequence[Effect]") -> list[dict[str, Any]]:
    """Writes the effect of each condition, with the evals that changed."""
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
        excerpt = "\n".join(lines[:PRINTED_LINES]) + (f"\n[{more} more lines]" if more > 0 else "")
        display.heading(title, excerpt)


def _number(value: float) -> float | None:
    """Replaces NaN, which JSON cannot express, by None."""
    return None if value != value else value
