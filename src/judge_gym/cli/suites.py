"""Commands over code suites: suite list, show, check, run, ablate and others."""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli import display
from judge_gym.cli.app import FAILED, app, notes, open_lab, read_lab
from judge_gym.cli.options import (
    NONE,
    AsJson,
    Budget,
    Category,
    Condition,
    Conditions,
    Evals,
    FailedOf,
    Filter,
    FromLab,
    Jobs,
    Limit,
    ModelId,
    Models,
    Remote,
    Replicates,
    SuiteName,
    SuiteSeries,
    Unisolated,
    parse_pairs,
)
from judge_gym.cli.remote import find_eval, lab_or_remote, remote_lab
from judge_gym.cli.suite_display import (
    effect_rows,
    end,
    show_eval,
    show_leaderboard,
    show_plan,
    show_posted,
    show_reports,
    show_runs,
)
from judge_gym.errors import DesignError, JudgeGymError, MissingToolError

if TYPE_CHECKING:
    from judge_gym.client.posting import Posted
    from judge_gym.lab import Lab
    from judge_gym.lab.suite_reports import SuiteReport
    from judge_gym.store import SuiteRun
    from judge_gym.suites import Condition as SuiteCondition
    from judge_gym.suites import Suite

NO_FILES: list[Path] = []
Guidelines = Annotated[
    list[Path],
    typer.Option(
        metavar="FILE",
        help="A condition with these guidelines instead of the suite's; repeatable.",
    ),
]
Sections = Annotated[
    list[str], typer.Option(help="Only this section of the guidelines; repeatable.")
]
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
            for suite in lab.suites.list(on_error=notes)
        ]
    display.show_rows(rows, json)


def version_of(suite: "Suite") -> str | None:
    """A suite's version, or None with a note where one of its tools is missing."""
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
    remote: FromLab = None,
    json: AsJson = False,
) -> None:
    """Show a suite's evals, or every eval of a run with its outcome."""
    if target.isdecimal():
        with lab_or_remote(remote) as source:
            detail = source.suites.show_run(int(target))
        if json:
            display.print_json(detail)
            return
        show_runs([detail])
        columns = ("eval", "path", "replicate", "outcome", "why", "step", "reason", "seconds")
        display.show_rows(detail["evals"], False, columns=columns)
        return
    with open_lab() as lab:
        suite = lab.suites.find(target)
    rows = [
        {
            "eval": task.path,
            "difficulty": task.difficulty,
            "pipeline": task.pipeline,
            "tests": task.tests,
            "files": len(task.answer),
            "wrong answers": len(task.wrong_answers),
            "gaps": bool(task.gaps),
        }
        for task in suite.evals
    ]
    if json:
        facts = {"suite": suite.name, "version": version_of(suite), "steps": list(suite.steps)}
        sections = list(suite.guidelines)
        choices = {"conditions": list(suite.conditions), "guidelines": sections}
        display.print_json({**facts, **choices, "evals": rows})
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
    filter: Filter = None,
    category: Category = NONE,
    failed_of: FailedOf = None,
    limit: Limit = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Answers at once; default: one per core.")
    ] = None,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Test the suite's own answers: reference answers must pass, wrong ones fail at their step."""
    with open_lab() as lab:
        checks = lab.suites.check(
            suite,
            evals=evals,
            filter=filter,
            category=category,
            failed_of=failed_of,
            limit=limit,
            jobs=jobs,
            allow_unisolated=allow_unisolated,
        )
    rows = [
        {
            "eval": check.result.path,
            "answer": check.wrong.name if check.wrong else "reference",
            "outcome": check.result.outcome.kind,
            "step": getattr(check.result.outcome, "step", ""),
            "reason": getattr(check.result.outcome, "reason", ""),
            "problem": check.problem,
            "seconds": sum(step.seconds for step in check.result.steps),
            "isolation": check.result.isolation,
        }
        for check in checks
    ]
    references = [row for row in rows if row["answer"] == "reference"]
    wrong = [row for row in rows if row["answer"] != "reference"]
    passed, caught = (sum(not row["problem"] for row in part) for part in (references, wrong))
    if json:
        facts = {"passed": passed, "evals": references}
        display.print_json({**facts, "caught": caught, "wrong_answers": wrong})
    else:
        columns = ("eval", "answer", "outcome", "step", "problem", "seconds", "isolation")
        display.table("", [{name: row[name] for name in columns} for row in rows])
        typer.echo(f"{passed} of {len(references)} reference answers pass", err=True)
        if wrong:
            typer.echo(f"{caught} of {len(wrong)} wrong answers fail at their step", err=True)
    if passed + caught < len(rows):
        raise typer.Exit(FAILED)


import_app = typer.Typer(help="Import the tasks of another project.", no_args_is_help=True)
suite_app.add_typer(import_app, name="import")


