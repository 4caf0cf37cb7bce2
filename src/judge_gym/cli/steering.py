"""Verbs that steer runs: start, pause, resume, cancel, retry, retune; how far they are; workers."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.app import (
    AsJson,
    NoSet,
    Set,
    Target,
    app,
    carry_out,
    end,
    given,
    limit_options,
    notes,
    open_lab,
    read_lab,
    same_command,
    settings,
    show_result,
)
from judge_gym.errors import DesignError, unknown

if TYPE_CHECKING:
    from judge_gym.engine import Workflow
    from judge_gym.lab import Lab
    from judge_gym.records.responses import ExperimentSummary

Budget = Annotated[
    list[str],
    typer.Option(
        metavar="NAME=LIMIT",
        help="usd, calls, tokens or minutes, or run.usd ... of each run; over the study's.",
    ),
]
PauseAfter = Annotated[
    str | None,
    typer.Option(
        metavar="STAGE", help="Pause when evidence, rubric, score, swap or probe is done."
    ),
]
RunTarget = Annotated[
    str, typer.Argument(help="A study file, a study's name, an experiment's tag, or suite:RUN.")
]
SUITE = "suite:"
"""The beginning of the name of a suite run."""
NAP = 1.0
"""Seconds between two looks of a watcher."""


def stage(name: str | None) -> "Workflow | None":
    """A workflow by its name."""
    from judge_gym.engine import WORKFLOWS

    for workflow in WORKFLOWS:
        if name == workflow:
            return workflow
    if name is not None:
        raise DesignError(unknown("stage", name, WORKFLOWS), choices=WORKFLOWS)
    return None


@app.command()
def start(
    target: Target,
    set: Set = NoSet,
    budget: Budget = NoSet,
    pause_after: PauseAfter = None,
    json: AsJson = False,
) -> None:
    """Start a study in the background and return at once; 'status --watch' follows it."""
    from judge_gym.cli import display

    with open_lab() as lab:
        tags = lab.runs.start(
            target,
            overrides=given("--set", set),
            budget=given("--budget", budget),
            pause_after=stage(pause_after),
        )
        log = _begin_worker(lab)
    if json:
        display.print_json({"started": tags, "log": str(log) if log else None})
        return
    typer.echo(f"started {len(tags)} experiments; follow them with: judge-gym status --watch")
    if log is not None:
        typer.echo(f"a worker carries them out and writes to {log}", err=True)
    elif lab.admin.on_server:
        typer.echo("workers carry them out: judge-gym worker, on any number of machines", err=True)


def _begin_worker(lab: "Lab") -> Path | None:
    """A worker of its own for a lab on a file, unless somebody is at work on it; its log."""
    log = lab.runs.worker_log()
    started = log is not None and lab.runs.start_worker(limit_options()) is not None
    return log if started else None


@app.command()
def pause(target: RunTarget, json: AsJson = False) -> None:
    """Begin no further call of a study, wherever it goes on; 'resume' goes on."""
    _steered("paused", "pause", target, json)


@app.command()
def cancel(target: RunTarget, json: AsJson = False) -> None:
    """End a study's unfinished runs; all that was paid for is kept, and 'run' begins again."""
    _steered("cancelled", "cancel", target, json)


def _steered(what: str, verb: str, target: str, json: bool) -> None:
    from judge_gym.cli import display

    with read_lab() as lab:
        tags = getattr(lab.runs, verb)(target)
    if json:
        display.print_json({what: tags})
    elif tags:
        typer.echo(f"{what} {len(tags)} runs; calls in flight are awaited and recorded")
    else:
        typer.echo(f"no run of {target} is unfinished")


@app.command()
def resume(
    target: RunTarget,
    budget: Budget = NoSet,
    pause_after: PauseAfter = None,
    json: AsJson = False,
) -> None:
    """Go on with a study that was paused, interrupted or over its budget, and follow it."""
    if target.startswith(SUITE):
        return _resume_suite(target, given("--budget", budget), json)
    with read_lab() as lab:
        result = carry_out(
            lambda watch: lab.runs.run(
                target,
                budget=given("--budget", budget),
                pause_after=stage(pause_after),
                watch=watch,
            ),
            quiet=json,
        )
    show_result(result, json)
    end(result, same_command(), quiet=json)


def _resume_suite(target: str, budget: Mapping[str, Any], json: bool) -> None:
    from judge_gym.cli import display, scores

    watcher = display.Watcher()
    with read_lab() as lab, watcher.shown(json):
        run = target.removeprefix(SUITE)
        report = lab.suites.resume(run, budget=budget, watch=watcher.watch)
    if json:
        display.print_json(report.to_json())
    else:
        scores.show_reports([report])
    scores.end([report], quiet=json)


@app.command()
def retry(target: Target, json: AsJson = False) -> None:
    """Ask again for what no attempt brought an answer to, and for nothing else."""
    with read_lab() as lab:
        result = carry_out(
            lambda watch: lab.runs.run(target, only_failed=True, watch=watch), quiet=json
        )
    show_result(result, json)
    end(result, same_command(), quiet=json)


