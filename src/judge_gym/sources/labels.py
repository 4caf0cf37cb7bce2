"""Reads labels by people: a CSV file with the stage that each rater gave each item."""

from dataclasses import dataclass
from pathlib import Path

from judge_gym.errors import DesignError
from judge_gym.sources.files import csv_table

COLUMNS = ("item", "rater", "stage")


@dataclass(frozen=True, slots=True)
class Label:
    """The stage that a person gave an item: its number or its label, as written."""

    item: str
    rater: str
    stage: str


def read_labels(path: Path) -> tuple[Label, ...]:
    """Reads the distinct labels of a file in its order, and ignores other columns."""
    lines: dict[Label, int] = {}
    stages: dict[tuple[str, str], Label] = {}
    _, rows = csv_table(path, required=COLUMNS, columns=COLUMNS)
    for number, row in rows:
        cells = {name: row[name].strip() for name in COLUMNS}
        for name, cell in cells.items():
            if not cell:
                raise DesignError(f"{path}:{number}: {name} is empty")
        label = Label(**cells)
        first = stages.setdefault((label.item, label.rater), label)
        if first != label:
            raise DesignError(
                f"{path}:{number}: {label.rater!r} gives {label.item!r} the stage {label.stage!r}, "
                f"and {first.stage!r} on line {lines[first]}"
            )
        lines.setdefault(label, number)
    if not lines:
        raise DesignError(f"{path} has no labels")
    return tuple(lines)
