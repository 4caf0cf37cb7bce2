"""What a user says about a file of verdicts or labels: the options of every command that reads one.

`takes_file_options` adds all of them to a command. `confirm_reading` asks in a terminal what is
uncertain about a file, and refuses elsewhere.
"""

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
from judge_gym.records.numbers import plural

if TYPE_CHECKING:
    from judge_gym.recorded.options import FileOptions, FileReading

RECEIVED = "file_options"
"""The parameter with which a command gets all options of files."""

COLUMN = "COLUMN"
Item = Annotated[str | None, typer.Option(metavar=COLUMN, help="The column that names items.")]
Text = Annotated[
    str | None, typer.Option(metavar=COLUMN, help="The column with the text that is judged.")
]
Responses = Annotated[
    str,
    typer.Option(metavar="COLUMN,COLUMN", help="The columns with the two responses of a pair."),
]
JudgeColumns = Annotated[
    list[str],
    typer.Option(
        "--judge",
        metavar=COLUMN,
        help="A column of verdicts, or the one that names who judged; repeatable.",
    ),
]
Human = Annotated[
    list[str],
    typer.Option(
        metavar=COLUMN,
        help="A column of a person's labels, or the one that names the person; repeatable.",
    ),
]
Truth = Annotated[str | None, typer.Option(metavar=COLUMN, help="The column with known answers.")]
Repeat = Annotated[
    str | None, typer.Option(metavar=COLUMN, help="The column that numbers repeats of a judge.")
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar=COLUMN, help="The column with what makes items dependent: a thread."),
]
Score = Annotated[
    str | None,
    typer.Option(metavar="EXPR", help="Make two labels of a column of numbers: 'score>=4'."),
]
Positive = Annotated[
    str | None, typer.Option(metavar="LABEL", help="The positive one of two labels.")
]
Length = Annotated[
    str | None, typer.Option(metavar=COLUMN, help="The column with the length of the text.")
]
Usd = Annotated[str | None, typer.Option(metavar=COLUMN, help="The column with the price.")]
Seconds = Annotated[
    str | None, typer.Option(metavar=COLUMN, help="The column with the time of a verdict.")
]
System = Annotated[
    str | None,
    typer.Option(metavar=COLUMN, help="The column with the system or version that wrote the text."),
]
Rationale = Annotated[
    str | None, typer.Option(metavar=COLUMN, help="The column with the judge's reasons.")
]
KnobColumns = Annotated[
    list[str],
    typer.Option(
        "--knob", metavar=COLUMN, help="A column with a setting of the judge; repeatable."
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A second file with people's labels, joined by item."),
]
Order = Annotated[
    str,
    typer.Option(metavar="LABEL,...", help="The labels from the lowest; 'none': without order."),
]
Same = Annotated[
    list[str],
    typer.Option(metavar="VALUE=LABEL", help="What a spelling means; repeatable."),
]
Missing = Annotated[
    list[str], typer.Option(metavar="WORD", help="A word that stands for no label; repeatable.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Accept what is uncertain as it is proposed.")]


def read_words(text: str) -> tuple[str, ...]:
    """Reads words that are separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def read_pair(text: str) -> tuple[str, str] | None:
    """Reads the two columns of `--responses`."""
    words = read_words(text)
    if not words:
        return None
    if len(words) != 2:
        raise DesignError(
            f"--responses {text!r} names {plural(len(words), 'column')}; a pair has two"
        )
    return words[0], words[1]


def read_same(pairs: Sequence[str]) -> dict[str, str]:
    """Reads what spellings mean."""
    split = [pair.rpartition("=") for pair in pairs]
    for pair, (value, sign, label) in zip(pairs, split, strict=True):
        if not sign or not value.strip() or not label.strip():
            raise DesignError(f"--same {pair!r} is not VALUE=LABEL, such as Helpfull=helpful")
    return {value.strip(): label.strip() for value, _, label in split}


def confirm_reading(reading: "FileReading") -> None:
    """Shows how a file was read, and asks about what is uncertain.

    Raises:
        DesignError: outside of a terminal if something is uncertain, or if the user says no.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        reading.refuse_open_questions()
    typer.echo(reading.roles_text(), err=True)
    for question in reading.questions:
        if not typer.confirm(question.on_command_line, default=True, err=True):
            hint = "; --same VALUE=VALUE keeps a label" if "--same" in question.option else ""
            raise DesignError(
                f"then say so: {question.otherwise}"
                if question.otherwise
                else f"say what it is with another option than {question.option}{hint}"
            )


# --- all options of a file for one command --------------------------------------------------------


def _file_options(
    *,
    judge: JudgeColumns = NONE,
    human: Human = NONE,
    truth: Truth = None,
    labels: Labels = None,
    item: Item = None,
    text: Text = None,
    responses: Responses = "",
    repeat: Repeat = None,
    cluster: Cluster = None,
    system: System = None,
    knob: KnobColumns = NONE,
    score: Score = None,
    positive: Positive = None,
    order: Order = "",
    same: Same = NONE,
    missing: Missing = NONE,
    length: Length = None,
    usd: Usd = None,
    seconds: Seconds = None,
    rationale: Rationale = None,
    yes: Yes = False,
) -> "FileOptions":
    """Collects what a user says about a file."""
    from judge_gym.recorded.options import FileOptions

    return FileOptions(
        judges=tuple(judge),
        people=tuple(human),
        truth=truth,
        labels=labels,
        item=item,
        text=text,
        responses=read_pair(responses),
        repeat=repeat,
        cluster=cluster,
        system=system,
        knobs=tuple(knob),
        score=score,
        positive=positive,
        order=read_words(order),
        same=read_same(same),
        missing=tuple(missing),
        length=length,
        usd=usd,
        seconds=seconds,
        rationale=rationale,
        accept=yes,
    )


def takes_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of a file to a command, which gets them as `file_options`.

    An option that the command declares itself, such as `positive`, keeps its own help; the command
    gets it in both places.
    """
    of_files = inspect.signature(_file_options).parameters.values()
    declared = [
        parameter
        for name, parameter in inspect.signature(command).parameters.items()
        if name != RECEIVED
    ]
    names = {parameter.name for parameter in declared}
    added = [parameter for parameter in of_files if parameter.name not in names]

    @wraps(command)
    def with_options(**arguments: Any) -> None:
        values = {parameter.name: arguments[parameter.name] for parameter in of_files}
        rest = {parameter.name: arguments[parameter.name] for parameter in declared}
        command(**rest, **{RECEIVED: _file_options(**values)})

    every = [*declared, *added]
    with_options.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return with_options


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
    if options.about_file:
        raise DesignError(
            f"{target!r} is a study or a tag, and options such as --human, --judge or --item are "
            "for files of verdicts"
        )


def read_recorded(file: Path, options: "FileOptions") -> "FileReading":
    """Reads a log or a table, and has what is uncertain about it confirmed."""
    from judge_gym.recorded.logs import read_verdicts

    return _confirm_or_refuse(read_verdicts(file, options))


def read_table_file(file: Path, options: "FileOptions") -> "FileReading":
    """Reads a table, and has what is uncertain about it confirmed."""
    from judge_gym.recorded.file import read_file

    return _confirm_or_refuse(read_file(file, options))


def _confirm_or_refuse(reading: "FileReading") -> "FileReading":
    if reading.questions:
        confirm_reading(reading)
    return reading
