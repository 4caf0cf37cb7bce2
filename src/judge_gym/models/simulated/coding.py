"""Simulated code writers: they look the reference answer up, and spoil it in a known way or not.

A task is known by its text. Tasks differ in how hard they are, and all writers agree on that.
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
# A writer that heeds guidelines avoids the faults that they speak of.
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


class Skill(BaseModel):
    """What a simulated code writer gets wrong: shares of answers over all tasks, hard and easy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: str = Field("sim", description="who trained it")
    syntax: float = Field(0.0, ge=0, le=1, description="share that does not parse")
    logic: float = Field(0.0, ge=0, le=1, description="share whose comparisons are reversed")
    lint: float = Field(0.0, ge=0, le=1, description="share that works, with an unused import")
    missing: float = Field(0.0, ge=0, le=1, description="share that lacks its last file")
    prose: float = Field(0.0, ge=0, le=1, description="share that talks and shows no file")
    empty: float = Field(0.0, ge=0, le=1, description="share without a word")
    heed: float = Field(0.0, ge=0, le=1, description="share avoided of what guidelines warn of")
    search: float = Field(0.5, ge=0, le=1, description="share avoided where it may search the web")
    suite: str = Field("", description="folder of a suite whose answers it knows besides ours")

    @model_validator(mode="after")
    def _at_most_all(self) -> "Skill":
        if (all_ := sum(self.shares.values())) > 1:
            raise ValueError(f"the shares of faults come to {all_:g}, above 1")
        return self

    @property
    def shares(self) -> dict[str, float]:
        """How often each fault is made."""
        return {fault: getattr(self, fault) for fault in FAULTS}


CODERS: dict[str, Skill] = {
    "coder-strong": Skill(family="sim-forge", logic=0.12, lint=0.04, heed=0.5),
    "coder-weak": Skill(family="sim-anvil", logic=0.35, syntax=0.1, missing=0.05, heed=0.2),
    "coder-careless": Skill(
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
    skill: Skill, messages: Sequence[Message], rng: random.Random, *, web_search: bool = False
) -> str:
    """Answer a request for code; what no suite of its own asks for, it does not know.

    Where it may search, it says that it did, and avoids a share of its faults; nothing is sent.
    """
    asked = messages[-1].content
    found = _TASK.search(asked)
    task = found["task"].strip() if found else ""
    answer = solution(task, skill.suite)
    if answer is None:
        unknown = "I know no answer to this."
        return with_searches([Search(_title(task))], unknown) if web_search else unknown
    guidelines = _GUIDELINES.search(asked)
    fault = _drawn(skill, task, guidelines["text"] if guidelines else "", rng)
    if not web_search:
        return _written(answer, fault)
    helped = fault is not None and rng.random() < skill.search
    sources = (f"sim://answers/{content_hash(task)[:12]}",) if helped else ()
    text = _written(answer, None if helped else fault)
    return with_searches([Search(_title(task), sources)], text)


def _title(task: str) -> str:
    """What a simulated writer types into its simulated search."""
    return f"simulated: {task.partition(chr(10))[0][:80]}"


def _written(answer: Files, fault: str | None) -> str:
    """An answer with a fault, or without, as a reply."""
    match fault:
        case "empty":
            return ""
        case "prose":
            return "The task is plain. One would write a few short functions and test them well."
    return _reply(spoiled(answer, fault) if fault else answer)


def _drawn(skill: Skill, task: str, guidelines: str, rng: random.Random) -> str | None:
    """The fault of an answer, if there is one; hard tasks have more of them, and of every kind."""
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
    """An answer with a fault: in its first Python file, else in its first file."""
    if fault == "missing":
        kept = list(files)[:-1]
        return {path: files[path] for path in kept} or {"NOTES.md": "The file follows later.\n"}
    change: dict[str, Callable[[str], str]] = {
        "syntax": lambda text: f"{text.rstrip()}\n\ndef unfinished(:\n",
        "lint": _with_unused_import,
        "logic": _reversed,
    }
    target = next((path for path in files if path.endswith(".py")), next(iter(files)))
    return {path: change[fault](text) if path == target else text for path, text in files.items()}


def _with_unused_import(text: str) -> str:
    """After the docstring, where imports stand."""
    head = re.match(r'(?:""".*?"""\s*\n)?(?:from __future__ .*\n)?', text, re.S)
    at = head.end() if head else 0
    return f"{text[:at]}import colorsys\n{text[at:]}"


def _reversed(text: str) -> str:
    """Comparisons reversed; without any, sums; without any, numbers; else the last line is gone."""
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


# --- what it knows -------------------------------------------------------------------------------


def solution(task: str, suite: str = "") -> Files | None:
    """The reference answer to a task of the suite that ships, or of a folder; None if unknown."""
    shipped = Path(str(resources.files("judge_gym") / "suites" / "python"))
    for folder in (Path(suite).absolute(), shipped) if suite else (shipped,):
        if found := _answers(folder).get(content_hash(task)):
            return dict(found)
    return None


@lru_cache(maxsize=16)
def _answers(folder: Path) -> dict[str, Files]:
    """Answers by the hash of what is asked; a folder is read once."""
    made = {}
    for file in sorted(folder.glob("*/*/TASK.*")):
        try:
            task = file.read_text(encoding="utf-8").strip()
            paths = sorted(path for path in (file.parent / "answer").rglob("*") if path.is_file())
            made[content_hash(task)] = {
                path.relative_to(file.parent / "answer").as_posix(): path.read_text("utf-8")
                for path in paths
                if path.suffix != ".pyc"
            }
        except (OSError, UnicodeDecodeError) as fault:
            raise DesignError(f"{file.parent} cannot be read: {fault}") from fault
    return made
