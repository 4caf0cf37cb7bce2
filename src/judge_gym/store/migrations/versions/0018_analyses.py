"""Analyses of suite runs are queued."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON, JSON_OR_NULL

revision = "0018"
down_revision = "0017"
only_adds = True


def upgrade() -> None:
    """Adds the table."""
    op.create_table(
        "analyses",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column(
            "run_id",
            sa.Integer(),
            sa.ForeignKey("suite_runs.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("request", JSON, nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True)),
        sa.Column("result", JSON_OR_NULL),
        sa.Column("error", sa.Text(), nullable=False),
    )
