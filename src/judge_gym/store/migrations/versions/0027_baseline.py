"""The first schema that later versions upgrade; a new database is created from `store/tables.py`.

Until the first release a change of the tables renames this revision to the next number, so that a
lab of an older commit is refused instead of read wrongly.
"""

revision = "0027"
down_revision = None
only_adds = True
"""Whether opening a database may run this by itself."""
serves = "0027"
"""The oldest schema whose version works with this one."""


def upgrade() -> None:
    """Does nothing: no database is older."""
