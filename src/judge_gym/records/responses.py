"""The response types of all verbs: what Lab and the client return, as plain dictionaries."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal, NotRequired, TypeVar, cast

from pydantic import JsonValue
from typing_extensions import TypedDict

from judge_gym.records.outcomes import StepStatus

Counts = dict[str, int]
"""Numbers by name: a workflow, a status, a kind of record."""
UNTRUSTED = "written by others"
"""Marks what comes from evidence, models, providers or raters; agents get it set apart as data."""
UntrustedText = Annotated[str, UNTRUSTED]
AnyRow = Annotated[dict[str, Any], UNTRUSTED]
"""A row of any table, which may hold what others wrote."""


Record = TypeVar("Record")


def as_record(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """Converts values, such as a row of a query, to a response, whose keys they must have."""
    required, optional = (getattr(kind, f"__{name}_keys__") for name in ("required", "optional"))
    if not required <= values.keys() <= required | optional:
        wrong = required ^ (values.keys() - optional)
        raise TypeError(f"{kind.__name__} with other keys: {', '.join(sorted(wrong))}")
    return cast(Record, values)


def as_records(kind: type[Record], rows: Iterable[Mapping[str, Any]]) -> list[Record]:
    """Converts rows to responses of a kind, whose keys they must have."""
    return [as_record(kind, row) for row in rows]


# --- evidence ------------------------------------------------------------------------------------


class Collection(TypedDict):
    """One search or load that filled a window."""

    at: datetime
    source: str
    added: int
    dropped: Counts
    error: UntrustedText


class WindowRow(TypedDict):
    """A window with its number of items and how it was filled."""

    window: int
    country: str
    start: date | None
    end: date | None
    search: str
    items: int
    dropped: int
    collections: list[Collection]


class ItemSummary(TypedDict):
    """An item without its text."""

    id: int
    title: UntrustedText
    url: UntrustedText
    date: str
    source: UntrustedText
    cluster: UntrustedText
    words: int
    truth: Annotated[int | str | None, UNTRUSTED]


class WindowItem(ItemSummary):
    """An item of a window."""

    dropped: bool


class ViewText(TypedDict):
    """A text that an editor made from an item."""

    editor: str
    maker: str
    status: str
    checks: dict[str, Any] | None
    call_id: int | None
    text: UntrustedText | None


class ItemDetail(ItemSummary):
    """An item with its text and all its views."""

    hash: str
    metadata: Annotated[dict[str, Any], UNTRUSTED]
    text: UntrustedText
    responses: Annotated[list[str], UNTRUSTED]
    views: list[ViewText]


class Collected(TypedDict):
    """What a search added to a window."""

    window_id: int
    added: int
    held: int
    left_out: Counts
    notes: Annotated[list[str], UNTRUSTED]


class FrozenPool(TypedDict):
    """A pool that was frozen."""

    name: str
    items: int
    hash: str


class PoolRow(FrozenPool):
    """A frozen pool in a list."""

    window_id: int | None
    frozen: datetime


class ChangedTruth(ItemSummary):
    """An item whose known answer differs between two pools."""

    was: int | str | None


class PoolDifference(TypedDict):
    """How two frozen pools differ."""

    same: bool
    shared: int
    added: list[ItemSummary]
    removed: list[ItemSummary]
    reordered: bool
    truths_changed: list[ChangedTruth]


class LabelRow(TypedDict):
    """The stage that a person gave an item."""

    evidence: int
    title: UntrustedText
    study: str
    """The only study that it counts in; empty for any."""
    concept: str
    rater: UntrustedText
    stage: UntrustedText


class QueueRater(TypedDict):
    """How far a rater of a queue is."""

    rater: UntrustedText
    items: int
    labelled: int


class LabelQueueRow(TypedDict):
    """Items that people are asked to label, and how far each of them is."""

    queue: int
    study: str
    question: str
    draw: dict[str, Any]
    """How items were drawn: by, items, core, overlap, hard, seed."""
    created: datetime
    raters: list[QueueRater]


class SplitPart(TypedDict):
    """One part of a split. Its `known` items have labels or a known answer."""

    part: str
    items: int
    clusters: int
    known: int


class LabelSplit(TypedDict):
    """The split of a study's items: choices are made on dev, estimates read test."""

    study: str
    seed: int
    shares: dict[str, float]
    parts: list[SplitPart]
    uses: int
    """How many different estimates were read from test."""


