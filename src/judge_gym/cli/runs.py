"""Commands that run studies and control their runs: run, pause, status and others."""

import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from judge_gym.cli import display
from judge_gym.cli.app import (
    INTERRUPTED,
    app,
    limit_options,
    limits,
    note_unused_limits,
    notes,
    open_lab,
    read_lab,
)
from judge_gym.cli.options import (
    NONE,
    AllowPrivate,
    AsJson,
    Budget,
    PauseAfter,
    RunTarget,
    Samples,
    Series,
    Set,
    Target,
    parse_pairs,
    workflow,
)
from judge_gym.cli.results import collect_missing, execute_and_end
from judge_gym.errors import DesignError, unknown
from judge_gym.records import TaskType

if TYPE_CHECKING:
    from judge_gym.lab import Lab
    from judge_gym.lab.runs import RunKeywords
    from judge_gym.lab.study_files import StudySource
    from judge_gym.records.responses import ExperimentSummary, RunState

SUITE = "suite:"
"""The beginning of the name of a suite run."""
OTHERS = (SUITE, "analysis:")
"""The beginnings of targets that are no experiments."""
WATCH_SECONDS = 1.0
"""Seconds between two updates of `status --watch`."""
OPTIONAL = ("series", "evidence", "rubric", "swap", "probe", "score")
"""Columns of `status` that are left out first on a narrow terminal."""
ENDED = (
    *("complete", "complete-with-failures", "paused", "over-budget", "failed", "cancelled"),
    *("draft", "cleaned-up"),
)
"""Statuses of experiments that do not change by themselves."""


