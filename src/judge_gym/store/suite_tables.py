"""The schema of suite runs. Results are only added; the newest result of an eval counts."""

import sqlalchemy as sa

from judge_gym.store.tables import JSON, UtcDateTime, metadata

code_tasks = sa.Table(  # the files of an eval, by version of its suite
    "code_tasks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("suite", sa.String, nullable=False),
    sa.Column("version", sa.String, nullable=False),
    sa.Column("category", sa.String, nullable=False),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("source", sa.ForeignKey("texts.hash"), nullable=False),  # JSON
    sa.UniqueConstraint("suite", "version", "category", "name"),
)

suite_runs = sa.Table(
    "suite_runs",
    metadata,
    # The ledger knows a suite run by its negated number, which no other run has.
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", sa.String(64), nullable=False, unique=True),  # of all columns but the targets
    sa.Column("suite", sa.String, nullable=False),
    sa.Column("version", sa.String, nullable=False),
    sa.Column("model", sa.String, nullable=False, index=True),
    sa.Column("experiment", sa.String, nullable=False),
    sa.Column("condition", JSON, nullable=False),
    sa.Column("series", sa.String, nullable=False),
    sa.Column("replicates", sa.Integer, nullable=False),  # targets, which may be raised
    sa.Column("evals", JSON, nullable=False),  # paths
    sa.Column("created", UtcDateTime, nullable=False),
)

suite_results = sa.Table(
    "suite_results",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("run_id", sa.ForeignKey("suite_runs.id", ondelete="CASCADE"), nullable=False),
    sa.Column("task_id", sa.ForeignKey("code_tasks.id"), nullable=False),
    sa.Column("replicate", sa.Integer, nullable=False),
    sa.Column("outcome", sa.String, nullable=False),
    sa.Column("why", sa.String, nullable=False),  # an inconclusive one's kind
    sa.Column("step", sa.String, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("call_id", sa.ForeignKey("calls.id")),
    sa.Column("seconds", sa.Float, nullable=False),  # of the generation
    sa.Column("usd", sa.Float),
    sa.Column("isolation", sa.String, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Index("ix_suite_results_target", "run_id", "task_id", "replicate", "id"),
)

suite_steps = sa.Table(
    "suite_steps",
    metadata,
    sa.Column("result_id", sa.ForeignKey("suite_results.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("output", sa.ForeignKey("texts.hash"), nullable=False),
    sa.Column("tests_passed", sa.Integer),
    sa.Column("tests_collected", sa.Integer),
)

suite_files = sa.Table(
    "suite_files",
    metadata,
    sa.Column("result_id", sa.ForeignKey("suite_results.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("text", sa.ForeignKey("texts.hash"), nullable=False),
)
