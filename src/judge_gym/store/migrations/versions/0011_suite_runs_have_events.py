"""Events of suite runs: their run is named by minus its number, as in the ledger."""

from alembic import op

revision = "0011"
down_revision = "0010"
only_adds = True  # it lifts a constraint, and older versions write what was allowed before


def upgrade() -> None:
    """Lifts the foreign key, which only runs of experiments satisfy."""
    with op.batch_alter_table("events") as table:
        table.drop_constraint("fk_events_run_id", type_="foreignkey")
