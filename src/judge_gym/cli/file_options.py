"""The options that say how to read a file of verdicts and labels, for every command that does."""

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.cli.options import NONE
from judge_gym.errors import DesignError
from judge_gym.records.inputs import STUDY_SUFFIXES

if TYPE_CHECKING:
    from judge_gym.recorded.options import FileOptions, FileReading

RECEIVED = "file_options"
"""The parameter with which a command gets the options."""


def _declared(
    *,
    judge: Annotated[
        list[str],
        typer.Option(
            "--judge",
            metavar="COLUMN",
            help="A column with a judge's verdicts, or the one that names the judge of its row; "
            "repeatable.",
        ),
    ] = NONE,
    human: Annotated[
        list[str],
        typer.Option(
            "--human",
            metavar="COLUMN",
            help="A column with a person's labels, or the one that names the person; repeatable.",
        ),
    ] = NONE,
    truth: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with known answers.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A second file with people's labels, joined by item."),
    ] = None,
    item: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with the item's id.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with what is judged.")
    ] = None,
    responses: Annotated[
        str | None,
        typer.Option(metavar="COLUMN,COLUMN", help="The columns of the two responses of a pair."),
    ] = None,
    repeat: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with the repeat's number.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="What makes items dependent, such as a conversation or a topic."
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Which system, or version, wrote the judged text."),
    ] = None,
    knob: Annotated[
        list[str],
        typer.Option(
            "--knob",
            metavar="COLUMN",
            help="What varied between verdicts, such as the prompt; repeatable.",
        ),
    ] = NONE,
    score: Annotated[
        str | None,
        typer.Option(metavar="'NAME>=4'", help="Make pass and fail of numbers: 'score>=4'."),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="The positive one of two labels, such as pass."),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(metavar="LABEL,...", help="The labels from the lowest to the highest."),
    ] = None,
    same: Annotated[
        list[str],
        typer.Option(
            "--same", metavar="SPELLING=LABEL", help="Count a spelling as a label; repeatable."
        ),
    ] = NONE,
    missing: Annotated[
        list[str],
        typer.Option("--missing", metavar="WORD", help="A word for no label; repeatable."),
    ] = NONE,
    length: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The length of the text; default: counted."),
    ] = None,
    usd: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The price of a verdict in US dollars.")
    ] = None,
    seconds: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The time of a verdict.")
    ] = None,
    rationale: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The judge's reasons.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Take what is uncertain about the file as proposed.")
    ] = False,
) -> None:
    """Declares the options."""


PARAMETERS = tuple(inspect.signature(_declared).parameters.values())


def takes_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of a file to a command, which gets them as `file_options`.

    An option that the command declares itself, such as `positive`, keeps its own help; the command
    gets it in both places.
    """
    own = [one for name, one in inspect.signature(command).parameters.items() if name != RECEIVED]
    names = {one.name for one in own}
    added = [one for one in PARAMETERS if one.name not in names]

    @wraps(command)
    def with_options(**arguments: Any) -> None:
        given = {one.name: arguments.get(one.name, one.default) for one in PARAMETERS}
        for one in added:
            arguments.pop(one.name, None)
        command(**arguments, **{RECEIVED: _file_options(**given)})

    every = [*own, *added]
    with_options.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in every}
    return with_options


def _file_options(
    *,
    judge: Sequence[str],
    human: Sequence[str],
    labels: Path | None,
    responses: str | None,
    knob: Sequence[str],
    order: str | None,
    same: Sequence[str],
    missing: Sequence[str],
    yes: bool,
    **columns: Any,
) -> "FileOptions":
    from judge_gym.recorded.options import FileOptions

    return FileOptions(
        judges=tuple(judge),
        people=tuple(human),
        labels=labels,
        responses=_two_columns(responses),
        knobs=tuple(knob),
        order=tuple(_listed(order)),
        same=dict(map(_spelling, same)),
        missing=tuple(missing),
        accept=yes,
        **columns,
    )


def _listed(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _two_columns(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = _listed(text)
    if len(names) != 2:
        raise DesignError(
            f"--responses {text!r}: two columns are needed, as in response_a,response_b"
        )
    return names[0], names[1]


def _spelling(text: str) -> tuple[str, str]:
    spelling, separator, label = text.rpartition("=")
    if not (separator and spelling.strip() and label.strip()):
        raise DesignError(f"--same {text!r}: write SPELLING=LABEL, as in Helpfull=helpful")
    return spelling.strip(), label.strip()


def is_recorded_file(target: str | None) -> bool:
    """Whether a target names an existing file that is not a study's."""
    if target is None or target.lower().endswith(STUDY_SUFFIXES):
        return False
    return Path(target).is_file()


def refuse_file_options(options: "FileOptions", target: str) -> None:
    """Refuses options of files for a target that is none.

    Raises:
        DesignError: if any is given beside `--positive`, which studies have too.
    """
    from dataclasses import replace

    from judge_gym.recorded.options import FileOptions

    if replace(options, positive=None) != FileOptions():
        raise DesignError(
            f"{target!r} is a study or a tag, and options such as --human, --judge or --item are "
            "for files of verdicts"
        )


def read_recorded(
    file: Path, options: "FileOptions", *, json: bool, tell: bool = False
) -> "FileReading":
    """Reads a file; what is uncertain is asked in a terminal, and refused elsewhere.

    Args:
        file: the file.
        options: what the user says about it.
        json: whether a document is printed, so that nobody is asked.
        tell: whether to print how the file was read.

    Raises:
        DesignError: if something uncertain was neither confirmed nor accepted with `--yes`.
    """
    from judge_gym.recorded.check import refuse_uncertain
    from judge_gym.recorded.file import read_file

    reading = read_file(file, options)
    if json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        refuse_uncertain(reading)
    else:
        _ask(reading)
    if tell and not json:
        typer.echo(f"{reading.roles_text()}\n")
    return reading


def _ask(reading: "FileReading") -> None:
    for question in reading.questions:
        if not typer.confirm(question.text, default=True):
            raise DesignError(
                f"say what is right with options; as proposed it is {question.option}"
            )
