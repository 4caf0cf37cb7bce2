"""The candidate's side of a call: runs a few lines beside its code and says what they give.

A program, not a module: it is started in the candidate's sandbox, and the candidate may do to it
what it likes. All that comes of it is a value, which the grader compares with what it knows.
"""

import ast
import json
import os
import sys
from typing import Any

PLAIN = (str, int, float, bool, type(None))


def plain(value: Any) -> Any:
    """The value, if it is made of plain data alone. A tuple becomes a list."""
    if type(value) in PLAIN:
        return value
    if type(value) in (list, tuple):
        return [plain(part) for part in value]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: plain(part) for key, part in value.items()}
    raise TypeError(f"{type(value).__name__} is no plain data")


def evaluate(source: str, inputs: dict[str, Any]) -> Any:
    """Run statements and return the value of the last one, if it is an expression."""
    tree = ast.parse(source)
    names = {"__name__": "__grader__", **inputs}
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "<grader>", "exec"), names)
        return None
    tree.body.pop()
    exec(compile(tree, "<grader>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<grader>", "eval"), names)


def main() -> None:
    """Answer the one question on standard input."""
    request = json.load(sys.stdin)
    door = os.dup(1)
    os.dup2(2, 1)  # what a candidate prints is not an answer
    sys.path.insert(0, os.getcwd())
    try:
        said = {"value": plain(evaluate(request["source"], request["inputs"]))}
    except Exception as fault:  # a candidate may raise anything, and the grader is told what
        said = {"raised": [type(fault).__name__, str(fault)]}
    os.write(door, json.dumps(said).encode())


if __name__ == "__main__":
    main()
