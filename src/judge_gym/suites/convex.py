"""Imports a folder in the layout of convex-evals as a suite.

`PATH/<NNN-category>/<NNN-name>/` has `TASK.txt`, `answer/` and `grader.test.ts`. Graders that need
a Convex backend cannot run in a sandbox; their evals are not imported, and each is reported.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.suites.loader import NAME, read_guidelines

PACKAGES = {
    "vitest": "3.2.4",
    "typescript": "5.9.3",
    "eslint": "9.39.1",
    "typescript-eslint": "8.46.4",
}
"""Pinned; all of them run on Node 20 and from 22 on."""
NODE = "Node 20, or 22 or newer"
KIT = ("run.mjs", "grader_module.ts", "eslint.config.mjs")
GRADER = "grader.test.ts"
SHARED = "../../../grader"
OFFLINE = {"getLatestOutputProjectDir", "readOutputFile", "hasOutputFile"}
"""What graders may import from the shared grader: it only reads the candidate's files."""
IMPORT = re.compile(
    r"^import\s+(?P<type>type\s)?(?P<names>[^;]*?)\s*from\s*[\"'](?P<source>[^\"']+)[\"']",
    re.M | re.S,
)
SKIPPED = {"node_modules", "_generated", ".git", "bun.lock", "bun.lockb", "package-lock.json"}
USED = {"TASK.txt", "TASK.md", "GAPS.txt", "GAPS.md", "answer", "eval.json"}
IGNORED = {"questions.json"}


@dataclass(slots=True)
class Imported:
    """What was imported, and what was not."""

    folder: Path
    evals: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Why an eval was left out, by its path."""
    notes: list[str] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)
    """What the suite installs from npm."""


def import_convex(source: Path, folder: Path) -> Imported:
    """Writes the suite of a folder of convex-evals tasks, and returns what could be mapped.

    Args:
        source: the repository, its folder `evals`, or another folder of numbered categories.
        folder: to write to; it must not exist.
    """
    evals = source / "evals" if (source / "evals").is_dir() else source
    folders = [
        eval_folder
        for eval_folder in sorted(evals.glob("*/*"))
        if (eval_folder / "TASK.txt").is_file()
    ]
    if not folders:
        raise NotFoundError(
            f"no task in {str(source)!r}: no folder <NNN-category>/<NNN-name> has a TASK.txt"
        )
    if folder.exists():
        raise ConflictError(f"{folder} exists already; choose another folder with --to")
    imported = Imported(folder, packages=dict(PACKAGES))
    for eval_folder in folders:
        path = f"{eval_folder.parent.name}/{eval_folder.name}"
        reason = _reason_not_to_run(eval_folder)
        if reason:
            imported.skipped[path] = reason
        else:
            imported.evals.append(path)
            _copy_eval(eval_folder, folder / path, imported)
    if not imported.evals:
        first = next(iter(imported.skipped.items()))
        raise DesignError(f"none of {len(folders)} evals can be imported; {first[0]}: {first[1]}")
    _write_suite(source, evals, imported)
    return imported


def _reason_not_to_run(place: Path) -> str:
    """Why an eval cannot run here, empty if it can."""
    for name in (place.parent.name, place.name):
        if not NAME.fullmatch(name):
            return f"{name!r} is no name such as '001-basics'"
    if not (place / "answer").is_dir():
        return "it has no answer/"
    if not (place / GRADER).is_file():
        return f"it has no {GRADER}"
    for line in IMPORT.finditer(_read(place / GRADER)):
        if line["source"].startswith(SHARED):
            used = {
                name for name in re.findall(r"\w+", line["names"]) if name not in ("type", "as")
            }
            if missing := sorted(used - OFFLINE):
                return f"its grader needs a Convex backend ({', '.join(missing[:3])})"
        elif line["source"].startswith("../"):
            return f"its grader imports {line['source']}, which is outside of the eval"
        elif "_generated" in line["source"] and not line["type"]:
            return "its grader imports generated code, which needs a Convex backend"
    return ""


def _copy_eval(place: Path, to: Path, imported: Imported) -> None:
    path = f"{place.parent.name}/{place.name}"
    for name in sorted(USED - {"answer", "eval.json"}):
        if (place / name).is_file():
            _write(to / name, _read(place / name))
    for file in _files(place / "answer", imported):
        _write(to / "answer" / file.relative_to(place / "answer"), _read(file))
        if file.name == "package.json":
            _add_packages(json.loads(_read(file)), path, imported)
    for file in _files(place, imported):
        inner = file.relative_to(place)
        if inner.parts[0] not in USED | IGNORED:
            _write(to / "grader" / inner, _read(file))
    about = json.loads(_read(place / "eval.json")) if (place / "eval.json").is_file() else {}
    for key, value in about.items():
        if (key, value) == ("pipeline", "static"):
            _write(to / "eval.toml", 'pipeline = "static"\n')
        elif (key, value) != ("pipeline", "module"):
            imported.notes.append(f"{path}: {key} = {value!r} of its eval.json has no counterpart")
    if (place / "questions.json").is_file():
        note = "questions.json of evals has no counterpart and is left out"
        imported.notes += [note] if note not in imported.notes else []


def _add_packages(package: Mapping[str, Any], path: str, imported: Imported) -> None:
    """Adds the packages that an answer needs to those that the suite installs."""
    for name, version in package.get("dependencies", {}).items():
        pinned = imported.packages.setdefault(name, str(version))
        if pinned != version:
            imported.notes.append(f"{path}: {name} {version} is installed as {pinned}")


def _files(folder: Path, imported: Imported) -> Iterator[Path]:
    """Yields the text files below a folder, and reports links and other files."""
    for file in sorted(folder.rglob("*")):
        if any(part in SKIPPED for part in file.relative_to(folder).parts) or file.is_dir():
            continue
        try:
            if file.is_symlink():
                raise DesignError("a link")
            _read(file)
        except (DesignError, UnicodeDecodeError):
            imported.notes.append(f"{file} is left out: it is a link or no text")
        else:
            yield file


def _write_suite(source: Path, evals: Path, imported: Imported) -> None:
    kit = resources.files("judge_gym.suites") / "convex_kit"
    name = json.dumps(imported.folder.name)
    _write(imported.folder / "suite.toml", f"name = {name}\n" + (kit / "suite.toml").read_text())
    for file in KIT:
        _write(imported.folder / "kit" / file, (kit / file).read_text())
    package = {
        "private": True,
        "type": "module",
        "dependencies": dict(sorted(imported.packages.items())),
    }
    _write(imported.folder / "install/package.json", json.dumps(package, indent=2) + "\n")
    for root in (source, evals.parent):
        guidelines = root / "runner/models/guidelines.md"
        if guidelines.is_file():
            text = _read(guidelines)
            try:
                read_guidelines(text, str(guidelines))
            except DesignError as error:
                imported.notes.append(f"the guidelines are left out: {error.message}")
            else:
                _write(imported.folder / "guidelines.md", text)
            break
    else:
        imported.notes.append("no guidelines were found at runner/models/guidelines.md")
    if not shutil.which("node") or not shutil.which("npm"):
        imported.notes.append(f"node and npm are not installed here; the suite needs {NODE}")
    if any((root / "eslint.config.mjs").is_file() for root in (source, evals.parent)):
        imported.notes.append(
            "their eslint.config.mjs is not used; edit kit/eslint.config.mjs instead"
        )


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
