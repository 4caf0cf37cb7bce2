"""Reads reference values from V-Dem's country-year file (https://v-dem.net), for controls."""

import csv
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from judge_gym.errors import DesignError, unknown

Direction = Literal["up", "down"]
DIRECTIONS: tuple[Direction, ...] = ("up", "down")
COUNTRY, CODE, YEAR = "country_name", "country_text_id", "year"
# By V-Dem's codebook these rise with corruption, neopatrimonial rule or exclusion; its other
# indices of democracy, rights and rule of law rise with what is good for democracy.
MORE_IS_WORSE = frozenset(
    "v2x_corr v2x_execorr v2x_pubcorr v2x_neopat v2xnp_client v2xnp_pres v2xnp_regcorr "
    "v2xpe_exlecon v2xpe_exlgender v2xpe_exlgeo v2xpe_exlpol v2xpe_exlsocgr".split()
)


def vdem_truth(
    path: Path,
    country: str,
    year: int,
    index: str = "v2x_libdem",
    direction: Direction | None = None,
) -> dict[str, Any]:
    """Looks up an index as the truth of a task: `source`, `value` and `direction`.

    The value is not rescaled: the high-level indices are between 0 and 1, others are not. The
    country is a name or a three-letter code; the direction is by default that of V-Dem's codebook.
    """
    if direction is not None and direction not in DIRECTIONS:
        raise DesignError(unknown("direction", direction, DIRECTIONS), choices=DIRECTIONS)
    rows = _of_country(_read(path, index), country)
    name = rows[0][COUNTRY]
    values = [row[index] for row in rows if row[YEAR] == year]
    if not values:
        years = _spans(row[YEAR] for row in rows)
        raise DesignError(f"there is no year {year} for {name} in {path}; it has {years}")
    if len(values) > 1:
        raise DesignError(
            f"{path} holds {len(values)} rows for {name} {year}; the country-year file has one"
        )
    if values[0] is None:
        available = _spans(row[YEAR] for row in rows if row[index] is not None)
        raise DesignError(
            f"{index} is missing for {name} {year} in {path}; "
            f"it is given for {available or 'no year'}"
        )
    return {
        "source": f"v-dem {index} {name} {year}",
        "value": values[0],
        "direction": direction or ("down" if index in MORE_IS_WORSE else "up"),
    }


def _read(path: Path, index: str) -> list[dict[str, Any]]:
    """Reads the four columns, of thousands, that a value needs."""
    import pyarrow as pa
    import pyarrow.csv as arrow

    names = _header(path)
    for name in (COUNTRY, CODE, YEAR):
        if name not in names:
            raise DesignError(f"{path} has no column {name!r}; it is not V-Dem's country-year file")
    if index not in names:
        near = get_close_matches(index, names, n=5)
        raise DesignError(unknown("index", index, near, str(path)), choices=near)
    types = {COUNTRY: pa.string(), CODE: pa.string(), YEAR: pa.int64(), index: pa.float64()}
    try:
        table = arrow.read_csv(
            path,
            parse_options=arrow.ParseOptions(newlines_in_values=True),
            convert_options=arrow.ConvertOptions(column_types=types, include_columns=list(types)),
        )
    except pa.ArrowInvalid as error:
        raise DesignError(f"{path} cannot be read: {error}") from error
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _header(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file), [])
    except FileNotFoundError:
        raise DesignError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DesignError(f"{path} cannot be read: {error}") from error


def _of_country(rows: list[dict[str, Any]], country: str) -> list[dict[str, Any]]:
    name = country.strip().casefold()
    country_rows = [row for row in rows if name in (row[COUNTRY].casefold(), row[CODE].casefold())]
    if not country_rows:
        names = {row[key].casefold(): row[key] for key in (CODE, COUNTRY) for row in rows}
        near = [names[key] for key in get_close_matches(name, names, n=5)]
        raise DesignError(unknown("country", country, near), choices=near)
    return country_rows


def _spans(years: Iterable[int]) -> str:
    """Writes years as ranges.

    >>> _spans([1900, 1901, 1902, 1945, 1990, 1991])
    '1900 to 1902, 1945, 1990 to 1991'
    """
    spans: list[list[int]] = []
    for year in sorted(set(years)):
        if spans and year == spans[-1][1] + 1:
            spans[-1][1] = year
        else:
            spans.append([year, year])
    return ", ".join(f"{a} to {b}" if b > a else str(a) for a, b in spans)
