"""Writes tables as CSV or Parquet to a temporary file, part by part, and sends it.

Memory stays small however long a table is, an error is raised before the first byte is sent, and
a slow client keeps no transaction open.
"""

import json
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

if TYPE_CHECKING:
    import pandas as pd

Format = Literal["json", "csv", "parquet"]
TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
NUMBERS = {frozenset({"int64"}): "int64", frozenset({"bool"}): "bool"}
"""Arrow's types of columns that have one type in every part; integers with gaps are floats."""
FLOATING = {"int64", "float64"}


def download(parts: Iterable["pd.DataFrame"], format: Format, name: str) -> Response:
    """Returns a file with the rows of all parts, as if they were one frame."""
    with tempfile.TemporaryFile() as buffer:
        types = _store(parts, buffer)
        buffer.seek(0)
        with tempfile.NamedTemporaryFile(suffix=f".{format}", delete=False) as file:
            path = Path(file.name)
        try:
            write = _write_csv if format == "csv" else _write_parquet
            write(_load(buffer, types), types, path)
        except BaseException:
            path.unlink()
            raise
    delete = BackgroundTask(path.unlink, missing_ok=True)
    return FileResponse(
        path, media_type=TYPES[format], filename=f"{name}.{format}", background=delete
    )


def download_rows(rows: Sequence[Mapping[str, Any]], format: Format, name: str) -> Response:
    """Returns a file with these rows; nested values become JSON."""
    import pandas as pd

    frame = pd.DataFrame([{k: _flat(v) for k, v in row.items()} for row in rows])
    return download([frame], format, name)


def _store(parts: Iterable["pd.DataFrame"], file: IO[bytes]) -> dict[str, str]:
    """Writes the parts to a file and returns the type of each column over all parts."""
    seen: dict[str, set[str]] = {}
    for part in parts:
        for column, kind in part.dtypes.items():
            seen.setdefault(str(column), set()).add(str(kind))
        pickle.dump(part, file, protocol=pickle.HIGHEST_PROTOCOL)
    return {column: _type(kinds) for column, kinds in seen.items()}


def _type(kinds: set[str]) -> str:
    floating = "float64" if kinds <= FLOATING else "string"
    return NUMBERS.get(frozenset(kinds), floating)


def _load(file: IO[bytes], types: Mapping[str, str]) -> Iterator["pd.DataFrame"]:
    floating = {name: type for name, type in types.items() if type == "float64"}
    while True:
        try:
            yield pickle.load(file).astype(floating)
        except EOFError:
            return


def _write_csv(parts: Iterable["pd.DataFrame"], types: Mapping[str, str], path: Path) -> None:
    from judge_gym.analysis.formulas import escape_formulas

    with path.open("w", encoding="utf-8", newline="") as file:
        for number, part in enumerate(parts):
            escape_formulas(part).to_csv(file, index=False, header=number == 0)


def _write_parquet(parts: Iterable["pd.DataFrame"], types: Mapping[str, str], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = {name: type for name, type in types.items() if type == "string"}
    schema = pa.schema([(name, pa.type_for_alias(type)) for name, type in types.items()])
    with pq.ParquetWriter(path, schema) as writer:
        for part in parts:
            table = pa.Table.from_pandas(part.astype(text), schema=schema, preserve_index=False)
            writer.write_table(table)


def _flat(value: Any) -> Any:
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value if isinstance(value, bool | int | float | str | None) else str(value)
