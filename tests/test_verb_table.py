"""Every verb does the same on a Lab and on a Client, and everything derived from it is current."""

import ast
import dataclasses
import importlib.util
import inspect
import re
import shutil
import sqlite3
import typing
from collections.abc import Iterator, Mapping
from contextlib import closing
from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

import judge_gym
from conftest import OnlySections
from judge_gym import errors
from judge_gym.analysis.report import verdicts
from judge_gym.cli import main
from judge_gym.client import Client
from judge_gym.engine import RunOptions
from judge_gym.errors import DesignError, JudgeGymError, NotFoundError, Remedy
from judge_gym.lab import Lab
from judge_gym.lab.nouns import (
    LOCAL,
    NOUNS,
    argument_names,
    body_model,
    canonical,
    describe,
    method,
    request_model,
    response_type,
)
from judge_gym.lab.runs import RunKeywords
from judge_gym.records.actors import act_as, machine_user
from judge_gym.store.deployment import Deployment
from judge_gym.triage import make_finding, split_results, write_report
from judge_gym.verbs import BY_NAME, VERBS, Verb, as_command, as_tool_call
from judge_gym.web import serve
from lab_server import EASY, OURS, copy_filled_lab
from made_runs import RUN, SLUG, cases
from stores import adopt
from tables import each_row

