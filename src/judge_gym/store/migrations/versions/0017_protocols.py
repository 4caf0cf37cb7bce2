"""Tags name the research protocol of their study; all earlier ones have the blueprint's."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
only_adds = True


def upgrade() -> None:
    """Adds the column, whose default is the protocol of all rows until now."""
    default = "contested-concepts"
    op.add_column(
        "tags", sa.Column("protocol", sa.String(), nullable=False, server_default=default)
    )
