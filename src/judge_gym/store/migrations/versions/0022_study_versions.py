"""Every saved version of a study is kept; when those until now were saved is unknown."""

import sqlalchemy as sa
import yaml
from alembic import op

from judge_gym.store.tables import JSON

revision = "0022"
down_revision = "0021"
only_adds = True


def upgrade() -> None:
    """Adds the table, with the version of each study that the lab holds."""
    versions = op.create_table(
        "study_versions",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("study", sa.String(), nullable=False, index=True),
        sa.Column("file", sa.String(64), sa.ForeignKey("texts.hash"), nullable=False),
        sa.Column("declared", JSON, nullable=False),
        sa.Column("saved", sa.DateTime(timezone=True)),
    )
    known = sa.text(
        "SELECT studies.name, studies.file, texts.body, EXISTS (SELECT 1 FROM tags WHERE "
        "tags.study = studies.name AND tags.protocol = 'contested-concepts') AS contested "
        "FROM studies JOIN texts ON texts.hash = studies.file WHERE texts.body <> ''"
    )
    for study, file, body, contested in op.get_bind().execute(known).all():
        declared = {
            "margin": (yaml.safe_load(body) or {}).get("margin"),
            "hypotheses": ["H1", "H2", "H3", "H4"] if contested else [],
            "contrasts": [],
        }
        row = {"study": study, "file": file, "declared": declared, "saved": None}
        op.execute(versions.insert().values(row))
