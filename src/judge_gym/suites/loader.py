"""Loads a suite from its folder: tasks, answers, graders, guidelines, steps, and its version.

`SUITE/<NNN-category>/<NNN-name>/` contains a task; `suite.toml` has the commands that grade
answers, `kit/` the files that those commands need, `install/` a list of dependencies. An eval's
`wrong.toml` plants mistakes in its answer, with which `check_answers` requires it to fail.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from judge_gym.errors import DesignError, MissingToolError, NotFoundError, unknown
from judge_gym.records import content_hash, digest
from judge_gym.records.installation import install_command
from judge_gym.records.outcomes import FILESYSTEM, EvalSource
from judge_gym.suites import prompts
from judge_gym.suites.ablation import CONDITIONS, Condition
from judge_gym.suites.mounts import INSIDE
from judge_gym.suites.sandbox import Limits

PROTOCOL = 2
"""Raised whenever the same files would be asked or graded differently. Since 2, a condition with
`web_search` really searches."""
Pipeline = Literal["full", "static"]
PIPELINES: tuple[Pipeline, ...] = get_args(Pipeline)
COMMANDS = ("install", "build", "lint", "types", "tests")
"""The steps that are commands, in order; writing the files comes before them."""
STATIC = (FILESYSTEM, "tests")
"""The steps of a static eval."""
Difficulty = Literal["easy", "medium", "hard"]
DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)
SHIPPED = Path(__file__).parent / "python"
"""The suite that ships with judge-gym."""
NAME = re.compile(r"\d{3}-[a-z0-9]+([-_][a-z0-9]+)*")
WRONG = re.compile(r"([a-z]+)-[a-z0-9]+(-[a-z0-9]+)*")
WRONG_ANSWERS = "wrong.toml"
EDIT = {"file", "old", "new"}
"""The keys of an edit of a wrong answer."""
DIFFICULTY_LINE = re.compile(r"^difficulty\b.*\n?", flags=re.M)
SECTION = re.compile(r"^## +(.+?)\s*$", flags=re.M)
IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".DS_Store"}
EXTRA = "suites"
EXTRA_TOOLS = frozenset({"pytest", "mypy", "ruff"})
"""The tools that the extra `suites` installs."""
_GRADING = ("calling.py", "grading.py")


@dataclass(frozen=True, slots=True)
class Step:
    """A command that grades an answer, or prepares to."""

    name: str
    command: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """An answer with a planted mistake, and the first step that must fail with it."""

    name: str
    """The step, a hyphen, and what is wrong."""
    step: str
    files: Mapping[str, str]
    """The reference answer, with the mistake."""


@dataclass(frozen=True, slots=True)
class CodeTask:
    """One eval: the task, and all that is needed to grade an answer."""

    category: str
    name: str
    task: str
    answer: Mapping[str, str]
    grader: Mapping[str, str]
    gaps: str = ""
    pipeline: Pipeline = "full"
    tests: int = 1
    """The least number of collected tests with which a result counts."""
    limits: Limits = field(default_factory=Limits)
    hash: str = ""
    """The hash of every file of the eval that influences a score."""
    wrong_answers: tuple[WrongAnswer, ...] = ()
    difficulty: Difficulty | None = None
    """The authors' estimate; nothing is computed from it."""

    @property
    def path(self) -> str:
        """`category/name`."""
        return f"{self.category}/{self.name}"

    @property
    def source(self) -> EvalSource:
        """The files behind it, which explain a failure, without the wrong answers."""
        return EvalSource(self.category, self.name, self.task, self.answer, self.grader, self.gaps)


