"""The oldest schema that can be upgraded; a new database is created from `store/tables.py`."""

revision = "0008"
down_revision = None
only_adds = True
"""Whether opening a database may run this by itself."""


def upgrade() -> None:
    """Does nothing: no database is older."""
