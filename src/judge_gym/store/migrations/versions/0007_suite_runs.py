"""Suite runs: evals, their results, steps and files."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON

revision = "0007"
down_revision = "0006"
only_adds = True


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "code_tasks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("suite", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["source"], ["texts.hash"], name=op.f("fk_code_tasks_source")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_code_tasks")),
        sa.UniqueConstraint(
            "suite",
            "version",
            "category",
            "name",
            name=op.f("uq_code_tasks_suite_version_category_name"),
        ),
    )
    op.create_table(
        "suite_runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("suite", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("experiment", sa.String(), nullable=False),
        sa.Column("condition", JSON, nullable=False),
        sa.Column("series", sa.String(), nullable=False),
        sa.Column("replicates", sa.Integer(), nullable=False),
        sa.Column("evals", JSON, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suite_runs")),
        sa.UniqueConstraint("key", name=op.f("uq_suite_runs_key")),
    )
    op.create_index("ix_suite_runs_model", "suite_runs", ["model"])
    op.create_table(
        "suite_results",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("step", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Integer(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("usd", sa.Float(), nullable=True),
        sa.Column("isolation", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["suite_runs.id"], name=op.f("fk_suite_results_run_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["task_id"], ["code_tasks.id"], name=op.f("fk_suite_results_task_id")
        ),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name=op.f("fk_suite_results_call_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_suite_results")),
    )
    op.create_index(
        "ix_suite_results_target", "suite_results", ["run_id", "task_id", "replicate", "id"]
    )
    op.create_table(
        "suite_steps",
        sa.Column("result_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("output", sa.String(length=64), nullable=False),
        sa.Column("tests_passed", sa.Integer(), nullable=True),
        sa.Column("tests_collected", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["result_id"],
            ["suite_results.id"],
            name=op.f("fk_suite_steps_result_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["output"], ["texts.hash"], name=op.f("fk_suite_steps_output")),
        sa.PrimaryKeyConstraint("result_id", "position", name=op.f("pk_suite_steps")),
    )
    op.create_table(
        "suite_files",
        sa.Column("result_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("text", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["result_id"],
            ["suite_results.id"],
            name=op.f("fk_suite_files_result_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["text"], ["texts.hash"], name=op.f("fk_suite_files_text")),
        sa.PrimaryKeyConstraint("result_id", "path", name=op.f("pk_suite_files")),
    )