class LabelStatus(TypedDict):
    """How many of a study's items are labelled, and by whom."""

    study: str
    items: int
    labelled: int
    known_answers: int
    raters: Annotated[Counts, UNTRUSTED]
    queues: list[LabelQueueRow]
    split: LabelSplit | None


# --- experiments ---------------------------------------------------------------------------------


class FailureReason(TypedDict):
    """Why some calls of a stage failed."""

    stage: str
    reason: UntrustedText
    count: int


class RunCounts(TypedDict):
    """The progress of a run."""

    run: int
    series: str
    status: str
    targets: Counts
    done: Counts
    not_needed: Counts
    failed: Counts
    verdicts: Counts
    message: UntrustedText
    actor: UntrustedText
    """Who started, paused or cancelled it last; empty where no person did."""


class RunSummary(RunCounts):
    """The progress of a run, and why calls failed."""

    failures: list[FailureReason]


class ExperimentSummary(TypedDict):
    """An experiment, the progress of its runs and why calls failed."""

    tag: str
    study: str
    protocol: str
    task_type: str
    concept: str
    country: str
    window_id: int | None
    """The window of its evidence, which a search makes anew for each concept."""
    dose: float | None
    truth: dict[str, Any] | None
    digest: str | None
    """Null for a draft, which has no evidence yet."""
    judge: str
    design: dict[str, Any]
    status: str
    cleaned_up: datetime | None
    """When its runs were deleted; null if it has runs again."""
    runs: list[RunSummary]


class StudyRow(TypedDict):
    """A study in a list."""

    study: str
    experiments: int
    file: bool


class DeclarationRow(TypedDict):
    """What a study declares about its analysis, and how many answers it had at that time."""

    what: str
    declared: str
    answers_before: int | None
    answers: int


class StudyFile(TypedDict):
    """A study's file as it was last run, its budget, and what it declares about its analysis."""

    study: str
    text: UntrustedText
    budget: dict[str, Any]
    declarations: list[DeclarationRow]


class StudyTemplate(TypedDict):
    """A commented study file to start from, and the JSON Schema of its keys."""

    text: str
    schema: dict[str, Any]


class RubricRow(TypedDict):
    """A rubric with the critic's scores."""

    id: int
    key: str
    status: str
    kind: str
    author: str
    concept: str
    country: str
    scale: int
    draw: int
    asks: int
    stages: Annotated[list[list[str]], UNTRUSTED]
    reasoning: UntrustedText
    call_id: int | None
    is_swap: bool
    critic: str | None
    observability: float | None
    discriminability: float | None


class ProbeRow(TypedDict):
    """The probability that experts agree with a sample."""

    sample: int
    evidence: int
    replicate: int
    is_swap: bool
    stages: str
    probe: float | None
    probe_status: str | None
    probe_label: UntrustedText | None
    """The names of the stages that the probe asked about, in the order of the display."""
    probe_model: str | None
    """The model that was asked."""
    probe_call_id: int | None


class AnswerRow(TypedDict):
    """What a judge answered, word for word, and how it was read."""

    sample: int
    tag: str
    judge: str
    evidence: int
    evidence_title: UntrustedText
    replicate: int
    status: str
    stages: str
    display: str
    call_id: int
    reported_model: str | None
    finish: str | None
    text: UntrustedText | None
    error: UntrustedText | None


