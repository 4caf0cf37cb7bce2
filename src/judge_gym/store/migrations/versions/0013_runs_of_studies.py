"""A run belongs to one study: studies with the same experiment no longer share a run."""

import sqlalchemy as sa
from alembic import op

from judge_gym.store.tables import JSON

revision = "0013"
down_revision = "0012"
only_adds = True

ACTIVE = sa.text("superseded IS NULL")
runs = sa.table(
    "runs",
    sa.column("id"),
    sa.column("digest"),
    sa.column("owner"),
    sa.column("series"),
    sa.column("samples"),
    sa.column("rivals", JSON),
    sa.column("probe"),
    sa.column("tolerance"),
    sa.column("view_maker"),
    sa.column("critic_maker"),
    sa.column("created"),
    sa.column("superseded"),
)
KEY = ("rubric_id", "evidence_id", "replicate", "flipped", "is_swap")
SAMPLE = ", ".join((*KEY, "status", "stages", "display", "call_id"))
COPY_ROWS = (
    "INSERT INTO run_rubrics (run_id, rubric_id, is_swap) "
    "SELECT :new, rubric_id, is_swap FROM run_rubrics WHERE run_id = :old",
    f"INSERT INTO samples (run_id, {SAMPLE}) "
    f"SELECT :new, {SAMPLE} FROM samples WHERE run_id = :old ORDER BY id",
    "INSERT INTO probes (sample_id, status, probability, call_id, run_id) "
    "SELECT copy.id, probes.status, probability, probes.call_id, :new FROM probes "
    "JOIN samples AS s ON s.id = probes.sample_id JOIN samples AS copy ON copy.run_id = :new AND "
    f"{' AND '.join(f'copy.{name} = s.{name}' for name in KEY)} "
    "WHERE s.run_id = :old ORDER BY probes.id",
    # A run that was started is not queued for its copy.
    "INSERT INTO events (run_id, at, kind, said, detail) "
    "SELECT :new, at, kind, said, detail FROM events WHERE kind <> 'started' AND id = "
    "(SELECT max(id) FROM events WHERE run_id = :old AND kind <> 'retuned')",
)


def upgrade() -> None:
    """Adds the owners of tags and runs; of a shared run, every further study gets a copy."""
    for table in ("tags", "runs"):
        column = sa.Column("owner", sa.String(), nullable=False, server_default="")
        op.add_column(table, column)
    op.drop_index("uq_runs_active", "runs")
    op.create_index(
        "uq_runs_active",
        "runs",
        ["digest", "owner", "series"],
        unique=True,
        sqlite_where=ACTIVE,
        postgresql_where=ACTIVE,
    )
    connection = op.get_bind()
    owners = _own_tags(connection)
    for run in connection.execute(sa.select(runs).order_by(runs.c.id)).mappings().all():
        first, *others = _payers_first(connection, run["id"], owners.get(run["digest"], {""}))
        connection.execute(runs.update().where(runs.c.id == run["id"]).values(owner=first))
        for owner in others:
            _copy(connection, run, owner)


def _own_tags(connection: sa.Connection) -> dict[str, set[str]]:
    """Sets the owner of each tag, and returns the owners of each experiment.

    A former tag of a study is the present tag with the experiment's digest.
    """
    rows = connection.execute(sa.text("SELECT tag, digest, study FROM tags")).all()
    studies = {row.tag: row.study for row in rows}
    owners: dict[str, set[str]] = {}
    for tag, digest, study in rows:
        present, _, suffix = tag.rpartition("@")
        owner = study or (studies.get(present, "") if digest.startswith(suffix) else "")
        owners.setdefault(digest, set()).add(owner)
        update = sa.text("UPDATE tags SET owner = :owner WHERE tag = :tag")
        connection.execute(update, {"owner": owner, "tag": tag})
    return owners


def _payers_first(connection: sa.Connection, run: int, owners: set[str]) -> list[str]:
    """Returns the owners of a run; first the study that paid most of its calls."""
    query = sa.text("SELECT study, count(*) FROM attempts WHERE run_id = :run GROUP BY study")
    paid = {study: calls for study, calls in connection.execute(query, {"run": run})}
    return sorted(owners, key=lambda owner: (-paid.get(owner, 0), owner))


def _copy(connection: sa.Connection, run: sa.RowMapping, owner: str) -> None:
    row = {name: value for name, value in run.items() if name != "id"}
    connection.execute(runs.insert().values(row | {"owner": owner}))
    new = connection.scalar(sa.text("SELECT max(id) FROM runs"))
    for statement in COPY_ROWS:
        connection.execute(sa.text(statement), {"old": run["id"], "new": new})
