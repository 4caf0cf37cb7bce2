"""What is due: which models are to be run on a suite again, and running them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.app import AsJson, NoSet, app, given, notes, open_lab
from judge_gym.cli.scores import end, show_posted, show_reports
from judge_gym.cli.steering import Budget
from judge_gym.cli.suite import (
    Jobs,
    NoPatterns,
    Remote,
    Unisolated,
    posted_json,
    remote_lab,
    run_and_post,
)
from judge_gym.errors import DesignError

if TYPE_CHECKING:
    from judge_gym.lab import Lab


@app.command()
def schedule(
    suite: Annotated[
        str, typer.Argument(metavar="[SUITE]", help="A suite's folder, or 'python'.")
    ] = "python",
    model: Annotated[list[str], typer.Option(help="Only this model; repeatable.")] = NoPatterns,
    run: Annotated[bool, typer.Option("--run", help="Run what is due.")] = False,
    most: Annotated[int | None, typer.Option(min=1, help="Run so many models at most.")] = None,
    jobs: Jobs = 8,
    budget: Budget = NoSet,
    remote: Remote = None,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """List when each model is due for another run of a suite: new and cheap ones often."""
    from judge_gym.cli import display

    now = datetime.now(UTC)
    watcher = display.Watcher()
    with open_lab() as lab:
        rows = (
            _here(lab, suite, model, now) if remote is None else _there(lab, remote, suite, model)
        )
        made = []
        if run:
            with watcher.shown(json):
                for row in [row for row in rows if row["due"] and row.get("callable", True)][:most]:
                    report, posted = run_and_post(
                        lab,
                        remote,
                        suite,
                        row["model"],
                        series=now.date().isoformat(),
                        jobs=jobs,
                        budget=given("--budget", budget),
                        allow_unisolated=allow_unisolated,
                        watch=watcher.watch,
                    )
                    made.append((report, posted))
                    if report.stopped is not None:
                        break
    reports = [report for report, _ in made]
    there = [posted for _, posted in made if posted is not None]
    if json:
        runs = {"runs": [posted_json(*one) for one in made]} if run else {}
        display.print_json({"schedule": rows, **runs})
    else:
        display.table("", rows)
        if not rows:
            notes("no model is known here: name some with --model, or run a suite first")
        if unable := [row["model"] for row in rows if row["due"] and not row.get("callable", True)]:
            notes(f"due, but cannot be asked from here: {', '.join(unable)}; see judge-gym models")
        show_reports(reports)
        for one in there:
            show_posted(one)
    if reports:
        end(reports, there, quiet=json)


def _here(lab: "Lab", suite: str, models: list[str], now: datetime) -> list[dict[str, Any]]:
    """What is due by the runs of this lab."""
    return [
        {
            "model": one.model,
            "due": one.due,
            "due from": one.due_from,
            "every days": one.interval.total_seconds() / 86400,
        }
        for one in lab.suites.schedule(suite, models=models, now=now)
    ]


def _there(lab: "Lab", remote: str, suite: str, models: list[str]) -> list[dict[str, Any]]:
    """What is due by the runs of a remote lab, which is told of the models of our own files."""
    name = lab.suites.find(suite).name
    with remote_lab(remote) as client:
        rows = client.schedule(name, models=[lab.models.resolve(one) for one in models])
        known = {row["model"] for row in rows}
        own = [one for one in lab.models.scheduled() if one not in known]
        if own and not models:
            rows += client.schedule(name, models=own)
        rows = _by_own_dates(lab, rows, client.suite_runs(suite=name))
    return [
        {
            "model": row["model"],
            "due": row["due"],
            "due from": row["due_from"],
            "every days": row["days"],
            "callable": _callable(lab, row),
        }
        for row in rows
    ]


def _by_own_dates(
    lab: "Lab", rows: list[dict[str, Any]], runs: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows of a remote lab; a model whose first day is known here is due by that."""
    from judge_gym.lab.suites import CHECK

    own: dict[str, list[tuple[datetime, float | None]]] = {
        row["model"]: [] for row in rows if lab.suites.first_seen(row["model"])
    }
    for run in runs:
        if run["model"] in own and run["series"] != CHECK:
            usd = run["cost"] if run["whole"] else None
            own[run["model"]].append((datetime.fromisoformat(run["created"]), usd))
    known = {one.model: one for one in lab.suites.due_by(own, datetime.now(UTC))}
    made = []
    for row in rows:
        if one := known.get(row["model"]):
            days = one.interval.total_seconds() / 86400
            made.append({**row, "due": one.due, "due_from": one.due_from, "days": days})
        else:
            began = row["due_from"] and datetime.fromisoformat(row["due_from"])
            made.append({**row, "due_from": began})
    return sorted(made, key=lambda row: (row["due_from"] is not None, row["due_from"] or 0))


def _callable(lab: "Lab", row: Mapping[str, Any]) -> bool:
    """Whether a model that the remote lab knows can be asked from here."""
    try:
        lab.models.open(row["model"])
    except DesignError:
        return False
    return True
