"""Windows hold evidence and know their searches; pairs, named pools, human labels, view checks."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON, JSON_OR_NULL

revision = "0002"
down_revision = "0001"
only_adds = True

# What was loaded into a window before was the newest of its pools.
FILL_WINDOWS = """
INSERT INTO window_items (window_id, evidence_id, added, truth)
SELECT p.window_id, i.evidence_id, p.loaded, i.truth
FROM pools p JOIN pool_items i ON i.pool_id = p.id
WHERE p.id = (
    SELECT q.id FROM pools q WHERE q.window_id = p.window_id
    ORDER BY q.loaded DESC, q.id DESC LIMIT 1
)
ORDER BY i.pool_id, i.position
"""


def upgrade() -> None:
    """Add the tables and columns."""
    op.add_column("windows", sa.Column("search", sa.String(), server_default="", nullable=False))
    op.add_column(
        "evidence", sa.Column("pair", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column("views", sa.Column("checks", JSON_OR_NULL, nullable=True))
    op.create_table(
        "window_items",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("window_id", sa.Integer(), nullable=False),
        sa.Column("evidence_id", sa.Integer(), nullable=False),
        sa.Column("added", sa.DateTime(timezone=True), nullable=False),
        sa.Column("truth", JSON_OR_NULL, nullable=True),
        sa.Column("dropped", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["evidence_id"], ["evidence.id"], name=op.f("fk_window_items_evidence_id")
        ),
        sa.ForeignKeyConstraint(
            ["window_id"], ["windows.id"], name=op.f("fk_window_items_window_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_window_items")),
        sa.UniqueConstraint(
            "window_id", "evidence_id", name=op.f("uq_window_items_window_id_evidence_id")
        ),
    )
    op.create_index(op.f("ix_window_items_evidence_id"), "window_items", ["evidence_id"])
    op.create_table(
        "collections",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("window_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("added", sa.Integer(), nullable=False),
        sa.Column("dropped", JSON, nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["window_id"], ["windows.id"], name=op.f("fk_collections_window_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collections")),
    )
    op.create_index(op.f("ix_collections_window_id"), "collections", ["window_id"])
    op.create_table(
        "pool_names",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("pool_id", sa.Integer(), nullable=False),
        sa.Column("frozen", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["pool_id"], ["pools.id"], name=op.f("fk_pool_names_pool_id")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_pool_names")),
    )
    op.create_table(
        "labels",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("evidence_id", sa.Integer(), nullable=False),
        sa.Column("concept", sa.String(), nullable=False),
        sa.Column("rater", sa.String(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evidence_id"], ["evidence.id"], name=op.f("fk_labels_evidence_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_labels")),
        sa.UniqueConstraint(
            "evidence_id", "concept", "rater", name=op.f("uq_labels_evidence_id_concept_rater")
        ),
    )
    op.create_index(op.f("ix_labels_evidence_id"), "labels", ["evidence_id"])
    op.execute(FILL_WINDOWS)
