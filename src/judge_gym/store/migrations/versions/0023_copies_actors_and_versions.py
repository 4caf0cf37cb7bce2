"""Copies are recognised by more, events name who acted, and versions that are served are known."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON_OR_NULL

revision = "0023"
down_revision = "0022"
only_adds = True
serves = "0023"
"""No earlier version reads which versions a newer schema serves."""


def upgrade() -> None:
    """Adds the columns and the table."""
    op.add_column("identity", sa.Column("traits", JSON_OR_NULL))
    op.add_column("events", sa.Column("actor", sa.String(), nullable=False, server_default=""))
    op.create_table("compatibility", sa.Column("oldest", sa.String(), primary_key=True))
