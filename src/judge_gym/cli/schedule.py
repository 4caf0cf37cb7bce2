"""What is due: which models are to be run on a suite again, and running them."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from judge_gym.cli.app import AsJson, NoSet, app, given, notes, open_lab
from judge_gym.cli.scores import end, show_reports
from judge_gym.cli.steering import Budget
from judge_gym.cli.suite import Jobs, NoPatterns, Unisolated


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
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """List when each model is due for another run of a suite: new and cheap ones often."""
    from judge_gym.cli import display

    now = datetime.now(UTC)
    watcher = display.Watcher()
    with open_lab() as lab:
        listed = lab.schedule(suite, models=model, now=now)
        rows = [
            {
                "model": one.model,
                "due": one.due,
                "since": one.since,
                "every days": one.interval.total_seconds() / 86400,
            }
            for one in listed
        ]
        reports = []
        if run:
            with watcher.shown(json):
                for one in [one for one in listed if one.due][:most]:
                    report = lab.run_suite(
                        suite,
                        one.model,
                        series=now.date().isoformat(),
                        jobs=jobs,
                        budget=given("--budget", budget),
                        allow_unisolated=allow_unisolated,
                        watch=watcher.watch,
                    )
                    reports.append(report)
                    if report.stopped is not None:
                        break
    if json:
        made = {"runs": [one.to_json() for one in reports]} if run else {}
        display.print_json({"schedule": rows, **made})
    else:
        display.table("", rows)
        if not rows:
            notes("no model is known here: name some with --model, or run a suite first")
        show_reports(reports)
    if reports:
        end(reports, quiet=json)
