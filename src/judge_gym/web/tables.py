"""Tables as CSV or Parquet, written to a file part by part and sent from there.

So memory stays small however long they are, an error comes before the first byte is sent, and a
slow client keeps no transaction open.
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
NUMBERS = {"integer", "floating", "mixed-integer-float", "empty"}
ARROW = {"integer": "int64", "floating": "float64", "boolean": "bool", "empty": "null"}
"""Arrow's types for columns of one kind; every other column is text."""
LABELLED = "truth"
"""A column of stage numbers or labels; Parquet wants one type, and this is text."""


def sent(parts: Iterable["pd.DataFrame"], format: Format, name: str) -> Response:
    """A table to download, of parts whose columns are objects, as they came."""
    with tempfile.TemporaryFile() as kept:
        kinds = _keep(parts, kept)
        kept.seek(0)
        with tempfile.NamedTemporaryFile(suffix=f".{format}", delete=False) as made:
            path = Path(made.name)
        try:
            write = _write_csv if format == "csv" else _write_parquet
            write(_kept(kept, kinds), kinds, path)
        except BaseException:
            path.unlink()
            raise
    over = BackgroundTask(path.unlink, missing_ok=True)
    return FileResponse(
        path, media_type=TYPES[format], filename=f"{name}.{format}", background=over
    )


def of_rows(rows: Sequence[Mapping[str, Any]], format: Format, name: str) -> Response:
    """A short table to download; what is nested becomes JSON."""
    import pandas as pd

    frame = pd.DataFrame([{k: _flat(v) for k, v in row.items()} for row in rows], dtype=object)
    return sent([frame], format, name)


class _Kind:
    """What a column holds, known when all of its parts were seen."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.gaps = False

    def see(self, column: "pd.Series[Any]") -> None:
        from pandas.api.types import infer_dtype

        self.found.add(infer_dtype(column, skipna=True))
        self.gaps = self.gaps or bool(column.isna().any())

    @property
    def name(self) -> str:
        """As a frame of all parts would have it: whole numbers with gaps are floating ones."""
        if self.found <= {"empty"}:
            return "empty"
        if self.found <= NUMBERS:
            whole = self.found <= {"integer", "empty"} and not self.gaps
            return "integer" if whole else "floating"
        return "boolean" if self.found <= {"boolean", "empty"} else "text"


def _keep(parts: Iterable["pd.DataFrame"], file: IO[bytes]) -> dict[str, _Kind]:
    kinds: dict[str, _Kind] = {}
    for part in parts:
        for column in part.columns:
            kinds.setdefault(column, _Kind()).see(part[column])
        pickle.dump(part, file, protocol=pickle.HIGHEST_PROTOCOL)
    return kinds


def _kept(file: IO[bytes], kinds: Mapping[str, _Kind]) -> Iterator["pd.DataFrame"]:
    floating = {name: "float64" for name, kind in kinds.items() if kind.name == "floating"}
    while True:
        try:
            yield pickle.load(file).astype(floating)
        except EOFError:
            return


def _write_csv(parts: Iterable["pd.DataFrame"], kinds: Mapping[str, _Kind], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for number, part in enumerate(parts):
            part.to_csv(file, index=False, header=number == 0)


def _write_parquet(parts: Iterable["pd.DataFrame"], kinds: Mapping[str, _Kind], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {name: ARROW.get(kind.name, "string") for name, kind in kinds.items()}
    if LABELLED in types:
        types[LABELLED] = "string"
    text = {name: "string" for name, type in types.items() if type == "string"}
    schema = pa.schema([(name, pa.type_for_alias(type)) for name, type in types.items()])
    with pq.ParquetWriter(path, schema) as writer:
        for part in parts:
            table = pa.Table.from_pandas(part.astype(text), schema=schema, preserve_index=False)
            writer.write_table(table)


def _flat(value: Any) -> Any:
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value if isinstance(value, bool | int | float | str | None) else str(value)
