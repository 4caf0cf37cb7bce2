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

from conftest import Scripted
from judge_gym.axes import Design
from judge_gym.engine import Engine
from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.lab import Lab
from judge_gym.records import Request

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


def create(lab: Lab, window: int, tag: str = "pilot", **changes: Any) -> str:
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
    runs = lab.get_experiment_summary(tag)["runs"]
    return str(runs[-1]["status"]) if runs else "pending"


# --- the blueprint's runbook ---------------------------------------------------------------------


def test_the_blueprints_runbook_on_one_experiment(lab: Lab, window: int) -> None:
    create(lab, window, ground_truth={"source": "index", "value": 0.2})
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
    lab.run("pilot", workflows=["probe"], samples=6)  # one more is wanted and not yet made
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
        "ecc", "fascism", "Valdoria",
    )  # fmt: skip
    assert summary["truth"]["value"] == 0.2
    samples = lab.list_experiment_samples("pilot")
    assert len(samples) == 2 * 6 * len(TEXTS)
    assert sum(row["is_swap"] for row in samples) == 6 * len(TEXTS)
    probes = lab.list_experiment_probes("pilot")
    assert len(probes) == len(samples)  # a judge that may not abstain scores everything
    assert all(0 <= row["probe"] <= 1 for row in probes)
    rubrics = lab.list_experiment_rubrics("pilot")
    assert [(r["author"], r["is_swap"], len(r["stages"])) for r in rubrics] == [
        ("sim:balanced", False, 4), ("sim:strict", True, 4),
    ]  # fmt: skip
    assert all(0 <= r["observability"] <= 1 for r in rubrics)


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


def test_experiments_are_listed_by_type_and_exported_alone_and_together(
    lab: Lab, window: int
) -> None:
    create(lab, window, "one")
    create(lab, window, "two", task_type="control", concept="democracy quality")
    for tag in ("one", "two"):
        lab.run(tag, samples=1)
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
        ({"ground_truth": {"value": 0.5}}, DesignError, "source"),
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
    with pytest.raises(ConflictError, match="no evidence for 'fascism'"):
        create(lab, empty)
    for verb in (
        lab.get_experiment_summary, lab.list_experiment_rubrics, lab.list_experiment_samples,
        lab.list_experiment_probes, lab.export_experiment_csv, lab.start_scoring_trial,
        lab.report, lab.cleanup, lab.samples,
    ):  # fmt: skip
        with pytest.raises(NotFoundError, match="nobody"):
            verb("nobody")


def test_an_experiment_judges_what_its_window_held_when_it_was_made(
    lab: Lab, window: int, tmp_path: Path
) -> None:
    create(lab, window, "old")
    (tmp_path / "late.txt").write_text("A bill is under review.")
    lab.load_evidence(window, "late.txt", folder=tmp_path)
    lab.run("old", samples=1)
    assert set(lab.samples("old")["evidence_title"]) == {"T0", "T1", "T2"}
    create(lab, window, "new")
    lab.run("new", samples=1)
    assert set(lab.samples("new")["evidence_title"]) == {"T0", "T1", "T2", "late"}


# --- tidy rows -----------------------------------------------------------------------------------


