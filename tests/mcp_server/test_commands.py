"""Where a message names a command, agents read the call to make instead."""

import ast
import re
from pathlib import Path

import pytest

from judge_gym.mcp.commands import CALLS, FOR_USERS, for_agents
from judge_gym.mcp.tools import TOOLS

SOURCE = Path(__file__).parents[2] / "src" / "judge_gym"


def messages() -> list[str]:
    """The texts of the package, without its docstrings, that name a command."""
    found = []
    for file in SOURCE.rglob("*.py"):
        if file.relative_to(SOURCE).parts[0] in ("cli", "demo", "mcp"):
            continue
        tree = ast.parse(file.read_text())
        described = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                described |= {id(part) for part in node.values}
                parts = [p.value if isinstance(p, ast.Constant) else "X" for p in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if id(node) not in described:
                    found.append(node.value)
    return [text for text in found if re.search(r"judge-gym [a-z]+\b", text)]


def test_every_command_in_a_message_has_a_call_or_is_for_the_user() -> None:
    assert {call.tool for call in CALLS.values()} <= {*TOOLS}
    named = messages()
    assert len(named) > 20
    user = rf"'judge-gym (?:{'|'.join(FOR_USERS)})[^']*' \(which the user runs\)"
    prose = r"`judge-gym [^`]*`|judge-gym (?:is|executes|upgrades|first|in)\b"
    left = [re.sub(f"{user}|{prose}", "", for_agents(text)) for text in named]
    assert [text for text in left if re.search(r"judge-gym [a-z]+\b", text)] == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("see 'judge-gym evidence list'", "see evidence_list_windows"),
        ("run its evidence step first with 'judge-gym evidence make pilot'",
         'run its evidence step first with runs_start_evidence {"tag": "pilot"}'),
        ("name one: --judge MODEL, or --allow-self", "name one: judges MODEL, or allow_self"),
        ("run 'judge-gym db up --yes'", "run 'judge-gym db up --yes' (which the user runs)"),
        ("list them with: 'judge-gym answers s --status parse_failed'",
         'list them with: experiments_list_answers {"target": "s", "status": "parse_failed"}'),
        ("plain text -- with dashes", "plain text -- with dashes"),
    ],
)  # fmt: skip
def test_a_command_becomes_a_call_with_its_arguments(message: str, expected: str) -> None:
    assert for_agents(message) == expected
