"""The first schema."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON, JSON_OR_NULL

revision = "0001"
down_revision = None
only_adds = True
"""Whether opening a database may run this by itself."""


def upgrade() -> None:
    """The first schema."""
    op.create_table(
        "calls",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("messages", JSON, nullable=False),
        sa.Column("parameters", JSON, nullable=False),
        sa.Column("schema", JSON_OR_NULL, nullable=True),
        sa.Column("series", sa.String(), nullable=False),
        sa.Column("draw", sa.Integer(), nullable=False),
        sa.Column("ask", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_calls")),
        sa.UniqueConstraint("key", name=op.f("uq_calls_key")),
    )
    with op.batch_alter_table("calls", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_calls_model"), ["model"], unique=False)

    op.create_table(
        "texts",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_texts")),
    )
    op.create_table(
        "windows",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("country", sa.String(), nullable=False),
        sa.Column("start", sa.Date(), nullable=True),
        sa.Column("end", sa.Date(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_windows")),
        sa.UniqueConstraint("key", name=op.f("uq_windows_key")),
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("call_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("study", sa.String(), nullable=True),
        sa.Column("tag", sa.String(), nullable=True),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("completed", sa.Boolean(), nullable=False),
        sa.Column("text", sa.String(length=64), nullable=True),
        sa.Column("finish", sa.String(), nullable=True),
        sa.Column("reported_model", sa.String(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("usd", sa.Float(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name=op.f("fk_attempts_call_id")),
        sa.ForeignKeyConstraint(["text"], ["texts.hash"], name=op.f("fk_attempts_text")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempts_call_id"), ["call_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempts_run_id"), ["run_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempts_study"), ["study"], unique=False)

    op.create_table(
        "evidence",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("text", sa.String(length=64), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("date", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("metadata", JSON, nullable=False),
        sa.ForeignKeyConstraint(["text"], ["texts.hash"], name=op.f("fk_evidence_text")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evidence")),
        sa.UniqueConstraint("text", name=op.f("uq_evidence_text")),
    )
    op.create_table(
        "pools",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("window_id", sa.Integer(), nullable=True),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("loaded", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["window_id"], ["windows.id"], name=op.f("fk_pools_window_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pools")),
        sa.UniqueConstraint("key", name=op.f("uq_pools_key")),
    )
    with op.batch_alter_table("pools", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_pools_hash"), ["hash"], unique=False)

    op.create_table(
        "rubrics",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("concept", sa.String(), nullable=False),
        sa.Column("country", sa.String(), nullable=False),
        sa.Column("scale", sa.Integer(), nullable=False),
        sa.Column("draw", sa.Integer(), nullable=False),
        sa.Column("asks", sa.Integer(), nullable=False),
        sa.Column("stages", JSON, nullable=False),
        sa.Column("reasoning", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name=op.f("fk_rubrics_call_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rubrics")),
        sa.UniqueConstraint("key", name=op.f("uq_rubrics_key")),
    )
    op.create_table(
        "studies",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("file", sa.String(length=64), nullable=False),
        sa.Column("budget", JSON, nullable=False),
        sa.ForeignKeyConstraint(["file"], ["texts.hash"], name=op.f("fk_studies_file")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_studies")),
    )
    op.create_table(
        "critiques",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("maker", sa.String(length=64), nullable=False),
        sa.Column("critic", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("observability", sa.Float(), nullable=True),
        sa.Column("discriminability", sa.Float(), nullable=True),
        sa.Column("call_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name=op.f("fk_critiques_call_id")),
        sa.ForeignKeyConstraint(["rubric_id"], ["rubrics.id"], name=op.f("fk_critiques_rubric_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_critiques")),
        sa.UniqueConstraint("rubric_id", "maker", name=op.f("uq_critiques_rubric_id_maker")),
    )
    op.create_table(
        "experiments",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("task_type", sa.String(), nullable=False),
        sa.Column("concept", sa.String(), nullable=False),
        sa.Column("country", sa.String(), nullable=False),
        sa.Column("pool_id", sa.Integer(), nullable=False),
        sa.Column("rubric_id", sa.Integer(), nullable=True),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("design", JSON, nullable=False),
        sa.ForeignKeyConstraint(["pool_id"], ["pools.id"], name=op.f("fk_experiments_pool_id")),
        sa.ForeignKeyConstraint(
            ["rubric_id"], ["rubrics.id"], name=op.f("fk_experiments_rubric_id")
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_experiments")),
    )
    with op.batch_alter_table("experiments", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_experiments_task_type"), ["task_type"], unique=False)

    op.create_table(
        "pool_items",
        sa.Column("pool_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("evidence_id", sa.Integer(), nullable=False),
        sa.Column("truth", JSON_OR_NULL, nullable=True),
        sa.ForeignKeyConstraint(
            ["evidence_id"], ["evidence.id"], name=op.f("fk_pool_items_evidence_id")
        ),
        sa.ForeignKeyConstraint(["pool_id"], ["pools.id"], name=op.f("fk_pool_items_pool_id")),
        sa.PrimaryKeyConstraint("pool_id", "position", name=op.f("pk_pool_items")),
    )
    with op.batch_alter_table("pool_items", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_pool_items_evidence_id"), ["evidence_id"], unique=False
        )

    op.create_table(
        "views",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("evidence_id", sa.Integer(), nullable=False),
        sa.Column("maker", sa.String(length=64), nullable=False),
        sa.Column("editor", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("text", sa.String(length=64), nullable=True),
        sa.Column("call_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name=op.f("fk_views_call_id")),
        sa.ForeignKeyConstraint(
            ["evidence_id"], ["evidence.id"], name=op.f("fk_views_evidence_id")
        ),
        sa.ForeignKeyConstraint(["text"], ["texts.hash"], name=op.f("fk_views_text")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_views")),
        sa.UniqueConstraint("evidence_id", "maker", name=op.f("uq_views_evidence_id_maker")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("series", sa.String(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("rivals", JSON, nullable=False),
        sa.Column("probe", sa.Boolean(), nullable=False),
        sa.Column("tolerance", sa.Float(), nullable=False),
        sa.Column("view_maker", sa.String(length=64), nullable=True),
        sa.Column("critic_maker", sa.String(length=64), nullable=True),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("superseded", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["digest"], ["experiments.digest"], name=op.f("fk_runs_digest"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(
            "uq_runs_active",
            ["digest", "series"],
            unique=True,
            sqlite_where=sa.text("superseded IS NULL"),
            postgresql_where=sa.text("superseded IS NULL"),
        )

    op.create_table(
        "tags",
        sa.Column("tag", sa.String(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("study", sa.String(), nullable=False),
        sa.Column("pool_name", sa.String(), nullable=False),
        sa.Column("pool_id", sa.Integer(), nullable=False),
        sa.Column("dose", sa.Float(), nullable=True),
        sa.Column("truth", JSON_OR_NULL, nullable=True),
        sa.ForeignKeyConstraint(
            ["digest"], ["experiments.digest"], name=op.f("fk_tags_digest"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["pool_id"], ["pools.id"], name=op.f("fk_tags_pool_id")),
        sa.PrimaryKeyConstraint("tag", name=op.f("pk_tags")),
    )
    with op.batch_alter_table("tags", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tags_digest"), ["digest"], unique=False)
        batch_op.create_index(batch_op.f("ix_tags_study"), ["study"], unique=False)

    op.create_table(
        "run_rubrics",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("is_swap", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["rubric_id"], ["rubrics.id"], name=op.f("fk_run_rubrics_rubric_id")
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_rubrics_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "rubric_id", name=op.f("pk_run_rubrics")),
    )
    op.create_table(
        "samples",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("evidence_id", sa.Integer(), nullable=False),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("flipped", sa.Boolean(), nullable=False),
        sa.Column("is_swap", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("stages", sa.String(), nullable=False),
        sa.Column("display", sa.String(), nullable=False),
        sa.Column("call_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name=op.f("fk_samples_call_id")),
        sa.ForeignKeyConstraint(
            ["evidence_id"], ["evidence.id"], name=op.f("fk_samples_evidence_id")
        ),
        sa.ForeignKeyConstraint(["rubric_id"], ["rubrics.id"], name=op.f("fk_samples_rubric_id")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_samples_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_samples")),
        sa.UniqueConstraint(
            "run_id",
            "rubric_id",
            "evidence_id",
            "replicate",
            "flipped",
            "is_swap",
            name=op.f("uq_samples_run_id_rubric_id_evidence_id_replicate_flipped_is_swap"),
        ),
    )
    with op.batch_alter_table("samples", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_samples_rubric_id"), ["rubric_id"], unique=False)

    op.create_table(
        "probes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("sample_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("probability", sa.Float(), nullable=True),
        sa.Column("call_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["call_id"], ["calls.id"], name=op.f("fk_probes_call_id")),
        sa.ForeignKeyConstraint(
            ["sample_id"], ["samples.id"], name=op.f("fk_probes_sample_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_probes")),
        sa.UniqueConstraint("sample_id", name=op.f("uq_probes_sample_id")),
    )