@app.command()
def run(
    target: Target,
    set: Set = NONE,
    series: Series = None,
    new_run: Annotated[
        bool,
        typer.Option(
            "--new-run", help="Supersede the active runs; answers in the ledger are reused."
        ),
    ] = False,
    samples: Samples = None,
    budget: Budget = NONE,
    pause_after: PauseAfter = None,
    allow_private: AllowPrivate = False,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Call no model: every answer must be in the ledger."),
    ] = False,
    background: Annotated[
        bool,
        typer.Option("--background", help="Return at once; a worker runs it, 'status' follows it."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Run a study to the end.

    Interrupt it with Ctrl-C; the same command continues it.
    """
    options: RunKeywords = {
        "overrides": parse_pairs("--set", set),
        "series": series,
        "new_run": new_run,
        "samples": samples,
        "budget": parse_pairs("--budget", budget),
        "offline": offline,
        "pause_after": workflow(pause_after),
    }
    with open_lab() as lab:
        study = lab.studies.read(target, options["overrides"])
        if not offline:
            collect_missing(lab, study, allow_private, quiet=json or background)
        if background:
            _start(lab, study, options, json)
            return
        execute_and_end(lab, lambda watch: lab.runs.run(study, watch=watch, **options), json)


def _start(lab: "Lab", study: "str | StudySource", options: "RunKeywords", json: bool) -> None:
    """Queues a study, and starts a worker where the lab is a file."""
    tags = lab.runs.start(study, **options)
    log = None
    if not lab.admin.on_server and lab.workers.start(limit_options()) is not None:
        log = lab.workers.log_file()
    if json:
        display.print_json({"started": tags, "log": str(log) if log else None})
        return
    if log is None:
        note_unused_limits(lab.studies.name(study))
    typer.echo(f"started {display.plural(len(tags), 'experiment')}")
    typer.echo("follow with: judge-gym status --watch", err=True)
    if log is not None:
        typer.echo(f"the worker's log is {log}", err=True)
    elif lab.admin.on_server:
        typer.echo("run workers on any number of machines: judge-gym worker", err=True)


@app.command()
def pause(target: RunTarget, json: AsJson = False) -> None:
    """Pause a study, in whichever process runs it."""
    with read_lab() as lab:
        _show_stopped("paused", target, lab.runs.pause(target), json)


@app.command()
def cancel(target: RunTarget, json: AsJson = False) -> None:
    """Cancel a study's unfinished runs. Answers are kept."""
    with read_lab() as lab:
        _show_stopped("cancelled", target, lab.runs.cancel(target), json)


def _show_stopped(verb: str, target: str, tags: Sequence[str], json: bool) -> None:
    if json:
        display.print_json({verb: tags})
    elif tags:
        runs = display.plural(len(tags), "run")
        typer.echo(f"{verb} {runs}; calls in flight are completed and recorded")
    else:
        typer.echo(f"{target} has no unfinished runs")


@app.command()
def resume(
    target: RunTarget,
    budget: Budget = NONE,
    pause_after: PauseAfter = None,
    series: Annotated[
        str | None, typer.Option(help="The series to continue, by default that of the seed.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Continue a paused, interrupted or over-budget study."""
    if target.startswith(SUITE):
        return _resume_suite(target, parse_pairs("--budget", budget), json)
    with read_lab() as lab:
        execute_and_end(
            lab,
            lambda watch: lab.runs.run_resumed(
                target,
                budget=parse_pairs("--budget", budget),
                pause_after=workflow(pause_after),
                series=series,
                watch=watch,
            ),
            json,
        )


def _resume_suite(target: str, budget: Mapping[str, Any], json: bool) -> None:
    from judge_gym.cli.suite_display import end as end_suite
    from judge_gym.cli.suite_display import show_reports

    with read_lab() as lab, display.run_progress(quiet=json) as watch:
        report = lab.suites.resume(target.removeprefix(SUITE), budget=budget, watch=watch)
    if json:
        display.print_json(report.to_json())
    else:
        show_reports([report])
    end_suite([report], quiet=json)


@app.command()
def retry(target: Target, json: AsJson = False) -> None:
    """Repeat failed calls, and nothing else."""
    with read_lab() as lab:
        execute_and_end(
            lab, lambda watch: lab.runs.run(target, only_failed=True, watch=watch), json
        )


@app.command()
def retune(target: RunTarget, budget: Budget = NONE, json: AsJson = False) -> None:
    """Change a study's budget or limits while it runs.

    Limits stand before the command: judge-gym --rpm 100 retune STUDY.
    """
    if not budget and not limits():
        raise DesignError("nothing to change; give --budget NAME=LIMIT, or --rpm N before 'retune'")
    with read_lab() as lab:
        changed = lab.runs.retune(target, budget=parse_pairs("--budget", budget), limits=limits())
    if json:
        display.print_json(changed)
        return
    caps = {**changed["budget"]}
    per_run = {f"run.{name}": cap for name, cap in caps.pop("run").items()}
    values = {**caps, **per_run, **limits()}.items()
    typer.echo(f"from now on: {', '.join(f'{name} {value:,}' for name, value in values)}")


@app.command()
def worker(
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="End when nothing is left to do.")
    ] = False,
) -> None:
    """Execute the runs that others start on this lab.

    On Postgres, any number of workers may share the work.
    """
    with open_lab() as lab:
        if other_versions := lab.workers.other_versions():
            notes(f"left for workers of another version: {', '.join(other_versions)}")
        with display.run_progress(quiet=False) as watch:
            done = lab.workers.execute(
                until_idle=until_idle,
                on_start=lambda name: typer.echo(f"{name} is ready", err=True),
                watch=watch,
            )
        states = lab.runs.status()["runs"] if until_idle else []
    paused = [run for run in states if run["status"] == "paused"]
    if paused:
        name = display.plural(len(paused), "run")
        notes(
            f"{name} paused ({paused[0]['message']}): continue with judge-gym resume, or run again"
        )
    calls, usd = sum(run.paid for run in done.values()), sum(run.usd for run in done.values())
    runs = display.plural(len(done), "run")
    typer.echo(f"worked on {runs}: {calls:,} calls, {usd:.2f} USD", err=True)
    if not until_idle:
        raise typer.Exit(INTERRUPTED)


@app.command()
def status(
    target: Annotated[
        str | None,
        typer.Argument(
            help="A study's name, an experiment's tag, suite:RUN or analysis:NUMBER; default: all."
        ),
    ] = None,
    type: Annotated[
        str | None, typer.Option(help="Only tasks of this type: ecc, control, benchmark.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Update until all runs have ended.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show the progress of experiments, and why calls failed."""
    if type not in (None, *get_args(TaskType)):
        choices = get_args(TaskType)
        raise DesignError(unknown("task type", type, choices), choices=choices)
    with read_lab() as lab:
        if target is not None and not target.startswith(OTHERS):
            target = lab.studies.name(target)
        rows, suite_runs = _experiments(lab, target, type), _suite_runs(lab, target, type)
        models = lab.pages.study_models(rows[0]["study"]) if target is not None and rows else []
        with display.live_table(OPTIONAL) as show:
            while watch and (
                any(row["status"] not in ENDED for row in rows)
                or any(run["in_progress"] for run in suite_runs)
            ):
                show(_lines(rows) or [_suite_line(run) for run in suite_runs])
                time.sleep(WATCH_SECONDS)
                rows, suite_runs = _experiments(lab, target, type), _suite_runs(lab, target, type)
    if json:
        display.print_json([*rows, *suite_runs])
        return
    if not rows and not suite_runs:
        typer.echo(
            f"no experiments yet in {lab.admin.database}; 'judge-gym init' writes a study, "
            "'judge-gym run STUDY' runs it; 'judge-gym suite runs' lists runs of suites"
        )
    display.table("", _lines(rows), one_line=True, optional=OPTIONAL)
    display.table("", [_suite_line(run) for run in suite_runs], one_line=True)
    display.table(
        "by model",
        models,
        note="paid: attempts at calls, with retries; answered: calls with an answer.",
    )
    for row in rows:
        if row["cleaned_up"]:
            notes(f"{row['tag']}: cleaned up at {row['cleaned_up']:%Y-%m-%d %H:%M} UTC")
        if row["status"] == "draft":
            notes(f"{row['tag']}: waits for its evidence: judge-gym evidence make {row['tag']}")
        for run in row["runs"]:
            if run["message"]:
                notes(f"{row['tag']}: {run['message']}")
            for failure in run["failures"]:
                count, step = failure["count"], failure["stage"]
                notes(f"{row['tag']}: {count} {step} failed: {failure['reason']}")
    for state in suite_runs:
        if state["message"]:
            notes(f"{state['tag']}: {state['message']}")


def _suite_runs(lab: "Lab", target: str | None, type: str | None) -> "Sequence[RunState]":
    """Finds the suite run or analysis that is the target, or all those in progress."""
    if type is not None or (target is not None and not target.startswith(OTHERS)):
        return []
    return [run for run in lab.runs.status(target)["runs"] if run["tag"].startswith(OTHERS)]


def _suite_line(run: Mapping[str, Any]) -> dict[str, Any]:
    [(unit, targets)] = run["targets"].items()
    facts = {name: run[name] for name in ("tag", "status", "series")}
    return {**facts, unit: f"{run['done'][unit]}/{targets}", **run["verdicts"]}


def _experiments(lab: "Lab", target: str | None, type: str | None) -> "Sequence[ExperimentSummary]":
    if target is None:
        return lab.experiments.list(task_type=type)
    if target.startswith(OTHERS):
        return []
    rows = lab.experiments.list(study=target, task_type=type)
    if not rows and not lab.experiments.list(study=target):
        rows = [lab.experiments.show(target)]
    return rows


def _lines(rows: "Sequence[ExperimentSummary]") -> list[dict[str, Any]]:
    """Makes the rows of `status`, without the steps that none of the experiments has."""
    from judge_gym.engine import WORKFLOWS

    lines = [_line(row) for row in rows]
    absent = {step for step in WORKFLOWS if not any(line[step] for line in lines)}
    return [{key: cell for key, cell in line.items() if key not in absent} for line in lines]


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    """Summarizes an experiment over its runs, as `status` shows it.

    A failed call is not done, and what needs no call is no part of the work.
    """
    from judge_gym.engine import WORKFLOWS

    runs = [run for run in row["runs"] if run["done"]]

    def total_of(name: Literal["targets", "done", "failed", "not_needed"]) -> Counter[str]:
        return sum((Counter(run[name]) for run in runs), Counter())

    targets = total_of("targets") - total_of("not_needed")
    done = total_of("done") - total_of("failed") - total_of("not_needed")
    verdicts: Counter[str] = sum((Counter(run["verdicts"]) for run in runs), Counter())
    steps: dict[str, str] = {
        step: f"{done[step]}/{targets[step]}" if targets[step] else "" for step in WORKFLOWS
    }
    total = targets.total()
    return {
        "tag": row["tag"],
        "status": row["status"],
        "done": f"{min(100, 100 * done.total() // total)} %" if total else "",
        "not scored": ", ".join(f"{n} {name}" for name, n in verdicts.items() if name != "scored"),
        **steps,
        "series": ", ".join(dict.fromkeys(run["series"] for run in row["runs"])),
    }


@app.command()
def reparse(
    target: Target,
    write: Annotated[
        bool, typer.Option("--write", help="Change the records; without it nothing is written.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Read stored answers with today's parsers."""
    with read_lab() as lab:
        result = lab.runs.reparse(target, write=write)
    if json:
        display.print_json(result)
        return
    display.table("changes", result["changes"])
    display.table("examples; judge-gym ledger show CALL prints the answer", result["examples"])
    if recorded := Counter(result["recorded"]):
        typer.echo(
            f"recorded elsewhere: our parsers read {recorded['same']:,} of {recorded.total():,} "
            f"answers as they were recorded, {recorded['other']:,} as another verdict, and in "
            f"{recorded['none']:,} no verdict in our form; the recorded verdicts stay"
        )
    read = ", ".join(f"{count:,} {record}s" for record, count in result["read"].items())
    changed = sum(change["count"] for change in result["changes"])
    typer.echo(f"read {read or 'nothing'}: {changed:,} changed")
    if result["probes_dropped"]:
        verb = "were deleted" if write else "would be deleted"
        notes(
            f"{result['probes_dropped']:,} probes about changed verdicts {verb}; "
            "the ledger keeps their answers"
        )
    if changed and write:
        notes(f"ask what is missing now with: judge-gym run {shlex.quote(target)}")
    elif changed:
        command = f"judge-gym reparse {shlex.quote(target)} --write"
        notes(f"nothing is written yet; write with: {command}")


@app.command()
def cleanup(
    tag: Annotated[str, typer.Argument(help="The experiment's tag.")],
    ledger: Annotated[
        bool, typer.Option("--ledger", help="Also delete the calls that only it used.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Also forget its tag, which else stays known.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Even if it may be running.")] = False,
    json: AsJson = False,
) -> None:
    """Delete an experiment's runs. Its tag and all answers stay known."""
    with read_lab() as lab:
        counts = lab.experiments.cleanup(tag, ledger=ledger, forget=forget, force=force)
    if json:
        display.print_json(counts)
        return
    typer.echo("deleted " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    if not ledger:
        typer.echo("the ledger keeps every answer: running it again costs nothing")