ROOT = Path(__file__).parents[1]
RUBRIC = {
    "kind": "ordinal",
    "stages": [
        {"label": "minor", "criteria": ["Style alone"]},
        {"label": "major", "criteria": ["It breaks"]},
    ],
}
JUNE = {"start_date": "2026-06-01", "end_date": "2026-06-30", "country": "Norvessa"}
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
TASK = {"category": "a", "name": "b", "task": "Write b.py."}
STUDY = """
study: sent
samples: 1
evidence: {here: {files: news.jsonl, window: {country: Valdoria}}}
protocol: contested-concepts
tasks: [{type: ecc, concept: fascism, evidence: here}]
judges: [sim:balanced]
design: {evidence.view: raw, rubric.critic: sim:critic}
"""
REPORT_PATH = "reports/x/0123_2026-03-01.md"
REPORT = write_report(RUN, split_results([SLUG]), [make_finding(cases()[0], [])], date="2026-03-02")
TASK_NAME = "fascism (ecc, Valdoria)"
CALLS: list[tuple[str, Mapping[str, Any]]] = [
    ("evidence.create_window", JUNE),
    ("evidence.load", {"window_id": 2, "items": [{"title": "A", "text": "It fell.", "truth": 1}]}),
    ("evidence.list_windows", {}),
    ("evidence.list", {"window_id": 1}),
    ("evidence.show", {"id": 1}),
    ("evidence.drop", {"window_id": 1, "ids": [2]}),
    ("evidence.drop", {"window_id": 1, "ids": [2], "undo": True}),
    ("evidence.freeze_pool", {"name": "june", "window_id": 2}),
    ("evidence.freeze_pool", {"name": "pilots", "tag": "pilot"}),
    ("evidence.freeze_pool", {"name": "june", "window_id": 1}),
    ("evidence.list_pool_items", {"name": "pilots"}),
    ("evidence.diff_pools", {"before": "june", "after": "pilots"}),
    ("evidence.collect", {**JUNE, "origin": "feeds", "addresses": ["http://127.0.0.1:9/feed"]}),
    (
        "evidence.load_benchmark",
        {
            "window_id": 2,
            "concept": "severity",
            "items": [{"title": "T", "text": "A typo.", "truth": "minor"}],
            "rubric": RUBRIC,
        },
    ),
    ("labels.add", {"labels": [{"item": "calm", "rater": "ada", "stage": "1"}], "concept": "x"}),
    ("labels.add", {"labels": [{"item": "nothing", "rater": "ada", "stage": "1"}]}),
    ("labels.split", {"study": "pilot"}),
    ("labels.split", {"study": "pilot", "seed": 1}),
    ("labels.split", {"study": "pilo"}),
    (
        "experiments.create",
        {
            "tag": "severity",
            "window_id": 2,
            "model_id": "sim:balanced",
            "task_type": "benchmark",
            "concept": "severity",
            "config": OURS,
        },
    ),
    ("experiments.load_rubric", {"tag": "severity", "rubric": RUBRIC}),
    ("labels.ask", {"study": "severity", "raters": ["ada", "bo"], "items": 1}),
    ("labels.ask", {"study": "pilot", "raters": ["ada"]}),
    ("experiments.list", {}),
    ("experiments.list", {"task_type": "benchmark"}),
    ("experiments.show", {"tag": "pilot/strict"}),
    ("experiments.show", {"tag": "pilo"}),
    ("experiments.list_samples", {"tag": "pilot"}),
    ("experiments.list_samples", {"tag": "pilot", "status": "scored", "evidence": 2}),
    ("experiments.list_answers", {"target": "pilot", "status": "scored"}),
    ("experiments.list_items", {"study": "pilot", "sort": "position", "search": "the"}),
    ("experiments.show_item", {"study": "pilot", "task": TASK_NAME, "evidence": 1}),
    ("experiments.list_items", {"study": "pilot", "sort": "people", "setups": ["balanced"]}),
    ("experiments.export_csv", {"targets": ["pilot", "pilot/strict"]}),
    ("experiments.export_csv", {"targets": ["pilot"], "include": ["labels", "answer"]}),
    ("experiments.cleanup", {"tag": "severity"}),
    ("runs.plan", {"target": "later"}),
    ("runs.plan", {"study": STUDY, "overrides": {"verdict.method": "subset"}, "samples": 2}),
    ("runs.start", {"study": STUDY, "budget": {"calls": 100}}),
    ("runs.start", {"target": "later", "samples": 1}),
    ("runs.start_evidence", {"window_id": 1, "tag": "later"}),
    ("runs.start_evidence", {"window_id": 2}),
    ("experiments.list_studies", {}),
    ("experiments.show_study", {"name": "sent"}),
    ("runs.pause", {"target": "later"}),
    ("runs.retune", {"target": "sent", "budget": {"usd": 3}, "limits": {"rpm": 50}}),
    ("runs.resume", {"target": "later"}),
    ("runs.cancel", {"target": "later"}),
    ("runs.retry", {"target": "pilot"}),
    ("runs.rerun_sample", {"sample": 1}),
    ("runs.reparse", {"target": "pilot"}),
    ("runs.status", {"target": "pilot"}),
    ("runs.status", {"limit": 5}),
    ("runs.logs", {"target": "later"}),
    ("reports.table", {"target": "pilot", "table": "statuses"}),
    ("reports.judges", {"target": "pilot", "others": ["pilot/strict"]}),
    ("reports.power", {"effect": 0.1, "target": "pilot"}),
    ("reports.compare", {"target": "pilot", "others": ["pilot/strict"]}),
    ("reports.plan_next", {"target": "pilot", "half_width": 0.1}),
    ("reports.calibrate", {"target": "pilot", "panels": 10}),
    ("reports.write_file", {"target": "pilot", "path": "out/pilot.md"}),
    ("experiments.export_file", {"targets": ["pilot"], "path": "out/pilot.csv"}),
    ("experiments.export_file", {"targets": ["pilot"], "path": "../pilot.csv"}),
    (
        "runs.quick_study",
        {
            "texts": ["Judges were dismissed by decree."],
            "question": "decay",
            "judges": ["sim:strict"],
        },
    ),
    ("reports.usage", {}),
    ("reports.usage", {"target": "pilot", "by": ["stage", "model"]}),
    ("suites.save_tasks", {"suite": "s", "version": "1", "evals": [TASK]}),
    ("suites.list_tasks", {"suite": "s", "version": "1"}),
    (
        "suites.save_run",
        {"suite": "s", "version": "1", "model": "x:y", "evals": ["a/b"], "created": AT},
    ),
    ("suites.show_run", {"run": 1}),
    (
        "suites.save_eval",
        {
            "run": 1,
            "category": "a",
            "name": "b",
            "outcome": {"kind": "failed", "step": "tests", "reason": "1 of 2 failed"},
            "at": AT,
            "steps": [{"name": "tests", "status": "failed", "seconds": 0.5}],
            "files": {"b.py": "pass"},
        },
    ),
    ("suites.plan", {"suite": "python", "models": ["sim:coder-weak"], "limit": 2}),
    ("suites.start", {"suite": "python", "model": "sim:coder-weak", "evals": ["001-language"]}),
    ("suites.list_runs", {"suite": "s"}),
    ("suites.show_run", {"run": 1}),
    ("suites.list_failed", {"run": 1}),
    ("suites.show_eval", {"eval": 1}),
    ("suites.leaderboard", {}),
    ("suites.history", {"suite": "s", "version": "1", "category": "a"}),
    ("suites.due", {"suite": "s"}),
    ("failures.start", {"run": "1"}),
    ("failures.start", {"run": "1", "judges": ["sim:strict"]}),
    ("failures.list", {}),
    ("failures.show", {"analysis": 1}),
    ("failures.list_reports", {}),
    ("failures.show_report", {"path": REPORT_PATH}),
    ("failures.record_action", {"path": REPORT_PATH, "action": "Mended 001-slugify."}),
    ("failures.record_action", {"path": "../secret.md", "action": "Mended 001-slugify."}),
    ("runs.wait", {"target": "pilot", "timeout": 0}),
    ("admin.rows", {"table": "samples", "order": "desc"}),
    ("admin.query", {"sql": "SELECT status, count(*) AS n FROM samples GROUP BY status"}),
    ("admin.query", {"sql": "DELETE FROM samples"}),
    ("admin.show_model", {"id": "gpt-5.2"}),
]
"""Calls of verbs, in an order in which each has something to do."""
REQUIRED: Mapping[str, str | int] = {
    **dict.fromkeys(("target", "tag", "study", "name"), "pilot"),
    **dict.fromkeys(("id", "window_id", "evidence", "sample", "run", "eval", "analysis"), 1),
    "suite": "s",
    "version": "1",
}
"""What a verb that reads is called with, where no call of it is listed."""
CLOCK = {"at", "frozen", "created", "due", "due_from", "days", "ended"}
"""Keys whose values depend on when a call was made."""


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Client]]:
    """A lab, and a client of a copy of it."""
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    url = copy_filled_lab(here)
    for folder in (here, there):
        (folder / "reports" / "x").mkdir(parents=True)
        (folder / REPORT_PATH).write_text(REPORT)
    for file in here.iterdir():
        if file.is_file():
            shutil.copy(file, there)
    adopt(f"sqlite:///{there / 'lab.db'}")
    with (
        Lab.open(url, folder=here) as own,
        Lab.open(f"sqlite:///{there / 'lab.db'}", folder=there) as other,
        serve(other, port=0, work=False, limits=EASY) as at,
        Client(at.url, at.token) as client,
    ):
        yield own, client


