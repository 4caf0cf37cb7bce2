"""The command that says whether intervals hold at the size of a study."""

from typing import Annotated

import typer

from judge_gym.cli import display
from judge_gym.cli.app import app, read_lab
from judge_gym.cli.options import AsJson
from judge_gym.errors import DesignError
from judge_gym.records.coverage import CoverageReport, Rate, quantity_words
from judge_gym.records.numbers import fine_percent, percent

FILES = (".csv", ".parquet")
NOTE = (
    "coverage: how often the intervals of all setups contain the true value, with the 99 % "
    "interval of simulation error; printed: the share of panels that print an interval; width: "
    "its mean"
)


@app.command()
def calibrate(
    like: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|STUDY", help="A .csv or .parquet file of samples, a study, or a tag."
        ),
    ] = None,
    panels: Annotated[
        int | None,
        typer.Option(min=10, help="Simulated studies; default: what takes about a minute."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    json: AsJson = False,
) -> None:
    """Check whether intervals hold for a study of this size, by simulating studies like it."""
    from judge_gym.lab.reports import calibrate_file

    if like is None:
        raise DesignError(
            "calibrate needs --like: a file of samples (.csv or .parquet) or a study; the check "
            "of the estimators themselves is 'make simulations' in a checkout",
            choices=("--like FILE", "--like STUDY"),
        )
    with display.counting("panels", quiet=json) as watch:
        if like.lower().endswith(FILES):
            report = calibrate_file(like, panels=panels, seed=seed, watch=watch)
        else:
            with read_lab() as lab:
                report = lab.reports.calibrate(like, panels=panels, seed=seed, watch=watch)
    if json:
        display.print_json(report)
        return
    _print(report)


def _print(report: CoverageReport) -> None:
    display.text(report["sentence"])
    rows = [
        {
            "quantity": quantity_words(row["quantity"]),
            "verdict": row["verdict"],
            "coverage": "" if row["coverage"] is None else _percent(row["coverage"]),
            "printed": percent(row["printed"]),
            "width": row["width"],
            "why no interval": row["reason"],
        }
        for row in report["quantities"]
    ]
    display.table("coverage of 95 % intervals", rows, note=NOTE)
    if report["false_worse"] is not None:
        rate = _percent(report["false_worse"])
        display.text(f"Panels of equal setups in which one is called worse: {rate}; at most 5 %.")
    if report["unchecked"]:
        names = ", ".join(map(quantity_words, report["unchecked"]))
        display.text(f"Not simulated: {names}.")
    for note in report["notes"]:
        display.text(note)


def _percent(rate: Rate) -> str:
    ends = [percent(rate[end]).removesuffix(" %") for end in ("low", "high")]
    return f"{fine_percent(rate['value'])} [{ends[0]}, {ends[1]}]"
