"""Commands that write a study file and estimate its cost: init and plan."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab, read_lab
from judge_gym.cli.file_options import (
    Cluster,
    Human,
    Item,
    Labels,
    Missing,
    Order,
    Positive,
    Responses,
    Same,
    Score,
    Text,
    Truth,
    Yes,
    confirm_reading,
    read_pair,
    read_same,
    read_words,
)
from judge_gym.cli.options import NONE, AsJson, Samples, Series, Set, Target, parse_pairs
from judge_gym.cli.plan_display import exceeded_limits, planned_cost, show_endpoints
from judge_gym.errors import ConflictError, DesignError, unknown
from judge_gym.records.inputs import STUDY_SUFFIXES

if TYPE_CHECKING:
    from judge_gym.recorded.options import FileOptions
    from judge_gym.records.planning import NextPurchase, PowerPlan


EXAMPLES = {
    "support": {name: name for name in ("support.yaml", "replies.csv", "helpfulness.json")},
    "contested": {
        name: name
        for name in (
            *("contested.yaml", "valdoria.jsonl", "norvessa.jsonl", "norvessa_calm.jsonl"),
            *("reviews.jsonl", "rubric.json"),
        )
    },
    "review": {name: name for name in ("review.yaml", "reviews.jsonl", "rubric.json")},
    "verdicts": {"verdicts.csv": "verdicts.csv"},
    "prompt": {
        "prompt.yaml": "prompt.yaml",
        "judge.md": "judge.md",
        "short.md": "short.md",
        "tickets.csv": "tickets.csv",
    },
    "shaky": {"shaky.yaml": "shaky.yaml"},
    "benchmark": {
        "benchmark.yaml": "benchmark.yaml",
        "severity/benchmark.toml": "benchmark.toml",
        "severity/items.jsonl": "reviews.jsonl",
        "severity/rubric.json": "rubric.json",
    },
    "suite": {
        "my-suite/suite.toml": "suite/suite.toml",
        "my-suite/guidelines.md": "suite/guidelines.md",
        "my-suite/001-basics/001-initials/TASK.md": "suite/initials_task.md",
        "my-suite/001-basics/001-initials/answer/solution.py": "suite/initials_answer.txt",
        "my-suite/001-basics/001-initials/grader/test_initials.py": "suite/initials_grader.txt",
        "my-suite/001-basics/001-initials/wrong.toml": "suite/initials_wrong.toml",
        "my-suite/001-basics/002-clamp/TASK.md": "suite/clamp_task.md",
        "my-suite/001-basics/002-clamp/answer/solution.py": "suite/clamp_answer.txt",
        "my-suite/001-basics/002-clamp/grader/test_clamp.py": "suite/clamp_grader.txt",
    },
}
"""The files that each example writes and their sources in `judge_gym.demo`; the study is first."""
SUITE_COMMANDS = (
    "judge-gym suite check my-suite",
    "judge-gym suite run my-suite --model 'sim:coder-weak?suite=my-suite'",
    "judge-gym suite failed 1",
)
CALLS_FOR = {
    "neutralizer": "neutralized views",
    "rubricer": "rubrics",
    "critic": "criticism of rubrics",
    "scorer": "verdicts",
    "prober": "probes",
}
"""What the calls of each stage are for."""
OTHER_QUANTITIES = 4
"""The largest number of other quantities that `plan --next` names."""


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Folder to write into.")] = Path(),
    example: Annotated[
        str,
        typer.Option(
            help="support (replies to customers), contested (the blueprint's concepts), review "
            "(code review), prompt (a prompt of your own), benchmark, suite (coding tasks), or "
            "verdicts (a file to check)."
        ),
    ] = "support",
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead: a study of your own texts or pairs, with people's labels: CSV, JSON, "
            "JSONL, parquet or Excel. The options below are for it.",
        ),
    ] = None,
    about: Annotated[str, typer.Option(help="What is judged.")] = "quality",
    rubric: Annotated[
        Path | None,
        typer.Option(help="The rubric; default: the labels of people and known answers."),
    ] = None,
    judge: Annotated[
        list[str],
        typer.Option(metavar="MODEL", help="A judge; repeatable; default: simulated ones."),
    ] = NONE,
    item: Item = None,
    text: Text = None,
    responses: Responses = "",
    human: Human = NONE,
    truth: Truth = None,
    cluster: Cluster = None,
    score: Score = None,
    positive: Positive = None,
    labels: Labels = None,
    order: Order = "",
    same: Same = NONE,
    missing: Missing = NONE,
    yes: Yes = False,
) -> None:
    """Write a commented study with its items, or a suite of coding tasks, to start from."""
    if csv is not None:
        from judge_gym.recorded.options import FileOptions

        options = FileOptions(
            item=item,
            text=text,
            responses=read_pair(responses),
            people=tuple(human),
            truth=truth,
            cluster=cluster,
            score=score,
            positive=positive,
            labels=labels,
            order=read_words(order),
            same=read_same(same),
            missing=tuple(missing),
            accept=yes,
        )
        _init_own_study(csv, options, about, rubric, judge)
        return
    if example not in EXAMPLES:
        raise DesignError(unknown("example", example, EXAMPLES), choices=EXAMPLES)
    written = {folder / name: source for name, source in EXAMPLES[example].items()}
    if existing := [path for path in written if path.exists()]:
        raise ConflictError(f"{existing[0]} exists already; choose another folder")
    for path, source in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (files("judge_gym.demo") / source).read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
    typer.echo(f"wrote {', '.join(map(str, written))}")
    study = next(iter(EXAMPLES[example]))
    commands = [f"judge-gym {verb} {study}" for verb in ("plan", "run", "report")]
    if example == "suite":
        commands = [*SUITE_COMMANDS]
    if example == "verdicts":
        commands = ["judge-gym check verdicts.csv"]
    if folder != Path():
        commands.insert(0, f"cd {shlex.quote(str(folder))}")
    typer.echo("next: " + "\n      ".join(commands))


def _init_own_study(
    file: Path, options: "FileOptions", about: str, rubric: Path | None, judges: list[str]
) -> None:
    """Writes a study of a user's own file next to it."""
    from judge_gym.cli.own_study import own_study
    from judge_gym.recorded.file import read_file

    reading = read_file(file, options, judged=False)
    study = own_study(reading, about, rubric, judges)
    for path in (file.with_name(f"{study.name}.yaml"), file.with_name(study.items_file)):
        if path.exists():
            raise ConflictError(f"{path} exists already; edit it, or delete it first")
    confirm_reading(reading)
    path = study.write(file.parent)
    notes(*study.notes)
    typer.echo(f"wrote {path} and {file.with_name(study.items_file)}")
    name = shlex.quote(str(path))
    typer.echo(f"next: judge-gym run {name}\n      judge-gym judges {name}")


