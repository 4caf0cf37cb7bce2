"""The schema. Counts and statuses are derived from rows: no column stores one."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Json(sa.TypeDecorator[Any]):
    """JSON; on Postgres JSONB, since only that can be compared and indexed there."""

    impl = sa.JSON
    cache_ok = True

    def __init__(self, none_as_null: bool = False) -> None:
        super().__init__(none_as_null=none_as_null)
        self.none_as_null = none_as_null

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Returns the type of the database; the dialect of Postgres is slow to import."""
        if dialect.name != "postgresql":
            return dialect.type_descriptor(self.impl_instance)
        from sqlalchemy.dialects.postgresql import JSONB

        return dialect.type_descriptor(JSONB(none_as_null=self.none_as_null))

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """Returns the type of a value that is compared: a key of an object is no JSON."""
        kind = self.impl_instance.coerce_compared_value(op, value)
        return self if kind is self.impl_instance else kind


JSON = Json()
JSON_OR_NULL = Json(none_as_null=True)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """A time in UTC. SQLite does not store the zone, so it is added when a row is read."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Returns the time as it is stored."""
        return value.astimezone(UTC) if value is not None and value.tzinfo else value

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Returns the time with its zone."""
        return value.replace(tzinfo=UTC) if value is not None and not value.tzinfo else value


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(name, metadata, *parts)


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True)


def _to(target: str, *, owned: bool = False) -> sa.ForeignKey:
    return sa.ForeignKey(target, ondelete="CASCADE" if owned else None)


def _unique_where(condition: str, name: str, *columns: str) -> sa.Index:
    return sa.Index(name, *columns, unique=True, sqlite_where=sa.text(condition))


@sa.event.listens_for(metadata, "before_create")
def _state_conditions(target: sa.MetaData, connection: sa.Connection, **_: object) -> None:
    """Gives indexes their conditions on Postgres, too; to state them above loads its dialect."""
    if connection.dialect.name == "postgresql":
        for index in (index for table in target.tables.values() for index in table.indexes):
            where = index.dialect_options["sqlite"]["where"]
            index.dialect_options["postgresql"]["where"] = where


# --- the ledger ----------------------------------------------------------------------------------

texts = _table(
    "texts",
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)

calls = _table(
    "calls",
    _id(),
    sa.Column("key", sa.String(64), nullable=False, unique=True),
    sa.Column("model", sa.String, nullable=False, index=True),
    sa.Column("endpoint", sa.String, nullable=False),
    sa.Column("messages", JSON, nullable=False),  # [[role, [text hash, ...]], ...]
    sa.Column("parameters", JSON, nullable=False),
    sa.Column("schema", JSON_OR_NULL),
    sa.Column("series", sa.String, nullable=False),
    sa.Column("draw", sa.Integer, nullable=False),
    sa.Column("ask", sa.Integer, nullable=False),
)

attempts = _table(
    "attempts",
    _id(),
    sa.Column("call_id", _to("calls.id"), nullable=False, index=True),
    # The run that paid, even after it was deleted; null for an imported attempt.
    sa.Column("run_id", sa.Integer, index=True),
    sa.Column("study", sa.String, index=True),
    sa.Column("tag", sa.String),
    sa.Column("stage", sa.String, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("completed", sa.Boolean, nullable=False),
    sa.Column("text", _to("texts.hash")),
    sa.Column("finish", sa.String),
    sa.Column("reported_model", sa.String),
    sa.Column("input_tokens", sa.Integer),
    sa.Column("output_tokens", sa.Integer),
    sa.Column("usd", sa.Float),
    sa.Column("error", sa.String),
    sa.Column("cached_tokens", sa.Integer),
    sa.Column("unsent", sa.Boolean),  # true where there was no connection: it is no paid call
)

# --- evidence ------------------------------------------------------------------------------------

windows = _table(
    "windows",
    _id(),
    sa.Column("key", sa.String(64), nullable=False, unique=True),
    sa.Column("country", sa.String, nullable=False),
    sa.Column("start", sa.Date),
    sa.Column("end", sa.Date),
    sa.Column("search", sa.String, nullable=False, server_default=""),
)

evidence = _table(
    "evidence",
    _id(),
    sa.Column("text", _to("texts.hash"), nullable=False, unique=True),
    sa.Column("title", sa.String, nullable=False),
    sa.Column("url", sa.String, nullable=False),
    sa.Column("date", sa.String, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("metadata", JSON, nullable=False),
    sa.Column("pair", sa.Boolean, nullable=False, server_default=sa.false()),  # text is a JSON list
    sa.Column("cluster", sa.String, nullable=False, server_default=""),  # empty: the item itself
    sa.Column("fields", JSON_OR_NULL),  # [[name, text], ...]; null for one text, or a pair
)

window_items = _table(
    "window_items",
    _id(),  # the order of arrival
    sa.Column("window_id", _to("windows.id"), nullable=False),
    sa.Column("evidence_id", _to("evidence.id"), nullable=False, index=True),
    sa.Column("added", UtcDateTime, nullable=False),
    sa.Column("truth", JSON_OR_NULL),
    sa.Column("dropped", UtcDateTime),  # by a user; no search adds it again
    sa.UniqueConstraint("window_id", "evidence_id"),
)

collections = _table(  # append-only: the searches and loads that filled a window
    "collections",
    _id(),
    sa.Column("window_id", _to("windows.id"), nullable=False, index=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("added", sa.Integer, nullable=False),
    sa.Column("dropped", JSON, nullable=False),  # {reason: how many}
    sa.Column("error", sa.String, nullable=False),  # empty if the search finished
)

pools = _table(
    "pools",
    _id(),
    sa.Column("hash", sa.String(64), nullable=False, index=True),
    sa.Column("window_id", _to("windows.id")),
    sa.Column("key", sa.String(64), nullable=False, unique=True),  # hash, window, truths
    sa.Column("loaded", UtcDateTime, nullable=False),
)

pool_items = _table(
    "pool_items",
    sa.Column("pool_id", _to("pools.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("evidence_id", _to("evidence.id"), nullable=False, index=True),
    sa.Column("truth", JSON_OR_NULL),
)

pool_names = _table(
    "pool_names",
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("pool_id", _to("pools.id"), nullable=False),
    sa.Column("frozen", UtcDateTime, nullable=False),
)

labels = _table(  # append-only: of a rater's labels of an item the latest counts
    "labels",
    _id(),
    sa.Column("evidence_id", _to("evidence.id"), nullable=False),
    # Empty: any study that judges the item; a recorded study keeps its labels to itself.
    sa.Column("study", sa.String, nullable=False),
    sa.Column("concept", sa.String, nullable=False),  # empty: any concept
    sa.Column("rater", sa.String, nullable=False),
    # A number, or a label of the rubric; null where the person cannot judge the item.
    sa.Column("stage", sa.String),
    sa.Column("kind", sa.String, nullable=False),  # imported, given or adjudicated
    sa.Column("confidence", sa.String),
    sa.Column("note", sa.Text),
    sa.Column("queue_id", _to("label_queues.id")),
    sa.Column("shown", sa.String(64)),  # a hash of the item and the rubric that the person saw
    sa.Column("given", UtcDateTime, nullable=False),
    sa.Index("ix_labels_rater", "evidence_id", "study", "concept", "rater", "id"),
)

label_queues = _table(  # which items of a study people were asked to label, and how
    "label_queues",
    _id(),
    sa.Column("study", sa.String, nullable=False, index=True),
    sa.Column("concept", sa.String, nullable=False),
    sa.Column("tag", sa.String),  # the experiment whose wording and view people see
    sa.Column("rubric", JSON, nullable=False),  # {"kind", "stages": [[label, criteria, ...], ...]}
    sa.Column("draw", JSON, nullable=False),  # how items were drawn: seed, items, core, overlap
    sa.Column("created", UtcDateTime, nullable=False),
)

label_queue_items = _table(
    "label_queue_items",
    sa.Column("queue_id", _to("label_queues.id"), primary_key=True),
    sa.Column("evidence_id", _to("evidence.id"), primary_key=True),
    # The chance with which it was drawn; null for a disputed item that enters no rate.
    sa.Column("probability", sa.Float),
)

label_assignments = _table(
    "label_assignments",
    sa.Column("queue_id", _to("label_queues.id"), primary_key=True),
    sa.Column("rater", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("evidence_id", _to("evidence.id"), nullable=False),
    sa.Column("flipped", sa.Boolean, nullable=False),  # a pair in reverse order
)

label_reviews = _table(  # append-only: what a rater says of a judge's reasoning, after the queue
    "label_reviews",
    _id(),
    sa.Column("queue_id", _to("label_queues.id"), nullable=False),
    sa.Column("rater", sa.String, nullable=False),
    sa.Column("sample_id", sa.Integer, nullable=False),
    sa.Column("sound", sa.Boolean, nullable=False),
    sa.Column("given", UtcDateTime, nullable=False),
)

splits = _table(  # of a study's items into train, dev and test
    "splits",
    sa.Column("study", sa.String, primary_key=True),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("shares", JSON, nullable=False),  # of clusters, by part
    sa.Column("created", UtcDateTime, nullable=False),
)

split_items = _table(
    "split_items",
    sa.Column("study", sa.String, primary_key=True),
    sa.Column("evidence_id", _to("evidence.id"), primary_key=True),
    sa.Column("part", sa.String, nullable=False),
)

split_uses = _table(  # append-only: the estimates that were read from a test part
    "split_uses",
    _id(),
    sa.Column("study", sa.String, nullable=False),
    sa.Column("key", sa.String(64), nullable=False),  # of the estimates: reading again is no use
    sa.Column("at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("study", "key"),
)

views = _table(
    "views",
    _id(),
    sa.Column("evidence_id", _to("evidence.id"), nullable=False),
    sa.Column("maker", sa.String(64), nullable=False),  # a hash of editor, prompt and slots
    sa.Column("editor", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("text", _to("texts.hash")),
    sa.Column("call_id", _to("calls.id"), nullable=False),
    sa.Column("checks", JSON_OR_NULL),
    sa.UniqueConstraint("evidence_id", "maker"),
)

# --- rubrics -------------------------------------------------------------------------------------

rubrics = _table(
    "rubrics",
    _id(),
    sa.Column("key", sa.String(64), nullable=False, unique=True),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("author", sa.String, nullable=False),
    sa.Column("concept", sa.String, nullable=False),
    sa.Column("country", sa.String, nullable=False),
    sa.Column("scale", sa.Integer, nullable=False),
    sa.Column("draw", sa.Integer, nullable=False),
    sa.Column("asks", sa.Integer, nullable=False),
    sa.Column("stages", JSON, nullable=False),  # [[label, criterion, ...], ...]
    sa.Column("reasoning", sa.Text, nullable=False),
    sa.Column("call_id", _to("calls.id")),
)

critiques = _table(
    "critiques",
    _id(),
    sa.Column("rubric_id", _to("rubrics.id"), nullable=False),
    sa.Column("maker", sa.String(64), nullable=False),
    sa.Column("critic", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("observability", sa.Float),
    sa.Column("discriminability", sa.Float),
    sa.Column("call_id", _to("calls.id"), nullable=False),
    sa.UniqueConstraint("rubric_id", "maker"),
)

# --- experiments and runs ------------------------------------------------------------------------

studies = _table(
    "studies",
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("file", _to("texts.hash"), nullable=False),  # the YAML of the last run
    sa.Column("budget", JSON, nullable=False),
)

study_versions = _table(  # append-only: each text of a study's file that was run
    "study_versions",
    _id(),
    sa.Column("study", sa.String, nullable=False, index=True),
    sa.Column("file", _to("texts.hash"), nullable=False),
    sa.Column("declared", JSON, nullable=False),  # contrasts, hypotheses and margin
    sa.Column("saved", UtcDateTime, nullable=False),
)

experiments = _table(
    "experiments",
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("task_type", sa.String, nullable=False, index=True),
    sa.Column("concept", sa.String, nullable=False),
    sa.Column("country", sa.String, nullable=False),
    sa.Column("pool_id", _to("pools.id"), nullable=False),
    sa.Column("rubric_id", _to("rubrics.id")),  # of a benchmark
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("design", JSON, nullable=False),  # the value of every knob
)

tags = _table(
    "tags",
    sa.Column("tag", sa.String, primary_key=True),
    sa.Column("digest", _to("experiments.digest", owned=True), nullable=False, index=True),
    sa.Column("study", sa.String, nullable=False, index=True),
    # The study whose runs it names, even when that study uses the tag for another experiment.
    sa.Column("owner", sa.String, nullable=False, server_default=""),
    sa.Column("pool_name", sa.String, nullable=False),
    sa.Column("pool_id", _to("pools.id"), nullable=False),  # has this tag's truths
    sa.Column("dose", sa.Float),
    sa.Column("truth", JSON_OR_NULL),
    sa.Column("protocol", sa.String, nullable=False, server_default=""),  # empty: none
    sa.Column("cleaned_up", UtcDateTime),  # when its runs were last deleted
)

runs = _table(
    "runs",
    _id(),
    sa.Column("digest", _to("experiments.digest", owned=True), nullable=False),
    sa.Column("owner", sa.String, nullable=False, server_default=""),  # the study, as in `tags`
    sa.Column("series", sa.String, nullable=False),
    sa.Column("samples", sa.Integer, nullable=False),  # a target, which may be raised
    sa.Column("rivals", JSON, nullable=False),
    sa.Column("probe", sa.Boolean, nullable=False),
    sa.Column("tolerance", sa.Float, nullable=False),
    sa.Column("view_maker", sa.String(64)),
    sa.Column("critic_maker", sa.String(64)),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("superseded", UtcDateTime),
    _unique_where("superseded IS NULL", "uq_runs_active", "digest", "owner", "series"),
)

NAMED_RUNS = sa.and_(runs.c.digest == tags.c.digest, runs.c.owner == tags.c.owner)
"""Joins tags with the runs that they name: studies with the same experiment have their own runs."""

run_rubrics = _table(
    "run_rubrics",
    sa.Column("run_id", _to("runs.id", owned=True), primary_key=True),
    sa.Column("rubric_id", _to("rubrics.id"), primary_key=True),
    sa.Column("is_swap", sa.Boolean, nullable=False),
)

samples = _table(
    "samples",
    _id(),
    sa.Column("run_id", _to("runs.id", owned=True), nullable=False),
    sa.Column("rubric_id", _to("rubrics.id"), nullable=False, index=True),
    sa.Column("evidence_id", _to("evidence.id"), nullable=False),
    sa.Column("replicate", sa.Integer, nullable=False),
    sa.Column("flipped", sa.Boolean, nullable=False),
    sa.Column("is_swap", sa.Boolean, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("stages", sa.String, nullable=False),  # "2 3"
    sa.Column("display", sa.String, nullable=False),  # "C=2 A=3 ...", in display order
    sa.Column("call_id", _to("calls.id"), nullable=False),
    sa.UniqueConstraint("run_id", "rubric_id", "evidence_id", "replicate", "flipped", "is_swap"),
    # Progress and pages of samples are read from these indexes alone.
    sa.Index("ix_samples_progress", "run_id", "is_swap", "status", "id"),
    sa.Index("ix_samples_replicate", "run_id", "rubric_id", "is_swap", "replicate"),
)

probes = _table(
    "probes",
    _id(),
    sa.Column("sample_id", _to("samples.id", owned=True), nullable=False, unique=True),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("probability", sa.Float),
    sa.Column("call_id", _to("calls.id"), nullable=False),
    # The run of its sample, so that a run's probes can be counted.
    sa.Column("run_id", sa.Integer, nullable=False),
    sa.Index("ix_probes_progress", "run_id", "status"),
)

events = _table(  # append-only: what users and workers did to runs
    "events",
    _id(),
    sa.Column("run_id", sa.Integer, nullable=False),  # negated for a suite run
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("message", sa.String, nullable=False),
    sa.Column("detail", JSON, nullable=False),
    sa.Column("actor", sa.String, nullable=False, server_default=""),  # empty: no person
    sa.Index("ix_events_run_id", "run_id", "id"),
)

claims = _table(  # the calls that processes are making, on a server
    "claims",
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("holder", sa.String, nullable=False),
)

in_flight = _table(  # what each process reports about once a second
    "in_flight",
    sa.Column("holder", sa.String, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("calls", JSON, nullable=False),  # by study and model
)

leases = _table(  # what worker processes share while they work
    "leases",
    sa.Column("scope", sa.String, primary_key=True),
    sa.Column("state", JSON, nullable=False),
)

tokens = _table(  # for access over the network; only a hash of the secret is stored
    "tokens",
    _id(),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("scope", sa.String, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("used", UtcDateTime),
    sa.Column("revoked", UtcDateTime),
    sa.Column("expires", UtcDateTime),
    # Of a token with the scope `label`: the one queue and rater that it is for.
    sa.Column("queue_id", _to("label_queues.id")),
    sa.Column("rater", sa.String),
    _unique_where("revoked IS NULL", "uq_tokens_live", "name"),
)

# --- suite runs: results are only added; the newest result of an eval counts ---------------------

code_tasks = _table(  # the files of an eval, by version of its suite
    "code_tasks",
    _id(),
    sa.Column("suite", sa.String, nullable=False),
    sa.Column("version", sa.String, nullable=False),
    sa.Column("category", sa.String, nullable=False),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("source", _to("texts.hash"), nullable=False),  # JSON
    sa.UniqueConstraint("suite", "version", "category", "name"),
)

suite_runs = _table(
    "suite_runs",
    # The ledger knows a suite run by its negated number, which no other run has.
    _id(),
    sa.Column("key", sa.String(64), nullable=False, unique=True),  # of all columns but the targets
    sa.Column("suite", sa.String, nullable=False),
    sa.Column("version", sa.String, nullable=False),
    sa.Column("model", sa.String, nullable=False, index=True),
    sa.Column("condition", sa.String, nullable=False),
    sa.Column("settings", JSON, nullable=False),  # what the condition changes
    sa.Column("series", sa.String, nullable=False),
    sa.Column("replicates", sa.Integer, nullable=False),  # the most of any eval
    sa.Column("evals", JSON, nullable=False),  # targets, which may be raised: replicates by path
    sa.Column("created", UtcDateTime, nullable=False),
)

suite_results = _table(
    "suite_results",
    _id(),
    sa.Column("run_id", _to("suite_runs.id", owned=True), nullable=False),
    sa.Column("task_id", _to("code_tasks.id"), nullable=False),
    sa.Column("replicate", sa.Integer, nullable=False),
    sa.Column("outcome", sa.String, nullable=False),
    sa.Column("why", sa.String, nullable=False),  # an inconclusive one's kind
    sa.Column("step", sa.String, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("call_id", _to("calls.id")),
    sa.Column("seconds", sa.Float, nullable=False),  # of the generation
    sa.Column("usd", sa.Float),
    sa.Column("isolation", sa.String, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Index("ix_suite_results_target", "run_id", "task_id", "replicate", "id"),
)

suite_steps = _table(
    "suite_steps",
    sa.Column("result_id", _to("suite_results.id", owned=True), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("output", _to("texts.hash"), nullable=False),
    sa.Column("tests_passed", sa.Integer),
    sa.Column("tests_collected", sa.Integer),
)

suite_files = _table(
    "suite_files",
    sa.Column("result_id", _to("suite_results.id", owned=True), primary_key=True),
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("text", _to("texts.hash"), nullable=False),
)

analyses = _table(  # of suite runs, that were queued
    "analyses",
    _id(),
    sa.Column("run_id", _to("suite_runs.id", owned=True), nullable=False, index=True),
    sa.Column("request", JSON, nullable=False),
    sa.Column("started", UtcDateTime, nullable=False),
    sa.Column("ended", UtcDateTime),
    sa.Column("result", JSON_OR_NULL),
    sa.Column("error", sa.Text, nullable=False),
)

# --- what was computed ---------------------------------------------------------------------------

study_results = _table(  # the newest of each kind, which can be computed again at any time
    "study_results",
    sa.Column("study", sa.String, primary_key=True),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("key", sa.String(64), nullable=False),  # of the data and the build that it rests on
    sa.Column("result", JSON, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
)

corrections = _table(  # append-only: changes of rows in place, which no count shows
    "corrections",
    _id(),
    sa.Column("records", sa.String, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
)

# --- the database itself -------------------------------------------------------------------------

deployment = _table(  # at most one row
    "deployment",
    _id(),
    sa.Column("profile", sa.String, nullable=False),
)

compatibility = _table(  # one row
    "compatibility",
    sa.Column("oldest", sa.String, primary_key=True),  # schema whose version works with this one
)

identity = _table(  # where the database was, once anything was queued; see `store/identity.py`
    "identity",
    sa.Column("place", sa.String, primary_key=True),  # a digest
    sa.Column("traits", JSON, nullable=False),
)

data_migrations = _table(
    "data_migrations",
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("after", sa.Integer, nullable=False),  # the last id of the last batch
    sa.Column("changed", sa.Integer, nullable=False),
    sa.Column("started", UtcDateTime, nullable=False),
    sa.Column("finished", UtcDateTime),
)