class SampleRow(ProbeRow):
    """A verdict of a judge on an item, with its context."""

    tag: str
    study: str
    protocol: str
    task_type: str
    concept: str
    country: str
    pool: str
    dose: float | None
    run: int
    series: str
    evidence_title: UntrustedText
    cluster: UntrustedText
    """What makes items dependent; empty where nothing does."""
    pair: bool
    truth: Annotated[int | str | None, UNTRUSTED]
    flipped: bool
    status: str
    n_stages: int
    display: str
    verdict_line: UntrustedText | None
    """The words of the answer by which its verdict was read."""
    rubric: int
    rubric_kind: str
    rubric_author: str
    rubric_draw: int
    observability: float | None
    discriminability: float | None
    call_id: int | None
    reported_model: str | None
    usd: float | None
    seconds: float | None
    answer: str | None
    """A hash of the answer's text, which is the same for the same text."""


class SetupRow(TypedDict):
    """A setup of a study: a judge as it would be used, by the name that the judge table has."""

    setup: UntrustedText
    judge: str
    knobs: AnyRow
    """The level of each knob that varies between setups."""
    tags: list[str]


class ItemCell(TypedDict):
    """What a setup said about an item."""

    setup: UntrustedText
    verdict: str
    """The verdict that its repeats gave most often: `2`, or `2 3`; empty if none was scored."""
    verdicts: dict[str, int]
    """How often each verdict was given; an answer without one counts under its status."""
    mean: float | None
    """The mean stage of its scored verdicts on an ordered scale, a verdict of several stages being
    in their middle; null on others and without one."""


class JudgedItem(TypedDict):
    """An item under a task, with the verdicts of the setups and people's labels."""

    task: UntrustedText
    evidence: int
    title: UntrustedText
    truth: int | None
    ordinal: bool
    n_stages: int
    stages: Annotated[list[str], UNTRUSTED]
    """The names of the stages; empty where each judge writes its own rubric."""
    disagreement: float | None
    """The share of pairs of verdicts of different setups that differ; of repeats if one setup
    judged it. Null with fewer than two verdicts."""
    people: Annotated[dict[str, int], UNTRUSTED]
    """How many people gave each label; empty without one."""
    people_mean: float | None
    """The mean stage that people gave on an ordered scale; null on others and without a label."""
    majority: int | None
    """The stage that most people gave; null without a label and where several are as frequent."""
    from_people: float | None
    """How far the verdicts are from people's labels: in stages on ordinal scales, else as the share
    of unequal ones; the mean over setups. Null without a verdict or a label."""
    cells: list[ItemCell]


class ItemKey(TypedDict):
    """An item of a study."""

    task: UntrustedText
    evidence: int


class RaterLabel(TypedDict):
    """The label that a person gave to an item."""

    rater: UntrustedText
    label: UntrustedText


class ItemChoices(TypedDict):
    """The words by which items of a study can be chosen."""

    verdicts: Annotated[list[str], UNTRUSTED]
    labels: Annotated[list[str], UNTRUSTED]
    truths: Annotated[list[str], UNTRUSTED]


class CrossedLabels(TypedDict):
    """The items of a setup, counted by its usual verdict and by what most people said."""

    setup: UntrustedText
    verdicts: Annotated[list[str], UNTRUSTED]
    """The labels of the scale, then further verdicts and statuses that occur."""
    labels: Annotated[list[str], UNTRUSTED]
    """The labels of the scale; `divided` where several were given by equally many people."""
    counts: list[list[int]]
    """A row per verdict, a column per label."""
    items: int


class ItemAnswer(TypedDict):
    """A verdict on an item with the words of the judge."""

    tag: str
    sample: int
    series: str
    replicate: int
    flipped: bool
    status: str
    stages: str
    display: str
    rubric: int
    rubric_author: str
    rubric_stages: Annotated[list[list[str]], UNTRUSTED]
    usd: float | None
    error: UntrustedText | None
    text: UntrustedText | None


class SetupAnswers(TypedDict):
    """The verdicts of a setup on an item."""

    setup: UntrustedText
    judge: str
    tags: list[str]
    samples: list[ItemAnswer]
    reruns: list[ItemAnswer]
    """Fresh verdicts that users asked for; no result of the study counts them."""


class JudgedItemDetail(JudgedItem):
    """An item with the answers of the setups, and its neighbours in the order of the list."""

    position: int | None
    """Its number in the list; null if the filters leave it out."""
    found: int
    """The length of the list."""
    before: ItemKey | None
    after: ItemKey | None
    labels: list[RaterLabel]
    answers: list[SetupAnswers]