@app.command()
def plan(
    target: Target,
    set: Set = NONE,
    series: Series = None,
    samples: Samples = None,
    power: Annotated[
        float | None,
        typer.Option(
            help="Instead: the power of every test to find an effect of this size (0 to 1), by "
            "simulation, and what more power needs."
        ),
    ] = None,
    pilot: Annotated[
        str | None,
        typer.Option(help="With --power: a study whose samples show how much verdicts vary."),
    ] = None,
    next: Annotated[
        bool,
        typer.Option("--next", help="Instead: what to buy next, from the samples so far."),
    ] = False,
    quantity: Annotated[
        str | None,
        typer.Option("--for", help="With --next: what is to be known better; a part of its name."),
    ] = None,
    half_width: Annotated[
        float | None,
        typer.Option("--target", help="With --next: the half width of the interval to reach."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Estimate a study's calls, cost and duration, or what to buy next."""
    if pilot is not None and power is None:
        raise DesignError("--pilot belongs to --power")
    if (quantity is not None or half_width is not None) and not next:
        raise DesignError("--for and --target belong to --next")
    if next:
        with read_lab() as lab:
            purchase = lab.reports.plan_next(target, quantity=quantity, half_width=half_width)
        display.print_json(purchase) if json else _print_next(purchase)
        return
    if power is not None:
        in_file = Path(target).suffix in STUDY_SUFFIXES  # which needs no lab yet
        with open_lab() if in_file else read_lab() as lab:
            powers = lab.reports.power(power, target, pilot=pilot)
        display.print_json(powers) if json else _print_power(powers)
        return
    with open_lab() as lab:
        plan = lab.runs.plan(
            target, overrides=parse_pairs("--set", set), series=series, samples=samples
        )
    if json:
        display.print_json(plan)
        return
    total, experiments = plan["stages"]["all"], plan["experiments"]
    columns = ("calls", "in_ledger", "to_pay", "shared", "input_tokens", "output_tokens", "usd")
    size = display.plural(len(experiments), "experiment")
    typer.echo(f"{plan['study']}: {size}, {planned_cost(plan['endpoints'], total)}")
    display.table("by experiment", experiments)
    display.table(
        "by step",
        [
            {
                "calls for": CALLS_FOR.get(name, name),
                **{column: value for column, value in stage.items() if column in columns},
                "duration": display.duration(stage["seconds"]),
            }
            for name, stage in plan["stages"].items()
            if stage["calls"] or name == "all"
        ],
        note="in_ledger: already answered; to_pay: new calls at most; shared: the same call as "
        "another experiment's. Tokens, usd and duration are of new calls; usd –: a price is "
        "unknown. Verdicts that are not scored need no probe; retries of failed calls cost extra.",
    )
    show_endpoints(plan["endpoints"])
    notes(
        *(f"{tag} is the same experiment as {other}" for tag, other in plan["duplicates"].items()),
        *(
            f"no swap for {tag}: its judge does not write its own rubric"
            for tag in plan["skipped_swaps"]
        ),
        *plan["warnings"],
        *exceeded_limits(total, plan["budget"]),
        f"the ledger is {lab.admin.database}",
    )


def _print_next(found: "NextPurchase") -> None:
    """Prints what to buy next, what each amount would do, and where the variance is."""
    typer.echo(found["sentence"])
    bought = [row for row in found["purchases"] if not row["note"]]
    free = not any(row["usd"] for row in bought)
    hidden = {"note", "usd"} if free else {"note"}
    display.table(
        "interval to expect",
        [{name: value for name, value in row.items() if name not in hidden} for row in bought],
        note=f"Half the width of the 95 % interval, now ±{found['half_width'] or 0:.3g} with "
        f"{display.plural(found['items'], 'item')} and {found['repeats'] or 0:.3g} repeats. "
        "lowest: what no amount of it makes smaller. Prices are of verdicts.",
    )
    task = found["variance"][0] if found["variance"] else {}
    display.table(
        f"variance of one verdict, {task.get('measure')} on {task.get('task')}",
        [
            {name: value for name, value in row.items() if name not in ("task", "measure")}
            for row in found["variance"]
        ],
    )
    quantities = found["quantities"]
    more = (
        f" and {len(quantities) - OTHER_QUANTITIES} more"
        if len(quantities) > OTHER_QUANTITIES
        else ""
    )
    notes(
        *(f"{row['option']}: {row['note']}" for row in found["purchases"] if row["note"]),
        f"--for also knows: {'; '.join(quantities[:OTHER_QUANTITIES])}{more}",
    )


def _print_power(found: "PowerPlan") -> None:
    """Prints the power of each test, what more would need, and what was assumed."""
    typer.echo(found["sentence"])
    endpoints = [dict(row) for row in found["endpoints"]]
    tests = ("endpoint", "unit", "planned", "power", "smallest_effect", "needed_80", "needed_90")
    display.table(
        "power of each test",
        [{name: row[name] for name in tests} for row in endpoints],
        note="Two-sided at 5 %, in 4,000 simulated studies; differences of two setups in the "
        "smallest task, hypotheses over all. smallest_effect: found in 80 % of studies. needed: "
        "units for 80 % and 90 %.",
    )
    assumed = ("endpoint", "concept", "cluster", "item", "repeat", "source", "note")
    display.table(
        "variances assumed",
        [{name: row[name] for name in assumed} for row in endpoints],
        note="Of the differences that are tested; "
        + (
            f"from the samples of {found['pilot']}."
            if found["pilot"]
            else "defaults: --pilot STUDY takes them from samples."
        ),
    )
