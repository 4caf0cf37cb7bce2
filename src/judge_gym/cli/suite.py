"""Verbs over suites: list, show, check, run, compare, and look into what failed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.app import AsJson, NoSet, app, given, notes, open_lab, read_lab
from judge_gym.cli.scores import (
    effect_rows,
    end,
    show_board,
    show_debug,
    show_posted,
    show_reports,
)
from judge_gym.cli.steering import Budget
from judge_gym.errors import MissingToolError, TokenError

if TYPE_CHECKING:
    from judge_gym.client import Client
    from judge_gym.client.posting import Posted
    from judge_gym.engine.suite_reports import SuiteReport
    from judge_gym.lab import Lab
    from judge_gym.store import SuiteRun
    from judge_gym.suites import Suite

PATIENCE = 30.0
"""Seconds that a remote lab may take to answer."""
suite_app = typer.Typer(help="Code-generation suites.", no_args_is_help=True)
app.add_typer(suite_app, name="suite")

SuiteName = Annotated[
    str, typer.Argument(metavar="SUITE", help="A suite's folder, or 'python' for the one we ship.")
]
ModelId = Annotated[str, typer.Option(help="Whom to ask: provider:name, or a bare name.")]
Patterns = Annotated[
    list[str],
    typer.Option(
        "--evals", metavar="PATTERN", help="Only evals whose path holds this; repeatable."
    ),
]
Jobs = Annotated[int, typer.Option(min=1, help="Evals in sandboxes at once.")]
Experiment = Annotated[
    str,
    typer.Option(
        help="The condition: default, no_guidelines, web_search, or one of the suite's own."
    ),
]
Replicates = Annotated[int, typer.Option(min=1, help="Answers to each task.")]
Series = Annotated[str, typer.Option(help="Ask for everything afresh under this name.")]
Unisolated = Annotated[
    bool,
    typer.Option("--allow-unisolated", help="Run hostile code even where no sandbox works."),
]
Remote = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="URL",
        help="A remote lab that keeps the scores; its token is in JUDGE_GYM_TOKEN.",
    ),
]
NoPatterns: list[str] = []


@suite_app.command("list")
def list_suites(json: AsJson = False) -> None:
    """List the suite that ships and those in the folders here."""
    from judge_gym.cli import display

    with open_lab() as lab:
        rows = [
            {
                "suite": suite.name,
                "folder": str(suite.folder),
                "version": version_of(suite),
                "categories": len({task.category for task in suite.evals}),
                "evals": len(suite.evals),
                "experiments": ", ".join(suite.conditions),
                "summary": suite.summary,
            }
            for suite in lab.suites.list()
        ]
    display.print_json(rows) if json else display.table("", rows)


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
    from judge_gym.cli import display
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
            display.table("", [{k: v for k, v in row.items() if k in columns} for row in rows])
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
        known = {"experiments": list(suite.conditions), "guidelines": sections}
        display.print_json({**facts, **known, "evals": rows})
        return
    display.table(f"{suite.name}, version {version_of(suite) or 'unknown'}", rows)
    notes(
        f"steps: {', '.join(suite.steps)}",
        f"experiments: {', '.join(suite.conditions)}",
        f"sections of the guidelines: {', '.join(suite.guidelines) or 'none'}",
    )


@suite_app.command("check")
def check(
    suite: SuiteName = "python",
    evals: Patterns = NoPatterns,
    jobs: Annotated[int | None, typer.Option(min=1, help="At once; else one to a core.")] = None,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Run every reference answer through the steps; each must pass."""
    from judge_gym.cli import FAILED, display

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
    experiment: Experiment = "default",
    evals: Patterns = NoPatterns,
    replicates: Replicates = 1,
    series: Series = "0",
    jobs: Jobs = 8,
    budget: Budget = NoSet,
    remote: Remote = None,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Have a model solve a suite's tasks; interrupt it with Ctrl-C, go on with the same command."""
    from judge_gym.cli import display

    watcher = display.Watcher()
    with open_lab() as lab, watcher.shown(json):
        report, posted = run_and_post(
            lab,
            remote,
            suite,
            model,
            experiment=experiment,
            evals=evals,
            replicates=replicates,
            series=series,
            jobs=jobs,
            budget=given("--budget", budget),
            allow_unisolated=allow_unisolated,
            watch=watcher.watch,
        )
    if json:
        display.print_json(posted_json(report, posted))
    else:
        show_reports([report])
        if posted is not None:
            show_posted(posted)
        if report.score.failed or report.score.inconclusive:
            notes(f"what did not pass: judge-gym suite failed {report.run.id}")
    end([report], [posted] if posted else [], quiet=json)


