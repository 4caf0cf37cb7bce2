"""The request models of all verbs: what Lab, the HTTP API, agents and the client are given."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
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
    dict[str, int | float | None],
    Field(description="usd, calls, tokens, minutes, or run.usd ... of each run."),
]
Knobs = Annotated[dict[str, Any], Field(description="Knobs by path.")]
# A part of an eval's path, which is category/name.
Part = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^/\x00]+$")]
Word = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
Short = Annotated[str, StringConstraints(max_length=20_000)]
Long = Annotated[str, StringConstraints(max_length=4_000_000)]
Files = Annotated[dict[Name, Long], Field(max_length=500)]


class VerbRequest(BaseModel):
    """The arguments of a verb; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoArguments(VerbRequest):
    """A verb without arguments."""


class OfId(VerbRequest):
    """Something that has a number."""

    id: Id


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


class CreateWindow(VerbRequest):
    """A window to create."""

    start_date: date
    end_date: date
    country: Name


class OfWindow(VerbRequest):
    """A window."""

    window_id: Id


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


class LoadItems(OfWindow):
    """Items for a window."""

    items: Annotated[Sequence[Item], Field(min_length=1, max_length=10_000)]


class LoadBenchmark(OfWindow):
    """A benchmark's items with their known answers, or JudgeBench's published pairs."""

    concept: Name = "the better response"
    items: Annotated[Sequence[Item], Field(max_length=10_000)] = ()
    rubric: Mapping[str, Any] = {}
    judgebench: Annotated[str | None, Field(description="The text of the published file.")] = None


class Collect(CreateWindow):
    """A search for texts on the web; the server's own network is not searched."""

    origin: Annotated[Name, Field(description="The name of a search, such as gdelt.")]
    query: Annotated[str, Field(max_length=500, description="What to search for.")] = ""
    addresses: Annotated[
        Sequence[Name], Field(max_length=100, description="Where an origin such as feeds looks.")
    ] = ()
    limit: Annotated[int, Field(ge=1, le=1000)] = 100

    @model_validator(mode="after")
    def _check(self) -> "Collect":
        if self.start_date > self.end_date:
            raise ValueError("a window ends after it starts")
        return self


class DropItems(OfWindow):
    """Items to remove from a window, or to restore."""

    ids: Annotated[Sequence[Id], Field(min_length=1, max_length=10_000)]
    undo: bool = False


class FreezePool(VerbRequest):
    """A pool to freeze."""

    name: Name
    window_id: Id | None = None
    tag: Annotated[Name | None, Field(description="Freeze its evidence.")] = None


class DiffPools(VerbRequest):
    """Two frozen pools."""

    before: Name
    after: Name


class Label(VerbRequest):
    """The stage that a person gave an item."""

    item: Annotated[Name, Field(description="Its number, address, hash, published id or title.")]
    rater: Name
    stage: Name


class AddLabels(VerbRequest):
    """Labels to add, all or none."""

    labels: Annotated[Sequence[Label], Field(min_length=1, max_length=100_000)]
    target: Annotated[Target | None, Field(description="Whose evidence is meant.")] = None
    concept: Annotated[str, Field(description="What the raters judged.")] = ""
    replace: Annotated[bool, Field(description="Accept a rater's changed stage.")] = False


class OfLabels(VerbRequest):
    """The study whose labels are meant."""

    study: Target


class SplitLabels(OfLabels):
    """How a study's items are split."""

    test: Annotated[float, Field(gt=0, lt=1, description="The share of clusters in test.")] = 0.5
    seed: Annotated[int, Field(description="Decides which clusters.")] = 0
    replace: Annotated[bool, Field(description="Draw an existing split anew.")] = False


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


# --- admin ---------------------------------------------------------------------------------------


class OfTable(VerbRequest):
    """A table."""

    table: Annotated[Name, Field(description="One of `tables`.")]
    order: Literal["asc", "desc"] = "asc"


class Query(VerbRequest):
    """A query in SQL."""

    sql: Annotated[
        str,
        Field(
            min_length=1,
            max_length=10_000,
            description="One SELECT, of SQLite or Postgres as `status` says.",
        ),
    ]
    limit: Annotated[int, Field(ge=1, le=1000, description="Rows at most.")] = 100


class ListModels(VerbRequest):
    """Which models are listed."""

    provider: Annotated[Name | None, Field(description="All its models with a price.")] = None


class OfModel(VerbRequest):
    """A model."""

    id: Annotated[Name, Field(description="Its id, or its bare name.")]


# --- suites --------------------------------------------------------------------------------------


class OfSuiteVersion(VerbRequest):
    """A version of a suite."""

    suite: Name
    version: Name


