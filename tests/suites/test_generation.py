"""What a model is asked, and how files are read out of whatever it answers."""

import posixpath
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_gym.errors import DesignError
from judge_gym.suites import CONDITIONS, Condition, Suite, load_suite, read_reply, requests
from judge_gym.suites.generation import safe_path
from tables import each_row


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("python")


# --- asking --------------------------------------------------------------------------------------


def test_one_request_per_task_and_replicate_in_order(suite: Suite) -> None:
    tasks = suite.evals[:2]
    made = requests(
        suite, tasks, "sim:x", condition=CONDITIONS["default"], series="s", replicates=3
    )
    assert [(one.draw.series, one.draw.index) for one in made] == [("s", n) for n in (0, 1, 2)] * 2
    assert len({one.key() for one in made}) == 6
    for one, task in zip(made[::3], tasks, strict=True):
        assert task.task.strip() in one.messages[-1].content
    with pytest.raises(DesignError, match="replicates 0"):
        requests(suite, tasks, "sim:x", condition=CONDITIONS["default"], series="s", replicates=0)


def test_conditions_differ_in_what_they_say(suite: Suite) -> None:
    def asked(condition: Condition) -> str:
        [one] = requests(suite, suite.evals[:1], "sim:x", condition=condition, series="s")
        return "\n".join(message.content for message in one.messages)

    whole = asked(CONDITIONS["default"])
    assert all(text in whole for text in suite.guidelines.values())
    assert not any(text in asked(CONDITIONS["no_guidelines"]) for text in suite.guidelines.values())
    assert "search the web" in asked(CONDITIONS["web_search"])
    without = asked(Condition("x", without=("Types",), extra="Only this once."))
    assert suite.guidelines["Types"] not in without
    assert suite.guidelines["Style"] in without
    assert without.index("Only this once.") < without.index(suite.evals[0].task.strip())


def test_a_model_never_sees_answer_grader_or_gaps(suite: Suite) -> None:
    for task in suite.evals:
        [one] = requests(suite, [task], "sim:x", condition=CONDITIONS["default"], series="s")
        text = "\n".join(message.content for message in one.messages)
        hidden = [*task.answer.values(), *task.grader.values(), task.gaps]
        assert not [part for part in hidden if part and part.strip() in text]


# --- reading -------------------------------------------------------------------------------------


@each_row(
    ("reply", "files"),
    [
        ("# Files\n## a.py\n```\nx\n```\n", {"a.py": "x\n"}),
        ("# Files\n## a.py\n```python\nx\n```", {"a.py": "x\n"}),
        ("## `src/a.py`\n~~~\nx\n~~~\n", {"src/a.py": "x\n"}),
        ("## pack/__init__.py\n```\nx\n```\n", {"pack/__init__.py": "x\n"}),
        ("## __init__.py\n```\nx\n```\n", {"__init__.py": "x\n"}),
        ("### **a.py**:\n```\nx\n```\n", {"a.py": "x\n"}),
        ("Sure!\n\n# Files\n\n## ./a.py\nHere:\n\n```py\nx\n```\nDone.\n", {"a.py": "x\n"}),
        ("## a.py\r\n```\r\nx\r\n```\r\n", {"a.py": "x\n"}),
        ("## a.py\n```\n1\n```\n## b.py\n```\n2\n```\n", {"a.py": "1\n", "b.py": "2\n"}),
        ("## a.py\n```\n1\n```\n## a.py\n```\n2\n```\n", {"a.py": "2\n"}),
        ("## a.md\n````\n```\nx\n```\n````\n", {"a.md": "```\nx\n```\n"}),
        ("## a.py\n```\n## b.py\n```\n", {"a.py": "## b.py\n"}),
        ("## a.py\n```\n```\n", {"a.py": ""}),
        ("## Some notes\n```\nrm -r x\n```\n## a.py\n```\nx\n```\n", {"a.py": "x\n"}),
        ("```\nno heading\n```\n", {}),
        ("## a.py\nno fence\n", {}),
        ("## a.py\n```inline```\n```\nx\n```\n", {"a.py": "x\n"}),
        ("## a.py\n```\n\tx  \n\n```\n", {"a.py": "\tx  \n\n"}),
        ("", {}),
    ],
)
def test_reading_is_tolerant(reply: str, files: dict[str, str]) -> None:
    read = read_reply(reply)
    assert (read.files, read.errors) == (files, ())


