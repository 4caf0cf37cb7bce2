"""Evidence names its cluster; items of an older lab are clusters of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
only_adds = True


def upgrade() -> None:
    """Adds the column."""
    op.add_column("evidence", sa.Column("cluster", sa.String, nullable=False, server_default=""))
