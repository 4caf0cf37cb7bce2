"""Markdown of reports, which no text of a model can break."""

import re
from collections.abc import Iterable, Sequence

from judge_gym.records import content_hash
from judge_gym.triage.results import plain

_SPECIAL = re.compile(r"([\\`*\[\]<>|~&$])|(?<!\w)_|_(?!\w)")
_OPENING = re.compile(r"\A(?:([#+=-])|(\d+)([.)])(?!\S))")
LONGEST_PART = 80


def one_line(text: str, limit: int = 0) -> str:
    """Writes a text on one line, with a mark where a limit cut it."""
    line = " ".join(plain(text).split())
    return f"{line[: limit - 1].rstrip()}…" if limit and len(line) > limit else line


def prose(text: str, limit: int = 0) -> str:
    r"""Writes a text on one line in which nothing is Markdown, even within a table.

    >>> prose("a | b\n# *c* snake_case")
    'a \\| b # \\*c\\* snake_case'
    """
    escaped = _SPECIAL.sub(lambda match: "\\" + match[0], one_line(text, limit))
    return _OPENING.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\{m[3]}", escaped)


def code(text: str, limit: int = 0) -> str:
    """Writes a code span on one line, whatever backticks the text contains.

    >>> code("a`b")
    '`` a`b ``'
    """
    line = one_line(text, limit)
    if not line:
        return ""
    ticks = _longer(line, 1)
    padding = " " if "`" in line else ""
    return f"{ticks}{padding}{line}{padding}{ticks}"


def fence(text: str) -> str:
    """Writes a code block whose fence is longer than any run of backticks inside."""
    block = plain(text).strip("\n")
    ticks = _longer(block, 3)
    return f"{ticks}\n{block}\n{ticks}"


def _longer(text: str, least: int) -> str:
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Writes a table of cells that are Markdown already. Columns of numbers align right."""
    # A bar ends a cell even within a code span.
    body = [[re.sub(r"(?<!\\)\|", r"\\|", str(cell)) for cell in row] for row in rows]
    columns = [[row[index] for row in body] for index in range(len(header))]
    numeric = [
        bool(cells) and all(re.fullmatch(r"[*\d. %]+", cell) for cell in cells) for cells in columns
    ]
    rules = ["---:" if right else "---" for right in numeric]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, rules, *body])


def path_part(text: str) -> str:
    """Makes a name one part of a path: no separators, no dots at its ends, not too long.

    >>> path_part("../meta-llama/llama 4")
    'meta-llama-llama-4'
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")
    if len(safe) > LONGEST_PART:
        safe = f"{safe[: LONGEST_PART - 9]}-{content_hash(text)[:8]}"
    return safe or "unnamed"
