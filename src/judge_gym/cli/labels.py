"""Commands over people's labels: `label` serves items to raters, `labels` imports and splits."""

import csv
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, notes, open_lab, read_lab
from judge_gym.cli.file_options import is_recorded_file, read_recorded, takes_file_options
from judge_gym.cli.options import NONE, AsJson
from judge_gym.cli.serve import AllowHost, Host, Port, until_interrupted
from judge_gym.errors import DesignError
from judge_gym.records.actors import user_name
from judge_gym.records.judge_table import MIN_CLUSTERS

if TYPE_CHECKING:
    from judge_gym.lab import Lab
    from judge_gym.recorded.options import FileOptions
    from judge_gym.records.responses import LabelQueueRow, LabelSplit

LABELS_PORT = 8644
COLUMNS = ("item", "rater", "stage", "kind", "confidence", "note", "given")


@app.command()
@takes_file_options
def label(
    target: Annotated[
        str,
        typer.Argument(
            metavar="STUDY|FILE", help="A study, its file, or a file with the texts to label."
        ),
    ],
    rater: Annotated[
        list[str], typer.Option(metavar="NAME", help="Who labels; repeatable; default: you.")
    ] = NONE,
    items: Annotated[int, typer.Option(min=1, help="How many items are drawn.")] = 50,
    by: Annotated[
        str,
        typer.Option(
            help="random, or disagreement: items that divide setups are drawn more often."
        ),
    ] = "random",
    core: Annotated[
        float, typer.Option(help="With --by disagreement: the share drawn at random all the same.")
    ] = 0.5,
    overlap: Annotated[
        float | None, typer.Option(help="The share that two raters label; default: .2.")
    ] = None,
    hard: Annotated[
        int, typer.Option(min=0, help="Further items on which setups disagree; they enter no rate.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Decides the draw.")] = 0,
    adjudicate: Annotated[
        bool, typer.Option("--adjudicate", help="Decide items that raters labelled differently.")
    ] = False,
    days: Annotated[int, typer.Option(min=1, max=365, help="How long links are valid.")] = 14,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the labels as CSV at the end.")
    ] = None,
    open: Annotated[
        bool, typer.Option("--open/--no-open", help="Open your own items in the browser.")
    ] = True,
    host: Host = "127.0.0.1",
    port: Port = LABELS_PORT,
    allow_host: AllowHost = NONE,
    *,
    file_options: "FileOptions",
) -> None:
    """Label items in the browser, blind to all judges; the same command continues."""
    from judge_gym.analysis.judges.label_draws import LabelDraw
    from judge_gym.web import serve

    if by not in ("random", "disagreement"):
        raise DesignError(f"--by {by}; choose random or disagreement")
    raters = rater or [user_name() or "me"]
    draw = LabelDraw(items, by == "disagreement", core, hard, seed)
    with until_interrupted(), open_lab() as lab:
        if adjudicate:
            queue = lab.labelling.ask_about_disagreements(target, raters[0])
        elif is_recorded_file(target):
            reading = read_recorded(Path(target), file_options)
            queue = lab.labelling.ask_about_file(reading, raters, draw, overlap)
        else:
            queue = lab.labelling.ask(target, raters, draw, overlap)
        _describe(queue)
        with serve(lab, host, port, names=allow_host, work=False) as address:
            links = {
                row["rater"]: f"{address.url}/label?token="
                + lab.labelling.link(queue["queue"], row["rater"], days)
                for row in queue["raters"]
            }
            for name, url in links.items():
                typer.echo(f"{name}: {url}" if rater else url)
            notes("a link lets its rater label these items and do nothing else; Ctrl-C ends")
            if open and not rater:
                webbrowser.open(links[raters[0]])
            try:
                threading.Event().wait()
            finally:
                _end(lab, queue["queue"], out)


def _describe(queue: "LabelQueueRow") -> None:
    """Says how many items each rater has, and how many are done."""
    for row in queue["raters"]:
        typer.echo(f"queue {queue['queue']}, {row['rater']}: {row['items']} items", err=True)


