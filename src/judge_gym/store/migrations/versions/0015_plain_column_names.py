"""Columns get the names that the rest of the code uses."""

from alembic import op

revision = "0015"
down_revision = "0014"
only_adds = True  # no released version knows the old names

RENAMED = (
    ("events", "said", "message"),
    ("collections", "fault", "error"),
    ("suite_runs", "condition", "settings"),
    ("suite_runs", "experiment", "condition"),
)


def upgrade() -> None:
    """Renames them in place: a copied table would lose the rows that refer to it."""
    for table, old, new in RENAMED:
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
