"""The list of faults fits the code: whoever renames code that a row names keeps the row true."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

import forked_tests
from mutants import ROOT, Copy, Mutant, RowError, judge, load, source_file, span

SOURCE = '''\
LIMIT = 3
"""Most."""


class Counter:
    """Counts — with more than ASCII in it."""

    start: int = 1

    @property
    def twice(self) -> int:
        return 2 * self.start


def twice(value: int) -> int:
    return 2 * value
'''


def mutant(function: str, old: str, new: str = "0") -> Mutant:
    return Mutant("any.py", function, old, new, ("tests/any.py",))


def test_every_row_fits_its_function_once() -> None:
    misfits = []
    for row in load():
        try:
            row.apply(source_file(row).read_text(encoding="utf-8"))
        except (OSError, RowError) as error:
            misfits.append(f"{row.file}: {error}")
    assert misfits == []


def test_every_row_names_tests_that_exist() -> None:
    missing = []
    for test in {test for row in load() for test in row.tests}:
        path, _, function = test.partition("::")
        file = ROOT / path
        name = function.partition("[")[0]
        if not file.is_file() or (name and f"def {name}(" not in file.read_text(encoding="utf-8")):
            missing.append(test)
    assert missing == []


def test_no_fault_is_listed_twice() -> None:
    rows = [(row.file, row.function, row.old, row.new) for row in load()]
    assert len(rows) == len(set(rows))


def test_every_room_has_faults() -> None:
    rooms = {
        path.name for path in (ROOT / "src/judge_gym").iterdir() if (path / "__init__.py").exists()
    }
    listed = {row.file.partition("/")[0] for row in load()}
    assert rooms - listed <= {"demo"}


@pytest.mark.parametrize(
    ("function", "old", "line"),
    [
        ("Counter.twice", "2", "        return 0 * self.start"),
        ("twice", "2", "    return 0 * value"),
        ("Counter.start", "1", "    start: int = 0"),
        ("LIMIT", "3", "LIMIT = 0"),
    ],
)
def test_a_fault_changes_the_function_that_it_names_and_nothing_else(
    function: str, old: str, line: str
) -> None:
    changed = mutant(function, old).apply(SOURCE).splitlines()
    differing = [
        new for new, before in zip(changed, SOURCE.splitlines(), strict=True) if new != before
    ]
    assert differing == [line]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (mutant("thrice", "2"), "thrice stands 0 times"),
        (mutant("Counter.twice", "3"), "stands 0 times in Counter.twice"),
        (mutant("twice", "value"), "stands 2 times in twice"),
        (mutant("twice", "2", "2"), "the same"),
        (mutant("twice", "2", "("), "does not parse"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(row: Mutant, message: str) -> None:
    with pytest.raises(RowError, match=message):
        row.apply(SOURCE)


def test_a_decorator_belongs_to_its_function() -> None:
    start, end = span(SOURCE, "Counter.twice")
    assert SOURCE[start:end].strip().startswith("@property")
    assert SOURCE[start:end].endswith("2 * self.start")


# --- running -------------------------------------------------------------------------------------


def test_tests_that_take_too_long_are_ended_with_what_they_started(tmp_path: Path) -> None:
    lines = f"sleep 60 & echo $! > {tmp_path / 'pid'}; wait"
    process = subprocess.Popen(["sh", "-c", lines], start_new_session=True)
    code, _ = forked_tests.ended(process.pid, 0.5)
    process.wait()
    assert code is None
    last = time.monotonic() + 10
    while _runs(int((tmp_path / "pid").read_text())):
        assert time.monotonic() < last
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_only_tests_that_fail_by_a_fault_catch_it(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    package = checkout / "src" / "judge_gym"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("LIMIT = 3\n")
    (checkout / "test_limit.py").write_text(
        "import judge_gym\n\n\ndef test_limit():\n    assert judge_gym.LIMIT == 3\n"
    )
    (checkout / "scripts").mkdir()
    shutil.copy(forked_tests.__file__, checkout / "scripts")
    copy = Copy(tmp_path / "copy", checkout)
    try:
        for new, verdict in {"4": "caught", "2 + 1": "NOT CAUGHT", "nothing": "broken row"}.items():
            row = Mutant("__init__.py", "LIMIT", "3", new, ("test_limit.py",))
            assert judge(copy, row).verdict == verdict
            assert copy.test(row.tests).code == 0, "the fault is taken back"
    finally:
        copy.close()
