"""While a new version is deployed, the version before it works on the expanded schema beside it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import postgres
from conftest import SOURCES
from judge_gym.lab import Lab
from judge_gym.store.database import HEAD

NEXT, LAST = f"{int(HEAD) + 1:04}", f"{int(HEAD) + 2:04}"
EXPAND = f'''
"""A later version needs to know how urgent a run is."""
import sqlalchemy as sa
from alembic import op
revision, down_revision, only_adds = "{NEXT}", "{HEAD}", True
def upgrade():
    op.add_column("runs", sa.Column("urgency", sa.Integer, nullable=False, server_default="0"))
    op.create_table("urgencies", sa.Column("id", sa.Integer, primary_key=True))
'''
CONTRACT = f'''
"""Nothing reads when runs were created any more."""
from alembic import op
revision, down_revision, only_adds, serves = "{LAST}", "{NEXT}", False, "{NEXT}"
audit = "SELECT count(*) FROM runs WHERE urgency > 100"
def upgrade():
    op.drop_column("runs", "superseded")
'''


def later_version(folder: Path, head: str, *migrations: str) -> Path:
    """Writes the source of a version with more migrations; only its schema differs."""
    package = folder / "judge_gym"
    shutil.copytree(SOURCES / "judge_gym", package, ignore=shutil.ignore_patterns("__pycache__"))
    database = package / "store" / "database.py"
    text = database.read_text()
    assert f'NEEDED = "{HEAD}"' in text and f'HEAD = "{HEAD}"' in text
    needed = text.replace(f'NEEDED = "{HEAD}"', f'NEEDED = "{NEXT}"')
    database.write_text(needed.replace(f'HEAD = "{HEAD}"', f'HEAD = "{head}"'))
    for number, migration in enumerate(migrations, int(NEXT)):
        (package / "store" / "migrations" / "versions" / f"{number:04}.py").write_text(migration)
    return folder


@pytest.mark.slow
def test_the_version_before_works_on_an_expanded_schema_beside_the_new_one(
    tmp_path: Path, write_study: Callable[..., Path]
) -> None:
    url = postgres.fresh_url()
    newer = later_version(tmp_path / "newer", NEXT, EXPAND)
    newest = later_version(tmp_path / "newest", LAST, EXPAND, CONTRACT)

    def environment(source: Path) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(source), "JUDGE_GYM_DATABASE_URL": url}

    def command(source: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "judge_gym", *words],
            env=environment(source),
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    assert command(newer, "status").returncode == 2, "it needs the expanded schema"
    assert f"schema {HEAD} -> {NEXT}" in command(newer, "db", "upgrade").stdout
    workers: list[subprocess.Popen[str]] = []

    def start_worker(source: Path) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "judge_gym", "worker"]
        workers.append(
            subprocess.Popen(
                words, env=environment(source), cwd=tmp_path, stderr=subprocess.PIPE, text=True
            )
        )
        while lab.store.progress.count_workers() < len(workers):
            assert workers[-1].poll() is None
            time.sleep(0.05)
        return workers[-1]

    def run_to_the_end(samples: int) -> None:
        lab.runs.start(write_study(samples=samples))
        while lab.runs.wait("small", timeout=30)["in_progress"]:
            pass
        assert {row["status"] for row in lab.list_experiments(study="small")} == {"complete"}

    try:
        with Lab.open(url) as lab:  # this process is of the version before
            assert lab.store.database.revision() == NEXT
            before = start_worker(SOURCES)
            run_to_the_end(samples=2)
            after = start_worker(newer)
            run_to_the_end(samples=20)
            before.send_signal(signal.SIGTERM)
            assert before.wait(60) == 130
            run_to_the_end(samples=25)
            assert after.poll() is None
            rows = lab.reports.usage("small")
            assert all(row["attempts"] == row["calls"] for row in rows), "none failed"
            repeated = "SELECT count(*) - count(DISTINCT call_id) FROM attempts"
            assert lab.admin.query(repeated)["rows"] == [[0]]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert command(SOURCES, "db", "upgrade").stdout == f"schema {NEXT} is current\n"
    assert f"schema {NEXT} -> {LAST}" in command(newest, "db", "contract").stdout
    refused = command(SOURCES, "status")
    assert refused.returncode == 2
    assert f"which serves versions from schema {NEXT} on; this one knows {HEAD}" in refused.stderr