@dataclass(frozen=True)
class Suite:
    """Evals in order, and how they are asked and graded."""

    name: str
    folder: Path
    evals: tuple[CodeTask, ...]
    steps: Mapping[str, Step]
    guidelines: Mapping[str, str]
    """Text by section, in order."""
    conditions: Mapping[str, Condition]
    kit: Mapping[str, str]
    """Files that steps find under `{kit}`, such as the settings of linters."""
    dependencies: Mapping[str, str]
    """Files that the step `install` starts from."""
    tools: Mapping[str, tuple[str, ...]]
    """The command by which each tool that grades prints its version."""
    summary: str = ""
    in_process: bool = False
    """Whether its graders import the candidate's code, which could then change their verdict."""

    @cached_property
    def version(self) -> str:
        """The benchmark version: scores are compared within one version only."""
        grading_files = {name: (INSIDE / name).read_text(encoding="utf-8") for name in _GRADING}
        return digest(
            {
                "protocol": PROTOCOL,
                "prompts": {k: v for k, v in vars(prompts).items() if k.isupper()},
                "guidelines": dict(self.guidelines),
                "conditions": {k: v.key for k, v in self.conditions.items()},
                "evals": {task.path: task.hash for task in self.evals},
                "steps": {k: [v.command, v.seconds] for k, v in self.steps.items()},
                "files": [dict(self.kit), dict(self.dependencies), grading_files],
                "tools": self.tool_versions,
            }
        )[:16]

    @property
    def tool_versions(self) -> dict[str, str]:
        """The version of every tool that grades, all of which must be installed."""
        return {name: tool_version(name, words) for name, words in self.tools.items()}

    def find(self, path: str) -> CodeTask:
        """Finds an eval by `category/name`, or by a unique name."""
        matches = [task for task in self.evals if path in (task.path, task.name)]
        if len(matches) == 1:
            return matches[0]
        paths = [task.path for task in self.evals]
        raise NotFoundError(unknown("eval", path, paths, self.name), choices=paths)


