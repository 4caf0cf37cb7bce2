"""Which database is production, and how far changes of its data are."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
only_adds = True


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "deployment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deployment")),
    )
    op.create_table(
        "data_migrations",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("after", sa.Integer(), nullable=False),
        sa.Column("changed", sa.Integer(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_data_migrations")),
    )