@each_row(
    ("reply", "told"),
    [
        ("## a.py\n```\nx\n", "is cut off"),
        ("## ../a.py\n```\nx\n```\n", "leaves the project folder"),
        ("## /a.py\n```\nx\n```\n", "is not relative"),
        ("## `C:\\a.py`\n```\nx\n```\n", "is not relative"),
        ("## a/../../b\n```\nx\n```\n", "leaves the project folder"),
        ("## a//b\n```\nx\n```\n", "names no file"),
        ("## a/\n```\nx\n```\n", "names no file"),
        ("## `a\x07b`\n```\nx\n```\n", "has characters"),
        (f"## {'a' * 300}\n```\nx\n```\n", "or too many"),
        ("## a\n```\n1\n```\n## a/b\n```\n2\n```\n", "both a file and a folder"),
    ],
)
def test_reading_is_strict_about_paths_and_ends(reply: str, told: str) -> None:
    faults = read_reply(reply).errors
    assert len(faults) == 1
    assert told in faults[0]


NAMES = st.from_regex(r"[a-z_]{1,8}(/[a-z_]{1,8}){0,3}\.[a-z]{1,3}", fullmatch=True)
LINES = st.text(
    st.characters(exclude_characters="\n\r\x00", exclude_categories=["Cs"]), max_size=30
)


@given(st.dictionaries(NAMES, st.lists(LINES, max_size=6), min_size=1, max_size=4))
def test_what_is_written_in_the_form_asked_for_is_read_back(files: dict[str, list[str]]) -> None:
    fence = "`" * 40
    folders = {
        "/".join(name.split("/")[:n]) for name in files for n in range(1, name.count("/") + 1)
    }
    reply = "# Files\n" + "".join(
        f"## {name}\n{fence}\n" + "".join(f"{line}\n" for line in lines) + f"{fence}\nSo.\n"
        for name, lines in files.items()
    )
    read = read_reply(reply)
    assert read.files == {name: "".join(f"{x}\n" for x in lines) for name, lines in files.items()}
    assert bool(read.errors) == bool(folders & files.keys())


@given(
    st.lists(
        st.sampled_from(
            [
                "# Files",
                "## a.py",
                "## ../x",
                "```",
                "````",
                "~~~",
                "x",
                "## `b c`",
                "## /e",
                "\ud800",
                "\x00",
            ]
        )
    )
)
def test_any_reply_gives_safe_paths_or_faults(lines: list[str]) -> None:
    read = read_reply("\n".join(lines))
    for path, text in read.files.items():
        assert safe_path(path) == path
        assert not path.startswith("/") and ".." not in path.split("/")
        text.encode("utf-8")


@given(st.text())
def test_a_safe_path_stays_inside(text: str) -> None:
    try:
        path = safe_path(text)
    except DesignError:
        return
    joined = posixpath.normpath(posixpath.join("/project", path))
    assert joined.startswith("/project/")
    assert "\\" not in path and path.isprintable()


@each_row("piece", ["## a\n", "```\n", "`" * 3, "#", "## " + "*" * 50 + "\n", "~~~ ", " ", "## a/"])
def test_reading_takes_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        best = 1e9
        for _ in range(3):
            started = time.process_time()
            read_reply(text)
            best = min(best, time.process_time() - started)
        return best

    small, large = seconds(100_000), seconds(800_000)
    assert large < 40 * small + 0.5  # eight times as long; a square would be 64 times
