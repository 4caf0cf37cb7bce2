"""The resources show what Lab's verbs say, page by page and as files, and take what Lab takes."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
import yaml

from conftest import OnlySections, study_file
from judge_gym.analysis.report import verdicts
from judge_gym.analysis.report.page import slug
from judge_gym.store import tables as t
from lab_server import TEXTS, ServedLab, serve_lab

ODD = [
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "' OR '1'='1",
    "pilot'; DROP TABLE samples; --",
    "pilot\x00",
    "%",
    "_ilot",
    "<script>alert(1)</script>",
    "x" * 501,
    "pilot.yaml",
    "/etc/hosts.yaml",
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLab]:
    with serve_lab(tmp_path_factory.mktemp("asked")) as opened:
        yield opened


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return json.loads(json.dumps(value, default=lambda time: time.isoformat()))


def pages(lab: ServedLab, path: str, limit: int, **query: Any) -> list[list[dict[str, Any]]]:
    """All pages of a table."""
    found = []
    while True:
        page = lab.get(path, limit=limit, **query)
        found.append(page["items"])
        assert len(page["items"]) <= limit
        if page["next"] is None:
            return found
        assert page["next"] != query.get("cursor"), "the same page again"
        query["cursor"] = page["next"]


def key(row: dict[str, Any]) -> Any:
    return row["sample"]


# --- reading -------------------------------------------------------------------------------------


def test_tables_match_the_lab(lab: ServedLab) -> None:
    verbs = lab.lab
    window = verbs.evidence.list_windows()[0]["window"]
    asked: list[tuple[str, dict[str, Any], Sequence[Mapping[str, Any]]]] = [
        ("/api/windows", {}, verbs.evidence.list_windows()),
        (f"/api/windows/{window}/evidence", {}, verbs.evidence.list(window)),
        ("/api/pools", {}, verbs.evidence.list_pools()),
        ("/api/experiments", {}, verbs.list_experiments()),
        ("/api/experiments", {"task_type": "ecc"}, verbs.list_experiments_by_task_type("ecc")),
        ("/api/experiments", {"task_type": "control"}, []),
        ("/api/experiments", {"study": "nothing"}, []),
        ("/api/rubrics", {"tag": "pilot"}, verbs.list_experiment_rubrics("pilot")),
        ("/api/usage", {}, verbs.reports.usage()),
        ("/api/usage", {"by": ["stage", "model"]}, verbs.reports.usage(by=["stage", "model"])),
        ("/api/usage", {"target": "pilot"}, verbs.reports.usage("pilot")),
    ]
    for path, query, rows in asked:
        assert lab.get(path, **query) == {"items": plain(rows), "next": None}, path


@pytest.mark.slow
def test_documents_match_the_lab(lab: ServedLab, only_sections: OnlySections) -> None:
    only_sections(verdicts.response_outcomes, verdicts.chosen_stages)
    verbs = lab.lab
    summary = lab.get("/api/experiments/pilot/strict")
    assert summary == plain(verbs.get_experiment_summary("pilot/strict"))
    assert lab.get("/api/evidence/1") == plain(verbs.evidence.show(1))
    sample = verbs.list_experiment_samples("pilot")[0]
    call = lab.get(f"/api/calls/{sample['call_id']}")
    asked, attempts = verbs.pages.transcript(sample["call_id"] or 0)
    assert [one["content"] for one in call["messages"]] == [one.content for one in asked]
    assert [one["body"] for one in call["attempts"]] == [one["body"] for one in attempts]
    report = lab.get("/api/report", target="pilot")
    tables = verbs.reports.build("pilot").tables
    assert report["tables"] == {slug(one.title): len(one.frame) for one in tables}
    first = lab.get("/api/report/table", target="pilot", table=slug(tables[0].title))
    assert len(first["items"]) == len(tables[0].frame)
    page = lab.ask("GET", "/api/report/file", params={"target": "pilot"})
    assert page.headers["content-disposition"].startswith("attachment")
    assert page.text.lstrip().startswith("<!doctype html>")


def test_axes_and_models_describe_themselves(lab: ServedLab) -> None:
    knobs = {knob["path"]: knob for knob in lab.get("/api/axes")["knobs"]}
    assert knobs["verdict.method"]["levels"] == ["single", "subset"]
    assert lab.get("/api/models/gpt-5.2")["id"] == "openai:gpt-5.2"
    assert {"openai", "anthropic"} <= {
        one["provider"] for one in lab.get("/api/models")["providers"]
    }
    assert all(
        one["id"].startswith("openai:")
        for one in lab.get("/api/models", provider="openai")["models"]
    )


@pytest.mark.parametrize("limit", [1, 4, 7, 15, 1000])
def test_pages_contain_every_sample_once(lab: ServedLab, limit: int) -> None:
    whole = plain(lab.lab.list_experiment_samples("pilot"))
    found = pages(lab, "/api/samples", limit, tag="pilot")
    assert [len(page) for page in found[:-1]] == [limit] * (len(found) - 1)
    rows = [row for page in found for row in page]
    assert sorted(rows, key=key) == sorted(whole, key=key)
    assert rows == [row for page in pages(lab, "/api/samples", 2, tag="pilot") for row in page]


def test_a_page_of_a_study_is_refused_with_its_tags(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with serve_lab(tmp_path_factory.mktemp("study"), run=False) as own:
        path = study_file(own.folder)
        tags = own.lab.runs.start(path)
        for resource in ("samples", "probes", "rubrics"):
            said = own.ask("GET", f"/api/{resource}", params={"tag": "small"})
            error = said.json()["error"]
            assert (said.status_code, error["choices"]) == (422, sorted(tags))
            assert "'small' is a study" in error["message"]
        whole = own.ask("GET", "/api/samples/file", params={"target": "small"})
        assert whole.status_code == 200


@pytest.mark.parametrize("value", ["0", "many", "-3"])
def test_an_invalid_number_is_repeated_in_the_error(lab: ServedLab, value: str) -> None:
    said = lab.ask("GET", "/api/samples", params={"tag": "pilot", "limit": value})
    assert said.status_code == 422
    message = said.json()["error"]["message"]
    assert message.startswith("query.limit: ") and message.endswith(f", not {value!r}")


def test_pages_contain_every_probe_once(lab: ServedLab) -> None:
    rows = [row for page in pages(lab, "/api/probes", 4, tag="pilot") for row in page]
    whole = plain(lab.lab.list_experiment_probes("pilot"))
    assert whole and sorted(rows, key=key) == sorted(whole, key=key)


def test_pages_of_experiments_and_evidence_are_complete_and_in_order(lab: ServedLab) -> None:
    tags = [row["tag"] for page in pages(lab, "/api/experiments", 1) for row in page]
    assert tags == [row["tag"] for row in lab.lab.list_experiments()]
    items = [row for page in pages(lab, "/api/windows/1/evidence", 2) for row in page]
    assert items == plain(lab.lab.evidence.list(1))


def test_a_page_may_be_of_one_status_or_one_item(lab: ServedLab) -> None:
    whole = plain(lab.lab.list_experiment_samples("pilot/strict"))
    for name, values in (("status", {row["status"] for row in whole}), ("evidence", {1, 2})):
        for value in values:
            found = pages(lab, "/api/samples", 2, tag="pilot/strict", **{name: value})
            rows = [row for page in found for row in page]
            wanted = [row for row in whole if row[name] == value]
            assert sorted(rows, key=key) == sorted(wanted, key=key)


def test_new_rows_do_not_move_pages(tmp_path: Path) -> None:
    with serve_lab(tmp_path) as lab:
        before = {row["sample"] for row in lab.lab.list_experiment_samples("pilot")}
        page = lab.get("/api/samples", tag="pilot", limit=4)
        seen = [row["sample"] for row in page["items"]]
        lab.lab.runs.run("pilot", samples=7)
        rest = pages(lab, "/api/samples", 4, tag="pilot", cursor=page["next"])
        seen += [row["sample"] for one in rest for row in one]
        assert len(seen) == len(set(seen))
        assert before <= set(seen)


def test_an_unknown_cursor_is_an_empty_page_or_an_error(lab: ServedLab) -> None:
    for cursor in ("x", "0", "-1", "99999999999999999999", "1 OR 1=1", "²"):
        said = lab.ask("GET", "/api/samples", params={"tag": "pilot", "cursor": cursor})
        assert said.status_code == 422, cursor
    assert lab.get("/api/samples", tag="pilot", cursor="2000000000")["items"] == []
    said = lab.ask("GET", "/api/windows", params={"cursor": "x"})
    assert said.status_code == 422


def test_a_page_is_read_by_index(lab: ServedLab) -> None:
    """However many samples there are, the last page costs as much as the first."""
    place = "run_id, rubric_id, evidence_id, replicate, flipped, is_swap"
    query = (
        f"EXPLAIN QUERY PLAN SELECT id FROM samples WHERE run_id IN (1) "
        f"AND ({place}) > (1, 1, 1, 0, 0, 0) ORDER BY {place} LIMIT 5"
    )
    with lab.lab.store.database.read() as connection:
        plan = " ".join(str(row) for row in connection.execute(sa.text(query)))
    assert "USING" in plan and "TEMP B-TREE" not in plan and "SCAN" not in plan


# --- files ---------------------------------------------------------------------------------------


def test_csv_matches_the_lab(lab: ServedLab) -> None:
    for targets in (["pilot"], ["pilot/strict"], ["pilot", "pilot/strict", "later"], ["later"]):
        said = lab.ask("GET", "/api/samples/file", params={"target": targets})
        assert said.text == lab.lab.export_design_space_csv(targets)
        assert said.headers["content-type"].startswith("text/csv")
    assert said.headers["content-disposition"] == 'attachment; filename="samples.csv"'
    one = lab.ask("GET", "/api/samples/file", params={"target": "pilot"})
    assert one.text == lab.lab.export_experiment_csv("pilot")


def test_parquet_matches_the_lab(lab: ServedLab, tmp_path: Path) -> None:
    lab.lab.experiments.export([], tmp_path / "all.parquet", format="parquet")
    said = lab.ask("GET", "/api/samples/file", params={"format": "parquet"})
    found = pd.read_parquet(io.BytesIO(said.content))
    wanted = pd.read_parquet(tmp_path / "all.parquet")
    pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
    assert [kind.kind for kind in found.dtypes] == [kind.kind for kind in wanted.dtypes]


@pytest.mark.parametrize(
    "path",
    "windows experiments usage pools labels rubrics?tag=pilot windows/1/evidence "
    "probes?tag=pilot samples?tag=pilot".split(),
)
def test_every_table_can_be_downloaded(lab: ServedLab, path: str) -> None:
    mark = "&" if "?" in path else "?"
    rows = lab.get(f"/api/{path}{mark}limit=1000")["items"]
    said = lab.ask("GET", f"/api/{path}{mark}format=csv")
    frame = pd.read_csv(io.StringIO(said.text)) if rows else pd.DataFrame()
    assert len(frame) == len(rows)
    assert not rows or set(frame.columns) == set(rows[0])
    binary = lab.ask("GET", f"/api/{path}{mark}format=parquet")
    assert len(pd.read_parquet(io.BytesIO(binary.content))) == len(rows)


def test_downloads_leave_no_temporary_file(
    lab: ServedLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for format in ("csv", "parquet"):
        lab.ask("GET", "/api/samples/file", params={"format": format}).raise_for_status()
    assert lab.ask("GET", "/api/samples/file?target=nothing").status_code == 404
    lab.post("/api/windows/1/evidence", items=[{"title": "calm", "text": TEXTS["calm"]}])
    assert list(tmp_path.iterdir()) == []


# --- writing -------------------------------------------------------------------------------------


def test_evidence_is_sent_and_frozen_and_dropped(lab: ServedLab) -> None:
    made = lab.post(
        "/api/windows", start_date="2026-03-01", end_date="2026-03-31", country="Norvessa"
    )
    window = made["window_id"]
    sent = [
        {"title": "One", "text": "A minister resigned.", "url": "https://example.org/1"},
        {"title": "Two", "text": "The court sat as planned.", "date": "2026-03-04"},
    ]
    assert lab.post(f"/api/windows/{window}/evidence", items=sent) == {"held": 2}
    rows = lab.lab.evidence.list(window)
    assert [row["title"] for row in rows] == ["One", "Two"]
    frozen = lab.post("/api/pools", name="march / all", window_id=window)
    assert frozen["items"] == 2
    assert lab.post(f"/api/windows/{window}/dropped", ids=[rows[0]["id"]]) == {"changed": 1}
    lab.post("/api/pools", name="fewer", window_id=window)
    difference = lab.get("/api/pools/difference", before="march / all", after="fewer")
    assert [row["title"] for row in difference["removed"]] == ["One"]
    assert lab.get("/api/pools/items", name="march / all", limit=1)["items"][0]["title"] == "One"
    said = lab.ask("POST", "/api/pools", json={"name": "fewer", "window_id": 1})
    assert (said.status_code, said.json()["error"]["kind"]) == (409, "conflict")


def test_a_benchmark_is_sent_with_its_rubric(lab: ServedLab) -> None:
    stages = [{"label": label, "criteria": [f"It is {label}"]} for label in ("minor", "major")]
    rubric = {"kind": "ordinal", "stages": stages}
    items = [{"title": "A typo", "text": "The comment has one.", "truth": "minor"}]
    window = lab.lab.create_window("2026-04-01", "2026-04-30", "nowhere")
    sent = {"concept": 'severity "now"\n', "items": items, "rubric": rubric}
    assert lab.post(f"/api/windows/{window}/benchmark", **sent) == {"held": 1}
    lab.post(
        "/api/experiments",
        tag="severity",
        window_id=window,
        model_id="sim:balanced",
        task_type="benchmark",
        concept="severity",
    )
    lab.post("/api/rubrics", tag="severity", rubric=rubric)
    experiment, _ = lab.lab.store.experiments.find("severity")
    assert experiment.task.rubric is not None
    assert [stage.label for stage in experiment.task.rubric.stages] == ["minor", "major"]
    assert [item.truth for item in experiment.task.pool.items] == [1]


def test_labels_are_sent_all_or_none(lab: ServedLab) -> None:
    good = {"item": "calm", "rater": "ada, the first", "stage": "1"}
    bad = {"item": "nothing like it", "rater": "ada, the first", "stage": "1"}
    said = lab.ask("POST", "/api/labels", json={"labels": [good, bad]})
    assert said.status_code == 404
    assert "nothing like it" in said.text and "/tmp" not in said.text
    assert lab.lab.labels.list() == []
    lab.post("/api/labels", labels=[good])
    assert [row["rater"] for row in lab.get("/api/labels")["items"]] == ["ada, the first"]


def test_a_study_is_planned_and_started_from_its_text(lab: ServedLab) -> None:
    study = {
        "study": "sent",
        "samples": 1,
        "evidence": {"here": {"files": "news.jsonl", "window": {"country": "Valdoria"}}},
        "protocol": "contested-concepts",
        "tasks": [{"type": "ecc", "concept": "fascism", "evidence": "here"}],
        "judges": ["sim:balanced", "sim:strict"],
        "design": {"evidence.view": "raw", "rubric.critic": "sim:critic"},
    }
    text = yaml.safe_dump(study)
    plan = lab.post("/api/plan", study=text, overrides={"verdict.method": "subset"})
    assert len(plan["experiments"]) == 2
    assert plan["stages"]["scorer"]["calls"] == 2 * len(TEXTS)
    assert lab.lab.store.experiments.rows(study="sent") == [], "a plan writes nothing"
    started = lab.post("/api/runs", study=text, budget={"calls": 100})["started"]
    assert [row["tag"] for row in lab.lab.store.experiments.rows(study="sent")] == sorted(started)
    assert lab.lab.store.studies.budget("sent")["calls"] == 100
    assert lab.post("/api/runs/retune", target="sent", budget={"usd": 3})["budget"]["usd"] == 3
    limits = lab.post("/api/runs/retune", target="sent", limits={"rpm": 600, "tpm": None})["limits"]
    assert limits == {"rpm": 600}, "what is null is left as it is"
    assert set(lab.post("/api/runs/pause", target="sent")["paused"]) == set(started)
    assert {row["status"] for row in lab.get("/api/experiments", study="sent")["items"]} == {
        "paused"
    }
    assert set(lab.post("/api/runs/cancel", target="sent")["cancelled"]) == set(started)
    assert lab.post("/api/runs/resume", target="sent")["started"] == started


def test_the_blueprints_arguments_are_accepted(lab: ServedLab) -> None:
    body = {"startDate": "2026-02-01", "endDate": "2026-02-28", "country": "Norvessa"}
    made = lab.post("/api/windows", **body)["window_id"]
    [window] = [row for row in lab.get("/api/windows")["items"] if row["window"] == made]
    assert (window["start"], window["end"]) == ("2026-02-01", "2026-02-28")
    assert lab.get("/api/rubrics", experimentTag="pilot") == lab.get("/api/rubrics", tag="pilot")
    assert lab.get("/api/export", experimentTags="pilot") == lab.get("/api/export", targets="pilot")
    tasks = {row["task_type"] for row in lab.get("/api/experiments", taskType="ecc")["items"]}
    assert tasks == {"ecc"}
    said = lab.ask("GET", "/api/rubrics", params={"tag": "pilot", "experimentTag": "later"})
    assert said.status_code == 422
    assert "tag and experimentTag are the same argument" in said.json()["error"]["message"]
    said = lab.ask("POST", "/api/windows", json={**body, "start_date": "2026-02-02"})
    assert said.status_code == 422
    assert "startDate and start_date are the same argument" in said.json()["error"]["message"]


def test_errors_name_the_choices(lab: ServedLab) -> None:
    sent = {"tag": "x", "window_id": 1, "model_id": "sim:nobody", "task_type": "ecc"}
    said = lab.ask("POST", "/api/experiments", json={**sent, "concept": "x"})
    error = said.json()["error"]
    assert (said.status_code, error["kind"]) == (422, "design")
    assert "sim:balanced" in error["choices"]
    typo = lab.ask("GET", "/api/experiments/pilo")
    assert typo.json()["error"]["choices"] == ["pilot", "pilot/strict"]
    unknown = lab.ask("POST", "/api/pools", json={"name": "x", "window": 1})
    assert unknown.status_code == 422 and "window" in unknown.json()["error"]["message"]


def test_an_argument_that_a_verb_does_not_have_is_refused(lab: ServedLab) -> None:
    refused = lab.ask("GET", "/api/samples", params={"tag": "pilot", "statuss": "scored"})
    error = refused.json()["error"]
    assert error["message"].startswith("unknown argument 'statuss' for experiments_list_samples")
    assert (refused.status_code, error["choices"][:2]) == (422, ["tag", "status"])
    posted = lab.ask("POST", "/api/pools", json={"name": "x", "window_id": 1, "folder": "/"})
    assert "unknown argument 'folder' for evidence_freeze_pool" in posted.text


def test_an_error_has_the_call_that_helps(lab: ServedLab) -> None:
    error = lab.ask("GET", "/api/suites/runs/99").json()["error"]
    assert error["message"] == "there is no suite run 99"
    remedy = {"verb": "suites.list_runs", "arguments": {}, "command": "judge-gym suite runs"}
    assert error["remedy"] == remedy


def test_an_experiment_is_deleted(lab: ServedLab) -> None:
    lab.lab.create_experiment(
        "short", 1, "sim:hasty", "ecc", "x", {"evidence.view": "raw", "rubric.critic": "sim:critic"}
    )
    assert lab.ask("DELETE", "/api/experiments/short").status_code == 200
    assert lab.ask("GET", "/api/experiments/short").json()["cleaned_up"]
    assert lab.ask("DELETE", "/api/experiments/short?forget=true").status_code == 200
    assert lab.ask("GET", "/api/experiments/short").status_code == 404


# --- what must not get through -------------------------------------------------------------------


@pytest.mark.parametrize("name", ODD)
def test_hostile_names_change_nothing(lab: ServedLab, name: str) -> None:
    with lab.lab.store.database.read() as connection:
        before = connection.scalar(sa.select(sa.func.count()).select_from(t.samples))
    for path in ("/api/report", "/api/report/file", "/api/samples/file", "/api/events"):
        said = lab.ask("GET", path, params={"target": name})
        assert said.status_code in (404, 422), (path, said.text)
    for path in ("/api/samples", "/api/rubrics", "/api/probes"):
        said = lab.ask("GET", path, params={"tag": name})
        assert said.status_code in (404, 422), (path, said.text)
    for verb in ("pause", "cancel", "resume", "retry", "retune"):
        said = lab.ask("POST", f"/api/runs/{verb}", json={"target": name})
        assert said.status_code in (404, 422), (verb, said.text)
        assert "root:" not in said.text
    assert lab.ask("GET", "/api/pools/items", params={"name": name}).status_code in (404, 422)
    assert lab.ask("POST", "/api/runs", json={"target": name}).status_code in (404, 422)
    with lab.lab.store.database.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(t.samples)) == before


@pytest.mark.parametrize(
    "path",
    "/etc/passwd ../secret.jsonl a/../../secret.jsonl .judge-gym/lab.db link.jsonl linked "
    "linked/*.jsonl **/secret.jsonl ..\\secret.jsonl ~/x.jsonl ./news.jsonl/../../x".split(),
)
@pytest.mark.parametrize("place", ["files", "benchmark", "judgebench", "rubric", "vdem"])
def test_a_study_names_no_file_outside_its_folder(lab: ServedLab, path: str, place: str) -> None:
    outside = lab.folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "secret.jsonl").write_text('{"title": "secret", "text": "the secret of the house"}')
    for link, aim in (("link.jsonl", outside / "secret.jsonl"), ("linked", outside)):
        if not (lab.folder / link).is_symlink():
            (lab.folder / link).symlink_to(aim)
    origin = {"files": "news.jsonl"} if place in ("rubric", "vdem") else {place: path}
    task: dict[str, Any] = {"type": "benchmark", "concept": "x", "evidence": "here"}
    if place == "rubric":
        task["rubric"] = path
    if place == "vdem":
        task |= {"type": "control", "truth": {"vdem": path, "year": 2024, "country": "X"}}
    study = {
        "study": "s",
        "evidence": {"here": origin},
        "tasks": [task],
        "judges": ["sim:balanced"],
    }
    said = lab.ask("POST", "/api/plan", json={"study": yaml.safe_dump(study)})
    assert said.status_code in (404, 422), said.text
    assert "secret of the house" not in said.text
    assert str(lab.folder) not in said.text, "nor does it say where the folder is"


@pytest.mark.parametrize("place", ["judges", "assistant", "overrides"])
def test_a_model_file_of_the_labs_machine_is_refused(lab: ServedLab, place: str) -> None:
    path = "local:/srv/models/any.gguf"
    study: dict[str, Any] = {
        "study": "s",
        "evidence": {"here": {"files": "news.jsonl", "window": {"country": "Valdoria"}}},
        "protocol": "contested-concepts",
        "tasks": [{"type": "ecc", "concept": "x", "evidence": "here"}],
        "judges": [path if place == "judges" else "sim:balanced"],
    }
    if place == "assistant":
        study["design"] = {"evidence.editor": path, "rubric.critic": "sim:critic"}
    sent: dict[str, Any] = {"study": yaml.safe_dump(study)}
    if place == "overrides":
        sent["overrides"] = {"rubric.author": path}
    for route in ("/api/plan", "/api/runs"):
        said = lab.ask("POST", route, json=sent)
        assert said.status_code == 422, said.text
        assert "only its command line may" in said.json()["error"]["message"]
    assert "only its command line may" in lab.ask("GET", f"/api/models/{path}").text


def test_a_downloaded_model_may_be_named(lab: ServedLab) -> None:
    assert lab.get("/api/models/local:smollm2")["kind"] == "local"


def test_an_endless_study_is_refused(lab: ServedLab) -> None:
    lines = [
        "a: &a [x, x]",
        *(f"{c}: &{c} [*{b}, *{b}]" for b, c in zip("abcdefgh", "bcdefghi", strict=False)),
    ]
    levels = [f"sim:balanced?seed={number}" for number in range(200)]
    whole = {
        "study": "s",
        "evidence": {"here": {"files": "news.jsonl", "window": {"country": "Valdoria"}}},
        "protocol": "contested-concepts",
        "tasks": [{"type": "ecc", "concept": "x", "evidence": "here"}],
        "judges": ["sim:balanced"],
    }
    knobs = {
        "rubric.scale": list(range(2, 27)),
        "rubric.draws": list(range(1, 100)),
        "judge.max_tokens": list(range(100, 200)),
    }
    for text in (
        "\n".join(lines),
        "[" * 20_000,
        "{a: " * 20_000,
        "- " * 20_000,
        "x" * 300_000,
        yaml.safe_dump({**whole, "vary": knobs}),
        yaml.safe_dump({**whole, "samples": 10**30}),
        yaml.safe_dump({**whole, "samples": 10**6}),
        yaml.safe_dump({**whole, "judges": levels}),
    ):
        said = lab.ask("POST", "/api/plan", json={"study": text})
        assert said.status_code == 422, said.text[:200]


def test_deeply_nested_json_is_refused(lab: ServedLab) -> None:
    sent = {"Content-Type": "application/json"}
    for body in (b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b'{"target": "\\ud800"}', b""):
        said = lab.ask("POST", "/api/runs/pause", content=body, headers=sent)
        assert 400 <= said.status_code < 500, said.text[:200]
        assert set(said.json()["error"]) == {"kind", "message", "choices"}


def test_too_large_numbers_are_refused(lab: ServedLab) -> None:
    for path in ("/api/evidence/{}", "/api/calls/{}", "/api/windows/{}/evidence"):
        for number in (0, -1, 2**31, 2**63, 10**40):
            assert lab.ask("GET", path.format(number)).status_code == 422
        assert lab.ask("GET", path.format(10**6)).status_code == 404


def test_evidence_is_never_interpreted(lab: ServedLab) -> None:
    title = "<script>alert('x')</script>"
    window = lab.lab.create_window("2026-05-01", "2026-05-02", "Norvessa")
    sent = [{"title": title, "text": "</script><img src=x onerror=alert(1)>"}]
    lab.post(f"/api/windows/{window}/evidence", items=sent)
    said = lab.ask("GET", f"/api/windows/{window}/evidence")
    assert said.headers["content-type"] == "application/json"
    assert said.headers["x-content-type-options"] == "nosniff"
    assert said.json()["items"][0]["title"] == title
