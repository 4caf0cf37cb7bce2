"""Runs one SELECT on a SQLite file in a process of its own, which its caller can kill.

SQLite looks at no clock inside one of its functions: a pattern of LIKE or GLOB can compute for
minutes. Only ending the process interrupts such a query. It is started as a script, without
site-packages and without the environment: it imports nothing but the standard library.
"""

import json
import resource
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

MAX_VALUE = 512 * 1024
"""Bytes of one value."""
MAX_PATTERN = 200
"""Bytes of a pattern of LIKE or GLOB."""
MAX_MEMORY = 1024**3
MAX_FILE = 256 * 1024**2
"""Bytes of a temporary file, into which SQLite sorts."""
STEPS = 2000
"""Instructions of SQLite between two looks at the clock."""
TABLE_FUNCTIONS = ("json_each", "json_tree")
FUNCTIONS = frozenset(
    """-> ->> abs avg ceil ceiling char coalesce concat concat_ws count cume_dist date datetime
    dense_rank exp first_value floor glob group_concat hex if ifnull iif instr json json_array
    json_array_length json_extract json_group_array json_group_object json_object json_quote
    json_type json_valid julianday lag last_value lead length like ln log log10 log2 lower ltrim
    max median min mod nth_value ntile nullif octet_length percent_rank percentile pow power quote
    random rank replace round row_number rtrim sign sqrt strftime string_agg substr substring sum
    time timediff total trim trunc typeof unicode unixepoch upper""".split()
)
"""Functions that compute something and do nothing else."""


def main() -> None:
    """Reads a query as JSON from standard input and writes its result as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    json.dump(run(**json.load(sys.stdin)), sys.stdout)


def run(
    uri: str,
    sql: str,
    limit: int,
    seconds: float,
    tables: Sequence[str],
    secret: Sequence[str],
    size: int,
) -> dict[str, Any]:
    """Returns the columns, the rows and whether there are more; or an error, by its kind.

    Only `tables` may be read, those in `secret` not even counted; `limit` is the most rows, `size`
    the most characters.
    """
    end = time.monotonic() + seconds

    def permit(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                allowed = True
            case sqlite3.SQLITE_READ:  # a CTE whose rows are only counted has a name, no column
                allowed = first in (*tables, *TABLE_FUNCTIONS) or not (second or first in secret)
            case sqlite3.SQLITE_FUNCTION:
                allowed = second in FUNCTIONS
            case _:
                allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    with closing(sqlite3.connect(uri, uri=True, timeout=seconds)) as connection:
        connection.execute("PRAGMA query_only=ON")
        for name in TABLE_FUNCTIONS:  # they declare themselves on first use, which then is refused
            connection.execute(f"SELECT 1 FROM {name}('[]')")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN)
        connection.set_authorizer(permit)
        connection.set_progress_handler(lambda: time.monotonic() > end, STEPS)
        try:
            cursor = connection.execute(sql)
            if cursor.description is None:
                return {"error": "statement"}
            rows: list[list[Any]] = []
            more = False
            for row in cursor:
                if more := len(rows) == limit:
                    break
                rows.append([value.hex() if isinstance(value, bytes) else value for value in row])
                size -= sum(len(value) if isinstance(value, str) else 8 for value in rows[-1])
                if size < 0:
                    return {"error": "size"}
            return {"columns": [c[0] for c in cursor.description], "rows": rows, "more": more}
        except (sqlite3.Error, sqlite3.Warning, MemoryError) as error:
            if "interrupted" in str(error):
                return {"error": "time"}
            return {"error": "refused", "message": str(error) or "out of memory"}


if __name__ == "__main__":
    main()
