"""What worker processes share: limits and budgets."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON

revision = "0005"
down_revision = "0004"
only_adds = True


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "leases",
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("state", JSON, nullable=False),
        sa.PrimaryKeyConstraint("scope", name=op.f("pk_leases")),
    )
