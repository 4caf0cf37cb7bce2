"""One verb for each of the five workflows, and what each has made."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from judge_gym.cli.app import (
    AsJson,
    NoSet,
    Series,
    Set,
    StageGroup,
    Target,
    app,
    carry_out,
    end,
    given,
    open_lab,
    read_lab,
    same_command,
    show_result,
)

evidence_app = typer.Typer(
    cls=StageGroup,
    help="W1: collect evidence, and make the views that judges read.",
    no_args_is_help=True,
)
rubric_app = typer.Typer(
    cls=StageGroup, help="W2: have rubrics written and criticised.", no_args_is_help=True
)
score_app = typer.Typer(cls=StageGroup, help="W3: score the evidence.", no_args_is_help=True)
swap_app = typer.Typer(
    cls=StageGroup, help="W4: score under a rival's rubric.", no_args_is_help=True
)
probe_app = typer.Typer(
    cls=StageGroup, help="W5: ask whether experts would agree.", no_args_is_help=True
)
for name, group in (
    ("evidence", evidence_app),
    ("rubric", rubric_app),
    ("score", score_app),
    ("swap", swap_app),
    ("probe", probe_app),
):
    app.add_typer(group, name=name)


@evidence_app.command("make")
def make_views(target: Target, set: Set = NoSet, json: AsJson = False) -> None:
    """Make the neutral views that a study's judges read."""
    _workflow("evidence", target, set, json)


@rubric_app.command("make")
def make_rubrics(target: Target, set: Set = NoSet, json: AsJson = False) -> None:
    """Have the rubrics written and criticised."""
    _workflow("rubric", target, set, json)


@rubric_app.command("list")
def list_rubrics(tag: str, json: AsJson = False) -> None:
    """List an experiment's rubrics with the critic's scores."""
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = lab.experiments.list_rubrics(tag)
    if json:
        display.print_json(rows)
        return
    for row in rows:
        quality = ", ".join(
            f"{name} {display.cell(row[name])}" for name in ("observability", "discriminability")
        )
        typer.echo(
            f"\nrubric {row['id']} by {row['author']} for {row['concept']} ("
            f"{row['status']}; {quality})"
        )
        for number, (label, *criteria) in enumerate(row["stages"], 1):
            typer.echo(
                f"  {number}. {label}\n"
                + "\n".join(f"     - {criterion}" for criterion in criteria)
            )


@score_app.command("make")
def make_scores(
    target: Target,
    samples: Annotated[int | None, typer.Option(min=1, help="Replicates per cell.")] = None,
    set: Set = NoSet,
    series: Series = None,
    json: AsJson = False,
) -> None:
    """Score the evidence under the judges' own rubrics."""
    _workflow("score", target, set, json, samples=samples, series=series)


@score_app.command("list")
def list_samples(tag: str, json: AsJson = False) -> None:
    """List an experiment's samples."""
    _list(
        "list_samples",
        tag,
        json,
        (
            "sample",
            "evidence",
            "replicate",
            "is_swap",
            "rubric_author",
            "display",
            "status",
            "stages",
            "probe",
            "call_id",
        ),
    )


@swap_app.command("make")
def make_swaps(
    target: Target,
    rival: Annotated[
        list[str] | None,
        typer.Option("--from", help="Author of the rubric; else as the study says."),
    ] = None,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Rank the pairs of judges that diverge most.")
    ] = False,
    set: Set = NoSet,
    series: Series = None,
    json: AsJson = False,
) -> None:
    """Score under a rival's rubric, with equal samples and displays."""
    from judge_gym.cli import display

    if not suggest:
        _workflow("swap", target, set, json, rivals=rival or (), series=series)
        return
    with read_lab() as lab:
        rows: Any = lab.reports.suggest_swaps(target).to_dict("records")
    display.print_json(rows) if json else display.table(
        "raw divergence in bits, farthest first", rows
    )


@probe_app.command("make")
def make_probes(
    target: Target, set: Set = NoSet, series: Series = None, json: AsJson = False
) -> None:
    """Ask, for every scored verdict, whether experts would agree."""
    _workflow("probe", target, set, json, series=series)


@probe_app.command("list")
def list_probes(tag: str, json: AsJson = False) -> None:
    """List an experiment's probes."""
    _list("list_probes", tag, json, ())


def _workflow(workflow: Any, target: str, set: Sequence[str], json: bool, **options: Any) -> None:
    with open_lab() as lab:
        result = carry_out(
            lambda watch: lab.runs.run(
                target, overrides=given("--set", set), workflows=[workflow], watch=watch, **options
            ),
            quiet=json,
        )
    show_result(result, json)
    # What other verbs have still to do is no failure of this one.
    end(result, same_command(), quiet=json, ok={run.status for run in result.runs} - {"failed"})


def _list(verb: str, tag: str, json: bool, columns: Sequence[str]) -> None:
    from judge_gym.cli import display

    with read_lab() as lab:
        rows = getattr(lab.experiments, verb)(tag)
    if json:
        display.print_json(rows)
    else:
        display.table("", [{name: row[name] for name in columns or row} for row in rows])