class TaskFiles(VerbRequest):
    """The files behind an eval."""

    category: Part
    name: Part
    task: Long
    answer: Files = {}
    grader: Files = {}
    gaps: Long = ""


class SaveTasks(OfSuiteVersion):
    """Evals of a version of a suite; several requests may bring them."""

    evals: Annotated[Sequence[TaskFiles], Field(min_length=1, max_length=1000)]


class ConditionSettings(VerbRequest):
    """What a model was given besides the task."""

    guidelines: bool = True
    without: Annotated[Sequence[Name], Field(max_length=500)] = ()
    web_search: bool = False
    extra: Long = ""


class SaveRun(OfSuiteVersion):
    """A run of a suite by a model, under a condition, in a series of draws."""

    model: Name
    evals: Annotated[Sequence[Name], Field(min_length=1, max_length=10_000, description="Paths.")]
    condition: Annotated[Name, Field(description="Its name.")] = "default"
    settings: ConditionSettings = ConditionSettings()
    series: Name = "0"
    replicates: Annotated[int, Field(ge=1, le=1000)] = 1
    created: AwareDatetime | None = None


class SelectEvals(VerbRequest):
    """Which evals of a suite are asked for, how often, and within which budget."""

    evals: Annotated[
        Sequence[Name],
        Field(max_length=10_000, description="Parts of paths, or globs; all if empty."),
    ] = ()
    filter: Annotated[
        Name | None, Field(description="A regular expression that is searched in paths.")
    ] = None
    category: Annotated[Sequence[Name], Field(max_length=1000)] = ()
    failed_of: Annotated[
        Id | None, Field(description="A run: only evals that did not pass there.")
    ] = None
    limit: Annotated[int | None, Field(ge=1, description="Only the first so many evals.")] = None
    replicates: Annotated[
        int | None, Field(ge=1, le=1000, description="Answers to each task; by default 1.")
    ] = None
    series: Annotated[Name, Field(description="Another name asks again for everything.")] = "0"
    budget: Budget = {}


class StartSuite(SelectEvals):
    """Which suite to run with which model, and how."""

    suite: Annotated[Name, Field(description="The name of a suite of the lab, such as python.")]
    model: Name
    condition: Annotated[Name, Field(description="Its name.")] = "default"
    guidelines: Annotated[
        Long | None, Field(description="Shown instead of the suite's, as a condition.")
    ] = None


class PlanSuite(SelectEvals):
    """What would be asked of which models."""

    suite: Annotated[Name, Field(description="The name of a suite of the lab, such as python.")]
    models: Annotated[Sequence[Name], Field(min_length=1, max_length=200)]
    conditions: Annotated[
        Sequence[Name], Field(min_length=1, max_length=200, description="Their names.")
    ] = ("default",)
    ablate: Annotated[
        bool,
        Field(description="Plan the ablation of each condition's guidelines; 3 replicates then."),
    ] = False
    sections: Annotated[
        Sequence[Name], Field(max_length=500, description="With ablate: only these sections.")
    ] = ()


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


class Step(VerbRequest):
    """One step of an eval."""

    name: Part
    status: StepStatus
    seconds: Amount
    reason: Short = ""
    output: Long = ""
    tests_passed: Count | None = None
    tests_collected: Count | None = None


class SaveEval(VerbRequest):
    """A result of a run, with its steps and the files that the model wrote."""

    run: Id
    category: Part
    name: Part
    outcome: Annotated[
        OutcomePassed | OutcomeFailed | OutcomeInconclusive, Field(discriminator="kind")
    ]
    at: Annotated[AwareDatetime, Field(description="When it was made; stored once per time.")]
    replicate: Count = 0
    steps: Annotated[Sequence[Step], Field(max_length=100)] = ()
    files: Files = {}
    seconds: Annotated[Amount, Field(description="Of the generation.")] = 0.0
    usd: Amount | None = None
    isolation: Word = ""


class OptionalSuite(VerbRequest):
    """A suite, or all."""

    suite: Name | None = None


class ListRuns(OptionalSuite):
    """Which runs are listed."""

    model: Name | None = None


class OfRun(VerbRequest):
    """A suite run."""

    run: Id


class OfEval(VerbRequest):
    """A result of a suite run."""

    eval: Id


class History(OfSuiteVersion):
    """Whose scores over time, and on which category of evals."""

    model: Name | None = None
    condition: Name | None = None
    category: Name | None = None


class Due(VerbRequest):
    """For which suite and models the schedule is shown."""

    suite: Annotated[Name, Field(description="Its name.")] = "python"
    models: Annotated[
        Sequence[Name], Field(max_length=200, description="Ids; else all known.")
    ] = ()
    condition: Annotated[Name, Field(description="Its name.")] = "default"


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