@app.command()
def retune(target: RunTarget, budget: Budget = NoSet, json: AsJson = False) -> None:
    """Change the budget of a study while it runs; --rpm, --tpm, --concurrency before the verb."""
    from judge_gym.cli import display

    limits = {name: settings[name] for name in ("rpm", "tpm", "concurrency") if settings.get(name)}
    if not budget and not limits:
        raise DesignError("nothing to change; give --budget NAME=LIMIT, or --rpm N before 'retune'")
    with read_lab() as lab:
        result = lab.runs.retune(target, budget=given("--budget", budget), limits=limits)
    if json:
        display.print_json(result)
        return
    caps = {**result["budget"]}
    of_runs = {f"run.{name}": cap for name, cap in caps.pop("run").items()}
    told = {**caps, **of_runs, **limits}.items()
    typer.echo(f"from now on: {', '.join(f'{name} {value:,}' for name, value in told)}")


@app.command()
def worker(
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when nothing is left to do.")
    ] = False,
) -> None:
    """Carry out what others start on this lab, until interrupted; on Postgres any number may."""
    from judge_gym.cli import INTERRUPTED, display

    watcher = display.Watcher()
    with open_lab() as lab:
        strangers = lab.runs.other_versions()
        if strangers:
            notes(f"left to a worker of another version: {', '.join(strangers)}")
        with watcher.shown(False):
            done = lab.runs.work(
                until_idle=until_idle,
                begun=lambda name: typer.echo(f"{name} is ready", err=True),
                watch=watcher.watch_all,
            )
    calls, usd = sum(one.paid for one in done.values()), sum(one.usd for one in done.values())
    typer.echo(f"carried out parts of {len(done)} runs: {calls:,} calls, {usd:.2f} USD", err=True)
    if not until_idle:
        raise typer.Exit(INTERRUPTED)


@app.command()
def status(
    target: Annotated[
        str | None,
        typer.Argument(help="A study's name, an experiment's tag or suite:RUN; all if none."),
    ] = None,
    type: Annotated[
        str | None, typer.Option(help="Only tasks of this type: ecc, control, benchmark.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again until all have ended.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show how far experiments are, and why targets failed."""
    from judge_gym.cli import display

    if type not in (None, "ecc", "control", "benchmark"):
        raise DesignError(
            unknown("task type", type, ["ecc", "control", "benchmark"]),
            choices=["ecc", "control", "benchmark"],
        )
    if target is not None and target.startswith(SUITE):
        return _suite_status(target, watch, json)
    with read_lab() as lab:
        rows = _rows(lab, target, type)
        with display.looking() as show:
            while watch and any(row["status"] not in ENDED for row in rows):
                show([line for row in rows for line in _lines(row)])
                time.sleep(NAP)
                rows = _rows(lab, target, type)
    if json:
        display.print_json(rows)
        return
    if not rows:
        typer.echo(
            f"no experiments yet in {lab.admin.database}; 'judge-gym init' writes a study, "
            "'judge-gym run STUDY' runs it"
        )
    display.table("", [line for row in rows for line in _lines(row)])
    for row in rows:
        for run in row["runs"]:
            if run["message"]:
                notes(f"{row['tag']}: {run['message']}")
            for one in run["failures"]:
                notes(f"{row['tag']}: {one['count']} {one['stage']} failed: {one['reason']}")


def _suite_status(target: str, watch: bool, json: bool) -> None:
    from judge_gym.cli import display

    def line(run: Mapping[str, Any]) -> dict[str, Any]:
        evals = f"{run['done']['evals']}/{run['wanted']['evals']}"
        facts = {name: run[name] for name in ("tag", "status", "series")}
        return {**facts, "evals": evals, **run["verdicts"]}

    with read_lab() as lab:
        [run] = lab.runs.status(target)["runs"]
        with display.looking() as show:
            while watch and run["in_progress"]:
                show([line(run)])
                time.sleep(NAP)
                [run] = lab.runs.status(target)["runs"]
    if json:
        display.print_json([run])
        return
    display.table("", [line(run)])
    if run["message"]:
        notes(f"{target}: {run['message']}")


ENDED = ("complete", "complete-with-failures", "paused", "over-budget", "failed", "cancelled")


def _rows(lab: "Lab", target: str | None, type: str | None) -> "Sequence[ExperimentSummary]":
    if target is None:
        return lab.experiments.list(task_type=type)
    name = lab.experiments.study_name(target)
    rows = lab.experiments.list(study=name, task_type=type)
    if not rows and not lab.experiments.list(study=name):
        rows = [lab.experiments.show(name)]
    return rows


def _lines(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    from judge_gym.engine import WORKFLOWS

    if not row["runs"]:
        return [
            {
                "tag": row["tag"],
                "status": "pending",
                "series": "",
                **dict.fromkeys(WORKFLOWS, ""),
                "unread": "",
            }
        ]
    return [
        {
            "tag": row["tag"],
            "status": run["status"],
            "series": run["series"],
            **{stage: f"{run['done'][stage]}/{run['wanted'][stage]}" for stage in WORKFLOWS},
            "unread": ", ".join(
                f"{n} {name}" for name, n in run["verdicts"].items() if name != "scored"
            ),
        }
        for run in row["runs"]
    ]