@contextmanager
def remote_lab(url: str) -> "Iterator[Client]":
    """The lab of `--lab`; a token that it refuses is said to come from the environment."""
    from judge_gym.client import Client

    try:
        with Client(url, timeout=PATIENCE) as client:
            yield client
    except TokenError as fault:
        raise TokenError(f"{fault.message}; --lab takes it from JUDGE_GYM_TOKEN") from fault


def run_and_post(
    lab: "Lab", remote: str | None, suite: str, model: str, **given: Any
) -> "tuple[SuiteReport, Posted | None]":
    """Run a suite here; with a remote lab, post results there as they come."""
    if remote is None:
        return lab.suites.run(suite, model, **given), None
    from judge_gym.client.posting import Poster

    with remote_lab(remote) as client, Poster(lab.suites, client) as poster:

        def begun(run: "SuiteRun") -> None:
            poster.follow(run)
            if poster.error:
                notes(f"{poster.error}; results are kept here meanwhile")

        return lab.suites.run(suite, model, begun=begun, **given), poster.finish()


def posted_json(report: "SuiteReport", posted: "Posted | None") -> dict[str, Any]:
    """A run as `--json` prints it, with how far it has come to a remote lab."""
    return report.to_json() | ({"posted": asdict(posted)} if posted else {})


@suite_app.command("ablate")
def ablate(
    suite: SuiteName,
    model: ModelId,
    section: Annotated[
        list[str], typer.Option(help="Only this section of the guidelines; repeatable.")
    ] = NoPatterns,
    experiment: Experiment = "default",
    evals: Patterns = NoPatterns,
    replicates: Replicates = 3,
    series: Series = "0",
    jobs: Jobs = 8,
    budget: Budget = NoSet,
    allow_unisolated: Unisolated = False,
    json: AsJson = False,
) -> None:
    """Take the guidelines away section by section, and say what that does."""
    from judge_gym.cli import display

    watcher = display.Watcher()
    with open_lab() as lab, watcher.shown(json):
        reports, effects = lab.suites.ablate(
            suite,
            model,
            experiment=experiment,
            sections=section,
            evals=evals,
            replicates=replicates,
            series=series,
            jobs=jobs,
            budget=given("--budget", budget),
            allow_unisolated=allow_unisolated,
            watch=watcher.watch,
        )
    if json:
        made = {"runs": [one.to_json() for one in reports], "effects": effect_rows(effects)}
        display.print_json(made)
    else:
        show_reports(reports)
        hidden = ("changes", "unpaired")
        rows = [{k: v for k, v in row.items() if k not in hidden} for row in effect_rows(effects)]
        base = "the default" if experiment == "default" else experiment
        display.table(f"against {base}", rows, note="q: p, corrected for their number")
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
        str | None, typer.Argument(help="Only those of the suite of this name.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Only this model's.")] = None,
    json: AsJson = False,
) -> None:
    """List the runs of suites."""
    from judge_gym.cli import display

    with read_lab() as lab:
        found = lab.suites.reports(suite=suite, model=model)
    if json:
        display.print_json([report.to_json() for report in found])
    else:
        show_reports(found)


@suite_app.command("board")
def board(
    suite: Annotated[str | None, typer.Argument(help="Only the suite of this name.")] = None,
    json: AsJson = False,
) -> None:
    """Rank the models of each version and experiment by their last complete runs."""
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = lab.suites.leaderboard(suite=suite)
    if json:
        display.print_json(rows)
        return
    show_board(rows)


@suite_app.command("failed")
def failed(
    run: Annotated[int, typer.Argument(help="The number of a run.")],
    json: AsJson = False,
) -> None:
    """List the evals of a run that did not pass, with the step and the reason."""
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = lab.suites.list_failed(run)
    if json:
        display.print_json(rows)
        return
    columns = ("eval", "path", "replicate", "outcome", "why", "step", "reason")
    display.table("", [{k: v for k, v in row.items() if k in columns} for row in rows])
    number = rows[0]["eval"] if rows else 0
    notes(f"look into one with: judge-gym suite debug {number}" if rows else "every eval passed")


@suite_app.command("debug")
def debug(
    eval: Annotated[
        str,
        typer.Argument(
            metavar="EVAL",
            help="The number of a result, as `suite failed RUN` lists it, or an eval's "
            "CATEGORY/NAME: its result in the newest run that has one.",
        ),
    ],
    run: Annotated[int | None, typer.Option(help="Of CATEGORY/NAME: in this run.")] = None,
    replicate: Annotated[int, typer.Option(min=0, help="Of CATEGORY/NAME: which answer.")] = 0,
    json: AsJson = False,
) -> None:
    """Show all that there is about one eval: task, steps, files, answer, grader, gaps."""
    from judge_gym.cli import display

    with read_lab() as lab:
        number = eval.isdecimal()
        at = int(eval) if number else lab.suites.find_eval(eval, run=run, replicate=replicate)
        found = lab.suites.show_eval(at)
    if json:
        display.print_json(found)
        return
    show_debug(found)
