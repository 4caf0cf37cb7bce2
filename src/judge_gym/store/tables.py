"""The schema. Counts and statuses are derived from rows: no column stores one."""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

# Postgres can compare and index only JSONB.
JSON = sa.JSON().with_variant(JSONB(), "postgresql")
JSON_OR_NULL = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


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


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True)


def _to(target: str, *, owned: bool = False) -> sa.ForeignKey:
    return sa.ForeignKey(target, ondelete="CASCADE" if owned else None)


# --- the ledger ----------------------------------------------------------------------------------

texts = sa.Table(
    "texts",
    metadata,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)

calls = sa.Table(
    "calls",
    metadata,
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

attempts = sa.Table(
    "attempts",
    metadata,
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

windows = sa.Table(
    "windows",
    metadata,
    _id(),
    sa.Column("key", sa.String(64), nullable=False, unique=True),
    sa.Column("country", sa.String, nullable=False),
    sa.Column("start", sa.Date),
    sa.Column("end", sa.Date),
    sa.Column("search", sa.String, nullable=False, server_default=""),
)

evidence = sa.Table(
    "evidence",
    metadata,
    _id(),
    sa.Column("text", _to("texts.hash"), nullable=False, unique=True),
    sa.Column("title", sa.String, nullable=False),
    sa.Column("url", sa.String, nullable=False),
    sa.Column("date", sa.String, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("metadata", JSON, nullable=False),
    sa.Column("pair", sa.Boolean, nullable=False, server_default=sa.false()),  # text is a JSON list
)

window_items = sa.Table(
    "window_items",
    metadata,
    _id(),  # the order of arrival
    sa.Column("window_id", _to("windows.id"), nullable=False),
    sa.Column("evidence_id", _to("evidence.id"), nullable=False, index=True),
    sa.Column("added", UtcDateTime, nullable=False),
    sa.Column("truth", JSON_OR_NULL),
    sa.Column("dropped", UtcDateTime),  # by a user; no search adds it again
    sa.UniqueConstraint("window_id", "evidence_id"),
)

collections = sa.Table(  # append-only: the searches and loads that filled a window
    "collections",
    metadata,
    _id(),
    sa.Column("window_id", _to("windows.id"), nullable=False, index=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("added", sa.Integer, nullable=False),
    sa.Column("dropped", JSON, nullable=False),  # {reason: how many}
    sa.Column("fault", sa.String, nullable=False),  # empty if the search finished
)

pools = sa.Table(
    "pools",
    metadata,
    _id(),
    sa.Column("hash", sa.String(64), nullable=False, index=True),
    sa.Column("window_id", _to("windows.id")),
    sa.Column("key", sa.String(64), nullable=False, unique=True),  # hash, window, truths
    sa.Column("loaded", UtcDateTime, nullable=False),
)

pool_items = sa.Table(
    "pool_items",
    metadata,
    sa.Column("pool_id", _to("pools.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("evidence_id", _to("evidence.id"), nullable=False, index=True),
    sa.Column("truth", JSON_OR_NULL),
)

pool_names = sa.Table(
    "pool_names",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("pool_id", _to("pools.id"), nullable=False),
    sa.Column("frozen", UtcDateTime, nullable=False),
)

labels = sa.Table(
    "labels",
    metadata,
    _id(),
    sa.Column("evidence_id", _to("evidence.id"), nullable=False, index=True),
    sa.Column("concept", sa.String, nullable=False),  # empty: any concept
    sa.Column("rater", sa.String, nullable=False),
    sa.Column("stage", sa.String, nullable=False),  # a number, or a label of the rubric
    sa.UniqueConstraint("evidence_id", "concept", "rater"),
)

views = sa.Table(
    "views",
    metadata,
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

rubrics = sa.Table(
    "rubrics",
    metadata,
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

critiques = sa.Table(
    "critiques",
    metadata,
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

studies = sa.Table(
    "studies",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("file", _to("texts.hash"), nullable=False),  # the YAML of the last run
    sa.Column("budget", JSON, nullable=False),
)

experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("task_type", sa.String, nullable=False, index=True),
    sa.Column("concept", sa.String, nullable=False),
    sa.Column("country", sa.String, nullable=False),
    sa.Column("pool_id", _to("pools.id"), nullable=False),
    sa.Column("rubric_id", _to("rubrics.id")),  # of a benchmark
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("design", JSON, nullable=False),  # the value of every knob
)

tags = sa.Table(
    "tags",
    metadata,
    sa.Column("tag", sa.String, primary_key=True),
    sa.Column("digest", _to("experiments.digest", owned=True), nullable=False, index=True),
    sa.Column("study", sa.String, nullable=False, index=True),
    # The study whose runs it names, even when that study uses the tag for another experiment.
    sa.Column("owner", sa.String, nullable=False, server_default=""),
    sa.Column("pool_name", sa.String, nullable=False),
    sa.Column("pool_id", _to("pools.id"), nullable=False),  # has this tag's truths
    sa.Column("dose", sa.Float),
    sa.Column("truth", JSON_OR_NULL),
)

runs = sa.Table(
    "runs",
    metadata,
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
    sa.Index(
        "uq_runs_active",
        "digest",
        "owner",
        "series",
        unique=True,
        sqlite_where=sa.text("superseded IS NULL"),
        postgresql_where=sa.text("superseded IS NULL"),
    ),
)

NAMED_RUNS = sa.and_(runs.c.digest == tags.c.digest, runs.c.owner == tags.c.owner)
"""Joins tags with the runs that they name: studies with the same experiment have their own runs."""

run_rubrics = sa.Table(
    "run_rubrics",
    metadata,
    sa.Column("run_id", _to("runs.id", owned=True), primary_key=True),
    sa.Column("rubric_id", _to("rubrics.id"), primary_key=True),
    sa.Column("is_swap", sa.Boolean, nullable=False),
)

samples = sa.Table(
    "samples",
    metadata,
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

probes = sa.Table(
    "probes",
    metadata,
    _id(),
    sa.Column("sample_id", _to("samples.id", owned=True), nullable=False, unique=True),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("probability", sa.Float),
    sa.Column("call_id", _to("calls.id"), nullable=False),
    # The run of its sample, so that a run's probes can be counted.
    sa.Column("run_id", sa.Integer, nullable=False),
    sa.Index("ix_probes_progress", "run_id", "status"),
)

events = sa.Table(  # append-only: what users and workers did to runs
    "events",
    metadata,
    _id(),
    sa.Column("run_id", sa.Integer, nullable=False),  # negated for a suite run
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("said", sa.String, nullable=False),
    sa.Column("detail", JSON, nullable=False),
    sa.Index("ix_events_run_id", "run_id", "id"),
)

leases = sa.Table(  # what worker processes share while they work
    "leases",
    metadata,
    sa.Column("scope", sa.String, primary_key=True),
    sa.Column("state", JSON, nullable=False),
)

tokens = sa.Table(  # for access over the network; only a hash of the secret is stored
    "tokens",
    metadata,
    _id(),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("scope", sa.String, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("created", UtcDateTime, nullable=False),
    sa.Column("used", UtcDateTime),
    sa.Column("revoked", UtcDateTime),
    sa.Index(
        "uq_tokens_live",
        "name",
        unique=True,
        sqlite_where=sa.text("revoked IS NULL"),
        postgresql_where=sa.text("revoked IS NULL"),
    ),
)

# --- the database itself -------------------------------------------------------------------------

deployment = sa.Table(  # at most one row
    "deployment",
    metadata,
    _id(),
    sa.Column("profile", sa.String, nullable=False),
)

identity = sa.Table(  # one row, once anything was queued
    "identity",
    metadata,
    sa.Column("place", sa.String, primary_key=True),
)

data_migrations = sa.Table(
    "data_migrations",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("after", sa.Integer, nullable=False),  # the last id of the last batch
    sa.Column("changed", sa.Integer, nullable=False),
    sa.Column("started", UtcDateTime, nullable=False),
    sa.Column("finished", UtcDateTime),
)
