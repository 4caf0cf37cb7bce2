"""The demo: a study, a code suite and the analysis of its failures, all with simulated models."""

import shlex
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab
from judge_gym.cli.options import AsJson
from judge_gym.cli.results import end, execute, print_report
from judge_gym.errors import MissingToolError

if TYPE_CHECKING:
    from judge_gym.engine.suite_reports import SuiteReport
    from judge_gym.lab import Lab
    from judge_gym.lab.failures import Analysis

FILES = ("lab.db", "samples.csv", "samples.parquet", "report.html")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for database, exports and report.")] = Path(
        "demo-out"
    ),
    json: AsJson = False,
) -> None:
    """Run the whole pipeline on simulated judges.

    It needs no key and no network, and costs nothing.
    """
    from judge_gym.cli.failures import show_analysis
    from judge_gym.cli.suite_results import show_leaderboard, show_reports

    out.mkdir(parents=True, exist_ok=True)
    with open_lab(f"sqlite:///{out / 'lab.db'}") as lab, as_file(files("judge_gym.demo")) as folder:
        result = execute(lambda watch: lab.runs.run(folder / "study.yaml", watch=watch), json)
        lab.experiments.export(["demo"], out / "samples.csv")
        lab.experiments.export(["demo"], out / "samples.parquet", format="parquet")
        report = lab.reports.build("demo")
        (out / "report.html").write_text(report.html(), encoding="utf-8")
        suite, analysis, left_out = None, None, None
        try:
            suite, analysis = _suite_demo(lab, out / "reports", quiet=json)
        except MissingToolError as missing:
            left_out = f"the coding tasks and their analysis are left out: {missing.message}"
        leaderboard = lab.suites.leaderboard()
    if json:
        display.print_json(
            {
                **result.to_json(),
                "simulated": True,
                "files": {name: str(out / name) for name in FILES},
                "suite": suite.to_json() if suite else None,
                "board": leaderboard,
                "analysis": analysis.to_json() if analysis else None,
                "left_out": left_out,
            }
        )
    else:
        print_report(report)
        if suite and analysis:
            display.heading(
                f"{suite.run.model} writes code",
                f"Isolation: {', '.join(suite.isolation)}. Your own suite is a folder.",
            )
            show_reports([suite])
            show_leaderboard(leaderboard)
            show_analysis(analysis)
        display.console().print(
            f"\nreport:    {out / 'report.html'}"
            f"\nsamples:   {out / 'samples.csv'}, samples.parquet"
            f"\ndashboard: judge-gym --db sqlite:///{out / 'lab.db'} lab"
        )
    if left_out:
        notes(left_out)
    end(result, quiet=json, again=f"judge-gym demo --out {shlex.quote(str(out))}")


def _suite_demo(lab: "Lab", reports: Path, *, quiet: bool) -> "tuple[SuiteReport, Analysis]":
    """Runs the included suite with a simulated model, and analyses its failures."""
    with display.run_progress(quiet=quiet) as watch:
        # The simulated model sends our own answers with defects: it needs no sandbox.
        suite = lab.suites.run("python", "sim:coder-weak", allow_unisolated=True, watch=watch)
        analysis = lab.failures.analyze(
            suite.run.id,
            judges=("sim:alarmist", "sim:hasty?noise=0.6"),  # one reads closely, one does not
            reports=reports,
            allow_unisolated=True,
            watch=watch,
        )
    return suite, analysis
