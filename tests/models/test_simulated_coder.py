"""Simulated code writers: what they know, what they spoil, and that a request decides it."""

import ast
import asyncio
import re
import subprocess
import sys
from pathlib import Path
from statistics import correlation

import pytest

from judge_gym.errors import DesignError
from judge_gym.models.registry import Registry
from judge_gym.models.simulated import CODERS, SimulatedModel, profile
from judge_gym.models.simulated.coder import FAULTS, CoderProfile, spoiled
from judge_gym.records import Draw, Message, Request
from judge_gym.records.searches import split_searches
from suite_folders import known_by, write_suite

TASK = "Write value.py, which says: VALUE = {}"
TASKS = range(60)
CODE = '''"""Which is more."""

import math


def more(a: int, b: int) -> bool:
    """Whether a is more than b."""
    return a > b and a != math.inf
'''


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_suite(tmp_path_factory.mktemp("suites") / "tiny", 100)


def ask(
    model: str, task: str, replicate: int = 0, guidelines: str = "", web_search: bool = False
) -> str:
    told = f"GUIDELINES\n{guidelines}\n\n" if guidelines else ""
    messages = (Message("system", ("You write code.",)), Message("user", (f"{told}TASK\n{task}",)))
    request = Request(model, messages, Draw("0", replicate), web_search=web_search)
    return asyncio.run(SimulatedModel(model).complete(request)).text


def test_a_writer_without_faults_gives_the_reference_answer(suite: Path) -> None:
    model = f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0)}"
    said = ask(model, TASK.format(1007))
    assert re.findall(r"## (\S+)\n```\n(.*?)\n```", said, flags=re.S) == [
        ("value.py", "VALUE = 1007")
    ]


def test_every_task_of_the_shipped_suite_is_known() -> None:
    tasks = (Path(__file__).parents[2] / "src/judge_gym/suites/python").glob("*/*/TASK.md")
    said = [ask("sim:coder-strong?logic=0&lint=0", task.read_text().strip()) for task in tasks]
    assert len(said) >= 12
    assert all("# Files" in text for text in said)


def test_unknown_task_is_not_solved(suite: Path) -> None:
    assert "# Files" not in ask("sim:coder-strong", TASK.format(1007))
    assert "# Files" not in ask(f"sim:{known_by(suite)}", "Write an operating system.")


def test_a_writer_that_searches_says_so_and_makes_fewer_faults(suite: Path) -> None:
    model = f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0, prose=1, search=0.5)}"
    said = [ask(model, TASK.format(1000 + n), web_search=True) for n in range(100)]
    told = [split_searches(text) for text in said]
    assert {len(searches) for searches, _ in told} == {1}
    assert all(searches[0].query.startswith("simulated: ") for searches, _ in told)
    solved = ["# Files" in text for _, text in told]
    assert solved == [bool(searches[0].sources) for searches, _ in told]
    assert sum(solved) == pytest.approx(50, abs=15), "half of what it would have got wrong"
    helpless = model.replace("search=0.5", "search=0")
    assert "# Files" not in ask(helpless, TASK.format(1000), web_search=True)
    plain = ask(model, TASK.format(1000))
    assert split_searches(plain) == ((), plain)


def test_an_answer_depends_on_the_request_alone(suite: Path) -> None:
    model = f"sim:{known_by(suite)}"
    asked = [(TASK.format(1000 + n), replicate) for n in range(10) for replicate in range(4)]
    first, second = ([ask(model, *each) for each in asked] for _ in range(2))
    assert first == second
    assert len({first[n] for n in range(4)} | set(first)) > 10, "replicates differ now and then"


def test_shares_of_faults_are_about_as_stated(suite: Path) -> None:
    """Over 100 tasks and 5 replicates the share of prose is within three standard errors or so."""
    model = f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0, prose=0.3)}"
    said = [ask(model, TASK.format(1000 + n), r) for n in range(100) for r in range(5)]
    share = sum("# Files" not in text for text in said) / len(said)
    # Tasks are not equally hard; the mean over hardness 0 to 2 of 1 - 0.7^h.
    expected = 0.2853
    assert share == pytest.approx(expected, abs=0.08)


def test_hard_tasks_are_hard_for_every_writer(suite: Path) -> None:
    """How often each of 60 tasks fails goes together over two writers that fail alike often."""
    writers = ("coder-strong", "coder-careless")
    models = [
        f"sim:{known_by(suite, writer, **{**dict.fromkeys(FAULTS, 0), 'prose': 0.5})}"
        for writer in writers
    ]
    first, second = (
        [
            sum("# Files" not in ask(model, TASK.format(1000 + n), r) for r in range(8))
            for n in TASKS
        ]
        for model in models
    )
    assert correlation(first, second) > 0.4
    assert first != second


def test_guidelines_that_warn_of_a_fault_prevent_it_for_those_who_heed_them(suite: Path) -> None:
    model = f"sim:{known_by(suite, 'coder-strong', logic=0, lint=1, heed=1)}"
    task = TASK.format(1003)
    assert "colorsys" in ask(model, task)
    assert "colorsys" in ask(model, task, guidelines="## Colour\nPrefer blue.")
    assert "colorsys" not in ask(model, task, guidelines="## Style\nNo unused imports.")


# --- faults --------------------------------------------------------------------------------------


def test_a_syntax_fault_does_not_parse() -> None:
    with pytest.raises(SyntaxError):
        ast.parse(spoiled({"a.py": CODE}, "syntax")["a.py"])


def test_reversed_logic_parses_and_says_the_opposite() -> None:
    text = spoiled({"a.py": CODE}, "logic")["a.py"]
    space: dict[str, object] = {}
    exec(text, space)  # our own text
    assert "a <= b and a == math.inf" in text
    more = space["more"]
    assert callable(more)
    assert more(3, 2) is False


def test_a_lint_fault_works_and_is_found_by_a_linter(tmp_path: Path) -> None:
    text = spoiled({"a.py": CODE}, "lint")["a.py"]
    compile(text, "a.py", "exec")
    (tmp_path / "a.py").write_text(text)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", "a.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "F401" in done.stdout


def test_a_missing_file_is_the_last_one() -> None:
    files = {"a.py": CODE, "b.py": "B = 1\n"}
    assert spoiled(files, "missing") == {"a.py": CODE}
    assert "a.py" not in spoiled({"a.py": CODE}, "missing")


@pytest.mark.parametrize("text", ["x = 1 + 2\n", "x = 5\n", "just words\nand more\n", "word"])
def test_every_text_can_be_spoilt(text: str) -> None:
    assert spoiled({"a.txt": text}, "logic")["a.txt"] != text


# --- names ---------------------------------------------------------------------------------------


def test_writers_have_cards_as_other_simulated_models_do() -> None:
    for name, skill in CODERS.items():
        card = Registry().card(f"sim:{name}")
        assert (card.simulated, card.family, card.price(10, 10)) == (True, skill.family, 0.0)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("coder-strng", "unknown simulated model 'sim:coder-strng'"),
        ("coder-weak?tempo=1", "unknown parameter 'tempo' for sim:coder-weak?tempo=1"),
        ("coder-weak?prose=2", "prose cannot be '2'"),
        ("coder-weak?prose=0.9", "the shares of faults come to 1.4, above 1"),
        ("strict?prose=1", "unknown parameter 'prose'"),
    ],
)
def test_a_writer_that_cannot_be_is_refused(name: str, complaint: str) -> None:
    with pytest.raises(DesignError, match=re.escape(complaint)):
        profile(name)


def test_shares_are_one_for_each_fault() -> None:
    assert list(CoderProfile().shares) == list(FAULTS)
