"""Items may have named parts, such as input, output and reference."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON_OR_NULL

revision = "0024"
down_revision = "0023"
only_adds = True


def upgrade() -> None:
    """Adds the column."""
    op.add_column("evidence", sa.Column("fields", JSON_OR_NULL))
