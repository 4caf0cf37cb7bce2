"""Events of runs, and indexes for how far they are."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON

revision = "0004"
down_revision = "0003"
only_adds = True

FILL_PROBES = """
UPDATE probes SET run_id = (SELECT s.run_id FROM samples s WHERE s.id = probes.sample_id)
"""


def upgrade() -> None:
    """Add the table, the column and the indexes."""
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("said", sa.String(), nullable=False),
        sa.Column("detail", JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_events_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_run_id", "events", ["run_id", "id"])
    op.create_index("ix_samples_progress", "samples", ["run_id", "is_swap", "status", "id"])
    op.create_index(
        "ix_samples_replicate", "samples", ["run_id", "rubric_id", "is_swap", "replicate"]
    )
    op.add_column("probes", sa.Column("run_id", sa.Integer(), nullable=True))
    op.execute(FILL_PROBES)
    op.create_index("ix_probes_progress", "probes", ["run_id", "status"])
