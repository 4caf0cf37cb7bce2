"""The operator's guide is kept true: every command and every call on it is carried out."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agents import over_stdio
from conftest import Call
from judge_gym.cli import reference

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "AGENTS.md"
FAILING = "sim:balanced?fail=0.5"


class Step(NamedTuple):
    """One call of a recipe."""

    tool: str
    arguments: dict[str, Any]
    comment: str


def sections() -> dict[str, str]:
    """The page by its headings."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def commands(text: str) -> list[str]:
    blocks = re.findall(r"```\n(.*?)```", text, flags=re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("judge-gym ") for line in lines), lines
    return [line.split(" #")[0].strip() for line in lines]


def steps(text: str) -> list[Step]:
    found = []
    for block in re.findall(r"```mcp\n(.*?)```", text, flags=re.S):
        for line in block.splitlines():
            tool, _, rest = line.partition(" ")
            arguments, end = json.JSONDecoder().raw_decode(rest)
            found.append(Step(tool, arguments, rest[end:].strip()))
    return found


RECIPES = (
    "judge some texts",
    "a full experiment on a contested concept",
    "a quick look at the data",
    "a run that failed",
    "run a suite of coding tasks",
    "add a model",
    "compare two models",
    "analyze a run",
    "check a prior report, and whether a failure is the benchmark's fault",
)


def test_every_recipe_is_there_and_has_calls() -> None:
    recipes = [name for name in sections() if name.startswith("Recipe: ")]
    assert recipes == [f"Recipe: {name}" for name in RECIPES]
    for name in recipes:
        assert len(steps(sections()[name])) >= 4, name
        assert len(commands(sections()[name])) >= 3 or "prior report" in name


def test_every_link_and_verb_is_there() -> None:
    text = PAGE.read_text()
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert links and [link for link in links if not (ROOT / link).exists()] == []
    verbs = set(re.findall(r"^## `judge-gym (\w+)`", reference.cli_page(), flags=re.M))
    named = set(re.findall(r"`judge-gym (\w+)", text))
    named |= {shlex.split(command)[1] for part in sections().values() for command in commands(part)}
    assert named and named <= verbs


@pytest.mark.slow
def test_the_commands_run_one_after_the_other(tmp_path: Path, call: Call) -> None:
    listed = [command for part in sections().values() for command in commands(part)]
    assert len(listed) >= 15
    for command in listed:
        for one in command.split(" || "):  # as a shell would
            said = call(*shlex.split(one)[1:])
            assert "Traceback" not in said.err
            if said.code == 0:
                break
        assert said.code == 0, (command, said)
    assert (tmp_path / "samples.csv").exists()
    page = (tmp_path / "report.html").read_text()
    assert "Validity checks: 5 passed" in page and "no data" not in page.lower()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_calls_do_as_the_guide_says(tmp_path: Path) -> None:
    stood: dict[str, list[str]] = {}
    known: dict[str, str] = {}  # what calls returned that later ones name
    with over_stdio(tmp_path) as agent:
        tools = {tool.name for tool in agent.do("list_tools").tools}
        for part in sections().values():
            for step in steps(part):
                assert step.tool in tools, step
                written = json.dumps(step.arguments)
                for placeholder, value in known.items():
                    written = written.replace(placeholder, value)
                arguments = json.loads(written)
                if step.tool == "runs_wait":
                    run = agent.settled(arguments["target"])["runs"][-1]
                    stood.setdefault(run["tag"], []).append(run["status"])
                    continue
                found = agent.call(step.tool, **arguments)
                read = step.arguments.get("function", step.tool)
                if read in ("admin_rows", "admin_query", "runs_logs", "suites_list_failed"):
                    assert found.get("items") or found.get("rows"), f"{step} finds nothing"
                if read == "failures_show":
                    known = {"REPORT": found["report"], "EVAL": found["findings"][0]["eval"]}
                    assert found["ask_user"] in " ".join(part.split()).replace('" ', " ")
                if read == "failures_record_action":
                    assert known["EVAL"] in found["actions"][0]
                if read == "failures_show_report":
                    assert found["mismatches"] == []
        runs = agent.call("read", function="suites_list_runs")["items"]
        pilot = agent.call("runs_status", target="pilot_fascism")["runs"][0]
    # Runs that are in progress come first: which one is last depends on when each ended.
    assert [stood.pop(tag) for tag in [*stood] if tag.startswith("decay/")] == [["complete"]]
    assert stood == {
        "pilot_fascism": ["evidence-done", "rubric-done", "probing", "complete"],
        f"shaky/review-severity/remarks/{FAILING}": ["failed"]
        * 2,  # it fails again at the same calls
        "suite:1": ["complete"],
        "suite:2": ["complete", "complete"],
        "analysis:1": ["complete"],
    }
    assert pilot["done"] == {"evidence": 2, "rubric": 1, "score": 10, "swap": 0, "probe": 10}
    weak, strong = (run["score"] for run in runs)
    assert weak <= strong, "on eight evals they may be equal"
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"decay.csv", "decay.html"}


@pytest.mark.parametrize("verb", ["start", "quick_study", "resume", "retry"])
def test_the_guide_names_what_pays(verb: str) -> None:
    assert f"`{verb}`" in sections()["What you may do"]
