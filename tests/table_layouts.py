"""Checks how tables are laid out; every table that a command prints in a test passes through it."""

from rich.cells import cell_len

from judge_gym.cli.layout import GAP, LONG, Grid, Layout, fit

WIDTHS = (80, 100, 120)


def check(table: Grid, width: int, *, one_line: bool = False) -> Layout:
    """Lays a table out; no line exceeds the width, and no word is broken that fits."""
    layout = fit(table, width, one_line=one_line)
    head, body = layout.lines()
    assert max(map(cell_len, head + body), default=0) <= width, "\n".join(head + body)
    if one_line:
        assert len(body) == len(table.rows)
        return layout
    shown = {word for line in head + body for word in line.split()}
    most = min(LONG, (width - GAP) // 2)
    for text in (*layout.grid.names, *(cell for row in layout.grid.rows for cell in row)):
        assert {word for word in text.split() if cell_len(word) <= most} <= shown
    return layout


def check_at_all_widths(table: Grid, width: int, *, one_line: bool = False) -> Layout:
    """Lays a table out in a width, after it was checked in those that people have."""
    for other in WIDTHS:
        check(table, other, one_line=one_line)
    return fit(table, width, one_line=one_line)
