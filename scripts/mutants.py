"""Measures what the tests notice: applies the faults of `tests/mutants.toml` one at a time.

Each fault replaces a text in one function of `src/judge_gym` (or of the simulations, which decide
whether estimators are right), as a careless edit would. The tests
that the row names must then fail. Faults are applied to a throw-away copy of the checkout, never to
the checkout itself; the copy is imported by the tests and by the processes that they start.
`forked_tests.py` runs them.
"""

import argparse
import ast
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "tests" / "mutants.toml"
PACKAGE, TESTS = Path("src") / "judge_gym", "tests"
KEYS = {"file", "function", "old", "new", "test", "note"}
TIMEOUT = 600.0
"""Seconds for each named test, after which a run is ended; it has then noticed nothing."""
NOT_COPIED = (".git", ".venv*", ".mypy_cache", ".ruff_cache", ".pytest_cache", "demo-out", "*.egg")
PYTEST = (
    *("-x", "-q", "-n", "0", "-m", "", "-p", "no:cacheprovider", "--no-header", "--tb=line"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of libraries that are imported before
)
TESTS_FAILED = 1
"""Pytest's exit code where tests ran and some failed; what does not even import is another."""

Verdict = Literal["caught", "NOT CAUGHT", "broken row"]


class RowError(Exception):
    """A row does not fit the code: what it names is missing, or is there more than once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault, and the tests that must notice it."""

    file: str
    """Below `src/judge_gym`, or from `tests/` on."""
    function: str
    """Its qualified name, such as `Ledger.record`, or that of a constant."""
    old: str
    new: str
    tests: tuple[str, ...]
    """Test files or node ids, relative to the checkout."""
    note: str = ""

    @property
    def name(self) -> str:
        """The row in one line."""
        change = " ".join(f"{self.old!r} -> {self.new!r}".split())
        return f"{self.file}::{self.function}: {change}"

    def apply(self, source: str) -> str:
        """Returns the source text with the fault in it."""
        start, end = span(source, self.function)
        count = source.count(self.old, start, end)
        if count != 1:
            raise RowError(f"{self.old!r} stands {count} times in {self.function}, not once")
        if self.old == self.new:
            raise RowError("old and new text are the same")
        place = source.index(self.old, start, end)
        mutated = source[:place] + self.new + source[place + len(self.old) :]
        try:
            ast.parse(mutated)
        except SyntaxError as error:
            raise RowError(f"the new text does not parse: {error}") from error
        return mutated


def load(path: Path = ROWS) -> list[Mutant]:
    """Reads the list."""
    return [_mutant(row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]]


def _mutant(row: dict[str, Any]) -> Mutant:
    if unknown := row.keys() - KEYS:
        raise RowError(f"unknown keys {sorted(unknown)} in {row}; choose from {sorted(KEYS)}")
    tests = row["test"]
    return Mutant(
        row["file"],
        row["function"],
        row["old"],
        row["new"],
        (tests,) if isinstance(tests, str) else tuple(tests),
        row.get("note", ""),
    )


def source_file(mutant: Mutant, root: Path = ROOT) -> Path:
    """The file that a fault is applied to."""
    below = root if Path(mutant.file).parts[0] == TESTS else root / PACKAGE
    return below / mutant.file


# --- where a function stands ---------------------------------------------------------------------


def span(source: str, qualified: str) -> tuple[int, int]:
    """Returns where the source of a function, class or constant begins and ends."""
    nodes: Iterable[ast.AST] = _parsed(source).body
    found: ast.stmt | None = None
    for name in qualified.split("."):
        matching = [node for node in _statements(nodes) if name in _names(node)]
        if len(matching) != 1:
            raise RowError(f"{qualified} stands {len(matching)} times in the file, not once")
        found = matching[0]
        nodes = ast.iter_child_nodes(found)
    assert found is not None
    lines = source.splitlines(keepends=True)
    first = min([found.lineno, *(one.lineno for one in getattr(found, "decorator_list", []))])
    assert found.end_lineno is not None and found.end_col_offset is not None
    start = sum(map(len, lines[: first - 1]))
    if first == found.lineno:
        start += _characters(lines[first - 1], found.col_offset)
    end = sum(map(len, lines[: found.end_lineno - 1]))
    return start, end + _characters(lines[found.end_lineno - 1], found.end_col_offset)


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _characters(line: str, offset: int) -> int:
    """How many characters so many bytes of a line are: `ast` counts bytes."""
    return len(line.encode()[:offset].decode())


def _statements(nodes: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """Statements of a block, with those behind an `if`, `try` or `with`."""
    for node in nodes:
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While | ast.ExceptHandler):
            yield from _statements(ast.iter_child_nodes(node))


def _names(node: ast.stmt) -> list[str]:
    """What a statement defines or assigns to."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign():
            named = [name for target in node.targets for name in ast.walk(target)]
        case ast.AnnAssign():
            named = [node.target]
        case _:
            return []
    return [one.id for one in named if isinstance(one, ast.Name)]


# --- running -------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """How a run of tests ended."""

    code: int | None
    """Pytest's exit code; None where it took too long."""
    seconds: float
    """Of CPU, without those of servers."""
    output: str


class Copy:
    """A throw-away copy of the checkout, in which one fault at a time is applied."""

    def __init__(self, folder: Path, checkout: Path = ROOT) -> None:
        self.root = folder
        shutil.copytree(checkout, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
        self._changes = 0
        self._runner = subprocess.Popen(
            [sys.executable, "scripts/forked_tests.py"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def close(self) -> None:
        """Ends what runs its tests."""
        self._runner.communicate()

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Applies a fault, and takes it back."""
        file = source_file(mutant, self.root)
        if not file.exists():
            raise RowError(f"there is no file {mutant.file}")
        source = file.read_text(encoding="utf-8")
        self._write(file, mutant.apply(source))
        try:
            yield
        finally:
            self._write(file, source)

    def _write(self, file: Path, source: str) -> None:
        file.write_text(source, encoding="utf-8")
        # Compiled code is looked up by the second and the size of a change: no two may share both.
        self._changes += 1
        changed = time.time() + 10 * self._changes
        os.utime(file, (changed, changed))

    def test(self, tests: Sequence[str]) -> Ran:
        """Runs tests of the copy."""
        log = self.root / "mutants.log"
        request = {"words": [*PYTEST, *tests], "log": str(log), "seconds": TIMEOUT * len(tests)}
        assert self._runner.stdin and self._runner.stdout
        print(json.dumps(request), file=self._runner.stdin, flush=True)
        code, seconds = json.loads(self._runner.stdout.readline())
        return Ran(code, seconds, log.read_text(encoding="utf-8", errors="replace"))


class Judged(NamedTuple):
    """What came of one fault."""

    mutant: Mutant
    verdict: Verdict
    seconds: float
    detail: str = ""


def judge(copy: Copy, mutant: Mutant) -> Judged:
    """Applies one fault and runs its tests."""
    try:
        with copy.mutated(mutant):
            ran = copy.test(mutant.tests)
    except RowError as error:
        return Judged(mutant, "broken row", 0.0, str(error))
    last = (ran.output.strip().splitlines() or [""])[-1]
    if ran.code == TESTS_FAILED and (failed := _failed(ran.output)):
        return Judged(mutant, "caught", ran.seconds, failed)
    if ran.code is None:
        return Judged(mutant, "NOT CAUGHT", ran.seconds, f"no end within {TIMEOUT:.0f} s a test")
    verdict: Verdict = "NOT CAUGHT" if ran.code == 0 else "broken row"
    return Judged(mutant, verdict, ran.seconds, last)


def _failed(output: str) -> str:
    """The first test that failed."""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    return found[1] if found else ""


@contextmanager
def copies(count: int) -> Iterator["queue.Queue[Copy]"]:
    """So many copies of the checkout, which are removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="judge-gym-mutants-") as folder:
        made = [Copy(Path(folder) / str(number)) for number in range(count)]
        free: queue.Queue[Copy] = queue.Queue()
        for copy in made:
            free.put(copy)
        try:
            yield free
        finally:
            for copy in made:
                copy.close()


def broken_modules(
    free: "queue.Queue[Copy]", pool: ThreadPoolExecutor, mutants: Sequence[Mutant]
) -> set[str]:
    """Runs what the rows name without any fault; returns the test modules that do not pass."""
    named: dict[str, list[str]] = {}
    for test in dict.fromkeys(test for mutant in mutants for test in mutant.tests):
        named.setdefault(module_of(test), []).append(test)

    def run(tests: Sequence[str]) -> Ran:
        with held(free) as copy:
            return copy.test(tests)

    broken = set()
    for module, ran in zip(named, pool.map(run, named.values()), strict=True):
        print(f"{'passes' if ran.code == 0 else 'BROKEN':10} {ran.seconds:5.1f} s  {module}")
        if ran.code != 0:
            broken.add(module)
            print(
                ran.output[-2000:] if ran.code else f"no end within {TIMEOUT:.0f} s a test",
                flush=True,
            )
    return broken


def module_of(test: str) -> str:
    """The file of a test."""
    return test.partition("::")[0]


@contextmanager
def held(free: "queue.Queue[Copy]") -> Iterator[Copy]:
    """A copy that nobody else uses meanwhile."""
    copy = free.get()
    try:
        yield copy
    finally:
        free.put(copy)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the list; returns 1 where a fault was not caught or a row is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PATTERN", help="rows that match a regex")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="runs at a time")
    given = parser.parse_args(words)
    # Processes in the background of a shell ignore it, and so would the tests of Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    mutants = [one for one in load() if re.search(given.only, f"{one.name} {one.tests}")]
    started = time.monotonic()
    counts: dict[Verdict, int] = {"caught": 0, "NOT CAUGHT": 0, "broken row": 0}
    with copies(given.jobs) as free, ThreadPoolExecutor(given.jobs) as pool:
        broken = broken_modules(free, pool, mutants)

        def run(mutant: Mutant) -> Judged:
            if found := broken.intersection(map(module_of, mutant.tests)):
                return Judged(mutant, "broken row", 0.0, f"without any fault: {sorted(found)[0]}")
            with held(free) as copy:
                return judge(copy, mutant)

        for judged in pool.map(run, mutants):
            counts[judged.verdict] += 1
            print(f"{judged.verdict:10} {judged.seconds:5.1f} s  {judged.mutant.name}")
            print(f"{'':20}{judged.detail}", flush=True)
    minutes = (time.monotonic() - started) / 60
    print(f"{', '.join(f'{n} {what}' for what, n in counts.items())}; {minutes:.1f} minutes")
    return 0 if counts["caught"] == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