class UsageRow(TypedDict):
    """What was paid, in one sum."""

    study: NotRequired[str]
    tag: NotRequired[str]
    stage: NotRequired[str]
    model: NotRequired[str]
    day: NotRequired[str]
    provider: NotRequired[str]
    imported: bool
    attempts: int
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    usd: float | None
    seconds: float


class DigestTable(TypedDict):
    """The first rows of a report's table, in its main columns."""

    table: str
    columns: list[str]
    rows: Annotated[list[list[JsonValue]], UNTRUSTED]
    of: int


class ReportChoice(TypedDict):
    """The setup that a report recommends, and its quality by the measure that decided."""

    setup: Annotated[str | None, UNTRUSTED]
    measure: str
    kind: str | None
    quality: AnyRow | None


class ReportDigest(TypedDict):
    """A report in short. `tables` are its page's tables with their numbers of rows."""

    title: str
    sentence: UntrustedText
    simulated: str
    choice: ReportChoice | None
    facts: dict[str, str]
    judges: DigestTable | None
    """The setups with their differences from the one with the best estimate, in numbers."""
    effects: DigestTable | None
    warnings: list[str]
    tables: Counts
    further_tables: list[str]
    """The names of tables that are computed when they are asked for."""


class WrittenFile(TypedDict):
    """A file that was written below the lab's folder."""

    path: str
    bytes: int
    rows: int


# --- runs ----------------------------------------------------------------------------------------


class PlannedExperiment(TypedDict):
    """The calls of an experiment."""

    tag: str
    to_pay: int
    in_ledger: int
    shared: int


class PlannedStage(TypedDict):
    """The calls of a stage."""

    calls: int
    in_ledger: int
    to_pay: int
    shared: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    seconds: float


class PlannedEndpoint(TypedDict):
    """The calls to pay at one endpoint, which is asked beside the other endpoints."""

    endpoint: str
    models: list[str]
    to_pay: int
    seconds: float
    basis: str
    """What the seconds are estimated from: `measured` (earlier calls), `limits` (declared rates),
    or `typical` (of models in general)."""


class PlanSummary(TypedDict):
    """What a study would ask and cost at most."""

    study: str
    experiments: list[PlannedExperiment]
    stages: dict[str, PlannedStage]
    endpoints: list[PlannedEndpoint]
    duplicates: dict[str, Any]
    skipped_swaps: list[str]
    budget: dict[str, Any]
    warnings: list[str]
    uncallable: list[str]
    """Why it cannot be started: each model that cannot be called, and what is missing."""


class PlannedSuiteRun(TypedDict):
    """What would be asked of a model under a condition."""

    run: int | None
    """The run that is continued; null if there is none yet."""
    model: str
    condition: str
    series: str
    targets: int
    """Answers that are named: evals times replicates."""
    missing: int
    """Of these, answers without a result."""
    in_ledger: int
    """Of the missing ones, answers in the ledger, which are graded without a call."""
    shared: int
    """Of the missing ones, answers to a call that another run of this plan makes."""
    to_pay: int


class SuitePlan(TypedDict):
    """What a run of a suite would ask and cost at most."""

    suite: str
    version: str
    runs: list[PlannedSuiteRun]
    calls: PlannedStage
    endpoints: list[PlannedEndpoint]
    budget: dict[str, Any]
    uncallable: list[str]
    """Why it cannot be started, such as a key that is not set."""


class QuickStudy(TypedDict):
    """A study that was made from texts and queued: the calls that it pays for, and their cost."""

    study: str
    started: list[str]
    calls: int
    usd: float | None
    warnings: list[str]


class RunState(RunCounts):
    """The state of a run in `status`."""

    tag: str
    in_progress: bool


class LabStatus(TypedDict):
    """The state of the lab and of its runs."""

    version: str
    build: str
    """The commit, where it is known."""
    database: str
    profile: str
    """What the database is marked as."""
    active: bool
    experiments: int
    shown: int
    drafts: list[str]
    """Experiments that wait for their evidence."""
    in_progress: bool
    runs: list[RunState]
    usd: NotRequired[float]