def outcome(lab: Lab | Client, name: str, arguments: Mapping[str, Any]) -> Any:
    """What a verb returns, or the error that it raises."""
    noun, _, method = name.partition(".")

    def call() -> Any:
        act_as(f"{machine_user()} over HTTP")  # as the client's server does
        return getattr(getattr(lab, noun), method)(**arguments)

    try:
        return copy_context().run(call)
    except JudgeGymError as error:
        return type(error), error.message, error.choices


def timeless(value: Any) -> Any:
    """A value without what depends on the clock; a tuple is a list."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in CLOCK}
    return [timeless(item) for item in value] if isinstance(value, list | tuple) else value


def all_calls() -> list[tuple[str, Mapping[str, Any]]]:
    """The listed calls, and one of every other verb that reads."""
    listed = {name for name, _ in CALLS}
    return [*CALLS] + [
        (verb.name, {name: REQUIRED[name] for name, field in fields.items() if field.is_required()})
        for verb in VERBS
        if verb.effect == "reads" and verb.name not in listed
        for fields in [request_model(verb).model_fields]
    ]


@pytest.mark.slow
def test_a_client_returns_what_the_lab_returns(
    labs: tuple[Lab, Client], only_sections: OnlySections
) -> None:
    only_sections(verdicts.response_outcomes, verdicts.chosen_stages)
    lab, client = labs
    refused = set()
    for name, arguments in all_calls():
        own, remote = (outcome(one, name, arguments) for one in (lab, client))
        assert timeless(remote) == timeless(own), (name, arguments)
        assert own or name == "suites.leaderboard", f"{name} showed nothing"
        if isinstance(own, tuple) and own and own[0] in vars(errors).values():
            refused.add(name)
        else:
            conforms(BY_NAME[name], own)
    assert {name for name, _ in all_calls()} == set(BY_NAME), "every verb is called"
    expected = {"evidence.freeze_pool", "evidence.collect", "labels.add", "experiments.show"}
    expected |= {
        "experiments.export_file",
        "admin.query",
        "runs.start_evidence",
        "failures.record_action",
        "failures.start",
        "labels.ask",
        "labels.split",
    }
    assert refused == expected


def conforms(verb: Verb, value: Any) -> None:
    """A response has the keys and types of its declaration, and no others."""
    kind = response_type(verb)
    TypeAdapter(kind).validate_python(value)
    row = typing.get_args(kind)[0] if verb.paged else kind
    if typing.is_typeddict(row) or hasattr(row, "__required_keys__"):
        strict = TypeAdapter(row)
        for one in value if verb.paged else [value]:
            strict.validate_python(one)
            assert set(one) <= row.__required_keys__ | row.__optional_keys__, verb.name


@pytest.mark.slow
def test_a_reading_verb_leaves_a_production_database_as_it_is(
    tmp_path: Path, only_sections: OnlySections
) -> None:
    """Of another profile's session, which may only read; there is a split whose uses count."""
    only_sections(verdicts.response_outcomes)
    with Lab.open(copy_filled_lab(tmp_path), folder=tmp_path) as lab:
        for name, arguments in CALLS:
            if BY_NAME[name].effect != "reads":
                outcome(lab, name, arguments)
        lab.store.splits.save("", 0, {}, {1: "test", 2: "train"}, replace=True)
        Deployment(lab.store.database).mark("prod")
        before = contents(tmp_path / "lab.db")
        reads = [
            (name, arguments) for name, arguments in all_calls() if BY_NAME[name].effect == "reads"
        ]
        for name, arguments in reads:
            assert "is production" not in str(outcome(lab, name, arguments)), name
        assert lab.reports.judges("pilot")["split"] is not None
        assert contents(tmp_path / "lab.db") == before


