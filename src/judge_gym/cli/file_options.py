"""What a user says about a file of verdicts or labels: the options of every command that reads one.

`confirm_reading` asks in a terminal what is uncertain about a file, and refuses elsewhere.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judge_gym.errors import DesignError

if TYPE_CHECKING:
    from judge_gym.recorded.options import FileReading

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
        raise DesignError(f"--responses {text!r} names {len(words)} columns; a pair has two")
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
        if not typer.confirm(question.text, default=True, err=True):
            raise DesignError(
                f"say what it is with another option than {question.option}; --same VALUE=VALUE "
                "keeps a label"
                if question.option.startswith("--same")
                else f"say what it is with another option than {question.option}"
            )
