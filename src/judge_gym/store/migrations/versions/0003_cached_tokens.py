"""Attempts say how many of their tokens came from a provider's cache."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
only_adds = True


def upgrade() -> None:
    """Add the column."""
    op.add_column("attempts", sa.Column("cached_tokens", sa.Integer(), nullable=True))
