"""Stored designs name the value of every knob, so that a changed default changes none of them."""

import sqlalchemy as sa
from alembic import op

from judge_gym.axes import V1_DEFAULTS
from judge_gym.store.tables import JSON

revision = "0010"
down_revision = "0009"
only_adds = True

experiments = sa.table("experiments", sa.column("digest"), sa.column("design", JSON))


def upgrade() -> None:
    """Write out the knobs that stood at their default, which no row named until now."""
    connection = op.get_bind()
    for digest, design in connection.execute(sa.select(experiments)).all():
        whole = {**V1_DEFAULTS, **design}
        row = experiments.update().where(experiments.c.digest == digest)
        connection.execute(row.values(design=whole))
