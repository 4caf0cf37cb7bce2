"""Charts in Vega-Lite, written as plain dicts: altair checks every part, and takes long to load."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.1.0.json"
TYPES = {"N": "nominal", "O": "ordinal", "Q": "quantitative", "T": "temporal"}
Spec = dict[str, Any]
Given = str | Spec
"""An encoding, or the name of its column with the letter of its type."""


def channel(column: str, **options: Any) -> Spec:
    """Returns an encoding of a column, whose name ends with the letter of its type.

    >>> channel("share:Q", title=None)
    {'field': 'share', 'type': 'quantitative', 'title': None}
    """
    name, _, kind = column.rpartition(":")
    return {"field": name, "type": TYPES[kind], **options}


def either(test: str, value: Any, otherwise: Any) -> Spec:
    """Returns an encoding by one of two values, depending on a row."""
    return {"condition": {"test": test, "value": value}, "value": otherwise}


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart that is made step by step; each step returns another chart.

    Args:
        data: its rows; None if it is drawn on those of the chart that contains it.
        spec: everything but the data and the parts.
        parts: the charts that it consists of, by their place in the specification.
    """

    data: pd.DataFrame | None = None
    spec: Spec = field(default_factory=dict)
    parts: "dict[str, Chart | tuple[Chart, ...]]" = field(default_factory=dict)

    def mark(self, kind: str, **options: Any) -> "Chart":
        """Sets what is drawn for a row, such as a bar."""
        return self.properties(mark={"type": kind, **options})

    def encode(self, **channels: Given | list[Given]) -> "Chart":
        """Adds encodings; the end of an interval, such as `x2`, has the type of its start."""
        found = {name: _encoded(given) for name, given in channels.items()}
        for name in {"x2", "y2"} & found.keys():
            found[name] = {"field": found[name]["field"]}
        return self.properties(encoding={**self.spec.get("encoding", {}), **found})

    def transform(self, **step: Any) -> "Chart":
        """Adds a step that changes the rows before they are drawn."""
        return self.properties(transform=[*self.spec.get("transform", []), step])

    def where(self, test: str) -> "Chart":
        """Draws only the rows for which an expression is true."""
        return self.transform(filter=test)

    def properties(self, **values: Any) -> "Chart":
        """Sets parts of the specification, such as width and height."""
        return replace(self, spec={**self.spec, **values})

    def facet(self, **options: Any) -> "Chart":
        """Returns one panel per value of a column."""
        return Chart(self.data, options, {"spec": replace(self, data=None)})

    def to_dict(self) -> Spec:
        """Returns the specification in Vega-Lite, with each table of rows once."""
        tables = {id(chart.data): chart.data for chart in self._charts() if chart.data is not None}
        names = {key: f"data-{place}" for place, key in enumerate(tables)}
        datasets = {names[key]: _records(table) for key, table in tables.items()}
        return {"$schema": SCHEMA, **self._to_dict(names), "datasets": datasets}

    def _charts(self) -> "Iterator[Chart]":
        """Yields the chart and all that it consists of."""
        yield self
        for part in self.parts.values():
            for chart in part if isinstance(part, tuple) else (part,):
                yield from chart._charts()

    def _to_dict(self, names: dict[int, str]) -> Spec:
        data = {} if self.data is None else {"data": {"name": names[id(self.data)]}}
        parts = {
            name: [chart._to_dict(names) for chart in part]
            if isinstance(part, tuple)
            else part._to_dict(names)
            for name, part in self.parts.items()
        }
        return {**data, **self.spec, **parts}

    def altair(self) -> Any:
        """Returns it as a chart of altair, which can be changed further."""
        import altair

        return altair.Chart.from_dict(self.to_dict())

    def _repr_mimebundle_(self, *include: Any, **exclude: Any) -> Any:
        """Shows the chart in a notebook."""
        return self.altair()._repr_mimebundle_(*include, **exclude)


def _encoded(given: Given | list[Given]) -> Any:
    if isinstance(given, list):
        return [_encoded(one) for one in given]
    return channel(given) if isinstance(given, str) else given


def layer(*charts: Chart, data: pd.DataFrame | None = None, **options: Any) -> Chart:
    """Returns charts drawn over each other; rows that all of them draw belong to the whole."""
    first = charts[0].data
    if data is None and all(chart.data is first for chart in charts):
        data, charts = first, tuple(replace(chart, data=None) for chart in charts)
    return Chart(data, options, {"layer": charts})


def concat(*charts: Chart, **options: Any) -> Chart:
    """Returns charts beside and below each other."""
    return Chart(None, options, {"concat": charts})


def _records(frame: pd.DataFrame) -> list[Spec]:
    """Returns the rows of a frame; what is unknown or infinite is None, and a time is text."""
    names = [str(name) for name in frame]
    columns = [_values(frame[name]) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pd.Series) -> list[Any]:
    if pd.api.types.is_datetime64_any_dtype(column):
        return [None if pd.isna(time) else time.isoformat() for time in column]
    if pd.api.types.is_float_dtype(column):
        values = column.to_numpy(dtype=float, na_value=np.nan).tolist()
        return [value if isfinite(value) else None for value in values]
    values = column.astype(object).tolist()
    return [
        None if unknown else value for value, unknown in zip(values, column.isna(), strict=True)
    ]
