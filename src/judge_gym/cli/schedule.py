"""The command `schedule`: which models are due for another suite run, and what they cost."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import STOPPED, app, notes, open_lab
from judge_gym.cli.options import NONE, AsJson, Jobs, Remote, Unisolated
from judge_gym.cli.remote import remote_lab
from judge_gym.cli.suite_display import end
from judge_gym.cli.suites import Finished, posted_json, run_and_post, show_finished
from judge_gym.errors import DesignError

if TYPE_CHECKING:
    from judge_gym.lab import Lab
    from judge_gym.records.responses import DueRow

REMEDY = "judge-gym schedule --write lists them in judge-gym.models.toml with a budget"


@app.command()
def schedule(
    suite: Annotated[
        str, typer.Argument(metavar="[SUITE]", help="A suite's folder, or 'python'.")
    ] = "python",
    model: Annotated[list[str], typer.Option(help="Only this model; repeatable.")] = NONE,
    condition: Annotated[
        str | None, typer.Option(help="Under this condition; default: the file's, or default.")
    ] = None,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="Schedule the proposed models, or those of --model, in your file."
        ),
    ] = False,
    usd_per_month: Annotated[
        float | None,
        typer.Option(min=0, help="With --write: the budget; default: the expected cost."),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Run the models that are due.")] = False,
    most: Annotated[int | None, typer.Option(min=1, help="Run at most this many models.")] = None,
    jobs: Jobs = 8,
    remote: Remote = None,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """List which models are due for another suite run, and what they cost.

    New and cheap models are due more often. Nothing is run unless your judge-gym.models.toml lists
    models and a budget; --write does that. Exit codes: 0 if nothing is due, 2 if nothing is
    scheduled, 3 if the budget is too small for what is due.
    """
    from judge_gym.lab.suite_schedule import usd_spent
    from judge_gym.models import Registry

    registry, now = Registry(), datetime.now(UTC)
    entry = registry.entries.schedule
    condition_name = condition or (entry.condition if entry else "default")
    models = [registry.resolve(id) for id in model]
    scheduled = [registry.resolve(id) for id in entry.models] if entry else []
    listed = models or scheduled or registry.proposed(now.date())
    if write:
        listed = [*dict.fromkeys([*scheduled, *listed])]
    with open_lab() as lab, _runs_of(lab, remote, suite) as list_runs:
        runs = list_runs()
        rows = (
            lab.suites.schedule(suite, listed, condition=condition_name, runs=runs)
            if listed
            else []
        )
        if not json:
            notes(*(n for id in listed if (n := registry.card(id).retirement(now.date()))))
        if write:
            least = entry.usd_per_month if entry else 0.0
            _write(rows, condition_name, usd_per_month, least, json)
            return
        if not json:
            proposed = (
                "not scheduled" if models else "proposed for the providers whose keys are set"
            )
            _show(rows, "scheduled" if entry else proposed)
            if entry is not None:
                notes(f"the budget is {entry.usd_per_month:g} USD per month")
        if entry is None:
            raise _nothing_scheduled(rows, registry.providers())
        if missing := [id for id in models if id not in scheduled]:
            raise DesignError(
                f"{missing[0]} is not scheduled; judge-gym schedule --model {missing[0]} --write "
                "adds it",
                choices=scheduled,
            )
        finished: list[Finished] = []
        skipped: list[str] = []
        if run:
            options = {"jobs": jobs, "allow_unisolated": allow_unisolated}
            due = [row for row in rows if row["due"]][:most]
            left = entry.usd_per_month - usd_spent(runs, scheduled, now)
            of = f"of {entry.usd_per_month:g} USD per month"
            finished, skipped = _run(lab, remote, suite, due, left, of, options, quiet=json)
    if json:
        done = {"runs": [posted_json(*pair) for pair in finished], "skipped": skipped}
        display.print_json({"schedule": rows, **(done if run else {})})
    else:
        show_finished(finished)
        notes(*skipped)
        if not any(row["due"] for row in rows):
            next_due = min(row["due_from"] for row in rows if row["due_from"] is not None)
            typer.echo(f"nothing is due before {next_due:%Y-%m-%d %H:%M} UTC", err=True)
    if finished:
        end([report for report, _ in finished], [p for _, p in finished if p], quiet=json)
    if skipped:
        raise typer.Exit(STOPPED)


@contextmanager
def _runs_of(lab: "Lab", remote: str | None, suite: str) -> "Iterator[Any]":
    """Yields a function that lists the runs of a suite, here or in a remote lab."""
    name = lab.suites.find(suite).name
    if remote is None:
        yield lambda: lab.suites.list_runs(suite=name)
        return
    with remote_lab(remote) as client:
        yield lambda: client.suites.list_runs(suite=name)


def _run(
    lab: "Lab",
    remote: str | None,
    suite: str,
    due: "Sequence[DueRow]",
    left: float,
    of: str,
    options: dict[str, Any],
    *,
    quiet: bool,
) -> tuple[list[Finished], list[str]]:
    """Runs what is due within the rest of a budget, and says why anything else was not run.

    Args:
        lab: where it is run.
        remote: the URL of a lab to which results are posted.
        suite: a folder, or `python`.
        due: the models.
        left: US dollars.
        of: the budget, in words.
        options: of the runs.
        quiet: whether no progress is shown.
    """
    name = lab.suites.find(suite).name
    now = datetime.now(UTC)
    finished: list[Finished] = []
    skipped = []
    for row in due:
        model, usd = row["model"], row["usd"]
        if not lab.pages.can_call(model):
            skipped.append(f"{model} is due, but cannot be called from here; see judge-gym models")
        elif row["retires"] is not None and row["retires"] <= now.date():
            skipped.append(f"{model} was retired by its provider on {row['retires']}")
        elif usd is None:
            skipped.append(f"{model} is due, but its price is unknown; set prices in your file")
        elif usd > left:
            skipped.append(
                f"{model} is due and would cost about {usd:.2f} USD, but {max(left, 0):.2f} {of} "
                "are left"
            )
        else:
            with lab.suites.limited(name, left), display.run_progress(quiet=quiet) as watch:
                finished += run_and_post(
                    lab,
                    remote,
                    suite,
                    [model],
                    conditions=[row["condition"]],
                    series=now.date().isoformat(),
                    watch=watch,
                    **options,
                )
            left -= finished[-1][0].score.usd or 0.0
            if finished[-1][0].stopped is not None:
                break
    return finished, skipped


def _show(rows: "Sequence[DueRow]", title: str) -> None:
    listed = [
        {
            "model": row["model"],
            "condition": row["condition"],
            "due": "now" if row["due"] else row["due_from"],
            "every days": round(row["days"], 1),
            "usd per run": row["usd"],
            "usd per month": row["usd_per_month"],
            "retires": row["retires"],
        }
        for row in rows
    ]
    estimated = any(row["estimated"] for row in rows)
    note = "Costs are estimates until a run of the model has measured them." if estimated else ""
    display.table(title, listed, note=note)


def _nothing_scheduled(
    rows: "Sequence[DueRow]", providers: Sequence[dict[str, Any]]
) -> DesignError:
    """Builds the error that says how to schedule models."""
    if rows:
        models = [row["model"] for row in rows]
        return DesignError(f"no model is scheduled, so nothing is run; {REMEDY}", choices=models)
    keys = [row["key"] for row in providers if row["key"] and row["provider"] != "local"]
    return DesignError(
        f"no model is scheduled, and no provider's key is set ({', '.join(keys)}); set one, or "
        "name models: judge-gym schedule --model ID --write",
        choices=keys,
    )


def _write(
    rows: "Sequence[DueRow]",
    condition: str,
    usd_per_month: float | None,
    least: float,
    json: bool,
) -> None:
    """Writes a schedule into the user's file. Its budget is by default what it will cost."""
    from judge_gym.models.registry_files import ScheduleEntry, write_schedule

    if not rows:
        raise DesignError("no model to schedule: set a provider's key, or name some with --model")
    if unpriced := [row["model"] for row in rows if row["usd_per_month"] is None]:
        raise DesignError(
            f"the price of {unpriced[0]} is unknown, so that no budget would hold; set prices in "
            "judge-gym.models.toml"
        )
    if usd_per_month is None:
        expected = sum(row["usd_per_month"] or 0.0 for row in rows)
        usd_per_month = max(least, float(math.ceil(expected)))
    models = [row["model"] for row in rows]
    entry = ScheduleEntry(models=models, usd_per_month=usd_per_month, condition=condition)
    file = write_schedule(Path(), entry)
    if json:
        display.print_json({"file": str(file), **entry.model_dump()})
    else:
        _show(rows, "scheduled")
        typer.echo(
            f"{file} schedules {display.plural(len(models), 'model')} for "
            f"{entry.usd_per_month:g} USD per month at most; judge-gym schedule "
            "--run runs those that are due"
        )
