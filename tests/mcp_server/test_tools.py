"""Every tool over real HTTP, with the SDK's client: what it says, refuses and leaves out."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from mcp import MCPError
from mcp_types import TextContent

import agents
from agents import Agent
from judge_gym.axes import Design
from judge_gym.mcp import over_http
from judge_gym.mcp.fitting import MOST
from judge_gym.mcp.functions import EFFECTS, PAYING
from served import OURS, Served, alone, served

PAID = {"start", "resume", "retry", "collect"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("offered"), face=over_http) as opened:
        yield opened


@pytest.fixture(scope="module")
def agent(lab: Served) -> Iterator[Agent]:
    with agents.over_http(lab.url, lab.local) as connected:
        yield connected


@pytest.fixture(scope="module")
def tools(agent: Agent) -> dict[str, Any]:
    return {tool.name: tool for tool in agent.do("list_tools").tools}


# --- what is offered -----------------------------------------------------------------------------


def test_every_resource_of_the_api_can_be_called(lab: Served, agent: Agent) -> None:
    paths = lab.get("/api/openapi.json")["paths"]
    verbs = {operation["operationId"] for item in paths.values() for operation in item.values()}
    listed = {row["name"]: row["tool"] for row in agent.call("functions")["items"]}
    posted = {"suite_tasks", "keep_tasks", "keep_run", "keep_eval"}
    assert set(listed) == verbs - {"health", "session", "events"} - posted
    assert {"failed_evals", "eval_debug"} <= set(listed)
    written = {
        operation["operationId"]
        for item in paths.values()
        for method, operation in item.items()
        if method != "get"
    }
    for name, tool in listed.items():
        assert tool == name or (tool == "read" and name not in written)


def test_every_tool_says_what_it_costs_and_changes(tools: dict[str, Any]) -> None:
    assert set(PAYING) == PAID
    for name, tool in tools.items():
        hints = tool.annotations
        pays = "Pays " in tool.description
        assert pays == (name in PAID), name
        assert pays != ("Free: no model is called." in tool.description), name
        assert hints.open_world_hint == pays
        free_of_effect = "hanges nothing" in tool.description
        assert hints.read_only_hint == free_of_effect, name
        assert name in EFFECTS or free_of_effect
    assert tools["cleanup"].annotations.destructive_hint
    assert not tools["pause"].annotations.destructive_hint


def test_every_schema_is_one_and_refers_to_nothing_outside(tools: dict[str, Any]) -> None:
    for tool in tools.values():
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["type"] == "object"
        text = json.dumps(tool.input_schema)
        assert "#/components" not in text
        for name in set(part.split('"')[0] for part in text.split("#/$defs/")[1:]):
            assert name in tool.input_schema["$defs"]


def test_the_knobs_have_the_schema_of_the_design(tools: dict[str, Any]) -> None:
    config = tools["create_experiment"].input_schema["properties"]["config"]
    knobs = {path: knob for path, knob in Design.knobs().items() if path != "judge.model"}
    assert set(config["properties"]) == set(knobs)
    for path, knob in knobs.items():
        assert knob.question in config["properties"][path]["description"]
        if not knob.open:
            assert config["properties"][path]["enum"] == list(knob.levels)
    names = tools["start"].input_schema["properties"]["overrides"]["propertyNames"]["enum"]
    assert set(names) == set(knobs)


def test_the_page_of_the_docs_names_every_tool_and_its_cost(tools: dict[str, Any]) -> None:
    from test_agents import ROOT

    rows = [line for line in (ROOT / "docs/mcp.md").read_text().splitlines() if "| `" in line]
    named = {word for row in rows for word in row.split("|")[1].split("`")[1::2]}
    assert named == set(tools)
    paying = {word for row in rows if "**pays**" in row for word in row.split("`")[1:2]}
    assert paying == PAID


def test_all_tools_together_are_short(tools: dict[str, Any]) -> None:
    """An agent reads them in every session."""
    assert len(tools) < 40
    assert sum(len(tool.model_dump_json()) for tool in tools.values()) < 40_000


# --- what they say -------------------------------------------------------------------------------


def test_reading_says_what_the_api_says(lab: Served, agent: Agent) -> None:
    for function, path, arguments in (
        ("list_windows", "/api/windows", {}),
        ("list_experiment_samples", "/api/samples", {"target": "pilot/strict", "limit": 3}),
        ("usage", "/api/usage", {"by": ["model", "stage"]}),
        ("report", "/api/report", {"target": "pilot"}),
    ):
        found = agent.call("read", function=function, arguments=arguments)
        assert found == lab.get(path, **arguments), function
    summary = agent.call(
        "read", function="get_experiment_summary", arguments={"tag": "pilot/strict"}
    )
    assert summary == lab.get("/api/experiments/pilot%2Fstrict")


def test_a_result_is_json_with_a_line_of_text(agent: Agent) -> None:
    result = agent.result("data", table="samples", limit=2)
    line, text = (part.text for part in result.content if isinstance(part, TextContent))
    assert json.loads(text) == result.structured_content
    assert "2 rows" in line and "cursor" in line and "\n" not in line


def test_status_tells_how_far_runs_are(agent: Agent) -> None:
    found = agent.call("status", target="pilot")
    [run] = found["runs"]
    assert (run["status"], run["going_on"], found["going_on"]) == ("complete", False, False)
    assert run["done"] == run["wanted"] == {
        "evidence": 3, "rubric": 1, "score": 15, "swap": 0, "probe": run["verdicts"]["scored"]
    }  # fmt: skip
    assert {run["tag"] for run in agent.call("status")["runs"]} == {"pilot", "pilot/strict"}


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_of_data_follow_each_other_to_the_end(lab: Served, agent: Agent, order: str) -> None:
    seen, cursor = [], None
    while True:
        page = agent.call(
            "data", table="samples", order=order, limit=4, **({"cursor": cursor} if cursor else {})
        )
        seen += [row["id"] for row in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    wanted = [row["sample"] for row in lab.lab.experiments.samples().to_dict("records")]
    assert seen == sorted(wanted, reverse=order == "desc")


def test_tables_are_those_that_can_be_asked(agent: Agent) -> None:
    for table in agent.call("tables")["items"]:
        counted = agent.call("query", sql=f"SELECT count(*) FROM {table['table']}")
        assert counted["rows"] == [[table["rows"]]]


def test_a_question_is_answered_and_a_write_refused_by_the_database(
    lab: Served, agent: Agent
) -> None:
    found = agent.call("query", sql="SELECT status, count(*) AS n FROM samples GROUP BY status")
    counted = lab.lab.experiments.samples()["status"].value_counts().to_dict()
    assert {row[0]: row[1] for row in found["rows"]} == counted
    before = lab.lab.store.experiments.rows()
    for sql in ("DELETE FROM samples", "SELECT hash FROM tokens", "SELECT 1; SELECT 2"):
        error = agent.refused("query", sql=sql)
        assert (error["kind"], error["message"][:12]) == ("design", "the database")
    assert lab.lab.store.experiments.rows() == before


def test_the_environment_is_told_without_values(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://secret.example/v1")
    result = agent.result("environment")
    found = {row["name"]: row["set"] for row in result.structured_content["items"]}
    assert found["OPENAI_API_KEY"] and found["OPENAI_BASE_URL"]
    assert not found["ANTHROPIC_API_KEY"] and not found["FIRECRAWL_API_KEY"]
    assert "sk-of-the-house" not in str(result) and "secret.example" not in str(result)


def test_plans_cost_nothing_and_runs_are_steered(lab: Served, agent: Agent) -> None:
    plan = agent.call("plan", target="later")
    assert plan["stages"]["all"]["to_pay"] > 0
    with alone(lab.lab):
        assert agent.call("start", target="later", budget={"usd": 5}) == {"started": ["later"]}
        assert agent.call("status", target="later")["going_on"]
        assert agent.call("pause", target="later") == {"paused": ["later"]}
        assert not agent.call("status", target="later")["going_on"]
        assert agent.call("retune", target="later", budget={"usd": 9})["budget"]["usd"] == 9
        assert agent.call("resume", target="later") == {"started": ["later"]}
        assert agent.call("cancel", target="later") == {"cancelled": ["later"]}
        kinds = [row["kind"] for row in agent.call("logs", target="later")["items"]]
    assert kinds == ["cancelled", "started", "retuned", "paused", "started"], "newest first"


def test_the_log_is_paged_and_tells_each_thing_once(lab: Served, agent: Agent) -> None:
    whole = agent.call("logs", limit=1000)["items"]
    seen, cursor = [], None
    while True:
        page = agent.call("logs", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += page["items"]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == whole and len(whole) >= 4
    assert sorted((row["at"] for row in whole), reverse=True) == [row["at"] for row in whole]


def test_evidence_and_benchmarks_are_made_by_tools(lab: Served, agent: Agent) -> None:
    made = agent.call(
        "create_window", start_date="2026-03-01", end_date="2026-03-31", country="Norvessa"
    )
    window = made["window_id"]
    rubric = {
        "kind": "ordinal",
        "stages": [
            {"label": "minor", "criteria": ["Style alone"]},
            {"label": "major", "criteria": ["It breaks"]},
        ],
    }
    items = [{"title": "A", "text": "A typo.", "truth": "minor"}]
    assert agent.call("load_evidence", window_id=window, items=[{"title": "B", "text": "It fell."}])
    [row] = agent.call("read", function="list_evidence", arguments={"window_id": window})["items"]
    assert agent.call("drop_evidence", window_id=window, ids=[row["id"]]) == {"changed": 1}
    assert agent.call(
        "load_benchmark_evidence", window_id=window, concept="severity", items=items, rubric=rubric
    ) == {"held": 1}
    agent.call(
        "create_experiment",
        experiment_tag="severity",
        window_id=window,
        model_id="sim:balanced",
        task_type="benchmark",
        concept="severity",
    )
    agent.call("load_benchmark_rubric", experiment_tag="severity", rubric=rubric)
    assert agent.call("freeze_pool", name="march", window_id=window)["items"] == 1
    label = {"item": "A", "rater": "one", "stage": "minor"}
    agent.call("import_labels", labels=[label], target="severity")
    [said] = agent.call("read", function="list_labels")["items"]
    assert (said["rater"], said["stage"]) == ("one", "minor")
    assert agent.call("cleanup", tag="severity")["runs"] == 0


# --- what is long --------------------------------------------------------------------------------


def test_a_long_page_has_fewer_rows_and_goes_on(agent: Agent) -> None:
    made = agent.call(
        "create_window", start_date="2026-04-01", end_date="2026-04-30", country="Norvessa"
    )
    items = [{"title": f"{n} {'x' * 400}", "text": f"The mayor warned {n}."} for n in range(300)]
    agent.call("load_evidence", window_id=made["window_id"], items=items)
    arguments: dict[str, Any] = {"window_id": made["window_id"], "limit": 1000}
    seen: list[str] = []
    while True:
        page = agent.call("read", function="list_evidence", arguments=arguments)
        assert len(json.dumps(page, ensure_ascii=False)) < 1.2 * MOST
        assert "cut" not in page
        seen += [row["title"] for row in page["items"]]
        if page["next"] is None:
            break
        arguments["cursor"] = page["next"]
    assert seen == [item["title"] for item in items]


def test_what_is_long_by_itself_is_cut_and_says_so(agent: Agent) -> None:
    made = agent.call(
        "create_window", start_date="2026-05-01", end_date="2026-05-31", country="Norvessa"
    )
    text = "The mayor warned the council. " * 5000
    agent.call("load_evidence", window_id=made["window_id"], items=[{"title": "L", "text": text}])
    listed = {"window_id": made["window_id"]}
    [row] = agent.call("read", function="list_evidence", arguments=listed)["items"]
    found = agent.call("read", function="show_evidence", arguments={"id": row["id"]})
    assert "4000 characters" in found["cut"] and found["text"].startswith("The mayor")
    assert "more characters" in found["text"] and len(found["text"]) < 5000


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "said"),
    [
        ("nothing", {}, "design", "unknown tool 'nothing'; choose "),
        ("status", {"taret": "x"}, "design", "unknown argument 'taret' for status"),
        ("status", {"target": "pilo"}, "notfound", "did you mean 'pilot'"),
        ("status", {"target": "../x.yaml"}, "notfound", "a study file is sent as its text"),
        ("status", {"limit": "many"}, "design", "limit"),
        ("read", {}, "design", "unknown function None"),
        ("read", {"function": "start"}, "design", "start is a tool of its own"),
        ("read", {"function": "usage", "arguments": []}, "", ""),
        ("read", {"function": "usage", "arguments": [1]}, "design", "an object"),
        ("read", {"function": "usage", "args": {}}, "design", "unknown argument 'args'"),
        ("read", {"function": "show_call", "arguments": {"id": 10**9}}, "notfound", "no call"),
        ("read", {"function": "show_call"}, "design", "show_call needs id"),
        ("read", {"function": "model", "arguments": {"id": "x:y"}}, "design", "unknown provider"),
        ("functions", {"name": "x"}, "design", "unknown function 'x'"),
        ("data", {"table": "tokens"}, "design", "unknown table 'tokens'"),
        ("data", {"table": "samples", "cursor": "x"}, "design", "is no cursor"),
        ("data", {"table": "samples", "cursor": '["x"]'}, "design", "no cursor of this table"),
        ("logs", {"cursor": "[1]"}, "design", "is no cursor"),
        ("query", {}, "design", "sql"),
        ("query", {"sql": "SELECT 1", "limit": 10**6}, "design", "limit"),
        ("start", {}, "design", "give either target or study"),
        ("start", {"target": "later", "extra": 1}, "design", "unknown argument 'extra'"),
        ("start", {"target": "later", "workflows": ["x"]}, "design", "workflows"),
        ("start", {"study": "study: [", "samples": 1}, "design", "study"),
        ("create_window", {"country": "X"}, "design", "start_date"),
    ],
)
def test_a_refusal_says_what_which_and_the_choices(
    agent: Agent, tool: str, arguments: dict[str, Any], kind: str, said: str
) -> None:
    if not kind:
        assert "items" in agent.call(tool, **arguments), "no arguments at all"
        return
    error = agent.refused(tool, **arguments)
    assert error["kind"] == kind
    assert said in error["message"]


def test_an_error_has_the_words_of_the_api(lab: Served, agent: Agent) -> None:
    sent = {
        "experiment_tag": "odd",
        "window_id": 1,
        "model_id": "sim:balanced",
        "task_type": "ecc",
        "concept": "fascism",
        "config": {**OURS, "verdict.method": "singel"},
    }
    said = lab.ask("POST", "/api/experiments", json=sent).json()["error"]
    assert agent.refused("create_experiment", **sent) == said
    assert said["choices"] == ["single", "subset"]


def test_a_fault_of_ours_tells_nothing_of_itself(
    lab: Served, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(lab.lab.admin, "environment", fail)
    result = agent.result("environment")
    assert result.is_error and "secret" not in str(result)
    assert result.structured_content["error"]["kind"] == "internal"


# --- resources -----------------------------------------------------------------------------------


def test_studies_and_reports_are_resources(lab: Served, agent: Agent) -> None:
    text = (
        "study: small-one\nsamples: 1\nprobe: false\n"
        "evidence: {here: {files: news.jsonl, window: {country: Valdoria}}}\n"
        "tasks: [{type: ecc, concept: fascism, evidence: here}]\njudges: [sim:strict]\n"
        "design: {evidence.editor: sim:editor, rubric.critic: sim:critic}\n"
    )
    agent.call("start", study=text)
    lab.lab.runs.run("small-one")
    listed = {str(one.uri): one for one in agent.do("list_resources").resources}
    assert set(listed) == {
        "judge-gym://studies/small-one",
        "judge-gym://reports/small-one",
    }
    [file] = agent.do("read_resource", "judge-gym://studies/small-one").contents
    assert (file.text, file.mime_type) == (text, "application/yaml")
    for target in ("small-one", "pilot%2Fstrict"):
        [report] = agent.do("read_resource", f"judge-gym://reports/{target}").contents
        assert report.mime_type == "text/markdown" and "simulated" in report.text
    assert len(agent.do("list_resource_templates").resource_templates) == 2


@pytest.mark.parametrize(
    "uri",
    [
        "judge-gym://studies/none",
        "judge-gym://reports/none",
        "judge-gym://tokens/1",
        "judge-gym://studies/",
        "judge-gym://reports/..%2F..%2Fetc%2Fpasswd.yaml",
        "file:///etc/passwd",
    ],
)
def test_a_resource_that_is_not_there_is_an_error_with_its_kind(agent: Agent, uri: str) -> None:
    with pytest.raises(MCPError) as refused:
        agent.do("read_resource", uri)
    assert refused.value.data["error"]["kind"] == "notfound"
