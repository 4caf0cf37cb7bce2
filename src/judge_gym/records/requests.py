"""What users may send: the types of verbs' arguments with their limits, and records within them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
)

from judge_gym.errors import NotFoundError
from judge_gym.records.inputs import LARGEST, STUDY_SUFFIXES
from judge_gym.records.outcomes import InconclusiveReason, StepStatus

UsageColumn = Literal["study", "tag", "stage", "model", "day", "provider"]


def _refuse_study_file(target: str) -> str:
    if PurePath(target).suffix in STUDY_SUFFIXES:
        raise NotFoundError(f"there is no experiment {target!r}; a study file is sent as its text")
    return target


@dataclass(frozen=True)
class Local:
    """Marks an argument that only callers in this process can give."""


@dataclass(frozen=True)
class Sent:
    """Marks an argument that has another type, or more limits, when it is sent."""

    type: Any


LOCAL = Local()
Name = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00]+$")]
Tag = Annotated[Name, Field(description="An experiment's tag.")]
TargetName = Annotated[
    Name,
    AfterValidator(_refuse_study_file),
    Field(description="A study's name or an experiment's tag."),
]
Id = Annotated[int, Field(ge=1, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Budget = Annotated[
    Mapping[str, Any],
    Sent(Mapping[str, int | float | None]),
    Field(description="usd, calls, tokens, minutes, or run.usd ... of each run."),
]
Knobs = Annotated[Mapping[str, Any], Field(description="Knobs by path.")]
# A part of an eval's path, which is category/name.
Part = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^/\x00]+$")]
Word = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
Short = Annotated[str, StringConstraints(max_length=20_000)]
Long = Annotated[str, StringConstraints(max_length=4_000_000)]
Files = Annotated[Mapping[Name, Long], Field(max_length=500)]
Others = Annotated[
    Sequence[TargetName],
    Field(max_length=1000, description="More studies or experiments, in the same table."),
]
Targets = Annotated[Sequence[TargetName], Field(min_length=1, max_length=1000)]
NewFile = Annotated[Name, Field(description="A new file below the lab's folder.")]
StudyText = Annotated[str | None, Field(description="The text of a study file (YAML).")]
Series = Annotated[Name | None, Field(description="Draw scores and probes afresh.")]
Samples = Annotated[int | None, Field(ge=1, le=10_000, description="Replicates of each cell.")]
NOTHING: Mapping[str, Any] = {}
"""The default of an argument that has names and values."""
Day = Annotated[date | str, Sent(date)]
"""A date, or a text such as 2026-01-31."""
SuiteName = Annotated[Name, Field(description="The name of a suite of the lab, such as python.")]
ConditionName = Annotated[Name, Field(description="Its name.")]
Evals = Annotated[Sequence[Name], Field(min_length=1, max_length=10_000, description="Paths.")]


class VerbRequest(BaseModel):
    """The arguments of a verb, of which unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Item(VerbRequest):
    """A text, an item of named parts such as input and output, or two responses to compare."""

    title: Name
    text: Annotated[str, Field(description="Empty if it has parts.")] = ""
    input: str = ""
    output: str = ""
    reference: str = ""
    context: str = ""
    messages: Annotated[
        Sequence[Mapping[str, Any]] | None,
        Field(description="A transcript: role, content, tool_calls."),
    ] = None
    url: str = ""
    date: Annotated[str, Field(description="YYYY-MM-DD")] = ""
    source: str = ""
    cluster: Annotated[
        str, Field(description="What makes items dependent: an outlet, a conversation, an event.")
    ] = ""
    truth: int | str | None = None
    responses: Sequence[str] | None = None
    metadata: Mapping[str, str] | None = None


Items = Annotated[Sequence[Mapping[str, Any]], Sent(Sequence[Item]), Field(max_length=10_000)]


class Label(VerbRequest):
    """The stage that a person gave an item."""

    item: Annotated[Name, Field(description="Its number, address, hash, published id or title.")]
    rater: Name
    stage: Name


ExportColumn = Literal["labels", "text", "answer"]
"""A column that an export has on request."""
Include = Annotated[
    Sequence[ExportColumn],
    Field(
        max_length=3,
        description="Also people's labels, the item's text, the judge's words.",
    ),
]


class CallLimits(VerbRequest):
    """Limits on calls, in every process that works on a run."""

    rpm: Id | None = None
    tpm: Id | None = None
    concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None


class TaskFiles(VerbRequest):
    """The files behind an eval."""

    category: Part
    name: Part
    task: Long
    answer: Files = {}
    grader: Files = {}
    gaps: Long = ""


class ConditionSettings(VerbRequest):
    """What a model was given besides the task."""

    guidelines: bool = True
    without: Annotated[Sequence[Name], Field(max_length=500)] = ()
    web_search: bool = False
    extra: Long = ""


class OutcomePassed(VerbRequest):
    """Every step passed, and every test."""

    kind: Literal["passed"]


class OutcomeFailed(VerbRequest):
    """The candidate failed a step."""

    kind: Literal["failed"]
    step: Part
    reason: Short


class OutcomeInconclusive(VerbRequest):
    """Nothing was learnt about the candidate."""

    kind: Literal["inconclusive"]
    why: InconclusiveReason
    step: Word = ""
    reason: Short


Outcome = Annotated[
    OutcomePassed | OutcomeFailed | OutcomeInconclusive, Field(discriminator="kind")
]


class Step(VerbRequest):
    """One step of an eval."""

    name: Part
    status: StepStatus
    seconds: Amount
    reason: Short = ""
    output: Long = ""
    tests_passed: Count | None = None
    tests_collected: Count | None = None
