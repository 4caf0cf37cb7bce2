"""Attempts say where nothing was sent, because there was no connection."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
only_adds = True


def upgrade() -> None:
    """Adds the column."""
    op.add_column("attempts", sa.Column("unsent", sa.Boolean(), nullable=True))
