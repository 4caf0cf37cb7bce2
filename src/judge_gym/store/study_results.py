"""What was computed about studies, such as its sentence, kept until the data change."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from judge_gym.errors import StoreError
from judge_gym.store import tables as t
from judge_gym.store.database import Database


class StudyResults:
    """Saves and finds results; each can be computed again at any time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, study: str, name: str, key: str) -> Any:
        """Returns the result of this name; None unless one with this key is stored."""
        r = t.study_results.c
        mine = (r.study == study, r.name == name, r.key == key)
        return self._database.scalar(sa.select(r.result).where(*mine))

    def save(self, study: str, name: str, key: str, result: Any) -> None:
        """Saves a result in place of an earlier one of this name.

        Nothing is saved where this session cannot write: whoever reads results is never refused.
        """
        if not self._database.may_write:
            return
        row = {"study": study, "name": name, "key": key, "result": result, "at": datetime.now(UTC)}
        with suppress(StoreError), self._database.begin() as connection:
            r = t.study_results.c
            connection.execute(t.study_results.delete().where(r.study == study, r.name == name))
            self._database.insert_new(connection, t.study_results, [row])  # another process may win


def record_correction(connection: sa.Connection, records: str) -> None:
    """Records that rows were changed in place, so that results on them are computed again."""
    row = {"records": records, "at": datetime.now(UTC)}
    connection.execute(t.corrections.insert(), row)
