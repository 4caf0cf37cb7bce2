"""Every probe names its run: what older versions wrote without it was filled in by then."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
only_adds = False
audit = "SELECT count(*) FROM probes WHERE run_id IS NULL"


def upgrade() -> None:
    """Tighten the column."""
    with op.batch_alter_table("probes") as table:
        table.alter_column("run_id", existing_type=sa.Integer(), nullable=False)
