"""The verbs in Python: the blueprint's runbook, tidy rows, forgetting, names, notebooks."""

import asyncio
import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from conftest import OnlySections, Scripted, study_file
from engines import replace_engine
from judge_gym.analysis.report import findings, verdicts
from judge_gym.analysis.report.judges import which_judge
from judge_gym.axes import Design
from judge_gym.engine import Engine
from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.records import Completion, Request

WriteStudy = Callable[..., Path]
TEXTS = (
    "The budget was adopted unanimously and published in full.",
    "The regulator warned two stations and fined one.",
    "Judges were dismissed by decree and an editor was detained.",
)
BLUEPRINT = {
    "scaleSize": 4,
    "randomizeLabels": True,
    "neutralizeEvidence": True,
    "scoringMethod": "freeform-suffix-subset",
    "promptOrdering": "evidence-first",
    "abstainEnabled": False,
    "freshWindowProbe": False,
}
OURS = {"evidence.editor": "sim:editor", "rubric.critic": "sim:critic"}
CONTRACT = [
    "tag", "concept", "evidence", "series", "replicate", "flipped", "is_swap", "status", "stages",
    "n_stages", "probe", "call_id",
]  # fmt: skip


def paid(result: Any) -> int:
    return sum(run.calls for run in result.runs)


@pytest.fixture
def window(lab: Lab, tmp_path: Path) -> int:
    """A window that holds three texts."""
    lines = [json.dumps({"title": f"T{n}", "text": text}) for n, text in enumerate(TEXTS)]
    (tmp_path / "news.jsonl").write_text("\n".join(lines))
    window_id = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    assert lab.load_evidence(window_id, "news.jsonl", folder=tmp_path) == len(TEXTS)
    return window_id


def create(lab: Lab, window: int, tag: str = "pilot", **changes: Any) -> str | None:
    given = {
        "experiment_tag": tag,
        "window_id": window,
        "model_id": "sim:balanced",
        "task_type": "ecc",
        "concept": "fascism",
        "config": {**BLUEPRINT, **OURS},
        **changes,
    }
    return lab.create_experiment(**given)


def status(lab: Lab, tag: str = "pilot") -> str:
    return lab.get_experiment_summary(tag)["status"]


# --- the blueprint's runbook ---------------------------------------------------------------------


def test_the_blueprints_runbook_on_one_experiment(lab: Lab, window: int) -> None:
    create(lab, window, task_type="control", ground_truth={"source": "index", "value": 0.2})
    seen = [status(lab)]
    lab.start_evidence_pipeline("pilot")
    seen.append(status(lab))
    lab.start_rubric_generation("pilot")
    seen.append(status(lab))
    lab.start_scoring_trial("pilot")
    assert len(lab.list_experiment_samples("pilot")) == 5 * len(TEXTS)
    seen.append(status(lab))
    lab.start_swap_trial("pilot", "sim:strict")
    seen.append(status(lab))
    lab.start_probing_trial("pilot")
    seen.append(status(lab))
    lab.runs.run("pilot", workflows=["probe"], samples=6)  # one more is wanted and not yet made
    seen.append(status(lab))
    lab.start_scoring_trial("pilot")
    lab.start_swap_trial("pilot", "sim:strict")
    lab.start_probing_trial("pilot")
    seen.append(status(lab))
    assert seen == [
        "pending", "evidence-done", "rubric-done", "probing", "probing", "complete", "scoring",
        "complete",
    ]  # fmt: skip

    summary = lab.get_experiment_summary("pilot")
    assert summary["judge"] == "sim:balanced"
    assert (summary["task_type"], summary["concept"], summary["country"]) == (
        "control", "fascism", "Valdoria",
    )  # fmt: skip
    assert summary["truth"] is not None and summary["truth"]["value"] == 0.2
    samples = lab.list_experiment_samples("pilot")
    assert len(samples) == 2 * 6 * len(TEXTS)
    assert sum(row["is_swap"] for row in samples) == 6 * len(TEXTS)
    probes = lab.list_experiment_probes("pilot")
    assert len(probes) == len(samples)  # a judge that may not abstain scores everything
    assert all(row["probe"] is not None and 0 <= row["probe"] <= 1 for row in probes)
    rubrics = lab.list_experiment_rubrics("pilot")
    assert [(r["author"], r["is_swap"], len(r["stages"])) for r in rubrics] == [
        ("sim:balanced", False, 4), ("sim:strict", True, 4),
    ]  # fmt: skip
    assert all(r["observability"] is not None and 0 <= r["observability"] <= 1 for r in rubrics)


def test_evidence_that_is_read_as_it_is_is_done_without_a_call(lab: Lab, window: int) -> None:
    create(lab, window, config={**OURS, "neutralizeEvidence": False})
    lab.start_evidence_pipeline("pilot")
    assert status(lab) == "evidence-done"
    assert lab.reports.usage("pilot") == []
    lab.start_rubric_generation("pilot")
    assert status(lab) == "rubric-done"


def test_the_blueprints_names_are_our_knobs(lab: Lab, window: int) -> None:
    create(lab, window)
    assert lab.get_experiment_summary("pilot")["design"] == {
        **OURS,
        "judge.model": "sim:balanced",
        "verdict.method": "subset",
        "verdict.abstain": False,
        "presentation.first": "evidence",
        "probe.context": "same",
    }