@import_app.command("convex")
def import_convex_suite(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A clone of convex-evals, or a folder like it.")
    ],
    to: Annotated[Path, typer.Option(help="The suite's folder, which must not exist.")] = Path(
        "convex"
    ),
    json: AsJson = False,
) -> None:
    """Write a suite with the tasks of a convex-evals folder, and say what cannot be mapped."""
    from judge_gym.suites.convex import NODE, PACKAGES, import_convex

    imported = import_convex(path, to)
    if json:
        display.print_json(asdict(imported))
        return
    skipped = [
        {"eval": path, "not imported because": why} for path, why in imported.skipped.items()
    ]
    display.table("", skipped)
    notes(*imported.notes)
    count = f"{len(imported.evals)} of {len(imported.evals) + len(skipped)} evals"
    typer.echo(
        f"{to} has {count}. Its graders import candidate code: scores are marked in-process.\n"
        f"It needs {NODE}; vitest {PACKAGES['vitest']} and {len(imported.packages) - 1} "
        "other packages are installed from npm by its first run.\n"
        f"next: judge-gym suite check {to}"
    )


@suite_app.command("run")
def run(
    suite: SuiteName,
    model: Models,
    condition: Conditions = NONE,
    guidelines: Guidelines = NO_FILES,
    evals: Evals = NONE,
    filter: Filter = None,
    category: Category = NONE,
    failed_of: FailedOf = None,
    limit: Limit = None,
    replicates: Replicates = 1,
    series: SuiteSeries = "0",
    jobs: Jobs = 8,
    budget: Budget = NONE,
    remote: Remote = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also write task, reply, files and step logs of each eval there."
        ),
    ] = None,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Run a suite with models: a run for each model under each condition, all at once.

    Interrupt it with Ctrl-C; the same command continues it.
    """
    conditions = [*condition, *(_own_condition(file) for file in guidelines)]
    with open_lab() as lab, display.run_progress(quiet=json) as watch:
        finished = run_and_post(
            lab,
            remote,
            suite,
            model,
            conditions=conditions or ["default"],
            evals=evals,
            filter=filter,
            category=category,
            failed_of=failed_of,
            limit=limit,
            replicates=replicates,
            series=series,
            jobs=jobs,
            budget=parse_pairs("--budget", budget),
            allow_unisolated=allow_unisolated,
            watch=watch,
        )
        reports = [report for report, _ in finished]
        folders = [] if output is None else [_write_run(lab, output, report) for report in reports]
    if json:
        display.print_json({"runs": [posted_json(*pair) for pair in finished]})
    else:
        show_finished(finished)
        notes(*(f"files are in {folder}" for folder in folders))
        for report in reports:
            if report.score.failed or report.score.inconclusive:
                notes(f"see what did not pass with: judge-gym suite failed {report.run.id}")
    end(reports, [posted for _, posted in finished if posted], quiet=json)


@suite_app.command("plan")
def plan(
    suite: SuiteName,
    model: Models,
    condition: Conditions = NONE,
    guidelines: Guidelines = NO_FILES,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="What `suite ablate` would ask instead.")
    ] = False,
    section: Sections = NONE,
    evals: Evals = NONE,
    filter: Filter = None,
    category: Category = NONE,
    failed_of: FailedOf = None,
    limit: Limit = None,
    replicates: Annotated[
        int | None, typer.Option(min=1, help="Answers per task; default: 1, or 3 with --ablate.")
    ] = None,
    series: SuiteSeries = "0",
    budget: Budget = NONE,
    json: AsJson = False,
) -> None:
    """Estimate what `suite run` with the same options would ask, its cost and its duration."""
    with open_lab() as lab:
        planned = lab.suites.estimate(
            suite,
            model,
            conditions=[*condition, *map(_own_condition, guidelines)] or ["default"],
            ablate=ablate,
            sections=section,
            evals=evals,
            filter=filter,
            category=category,
            failed_of=failed_of,
            limit=limit,
            series=series,
            replicates=replicates,
            budget=parse_pairs("--budget", budget),
        )
    display.print_json(planned) if json else show_plan(planned)


def _own_condition(file: Path) -> "SuiteCondition":
    from judge_gym.suites import own_guidelines

    try:
        return own_guidelines(file.stem, file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DesignError(f"the guidelines {file} cannot be read: {error}") from error


def _write_run(lab: "Lab", output: Path, report: "SuiteReport") -> Path:
    """Writes the files of a run into a folder of its own, and returns that."""
    from judge_gym.lab.suite_files import write_folder

    run = report.run
    name = re.sub(r"[^\w.@-]+", "-", f"run-{run.id}-{run.model}-{run.condition}")[:100]
    write_folder(lab.suites.files(run.id), output / name)
    return output / name


Finished = tuple["SuiteReport", "Posted | None"]
"""A run, and what a remote lab has of it; None without one."""


def run_and_post(
    lab: "Lab", remote: str | None, suite: str, models: Sequence[str], **options: Any
) -> list[Finished]:
    """Runs a suite, and posts results to a remote lab, if there is one, as they arrive."""
    if remote is None:
        return [(report, None) for report in lab.suites.run_each(suite, models, **options)]
    from judge_gym.client.posting import Poster, post_tasks

    posters: dict[int, Poster] = {}
    with remote_lab(remote) as client, ExitStack() as stack:

        def on_checked(suite: "Suite") -> None:
            """Refuses a token before anything is stored here."""
            sources = {task.path: task.source for task in suite.evals}
            try:
                post_tasks(client, suite.name, suite.version, [*sources], sources.__getitem__)
            except JudgeGymError as error:
                if not error.retry:  # otherwise results are posted later
                    raise

        def on_start(run: "SuiteRun") -> None:
            poster = posters[run.id] = stack.enter_context(Poster(lab.suites, client, run))
            if poster.error:
                notes(f"{poster.error}; results are stored here meanwhile")

        reports = lab.suites.run_each(
            suite, models, on_checked=on_checked, on_start=on_start, **options
        )
        return [(report, posters[report.run.id].finish()) for report in reports]


def show_finished(finished: Sequence[Finished]) -> None:
    """Prints runs that were just executed, and what a remote lab has of them."""
    show_reports([report for report, _ in finished])
    for report, posted in finished:
        done = report.execution.outcome if report.execution else None
        if report.ended and done is not None and not done.paid + done.reused:
            notes(f"run {report.run.id} had all its results already; --series NAME asks again")
        if posted is not None:
            show_posted(posted)


def posted_json(report: "SuiteReport", posted: "Posted | None") -> dict[str, Any]:
    """Converts a run to what `--json` prints, with what a remote lab has of it."""
    return report.to_json() | ({"posted": asdict(posted)} if posted else {})


@suite_app.command("ablate")
def ablate(
    suite: SuiteName,
    model: ModelId,
    section: Sections = NONE,
    condition: Condition = "default",
    evals: Evals = NONE,
    filter: Filter = None,
    category: Category = NONE,
    failed_of: FailedOf = None,
    limit: Limit = None,
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
            filter=filter,
            category=category,
            failed_of=failed_of,
            limit=limit,
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
    remote: FromLab = None,
    json: AsJson = False,
) -> None:
    """List suite runs."""
    with lab_or_remote(remote) as lab:
        rows = lab.suites.list_runs(suite=suite, model=model)
    display.print_json(rows) if json else show_runs(rows)


@suite_app.command("board")
def board(
    suite: Annotated[str | None, typer.Argument(help="Only the suite of this name.")] = None,
    remote: FromLab = None,
    json: AsJson = False,
) -> None:
    """Rank models by their last complete runs."""
    with lab_or_remote(remote) as lab:
        rows = lab.suites.leaderboard(suite=suite)
    display.print_json(rows) if json else show_leaderboard(rows)


@suite_app.command("failed")
def failed(
    run: Annotated[int, typer.Argument(help="The number of a run.")],
    remote: FromLab = None,
    json: AsJson = False,
) -> None:
    """List the evals of a run that did not pass."""
    with lab_or_remote(remote) as lab:
        rows = lab.suites.list_failed(run)
    columns = ("eval", "path", "replicate", "outcome", "why", "step", "reason")
    listed = rows if json else [{**row, "reason": display.shorten(row["reason"])} for row in rows]
    display.show_rows(listed, json, columns=columns)
    if not json:
        lab_option = f" --lab {remote}" if remote else ""
        debug = (
            f"inspect one with: judge-gym suite debug {rows[0]['eval']}{lab_option}" if rows else ""
        )
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
    remote: FromLab = None,
    json: AsJson = False,
) -> None:
    """Show everything about one eval of a run."""
    with lab_or_remote(remote) as lab:
        number = int(eval) if eval.isdecimal() else None
        if number is None:
            number = find_eval(lab, eval, run=run, replicate=replicate)
        detail = lab.suites.show_eval(number)
    display.print_json(detail) if json else show_eval(detail)


@suite_app.command("export")
def export(
    run: Annotated[str, typer.Argument(help="The number of a run, or the address of its page.")],
    to: Annotated[
        Path, typer.Argument(metavar="PATH", help="A folder, or a file that ends in .zip.")
    ],
    eval: Annotated[
        str | None,
        typer.Option(metavar="CATEGORY/NAME", help="Only this eval."),
    ] = None,
    replicate: Annotated[int, typer.Option(min=0, help="With --eval: which answer.")] = 0,
    json: AsJson = False,
) -> None:
    """Write the files of a run: task, reply, output files and step logs of each eval."""
    from judge_gym.lab.suite_files import write_folder, zip_parts

    with read_lab() as lab:
        run_id = lab.suites.find_run(run).id
        result_id = None
        if eval is not None:
            result_id = find_eval(lab, eval, run=run_id, replicate=replicate)
        files = lab.suites.files(run_id, eval=result_id)
        if to.suffix == ".zip":
            with to.open("wb") as archive:
                archive.writelines(zip_parts(files))
        else:
            write_folder(files, to)
    if json:
        display.print_json({"run": run_id, "eval": result_id, "path": str(to)})
    else:
        typer.echo(to)
