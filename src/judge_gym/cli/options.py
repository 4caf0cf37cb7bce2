"""Options and arguments that several commands take, each declared once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge_gym.errors import DesignError, unknown

if TYPE_CHECKING:
    from judge_gym.engine import Workflow

NONE: list[str] = []
"""The default of an option that can be repeated."""
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]

# --- studies and runs ----------------------------------------------------------------------------

Target = Annotated[
    str, typer.Argument(help="A study file, a study's name, or an experiment's tag.")
]
RunTarget = Annotated[
    str, typer.Argument(help="A study file, a study's name, an experiment's tag, or suite:RUN.")
]
Set = Annotated[
    list[str],
    typer.Option("--set", metavar="GROUP.KNOB=LEVEL", help="Override the study's base design."),
]
Series = Annotated[
    str | None,
    typer.Option(help="Ask for all scores and probes again under this name (test-retest)."),
]
Samples = Annotated[
    int | None, typer.Option(min=1, help="Repeats per item, instead of the study's.")
]
Budget = Annotated[
    list[str],
    typer.Option(
        metavar="NAME=LIMIT",
        help="usd, calls, tokens or minutes, or run.usd ... for each run; overrides the study's.",
    ),
]
PauseAfter = Annotated[
    str | None,
    typer.Option(metavar="STEP", help="Pause when evidence, rubric, score, swap or probe is done."),
]
AllowPrivate = Annotated[
    bool,
    typer.Option("--allow-private", help="Also fetch from loopback and private addresses."),
]

# --- suites --------------------------------------------------------------------------------------

SuiteName = Annotated[
    str, typer.Argument(metavar="SUITE", help="A suite's folder, or 'python' for the included one.")
]
ModelId = Annotated[str, typer.Option(help="The model to ask: provider:name, or a bare name.")]
Condition = Annotated[
    str,
    typer.Option(help="default, no_guidelines, web_search, or a condition that the suite defines."),
]
Models = Annotated[
    list[str],
    typer.Option("--model", help="A model to ask: provider:name, or a bare name; repeatable."),
]
Conditions = Annotated[
    list[str],
    typer.Option(
        "--condition",
        help="default, no_guidelines, web_search, or one that the suite defines; repeatable.",
    ),
]
Evals = Annotated[
    list[str],
    typer.Option(
        "--evals",
        metavar="PATTERN",
        help="Only evals whose path contains this, or a glob such as '*/00[12]-*'; repeatable.",
    ),
]
Filter = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Only evals in whose path this expression is found."),
]
Category = Annotated[
    list[str],
    typer.Option(metavar="NAME", help="Only this category: 001-language or language; repeatable."),
]
FailedOf = Annotated[
    int | None, typer.Option(metavar="RUN", help="Only evals that did not pass in this run.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many of these evals.")]
Replicates = Annotated[int, typer.Option(min=1, help="Answers per task.")]
SuiteSeries = Annotated[str, typer.Option(help="Ask for everything again under this name.")]
Jobs = Annotated[int, typer.Option(min=1, help="Evals in sandboxes at once.")]
Unisolated = Annotated[
    bool,
    typer.Option("--allow-unisolated", help="Run untrusted code even where no sandbox works."),
]
Remote = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="URL",
        help="A remote lab that stores the scores; its token is in JUDGE_GYM_TOKEN.",
    ),
]
FromLab = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="URL",
        help="Ask this lab instead of the database; its token is in JUDGE_GYM_TOKEN.",
    ),
]


def parse_pairs(option: str, entries: Sequence[str]) -> dict[str, Any]:
    """Parses `NAME=VALUE` entries, whose values are read as a study file's are."""
    import yaml

    values = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals:
            shape = "GROUP.KNOB=LEVEL" if option == "--set" else "NAME=LIMIT"
            raise DesignError(f"{option} takes {shape}, not {entry!r}")
        try:
            values[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise DesignError(f"{option} {entry}: the value is not valid YAML") from error
    return values


def workflow(name: str | None) -> "Workflow | None":
    """Finds a workflow by its name.

    Raises:
        DesignError: if there is no workflow of this name.
    """
    from judge_gym.engine import WORKFLOWS

    for valid_name in WORKFLOWS:
        if name == valid_name:
            return valid_name
    if name is not None:
        raise DesignError(unknown("step", name, WORKFLOWS), choices=WORKFLOWS)
    return None
