"""The names that outside checks rely on, and how little it takes to import them."""

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import judge_gym
from judge_gym import Lab, Verdict, parse_verdict
from tables import each_row

HEAVY = set(
    "pandas numpy scipy altair pyarrow sqlalchemy alembic vl_convert jinja2 "
    "genai_prices pydantic_ai openai anthropic".split()
)


def loaded_by(code: str) -> set[str]:
    """What a fresh interpreter has loaded after the code, whatever it printed."""
    report = "import json, sys; sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def command(*words: str) -> str:
    return (
        "from judge_gym.cli import main\n"
        f"try:\n    main({list(words)!r})\n"
        "except SystemExit as end:\n    assert not end.code, end.code"
    )


def test_importing_the_package_loads_nothing_of_it() -> None:
    loaded = loaded_by("import judge_gym")
    assert {name for name in loaded if name.split(".")[0] == "judge_gym"} == {"judge_gym"}
    assert not loaded & {*HEAVY, "pydantic", "typer", "rich", "yaml"}


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["rubric", "--help"]])
def test_help_loads_no_heavy_library(words: list[str]) -> None:
    loaded = loaded_by(command(*words))
    assert "typer" in loaded, "the command was there"
    assert not loaded & HEAVY


def test_the_check_sees_a_heavy_library() -> None:
    assert "numpy" in loaded_by("import numpy") & HEAVY


def test_reading_a_verdict_loads_no_heavy_library() -> None:
    assert not loaded_by("from judge_gym import parse_verdict") & HEAVY


def test_a_lab_loads_no_statistics() -> None:
    """Nearly every command opens one, and few compute."""
    statistics = {"pandas", "scipy.stats", "scipy.optimize", "altair"}
    assert not loaded_by("from judge_gym import Lab") & statistics


def test_a_lab_loads_only_what_reading_needs() -> None:
    """What plans, asks and reads answers is loaded when it is used, and Postgres if it is named."""
    others = {"judge_gym.stages", "judge_gym.engine.calls.ask", "judge_gym.models.simulated"}
    assert not loaded_by("from judge_gym import Lab") & {*others, "sqlalchemy.dialects.postgresql"}


@each_row("name", judge_gym.__all__)
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(judge_gym, name)
    assert value.__name__ == name
    assert value.__doc__


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(judge_gym.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("judge_gym")
        for alias in node.names
    }
    assert seen == set(judge_gym.__all__)
    assert list(judge_gym.__all__) == sorted(judge_gym.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'judge_gym' has no attribute 'nothing'"):
        _ = judge_gym.nothing


def test_parse_verdict_has_its_signature() -> None:
    parameters = inspect.signature(parse_verdict).parameters
    assert list(parameters) == ["text", "labels", "method", "abstain", "names"]
    assert all(
        parameters[name].kind == inspect.Parameter.KEYWORD_ONLY for name in ("method", "abstain")
    )
    assert (parameters["method"].default, parameters["abstain"].default) == ("single", True)
    required = inspect.Parameter.empty
    assert parameters["text"].default is parameters["labels"].default is required


def test_a_verdict_has_a_status_and_labels_in_display_order() -> None:
    shown = ("C", "A", "B")
    verdict = parse_verdict("VERDICT: B, C", shown, method="subset")
    assert isinstance(verdict, Verdict)
    assert (verdict.status, verdict.labels) == ("scored", ("C", "B"))
    assert parse_verdict("VERDICT: ABSTAIN", shown) == Verdict("abstained", ())
    assert parse_verdict("VERDICT: ABSTAIN", shown, abstain=False) == Verdict("parse_failed", ())


def test_a_lab_opens_without_an_argument() -> None:
    opened = inspect.signature(Lab.open).parameters
    assert opened["url"].default is None
    assert all(p.default is not inspect.Parameter.empty for p in opened.values())


@each_row(
    ("verb", "parameters"),
    [
        ("create_window", ["start_date", "end_date", "country"]),
        (
            "create_experiment",
            "experiment_tag window_id model_id task_type concept config ground_truth".split(),
        ),
        ("start_evidence_pipeline", ["experiment_tag"]),
        ("start_rubric_generation", ["experiment_tag"]),
        ("start_scoring_trial", ["experiment_tag", "samples"]),
        ("start_swap_trial", ["experiment_tag", "swap_rubric_from"]),
        ("start_probing_trial", ["experiment_tag"]),
        ("list_experiment_rubrics", ["experiment_tag"]),
        ("list_experiment_samples", ["experiment_tag"]),
        ("list_experiment_probes", ["experiment_tag"]),
        ("get_experiment_summary", ["experiment_tag"]),
        ("list_experiments_by_task_type", ["task_type"]),
        ("export_experiment_csv", ["experiment_tag"]),
        ("export_design_space_csv", ["experiment_tags"]),
        ("cleanup_experiment", ["experiment_tag"]),
    ],
)
def test_a_lab_has_the_blueprints_verbs(verb: str, parameters: list[str]) -> None:
    found = inspect.signature(getattr(Lab, verb)).parameters
    assert set(parameters) <= found.keys()


def test_the_installed_command_and_the_module_are_the_same_program() -> None:
    script = Path(sys.executable).with_name("judge-gym")
    called = ([str(script), "--help"], [sys.executable, "-m", "judge_gym", "--help"])
    texts = [
        subprocess.run(words, capture_output=True, text=True, check=True).stdout for words in called
    ]
    assert texts[0] == texts[1]
    verbs = (
        "init demo plan run status cleanup evidence rubric score swap probe export report axes db"
    )
    assert all(verb in texts[0].split() for verb in verbs.split())
