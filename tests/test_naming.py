"""Names and docstrings of the sources in plain English: shares of the worst habits, with limits.

A change that improves a share by much lowers its limit (and raises that of comments).
"""

import ast
import tokenize
from collections.abc import Iterator
from functools import cache

from tables import each_row
from test_architecture import modules

EMPTY_NAMES = set(
    "found one known place shown given chosen kept own others asked drawn whole held made told "
    "said seen them those".split()
)
"""Participles and pronouns that name no thing; a local variable is called by a noun."""
PARTICIPLES = set(
    "found known shown given chosen kept drawn held made told taken written said seen sent left "
    "lost built bought sold done begun won meant brought thought caught spent lent hidden".split()
)
NO_PARTICIPLES = {"need", "feed", "seed", "speed", "embed"}

LIMITS = {"assignments": 0.0105, "functions": 0.052, "returns": 0.195, "semicolons": 0.09}
COMMENTS = 1.15
"""The least number of comments per 100 lines."""


@cache
def trees() -> tuple[ast.Module, ...]:
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in modules().values())


def nodes() -> Iterator[ast.AST]:
    return (node for tree in trees() for node in ast.walk(tree))


def assigned_names(node: ast.AST) -> Iterator[str]:
    """The local names that a statement, a loop or a comprehension assigns."""
    match node:
        case ast.Assign(targets=targets):
            pass
        case (
            ast.AnnAssign(target=target)
            | ast.AugAssign(target=target)
            | ast.For(target=target)
            | ast.AsyncFor(target=target)
            | ast.comprehension(target=target)
            | ast.NamedExpr(target=target)
        ):
            targets = [target]
        case ast.withitem(optional_vars=ast.expr() as target):
            targets = [target]
        case _:
            return
    for target in targets:
        # The object of `x.y = 1` and `x[y] = 1` is read, not assigned.
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def is_participle(name: str) -> bool:
    word = name.strip("_")
    regular = word.endswith("ed") and "_" not in word and word not in NO_PARTICIPLES
    return regular or word in PARTICIPLES


def first_lines() -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    texts = (ast.get_docstring(node) for node in nodes() if isinstance(node, kinds))
    return [text.splitlines()[0] for text in texts if text]


def share_of_empty_names() -> float:
    names = [name.strip("_") for node in nodes() for name in assigned_names(node)]
    return sum(name in EMPTY_NAMES for name in names) / len(names)


def share_of_participles() -> float:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = [node.name for node in nodes() if isinstance(node, kinds)]
    return sum(map(is_participle, names)) / len(names)


def share_of_returns() -> float:
    lines = first_lines()
    return sum(line.startswith("Returns") for line in lines) / len(lines)


def share_of_semicolons() -> float:
    lines = first_lines()
    return sum(";" in line for line in lines) / len(lines)


SHARES = {
    "assignments": share_of_empty_names,
    "functions": share_of_participles,
    "returns": share_of_returns,
    "semicolons": share_of_semicolons,
}


@each_row("habit", [*SHARES])
def test_bad_habits_stay_rare(habit: str) -> None:
    share = SHARES[habit]()
    assert share <= LIMITS[habit], f"{habit}: {share:.2%}"


def test_comments_say_why_often_enough() -> None:
    lines = comments = 0
    for path in modules().values():
        with tokenize.open(path) as file:
            comments += sum(
                t.type == tokenize.COMMENT for t in tokenize.generate_tokens(file.readline)
            )
        lines += len(path.read_text(encoding="utf-8").splitlines())
    assert 100 * comments / lines >= COMMENTS, f"{100 * comments / lines:.2f} per 100 lines"


@each_row(
    ("source", "names"),
    [
        ("found = 1", ["found"]),
        ("rows[found] = found.x = 2", []),
        ("for a, (known, *b) in c: pass", ["a", "known", "b"]),
        ("with open(x) as file: y = [one for one in z]", ["file", "one", "y"]),
        ("if (kept := f()): kept += 1", ["kept", "kept"]),
        ("given: int = 3", ["given"]),
    ],
)
def test_names_are_those_that_are_assigned(source: str, names: list[str]) -> None:
    assigned = [name for node in ast.walk(ast.parse(source)) for name in assigned_names(node)]
    assert sorted(assigned) == sorted(names)


@each_row(
    ("name", "expected"),
    [
        ("_shown", True),
        ("wrapped", True),
        ("feed", False),
        ("_wrap_cells", False),
        ("shown_rows", False),
    ],
)
def test_a_function_that_is_named_by_one_participle_is_seen(name: str, expected: bool) -> None:
    assert is_participle(name) is expected
