"""The demo: judges on evidence, a code writer before a suite, and why it failed; all simulated."""

import shlex
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli.app import AsJson, app, carry_out, end, notes, open_lab, print_report
from judge_gym.errors import MissingToolError

if TYPE_CHECKING:
    from judge_gym.engine.suite_reports import SuiteReport
    from judge_gym.lab import Lab
    from judge_gym.lab.failures import Analysis


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for database, exports and report.")] = Path(
        "demo-out"
    ),
    json: AsJson = False,
) -> None:
    """Run the whole pipeline on simulated judges: no key, no network, no cost."""
    from judge_gym.cli import display
    from judge_gym.cli.analyze import show_analysis
    from judge_gym.cli.scores import show_board, show_reports

    out.mkdir(parents=True, exist_ok=True)
    with open_lab(f"sqlite:///{out / 'lab.db'}") as lab, as_file(files("judge_gym.demo")) as folder:
        result = carry_out(
            lambda watch: lab.runs.run(folder / "study.yaml", watch=watch), quiet=json
        )
        lab.experiments.export(["demo"], out / "samples.csv")
        lab.experiments.export(["demo"], out / "samples.parquet", format="parquet")
        report = lab.reports.build("demo")
        (out / "report.html").write_text(report.html(), encoding="utf-8")
        coded, analysis, left_out = None, None, None
        try:
            coded, analysis = code_demo(lab, out / "reports", quiet=json)
        except MissingToolError as missing:
            left_out = f"the coding tasks and their analysis are left out: {missing.message}"
        if json:
            files_written = {
                name: str(out / name)
                for name in ("lab.db", "samples.csv", "samples.parquet", "report.html")
            }
            made = {**result.to_json(), "simulated": True, "files": files_written}
            display.print_json(
                {
                    **made,
                    "suite": coded.to_json() if coded else None,
                    "board": lab.suites.leaderboard(),
                    "analysis": analysis.to_json() if analysis else None,
                    "left_out": left_out,
                }
            )
        else:
            print_report(report)
            if coded and analysis:
                display.heading(
                    f"{coded.run.model} writes code",
                    f"Isolation: {', '.join(coded.isolation)}. A suite of your own is a folder.",
                )
                show_reports([coded])
                show_board(lab.suites.leaderboard())
                show_analysis(analysis)
            display.out.print(
                f"\non judges:   {out / 'report.html'}"
                f"\nsamples:     {out / 'samples.csv'}, samples.parquet"
            )
        if left_out:
            notes(left_out)
    end(result, f"judge-gym demo --out {shlex.quote(str(out))}", quiet=json)


def code_demo(lab: "Lab", reports: Path, *, quiet: bool) -> "tuple[SuiteReport, Analysis]":
    """A simulated code writer before the suite that we ship, and why it failed where it did."""
    from judge_gym.cli import display

    watcher = display.Watcher()
    with watcher.shown(quiet):
        # What it sends is our own answers, spoilt: without a sandbox, limits alone will do.
        coded = lab.suites.run(
            "python", "sim:coder-weak", allow_unisolated=True, watch=watcher.watch
        )
        made = lab.failures.analyze(
            coded.run.id,
            judges=("sim:alarmist", "sim:hasty?noise=0.6"),  # one reads closely, one does not
            reports=reports,
            allow_unisolated=True,
            watch=watcher.watch,
        )
    return coded, made
