"""Draws docs/images/architecture.svg: the packages of judge_gym and which of them import which.

Both are read from the sources, so the picture shows what is, not what was planned. Packages stand
above everything that they import. An arrow that follows from others is left out.
"""

import ast
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "judge_gym"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN, TITLE = 170, 46, 26, 44, 24, 28
STYLE = """
  .box { fill: #eef3fb; stroke: #4a6fa5; rx: 6px }
  .name { font: 600 14px system-ui, sans-serif; fill: #1b2a41; text-anchor: middle }
  .count { font: 11px system-ui, sans-serif; fill: #5c6b80; text-anchor: middle }
  .title { font: 13px system-ui, sans-serif; fill: #5c6b80 }
  .arrow { fill: none; stroke: #8da2c0; stroke-width: 1.3 }
  .page { fill: #ffffff }
"""


def imports() -> dict[str, set[str]]:
    """Returns the packages and top-level modules with those that each imports, at any depth."""
    rooms: dict[str, set[str]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        if parts[0] in ("__init__", "__main__") or parts[:2] == ("suites", "python"):
            continue
        names = rooms.setdefault(parts[0], set())
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                base = [node.module] if node.module != "judge_gym" else []
                targets = base or [f"judge_gym.{name.name}" for name in node.names]
            elif isinstance(node, ast.Import):
                targets = [name.name for name in node.names]
            else:
                continue
            names |= {name.split(".")[1] for name in targets if name.startswith("judge_gym.")}
        names.discard(parts[0])
    return {room: names & rooms.keys() for room, names in rooms.items()}


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """Returns the row of each package: one above the highest package that it imports."""
    found: dict[str, int] = {}

    def level(room: str) -> int:
        if room not in found:
            found[room] = 1 + max((level(other) for other in graph[room]), default=-1)
        return found[room]

    for room in graph:
        level(room)
    return found


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Returns the graph without arrows that a longer path implies."""
    reach: dict[str, set[str]] = {}
    for room in sorted(graph, key=levels(graph).__getitem__):
        reach[room] = graph[room].union(*(reach[other] for other in graph[room]))
    return {
        room: {one for one in others if not any(one in reach[other] for other in others - {one})}
        for room, others in graph.items()
    }


def svg(graph: dict[str, set[str]]) -> str:
    """Returns the picture: a row for each level, the packages that import most at the top."""
    rows: dict[int, list[str]] = {}
    for room, level in sorted(levels(graph).items()):
        rows.setdefault(level, []).append(room)
    top = max(rows)
    widest = max(len(row) for row in rows.values())
    width = 2 * MARGIN + widest * WIDTH + (widest - 1) * GAP_X
    height = 2 * MARGIN + TITLE + (top + 1) * HEIGHT + top * GAP_Y
    centre: dict[str, tuple[float, float]] = {}
    for level, row in rows.items():
        used = len(row) * WIDTH + (len(row) - 1) * GAP_X
        for number, room in enumerate(row):
            x = (width - used) / 2 + number * (WIDTH + GAP_X) + WIDTH / 2
            centre[room] = x, MARGIN + TITLE + (top - level) * (HEIGHT + GAP_Y) + HEIGHT / 2
    arrows, boxes = [], []
    for room, others in sorted(reduced(graph).items()):
        x, y = centre[room]
        for other in sorted(others):
            to_x, to_y = centre[other]
            start, end = y + HEIGHT / 2, to_y - HEIGHT / 2 - 5
            bend = (end - start) / 2
            arrows.append(
                f'<path class="arrow" marker-end="url(#head)" d="M{x:.0f} {start:.0f} '
                f'C{x:.0f} {start + bend:.0f} {to_x:.0f} {end - bend:.0f} {to_x:.0f} {end:.0f}"/>'
            )
        kind = "package" if (SOURCE / room).is_dir() else "module"
        boxes.append(
            f'<rect class="box" x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}" '
            f'width="{WIDTH}" height="{HEIGHT}"/>'
            f'<text class="name" x="{x:.0f}" y="{y - 1:.0f}">{escape(room)}</text>'
            f'<text class="count" x="{x:.0f}" y="{y + 15:.0f}">{kind}, imports '
            f"{len(graph[room])}</text>"
        )
    head = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#8da2c0"/></marker></defs>'
    )
    title = (
        f'<text class="title" x="{MARGIN}" y="{MARGIN + 6}">An arrow means "imports"; '
        "arrows that follow from others are left out.</text>"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}">',
            f"<style>{STYLE}</style>{head}",
            f'<rect class="page" width="{width}" height="{height}"/>',
            title,
            *arrows,
            *boxes,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(svg(imports()), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")
