"""Verbs over studies: begin, plan, run, look, export, forget."""

import shlex
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.app import (
    AsJson,
    NoSet,
    Private,
    Samples,
    Series,
    Set,
    Target,
    app,
    carry_out,
    collect_missing,
    end,
    given,
    notes,
    open_lab,
    print_report,
    read_lab,
    same_command,
    show_result,
)
from judge_gym.cli.steering import Budget, PauseAfter, stage
from judge_gym.errors import ConflictError, DesignError, NotFoundError, unknown

if TYPE_CHECKING:
    from judge_gym.records.responses import PlannedStage


EXAMPLES = {
    "pilot": {name: name for name in ("pilot.yaml", "valdoria.jsonl", "norvessa.jsonl")},
    "review": {name: name for name in ("review.yaml", "reviews.jsonl", "rubric.json")},
    "benchmark": {
        "benchmark.yaml": "benchmark.yaml",
        "severity/benchmark.toml": "benchmark.toml",
        "severity/items.jsonl": "reviews.jsonl",
        "severity/rubric.json": "rubric.json",
    },
}
"""What each example writes, and which file of ours it is; the study comes first."""


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Folder to write into.")] = Path(),
    example: Annotated[
        str,
        typer.Option(help="pilot (contested concepts), review (code review) or benchmark."),
    ] = "pilot",
) -> None:
    """Write a commented study to start from, with evidence to try it on."""
    if example not in EXAMPLES:
        raise DesignError(unknown("example", example, EXAMPLES), choices=EXAMPLES)
    written = {folder / name: source for name, source in EXAMPLES[example].items()}
    taken = [path for path in written if path.exists()]
    if taken:
        raise ConflictError(f"{taken[0]} is there already; choose another folder")
    for path, source in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (files("judge_gym.demo") / source).read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
    typer.echo(f"wrote {', '.join(map(str, written))}")
    study = next(iter(EXAMPLES[example]))
    verbs = [f"judge-gym {verb} {study}" for verb in ("plan", "run", "report")]
    if folder != Path():
        verbs.insert(0, f"cd {shlex.quote(str(folder))}")
    typer.echo("next: " + "\n      ".join(verbs))


