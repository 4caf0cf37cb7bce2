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
    model_validator,
)

from judge_gym.errors import NotFoundError
from judge_gym.records.evidence import TaskType
from judge_gym.records.inputs import ARTICLES, LARGEST, STUDY_SUFFIXES
from judge_gym.records.judge_table import MeasureName
from judge_gym.records.outcomes import InconclusiveReason, StepStatus
from judge_gym.records.verdicts import Status

Workflow = Literal["evidence", "rubric", "score", "swap", "probe"]
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
Target = Annotated[
    Name,
    AfterValidator(_refuse_study_file),
    Field(description="A study's name or an experiment's tag."),
]
Id = Annotated[int, Field(ge=1, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Budget = Annotated[
    Mapping[str, int | float | None],
    Field(description="usd, calls, tokens, minutes, or run.usd ... of each run."),
]
Knobs = Annotated[Mapping[str, Any], Field(description="Knobs by path.")]
# A part of an eval's path, which is category/name.
Part = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^/\x00]+$")]
Word = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
Short = Annotated[str, StringConstraints(max_length=20_000)]
Long = Annotated[str, StringConstraints(max_length=4_000_000)]
Files = Annotated[Mapping[Name, Long], Field(max_length=500)]
Day = Annotated[date | str, Sent(date)]
"""A date, or a text such as 2026-01-31."""
SuiteName = Annotated[Name, Field(description="The name of a suite of the lab, such as python.")]
ConditionName = Annotated[Name, Field(description="Its name.")]
Evals = Annotated[Sequence[Name], Field(min_length=1, max_length=10_000, description="Paths.")]


class VerbRequest(BaseModel):
    """The arguments of a verb; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoArguments(VerbRequest):
    """A verb without arguments."""


class OfName(VerbRequest):
    """Something that has a name."""

    name: Name


class OfStudy(VerbRequest):
    """A study."""

    study: Name


class OfTarget(VerbRequest):
    """A study or an experiment."""

    target: Target


class OptionalTarget(VerbRequest):
    """A study or an experiment, or everything."""

    target: Target | None = None


# --- evidence ------------------------------------------------------------------------------------


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


# --- experiments ---------------------------------------------------------------------------------


class CreateExperiment(VerbRequest):
    """One point of the design space."""

    tag: Name
    window_id: Id
    model_id: Name
    task_type: TaskType
    concept: Name
    config: Knobs = {}
    ground_truth: Mapping[str, Any] | None = None
    seed: Count = 0


class OfExperiment(VerbRequest):
    """An experiment."""

    tag: Tag


class LoadRubric(OfExperiment):
    """A benchmark's rubric."""

    rubric: Mapping[str, Any]


class ListExperiments(VerbRequest):
    """Which experiments are listed."""

    study: Name | None = None
    task_type: TaskType | None = None


class ListSamples(OfExperiment):
    """Which samples of an experiment are listed."""

    status: Status | None = None
    evidence: Id | None = None


class OfStudyItems(OfStudy):
    """Which items of a study are listed, in which order, for which setups."""

    sort: Annotated[
        Literal["disagreement", "people", "position"],
        Field(description="Largest disagreement, furthest from people, or the pool's order."),
    ] = "disagreement"
    task: Annotated[Name | None, Field(description="As `experiments_list_items` names it.")] = None
    status: Annotated[Status | None, Field(description="Items with a verdict of this status.")] = (
        None
    )
    wrong: Annotated[
        bool, Field(description="Items on which a setup's usual verdict is not the known one.")
    ] = False
    differs: Annotated[
        bool, Field(description="Items on which a setup's verdict is not what most people said.")
    ] = False
    verdict: Annotated[
        Name | None, Field(description="Items with this usual verdict: a label or a status.")
    ] = None
    label: Annotated[
        Name | None, Field(description="Items to which most people gave this label; or `divided`.")
    ] = None
    truth: Annotated[Name | None, Field(description="Items with this known answer.")] = None
    search: Annotated[
        Name | None, Field(description="Words in the title, the text or an answer.")
    ] = None
    setups: Annotated[
        Sequence[Name], Field(max_length=100, description="Compare these alone.")
    ] = ()


class ShowJudgedItem(OfStudyItems):
    """An item of a study under one of its tasks."""

    task: Name
    evidence: Id


class Cleanup(OfExperiment):
    """What is deleted of an experiment."""

    ledger: Annotated[bool, Field(description="Also answers that only it uses.")] = False
    forget: Annotated[bool, Field(description="Also its tag, which else stays known.")] = False
    force: Annotated[bool, Field(description="Even if it may be running.")] = False


ExportColumn = Literal["labels", "text", "answer"]
"""A column that an export has on request."""
Include = Annotated[
    Sequence[ExportColumn],
    Field(
        max_length=3,
        description="Also people's labels, the item's text, the judge's words.",
    ),
]


class ExportCsv(VerbRequest):
    """Which experiments are exported."""

    targets: Annotated[Sequence[Target], Field(min_length=1, max_length=1000)]
    include: Include = ()


NewFile = Annotated[Name, Field(description="A new file below the lab's folder.")]


class ExportFile(VerbRequest):
    """Which samples are written, and where."""

    targets: Annotated[Sequence[Target], Field(min_length=1, max_length=1000)]
    path: NewFile
    include: Include = ()


class WriteReport(OfTarget):
    """Whose report is written, and where."""

    path: NewFile


class JudgesOf(OfTarget):
    """Whose judges are compared."""

    others: Annotated[
        Sequence[Target],
        Field(max_length=1000, description="More studies or experiments, in the same table."),
    ] = ()


class JudgeTableOf(JudgesOf):
    """Whose judges are compared, and what decides which is best, in place of the study's keys."""

    measure: Annotated[
        MeasureName | None, Field(description="The measure that decides which setup is best.")
    ] = None
    positive: Annotated[
        Name | None, Field(description="The positive one of two labels, such as pass.")
    ] = None
    loss: Annotated[
        Name | None,
        Field(description="What wrong verdicts cost, which then decides: miss=5,false_alarm=1."),
    ] = None


class CompareSetups(JudgesOf):
    """Which two setups are compared, by their names in the judge table."""

    a: Annotated[Name | None, Field(description="By default the best.")] = None
    b: Annotated[Name | None, Field(description="The baseline.")] = None


class ReportTable(OfTarget):
    """A table of a report."""

    table: Annotated[Name, Field(description="One of `tables` of reports_show.")]


class Usage(OptionalTarget):
    """Whose cost is added up, and how."""

    by: Annotated[Sequence[UsageColumn] | None, Field(max_length=6)] = None


# --- runs ----------------------------------------------------------------------------------------


class PlanNext(OfTarget):
    """The quantity whose interval is to become narrower."""

    quantity: Annotated[
        Name | None, Field(description="A part of its name; else the most telling one.")
    ] = None
    half_width: Annotated[
        float | None, Field(gt=0, lt=1, description="How narrow it is to become.")
    ] = None


class ListAnswers(OfTarget):
    """Which answers of a study or an experiment are listed."""

    status: Status | None = None


class Plan(VerbRequest):
    """A study by its name, an experiment by its tag, or the text of a study file."""

    target: Target | None = None
    study: Annotated[str | None, Field(description="The text of a study file (YAML).")] = None
    overrides: Annotated[Knobs, Field(description="Knobs over those of the text.")] = {}
    series: Annotated[Name | None, Field(description="Draw scores and probes afresh.")] = None
    samples: Annotated[
        int | None, Field(ge=1, le=10_000, description="Replicates of each cell.")
    ] = None

    @model_validator(mode="after")
    def _check(self) -> "Plan":
        if (self.target is None) == (self.study is None):
            raise ValueError("give either target or study")
        if self.target is not None and self.overrides:
            raise ValueError("overrides change a study's text; a target has its design")
        return self


class Power(VerbRequest):
    """The size of an effect, and a study by its name or the text of its file."""

    effect: Annotated[float, Field(gt=0, le=1, description="On the scale from 0 to 1.")]
    target: Target | None = None
    study: Annotated[str | None, Field(description="The text of a study file (YAML).")] = None
    pilot: Annotated[
        Target | None, Field(description="A study whose samples show how much verdicts vary.")
    ] = None


class Calibrate(OfTarget):
    """A study whose size and dependence are simulated."""

    panels: Annotated[
        int | None,
        Field(ge=10, le=2000, description="By default as many as take about a minute."),
    ] = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class Start(Plan):
    """What to run, and how."""

    new_run: bool = False
    workflows: Annotated[Sequence[Workflow], Field(min_length=1, max_length=5)] = (
        "evidence",
        "rubric",
        "score",
        "swap",
        "probe",
    )
    rivals: Annotated[Sequence[Name], Field(max_length=50)] = ()
    budget: Budget = {}
    pause_after: Workflow | None = None
    only_failed: bool = False
    confirmed: Annotated[
        bool, Field(description="Pay for calls that are new because defaults changed.")
    ] = False


class RerunSample(VerbRequest):
    """A sample whose judge is asked again about the same item."""

    sample: Id


class StartEvidence(VerbRequest):
    """A window with experiments on it, or one of them."""

    window_id: Id | None = None
    tag: Tag | None = None
    limit: Annotated[int, Field(ge=1, le=1000, description="Articles of a search.")] = ARTICLES


class MakeQuickStudy(VerbRequest):
    """A study in one call: texts, a question, judges, and what varies."""

    texts: Annotated[
        Sequence[Annotated[str, StringConstraints(min_length=1)] | Mapping[str, Any]],
        Field(min_length=1, max_length=1000, description="Or {text, title?, truth?}."),
    ]
    question: Annotated[Name, Field(description="What is judged: politeness.")]
    judges: Annotated[Sequence[Name], Field(min_length=1, max_length=50)]
    vary: Annotated[dict[str, Sequence[Any]], Field(description="Levels by knob.")] = {}
    stages: Annotated[
        Sequence[Name],
        Field(max_length=26, description="`label: criterion`, lowest first; else judges write."),
    ] = ()
    samples: Annotated[int, Field(ge=1, le=1000)] = 3
    name: Annotated[str, StringConstraints(pattern=r"^[\w.-]+$", max_length=100)] | None = None
    budget: Budget = {}


class Resume(OfTarget):
    """What to continue, and how far."""

    budget: Budget = {}
    pause_after: Workflow | None = None
    series: Annotated[Name | None, Field(description="By default that of the seed.")] = None


class CallLimits(VerbRequest):
    """Limits on calls, in every process that works on a run."""

    rpm: Id | None = None
    tpm: Id | None = None
    concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None


class Retune(OfTarget):
    """What changes while runs are in progress."""

    budget: Budget = {}
    limits: CallLimits = CallLimits()


class Reparse(OfTarget):
    """Whose stored answers are read again."""

    write: Annotated[bool, Field(description="Change the records; else only compare.")] = False


class RunStatus(OptionalTarget):
    """Whose runs are shown."""

    limit: Annotated[int, Field(ge=1, le=1000, description="Experiments at most.")] = 20


class Wait(OfTarget):
    """What is waited for, and how long."""

    timeout: Annotated[float, Field(ge=0, le=50, description="Seconds.")] = 30


# --- suites --------------------------------------------------------------------------------------


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


# --- failures ------------------------------------------------------------------------------------


class StartAnalysis(VerbRequest):
    """Whose failures are analyzed, and by which judges."""

    run: Annotated[Name, Field(description="A suite run, or its page's URL.")]
    judges: Annotated[
        Sequence[Name], Field(max_length=20, description="Left out: simulated, for a sim: model.")
    ] = ()
    samples: Annotated[int, Field(ge=1, le=100, description="Verdicts per judge.")] = 3
    overrides: Annotated[Knobs, Field(description="Knobs of the judging.")] = {}
    budget: Budget = {}
    allow_self: bool = False


class OfAnalysis(VerbRequest):
    """An analysis."""

    analysis: Id


class ListAnalyses(VerbRequest):
    """Which analyses are listed."""

    run: Id | None = None


class ListFailureReports(VerbRequest):
    """Which reports on failures are listed."""

    model: Name | None = None


class ShowFailureReport(VerbRequest):
    """A report on failures, or a part of it."""

    path: Annotated[Name, Field(description="As failures_list_reports has it.")]
    eval: Annotated[Name | None, Field(description="Only the section on this eval.")] = None


class RecordAction(VerbRequest):
    """What was done about a failure."""

    path: Annotated[Name, Field(description="The report.")]
    action: Annotated[
        str,
        Field(min_length=1, max_length=1000, description="The fix and the eval, category/name."),
    ]
