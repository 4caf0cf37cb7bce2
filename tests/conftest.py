"""What tests share: a lab on its own file, a small study, scripted models."""

import gc
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Generator, Iterator
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml
from _pytest.doctest import DoctestModule
from hypothesis import settings

import postgres
from judge_gym.cli import display, main
from judge_gym.lab import Lab
from judge_gym.models import ModelCard
from judge_gym.models.local_servers import model_file_here
from judge_gym.models.model_card import Limits
from judge_gym.records import Completion, Request
from judge_gym.store import Store
from shortcuts import take_shortcuts
from stores import adopt, blank
from table_layouts import check_at_all_widths

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from browser_pages import Visit
    from lab_server import ServedLab

# The same few examples each time: a change is judged by what it changes, and a busy machine is no
# fault. `make fuzz` tries others, and more.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("fuzz", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
# A shell that starts the tests in the background ignores Ctrl-C for them; some of them send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# All processes share what one of them compiled, whatever the environment prefers.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

take_shortcuts()
gc.disable()  # until the tests are collected

SOURCES = Path(__file__).parents[1] / "src"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
REQUIRE_ALL = os.environ.get("REQUIRE") == "all"
TEXTS = {
    "calm": "The budget was adopted unanimously and published in full, as scheduled.",
    "tense": "The regulator warned two stations and fined one; a bill is under review.",
    "harsh": "Judges were dismissed by decree, an editor was detained and a newspaper was banned.",
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests reach loopback and nothing else."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in LOOPBACK:
            raise AssertionError(f"a test reached for {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test spends money, whatever the environment holds."""
    for name in [*os.environ]:
        if name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile that a command sets for its process ends with its test."""
    monkeypatch.setenv("JUDGE_GYM_PROFILE", "dev")
    monkeypatch.delenv("JUDGE_GYM_PROFILE")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs tests of the store or of a lab that are marked `postgres` on both databases."""
    if metafunc.definition.get_closest_marker("postgres"):
        used = [name for name in ("store", "lab") if name in metafunc.fixturenames]
        if used:  # a lab of a module's own is one on the store
            metafunc.parametrize(used[0], postgres.EACH_DATABASE, indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store on a database of its own."""
    opened = Store.open(_new_database(request, tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """A lab on a database of its own."""
    with Lab.open(_new_database(request, tmp_path)) as opened:
        yield opened


def _new_database(request: pytest.FixtureRequest, folder: Path) -> str:
    on_server = getattr(request, "param", "sqlite") == "postgres"
    return postgres.fresh_url() if on_server else blank(folder / "lab.db")


def study_file(folder: Path, name: str = "study.yaml", **changes: Any) -> Path:
    """Writes a small valid study, with any key replaced, and the evidence that it names."""
    lines = [f'{{"title": "{title}", "text": "{text}"}}' for title, text in TEXTS.items()]
    (folder / "evidence.jsonl").write_text("\n".join(lines))
    study: dict[str, Any] = {
        "study": "small",
        "seed": 3,
        "samples": 2,
        "evidence": {"here": {"files": "evidence.jsonl", "window": {"country": "Valdoria"}}},
        "protocol": "contested-concepts",
        "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "here"}],
        "judges": ["sim:balanced", "sim:strict"],
        "design": {"evidence.editor": "sim:editor", "rubric.critic": "sim:critic"},
    }
    study.update(changes)
    path = folder / name
    path.write_text(
        yaml.safe_dump({k: v for k, v in study.items() if v is not None}, sort_keys=False)
    )
    return path


@pytest.fixture
def write_study(tmp_path: Path) -> Callable[..., Path]:
    """Writes a study into the folder of the test, as `study_file` does."""
    return partial(study_file, tmp_path)


# --- stores --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database, to be copied for every example of a property."""
    file = tmp_path_factory.mktemp("template") / "lab.db"
    blank(file)
    return file


# --- the command line ----------------------------------------------------------------------------


class CommandResult(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, if it is one JSON document and nothing else; NaN is no JSON."""
        return json.loads(self.out, parse_constant=pytest.fail)


Call = Callable[..., CommandResult]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Calls a verb in a folder of its own; tables that it prints must fit common terminals."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(display, "fit", check_at_all_widths)
    monkeypatch.delenv("JUDGE_GYM_DATABASE_URL", raising=False)

    def run(*words: str | Path) -> CommandResult:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return CommandResult(end.value.code, captured.out, captured.err)

    return run


@cache
def _finished() -> dict[str, bytes]:
    """Returns the files of a folder in which the small study was run."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = study_file(folder)
        database = folder / ".judge-gym" / "lab.db"
        with Lab.open(blank(database)) as lab:
            assert lab.runs.run(path).status == "complete"
        files = [path, folder / "evidence.jsonl", database, database.with_suffix(".dbos.db")]
        return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.fixture
def finished(call: Call, tmp_path: Path) -> Path:
    """The file of the small study in a folder in which it was run; `call` works there."""
    for name, content in _finished().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    adopt(f"sqlite:///{tmp_path / '.judge-gym' / 'lab.db'}")
    return tmp_path / "study.yaml"


OnlySections = Callable[..., None]


@pytest.fixture
def only_sections(monkeypatch: pytest.MonkeyPatch) -> OnlySections:
    """Leaves these sections alone in reports, with facts and summary: a whole one takes seconds."""
    from judge_gym.analysis import report

    def choose(*sections: Any) -> None:
        monkeypatch.setattr(report, "QUESTIONS", {"Asked": sections} if sections else {})

    return choose


def succeed(said: CommandResult) -> CommandResult:
    """What a command said that ended well."""
    assert said.code == 0, said.err
    assert "Traceback" not in said.err
    return said


# --- pages in a browser --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A browser; while it is open no test of its process can run a loop of its own."""
    from browser_pages import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(browser: "Browser", lab: "ServedLab") -> Iterator["Page"]:
    """A page of the lab that the tests of a module share."""
    from browser_pages import open_page

    with open_page(browser, lab) as opened:
        yield opened


@pytest.fixture
def visit(browser: "Browser", lab: "ServedLab") -> Iterator["Visit"]:
    """A page of that lab for one test."""
    from browser_pages import Visit

    made = Visit(browser, lab)
    yield made
    made.close()


# --- models --------------------------------------------------------------------------------------


class Scripted:
    """Models that answer as a function says, and keep what they are asked."""

    def __init__(self, answer: Callable[[Request], Completion | str | Exception]) -> None:
        self.answer = answer
        self.asked: list[Request] = []
        self.id = "sim:scripted"

    hosted_limits = Limits()

    def open(self, id: str) -> "Scripted":
        return self

    def card(self, id: str) -> ModelCard:
        provider, _, name = id.partition(":")
        return ModelCard(id, provider, name, family="scripted", simulated=True)

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        said = self.answer(request)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, str):
            return Completion(said, "stop", request.model, 10, 5, 0.001)
        return said


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[Any], list[Any]]:
    """Looks for examples in docstrings of the sources alone, since tests have none."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


class SourcesWithExamples:
    """Leaves sources without an example unread; pytest would import each of them in each process.

    A plugin, since the hooks of this file do not apply to files beside its folder.
    """

    @staticmethod
    def pytest_ignore_collect(collection_path: Path) -> bool | None:
        is_source = collection_path.suffix == ".py" and SOURCES in collection_path.parents
        return True if is_source and b">>>" not in collection_path.read_bytes() else None


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SourcesWithExamples())


def pytest_xdist_auto_num_workers() -> int:
    """Two processes more than there are processors for us, since many tests wait for others."""
    ours = getattr(os, "sched_getaffinity", None)  # only Linux tells
    return (len(ours(0)) if ours else os.cpu_count() or 1) + 2


def pytest_collection_finish() -> None:
    """Collects garbage again, but less often, and never looks at what was imported before."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@cache
def _missing(tool: str) -> str:
    """Returns what is missing of a program, or of the model `smollm2`; empty if it is here."""
    if tool == "smollm2":
        row = model_file_here(tool)
        return "" if row["ready"] else f"the model {tool} is not here: {row['to_use_it']}"
    return "" if shutil.which(tool) else f"{tool} is not installed"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, or with REQUIRE=all fail, what needs a program or a model that is not there."""
    for item in items:
        for mark in item.iter_markers("needs"):
            if (missing := _missing(mark.args[0])) and not REQUIRE_ALL:
                item.add_marker(pytest.mark.skip(reason=missing))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """With REQUIRE=all a missing program or model is a failure."""
    postgres.allowed = item.get_closest_marker("slow") is not None
    for mark in item.iter_markers("needs"):
        if (missing := _missing(mark.args[0])) and REQUIRE_ALL:
            pytest.fail(f"{missing}, and REQUIRE=all asks for it")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name what was skipped for want of a program, and count it."""
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    for reason in sorted(set(reasons)):
        terminalreporter.write_line(f"skipped {reasons.count(reason)}: {reason}")