def contents(file: Path) -> list[str]:
    """Every row of a database, as statements."""
    with closing(sqlite3.connect(file)) as connection:
        return [*connection.iterdump()]


def test_what_can_be_sent_is_the_signature_of_the_method() -> None:
    for verb in VERBS:
        parameters = inspect.signature(method(verb)).parameters
        hints = typing.get_type_hints(method(verb), include_extras=True)
        names = {name for name in parameters if name != "self"}
        for name, parameter in parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                names |= typing.get_args(hints[name])[0].__annotations__.keys()
        fields = request_model(verb).model_fields
        assert fields.keys() <= names, verb.name
        for name, parameter in parameters.items():
            if parameter.default is inspect.Parameter.empty and name in fields:
                assert fields[name].is_required(), (verb.name, name)
        assert describe(verb).endswith((".", ":")), verb.name
        assert {*verb.path_arguments} <= {*fields}, verb.name
        sent = {name for name, field in fields.items() if verb.place(name) == "body"}
        body = body_model(verb)
        assert (set() if body is None else {*body.model_fields}) == sent, verb.name


def test_a_run_that_is_started_has_the_options_and_defaults_of_the_engine() -> None:
    options = {field.name: field for field in dataclasses.fields(RunOptions)}
    assert options.keys() == RunKeywords.__annotations__.keys()
    for name, field in request_model(BY_NAME["runs.start"]).model_fields.items():
        if name in options:
            assert field.default == getattr(RunOptions(), name), name


