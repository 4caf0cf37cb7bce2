"""The only package that uses SQL: the ledger of calls, the records, and queries about them."""

from collections.abc import Callable

from judge_gym.records import SuiteResult, SuiteRun
from judge_gym.store.analyses import Analyses, AnalysisRecord
from judge_gym.store.database import Database, open_database
from judge_gym.store.events import Event, Events, Kind, LogCursor, Logs
from judge_gym.store.evidence import EvidenceRecords
from judge_gym.store.experiments import Experiments, Page, Studies
from judge_gym.store.identity import Identity
from judge_gym.store.in_flight import Claims, InFlight
from judge_gym.store.items import Items
from judge_gym.store.labels import LabelQueues, Labels
from judge_gym.store.leases import Leases
from judge_gym.store.ledger import Answer, Attempt, Ledger, Payer
from judge_gym.store.ledger_export import Exported, export_ledger
from judge_gym.store.ledger_import import Imported, import_ledger
from judge_gym.store.locks import SessionLock
from judge_gym.store.metrics import Endpoint, LabMetrics, Metrics
from judge_gym.store.progress import NoQueue, Progress, ProgressQueries, QueueView
from judge_gym.store.recordings import Place, RecordedVerdict, RecordedVerdicts
from judge_gym.store.rubrics import Rubrics
from judge_gym.store.runs import Run, Runs, Targets
from judge_gym.store.samples import Samples, Selection, Span
from judge_gym.store.splits import Split, Splits
from judge_gym.store.sql import ReadOnlySql, Rows
from judge_gym.store.study_results import StudyResults
from judge_gym.store.suites import Suites
from judge_gym.store.tokens import SCOPES, Scope, Token, Tokens
from judge_gym.store.unused_file import discard_unused
from judge_gym.store.usage import USAGE_BY, USAGE_COLUMNS, Usage, UsageTotals
from judge_gym.store.verdicts import CompletedRecords, Verdicts

__all__ = [
    "SCOPES",
    "USAGE_BY",
    "USAGE_COLUMNS",
    "AnalysisRecord",
    "Answer",
    "Attempt",
    "Claims",
    "Database",
    "Endpoint",
    "Event",
    "Exported",
    "Imported",
    "Kind",
    "LabMetrics",
    "Leases",
    "Ledger",
    "LogCursor",
    "Page",
    "Payer",
    "Place",
    "Progress",
    "RecordedVerdict",
    "RecordedVerdicts",
    "Rows",
    "Run",
    "Scope",
    "Selection",
    "SessionLock",
    "Span",
    "Split",
    "Store",
    "StudyResults",
    "SuiteResult",
    "SuiteRun",
    "Targets",
    "Token",
    "Usage",
    "export_ledger",
    "import_ledger",
]


class Store:
    """A database, with one part for each kind of record."""

    def __init__(
        self, database: Database, queue: Callable[[Database], QueueView] = NoQueue
    ) -> None:
        self.database = database
        self.identity = Identity(database)
        self.ledger = Ledger(database)
        self.evidence = EvidenceRecords(database, self.ledger)
        self.rubrics = Rubrics(database)
        self.studies = Studies(database, self.ledger)
        self.experiments = Experiments(database, self.evidence, self.rubrics)
        self.runs = Runs(database, self.experiments, self.rubrics)
        self.verdicts = Verdicts(database)
        self.recorded = RecordedVerdicts(database)
        self.samples = Samples(database)
        self.items = Items(database)
        self.completed = CompletedRecords(database, self.runs)
        self.progress = ProgressQueries(database, queue(database))
        self.events = Events(database)
        self.logs = Logs(database)
        self.usage = Usage(database)
        self.in_flight = InFlight(database)
        self.usage_totals = UsageTotals(database)
        self.labels = Labels(database)
        self.label_queues = LabelQueues(database)
        self.splits = Splits(database)
        self.study_results = StudyResults(database)
        self.suites = Suites(database, self.ledger)
        self.analyses = Analyses(database)
        self.tokens = Tokens(database)
        self.metrics = Metrics(database, self.progress, self.logs)
        self.sql = ReadOnlySql(database)

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        create: bool = True,
        queue: Callable[[Database], QueueView] = NoQueue,
    ) -> "Store":
        """Opens the store of a URL, of `JUDGE_GYM_DATABASE_URL`, or of the working folder.

        Args:
            url: of the database.
            create: create the database if there is none; otherwise that is an error.
            queue: opens what the engine knows of its queue.
        """
        return cls(open_database(url, create=create), queue)

    def leases(self, holder: str) -> Leases | None:
        """Returns the leases that processes share; None on a file, which has one process."""
        return Leases(self.database, holder) if self.database.file is None else None

    def claims(self, holder: str) -> Claims | None:
        """Returns the claims of a process on calls; None on a file, which has one process."""
        return Claims(self.database, holder) if self.database.file is None else None

    def close(self, *, refused: bool = False) -> None:
        """Closes the connections.

        Args:
            refused: remove a file that was created here and in which nothing is stored.
        """
        self.database.engine.dispose()
        if refused and self.database.created and self.database.file is not None:
            discard_unused(self.database.file)