def test_a_simulated_coder_is_no_judge(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="sim:coder-weak is a simulated coder"):
        lab.runs.plan(study_file(tmp_path, judges=["sim:coder-weak"]))


def test_an_experiment_by_the_blueprints_names_has_its_protocol_and_the_labs_assistant(
    lab: Lab, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def roles(lab: Lab, tag: str, model_id: str) -> tuple[Any, Any]:
        create(lab, window, tag, model_id=model_id, config={})
        summary = lab.get_experiment_summary(tag)
        assert summary["protocol"] == "contested-concepts"
        return summary["design"]["evidence.editor"], summary["design"]["rubric.critic"]

    assert roles(lab, "simulated", "sim:balanced") == ("sim:assistant", "sim:assistant")
    with pytest.raises(DesignError, match="JUDGE_GYM_ASSISTANT=provider:name"):
        create(lab, window, "hosted", model_id="openai:gpt-5.2", config={})
    monkeypatch.setenv("JUDGE_GYM_ASSISTANT", "google:gemini-2.5-flash")
    assert roles(lab, "hosted", "openai:gpt-5.2") == ("google:gemini-2.5-flash",) * 2
    named = Lab(lab.store, assistant="xai:grok-4")
    assert roles(named, "named", "openai:gpt-5.2") == ("xai:grok-4", "xai:grok-4")


def test_experiments_are_listed_by_type_and_exported_alone_and_together(
    lab: Lab, window: int
) -> None:
    create(lab, window, "one")
    create(lab, window, "two", task_type="control", concept="democracy quality")
    for tag in ("one", "two"):
        lab.runs.run(tag, samples=1)
    assert [row["tag"] for row in lab.list_experiments_by_task_type("control")] == ["two"]
    assert [row["tag"] for row in lab.list_experiments()] == ["one", "two"]
    one = list(csv.DictReader(io.StringIO(lab.export_experiment_csv("one"))))
    both = list(csv.DictReader(io.StringIO(lab.export_design_space_csv(["one", "two"]))))
    assert [row["tag"] for row in both] == ["one"] * len(one) + ["two"] * len(one)
    assert len(one) == len(TEXTS)
    assert both[: len(one)] == one
    assert set(CONTRACT) <= set(one[0])


@pytest.mark.parametrize(
    ("changes", "fault", "says"),
    [
        ({"window_id": 99}, NotFoundError, "99"),
        ({"config": {"scaleSize": 27}}, DesignError, "rubric.scale"),
        ({"config": {"scaleSize": 1}}, DesignError, "rubric.scale"),
        ({"config": {"scoringMethod": "telepathy"}}, DesignError, "structured-json"),
        ({"config": {"scaleSice": 4}}, DesignError, "scaleSice"),
        ({"model_id": "sim:nobody"}, DesignError, "sim:balanced"),
        ({"task_type": "poll"}, DesignError, "benchmark"),
        ({"task_type": "control", "ground_truth": {"value": 0.5}}, DesignError, "source"),
        ({"ground_truth": {"source": "x", "value": 0.5}}, DesignError, "ecc.*no ground truth"),
    ],
)
def test_a_faulty_experiment_is_refused_and_not_made(
    lab: Lab, window: int, changes: dict[str, Any], fault: type[Exception], says: str
) -> None:
    with pytest.raises(fault, match=says):
        create(lab, window, **changes)
    assert lab.list_experiments() == []


def test_a_tag_names_one_experiment(lab: Lab, window: int) -> None:
    create(lab, window)
    with pytest.raises(ConflictError, match="pilot"):
        create(lab, window, config={**OURS, "scaleSize": 5})
    assert lab.get_experiment_summary("pilot")["design"].get("rubric.scale") is None


def test_windows_and_what_is_not_there_are_checked(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="YYYY-MM-DD"):
        lab.create_window("1.1.2026", "2026-01-31", "Valdoria")
    with pytest.raises(NotFoundError, match="7"):
        lab.load_evidence(7, "*.md", folder=tmp_path)
    empty = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    with pytest.raises(ConflictError, match=f"no experiment was created on the window {empty}"):
        lab.start_evidence_pipeline(empty)
    for verb in (
        lab.get_experiment_summary, lab.list_experiment_rubrics, lab.list_experiment_samples,
        lab.list_experiment_probes, lab.export_experiment_csv, lab.start_scoring_trial,
        lab.reports.build, lab.experiments.cleanup, lab.experiments.samples,
    ):  # fmt: skip
        with pytest.raises(NotFoundError, match="nobody"):
            verb("nobody")


def test_an_experiment_judges_what_its_window_held_when_it_was_made(
    lab: Lab, window: int, tmp_path: Path
) -> None:
    create(lab, window, "old")
    (tmp_path / "late.txt").write_text("A bill is under review.")
    lab.load_evidence(window, "late.txt", folder=tmp_path)
    lab.runs.run("old", samples=1)
    assert set(lab.experiments.samples("old")["evidence_title"]) == {"T0", "T1", "T2"}
    create(lab, window, "new")
    lab.runs.run("new", samples=1)
    assert set(lab.experiments.samples("new")["evidence_title"]) == {"T0", "T1", "T2", "late"}


# --- benchmarks, as the blueprint orders their making --------------------------------------------


TONES = ("Calm", "Tense", "Harsh")


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """A benchmark of three items in a folder."""
    folder = tmp_path / "bench"
    folder.mkdir()
    items = [{"title": f"B{n}", "text": text, "truth": t} for n, (text, t) in
             enumerate(zip(TEXTS, ("Calm", 2, "Harsh"), strict=True))]  # fmt: skip
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, items)))
    stages = [{"label": tone, "criteria": [f"a sign of {tone}"]} for tone in TONES]
    (folder / "rubric.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    (folder / "benchmark.toml").write_text('concept = "tone"\n')
    return folder


def test_a_benchmark_is_made_as_the_blueprint_orders_it_and_run(
    lab: Lab, benchmark: Path, only_sections: OnlySections
) -> None:
    only_sections(which_judge, findings.rubrics_and_evidence)
    window = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    assert lab.load_benchmark_evidence(window, benchmark) == 3
    made = create(lab, window, task_type="benchmark", concept="tone")
    with pytest.raises(ConflictError, match=r"no rubric.*load"):
        lab.runs.run("pilot")
    digest = lab.load_benchmark_rubric("pilot", benchmark / "rubric.json")
    assert digest != made
    assert [(row["tag"], row["digest"]) for row in lab.list_experiments()] == [("pilot", digest)]
    assert lab.load_benchmark_rubric("pilot", benchmark / "rubric.json") == digest

    lab.start_evidence_pipeline("pilot")
    lab.start_rubric_generation("pilot")
    lab.start_scoring_trial("pilot", samples=2)
    lab.start_probing_trial("pilot")
    assert status(lab) == "complete"
    summary = lab.get_experiment_summary("pilot")
    assert (summary["task_type"], summary["concept"]) == ("benchmark", "tone")
    assert summary["design"]["rubric.author"] == "provided"
    [rubric] = lab.list_experiment_rubrics("pilot")
    assert (rubric["author"], [stage[0] for stage in rubric["stages"]]) == ("provided", [*TONES])
    assert rubric["observability"] is rubric["discriminability"] is None
    frame = lab.experiments.samples("pilot")
    assert len(frame) == 6
    assert (frame["n_stages"] == 3).all()
    truths = frame.groupby("evidence_title")["truth"].first()
    assert dict(truths) == {"B0": 1, "B1": 2, "B2": 3}, "labels became stage numbers"
    stages = {row["stage"] for row in lab.reports.usage()}
    assert "critic" not in stages and "rubricer" not in stages
    tables = {table.title: table.frame for table in lab.reports.build("pilot").tables}
    assert list(tables["Judges"]["exact_n"]) == [3]
    assert "Rubric quality" not in tables, "no critic rated the given rubric"


def test_a_benchmark_of_pairs_is_made_so_too(lab: Lab, tmp_path: Path) -> None:
    window = pairs_window(lab, tmp_path)
    create(lab, window, task_type="benchmark", concept="the better response", config={})
    rubric = tmp_path / "options.json"
    options = [{"label": label, "criteria": ["it is right"]} for label in ("first", "second")]
    rubric.write_text(json.dumps({"kind": "nominal", "stages": options}))
    lab.load_benchmark_rubric("pilot", rubric)
    assert lab.runs.run("pilot", samples=1).status == "complete"
    frame = lab.experiments.samples("pilot")
    assert len(frame) == 4
    assert sorted(frame["flipped"]) == [False, False, True, True], "both orders are asked"


def pairs_window(lab: Lab, tmp_path: Path) -> int:
    """A window of two pairs."""
    rows = [
        {"pair_id": f"p{n}", "source": "mine", "question": f"What is twice {n}?", "label": "A>B",
         "response_A": f"It is {2 * n}.", "response_B": f"It is {3 * n}."} for n in (1, 2)
    ]  # fmt: skip
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    window = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    assert lab.load_benchmark_evidence(window, tmp_path / "pairs.jsonl") == 2
    return window


def test_a_benchmark_rubric_must_fit_its_experiment(
    lab: Lab, window: int, benchmark: Path, tmp_path: Path
) -> None:
    create(lab, window, "contested")
    with pytest.raises(DesignError, match="contested is no benchmark"):
        lab.load_benchmark_rubric("contested", benchmark / "rubric.json")
    with pytest.raises(NotFoundError, match="nobody"):
        lab.load_benchmark_rubric("nobody", benchmark / "rubric.json")
    other = lab.create_window("2026-01-01", "2026-01-31", "Norvessa")
    lab.load_benchmark_evidence(other, benchmark)
    made = create(lab, other, task_type="benchmark", concept="tone")
    short = tmp_path / "short.json"
    stages = [{"label": tone, "criteria": ["a sign"]} for tone in ("Calm", "Tense")]
    short.write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    with pytest.raises(DesignError, match=r"3.*'Calm' or 'Tense'"):
        lab.load_benchmark_rubric("pilot", short)
    with pytest.raises(DesignError, match=r"missing\.json"):
        lab.load_benchmark_rubric("pilot", tmp_path / "missing.json")
    assert lab.get_experiment_summary("pilot")["digest"] == made


def test_another_rubric_is_another_experiment_and_the_first_is_kept(
    lab: Lab, benchmark: Path, tmp_path: Path
) -> None:
    window = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    lab.load_benchmark_evidence(window, benchmark)
    create(lab, window, task_type="benchmark", concept="tone")
    first = lab.load_benchmark_rubric("pilot", benchmark / "rubric.json")
    lab.runs.run("pilot", samples=1)
    changed = json.loads((benchmark / "rubric.json").read_text())
    changed["stages"][0]["criteria"] = ["another sign"]
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    second = lab.load_benchmark_rubric("pilot", tmp_path / "changed.json")
    assert second != first
    assert status(lab) == "pending", "its views are made anew"
    assert len(lab.experiments.samples(f"pilot@{first[:8]}")) == 3


# --- evidence that the lab holds -----------------------------------------------------------------


def test_a_study_may_name_a_frozen_pool(lab: Lab, window: int, write_study: WriteStudy) -> None:
    lab.evidence.freeze_pool("january", window_id=window)
    frozen = lab.store.evidence.find_named_pool("january")
    path = write_study(evidence={"here": {"pool": "january"}})
    [plan, _] = lab.runs.estimate(path)
    first = lab.runs.run(path)
    assert (first.status, paid(first)) == ("complete", plan.total().to_pay)
    assert {row["country"] for row in lab.list_experiments()} == {"Valdoria"}
    assert set(lab.experiments.samples("small")["evidence"]) == {item.id for item in frozen.items}
    lab.evidence.drop([frozen.items[0].id])
    assert paid(lab.runs.run(path)) == 0, "the pool stays what it was"


def test_a_frozen_pool_without_a_window_is_for_benchmarks_only(
    lab: Lab, benchmark: Path, write_study: WriteStudy, tmp_path: Path
) -> None:
    lab.evidence.freeze_pool("loose", files=["bench/items.jsonl"], folder=tmp_path)
    path = write_study(evidence={"here": {"pool": "loose"}})
    with pytest.raises(DesignError, match=r"'here' has no window, so no country"):
        lab.runs.run(path)
    task = {"type": "benchmark", "concept": "tone", "evidence": "here",
            "rubric": "bench/rubric.json"}  # fmt: skip
    lab.runs.run(
        write_study(evidence={"here": {"pool": "loose"}}, tasks=[task], design={}, samples=1)
    )
    assert dict(lab.experiments.samples("small").groupby("evidence_title")["truth"].first()) == {
        "B0": 1, "B1": 2, "B2": 3,
    }  # fmt: skip


def test_a_study_that_names_an_unknown_pool_is_refused(lab: Lab, write_study: WriteStudy) -> None:
    with pytest.raises(NotFoundError, match="'january'"):
        lab.runs.run(write_study(evidence={"here": {"pool": "january"}}))
    assert lab.list_experiments() == []


DATES = {"country": "Valdoria", "start": "2026-01-01", "end": "2026-01-31"}


def test_a_study_may_name_a_window_that_the_lab_holds(
    lab: Lab, window: int, write_study: WriteStudy, tmp_path: Path
) -> None:
    path = write_study(evidence={"here": {"window": DATES}}, samples=1)
    assert lab.runs.run(path).status == "complete"
    assert set(lab.experiments.samples("small")["evidence_title"]) == {"T0", "T1", "T2"}
    (tmp_path / "late.txt").write_text("A bill is under review.")
    lab.load_evidence(window, "late.txt", folder=tmp_path)
    lab.evidence.drop([1])
    assert lab.runs.run(path).status == "complete"
    assert set(lab.experiments.samples(str(path))["evidence_title"]) == {"T1", "T2", "late"}


def test_a_window_that_holds_nothing_says_how_to_fill_it(
    lab: Lab, window: int, write_study: WriteStudy
) -> None:
    path = write_study(evidence={"here": {"window": {**DATES, "country": "Norvessa"}}})
    with pytest.raises(ConflictError, match=r"'here'.*Norvessa.*judge-gym evidence add FILES"):
        lab.runs.run(path)
    lab.evidence.drop([1, 2, 3])
    with pytest.raises(ConflictError, match=r"nothing was found.*Valdoria.*2026-01-01"):
        lab.runs.estimate(write_study(evidence={"here": {"window": DATES}}))
    assert lab.list_experiments() == []


def test_files_and_the_same_texts_in_a_window_are_one_experiment(
    lab: Lab, window: int, write_study: WriteStudy
) -> None:
    first = lab.runs.run(write_study(evidence={"here": {"files": "news.jsonl", "window": DATES}}))
    again = lab.runs.run(write_study(evidence={"here": {"window": DATES}}))
    assert paid(first) > 0
    assert paid(again) == 0
    assert [run.run for run in first.runs] == [run.run for run in again.runs]


# --- people --------------------------------------------------------------------------------------


def test_columns_of_a_pool_are_labels_of_people(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("title,text,ann,bob\na,It fell.,1,2\nb,It rose.,3,\n")
    line = {"title": "c", "text": "It stood.", "ann": 4, "bob": None}
    (tmp_path / "rows.jsonl").write_text(json.dumps(line))
    study: dict[str, Any] = {
        "study": "labelled",
        "samples": 1,
        "probe": False,
        "evidence": {"rows": {"files": ["rows.csv", "rows.jsonl"], "labels": ["ann", "bob"]}},
        "tasks": [{"concept": "motion", "evidence": "rows"}],
        "judges": ["sim:balanced"],
    }
    path = tmp_path / "study.yaml"

    def run(**changes: Any) -> list[tuple[str, ...]]:
        path.write_text(json.dumps({**study, **changes}))  # JSON is YAML
        lab.runs.run(path)
        rows = lab.labels.list()
        return [(row["title"], row["rater"], row["stage"], row["concept"]) for row in rows]

    given = [("a", "ann", "1"), ("a", "bob", "2"), ("b", "ann", "3"), ("c", "ann", "4")]
    assert run() == [(*label, "motion") for label in given]
    (tmp_path / "rows.csv").write_text("title,text,ann,bob\na,It fell.,2,2\nb,It rose.,3,\n")
    assert ("a", "ann", "2", "motion") in run(), "the file is what counts"

    rows = study["evidence"]["rows"]
    other = {"concept": "mood", "evidence": "rows"}
    for changes, words in (
        ({"evidence": {"rows": {**rows, "labels": ["ann", "bob", "eve"]}}}, "unknown column .eve."),
        ({"evidence": {"rows": {**rows, "labels": ["ann", "ann"]}}}, "twice"),
        ({"tasks": [*study["tasks"], other]}, "one concept"),
        ({"design": {"rubric.scale": 3}}, "ann gives 'c' the stage '4'; choose 1, 2, 3"),
    ):
        with pytest.raises(DesignError, match=words):
            run(**changes)


def test_labels_reach_the_report_as_agreement_with_people(
    lab: Lab, write_study: WriteStudy, tmp_path: Path, only_sections: OnlySections
) -> None:
    """One judge always says stage 1; the other 1 in the first replicate and 2 in the second."""
    only_sections(which_judge)

    def answer(request: Request) -> str:
        second = request.model == "sim:hasty" and request.draw.index == 1
        return f"VERDICT: {'B' if second else 'A'}"

    replace_engine(lab, Engine(lab.store, Scripted(answer)))
    rows = [{"title": f"I{n}", "text": f"Text {n}."} for n in range(1, 6)]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    stages = [{"label": name, "criteria": ["sign"]} for name in ("Low", "High")]
    (tmp_path / "r.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    path = write_study(
        evidence={"here": {"files": "items.jsonl"}},
        tasks=[{"type": "benchmark", "concept": "tone", "evidence": "here", "rubric": "r.json"}],
        judges=["sim:strict", "sim:hasty"],
        design={"presentation.labels": "fixed", "presentation.order": "fixed"},
        probe=False,
    )
    lab.runs.run(path)
    assert "exact" not in lab.reports.build("small").table("judges")
    labels = tmp_path / "labels.csv"
    labels.write_text(
        "item,rater,stage\n"
        "I1,ann,1\nI1,bob,Low\nI1,cid,2\n"  # two of three say 1
        "I2,ann,2\nI2,bob,High\n"  # both say 2
        "I3,ann,1\nI3,bob,2\n"  # a tie
        "I4,dora,Low\n"  # nobody speaks of the fifth
    )
    lab.labels.import_file(labels, target="small")
    report = lab.reports.build("small")
    table = report.table("judges").set_index("setup")
    # With a random rater: 2/3 on I1, 0 on I2, 1/2 on I3 and 1 on I4.
    low, high = (2 / 3 + 0 + 1 / 2 + 1) / 4, (1 / 3 + 1 + 1 / 2 + 0) / 4
    assert table.loc["strict", "exact"] == pytest.approx(low)
    assert table.loc["hasty", "exact"] == pytest.approx((low + high) / 2)
    assert {*table["exact_n"]} == {4}
    [judges] = [one for one in report.tables if one.title == "Judges"]
    assert "agreement with people" in judges.cells
    [confusion] = [one for one in report.tables if one.title == "Verdicts and labels"]
    assert {*confusion.frame["label"]} == {"Low", "High"}, "in the words of the labels"


# --- tidy rows -----------------------------------------------------------------------------------


def test_samples_have_the_columns_of_the_contract_and_one_per_knob(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.runs.run(write_study(vary={"verdict.method": ["single", "subset"]}, swap="all"))
    frame = lab.experiments.samples()
    assert set(CONTRACT) <= set(frame.columns)
    assert set(Design.knobs()) <= set(frame.columns)
    assert set(frame["verdict.method"]) == {"single", "subset"}
    assert set(frame["rubric.scale"]) == {4}
    assert (frame["n_stages"] == 4).all()
    assert not frame.columns.duplicated().any()
    assert not frame.duplicated(["tag", "sample"]).any()
    scored = frame[frame["status"] == "scored"]
    assert scored["stages"].str.fullmatch(r"[1-4]( [1-4])*").all()
    single = scored[scored["verdict.method"] == "single"]
    assert single["stages"].str.fullmatch(r"[1-4]").all()


def test_samples_are_of_tags_of_studies_or_of_everything(lab: Lab, write_study: WriteStudy) -> None:
    path = write_study()
    lab.runs.run(path)
    lab.runs.run(write_study("other.yaml", study="other", seed=9))
    everything = lab.experiments.samples()
    assert set(everything["study"]) == {"small", "other"}
    assert set(lab.experiments.samples("other")["study"]) == {"other"}
    pd.testing.assert_frame_equal(
        lab.experiments.samples(str(path)), lab.experiments.samples("small")
    )
    tags = sorted(set(lab.experiments.samples("small")["tag"]))
    assert sorted(set(lab.experiments.samples(*tags)["tag"])) == tags
    assert (
        len(lab.experiments.samples(tags[0], tags[0])) == len(lab.experiments.samples("small")) // 2
    )


def test_a_frame_without_samples_still_has_its_columns(lab: Lab, window: int) -> None:
    create(lab, window)
    for frame in (lab.experiments.samples("pilot"), lab.experiments.samples()):
        assert len(frame) == 0
        assert set(CONTRACT) | set(Design.knobs()) <= set(frame.columns)


def test_exports_read_back_as_the_frame(lab: Lab, write_study: WriteStudy, tmp_path: Path) -> None:
    lab.runs.run(write_study())
    frame = lab.experiments.samples("small")
    assert lab.experiments.export(["small"], tmp_path / "s.parquet", format="parquet") == len(frame)
    assert lab.experiments.export(["small"], tmp_path / "s.csv") == len(frame)
    parquet = pd.read_parquet(tmp_path / "s.parquet")
    text = pd.read_csv(tmp_path / "s.csv", dtype={"stages": str}, keep_default_na=False)
    for column in CONTRACT:
        if column != "probe":
            assert list(parquet[column]) == list(frame[column]), column
            assert list(map(str, text[column])) == list(map(str, frame[column])), column
    assert list(parquet["probe"].dropna()) == list(frame["probe"].dropna())


def test_a_corrected_truth_and_a_later_cluster_show_without_paying_again(
    lab: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    path = write_study()
    lab.runs.run(path)
    lines = [json.loads(line) for line in (tmp_path / "evidence.jsonl").read_text().splitlines()]
    given = [{"truth": n + 1, "cluster": f"outlet {n % 2}"} for n in range(len(lines))]
    with_truth = [json.dumps(line | more) for line, more in zip(lines, given, strict=True)]
    (tmp_path / "evidence.jsonl").write_text("\n".join(with_truth))
    assert paid(lab.runs.run(path)) == 0
    items = lab.experiments.samples("small").groupby("evidence_title")[["truth", "cluster"]].first()
    assert items.T.to_dict() == {
        line["title"]: more for line, more in zip(lines, given, strict=True)
    }


# --- which pairs to swap -------------------------------------------------------------------------


def test_the_most_divergent_pair_is_suggested_first(lab: Lab, write_study: WriteStudy) -> None:
    """One judge always says A, one always D, and one says A and D by turns."""

    def answer(request: Request) -> str:
        asked = request.messages[-1].content
        if "STAGE 1:" in asked:
            return "".join(f"STAGE {n}: L{n}\n- sign {n}\n" for n in range(1, 5))
        if "VERDICT:" not in asked:
            return "OBSERVABILITY: 0.8\nDISCRIMINABILITY: 0.8"
        turns = "AD"[request.draw.index % 2]
        return f"VERDICT: { {'sim:strict': 'A', 'sim:alarmist': 'D'}.get(request.model, turns) }"

    replace_engine(lab, Engine(lab.store, Scripted(answer)))
    path = write_study(
        judges=["sim:strict", "sim:balanced", "sim:alarmist"],
        probe=False,
        design={
            "evidence.view": "raw",
            "rubric.critic": "sim:critic",
            "presentation.labels": "fixed",
            "presentation.order": "fixed",
        },
    )
    with pytest.raises(NotFoundError):
        lab.reports.suggest_swaps("small")
    lab.runs.run(path, workflows=["rubric"])
    with pytest.raises(ConflictError, match="score it first"):
        lab.reports.suggest_swaps("small")
    lab.runs.run(path)
    pairs = lab.reports.suggest_swaps("small")
    assert {pairs["judge"][0], pairs["other"][0]} == {"sim:strict", "sim:alarmist"}
    assert len(pairs) == 3
    # Disjoint judges are one bit apart; a coin against one of its sides is 0.311.
    assert list(pairs["p"]) == pytest.approx([1.0, 0.3113, 0.3113], abs=1e-4)


# --- forgetting ----------------------------------------------------------------------------------


def test_forgetting_keeps_the_ledger_so_that_running_again_pays_nothing(
    lab: Lab, write_study: WriteStudy
) -> None:
    path = write_study()
    first = lab.runs.run(path)
    before = lab.experiments.samples("small")
    for run in first.runs:
        counts = lab.experiments.cleanup(run.tag)
        assert (counts["runs"], counts["samples"], counts["calls"]) == (1, 6, 0)
    for row in lab.list_experiments():
        assert row["status"] == "cleaned-up" and row["runs"] == []
        assert row["cleaned_up"] is not None and row["cleaned_up"].tzinfo is not None
    again = lab.runs.run(path)
    assert (paid(again), again.status) == (0, "complete")
    assert {row["cleaned_up"] for row in lab.list_experiments()} == {None}
    kept = [*CONTRACT, "display"]
    keys = ["tag", "evidence", "replicate"]
    pd.testing.assert_frame_equal(
        lab.experiments.samples("small")[kept].sort_values(keys, ignore_index=True),
        before[kept].sort_values(keys, ignore_index=True),
    )


def test_forgetting_the_ledger_too_deletes_only_calls_that_nobody_else_uses(
    lab: Lab, write_study: WriteStudy
) -> None:
    path = write_study(judges=["sim:balanced"], vary={"probe.context": ["fresh", "same"]})
    lab.runs.run(path)
    base = "small/fascism/here/sim:balanced"
    same = f"{base}/probe.context=same"
    probed = len(lab.list_experiment_probes(base))
    counts = lab.experiments.cleanup(base, ledger=True)
    assert counts["calls"] == probed  # the scores belong to the other as well
    assert paid(lab.runs.run(same)) == 0
    assert len(lab.experiments.samples(same)) == 6
    assert paid(lab.runs.run(path)) == probed
    for tag in (base, same):
        lab.experiments.cleanup(tag, ledger=True, forget=True)
    assert lab.list_experiments() == []
    again = lab.runs.run(path)
    # What both experiments use is booked under the one whose worker asked for it first.
    asked = [row["attempts"] for row in lab.reports.usage() if row["stage"] == "neutralizer"]
    assert sum(asked) == 3
    assert paid(again) == 6 + 2 * probed  # views, rubric and critique are still there


def test_a_run_that_may_be_going_on_is_not_forgotten_without_a_flag(
    lab: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    path = write_study(judges=["sim:balanced"])
    [run] = lab.runs.run(path, workflows=["evidence", "rubric", "score"]).runs
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as other, other.engine.lock():
        with pytest.raises(ConflictError, match=r"probing.*force"):
            lab.experiments.cleanup(run.tag)
        assert len(lab.experiments.samples(run.tag)) == 6
        assert lab.experiments.cleanup(run.tag, force=True)["samples"] == 6
    lab.runs.run(path)
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as other, other.engine.lock():
        assert lab.experiments.cleanup(run.tag)["samples"] == 6  # a finished one is not being run


# --- names ---------------------------------------------------------------------------------------


def test_an_edited_study_moves_its_tags_and_keeps_what_they_meant(
    lab: Lab, write_study: WriteStudy
) -> None:
    [old] = lab.runs.run(write_study(judges=["sim:balanced"])).runs
    digest = lab.get_experiment_summary(old.tag)["digest"]
    [new] = lab.runs.run(write_study(judges=["sim:balanced"], seed=4)).runs
    assert new.tag == old.tag
    assert new.run != old.run
    assert lab.get_experiment_summary(old.tag)["digest"] != digest
    kept = f"{old.tag}@{str(digest)[:8]}"
    assert lab.get_experiment_summary(kept)["digest"] == digest
    assert set(lab.experiments.samples(kept)["run"]) == {old.run}
    assert set(lab.experiments.samples(new.tag)["run"]) == {new.run}


def test_a_study_reads_as_it_stands_now_not_as_it_once_stood(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.runs.run(write_study(judges=["sim:balanced"]))
    [new] = lab.runs.run(write_study(judges=["sim:balanced"], seed=4)).runs
    assert set(lab.experiments.samples("small")["run"]) == {new.run}
    lab.runs.run(write_study(judges=["sim:balanced"]))
    assert not lab.experiments.samples("small").duplicated("sample").any()


def test_two_studies_of_one_experiment_have_runs_of_their_own_and_share_its_answers(
    lab: Lab, write_study: WriteStudy
) -> None:
    first = lab.runs.run(write_study())
    second = lab.runs.run(write_study("other.yaml", study="other"))
    assert not {run.run for run in first.runs} & {run.run for run in second.runs}
    assert paid(second) == 0
    assert len(lab.experiments.samples("other")) == len(lab.experiments.samples("small")) == 12


def test_a_study_is_run_on_by_its_name_with_its_targets(lab: Lab, write_study: WriteStudy) -> None:
    path = write_study(swap="all", samples=3)
    lab.runs.run(path, workflows=["evidence"])
    result = lab.runs.run("small")
    assert (result.study, result.status) == ("small", "complete")
    assert len(lab.experiments.samples("small")) == 2 * 2 * 3 * 3
    with pytest.raises(DesignError, match="--set"):
        lab.runs.run("small", overrides={"rubric.scale": 5})


# --- notebooks, tools ----------------------------------------------------------------------------


def test_a_lab_works_inside_a_running_event_loop(lab: Lab, write_study: WriteStudy) -> None:
    path = write_study()

    async def cell() -> Any:
        await asyncio.sleep(0)
        result = lab.runs.run(path)
        return result, len(lab.experiments.samples("small"))

    result, rows = asyncio.run(cell())
    assert (result.status, rows) == ("complete", 12)


@dataclass
class Watching:
    """What a face sees of a run."""

    tallies: Any = ()

    def __call__(self, tallies: Any) -> None:
        assert not self.tallies
        assert sum(tally.paid for tally in tallies) == 0
        self.tallies = tallies


def test_a_face_can_watch_a_run(lab: Lab, write_study: WriteStudy) -> None:
    watching = Watching()
    result = lab.runs.run(write_study(), watch=watching)
    assert [tally.paid for tally in watching.tallies] == [run.calls for run in result.runs]
    for tally in watching.tallies:
        assert tally.done == {stage: n for stage, n in tally.targets.items() if n}
        assert tally.done["score"] == 6


def test_usage_says_what_each_experiment_paid(lab: Lab, write_study: WriteStudy) -> None:
    result = lab.runs.run(write_study())
    usage = pd.DataFrame(lab.reports.usage("small"))
    by_tag = usage.groupby("tag")["attempts"].sum()
    assert dict(by_tag) == {run.tag: run.calls for run in result.runs}
    assert lab.reports.usage("other") == []


# --- what must not mislead -----------------------------------------------------------------------


def test_a_judge_is_no_rival_of_itself(lab: Lab, write_study: WriteStudy) -> None:
    path = write_study()
    [strict] = [run.tag for run in lab.runs.run(path).runs if "strict" in run.tag]
    with pytest.raises(DesignError, match="no rival of itself"):
        lab.runs.run(strict, workflows=["swap"], rivals=["sim:strict"])
    lab.runs.run(
        path, workflows=["swap"], rivals=["sim:strict"]
    )  # of a study, the others are swapped
    swapped = lab.experiments.samples("small").query("is_swap")
    assert set(swapped["judge.model"]) == {"sim:balanced"}
    assert set(swapped["rubric_author"]) == {"sim:strict"}
    assert lab.runs.run(path).status == "complete"


def test_a_swap_that_nobody_asked_for_is_refused(lab: Lab, write_study: WriteStudy) -> None:
    with pytest.raises(DesignError, match="swap: all"):
        lab.runs.run(write_study(), workflows=["swap"])


def test_truths_of_items_belong_to_the_study_that_gives_them(
    lab: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    stages = [{"label": name, "criteria": ["sign"]} for name in ("Low", "High")]
    (tmp_path / "r.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    task = {"type": "benchmark", "concept": "tone", "evidence": "here", "rubric": "r.json"}
    texts = ["All was adopted unanimously.", "A paper was banned."]
    for study, truths in (("graded", ["Low", 2]), ("plain", [None, None])):
        rows = [{"text": x, "truth": t} for x, t in zip(texts, truths, strict=True)]
        (tmp_path / f"{study}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        pool = {"here": {"files": f"{study}.jsonl"}}
        lab.runs.run(write_study(study=study, evidence=pool, tasks=[task], design={}))
    assert set(lab.experiments.samples("graded")["truth"]) == {1, 2}, "labels become stage numbers"
    assert lab.experiments.samples("plain")["truth"].isna().all()


def test_a_truth_that_is_no_stage_is_refused(
    lab: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    stages = [{"label": name, "criteria": ["sign"]} for name in ("Low", "High")]
    (tmp_path / "r.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    (tmp_path / "e.jsonl").write_text('{"text": "A paper was banned.", "truth": "Huge"}')
    task = {"type": "benchmark", "concept": "tone", "evidence": "here", "rubric": "r.json"}
    with pytest.raises(DesignError, match=r"'Huge'.*'Low' or 'High'"):
        lab.runs.estimate(
            write_study(evidence={"here": {"files": "e.jsonl"}}, tasks=[task], design={})
        )


def test_a_report_says_what_is_unfinished_and_keeps_series_apart(
    lab: Lab, write_study: WriteStudy, only_sections: OnlySections
) -> None:
    only_sections(verdicts.response_outcomes)
    path = write_study(probe=False)
    lab.runs.run(path, workflows=["evidence"])
    lab.runs.run(path, workflows=["rubric"])
    lab.runs.run(path, workflows=["score"], samples=1)
    lab.runs.run(path, series="again", workflows=["score"], samples=2)
    lab.runs.estimate(path)
    report = lab.reports.build(str(path))
    shares = report.table("statuses")
    assert set(shares["variant"]) == {"series=3", "series=again"}
    assert report.facts["series"] == "3, again"
    lab.runs.run(path, series="again", samples=9, workflows=["rubric"])
    assert any("not complete" in warning for warning in lab.reports.build("small").warnings)


def test_a_study_file_is_reported_as_it_stands(lab: Lab, write_study: WriteStudy) -> None:
    lab.runs.run(write_study())
    shorter = write_study(judges=["sim:balanced"])
    assert set(lab.experiments.samples(str(shorter))["judge.model"]) == {"sim:balanced"}
    assert set(lab.experiments.samples("small")["judge.model"]) == {"sim:balanced", "sim:strict"}


def test_judges_that_differ_in_opposite_ways_per_variant_are_still_far_apart(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.runs.run(write_study(vary={"rubric.scale": [4, 5]}, samples=5))
    pairs = lab.reports.suggest_swaps("small")
    assert len(pairs) == 1 and pairs["p"].iloc[0] > 0
    assert "variant" not in pairs


# --- odd cases -----------------------------------------------------------------------------------


@pytest.mark.parametrize("type", ["ecc", "control"])
def test_pairs_are_put_on_no_scale(lab: Lab, tmp_path: Path, type: str) -> None:
    """A study refuses it; an experiment made by hand must, too."""
    window = pairs_window(lab, tmp_path)
    with pytest.raises(DesignError, match="pairs"):
        create(lab, window, task_type=type)
    assert lab.list_experiments() == []


def test_the_judge_of_a_benchmark_does_not_edit_its_own_evidence(lab: Lab, benchmark: Path) -> None:
    """A study refuses it; an experiment made by hand must, too, before anything is paid."""
    window = lab.create_window("2026-01-01", "2026-01-31", "Valdoria")
    lab.load_benchmark_evidence(window, benchmark)
    config = {"evidence.view": "neutralized", "evidence.editor": "sim:balanced"}
    with pytest.raises(DesignError, match=r"evidence\.editor"):
        create(lab, window, task_type="benchmark", concept="tone", config=config)
        lab.load_benchmark_rubric("pilot", benchmark / "rubric.json")
    assert lab.reports.usage() == []


def test_a_judge_that_refuses_everything_has_a_score_of_nothing(lab: Lab, benchmark: Path) -> None:
    refusal = Completion("", "refusal", "sim:balanced", 10, 5, 0.0)
    replace_engine(lab, Engine(lab.store, Scripted(lambda request: refusal)))
    prepared = lab.benchmarks.prepare(benchmark, ["sim:balanced"])
    assert lab.runs.run(prepared).status == "complete"
    [row] = lab.benchmarks.known_answers(prepared).to_dict("records")
    assert (row["n"], row["scored"]) == (3, 0)
    assert row["mean"] == 0, "a verdict that was asked and is not there is not right"