def _end(lab: "Lab", number: int, out: Path | None) -> None:
    """Says how far each rater is, and writes the labels of the queue."""
    queue = next(row for row in lab.labelling.queues() if row["queue"] == number)
    for row in queue["raters"]:
        typer.echo(f"{row['rater']}: {row['labelled']} of {row['items']} labelled", err=True)
    if out is not None:
        _write(out, lab.labelling.export(number))
        typer.echo(f"wrote {out}", err=True)


def _write(path: Path, rows: Sequence[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


labels_app = typer.Typer(help="People's labels of items.", no_args_is_help=True)
app.add_typer(labels_app, name="labels")


@labels_app.command("export")
def export_labels(
    study: Annotated[str, typer.Argument(help="A study file, or a study's name.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="A CSV file.")],
) -> None:
    """Write every label of a study's items with its rater, time, confidence and note."""
    with read_lab() as lab:
        rows = lab.labelling.export_study(study)
    _write(out, rows)
    typer.echo(f"wrote {out}: {len(rows):,} labels")


@labels_app.command("import")
def import_labels(
    file: Annotated[
        Path, typer.Argument(help="A CSV file with the columns item, rater and stage.")
    ],
    study: Annotated[
        str | None, typer.Option(help="The study or tag whose items were labelled.")
    ] = None,
    concept: Annotated[str, typer.Option(help="The concept that was judged; default: any.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace earlier labels that differ.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Import people's labels, all or none. An item is a number, a URL, an id or a title."""
    with read_lab() as lab:
        counts = lab.labels.import_file(file, target=study, concept=concept, replace=replace)
    if json:
        display.print_json(counts)
    else:
        typer.echo(", ".join(f"{count} {kind}" for kind, count in counts.items()) + " labels")


@labels_app.command("split")
def split_labels(
    study: Annotated[str, typer.Argument(help="A study file, or a study's name.")],
    shares: Annotated[
        str, typer.Option(help="Percentages of train, dev and test; 50,0,50 has no dev.")
    ] = "20,40,40",
    seed: Annotated[int, typer.Option(help="Decides which clusters are in which part.")] = 0,
    replace: Annotated[
        bool, typer.Option("--replace", help="Draw an existing split anew; its uses stay counted.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Split a study's items by cluster: train for rubrics, dev for choices, test for estimates."""
    try:
        percentages = [float(share) for share in shares.split(",")]
    except ValueError:
        raise DesignError(f"--shares {shares!r}; three numbers, such as 20,40,40") from None
    with read_lab() as lab:
        split = lab.labels.split(study, shares=percentages, seed=seed, replace=replace)
    if json:
        display.print_json(split)
    else:
        _show_split(split)


@labels_app.command("status")
def label_status(
    study: Annotated[str, typer.Argument(help="A study file, or a study's name.")],
    json: AsJson = False,
) -> None:
    """Show how many of a study's items are labelled, by whom, and how they are split."""
    with read_lab() as lab:
        status = lab.labels.status(study)
    if json:
        display.print_json(status)
        return
    raters = ", ".join(f"{rater} ({count})" for rater, count in sorted(status["raters"].items()))
    display.text(
        f"{status['labelled']} of {status['items']} items are labelled"
        + (f", by {raters}" if raters else "")
        + f"; {status['known_answers']} have a known answer"
    )
    if status["split"] is None:
        typer.echo(f"no split; make one with: judge-gym labels split {study}")
    else:
        _show_split(status["split"])


def _show_split(split: "LabelSplit") -> None:
    """Prints the parts of a split, and how often its test part was used."""
    display.table("", split["parts"], note="known: with labels or a known answer")
    used = f"was used {display.times(split['uses'])}" if split["uses"] else "was never used"
    typer.echo(f"the test part {used}")
    clusters = {part["part"]: part["clusters"] for part in split["parts"]}
    if clusters.get("test", 0) < MIN_CLUSTERS:
        notes(
            f"test has {clusters.get('test', 0)} clusters; to compare setups, {MIN_CLUSTERS} are "
            "needed"
        )


@labels_app.command("list")
def list_labels(json: AsJson = False) -> None:
    """List people's labels."""
    with read_lab() as lab:
        rows = lab.labels.list()
    empty = "no labels yet; import some with: judge-gym labels import FILE.csv"
    display.show_rows(rows, json, empty=empty)
