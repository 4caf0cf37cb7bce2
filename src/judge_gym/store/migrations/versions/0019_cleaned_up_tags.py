"""A tag whose runs were deleted stays known, with the time of the cleanup."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
only_adds = True


def upgrade() -> None:
    """Adds the column."""
    op.add_column("tags", sa.Column("cleaned_up", sa.DateTime(timezone=True)))
