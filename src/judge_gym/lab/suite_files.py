"""Suite results as files: a folder per eval with task, reply, output files and step logs."""

import io
import json
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from judge_gym.errors import DesignError
from judge_gym.records.responses import EvalDetail, StepRow
from judge_gym.suites.generation import safe_path

File = tuple[str, bytes]
"""A relative path and what the file holds."""
RUN_FILE = "run.json"
LONG = ("task", "steps", "files", "answer", "grader", "gaps")
"""Parts of a result that are files of their own."""


def eval_files(detail: EvalDetail, reply: str | None, *, replicates: int) -> Iterator[File]:
    """Yields the files of a result, below `category/name`.

    Args:
        detail: the result.
        reply: the model's whole answer; None where its call is in another lab's ledger.
        replicates: of the run; with several, each has a folder.
    """
    folder = _inside(detail["path"], ())
    if replicates > 1:
        folder += f"/replicate-{detail['replicate']}"
    for path, content in _files(detail, reply):
        yield f"{folder}/{path}", content


def _files(detail: EvalDetail, reply: str | None) -> Iterator[File]:
    values: Mapping[str, Any] = detail
    yield "result.json", as_json({k: v for k, v in values.items() if k not in LONG})
    yield "task.md", detail["task"].encode()
    if reply is not None:
        yield "reply.md", reply.encode()
    for number, step in enumerate(detail["steps"], 1):
        yield f"steps/{number}-{step['name']}.log", _log(step)
    for folder, files in (
        ("output", detail["files"]),
        ("answer", detail["answer"]),
        ("grader", detail["grader"]),
    ):
        for path, text in files.items():
            yield f"{folder}/{_inside(path, files)}", text.encode()
    if detail["gaps"]:
        yield "gaps.md", detail["gaps"].encode()


def as_json(value: Any) -> bytes:
    """Encodes a JSON document as the content of a file."""
    return json.dumps(value, indent=2, default=str).encode() + b"\n"


def _log(step: StepRow) -> bytes:
    tests = step["tests_collected"]
    counts = f", {step['tests_passed']} of {tests} tests passed" if tests is not None else ""
    reason = f": {step['reason']}" if step["reason"] else ""
    line = f"{step['name']} {step['status']} in {step['seconds']:.1f} s{counts}{reason}"
    return f"{line}\n\n{step['output']}".rstrip().encode() + b"\n"


def _inside(path: str, siblings: Iterable[str]) -> str:
    """Keeps a path in its folder, encoded if it cannot be a file there."""
    try:
        safe = safe_path(path)
    except DesignError:
        safe = ""
    if not safe or any(other.startswith(f"{path}/") for other in siblings):
        return f"unsafe/_{quote(path, safe='')[:200]}"
    return safe


# --- folders and archives ------------------------------------------------------------------------


def write_folder(files: Iterable[File], folder: Path) -> None:
    """Writes files below a folder, in place of those of an earlier run.

    Raises:
        DesignError: the folder exists and holds anything else.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not (folder / RUN_FILE).is_file():
            raise DesignError(f"{folder} exists and holds no suite run; choose another folder")
        shutil.rmtree(folder)
    for path, content in files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def zip_parts(files: Iterable[File]) -> Iterator[bytes]:
    """Yields a zip archive of files in parts, so that it is never held whole."""
    buffer = _Parts()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files:
            archive.writestr(path, content)
            yield buffer.take()
    yield buffer.take()


class _Parts(io.RawIOBase):
    """Keeps what is written until it is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def take(self) -> bytes:
        parts, self._parts = b"".join(self._parts), []
        return parts
