"""The only room that speaks SQL: the ledger of calls, the records, and the questions about them."""

from judge_gym.records import SuiteResult, SuiteRun
from judge_gym.store.browsing import Browsing, Stretch, Which
from judge_gym.store.database import Database, open_database
from judge_gym.store.events import Event, Events, Kind
from judge_gym.store.evidence import EvidenceRecords
from judge_gym.store.exporting import Exported, export_ledger
from judge_gym.store.importing import Imported, import_ledger
from judge_gym.store.leases import Leases
from judge_gym.store.ledger import Answer, Attempt, Ledger, Payer
from judge_gym.store.locks import SessionLock
from judge_gym.store.logs import Logs, Mark
from judge_gym.store.materials import Materials
from judge_gym.store.pages import Page
from judge_gym.store.progress import Progress, ProgressQueries
from judge_gym.store.queries import USAGE_BY
from judge_gym.store.readings import Readings
from judge_gym.store.runs import Run, Runs, Targets
from judge_gym.store.sql import Questions, Rows
from judge_gym.store.suites import Suites
from judge_gym.store.sums import Sums
from judge_gym.store.tokens import SCOPES, Scope, Token, Tokens

__all__ = [
    "SCOPES",
    "USAGE_BY",
    "Answer",
    "Attempt",
    "Database",
    "Event",
    "Exported",
    "Imported",
    "Kind",
    "Leases",
    "Ledger",
    "Mark",
    "Page",
    "Payer",
    "Progress",
    "Rows",
    "Run",
    "Scope",
    "SessionLock",
    "Store",
    "Stretch",
    "SuiteResult",
    "SuiteRun",
    "Targets",
    "Token",
    "Which",
    "export_ledger",
    "import_ledger",
]


class Store:
    """One database and its faces."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.ledger = Ledger(database)
        self.evidence = EvidenceRecords(database, self.ledger)
        self.materials = Materials(database, self.ledger)
        self.runs = Runs(database, self.ledger, self.evidence, self.materials)
        self.readings = Readings(database, self.runs)
        self.queries = Browsing(database)
        self.progress = ProgressQueries(database)
        self.events = Events(database)
        self.tokens = Tokens(database)
        self.sums = Sums(database)
        self.suites = Suites(database, self.ledger)
        self.logs = Logs(database)
        self.questions = Questions(database)

    @classmethod
    def open(cls, url: str | None = None, *, create: bool = True) -> "Store":
        """The store of a URL, of `JUDGE_GYM_DATABASE_URL`, or of the working folder."""
        return cls(open_database(url, create=create))

    def leases(self, holder: str) -> Leases | None:
        """What a process shares with others; None on a file, which has one process."""
        return Leases(self.database, holder) if self.database.file is None else None

    def close(self) -> None:
        """Release the connections."""
        self.database.engine.dispose()