@app.command()
def plan(
    target: Target,
    set: Set = NoSet,
    series: Series = None,
    samples: Samples = None,
    power: Annotated[
        float | None,
        typer.Option(
            help="Instead: how many items and replicates find a difference of this size (0 to 1), "
            "with what was judged so far as the pilot."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Say what a study will ask, cost and take, before anything is paid."""
    from judge_gym.cli import display

    if power is not None:
        from judge_gym.cli.power import print_power

        with read_lab() as lab:
            print_power(lab.reports.power(target, power), power, as_json=json)
        return
    with open_lab() as lab:
        plan = lab.runs.plan(target, overrides=given("--set", set), series=series, samples=samples)
    if json:
        display.print_json(plan)
        return
    total = plan["stages"]["all"]
    columns = ("calls", "in_ledger", "to_pay", "shared", "input_tokens", "output_tokens", "usd")
    display.table(f"{len(plan['experiments'])} experiments", plan["experiments"])
    display.table(
        f"{total['calls']:,} distinct calls, {total['in_ledger']:,} of them answered in "
        f"the ledger: at most {total['to_pay']:,} to pay",
        [
            {
                "stage": name,
                **{column: value for column, value in stage.items() if column in columns},
                "time": display.duration(stage["seconds"]),
            }
            for name, stage in plan["stages"].items()
        ],
        note="Tokens, cost and time are of what is to pay. It becomes less where a verdict is not "
        "scored, and so not probed, or where answers lead to the same question; what is asked "
        "again because it failed comes on top. shared: the same question as one counted; usd –: "
        "the price of a model is unknown.",
    )
    notes(
        *(f"{tag} is the same experiment as {other}" for tag, other in plan["folded"].items()),
        *(
            f"no swap for {tag}: its judge does not write its own rubric"
            for tag in plan["skipped_swaps"]
        ),
        *plan["warnings"],
        *over_budget(total, plan["budget"]),
        f"the ledger is {lab.admin.database}",
    )


def over_budget(total: "PlannedStage", budget: Mapping[str, Any]) -> list[str]:
    """Returns where a plan, which counts every possible probe, exceeds the budget."""
    planned = {
        "calls": total["to_pay"],
        "tokens": total["input_tokens"] + total["output_tokens"],
        "usd": total["usd"] or 0.0,
        "minutes": total["seconds"] / 60,
    }
    return [
        f"budget: {budget[name]:g} {name}, the plan needs up to {planned[name]:,.4g}"
        for name in planned
        if name in budget and planned[name] > budget[name]
    ]


@app.command()
def run(
    target: Target,
    set: Set = NoSet,
    series: Series = None,
    new_run: Annotated[
        bool,
        typer.Option(
            "--new-run", help="Supersede the active runs; answers in the ledger are reused."
        ),
    ] = False,
    samples: Samples = None,
    budget: Budget = NoSet,
    pause_after: PauseAfter = None,
    allow_private: Private = False,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Open no model: every answer must be in the ledger."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Carry out a study; interrupt it with Ctrl-C, continue it with the same command."""
    with open_lab() as lab:
        if Path(target).suffix in (".yaml", ".yml") and not offline:
            collect_missing(lab, Path(target), allow_private, quiet=json)
        result = carry_out(
            lambda watch: lab.runs.run(
                target,
                overrides=given("--set", set),
                series=series,
                new_run=new_run,
                samples=samples,
                watch=watch,
                budget=given("--budget", budget),
                offline=offline,
                pause_after=stage(pause_after),
            ),
            quiet=json,
        )
    show_result(result, json)
    end(result, same_command(), quiet=json)


@app.command()
def report(
    target: Annotated[
        str | None, typer.Argument(help="A study file, a study's name, or an experiment's tag.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--from", help="Report on samples in a .csv or .parquet file; no database."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a page (.html), text (.md), or a folder with all of it."),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(help="Where a validity check passes, as NAME=VALUE: benchmark=0.7."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Report on a study or a file: text here, with --out a page, or a folder of all it rests on."""
    from judge_gym.cli import display
    from judge_gym.lab.reports import report_file, save_report

    gates = given("--gate", gate or ())
    if file is not None and target is None:
        made = report_file(file, gates=gates)
    elif target is not None and file is None:
        with read_lab() as lab:
            made = lab.reports.build(target, gates=gates)
    else:
        raise DesignError("name a study or a tag, or give samples with --from FILE; not both")
    if out is not None:
        save_report(made, out)
    if json:
        tables = {
            table.title: table.frame.astype(object)
            .where(table.frame.notna(), None)
            .to_dict("records")
            for table in made.tables
        }
        display.print_json(
            {
                "title": made.title,
                "banner": made.banner,
                "facts": made.facts,
                "warnings": made.warnings,
                "tables": tables,
            }
        )
        return
    print_report(made)
    if out is not None:
        typer.echo(f"\nwrote {out}")


@app.command()
def export(
    tags: Annotated[
        list[str] | None, typer.Argument(help="Tags or studies; everything if none.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="csv or parquet; else as the file's name says.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; CSV goes to standard output without it.")
    ] = None,
) -> None:
    """Write one tidy row per sample, with a column per knob."""
    from judge_gym.samples import FORMATS, file_format

    if out is not None:
        file_format(out, format)
    elif format == "parquet":
        raise DesignError("parquet needs --out FILE")
    elif format not in (None, "csv"):
        raise DesignError(unknown("format", format, FORMATS), choices=FORMATS)
    with read_lab() as lab:
        if out is None:
            lab.experiments.samples(*(tags or [])).to_csv(sys.stdout, index=False)
            return
        rows = lab.experiments.export(tags or [], out, format=format)
    typer.echo(f"wrote {rows:,} rows to {out}", err=True)


@app.command()
def usage(
    target: Annotated[str | None, typer.Argument(help="Only this study or experiment.")] = None,
    by: Annotated[
        str, typer.Option(help="Sums by any of study, tag, stage, model, day.")
    ] = "study,tag,stage,model,day",
    json: AsJson = False,
) -> None:
    """Show what was paid, by experiment, stage, model and day."""
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = lab.reports.usage(target, by=[name.strip() for name in by.split(",")])
    if target is not None and not rows:
        raise NotFoundError(f"nothing was paid under {target!r}; 'judge-gym usage' lists all")
    display.print_json(rows) if json else display.table("", rows)


@app.command()
def cleanup(
    tag: Annotated[str, typer.Argument(help="The experiment's tag.")],
    ledger: Annotated[
        bool, typer.Option("--ledger", help="Delete the calls that only it used, too.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Even if it may be running.")] = False,
    json: AsJson = False,
) -> None:
    """Forget an experiment's runs, samples and probes; the ledger keeps every answer."""
    from judge_gym.cli import display

    with read_lab() as lab:
        counts = lab.experiments.cleanup(tag, ledger=ledger, force=force)
    if json:
        display.print_json(counts)
        return
    typer.echo("deleted " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    if not ledger:
        typer.echo("the ledger keeps every answer: running it again pays for nothing")
