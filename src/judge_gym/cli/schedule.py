"""The command `schedule`: which models are due for another suite run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab
from judge_gym.cli.options import NONE, AsJson, Budget, Jobs, Remote, Unisolated, parse_pairs
from judge_gym.cli.suite_display import end, show_posted, show_reports
from judge_gym.cli.suites import posted_json, remote_lab, run_and_post

if TYPE_CHECKING:
    from judge_gym.lab import Lab
    from judge_gym.records.responses import DueRow, SuiteRunRow


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
                    [(report, posted)] = run_and_post(
                        lab,
                        remote,
                        suite,
                        [row["model"]],
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
