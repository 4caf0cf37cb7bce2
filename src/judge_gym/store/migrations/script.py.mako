"""${message}."""

import sqlalchemy as sa
from alembic import op

revision = "${up_revision}"
down_revision = ${repr(down_revision)}
only_adds = False
"""Whether opening a database may run this by itself."""


def upgrade() -> None:
    """${message}."""
    ${upgrades if upgrades else "pass"}
