"""A database knows its place, so that a copy of it can be told from the original."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
only_adds = True


def upgrade() -> None:
    """Adds the table."""
    op.create_table("identity", sa.Column("place", sa.String(), primary_key=True))
