"""Tokens of those who use the lab over the network."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
only_adds = True


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
    )
    live = sa.text("revoked IS NULL")
    op.create_index(
        "uq_tokens_live", "tokens", ["name"], unique=True, sqlite_where=live, postgresql_where=live
    )