WorkerState = Literal["running", "not needed", "starting", "missing"]


class Readiness(TypedDict):
    """Whether a server can serve, and why not."""

    ready: bool
    reasons: list[str]
    """Why not; empty where it can."""
    worker: WorkerState


class LogRow(TypedDict):
    """An event of a run, or a failed attempt at a call."""

    type: str
    id: int
    at: str
    run_id: int | None
    tag: str | None
    kind: NotRequired[str]
    message: NotRequired[UntrustedText]
    detail: NotRequired[Annotated[dict[str, Any], UNTRUSTED]]
    actor: NotRequired[UntrustedText]
    stage: NotRequired[str]
    model: NotRequired[str]
    call_id: NotRequired[int]
    error: NotRequired[UntrustedText | None]


class Retuned(TypedDict):
    """The budget and the limits after a change."""

    budget: dict[str, Any]
    limits: Counts


class ReparseChange(TypedDict):
    """How many records of a kind read differently."""

    record: str
    before: str
    after: str
    count: int


class ReparseExample(TypedDict):
    """One record that reads differently."""

    record: str
    tag: str
    call_id: int | None
    before: str
    after: str
    was: UntrustedText
    reads: UntrustedText


class Reparsed(TypedDict):
    """What reading stored answers again changes."""

    written: bool
    read: Counts
    changes: list[ReparseChange]
    stages_changed: int
    probes_dropped: int
    examples: list[ReparseExample]
    recorded: Counts
    """Of verdicts that others recorded, how many we read the same, as another, or as none."""


# --- admin ---------------------------------------------------------------------------------------


class TableInfo(TypedDict):
    """A readable table."""

    table: str
    rows: int
    columns: list[dict[str, Any]]


class QueryResult(TypedDict):
    """The result of one SELECT."""

    columns: list[str]
    rows: Annotated[list[list[JsonValue]], UNTRUSTED]
    more: bool


class Variable(TypedDict):
    """A variable of the environment that the lab reads."""

    name: str
    set: bool
    value: str | None
    """Of the profile alone, which holds no secret."""
    purpose: str


class ModelInfo(TypedDict):
    """What is known of a model."""

    id: str
    kind: str
    provider: str
    name: str
    family: str
    context: int | None
    dated: bool
    version: str | None
    structured: str
    deadline: float
    endpoint: str | None
    takes_temperature: bool
    takes_seed: bool
    retires: date | None
    input_usd: float | None
    cached_usd: float | None
    output_usd: float | None
    limits: dict[str, Any]


class SimulatedModel(TypedDict):
    """A simulated judge or coder, and in what it differs from the default one."""

    id: str
    kind: str
    parameters: dict[str, Any]


class ModelList(TypedDict):
    """Providers with what they need, and models."""

    providers: list[dict[str, Any]]
    models: list[ModelInfo]
    simulated: list[SimulatedModel]


class Axes(TypedDict):
    """Every knob, and the JSON Schema of a design."""

    knobs: list[dict[str, Any]]
    schema: dict[str, Any]


class ChatMessage(TypedDict):
    """A message of a call."""

    role: str
    content: UntrustedText


class CallTranscript(TypedDict):
    """What was asked in a call, and every attempt at an answer."""

    call: int
    messages: list[ChatMessage]
    attempts: Annotated[list[dict[str, Any]], UNTRUSTED]


# --- suites --------------------------------------------------------------------------------------


class SuiteRunRow(TypedDict):
    """A suite run with its score."""

    run: int
    key: str
    suite: str
    version: str
    model: str
    condition: str
    series: str
    replicates: int
    status: str
    label: str
    """The status for readers, which names the number of evals of a run over a part of its suite."""
    whole: bool
    suite_evals: int
    targets: int
    counts: Counts
    inconclusive: Counts
    score: float | None
    low: float | None
    high: float | None
    categories: dict[str, list[int]]
    cost: float | None
    seconds: float | None
    isolation: list[str]
    in_process: bool
    created: datetime