def test_an_argument_for_this_process_cannot_be_sent() -> None:
    pool, start = (request_model(BY_NAME[n]) for n in ("evidence.freeze_pool", "suites.start"))
    assert {*pool.model_fields} == {"name", "window_id", "tag"}
    assert not {*start.model_fields} & {"jobs", "allow_unisolated", "options"}
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        pool(name="june", folder="/")


def test_the_table_is_consistent() -> None:
    assert len(BY_NAME) == len({verb.route for verb in VERBS}) == len(VERBS)
    for verb in VERBS:
        if verb.http_method == "GET":
            assert verb.effect == "reads", verb.name
        # What takes the text of a study is posted, and what says which keys are missing.
        posted = verb.name in ("runs.plan", "reports.power", "suites.plan")
        assert verb.effect != "reads" or verb.http_method == "GET" or posted
        assert verb.paged or not (verb.cursor or verb.page), verb.name
        if verb.page:
            assert callable(getattr(NOUNS[verb.noun], verb.page))


def test_only_verbs_their_pages_and_listed_local_methods_are_public_on_nouns() -> None:
    """Attributes that are computed, such as the name of the database, are documented properties."""
    verbs = set(BY_NAME) | {f"{verb.noun}.{verb.page}" for verb in VERBS if verb.page}
    public = {
        f"{noun}.{name}": member
        for noun, part in NOUNS.items()
        for name, member in vars(part).items()
        if not name.startswith("_")
    }
    methods = {name for name, member in public.items() if not isinstance(member, property)}
    assert methods - verbs == set(LOCAL)
    assert all(member.__doc__ for member in public.values())


def test_an_http_request_has_each_argument_in_its_place() -> None:
    drop = BY_NAME["evidence.drop"].http_request({"window_id": 3, "ids": [1], "undo": None})
    assert (drop.method, drop.path) == ("POST", "/api/windows/3/dropped")
    assert (drop.query, drop.body) == ({}, {"ids": [1]})
    show = BY_NAME["experiments.show"].http_request({"tag": "a/b ?"})
    assert (show.path, show.body) == ("/api/experiments/a%2Fb%20%3F", None)
    listed = BY_NAME["experiments.list"].http_request({"study": "s", "limit": 3, "cursor": "x"})
    assert listed.query == {"study": "s", "limit": 3, "cursor": "x"}
    with pytest.raises(DesignError, match="evidence_show needs id"):
        BY_NAME["evidence.show"].http_request({})
    with pytest.raises(DesignError, match="unknown argument 'idd' for evidence_show; choose 'id'"):
        canonical(BY_NAME["evidence.show"], {"idd": 1})


@each_row(
    ("verb", "blueprint", "own"),
    [
        ("evidence.create_window", {"startDate": "2026-01-01"}, {"start_date": "2026-01-01"}),
        (
            "experiments.create",
            {"experimentTag": "x", "modelId": "m"},
            {"tag": "x", "model_id": "m"},
        ),
        ("experiments.create", {"groundTruth": {"value": 1}}, {"ground_truth": {"value": 1}}),
        ("experiments.list", {"taskType": "ecc"}, {"task_type": "ecc"}),
        ("experiments.export_csv", {"experimentTags": ["x"]}, {"targets": ["x"]}),
        ("experiments.show", {"experiment_tag": "x"}, {"tag": "x"}),
        ("runs.start", {"experimentTag": "x", "samples": 5}, {"target": "x", "samples": 5}),
        ("runs.start", {"swapRubricFrom": "sim:strict"}, {"rivals": ["sim:strict"]}),
        ("runs.start_evidence", {"windowId": 1, "limit": 2}, {"window_id": 1, "limit": 2}),
    ],
)
def test_the_blueprints_arguments_are_those_of_a_verb(
    verb: str, blueprint: dict[str, Any], own: dict[str, Any]
) -> None:
    assert canonical(BY_NAME[verb], blueprint) == own
    assert canonical(BY_NAME[verb], own) == own


