"""Suite runs, leaderboards and effects as rows and tables, and how their commands end."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from judge_gym.cli.app import notes, same_command

if TYPE_CHECKING:
    from judge_gym.client.posting import Posted
    from judge_gym.engine.suite_reports import SuiteReport
    from judge_gym.records.outcomes import EvalResult
    from judge_gym.suites import Effect

FIRST_LINES = 40
"""Of a file, where a person reads it in a terminal; `--json` has all."""
FIRST_REFUSED = 5
"""So many results that a remote lab does not take are named."""


def show_reports(reports: "Sequence[SuiteReport]") -> None:
    """Runs as a table."""
    from judge_gym.cli import display

    rows = [
        {
            "run": report.run.id,
            "suite": report.run.suite,
            "version": report.run.version[:8],
            "model": report.run.model,
            "experiment": report.run.experiment,
            "series": report.run.series,
            "status": report.status,
            "passed": report.score.passed,
            "failed": report.score.failed,
            "inconclusive": sum(report.score.inconclusive.values()),
            "wanted": report.run.wanted,
            "score": report.score.score,
            "low": _number(report.score.estimate.low),
            "high": _number(report.score.estimate.high),
            "usd": report.score.usd,
        }
        for report in reports
    ]
    display.table("", rows)


def end(reports: "Sequence[SuiteReport]", posted: "Sequence[Posted]" = (), *, quiet: bool) -> None:
    """Leave with the code that says how it ended."""
    from judge_gym.cli import FAILED, INTERRUPTED, STOPPED
    from judge_gym.engine import Stopped

    last = reports[-1]
    if last.stopped is not None:
        if not quiet:
            typer.echo(f"{last.stopped.message}; go on with: {same_command()}", err=True)
        raise typer.Exit(INTERRUPTED if type(last.stopped) is Stopped else STOPPED)
    lost = [row.result for one in reports for row in one.results if _lost(row.result)]
    empty = sum(result.settled for result in lost)
    if empty and not quiet:
        many = "empty replies stay" if empty > 1 else "empty reply stays"
        notes(f"{empty} {many}; --series NAME asks afresh")
    if (again := len(lost) - empty) and not quiet:
        notes(f"{again} inconclusive without an answer; tried again by: {same_command()}")
    if any(report.failed for report in reports) or not all(one.whole for one in posted):
        raise typer.Exit(FAILED)


def _lost(result: "EvalResult") -> bool:
    return result.outcome.kind == "inconclusive"


def show_posted(posted: "Posted") -> None:
    """How far a run has come to a remote lab, and why not further."""
    where = f"run {posted.run} at {posted.lab}" if posted.run is not None else posted.lab
    counts = f"{posted.there} of {posted.there + posted.left} results are in {where}"
    typer.echo(counts, err=True)
    for name, why in list(posted.refused.items())[:FIRST_REFUSED]:
        notes(f"not taken: {name}: {why}")
    if (more := len(posted.refused) - FIRST_REFUSED) > 0:
        notes(f"and {more} more that were not taken")
    if posted.error:
        notes(posted.error)
    if posted.left > len(posted.refused):
        notes(f"what is not there is kept here; post it by: {same_command()}")


def show_board(rows: "Sequence[Mapping[str, Any]]") -> None:
    """A leaderboard as a table."""
    from judge_gym.cli import display

    note = "Compare within one version and experiment. usd: of a run; seconds: of a generation."
    display.table("leaderboard", rows, note=note)
    if not rows:
        notes("no run over a whole suite is complete yet")


def effect_rows(effects: "Sequence[Effect]") -> list[dict[str, Any]]:
    """What each condition did, with the evals that changed."""
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


def show_debug(found: Mapping[str, Any]) -> None:
    """All that there is about one eval of a run."""
    from judge_gym.cli import display

    facts = ("model", "experiment", "suite", "version", "path", "replicate", "outcome", "reason")
    display.table("", [{"": name, " ": found[name]} for name in (*facts, "finish")])
    columns = ("name", "status", "seconds", "reason", "tests_passed", "tests_collected")
    display.table("steps", [{name: step[name] for name in columns} for step in found["steps"]])
    for step in found["steps"]:
        _show_text(f"output of {step['name']}", step["output"])
    _show_text("task", found["task"])
    for what in ("files", "answer", "grader"):
        for path, text in found[what].items():
            _show_text(f"{what.removesuffix('s')}: {path}", text)
    _show_text("gaps", found["gaps"])


def _show_text(title: str, text: str) -> None:
    from judge_gym.cli import display

    if text.strip():
        lines = text.rstrip().split("\n")
        more = len(lines) - FIRST_LINES
        shown = "\n".join(lines[:FIRST_LINES]) + (f"\n[{more} more lines]" if more > 0 else "")
        display.heading(title, shown)


def _number(value: float) -> float | None:
    """A number, or nothing where it is undefined: NaN is no JSON."""
    return None if value != value else value
