"""Studies have splits of their items, and uses of the test part are counted."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
only_adds = True


def upgrade() -> None:
    """Adds the tables."""
    op.create_table(
        "splits",
        sa.Column("study", sa.String(), primary_key=True),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("test_share", sa.Float(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "split_items",
        sa.Column("study", sa.String(), primary_key=True),
        sa.Column("evidence_id", sa.Integer(), sa.ForeignKey("evidence.id"), primary_key=True),
        sa.Column("test", sa.Boolean(), nullable=False),
    )
    op.create_table(
        "split_uses",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("study", sa.String(), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("study", "key"),
    )
