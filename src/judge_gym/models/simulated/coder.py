"""Simulated coders: they look up the reference answer, and may put a known fault into it.

A task is recognised by its text. Tasks differ in difficulty, equally for all coders.
"""

import io
import random
import re
import tokenize
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from judge_gym.errors import DesignError
from judge_gym.records import Message, content_hash
from judge_gym.records.searches import Search, with_searches

FAULTS = ("syntax", "logic", "lint", "missing", "prose", "empty")
_TASK = re.compile(r"(?:\A|\n\n)TASK\n(?P<task>.*)\Z", re.S)
_GUIDELINES = re.compile(r"(?:\A|\n\n)GUIDELINES\n(?P<text>.*?)(?=\n\nTASK\n)", re.S)
# A coder that follows guidelines avoids the faults that they mention.
_WARNINGS = {
    "syntax": r"\b(syntax|parse|compile)",
    "logic": r"\b(edge case|boundar|off.by.one|empty input)",
    "lint": r"\b(unused|lint|ruff)",
    "missing": r"\b(every file|all files|another file)",
    "prose": r"\b(form|format|heading|fence)",
    "empty": r"\balways answer",
}
_SWAPS = (
    {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"},
    {"+": "-", "-": "+", "*": "+"},
)
Files = dict[str, str]


class CoderProfile(BaseModel):
    """The faults of a simulated coder, as shares of its answers over all tasks."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    family: str = Field("sim", description="maker")
    syntax: float = Field(0.0, ge=0, le=1, description="share that does not parse")
    logic: float = Field(0.0, ge=0, le=1, description="share whose comparisons are reversed")
    lint: float = Field(0.0, ge=0, le=1, description="share that works, with an unused import")
    missing: float = Field(0.0, ge=0, le=1, description="share that lacks its last file")
    prose: float = Field(0.0, ge=0, le=1, description="share of prose without a file")
    empty: float = Field(0.0, ge=0, le=1, description="share of empty answers")
    heed: float = Field(
        0.0, ge=0, le=1, description="share of faults avoided that guidelines warn of"
    )
    search: float = Field(0.5, ge=0, le=1, description="share of faults avoided with web search")
    suite: str = Field("", description="folder of another suite whose answers it knows")

    @model_validator(mode="after")
    def _at_most_all(self) -> "CoderProfile":
        if (all_ := sum(self.shares.values())) > 1:
            raise ValueError(f"the shares of faults come to {all_:g}, above 1")
        return self

    @property
    def shares(self) -> dict[str, float]:
        """The share of each fault."""
        return {fault: getattr(self, fault) for fault in FAULTS}


CODERS: dict[str, CoderProfile] = {
    "coder-strong": CoderProfile(family="sim-forge", logic=0.12, lint=0.04, heed=0.5),
    "coder-weak": CoderProfile(family="sim-anvil", logic=0.35, syntax=0.1, missing=0.05, heed=0.2),
    "coder-careless": CoderProfile(
        family="sim-bellows",
        lint=0.2,
        missing=0.08,
        prose=0.08,
        empty=0.04,
        syntax=0.05,
        logic=0.05,
        heed=0.9,
    ),
}


def write(
    skill: CoderProfile,
    messages: Sequence[Message],
    rng: random.Random,
    *,
    web_search: bool = False,
) -> str:
    """Answers a request for code; it knows only the tasks of its suites.

    With web search it reports a simulated search and avoids a share of its faults.
    """
    prompt = messages[-1].content
    match = _TASK.search(prompt)
    task = match["task"].strip() if match else ""
    answer = solution(task, skill.suite)
    if answer is None:
        unknown = "I know no answer to this."
        return with_searches([Search(_title(task))], unknown) if web_search else unknown
    guidelines = _GUIDELINES.search(prompt)
    fault = _drawn(skill, task, guidelines["text"] if guidelines else "", rng)
    if not web_search:
        return _written(answer, fault)
    helped = fault is not None and rng.random() < skill.search
    sources = (f"sim://answers/{content_hash(task)[:12]}",) if helped else ()
    text = _written(answer, None if helped else fault)
    return with_searches([Search(_title(task), sources)], text)


def _title(task: str) -> str:
    """Returns the query of a simulated search."""
    return f"simulated: {task.partition(chr(10))[0][:80]}"


def _written(answer: Files, fault: str | None) -> str:
    """Returns an answer with a fault, or without, as a reply."""
    match fault:
        case "empty":
            return ""
        case "prose":
            return "The task is plain. One would write a few short functions and test them well."
    return _reply(spoiled(answer, fault) if fault else answer)


def _drawn(skill: CoderProfile, task: str, guidelines: str, rng: random.Random) -> str | None:
    """Draws the fault of an answer, if any; hard tasks have more of every kind."""
    shares = {
        fault: share * (1 - skill.heed * bool(re.search(_WARNINGS[fault], guidelines, re.I)))
        for fault, share in skill.shares.items()
    }
    hardness = 2 * int(content_hash(task)[:8], 16) / 0xFFFFFFFF
    if rng.random() >= 1 - (1 - sum(shares.values())) ** hardness:
        return None
    return rng.choices(list(shares), list(shares.values()))[0]


def _reply(files: Mapping[str, str]) -> str:
    parts = ["Here is my solution.", "# Files"]
    for path, text in files.items():
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
        parts.append(f"## {path}\n{fence}\n{text.rstrip(chr(10))}\n{fence}")
    return "\n\n".join(parts) + "\n"


# --- faults --------------------------------------------------------------------------------------


def spoiled(files: Files, fault: str) -> Files:
    """Returns an answer with a fault in its first Python file, else in its first file."""
    if fault == "missing":
        paths = list(files)[:-1]
        return {path: files[path] for path in paths} or {"NOTES.md": "The file follows later.\n"}
    change: dict[str, Callable[[str], str]] = {
        "syntax": lambda text: f"{text.rstrip()}\n\ndef unfinished(:\n",
        "lint": _with_unused_import,
        "logic": _reversed,
    }
    target = next((path for path in files if path.endswith(".py")), next(iter(files)))
    return {path: change[fault](text) if path == target else text for path, text in files.items()}


def _with_unused_import(text: str) -> str:
    """Adds an unused import after the docstring."""
    head = re.match(r'(?:""".*?"""\s*\n)?(?:from __future__ .*\n)?', text, re.S)
    at = head.end() if head else 0
    return f"{text[:at]}import colorsys\n{text[at:]}"


def _reversed(text: str) -> str:
    """Reverses comparisons, else sums, else changes numbers, else removes the last line."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        tokens = []
    for swaps in _SWAPS:
        if any(token.string in swaps for token in tokens if token.type == tokenize.OP):
            return _replaced(text, tokens, tokenize.OP, partial(_swapped, swaps))
    if any(token.type == tokenize.NUMBER for token in tokens):
        return _replaced(text, tokens, tokenize.NUMBER, lambda old: f"(1 + {old})")
    return "".join(line + "\n" for line in text.rstrip().split("\n")[:-1]) or "?\n"


def _swapped(swaps: Mapping[str, str], old: str) -> str:
    return swaps.get(old, old)


def _replaced(
    text: str, tokens: Sequence[tokenize.TokenInfo], kind: int, new: Callable[[str], str]
) -> str:
    lines = text.splitlines(keepends=True)
    for token in reversed([token for token in tokens if token.type == kind]):
        row, start, end = token.start[0] - 1, token.start[1], token.end[1]
        lines[row] = lines[row][:start] + new(token.string) + lines[row][end:]
    return "".join(lines)


# --- known answers -------------------------------------------------------------------------------


def solution(task: str, suite: str = "") -> Files | None:
    """Returns the reference answer to a task of the shipped suite or of a folder, if known."""
    shipped = Path(str(resources.files("judge_gym") / "suites" / "python"))
    for folder in (Path(suite).absolute(), shipped) if suite else (shipped,):
        if answer := _answers(folder).get(content_hash(task)):
            return dict(answer)
    return None


@lru_cache(maxsize=16)
def _answers(folder: Path) -> dict[str, Files]:
    """Returns a suite's answers by the hash of their task; a folder is read once."""
    answers = {}
    for file in sorted(folder.glob("*/*/TASK.*")):
        try:
            task = file.read_text(encoding="utf-8").strip()
            paths = sorted(path for path in (file.parent / "answer").rglob("*") if path.is_file())
            answers[content_hash(task)] = {
                path.relative_to(file.parent / "answer").as_posix(): path.read_text("utf-8")
                for path in paths
                if path.suffix != ".pyc"
            }
        except (OSError, UnicodeDecodeError) as error:
            raise DesignError(f"{file.parent} cannot be read: {error}") from error
    return answers
