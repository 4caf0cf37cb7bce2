"""Builds the requests for code, and reads the files in an answer. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from judge_gym.errors import DesignError
from judge_gym.records import Draw, Message, Request, content_hash, storable
from judge_gym.suites import prompts
from judge_gym.suites.ablation import Condition
from judge_gym.suites.loader import CodeTask, Suite, read_guidelines

MAX_TOKENS = 16_384
LONGEST = 200
"""The most characters of a path."""
HEADING = re.compile(r" {0,3}(#{2,6})[ \t]+(.*)")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
CODE = re.compile(
    r"\s*(async )?def \w+\(|\s*class \w+\b.*[:{]$|\s*from \S+ import |import [\w.]+;?$"
    r"|\s*(export |const |let |var )+\w+.*[={(]|\s*(async )?function\*? ?\w*\(|.*[{};]$"
)
"""How lines of code begin or end, and lines of prose rarely do."""
DRIVE = re.compile(r"[A-Za-z]:")


# --- asking --------------------------------------------------------------------------------------


def requests(
    suite: Suite,
    tasks: Sequence[CodeTask],
    model: str,
    *,
    condition: Condition,
    series: str,
    replicates: int = 1,
) -> tuple[Request, ...]:
    """Builds the requests, by task and then by replicate."""
    if replicates < 1:
        raise DesignError(f"replicates {replicates} is no number of answers; choose 1 or more")
    system = prompts.SYSTEM + f" {prompts.WEB_SEARCH}" * condition.web_search
    shared = [prompts.FORMAT]
    if guidelines := condition.kept(suite.guidelines):
        shared.append(_guideline_text(guidelines))
    if condition.extra:
        shared.append(condition.extra)
    head = "\n\n".join(shared)
    return tuple(
        Request(
            model,
            (
                Message("system", (system,)),
                Message("user", (head, f"\n\n{prompts.TASK}\n{task.task.strip()}\n")),
            ),
            Draw(series, replicate),
            max_tokens=MAX_TOKENS,
            web_search=condition.web_search,
        )
        for task in tasks
        for replicate in range(replicates)
    )


def _guideline_text(guidelines: Mapping[str, str]) -> str:
    sections = "\n\n".join(f"## {name}\n{text}" for name, text in guidelines.items())
    return f"{prompts.GUIDELINES}\n\n{sections}"


def own_guidelines(name: str, text: str) -> Condition:
    """The condition that shows a text of the user in place of a suite's guidelines.

    Its name ends with a hash of the text, so that scores under different texts are never pooled.
    The text of a suite's own guidelines asks the same as the condition `default`.
    """
    sections = read_guidelines(text, name)
    if not sections:
        raise DesignError(f"the guidelines {name!r} are empty")
    guidelines = _guideline_text(sections)
    return Condition(f"{name}@{content_hash(guidelines)[:8]}", guidelines=False, extra=guidelines)


# --- reading -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """The files of an answer, and the reasons to refuse it."""

    files: Mapping[str, str]
    errors: tuple[str, ...] = ()
    unnamed: int = 0
    """Code blocks without a path."""
    loose_code: bool = False
    """Whether there is code outside of code blocks."""


def read_reply(text: str) -> Reply:
    """Reads the files in an answer: the first fence under each heading that is a path.

    Commentary is ignored, and the last of repeated files wins. Errors are a path that leaves the
    project folder, a truncated file, and a file that another one needs as a folder.
    """
    files: dict[str, str] = {}
    errors: list[str] = []
    heading: str | None = None
    unnamed, loose_code = 0, False
    fence, body = "", []  # type: str, list[str]
    for line in storable(text).split("\n"):
        line = line.removesuffix("\r")
        if fence:
            if _closes(line, fence):
                if heading is not None:
                    _keep(heading, body, files, errors)
                unnamed += heading is None
                heading, fence, body = None, "", []
            else:
                body.append(line)
        elif opened := FENCE.fullmatch(line):
            # An inline fence such as ```x``` opens nothing.
            fence = opened[1] if opened[1][0] not in opened[2] else ""
        elif match := HEADING.fullmatch(line):
            heading = _path_of(match[2])
        else:
            loose_code = loose_code or CODE.match(line) is not None
    if fence and heading is not None:
        errors.append(f"the file {heading!r} is cut off")
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    errors += [f"{path!r} is both a file and a folder" for path in files if path in folders]
    return Reply(files, tuple(dict.fromkeys(errors)), unnamed, loose_code)


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and mark == fence[0] * len(mark)


def _path_of(heading: str) -> str | None:
    """Finds the path that a heading names, one word or anything in backticks, if any."""
    bare = heading.strip().rstrip("#").strip().removesuffix(":").strip("*")
    if len(bare) > 2 and bare[0] == bare[-1] == "`":
        return bare[1:-1]
    return bare if bare and len(bare.split()) == 1 else None


def _keep(heading: str, body: Sequence[str], files: dict[str, str], errors: list[str]) -> None:
    try:
        path = safe_path(heading)
    except DesignError as refused:
        errors.append(refused.message)
        return
    files.pop(path, None)
    files[path] = "".join(f"{line}\n" for line in body)


def safe_path(text: str) -> str:
    """Checks that a path stays inside the project folder.

    >>> safe_path("./src/solution.py")
    'src/solution.py'
    """
    parts = [part for part in text.split("/") if part != "."]
    if text.startswith("/") or DRIVE.match(text) or "\\" in text:
        problem = "is not relative to the project folder"
    elif ".." in parts:
        problem = "leaves the project folder"
    elif not parts or not all(parts) or text.startswith("~"):
        problem = "names no file"
    elif not text.isprintable() or len(text) > LONGEST or len(text.encode()) > LONGEST:
        problem = "has characters that no path needs, or too many"
    else:
        return "/".join(parts)
    raise DesignError(f"the path {text[:LONGEST]!r} {problem}")
