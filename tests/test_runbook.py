"""The blueprint's runbook, phases 0 to 7, carried out through Python, HTTP and MCP.

One script in the blueprint's own names; a face translates them. Evidence is searched for in a feed
on loopback, and all judges are simulated.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import agents
from judge_gym.errors import JudgeGymError
from judge_gym.lab import Lab
from judge_gym.lab.nouns import canonical
from judge_gym.mcp import over_http
from judge_gym.mcp.tools import TOOLS, is_tool
from judge_gym.records.environment import SEARCH
from judge_gym.verbs import BY_NAME
from judge_gym.web import serve
from lab_server import EASY, OURS
from stores import blank
from web import Web, page, rss

CONFIG = {
    "scaleSize": 4,
    "randomizeLabels": True,
    "neutralizeEvidence": True,
    "scoringMethod": "freeform-suffix-subset",
    "promptOrdering": "rubric-first",
    "abstainEnabled": True,
    "freshWindowProbe": True,
    **OURS,
}
BENCHMARK = {
    **CONFIG,
    "randomizeLabels": False,
    "neutralizeEvidence": False,
    "abstainEnabled": False,
    "freshWindowProbe": False,
}
FASCISM, BACKSLIDING = "pilot_fascism", "pilot_backsliding"
CONTROL, BENCH = "pilot_norway", "bench_severity"
JANUARY = {"start_date": "2026-01-01", "end_date": "2026-01-31"}
LABELS = ("minor", "major", "severe")
# In the words of the simulated judges, so that they have something to judge.
SENTENCES = (
    "Judges were dismissed by decree",
    "An editor was detained",
    "A newspaper was banned",
    "The regulator warned two stations",
    "A bill is under review",
    "The budget was adopted unanimously",
    "The minutes were published in full",
    "Observers confirmed the count",
)


def article(web: Web, concept: str, country: str, number: int) -> dict[str, str]:
    """Puts an article on a page, and returns its entry in a feed."""
    told = " ".join(
        f"{SENTENCES[(number * 3 + n) % len(SENTENCES)]} in ward {number * 31 + n} of {country}."
        for n in range(8)
    )
    title = f"{concept} {number}"
    path = f"/{concept.replace(' ', '-')}/{number}"
    link = web.on(path, page(title, f"On {concept} in {country}.", told))
    return {"title": title, "link": link, "date": f"{10 + number} Jan 2026 08:00:00 GMT"}


Face = Callable[..., Any]
"""Called with one of the blueprint's names and its arguments; a refusal is a JudgeGymError."""


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """A benchmark of two items in a folder."""
    folder = tmp_path / "severity"
    folder.mkdir()
    items = [
        {"title": "typo", "text": "A minor typo was fixed as scheduled.", "truth": "minor"},
        {"title": "crash", "text": "Judges were dismissed and banned by decree.", "truth": 3},
    ]
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, items)))
    stages = [{"label": label, "criteria": [f"a {label} fault"]} for label in LABELS]
    (folder / "rubric.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    (folder / "benchmark.toml").write_text('concept = "severity"\n')
    return folder


SLOW = [pytest.param(face, marks=pytest.mark.slow) for face in ("http", "mcp")]


@pytest.fixture(params=["python", *SLOW])
def face(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Face]:
    """A face of a new lab."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab.open(blank(tmp_path / "lab.db")))
        if request.param == "python":
            yield _from_python(lab)
            return
        given: dict[str, Any] = {"agents": over_http} if request.param == "mcp" else {}
        at = stack.enter_context(serve(lab, port=0, work=False, limits=EASY, **given))
        if request.param == "mcp":
            agent = stack.enter_context(agents.over_http(at.url, at.token))
            yield _remote(lab, lambda verb, sent: _from_agent(agent, verb, sent))
        else:
            import httpx

            secret = {"Authorization": f"Bearer {at.token}"}
            http = stack.enter_context(httpx.Client(base_url=at.url, headers=secret, timeout=120))
            yield _remote(lab, lambda verb, sent: _from_http(http, verb, sent))


def _from_python(lab: Lab) -> Face:
    def call(name: str, **given: Any) -> Any:
        verb = lab.runs.status if name == "status" else getattr(lab, name)
        return verb(**given)

    return call


STARTS = {
    "start_rubric_generation": ["rubric"],
    "start_scoring_trial": ["score"],
    "start_swap_trial": ["swap"],
    "start_probing_trial": ["probe"],
}
NAMES = {
    "create_window": "evidence.create_window",
    "create_experiment": "experiments.create",
    "start_evidence_pipeline": "runs.start_evidence",
    "get_experiment_summary": "experiments.show",
    "list_experiment_rubrics": "experiments.list_rubrics",
    "list_experiment_samples": "experiments.list_samples",
    "list_experiment_probes": "experiments.list_probes",
    "list_experiments_by_task_type": "experiments.list",
    "export_design_space_csv": "experiments.export_csv",
    "cleanup_experiment": "experiments.cleanup",
    "status": "runs.status",
}


def _remote(lab: Lab, ask: Callable[[str, dict[str, Any]], Any]) -> Face:
    """The blueprint's names in those of the verbs; files are sent as what they contain.

    What was queued is done before the next step.
    """
    queued: set[str] = set()

    def call(name: str, **given: Any) -> Any:
        if queued - {name}:
            lab.engine.work(until_idle=True)
            queued.clear()
        if name == "load_benchmark_evidence":
            folder = given.pop("dataset_path")
            lines = (folder / "items.jsonl").read_text().splitlines()
            given |= {
                "concept": "severity",
                "items": [json.loads(line) for line in lines],
                "rubric": json.loads((folder / "rubric.json").read_text()),
            }
            return ask("evidence.load_benchmark", given)
        if name == "load_benchmark_rubric":
            given["rubric"] = json.loads(given.pop("rubric_path").read_text())
            return ask("experiments.load_rubric", given)
        if name in STARTS:
            queued.add(name)
            return ask("runs.start", {**given, "workflows": STARTS[name]})
        if name == "start_evidence_pipeline":
            queued.add(name)
        return ask(NAMES[name], given)

    return call


def _from_http(http: Any, name: str, given: dict[str, Any]) -> Any:
    verb = BY_NAME[name]
    sent = verb.http_request(canonical(verb, given))
    query = {"limit": 1000, **sent.query} if verb.paged else sent.query
    answer = http.request(sent.method, sent.path, params=query, json=sent.body)
    found = answer.json()
    if not answer.is_success:
        raise JudgeGymError(found["error"]["message"])
    return found[verb.result] if verb.result else found


def _from_agent(agent: agents.Agent, name: str, given: dict[str, Any]) -> Any:
    verb = BY_NAME[name]
    sent = {**given, "limit": 1000, "columns": ["all"]} if verb.paged else given
    if not is_tool(TOOLS[verb.tool]):
        tool, sent = "read", {"function": verb.tool, "arguments": sent}
    else:
        tool = verb.tool
    result = agent.result(tool, **sent)
    if result.is_error:
        raise JudgeGymError(agents.sent(result)["error"]["message"])
    found = agents.unpacked(result)
    return found[verb.result] if verb.result else found


@pytest.mark.slow
def test_the_runbook_runs_in_its_order(
    face: Face, benchmark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Web() as web:
        feed = [
            article(web, concept, country, number)
            for concept, country in (
                ("fascism", "the USA"),
                ("democratic backsliding", "the USA"),
                ("democracy quality", "Norway"),
            )
            for number in range(3)
        ]
        address = web.on("/feed", rss(*feed))
        monkeypatch.setenv(SEARCH, f"feeds --allow-private {address}")
        _define(face)
        _collect(face, benchmark)
        assert web.paths().count("/feed") == 3, "a search for each concept"
    _judge(face, benchmark)
    _analyse_and_clean_up(face)


def _define(face: Face) -> None:
    """Phase 0: windows, then experiments, which are drafts."""
    usa = face("create_window", **JANUARY, country="USA")
    norway = face("create_window", **JANUARY, country="Norway")
    bench = face("create_window", **JANUARY, country="nowhere")
    assert (usa, norway, bench) == (1, 2, 3)
    point = {"window_id": usa, "model_id": "sim:balanced", "config": CONFIG}
    truth = {"source": "v-dem-liberal-democracy-index", "value": 0.95}
    with pytest.raises(JudgeGymError, match=r"contested task \(ecc\) has no ground truth"):
        face("create_experiment", **point, experiment_tag="x", task_type="ecc", concept="fascism",
             ground_truth=truth)  # fmt: skip
    for more in (
        {"experiment_tag": FASCISM, "task_type": "ecc", "concept": "fascism"},
        {"experiment_tag": BACKSLIDING, "task_type": "ecc", "concept": "democratic backsliding"},
        {"experiment_tag": CONTROL, "task_type": "control", "concept": "democracy quality",
         "window_id": norway, "ground_truth": truth},
        {"experiment_tag": BENCH, "task_type": "benchmark", "concept": "severity",
         "window_id": bench, "config": BENCHMARK,
         "ground_truth": {"source": "severity", "label": "provided-per-item"}},
    ):  # fmt: skip
        assert face("create_experiment", **{**point, **more}) is None, "a draft has no digest"
    summary = face("get_experiment_summary", experiment_tag=FASCISM)
    assert (summary["status"], summary["digest"], summary["runs"]) == ("draft", None, [])
    [listed] = face("list_experiments_by_task_type", task_type="control")
    assert (listed["tag"], listed["status"]) == (CONTROL, "draft")
    assert set(face("status")["drafts"]) == {FASCISM, BACKSLIDING, CONTROL, BENCH}
    for step in ("start_rubric_generation", "start_scoring_trial", "start_probing_trial"):
        with pytest.raises(JudgeGymError, match=rf"{FASCISM} is a draft.*evidence step first"):
            face(step, experiment_tag=FASCISM)
    assert face("list_experiment_samples", experiment_tag=FASCISM) == []


def _collect(face: Face, benchmark: Path) -> None:
    """Phase 1: each waiting concept is searched for once, and the pools are frozen."""
    face("start_evidence_pipeline", window_id=1, limit=2)
    face("start_evidence_pipeline", experiment_tag=CONTROL)
    with pytest.raises(JudgeGymError, match=rf"{BENCH} is a draft.*load_benchmark_evidence"):
        face("load_benchmark_rubric", experiment_tag=BENCH, rubric_path=benchmark / "rubric.json")
    assert face("load_benchmark_evidence", window_id=3, dataset_path=benchmark) == 2
    assert face("get_experiment_summary", experiment_tag=BENCH)["status"] == "evidence-done"
    shown = {
        tag: face("get_experiment_summary", experiment_tag=tag)
        for tag in (FASCISM, BACKSLIDING, CONTROL)
    }
    assert {summary["status"] for summary in shown.values()} == {"evidence-done"}
    assert len({summary["digest"] for summary in shown.values()}) == 3
    assert [summary["runs"][-1]["done"]["evidence"] for summary in shown.values()] == [2, 2, 3]
    assert len({summary["window_id"] for summary in shown.values()} | {1, 2}) == 5


def _judge(face: Face, benchmark: Path) -> None:
    """Phases 2 to 5: rubrics, scores, a swap and probes."""
    for tag in (FASCISM, BACKSLIDING, CONTROL):
        face("start_rubric_generation", experiment_tag=tag)
    for tag in (FASCISM, BACKSLIDING, CONTROL):
        [rubric] = face("list_experiment_rubrics", experiment_tag=tag)
        assert rubric["observability"] > 0.5 and len(rubric["stages"]) == 4
    face("load_benchmark_rubric", experiment_tag=BENCH, rubric_path=benchmark / "rubric.json")
    for tag in (FASCISM, BACKSLIDING, CONTROL, BENCH):
        face("start_scoring_trial", experiment_tag=tag, samples=2)
    [given] = face("list_experiment_rubrics", experiment_tag=BENCH)
    assert given["observability"] is None, "no quality by fiat"
    face("start_swap_trial", experiment_tag=FASCISM, swap_rubric_from="sim:strict")
    for tag in (FASCISM, BACKSLIDING, CONTROL, BENCH):
        face("start_probing_trial", experiment_tag=tag)


def _analyse_and_clean_up(face: Face) -> None:
    """Phases 6 and 7: what was judged is exported, and deleted by its tag."""
    tags = [FASCISM, BACKSLIDING, CONTROL, BENCH]
    samples = face("list_experiment_samples", experiment_tag=FASCISM)
    assert len(samples) == 8 and sum(row["is_swap"] for row in samples) == 4
    assert {row["evidence_title"] for row in samples} == {"fascism 0", "fascism 1"}
    probes = face("list_experiment_probes", experiment_tag=FASCISM)
    assert len(probes) == sum(row["status"] == "scored" for row in samples) > 0
    assert all("verdict" in row["verdict_line"].lower() for row in samples)
    own, rival = face("list_experiment_rubrics", experiment_tag=FASCISM)
    names = {stage[0] for rubric in (own, rival) for stage in rubric["stages"]}
    for probe in probes:
        assert set(probe["probe_label"].split("; ")) <= names
        assert len(probe["probe_label"].split("; ")) == len(probe["stages"].split())
        assert probe["probe_model"] == "sim:balanced" and probe["probe_call_id"]
    rows = list(csv.DictReader(io.StringIO(face("export_design_space_csv", experiment_tags=tags))))
    assert {row["tag"]: row["concept"] for row in rows} == {
        FASCISM: "fascism",
        BACKSLIDING: "democratic backsliding",
        CONTROL: "democracy quality",
        BENCH: "severity",
    }
    for row in rows:
        probed = row["status"] == "scored"
        asked = [row[name] for name in ("probe_label", "probe_model", "probe_call_id")]
        assert all(asked) if probed else not any(asked)
        assert row["verdict_line"]
    titles = {(row["tag"], row["evidence_title"]) for row in rows}
    assert len(titles) == 2 + 2 + 3 + 2, "concepts do not mix"
    for tag in tags:
        assert face("get_experiment_summary", experiment_tag=tag)["status"] == "complete"
    assert face("cleanup_experiment", experiment_tag=BACKSLIDING)["samples"] == 4
    cleaned = face("get_experiment_summary", experiment_tag=BACKSLIDING)
    assert (cleaned["status"], cleaned["runs"]) == ("cleaned-up", [])
    assert "2026" <= str(cleaned["cleaned_up"]), "it says when"
    face("cleanup_experiment", experiment_tag=BACKSLIDING, forget=True)
    with pytest.raises(JudgeGymError, match="no experiment"):
        face("get_experiment_summary", experiment_tag=BACKSLIDING)
