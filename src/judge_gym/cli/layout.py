"""Fits tables of text into a width, without ever breaking a word that fits.

A table that is too wide is shortened step by step: tags lose the parts that all of them share, then
those without which they still differ; what is the same in every row is stated once below; bounds
join their estimate. If it is still too wide, it is wrapped at words or transposed, whichever takes
fewer lines; only if neither fits are columns left out, and named. A table of rich breaks words or
cuts them off, and cannot leave out a column.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

GAP = 2
"""Spaces between two columns."""
LEAST = 14
"""The least width of the first column, where a list needs the room of the rest."""
LONG = 32
"""Longer words may be broken at punctuation, as tags, paths and addresses are."""
KNOB = re.compile(r"\w+\.[\w.]+=")
TAGS = ("tag", "experiment", "setup", "path", "eval")
"""Columns with parts between slashes."""
BREAKS = (re.compile(r"(?<=[/,;?&])"), re.compile(r"(?<=[-_.:=])"))
"""Where a long word may be broken, the better places first."""
JOINED = "\N{NO-BREAK SPACE}"
BASE = "(base)"
"""A tag that has no part of its own."""
ELIDED = 24
"""The least width of a column whose texts are cut so that every row is one line."""


@dataclass(frozen=True)
class Grid:
    """A table of text: its columns, its rows, and what is stated below them."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    """For each column, whether it is aligned to the right."""
    notes: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    """Columns that are left out first where there is no room, before those on the right."""
    essential: tuple[str, ...] = ()
    """Columns that stay in the table, at any width and if all rows have the same value."""

    def columns(self) -> list[tuple[str, ...]]:
        """Collects the cells of each column."""
        return list(zip(*self.rows, strict=True))

    def without(self, left_out: Sequence[int], note: str) -> "Grid":
        """Removes some columns, and says so in a note."""
        columns = [at for at in range(len(self.names)) if at not in left_out]
        return Grid(
            tuple(self.names[at] for at in columns),
            tuple(tuple(row[at] for at in columns) for row in self.rows),
            tuple(self.numeric[at] for at in columns),
            (*self.notes, note),
            self.optional,
            self.essential,
        )

    def narrower(self) -> "Iterator[Grid]":
        """Yields the table with ever fewer columns, down to two (or the one that it has)."""
        optional_columns = [self.names.index(name) for name in self.optional if name in self.names]
        essential = [at for at, name in enumerate(self.names) if name in self.essential]
        other_columns = [
            at for at in range(len(self.names) - 1, 0, -1) if at not in optional_columns + essential
        ]
        order = [*optional_columns, *other_columns]
        for count in range(max(1, min(len(order) + 1, len(self.names) - 1))):
            left_out = sorted(order[:count])
            names = ", ".join(self.names[at] for at in left_out)
            yield self.without(left_out, f"Not shown at this width: {names}.") if count else self


@dataclass(frozen=True)
class Layout:
    """A table with a width for each column."""

    grid: Grid
    widths: tuple[int, ...]

    def lines(self) -> tuple[list[str], list[str]]:
        """Writes the lines of the head, and those of the rows."""
        head = [
            _line(parts, self.widths, self.grid.numeric)
            for parts in _heights(self.grid.names, self.widths)
        ]
        rows = [
            _line(parts, self.widths, self.grid.numeric)
            for row in self.grid.rows
            for parts in _heights(row, self.widths)
        ]
        return [line for line in head if line], rows

    def width(self) -> int:
        """Counts the columns of the terminal that the table takes."""
        return _total(self.widths)


def fit(grid: Grid, width: int, *, one_line: bool = False) -> Layout:
    """Lays a table out in a width.

    Args:
        grid: the table.
        width: columns of the terminal.
        one_line: whether every row must be one line: columns are left out and long cells are cut
            before any is wrapped.
    """
    for step in STEPS:
        if one_line and step is _without_constants:
            continue
        grid = step(grid)
        for wanted in (_natural, _width_of_head):
            widths = tuple(wanted(name, cells) for name, cells in _columns_by_name(grid))
            if _total(widths) <= width:
                return Layout(grid, widths)
    if one_line:
        return _elide_cells(grid, width)
    shapes = [grid, _transpose(grid)] if len(grid.names) > 2 else [grid]
    layouts = [layout for shape in shapes if (layout := _wrap_cells(shape, width)) is not None]
    return min(layouts or [_narrow(grid, width)], key=lambda layout: len(layout.lines()[1]))


def wrap(text: str, width: int) -> list[str]:
    """Breaks a text into lines. Only words that are longer than the width are cut."""
    lines = []
    for paragraph in text.splitlines() or [""]:
        line = ""
        for piece, follows in _pieces(paragraph, width):
            joined = f"{line} {piece}" if line and not follows else line + piece
            if line and _length(joined) > width:
                lines.append(line)
                joined = piece
            line = joined
        lines.append(line)
    return lines


# --- steps ---------------------------------------------------------------------------------------


def _with_own_parts(grid: Grid) -> Grid:
    """Removes the parts of tags that all tags of their column share."""
    columns, notes = grid.columns(), list(grid.notes)
    for at in _tag_columns(grid):
        tags = [cell.split("/") for cell in columns[at]]
        shared = [part for part in tags[0] if all(part in tag for tag in tags)]
        if shared:
            columns[at] = tuple(
                "/".join(part for part in tag if part not in shared) or BASE for tag in tags
            )
            notes.append(f"Every {grid.names[at]} is in {'/'.join(shared)}.")
    return replace(grid, rows=tuple(zip(*columns, strict=True)), notes=tuple(notes))


def _with_distinct_parts(grid: Grid) -> Grid:
    """Removes the parts of tags without which they still differ."""
    columns = grid.columns()
    for at in _tag_columns(grid):
        before = columns[at]
        for shorter in (_without_pool, _with_bare_levels):
            tags = tuple(shorter(cell) for cell in columns[at])
            if len(set(tags)) == len(set(before)):
                columns[at] = tags
    shortened = replace(grid, rows=tuple(zip(*columns, strict=True)))
    if shortened == grid:
        return grid
    return replace(shortened, notes=(*grid.notes, "Tags are shortened; --json has them whole."))


def _without_pool(tag: str) -> str:
    """Removes the part before a tag's judge, which is the only one with a colon.

    >>> _without_pool("support/helpfulness/replies/sim:strict/verdict.method=subset")
    'support/helpfulness/sim:strict/verdict.method=subset'
    """
    parts = tag.split("/")
    judge = next((at for at, part in enumerate(parts) if ":" in part), 0)
    return "/".join(part for at, part in enumerate(parts) if judge < 2 or at != judge - 1)


def _with_bare_levels(tag: str) -> str:
    """Removes the knobs of a tag's levels.

    >>> _with_bare_levels("sim:strict/verdict.method=subset")
    'sim:strict/subset'
    """
    return "/".join(part.partition("=")[2] if KNOB.match(part) else part for part in tag.split("/"))


def _tag_columns(grid: Grid) -> list[int]:
    columns = grid.columns()
    return [at for at, name in enumerate(grid.names) if name in TAGS and len(set(columns[at])) > 1]


def _without_constants(grid: Grid) -> Grid:
    """Removes columns, after the first, that are the same in every row."""
    if len(grid.rows) < 2:
        return grid
    same = [
        at
        for at, cells in enumerate(grid.columns())
        if at and len(set(cells)) == 1 and grid.names[at] not in grid.essential
    ]
    if not same:
        return grid
    facts = ", ".join(f"{grid.names[at]} {grid.rows[0][at] or '–'}" for at in same)
    return grid.without(same, f"In every row: {facts}.")


def _with_intervals(grid: Grid) -> Grid:
    """Moves the bounds of an estimate into its own column."""
    names, columns, numeric = list(grid.names), grid.columns(), list(grid.numeric)
    for at in range(len(names) - 3, -1, -1):
        name = names[at]
        if tuple(names[at + 1 : at + 3]) in (("low", "high"), (f"{name} low", f"{name} high")):
            columns[at : at + 3] = [tuple(map(_interval, *columns[at : at + 3]))]
            names[at : at + 3] = [f"{name} [low, high]"]
            numeric[at : at + 3] = [False]
    rows = tuple(zip(*columns, strict=True))
    return replace(grid, names=tuple(names), rows=rows, numeric=tuple(numeric))


def _interval(value: str, low: str, high: str) -> str:
    return value if low == high == "–" else f"{value} [{low}, {high}]".replace(" ", JOINED)


STEPS = (
    lambda grid: grid,
    _with_own_parts,
    _without_constants,
    _with_intervals,
    _with_distinct_parts,
)
"""What is tried, one after the other, until a table fits."""


def _transpose(grid: Grid) -> Grid:
    """Exchanges rows and columns."""
    head, *body = [(name, *cells) for name, cells in _columns_by_name(grid)]
    if len(grid.rows) == 1:  # names and values, without a head
        head, body = ("", ""), [head, *body]
    return Grid(tuple(head), tuple(body), tuple(False for _ in head), grid.notes)


def _narrow(grid: Grid, width: int) -> Layout:
    """Keeps as many columns as fit, at least two, since longer words are cut."""
    return next(
        layout for fewer in grid.narrower() if (layout := _wrap_cells(fewer, width)) is not None
    )


def _elide_cells(grid: Grid, width: int) -> Layout:
    """Lays the table out in one line a row.

    Optional columns are left out first; then long cells are cut in the middle, and further columns
    left out.
    """
    cap = min(ELIDED, (width - GAP) // 2)
    for count, fewer in enumerate(grid.narrower()):
        widths = [_width_of_head(name, cells) for name, cells in _columns_by_name(fewer)]
        if count >= len(set(grid.optional) & set(grid.names)):
            widths = [min(cap, wanted) for wanted in widths]
        if _total(widths) <= width:
            break
    wanted = [_width_of_head(name, cells) for name, cells in _columns_by_name(fewer)]
    lists = [at for at, cells in enumerate(fewer.columns()) if any(", " in cell for cell in cells)]
    for at in (*lists, 0):  # a list loses counts where it is cut, a tag only what others share
        widths[at] += max(0, min(width - _total(widths), wanted[at] - widths[at]))
        if at:
            taken = max(0, min(widths[0] - LEAST, wanted[at] - widths[at]))
            widths[0], widths[at] = widths[0] - taken, widths[at] + taken
    rows = tuple(
        tuple(_elide(cell, most) for cell, most in zip(row, widths, strict=True))
        for row in fewer.rows
    )
    return Layout(replace(fewer, rows=rows), tuple(widths))


def _elide(text: str, width: int) -> str:
    """Cuts the middle of a text that is too long for one line.

    A list keeps its first entries whole.
    """
    line = " ".join(_words(text))
    if _length(line) <= width:
        return line
    entries = line.split(", ")
    for count in range(len(entries) - 1, 0, -1):
        if _length(shorter := f"{', '.join(entries[:count])}, …") <= width:
            return shorter
    if width < 3:
        return "…"
    ends = _cut(line, width // 2)[0], _cut(line[::-1], width - width // 2 - 1)[0][::-1]
    return "…".join(ends)


def _wrap_cells(grid: Grid, width: int) -> Layout | None:
    """Shares the width out among columns, unless a word does not fit."""
    widths = [_minimum(name, cells, width) for name, cells in _columns_by_name(grid)]
    if _total(widths) > width:
        return None
    for wanted in (_width_of_head, _natural):  # heads are wrapped before cells
        wants = [wanted(name, cells) for name, cells in _columns_by_name(grid)]
        for cap in range(1, width + 1):  # narrow columns get what they want, wide ones share
            wider = [max(now, min(want, cap)) for now, want in zip(widths, wants, strict=True)]
            if _total(wider) > width:
                break
            widths = wider
    return Layout(grid, tuple(widths))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


# --- text ----------------------------------------------------------------------------------------


def _columns_by_name(grid: Grid) -> list[tuple[str, tuple[str, ...]]]:
    columns = grid.columns() or [()] * len(grid.names)
    return list(zip(grid.names, columns, strict=True))


def _natural(name: str, cells: Sequence[str]) -> int:
    """The width in which a column needs no line break."""
    lines = [line for cell in (name, *cells) for line in cell.splitlines()]
    return max(map(_length, lines), default=0)


def _width_of_head(name: str, cells: Sequence[str]) -> int:
    """The width in which only the head of a column needs line breaks."""
    return max([_natural("", cells), *(_length(word) for word in name.split())])


def _minimum(name: str, cells: Sequence[str], width: int) -> int:
    """The width of the longest word of a column."""
    most = (width - GAP) // 2
    return max(
        (_length(piece) for text in (name, *cells) for piece, _ in _pieces(text, most)), default=0
    )


def _words(text: str) -> list[str]:
    """Returns the words of a text; joined ones are one word, with the spaces around them."""
    return re.split(r"[ \t\r\n]+", text.strip(" \t\r\n"))


def _pieces(text: str, most: int) -> list[tuple[str, bool]]:
    """Splits a line where it may be broken, and says whether each piece continues a word.

    A piece is a word, or a part of a long one; what is longer than `most` is cut.
    """
    pieces = []
    for word in _words(text):
        parts = [word]
        for breaks in BREAKS:
            parts = [
                piece
                for part in parts
                for piece in (breaks.split(part) if _length(part) > LONG else [part])
            ]
        cut = [piece for part in parts if part for piece in _cut(part, most)]
        pieces += [(part, at > 0) for at, part in enumerate(cut)]
    return pieces


def _cut(word: str, most: int) -> list[str]:
    if _length(word) <= most:
        return [word]
    parts, part = [], ""
    for character in word:
        if part and _length(part + character) > most:
            parts.append(part)
            part = ""
        part += character
    return [*parts, part]


def _heights(cells: Sequence[str], widths: Sequence[int]) -> list[tuple[str, ...]]:
    """Breaks a row into lines, each with a part of every cell."""
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, wrapped))
    padded = [lines + [""] * (height - len(lines)) for lines in wrapped]
    return list(zip(*padded, strict=True))


def _line(parts: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    cells = []
    for part, width, right in zip(parts, widths, numeric, strict=True):
        space = " " * (width - _length(part))
        cells.append(space + part if right else part + space)
    return (" " * GAP).join(cells).replace(JOINED, " ").rstrip()


def _length(text: str) -> int:
    """Counts the columns that a text takes. Some characters take two or none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