@cache
def tool_version(name: str, words: tuple[str, ...]) -> str:
    """Asks a tool for its version."""
    command = [sys.executable if word == "{python}" else word for word in words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        problem = f"{' '.join(words)!r} fails; install it first"
        if name in EXTRA_TOOLS:
            problem = f"it is not installed; run {install_command(EXTRA)}"
        raise MissingToolError(f"the suite needs {name}, but {problem}") from error
    return done.stdout.strip() or done.stderr.strip()


# --- reading -------------------------------------------------------------------------------------


def load_suite(path: Path | str) -> Suite:
    """Loads the suite in a folder, or `python` for the one that ships with judge-gym."""
    folder = SHIPPED if str(path) == "python" and not Path(path).is_dir() else Path(path)
    file = folder / "suite.toml"
    if not file.is_file():
        raise NotFoundError(f"no suite in {str(path)!r}: a suite is a folder with a suite.toml")
    about = _toml(file)
    valid_keys = ("name", "summary", "in_process", "limits", "steps", "tools", "conditions")
    _refuse_unknown_keys(about, valid_keys, "key", file)
    limits = _limits(Limits(), about.get("limits", {}), file)
    name = about.get("name")
    if not isinstance(name, str) or not name.strip():
        raise DesignError(f"{file} needs a name; it has {name!r}")
    steps = _steps(about.get("steps", {}), file)
    return Suite(
        name=name,
        summary=str(about.get("summary", "")),
        in_process=about.get("in_process", False) is True,
        folder=folder,
        evals=_evals(folder, limits, steps),
        steps=steps,
        guidelines=(guidelines := _guidelines(folder / "guidelines.md")),
        conditions=_conditions(about.get("conditions", {}), guidelines, file),
        kit=_files(folder / "kit"),
        dependencies=_files(folder / "install"),
        tools={
            tool: _words(words, f"tools.{tool}", file)
            for tool, words in about.get("tools", {}).items()
        },
    )


def _evals(folder: Path, limits: Limits, steps: Iterable[str]) -> tuple[CodeTask, ...]:
    task_files = sorted(
        {path.parent for path in folder.rglob("TASK.*") if path.suffix in (".md", ".txt")}
    )
    tasks = []
    for eval_folder in task_files:
        parts = eval_folder.relative_to(folder).parts
        if len(parts) != 2:
            raise DesignError(
                f"{eval_folder} holds a task; an eval is SUITE/<NNN-category>/<NNN-name>"
            )
        for part in parts:
            if not NAME.fullmatch(part):
                raise DesignError(
                    f"{part!r} in {eval_folder} is no name; choose such as '001-basics'"
                )
        tasks.append(_eval(eval_folder, *parts, limits, steps))
    if not tasks:
        raise DesignError(f"{folder} holds no eval: no folder has a TASK.md or TASK.txt")
    for eval_folder in sorted(folder.iterdir()):
        if NAME.fullmatch(eval_folder.name) and not any(
            t.category == eval_folder.name for t in tasks
        ):
            raise DesignError(f"the category {eval_folder} holds no eval")
    return tuple(tasks)


def _eval(place: Path, category: str, name: str, limits: Limits, steps: Iterable[str]) -> CodeTask:
    file = place / "eval.toml"
    about = _toml(file) if file.is_file() else {}
    _refuse_unknown_keys(about, ("pipeline", "tests", "limits", "difficulty"), "key", file)
    pipeline = about.get("pipeline", "full")
    if pipeline not in PIPELINES:
        raise DesignError(unknown("pipeline", pipeline, PIPELINES, str(file)), choices=PIPELINES)
    tests = about.get("tests", 1)
    if type(tests) is not int or tests < 1:
        raise DesignError(f"tests {tests!r} in {file} is no number of tests; choose 1 or more")
    difficulty = about.get("difficulty")
    if difficulty not in (None, *DIFFICULTIES):
        message = unknown("difficulty", difficulty, DIFFICULTIES, str(file))
        raise DesignError(message, choices=DIFFICULTIES)
    answer, grader = _files(place / "answer"), _files(place / "grader")
    for kind, files in (("answer", answer), ("grader", grader)):
        if not files:
            raise DesignError(f"{place} has no {kind}: the folder {kind}/ is missing or empty")
    task = _one(place, "TASK")
    if not task.strip():
        raise DesignError(f"the task of {place} is empty")
    return CodeTask(
        category,
        name,
        task,
        answer,
        grader,
        gaps=_one(place, "GAPS"),
        pipeline=pipeline,
        tests=tests,
        limits=_limits(limits, about.get("limits", {}), file),
        hash=digest(_scored_files(place)),
        wrong_answers=_wrong_answers(
            place / WRONG_ANSWERS,
            answer,
            STATIC if pipeline == "static" else (FILESYSTEM, *(s for s in steps if s != "install")),
        ),
        difficulty=difficulty,
    )


def _scored_files(place: Path) -> dict[str, str]:
    """Hashes the files of an eval that influence a score.

    Wrong answers test the grader and reach no model, and a difficulty is a note for readers: if
    either changes, the version of the suite stays.
    """
    files = {k: text for k, text in _files(place).items() if k != WRONG_ANSWERS}
    if "eval.toml" in files:
        files["eval.toml"] = DIFFICULTY_LINE.sub("", files["eval.toml"])
    return {path: content_hash(text) for path, text in files.items()}


def _wrong_answers(
    file: Path, answer: Mapping[str, str], steps: Sequence[str]
) -> tuple[WrongAnswer, ...]:
    """Reads the wrong answers of `wrong.toml`: edits of the answer, by STEP-WHAT."""
    wrong_answers = []
    for name, edits in (_toml(file) if file.is_file() else {}).items():
        parts = WRONG.fullmatch(name)
        if not parts:
            raise DesignError(
                f"{name!r} in {file} is no wrong answer; choose a name such as 'tests-drops-empty'"
            )
        if parts[1] not in steps:
            raise DesignError(unknown("step", parts[1], steps, f"{name} in {file}"), choices=steps)
        files = _apply_edits(answer, edits, f"{name} in {file}")
        wrong_answers.append(WrongAnswer(name, parts[1], files))
    return tuple(wrong_answers)


def _apply_edits(answer: Mapping[str, str], edits: Any, where: str) -> dict[str, str]:
    """Replaces the one place of each edit's old text in an answer."""
    files = dict(answer)
    for edit in edits if isinstance(edits, list) else [edits]:
        if not (isinstance(edit, dict) and edit.keys() == EDIT and _texts(edit.values())):
            raise DesignError(f"{where} needs edits with the texts {', '.join(sorted(EDIT))}")
        path, old = edit["file"], edit["old"]
        if path not in files:
            raise DesignError(unknown("file of the answer", path, files, where), choices=[*files])
        if (count := files[path].count(old)) != 1:
            raise DesignError(f"the old text of {where} stands {count} times in {path}, not once")
        files[path] = files[path].replace(old, edit["new"])
    return files


def _texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _one(place: Path, stem: str) -> str:
    """Reads `STEM.md` or `STEM.txt`, if there is either."""
    paths = [path for suffix in ("md", "txt") if (path := place / f"{stem}.{suffix}").is_file()]
    if len(paths) > 1:
        raise DesignError(f"{place} has both {stem}.md and {stem}.txt; choose one")
    return _read(paths[0]) if paths else ""


def _files(folder: Path) -> dict[str, str]:
    """Reads every file below a folder by its relative path, and refuses links."""
    texts = {}
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if any(part in IGNORED for part in inner.parts):
            continue
        if path.is_symlink():
            raise DesignError(f"{path} is a link; a suite holds its files itself")
        if path.is_file():
            texts[inner.as_posix()] = _read(path)
    return texts


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DesignError(f"{path} is no UTF-8 text") from error


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError as error:
        raise DesignError(f"{path}: broken TOML: {error}") from error


def _refuse_unknown_keys(table: Any, known: Sequence[str], what: str, file: Path) -> None:
    if not isinstance(table, dict):
        raise DesignError(f"{table!r} in {file} is no table of {', '.join(known)}")
    for key in table:
        if key not in known:
            raise DesignError(unknown(what, key, known, str(file)), choices=known)


def _words(value: Any, key: str, file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        example = "a list of words, such as ['ruff', 'check']"
        raise DesignError(f"{key} in {file} is {example}; it has {value!r}")
    return tuple(value)


def _limits(base: Limits, table: Any, file: Path) -> Limits:
    names = [field.name for field in fields(Limits)]
    _refuse_unknown_keys(table, names, "limit", file)
    for name, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise DesignError(f"limit {name} in {file} is above 0; it has {value!r}")
        if name != "seconds" and not isinstance(value, int):
            raise DesignError(f"limit {name} in {file} is a whole number; it has {value!r}")
    return replace(base, **table)


def _steps(table: Any, file: Path) -> dict[str, Step]:
    _refuse_unknown_keys(table, COMMANDS, "step", file)
    if "tests" not in table:
        raise DesignError(f"{file} has no step 'tests'; steps are {', '.join(COMMANDS)}")
    steps = {}
    for name in (name for name in COMMANDS if name in table):
        _refuse_unknown_keys(table[name], ("command", "seconds"), "key", file)
        seconds = table[name].get("seconds", 60.0)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
            raise DesignError(f"seconds of step {name} in {file} is above 0; it has {seconds!r}")
        words = _words(table[name].get("command"), f"steps.{name}.command", file)
        steps[name] = Step(name, words, float(seconds))
    return steps


def _guidelines(file: Path) -> dict[str, str]:
    return read_guidelines(_read(file), str(file)) if file.is_file() else {}


def read_guidelines(text: str, where: str) -> dict[str, str]:
    """Splits a text into sections by heading. Text before the first one is `general`."""
    first, *rest = SECTION.split(text)
    general = re.sub(r"\A\s*# .*", "", first).strip()
    sections = {"general": general} if general else {}
    for name, section in zip(rest[::2], rest[1::2], strict=True):
        if name in sections:
            raise DesignError(f"two sections of {where} are called {name!r}")
        if not section.strip():
            raise DesignError(f"the section {name!r} of {where} is empty")
        sections[name] = section.strip()
    return sections


def _conditions(table: Any, guidelines: Mapping[str, str], file: Path) -> dict[str, Condition]:
    """Builds the conditions that every suite has, and the suite's own."""
    conditions = dict(CONDITIONS)
    valid_keys = ("guidelines", "without", "web_search", "extra")
    for name, about in table.items():
        _refuse_unknown_keys(about, valid_keys, f"key of the condition {name!r}", file)
        settings: dict[str, Any] = {**about, "without": tuple(about.get("without", ()))}
        condition = Condition(name, **settings)
        for section in condition.without:
            if section not in guidelines:
                raise DesignError(unknown("section", section, guidelines), choices=guidelines)
        conditions[name] = condition
    return conditions
