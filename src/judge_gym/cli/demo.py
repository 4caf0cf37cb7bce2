"""The demo: a study, a code suite and the analysis of its failures, all with simulated models.

With `--real` it is a small study on a real model that runs on this machine.
"""

import shlex
from collections import Counter
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab
from judge_gym.cli.options import AsJson
from judge_gym.cli.report_display import print_summary
from judge_gym.cli.results import end, execute
from judge_gym.errors import MissingToolError

if TYPE_CHECKING:
    from judge_gym.lab import Lab
    from judge_gym.lab.failures import Analysis
    from judge_gym.lab.suite_reports import SuiteReport

FILES = ("lab.db", "samples.csv", "samples.parquet", "report.html")
SUITE_CATEGORIES = ("001-language", "002-data")
"""The part of the included suite that the demo runs, so that it takes about a minute."""
LAST_WORDS = 100
"""Characters of an answer that are shown: its end, where the verdict should be."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for database, exports and report.")] = Path(
        "demo-out"
    ),
    real: Annotated[
        bool, typer.Option("--real", help="A small study on local:smollm2, a real model.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Run the whole pipeline on simulated judges.

    It needs no key and no network, and costs nothing. With --real, a small study on a real model
    that runs on this machine; `judge-gym models get smollm2` fetches it.
    """
    if real:
        return _real_demo(out, json)
    out.mkdir(parents=True, exist_ok=True)
    with open_lab(f"sqlite:///{out / 'lab.db'}") as lab, as_file(files("judge_gym.demo")) as folder:
        _phase("1 of 4: simulated judges judge the evidence", json)
        result = execute(lambda watch: lab.runs.run(folder / "study.yaml", watch=watch), json)
        _phase("2 of 4: the verdicts are analysed and figures drawn; this may take a minute", json)
        lab.experiments.export(["demo"], out / "samples.csv")
        lab.experiments.export(["demo"], out / "samples.parquet", format="parquet")
        report = lab.reports.build("demo")
        (out / "report.html").write_text(report.html(), encoding="utf-8")
        suite, analysis, left_out = None, None, None
        try:
            suite, analysis = _suite_demo(lab, out / "reports", quiet=json)
        except MissingToolError as missing:
            left_out = f"the coding tasks and their analysis are left out: {missing.message}"
    if json:
        display.print_json(
            {
                **result.to_json(),
                "simulated": True,
                "files": {name: str(out / name) for name in FILES},
                "suite": suite.to_json() if suite else None,
                "analysis": analysis.to_json() if analysis else None,
                "left_out": left_out,
            }
        )
    else:
        print_summary(report)
        if suite and analysis:
            display.text(_suite_summary(suite, analysis))
        display.text(f"report and samples: {out / 'report.html'}, samples.csv, samples.parquet")
        demo_folder = shlex.quote(str(out))  # where its reports are, too
        display.text(f"look around: cd {demo_folder} && judge-gym --db sqlite:///lab.db lab --open")
    if left_out:
        notes(left_out)
    end(result, quiet=json, again=f"judge-gym demo --out {shlex.quote(str(out))}")


def _real_demo(out: Path, json: bool) -> None:
    """Runs the small study on the real model, and shows how each of its answers was read."""
    from judge_gym.models import Registry

    Registry().open("local:smollm2")  # refuses before anything is written
    out.mkdir(parents=True, exist_ok=True)
    with open_lab(f"sqlite:///{out / 'lab.db'}") as lab, as_file(files("judge_gym.demo")) as folder:
        result = execute(lambda watch: lab.runs.run(folder / "real.yaml", watch=watch), json)
        samples = lab.experiments.samples("demo-real")
        answers = [
            {
                "remark": row["evidence_title"],
                "asked for": "JSON" if row["verdict.output"] == "json" else "a verdict line",
                "may abstain": row["verdict.abstain"],
                "read as": f"stage {row['stages']}" if row["stages"] else row["status"],
                "truth": f"stage {row['truth']}",
                "the end of the answer": _end(lab, row["call_id"]),
            }
            for row in samples.to_dict("records")
        ]
        lab.experiments.export(["demo-real"], out / "samples.csv")
        report = lab.reports.build("demo-real")
        (out / "report.html").write_text(report.html(), encoding="utf-8")
    if json:
        written = {name: str(out / name) for name in FILES if name != "samples.parquet"}
        display.print_json({**result.to_json(), "answers": answers, "files": written})
    else:
        display.table(
            "What a real model answered, and how it was read",
            answers,
            note="A model of 135 million parameters judges near chance. An answer without a clear "
            "verdict is never guessed: it is recorded as what it is, and counted.",
        )
        display.console().print(
            f"report:    {out / 'report.html'}"
            f"\ndashboard: judge-gym --db sqlite:///{out / 'lab.db'} lab"
        )
    end(result, quiet=json, again=f"judge-gym demo --real --out {shlex.quote(str(out))}")


def _end(lab: "Lab", call: float) -> str | None:
    """Cuts the end of the answer to a call to one line, if there was an answer."""
    if call != call:  # not a number: it was never answered
        return None
    bodies = [attempt["body"] for attempt in lab.admin.show_call(int(call))["attempts"]]
    line = " ".join(str(bodies[-1] or "").split())
    return line if len(line) <= LAST_WORDS else "..." + line[-LAST_WORDS:]


def _suite_summary(suite: "SuiteReport", analysis: "Analysis") -> str:
    """Says in one sentence how the suite run went, and why evals failed."""
    rows = analysis.rows()
    causes = Counter(str(row["class"]) for row in rows)
    why = ", ".join(f"{count} {cause}" for cause, count in causes.most_common())
    differ = sum(bool(row["differ"]) for row in rows)
    return (
        f"{suite.run.model} writes code: {suite.score.passed} of {suite.run.targets} evals pass; "
        f"judges call the failures {why}, and differ on {differ} ({analysis.report})"
    )


def _phase(name: str, quiet: bool) -> None:
    """Says what the demo does now."""
    if not quiet:
        typer.echo(name, err=True)


def _suite_demo(lab: "Lab", reports: Path, *, quiet: bool) -> "tuple[SuiteReport, Analysis]":
    """Runs the included suite with a simulated model, and analyses its failures."""
    _phase("3 of 4: a simulated model writes code, which is graded", quiet)
    with display.run_progress(quiet=quiet) as watch:
        # The simulated model sends our own answers with defects: it needs no sandbox.
        suite = lab.suites.run(
            "python",
            "sim:coder-weak",
            category=SUITE_CATEGORIES,
            allow_unisolated=True,
            watch=watch,
        )
        _phase("4 of 4: judges explain why its evals failed", quiet)
        analysis = lab.failures.analyze(
            suite.run.id,
            judges=("sim:alarmist", "sim:hasty?noise=0.6"),  # one reads closely, one does not
            reports=reports,
            allow_unisolated=True,
            watch=watch,
        )
    return suite, analysis
