"""The docs are kept true: generated pages are current, links resolve, commands run."""

import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import typer.main

import formats_page
import measures_page
from conftest import Call, succeed
from docs_site import NAV
from judge_gym.cli import reference
from judge_gym.models.simulated import CODERS, PRESETS
from tables import each_row

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> list[str]:
    """The judge-gym commands in the code blocks of a page, without comments."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), flags=re.S | re.M)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    return [line.split("#")[0].strip() for line in lines if line.startswith("judge-gym ")]


def test_the_axes_page_is_up_to_date() -> None:
    assert (ROOT / "docs/axes.md").read_text() == reference.axes_page(), "run: make docs"


def test_the_commands_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    # Commands that other tests called have added their names of --help to themselves.
    monkeypatch.setattr(typer.main, "get_command", inspect.unwrap(typer.main.get_command))
    assert (ROOT / "docs/cli.md").read_text() == reference.cli_page(), "run: make docs"


def test_the_table_of_measures_is_up_to_date() -> None:
    text = measures_page.PAGE.read_text(encoding="utf-8")
    assert text == measures_page.page(text), "run: make docs"


def test_the_table_of_formats_is_up_to_date() -> None:
    text = formats_page.PAGE.read_text(encoding="utf-8")
    assert text == formats_page.page(text), "run: make docs"


def prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.S)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.M)
    words = [re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-") for text in words}


@each_row("page", [*PAGES, ROOT / "AGENTS.md"], ids=lambda page: page.name)
def test_every_link_points_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page)):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_menu_of_the_site() -> None:
    listed = [page for pages in NAV.values() for page in pages]
    names = {page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in PAGES[1:]}
    assert sorted(listed) == sorted({"index", "AGENTS", *names})


@each_row("page", PAGES[1:], ids=lambda page: page.name)
def test_every_page_opens_with_its_readers_question(page: Path) -> None:
    title, opening = page.read_text().split("\n\n")[:2]
    assert title.startswith("# ") and opening.startswith("*") and opening.split("*")[1][-1] == "?"


@each_row("page", PAGES, ids=lambda page: page.name)
def test_every_named_command_exists(page: Path) -> None:
    verbs = set(re.findall(r"^## `judge-gym (\w+)`", reference.cli_page(), flags=re.M))
    named = set(re.findall(r"`judge-gym (\w+)", page.read_text()))
    named |= {shlex.split(command)[1] for command in commands(page)}
    assert named <= verbs


def test_every_preset_is_described() -> None:
    page = (ROOT / "docs/simulated.md").read_text()
    assert [
        name for name in (*PRESETS, *CODERS) if name != "judge" and f"`sim:{name}`" not in page
    ] == []


def test_the_readme_opens_with_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert re.match(r"# judge-gym\n\n```\nmake demo .*\nmake test .*\n```", text)
    assert "make test REQUIRE=all" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["evidence.md", "own-prompt.md", "benchmarks.md", "replay.md", "suites.md"]
)
def test_the_commands_of_a_page_run_one_after_the_other(
    page: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_commands(page, call, monkeypatch)


def run_commands(page: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = commands(ROOT / "docs" / page)
    assert len(listed) >= 5
    for command in listed:
        for one in command.split(" && "):  # as a shell would
            program, *words = shlex.split(one)
            if program == "cd":
                monkeypatch.chdir(words[0])
            else:
                assert program == "judge-gym"
                succeed(call(*words))


@pytest.mark.slow
def test_the_runbook_ends_with_data_for_every_hypothesis_and_check(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_commands("runbook.md", call, monkeypatch)
    page = (tmp_path / "report.html").read_text()
    assert all(f">{name} " in page for name in ("H1", "H2", "H3", "H4"))
    assert "no data" not in page.lower() and "without data" not in page
    succeed(call("report", "--from", "samples.parquet", "--out", "report"))
    tables = {
        name: pd.read_csv(tmp_path / "report/tables" / f"{name}.csv")
        for name in ("hypotheses", "validity-of-the-instrument")
    }
    tests, checks = tables.values()
    assert len(tests) == 4 and tests[["value", "low", "high"]].notna().all(axis=None)
    assert len(checks) == 5 and checks["value"].notna().all()
    assert (checks["result"] == "pass").all(), "the example is large enough for every check"


@pytest.mark.slow
def test_the_commands_of_the_readme_run_in_a_shell(tmp_path: Path) -> None:
    listed = commands(ROOT / "README.md")
    assert len(listed) >= 5
    program = '"$PYTHON" -m judge_gym'
    script = "\n".join(["set -e", *(re.sub(r"^judge-gym", program, c) for c in listed)])
    done = subprocess.run(
        ["bash", "-c", script.replace("&& cd", "\ncd")],
        cwd=tmp_path,
        env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    quotes = re.findall(r"^> .*(?:\n> .*)*", (ROOT / "README.md").read_text(), flags=re.M)
    printed = " ".join(done.stdout.split())
    assert quotes
    assert [
        quote for quote in quotes if " ".join(quote.split("\n> ")).removeprefix("> ") not in printed
    ] == []