def test_samples_have_the_columns_of_the_contract_and_one_per_knob(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.run(write_study(vary={"verdict.method": ["single", "subset"]}, swap="all"))
    frame = lab.samples()
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
    lab.run(path)
    lab.run(write_study("other.yaml", study="other", seed=9))
    everything = lab.samples()
    assert set(everything["study"]) == {"small", "other"}
    assert set(lab.samples("other")["study"]) == {"other"}
    pd.testing.assert_frame_equal(lab.samples(str(path)), lab.samples("small"))
    tags = sorted(set(lab.samples("small")["tag"]))
    assert sorted(set(lab.samples(*tags)["tag"])) == tags
    assert len(lab.samples(tags[0], tags[0])) == len(lab.samples("small")) // 2


def test_a_frame_without_samples_still_has_its_columns(lab: Lab, window: int) -> None:
    create(lab, window)
    for frame in (lab.samples("pilot"), lab.samples()):
        assert len(frame) == 0
        assert set(CONTRACT) | set(Design.knobs()) <= set(frame.columns)


def test_exports_read_back_as_the_frame(lab: Lab, write_study: WriteStudy, tmp_path: Path) -> None:
    lab.run(write_study())
    frame = lab.samples("small")
    assert lab.export(["small"], tmp_path / "s.parquet", format="parquet") == len(frame)
    assert lab.export(["small"], tmp_path / "s.csv") == len(frame)
    parquet = pd.read_parquet(tmp_path / "s.parquet")
    text = pd.read_csv(tmp_path / "s.csv", dtype={"stages": str}, keep_default_na=False)
    for column in CONTRACT:
        if column != "probe":
            assert list(parquet[column]) == list(frame[column]), column
            assert list(map(str, text[column])) == list(map(str, frame[column])), column
    assert list(parquet["probe"].dropna()) == list(frame["probe"].dropna())


def test_a_corrected_truth_shows_without_paying_again(
    lab: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    path = write_study()
    lab.run(path)
    lines = [json.loads(line) for line in (tmp_path / "evidence.jsonl").read_text().splitlines()]
    with_truth = [json.dumps({**line, "truth": n + 1}) for n, line in enumerate(lines)]
    (tmp_path / "evidence.jsonl").write_text("\n".join(with_truth))
    assert paid(lab.run(path)) == 0
    truths = lab.samples("small").groupby("evidence_title")["truth"].first()
    assert dict(truths) == {line["title"]: n + 1 for n, line in enumerate(lines)}


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

    lab.engine = Engine(lab.store, Scripted(answer))
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
        lab.suggest_swaps("small")
    lab.run(path, workflows=["rubric"])
    with pytest.raises(ConflictError, match="score it first"):
        lab.suggest_swaps("small")
    lab.run(path)
    pairs = lab.suggest_swaps("small")
    assert {pairs["judge"][0], pairs["other"][0]} == {"sim:strict", "sim:alarmist"}
    assert len(pairs) == 3
    # Disjoint judges are one bit apart; a coin against one of its sides is 0.311.
    assert list(pairs["p"]) == pytest.approx([1.0, 0.3113, 0.3113], abs=1e-4)


# --- forgetting ----------------------------------------------------------------------------------


def test_forgetting_keeps_the_ledger_so_that_running_again_pays_nothing(
    lab: Lab, write_study: WriteStudy
) -> None:
    path = write_study()
    first = lab.run(path)
    before = lab.samples("small")
    for run in first.runs:
        counts = lab.cleanup(run.tag)
        assert (counts["runs"], counts["samples"], counts["calls"]) == (1, 6, 0)
    assert lab.list_experiments() == []
    again = lab.run(path)
    assert (paid(again), again.status) == (0, "complete")
    kept = [*CONTRACT, "display"]
    keys = ["tag", "evidence", "replicate"]
    pd.testing.assert_frame_equal(
        lab.samples("small")[kept].sort_values(keys, ignore_index=True),
        before[kept].sort_values(keys, ignore_index=True),
    )


def test_forgetting_the_ledger_too_deletes_only_calls_that_nobody_else_uses(
    lab: Lab, write_study: WriteStudy
) -> None:
    path = write_study(judges=["sim:balanced"], vary={"probe.context": ["fresh", "same"]})
    lab.run(path)
    base = "small/fascism/here/sim:balanced"
    same = f"{base}/probe.context=same"
    probed = len(lab.list_experiment_probes(base))
    counts = lab.cleanup(base, ledger=True)
    assert counts["calls"] == probed  # the scores belong to the other as well
    assert paid(lab.run(same)) == 0
    assert len(lab.samples(same)) == 6
    assert paid(lab.run(path)) == probed
    for tag in (base, same):
        lab.cleanup(tag, ledger=True)
    again = lab.run(path)
    usage = {row["stage"]: row["attempts"] for row in lab.usage() if row["tag"] == base}
    assert usage["neutralizer"] == 3
    assert paid(again) == 6 + 2 * probed  # views, rubric and critique are still there


def test_a_run_that_may_be_going_on_is_not_forgotten_without_a_flag(
    lab: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    path = write_study(judges=["sim:balanced"])
    [run] = lab.run(path, workflows=["evidence", "rubric", "score"]).runs
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as other, other.engine.lock():
        with pytest.raises(ConflictError, match=r"probing.*--force"):
            lab.cleanup(run.tag)
        assert len(lab.samples(run.tag)) == 6
        assert lab.cleanup(run.tag, force=True)["samples"] == 6
    lab.run(path)
    with Lab.open(f"sqlite:///{tmp_path / 'lab.db'}") as other, other.engine.lock():
        assert lab.cleanup(run.tag)["samples"] == 6  # a finished one is not being run


# --- names ---------------------------------------------------------------------------------------


def test_an_edited_study_moves_its_tags_and_keeps_what_they_meant(
    lab: Lab, write_study: WriteStudy
) -> None:
    [old] = lab.run(write_study(judges=["sim:balanced"])).runs
    digest = lab.get_experiment_summary(old.tag)["digest"]
    [new] = lab.run(write_study(judges=["sim:balanced"], seed=4)).runs
    assert new.tag == old.tag
    assert new.run != old.run
    assert lab.get_experiment_summary(old.tag)["digest"] != digest
    kept = f"{old.tag}@{digest[:8]}"
    assert lab.get_experiment_summary(kept)["digest"] == digest
    assert set(lab.samples(kept)["run"]) == {old.run}
    assert set(lab.samples(new.tag)["run"]) == {new.run}


def test_a_study_reads_as_it_stands_now_not_as_it_once_stood(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.run(write_study(judges=["sim:balanced"]))
    [new] = lab.run(write_study(judges=["sim:balanced"], seed=4)).runs
    assert set(lab.samples("small")["run"]) == {new.run}
    lab.run(write_study(judges=["sim:balanced"]))
    assert not lab.samples("small").duplicated("sample").any()


def test_two_studies_may_name_one_experiment_and_share_its_run(
    lab: Lab, write_study: WriteStudy
) -> None:
    first = lab.run(write_study())
    second = lab.run(write_study("other.yaml", study="other"))
    assert [run.run for run in first.runs] == [run.run for run in second.runs]
    assert paid(second) == 0
    assert len(lab.samples("other")) == len(lab.samples("small")) == 12


def test_a_study_is_run_on_by_its_name_with_its_targets(lab: Lab, write_study: WriteStudy) -> None:
    path = write_study(swap="all", samples=3)
    lab.run(path, workflows=["evidence"])
    result = lab.run("small")
    assert (result.study, result.status) == ("small", "complete")
    assert len(lab.samples("small")) == 2 * 2 * 3 * 3
    with pytest.raises(DesignError, match="--set"):
        lab.run("small", overrides={"rubric.scale": 5})


# --- notebooks, tools ----------------------------------------------------------------------------


def test_a_lab_works_inside_a_running_event_loop(lab: Lab, write_study: WriteStudy) -> None:
    path = write_study()

    async def cell() -> Any:
        await asyncio.sleep(0)
        result = lab.run(path)
        return result, len(lab.samples("small"))

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
    result = lab.run(write_study(), watch=watching)
    assert [tally.paid for tally in watching.tallies] == [run.calls for run in result.runs]
    for tally in watching.tallies:
        assert tally.done == {stage: n for stage, n in tally.wanted.items() if n}
        assert tally.done["score"] == 6


def test_usage_says_what_each_experiment_paid(lab: Lab, write_study: WriteStudy) -> None:
    result = lab.run(write_study())
    usage = pd.DataFrame(lab.usage("small"))
    by_tag = usage.groupby("tag")["attempts"].sum()
    assert dict(by_tag) == {run.tag: run.calls for run in result.runs}
    assert lab.usage("other") == []


# --- what must not mislead -----------------------------------------------------------------------


def test_a_judge_is_no_rival_of_itself(lab: Lab, write_study: WriteStudy) -> None:
    path = write_study()
    [strict] = [run.tag for run in lab.run(path).runs if "strict" in run.tag]
    with pytest.raises(DesignError, match="no rival of itself"):
        lab.run(strict, workflows=["swap"], rivals=["sim:strict"])
    lab.run(path, workflows=["swap"], rivals=["sim:strict"])  # of a study, the others are swapped
    swapped = lab.samples("small").query("is_swap")
    assert set(swapped["judge.model"]) == {"sim:balanced"}
    assert set(swapped["rubric_author"]) == {"sim:strict"}
    assert lab.run(path).status == "complete"


def test_a_swap_that_nobody_asked_for_is_refused(lab: Lab, write_study: WriteStudy) -> None:
    with pytest.raises(DesignError, match="swap: all"):
        lab.run(write_study(), workflows=["swap"])


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
        lab.run(write_study(study=study, evidence=pool, tasks=[task], design={}))
    assert set(lab.samples("graded")["truth"]) == {1, 2}, "labels become stage numbers"
    assert lab.samples("plain")["truth"].isna().all()


def test_a_truth_that_is_no_stage_is_refused(
    lab: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    stages = [{"label": name, "criteria": ["sign"]} for name in ("Low", "High")]
    (tmp_path / "r.json").write_text(json.dumps({"kind": "ordinal", "stages": stages}))
    (tmp_path / "e.jsonl").write_text('{"text": "A paper was banned.", "truth": "Huge"}')
    task = {"type": "benchmark", "concept": "tone", "evidence": "here", "rubric": "r.json"}
    with pytest.raises(DesignError, match=r"'Huge'.*'Low' or 'High'"):
        lab.plan(write_study(evidence={"here": {"files": "e.jsonl"}}, tasks=[task], design={}))


def test_a_report_says_what_is_unfinished_and_keeps_series_apart(
    lab: Lab, write_study: WriteStudy
) -> None:
    path = write_study(probe=False)
    lab.run(path, workflows=["evidence"])
    lab.run(path, workflows=["rubric"])
    lab.run(path, workflows=["score"], samples=1)
    lab.run(path, series="again", workflows=["score"], samples=2)
    lab.plan(path)
    report = lab.report(str(path))
    [shares] = [table.frame for table in report.tables if table.title == "How answers ended"]
    assert set(shares["variant"]) == {"series=3", "series=again"}
    assert report.facts["series"] == "3, again"
    lab.run(path, series="again", samples=9, workflows=["rubric"])
    assert any("not complete" in warning for warning in lab.report("small").warnings)


def test_a_study_file_is_reported_as_it_stands(lab: Lab, write_study: WriteStudy) -> None:
    lab.run(write_study())
    shorter = write_study(judges=["sim:balanced"])
    assert set(lab.samples(str(shorter))["judge.model"]) == {"sim:balanced"}
    assert set(lab.samples("small")["judge.model"]) == {"sim:balanced", "sim:strict"}


def test_judges_that_differ_in_opposite_ways_per_variant_are_still_far_apart(
    lab: Lab, write_study: WriteStudy
) -> None:
    lab.run(write_study(vary={"rubric.scale": [4, 5]}, samples=5))
    pairs = lab.suggest_swaps("small")
    assert len(pairs) == 1 and pairs["p"].iloc[0] > 0
    assert "variant" not in pairs
