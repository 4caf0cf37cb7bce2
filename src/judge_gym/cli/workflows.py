"""Commands for the five workflows W1 to W5, one by one, and what each has produced."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from judge_gym.cli import display
from judge_gym.cli.app import app, open_lab, read_lab
from judge_gym.cli.options import NONE, AsJson, Samples, Series, Set, Target, parse_pairs
from judge_gym.cli.results import end, execute, show_result
from judge_gym.errors import DesignError
from judge_gym.records.inputs import ARTICLES

if TYPE_CHECKING:
    from judge_gym.engine import Result

SAMPLE_COLUMNS = (
    "sample evidence repeat is_swap rubric_author display status stages probe call_id"
).split()


class WorkflowGroup(TyperGroup):
    """A group whose command `make` may be left out: `rubric STUDY` is `rubric make STUDY`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Inserts `make` before an argument that is no command."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["make", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Inserts `make` before options that precede the target."""
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


def _group(name: str, help: str) -> typer.Typer:
    group = typer.Typer(cls=WorkflowGroup, help=help, no_args_is_help=True)
    app.add_typer(group, name=name)
    return group


evidence_app = _group("evidence", "W1: collect evidence, and make the views that judges read.")
rubric_app = _group("rubric", "W2: have rubrics written and criticised.")
score_app = _group("score", "W3: score the evidence.")
swap_app = _group("swap", "W4: score under another judge's rubric.")
probe_app = _group("probe", "W5: ask whether experts would agree.")


@evidence_app.command("make")
def make_views(
    target: Annotated[
        str | None, typer.Argument(help="A study file, a study's name, or an experiment's tag.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Instead, the experiments that were created on a window.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, help=f"Most articles that the search of a draft keeps ({ARTICLES})."
        ),
    ] = None,
    set: Set = NONE,
    json: AsJson = False,
) -> None:
    """Make the views that judges read, after searching for evidence of drafts."""
    if (target is None) == (window is None):
        raise DesignError("name a study or an experiment, or a window with --window ID")
    if target is not None and limit is None:
        _run("evidence", target, set, json)
        return
    if set:
        raise DesignError("--set changes a study file's base design; an experiment has its design")
    with open_lab() as lab:
        result = execute(
            lambda watch: lab.runs.run_evidence(
                window_id=window, tag=target, limit=limit or ARTICLES, watch=watch
            ),
            json,
        )
    _end(result, json)


@rubric_app.command("make")
def make_rubrics(target: Target, set: Set = NONE, json: AsJson = False) -> None:
    """Have the rubrics written and criticised."""
    _run("rubric", target, set, json)


@rubric_app.command("list")
def list_rubrics(tag: str, json: AsJson = False) -> None:
    """List an experiment's rubrics with the critic's scores."""
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
    samples: Samples = None,
    set: Set = NONE,
    series: Series = None,
    json: AsJson = False,
) -> None:
    """Score the evidence under the judges' own rubrics."""
    _run("score", target, set, json, samples=samples, series=series)


@score_app.command("list")
def list_samples(tag: str, json: AsJson = False) -> None:
    """List an experiment's samples."""
    with read_lab() as lab:
        rows = lab.experiments.list_samples(tag)
    if json:
        display.print_json(rows)
        return
    # People count repeats from 1; files and JSON have the index from 0.
    numbered: list[dict[str, Any]] = [{**row, "repeat": row["replicate"] + 1} for row in rows]
    display.show_rows([{name: row[name] for name in SAMPLE_COLUMNS} for row in numbered], False)


@swap_app.command("make")
def make_swaps(
    target: Target,
    author: Annotated[
        list[str],
        typer.Option("--from", help="Author of the rubric; default: as in the study."),
    ] = NONE,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Rank the pairs of judges that diverge most.")
    ] = False,
    set: Set = NONE,
    series: Series = None,
    json: AsJson = False,
) -> None:
    """Score under another judge's rubric, with equal samples and displays."""
    if not suggest:
        _run("swap", target, set, json, rivals=author, series=series)
        return
    with read_lab() as lab:
        rows = display.records(lab.reports.suggest_swaps(target))
    display.print_json(rows) if json else display.table("divergence in bits, largest first", rows)


@probe_app.command("make")
def make_probes(
    target: Target, set: Set = NONE, series: Series = None, json: AsJson = False
) -> None:
    """Ask, for every scored verdict, whether experts would agree."""
    _run("probe", target, set, json, series=series)


@probe_app.command("list")
def list_probes(tag: str, json: AsJson = False) -> None:
    """List an experiment's probes."""
    with read_lab() as lab:
        rows = lab.experiments.list_probes(tag)
    display.show_rows(rows, json)


def _run(workflow: Any, target: str, set: Sequence[str], json: bool, **options: Any) -> None:
    """Executes one workflow."""
    with open_lab() as lab:
        result = execute(
            lambda watch: lab.runs.run(
                target,
                overrides=parse_pairs("--set", set),
                workflows=[workflow],
                watch=watch,
                **options,
            ),
            json,
        )
    _end(result, json)


def _end(result: "Result", json: bool) -> None:
    """Prints the result of one workflow, after which others may still be to be done."""
    show_result(result, json)
    end(result, quiet=json, ok={run.status for run in result.runs} - {"failed"})
