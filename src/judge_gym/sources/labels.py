"""Labels by people: a CSV file with the stage that each rater gave each item."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from judge_gym.errors import DesignError
from judge_gym.sources.files import read_text

COLUMNS = ("item", "rater", "stage")


@dataclass(frozen=True, slots=True)
class Label:
    """The stage that a person gave an item: its number or its label, as written."""

    item: str
    rater: str
    stage: str


def read_labels(path: Path) -> tuple[Label, ...]:
    """The labels of a file, in its order; the same label twice is once.

    The header names item, rater and stage in any order; other columns are not read. Cells are
    separated by commas or semicolons, whichever make the header whole.
    """
    text = read_text(path)
    delimiter, places, width = _header(text, path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines: dict[Label, int] = {}
    stages: dict[tuple[str, str], Label] = {}
    end = 0  # the line on which the row before ended
    try:
        for row in reader:
            number, end = end + 1, reader.line_num
            if number == 1 or not any(cell.strip() for cell in row):
                continue
            where = f"{path}:{number}"
            if len(row) != width:
                raise DesignError(f"{where}: {len(row)} cells under a header of {width}")
            cells = {name: row[place].strip() for name, place in places.items()}
            for name, cell in cells.items():
                if not cell:
                    raise DesignError(f"{where}: {name} is empty")
            label = Label(**cells)
            first = stages.setdefault((label.item, label.rater), label)
            if first != label:
                raise DesignError(
                    f"{where}: {label.rater!r} gives {label.item!r} the stage {label.stage!r}, "
                    f"and {first.stage!r} on line {lines[first]}"
                )
            lines.setdefault(label, number)
    except csv.Error as fault:
        raise DesignError(f"{path}:{reader.line_num}: broken CSV: {fault}") from fault
    if not lines:
        raise DesignError(f"{path} holds no labels")
    return tuple(lines)


def _header(text: str, path: Path) -> tuple[str, dict[str, int], int]:
    """The delimiter, the place of each column and the number of cells."""
    first = text.partition("\n")[0].rstrip("\r")
    found: list[str] = []
    for delimiter in ",;":
        names = [
            name.strip().casefold() for name in next(csv.reader([first], delimiter=delimiter), [])
        ]
        if set(COLUMNS) <= set(names):
            for name in COLUMNS:
                if names.count(name) > 1:
                    raise DesignError(f"{path}:1: the header names {name!r} twice")
            return delimiter, {name: names.index(name) for name in COLUMNS}, len(names)
        found = max(found, names, key=len)
    missing = ", ".join(name for name in COLUMNS if name not in found)
    raise DesignError(
        f"{path}:1: the header lacks {missing}; it is {first[:200]!r} and names item, rater, stage"
    )