def test_one_argument_under_two_names_needs_one_value() -> None:
    show = BY_NAME["experiments.show"]
    assert canonical(show, {"tag": "x", "experimentTag": "x"}) == {"tag": "x"}
    with pytest.raises(
        DesignError, match=r"tag and experimentTag are the same argument.*'x' and 'y'"
    ):
        canonical(show, {"tag": "x", "experimentTag": "y"})


def remedies() -> Iterator[tuple[str, set[str]]]:
    """The verb and the names of the arguments of every remedy in the package."""
    for file in Path(judge_gym.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("Remedy"), args=[ast.Constant(str(verb)), *rest]):
                    keys = rest[0].keys if rest and isinstance(rest[0], ast.Dict) else []
                    yield verb, {str(ast.literal_eval(key)) for key in keys if key is not None}


def test_every_remedy_is_a_call_that_each_interface_can_make() -> None:
    calls = [*remedies()]
    assert len(calls) >= 9
    for name, arguments in calls:
        verb = BY_NAME[name]
        assert verb.agents and arguments <= set(argument_names(verb)), name
        words = re.sub(r" ?\{\w+\}", "", verb.command).split()
        assert words, f"{name} has no command"
        with pytest.raises(SystemExit) as end:
            main([*words, "--help"])
        assert end.value.code == 0, words


def test_each_interface_words_a_remedy(labs: tuple[Lab, Client]) -> None:
    lab, client = labs
    for one in (lab, client):
        with pytest.raises(NotFoundError) as refused:
            one.suites.show_run(99)
        assert refused.value.message == "there is no suite run 99"
        assert refused.value.remedy == Remedy("suites.list_runs")
        assert str(refused.value) == "there is no suite run 99; call lab.suites.list_runs()"
    freeze = Remedy("evidence.freeze_pool", {"name": "june days", "window_id": 3})
    assert as_command(freeze) == "judge-gym pool freeze 'june days' --window 3"
    assert as_tool_call(freeze) == 'evidence_freeze_pool {"name": "june days", "window_id": 3}'
    assert as_command(Remedy("experiments.cleanup", {"tag": "x", "forget": True})) == (
        "judge-gym cleanup x --forget"
    )


@pytest.fixture(scope="module")
def generator() -> Any:
    path = ROOT / "scripts/generate_from_verbs.py"
    spec = importlib.util.spec_from_file_location("generate_from_verbs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_tools_is_current(generator: Any) -> None:
    page = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")
    assert generator.tools_page(page) == page, "run: make docs"
    assert page.count("| `runs_start` |") == 1


def test_the_tables_of_the_http_api_are_current(generator: Any) -> None:
    page = (ROOT / "docs/http-api.md").read_text(encoding="utf-8")
    assert generator.http_page(page) == page, "run: make docs"
    assert page.count("| `start` | `POST /api/runs` |") == 1


def test_the_generated_client_is_current(generator: Any) -> None:
    written = generator.FILE.read_text(encoding="utf-8")
    assert same_code(written, generator.client_source()), "run: make docs"
    changed = written.replace("def create_window(self, start_date", "def create_window(self, start")
    assert not same_code(changed, written), "the comparison notices a changed name"


def same_code(one: str, other: str) -> bool:
    """Whether two modules differ in their layout alone."""
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


def test_a_client_has_the_signatures_of_the_lab() -> None:
    with Client("http://127.0.0.1:9") as client:
        for verb in VERBS:
            own = inspect.signature(getattr(NOUNS[verb.noun], verb.method)).parameters
            remote = inspect.signature(getattr(getattr(client, verb.noun), verb.method)).parameters
            assert set(remote) == set(request_model(verb).model_fields), verb.name
            shared = [name for name in own if name in remote]
            assert [name for name in remote if name in shared] == shared, verb.name