class ScoreRow(TypedDict):
    """The score of a run at the time of its last result, with its 95 % interval."""

    run: int
    model: str
    condition: str
    series: str
    at: datetime
    score: float
    low: float
    high: float
    passed: int
    failed: int


class EvalRow(TypedDict):
    """A result of a suite run."""

    eval: int
    run: int
    path: str
    category: str
    name: str
    replicate: int
    outcome: str
    why: str | None
    step: str | None
    reason: UntrustedText | None
    call_id: int | None
    seconds: float
    usd: float | None
    isolation: str
    at: datetime


class SuiteRunDetail(SuiteRunRow):
    """A suite run with all its results."""

    evals: list[EvalRow]


class StepRow(TypedDict):
    """A step of an eval."""

    name: str
    status: StepStatus
    seconds: float
    reason: UntrustedText
    output: UntrustedText
    tests_passed: int | None
    tests_collected: int | None


class EvalDetail(EvalRow):
    """A result with its task, steps, files, reference answer and grader."""

    finish: str | None
    suite: str
    version: str
    model: str
    condition: str
    task: UntrustedText
    steps: list[StepRow]
    files: Annotated[dict[str, str], UNTRUSTED]
    answer: Annotated[dict[str, str], UNTRUSTED]
    grader: Annotated[dict[str, str], UNTRUSTED]
    gaps: UntrustedText


class LeaderboardRow(TypedDict):
    """The last complete runs of a model under a condition."""

    suite: str
    version: str
    condition: str
    model: str
    score: float | None
    low: float | None
    high: float | None
    sd: float | None
    runs: int
    evals: int
    passed: int
    failed: int
    inconclusive: int
    unscored: int
    usd: float | None
    seconds: float | None
    in_process: bool


class DueRow(TypedDict):
    """When a model is due for another run under a condition."""

    model: str
    condition: str
    due: bool
    due_from: datetime | None
    days: float
    usd: float | None
    usd_per_month: float | None
    estimated: bool
    retires: date | None


# --- failures ------------------------------------------------------------------------------------


class AnalysisRow(TypedDict):
    """An analysis of a suite run's failures that was queued."""

    analysis: int
    target: str
    run: int
    model: str
    suite: str
    status: str
    message: UntrustedText
    study: str
    report: str | None
    created: datetime
    ended: datetime | None


class ProposedFix(TypedDict):
    """A change of the benchmark that would resolve a failure."""

    file: str
    change: str


# `class` is a keyword of Python, so the keys are given as a mapping.
FindingRow = TypedDict(
    "FindingRow",
    {
        "eval": str,
        "step": str,
        "class": str,
        "share": float | None,
        "verdicts": Counts,
        "judges": dict[str, str],
        "differ": bool,
        "conflict": float | None,
        "supported": bool | None,
        "fix": Annotated[ProposedFix | None, UNTRUSTED],
    },
)
"""A failure, classified."""


class RecordedFix(TypedDict):
    """A fix that an earlier report records, and what has become of it."""

    action: UntrustedText
    report: str
    date: UntrustedText
    benchmark_changed: bool
    now: str


class AnalysisDetail(AnalysisRow):
    """An analysis with its findings and its report."""

    counts: Counts
    verdicts: Counts
    findings: list[FindingRow]
    recorded_fixes: list[RecordedFix]
    notes: list[str]
    bytes: int | None
    ask_user: str | None


class FailureReportRow(TypedDict):
    """A report on the failures of a suite run, in the lab's folder."""

    path: str
    model: UntrustedText
    run: UntrustedText
    date: UntrustedText
    version: UntrustedText
    pass_rate: UntrustedText
    failures: int
    classes: Annotated[Counts, UNTRUSTED]
    actions: Annotated[list[str], UNTRUSTED]
    bytes: int


class FailureReport(TypedDict):
    """A report on the failures of a suite run, or its section on one."""

    path: str
    run: UntrustedText
    date: UntrustedText
    mismatches: Annotated[list[str], UNTRUSTED]
    actions: Annotated[list[str], UNTRUSTED]
    text: UntrustedText
