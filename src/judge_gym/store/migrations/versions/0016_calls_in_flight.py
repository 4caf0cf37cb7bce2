"""Processes claim the calls that they make, and report how many are in flight."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON

revision = "0016"
down_revision = "0015"
only_adds = True


def upgrade() -> None:
    """Adds the tables."""
    op.create_table(
        "claims",
        sa.Column("key", sa.String(), primary_key=True),
        sa.Column("holder", sa.String(), nullable=False),
    )
    op.create_table(
        "in_flight",
        sa.Column("holder", sa.String(), primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("calls", JSON, nullable=False),
    )
