"""A plan says what a run will pay before it pays, and that nothing is left to pay after it."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from genai_prices import Usage, calc_price

from conftest import Scripted
from engines import replace_engine
from judge_gym.engine import Engine
from judge_gym.errors import ProviderError
from judge_gym.lab import Lab
from judge_gym.models.model_card import Limits
from judge_gym.models.simulated import SimulatedModel
from judge_gym.models.simulated.prompts import understand
from judge_gym.records import STAGES, Completion, Request
from judge_gym.store import tables as t
from judge_gym.store.tables import metadata
from stores import blank

WriteStudy = Callable[..., Path]
TEXTS = (
    "In an alarming step the budget was adopted unanimously. It was published in full, on paper.",
    "A shocking scene: the regulator warned two stations. One was fined and a bill is delayed.",
    "Judges were dismissed by decree in a brazen move. An editor was detained, a paper banned.",
)
ITEMS, JUDGES, SAMPLES = 3, 2, 2
DESIGN = {"evidence.editor": "sim:editor", "rubric.critic": "sim:critic"}


@pytest.fixture
def study(write_study: WriteStudy, tmp_path: Path) -> WriteStudy:
    """A study of three items, two judges and two samples."""
    lines = [json.dumps({"title": f"T{n}", "text": text}) for n, text in enumerate(TEXTS)]

    def write(name: str = "study.yaml", **changes: Any) -> Path:
        path = write_study(name, **changes)
        (tmp_path / "evidence.jsonl").write_text("\n".join(lines))
        return path

    return write


class Authors(Scripted):
    """Simulated models whose editors differ, and whose answers a function may replace."""

    def __init__(
        self, answer: Callable[[Request], Completion | str | Exception | None] = lambda r: None
    ) -> None:
        super().__init__(answer)  # type: ignore[arg-type]

    async def complete(self, request: Request) -> Completion:
        if self.answer(request) is not None:
            return await super().complete(request)
        said = await SimulatedModel(request.model).complete(request)
        if kind(request) == "neutralize":  # no two editors write the same
            return Completion(f"{request.key()[:6]}: {said.text}", "stop", said.model, 1, 1, 0.0)
        return said


def kind(request: Request) -> str:
    return understand(request.messages).kind


def use(lab: Lab, models: Authors | None = None) -> None:
    replace_engine(lab, Engine(lab.store, models or Authors()))


def planned(lab: Lab, path: Path | str, **options: Any) -> Counter[str]:
    """Calls to pay, by stage."""
    plan, _ = lab.runs.estimate(path, **options)
    return Counter({name: stage.to_pay for name, stage in plan.stages.items()})


def paid(lab: Lab) -> Counter[str]:
    total: Counter[str] = Counter()
    for row in lab.reports.usage():
        total[row["stage"]] += row["attempts"]
    return total


def contents(lab: Lab) -> dict[str, list[Any]]:
    with lab.store.database.begin() as connection:
        return {
            name: list(connection.execute(sa.select(table)))
            for name, table in metadata.tables.items()
        }


def assert_foreseen(plan: Counter[str], actual: Counter[str]) -> None:
    """Exact up to the scores; probes at most, because a judge may abstain or repeat a verdict."""
    assert {s: plan[s] for s in STAGES[:-1]} == {s: actual[s] for s in STAGES[:-1]}
    assert plan["prober"] >= actual["prober"]


# --- before and after ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"samples": 5, "judges": ["sim:sloppy", "sim:cautious", "sim:hasty"]},
        {"swap": "all"},
        {"swap": [["*", "sim:cautious"]]},
        {"probe": False},
        {"design": {**DESIGN, "rubric.draws": 3}},
        {"design": {"evidence.view": "raw", "rubric.critic": "sim:critic"}},
        {"tasks": [{"type": "ecc", "concept": concept, "evidence": "here"}
                   for concept in ("fascism", "populism")]},
        {"vary": {"probe.context": ["fresh", "same"]}},
        {"vary": {"prompt.slots.prober.panel": ["experts", "historians"]}},
        {"vary": {"verdict.method": ["single", "subset"],
                  "presentation.first": ["rubric", "evidence"]}},
        {"vary": {"verdict.output": ["suffix", "json"]}},
        {"vary": {"presentation.labels": ["shuffled", "fixed", "opaque"]}},
        {"vary": {"rubric.scale": [3, 4]}},
        {"vary": {"rubric.author": ["own", "sim:cautious"]}},
        {"vary": {"rubric.critic": ["sim:critic", "sim:critic?noise=0.2"]},
         "design": {"evidence.editor": "sim:editor"}},
        {"vary": {"evidence.view": ["neutralized", "raw"]}},
        {"vary": {"evidence.editor": ["sim:editor", "sim:editor?noise=0.2"]},
         "design": {"rubric.critic": "sim:critic"}},
        {"vary": {"prompt.slots.neutralizer.persona": ["a clerk", "a poet"]}},
        {"vary": {"prompt.slots.rubricer.persona": ["a scholar", "a poet"]}},
        {"vary": {"prompt.slots.critic.persona": ["an auditor", "a poet"]}},
        {"vary": {"judge.temperature": [0.0, 1.0]}},
    ],
    ids=lambda changes: ",".join([*changes.get("vary", {}), *(k for k in changes if k != "vary")])
    or "base",
)  # fmt: skip
def test_a_plan_is_what_the_run_pays_and_afterwards_nothing_is_left(
    lab: Lab, study: WriteStudy, changes: dict[str, Any]
) -> None:
    use(lab)
    path = study(**changes)
    before = planned(lab, path)
    assert lab.runs.run(path).status == "complete"
    assert_foreseen(before, paid(lab))
    plan, _ = lab.runs.estimate(path)
    assert plan.total().to_pay == 0
    assert Counter({name: stage.in_ledger for name, stage in plan.stages.items()}) == +paid(lab)
    assert plan.total().input_tokens == plan.total().output_tokens == 0
    assert all(counts["to_pay"] == 0 for counts in plan.experiments.values())


def test_a_plan_names_every_experiment_and_adds_up(lab: Lab, study: WriteStudy) -> None:
    path = study(vary={"verdict.method": ["single", "subset"]})
    plan, prepared = lab.runs.estimate(path)
    assert list(plan.experiments) == [made.tag for made in prepared.sweep.experiments]
    assert len(plan.experiments) == 2 * JUDGES
    assert sum(counts["to_pay"] for counts in plan.experiments.values()) == plan.total().to_pay
    shared = {name: stage.shared for name, stage in plan.stages.items()}
    assert shared["neutralizer"] == 3 * ITEMS  # three of four experiments find the views made
    assert shared["rubricer"] == shared["critic"] == JUDGES
    for stage in plan.stages.values():
        assert stage.to_pay == stage.calls
        assert stage.input_tokens > stage.calls
        assert stage.output_tokens > stage.calls
        assert stage.seconds > 0


def test_a_plan_writes_nothing(lab: Lab, study: WriteStudy) -> None:
    path = study(swap="all", vary={"verdict.method": ["single", "subset"]})
    for _ in range(2):
        before = contents(lab)
        lab.runs.estimate(path)
        lab.runs.estimate(path, series="again", overrides={"rubric.scale": 5})
        assert contents(lab) == before
        lab.runs.run(path)
    assert sum(map(len, before.values())) > 0


# --- partly run ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        {"workflows": ["evidence"]},
        {"workflows": ["rubric"]},
        {"workflows": ["evidence", "rubric", "score"]},
        {"overrides": {"verdict.method": "subset"}},
        {"overrides": {"probe.context": "same"}},
    ],
    ids=str,
)
def test_a_plan_of_a_partly_run_study_is_the_rest(
    lab: Lab, study: WriteStudy, part: dict[str, Any]
) -> None:
    path = study()
    lab.runs.run(path, **part)
    plan, done = planned(lab, path), paid(lab)
    lab.runs.run(path)
    assert_foreseen(plan, paid(lab) - done)


def test_a_plan_of_more_samples_or_another_series_is_the_difference(
    lab: Lab, study: WriteStudy
) -> None:
    lab.runs.run(study())
    more = planned(lab, study(samples=5))
    assert +more == {"scorer": 3 * ITEMS * JUDGES, "prober": 3 * ITEMS * JUDGES}
    afresh = planned(lab, study(), series="again")
    assert +afresh == {"scorer": ITEMS * JUDGES * SAMPLES, "prober": ITEMS * JUDGES * SAMPLES}


def test_a_plan_after_a_reached_budget_is_the_rest(lab: Lab, study: WriteStudy) -> None:
    lab.runs.run(study(budget={"calls": 13}))
    assert paid(lab).total() == 13
    path = study()
    plan, done = planned(lab, path), paid(lab)
    lab.runs.run(path)
    assert_foreseen(plan, paid(lab) - done)


def test_a_study_in_the_store_is_planned_as_its_file_is(lab: Lab, study: WriteStudy) -> None:
    path = study(swap="all", samples=3)
    lab.runs.run(path, workflows=["evidence"])
    assert planned(lab, "small") == planned(lab, path)


# --- answers that are not what was hoped for -----------------------------------------------------


def wrong_stages(request: Request) -> str | None:
    if kind(request) == "write_rubric" and request.draw.ask < 2:
        return "STAGE 1: Only\n- one sign\nREASONING: so"
    return None


def always_wrong(request: Request) -> str | None:
    return "STAGE 1: Only\n- one sign\nREASONING: so" if kind(request) == "write_rubric" else None


def refusal(request: Request) -> Completion | None:
    no = Completion("I won't.", "refusal", request.model, 1, 1, 0.0)
    lost = kind(request) == "neutralize" and "budget" in request.messages[-1].content
    return no if lost else None


def unread_critic(request: Request) -> str | None:
    return "It is fine." if kind(request) == "criticize" else None


@pytest.mark.parametrize("answer", [wrong_stages, always_wrong, refusal, unread_critic])
def test_what_a_run_has_settled_is_not_planned_again(
    lab: Lab, study: WriteStudy, answer: Callable[[Request], Any]
) -> None:
    path = study()
    use(lab, Authors(answer))
    lab.runs.run(path)
    assert sum(run.calls for run in lab.runs.run(path).runs) == 0
    assert +planned(lab, path) == {}


def test_a_call_without_an_answer_is_planned_again(lab: Lab, study: WriteStudy) -> None:
    path = study(judges=["sim:balanced"])

    def down(request: Request) -> Exception | None:
        lost = kind(request) == "score" and request.draw.index == 0
        return ProviderError("down") if lost else None

    use(lab, Authors(down))
    lab.runs.run(path)
    assert +planned(lab, path) == {"scorer": ITEMS, "prober": ITEMS}


# --- pairs ---------------------------------------------------------------------------------------

RESPONSES = (("It was banned.", "It was upheld."), ("It was fined.", "It was delayed."))
SIDES = ("The first response is better", "The second response is better", "Neither is better")


@pytest.fixture
def pairs(write_study: WriteStudy, tmp_path: Path) -> WriteStudy:
    """A study of two pairs, two judges and two samples."""
    lines = [
        json.dumps({"title": f"P{n}", "text": f"Case {n}?", "responses": both, "truth": 1})
        for n, both in enumerate(RESPONSES)
    ]
    stages = [{"label": side, "criteria": ["by its answer"]} for side in SIDES]

    def write(**changes: Any) -> Path:
        (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
        (tmp_path / "options.json").write_text(json.dumps({"kind": "nominal", "stages": stages}))
        task = {"type": "benchmark", "concept": "winner", "evidence": "cases"}
        usual = {
            "evidence": {"cases": {"files": "pairs.jsonl"}},
            "tasks": [{**task, "rubric": "options.json"}],
            "judges": ["sim:judge?noise=0.4", "sim:hasty"],
            "design": None,
        }
        return write_study(**{**usual, **changes})

    return write


PAIR_CELLS = len(RESPONSES) * 2 * SAMPLES  # of one order


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "scores"),
    [
        ({}, 2 * PAIR_CELLS),
        ({"design": {"presentation.pair_order": "given"}}, PAIR_CELLS),
        ({"design": {"presentation.pair_order": "swapped"}}, PAIR_CELLS),
        ({"vary": {"presentation.pair_order": ["both", "given", "swapped"]}}, 2 * PAIR_CELLS),
        ({"vary": {"presentation.pair_order": ["given", "swapped"]}}, 2 * PAIR_CELLS),
        ({"vary": {"presentation.pair_order": ["both", "given"]}, "samples": 1}, PAIR_CELLS),
        ({"design": {"probe.context": "same"}}, 2 * PAIR_CELLS),
        ({"vary": {"verdict.method": ["single", "subset"]}}, 4 * PAIR_CELLS),
        ({"probe": False}, 2 * PAIR_CELLS),
        ({"swap": "all"}, 2 * PAIR_CELLS),
    ],
    ids=str,
)
def test_a_plan_of_pairs_is_what_the_run_pays_in_every_order(
    lab: Lab, pairs: WriteStudy, changes: dict[str, Any], scores: int
) -> None:
    path = pairs(**changes)
    before = planned(lab, path)
    assert before["scorer"] == scores
    assert before["prober"] == (0 if changes.get("probe") is False else scores)
    assert lab.runs.run(path).status == "complete"
    assert_foreseen(before, paid(lab))
    assert set(+paid(lab)) <= {"scorer", "prober"}, "nobody edits or writes a rubric"
    assert +planned(lab, path) == {}


def test_another_order_of_pairs_that_were_judged_in_both_costs_nothing(
    lab: Lab, pairs: WriteStudy
) -> None:
    lab.runs.run(pairs())
    for order in ("given", "swapped"):
        other = pairs(design={"presentation.pair_order": order})
        assert +planned(lab, other) == {}
        assert sum(run.calls for run in lab.runs.run(other).runs) == 0


# --- folded points, prices -----------------------------------------------------------------------


def test_folded_points_and_skipped_swaps_are_listed(lab: Lab, study: WriteStudy) -> None:
    path = study(
        judges=["sim:balanced"],
        swap=[["*", "sim:strict"]],
        design={"rubric.critic": "sim:critic"},
        vary={
            "evidence.view": ["neutralized", "raw"],
            "evidence.editor": ["sim:editor", "sim:editor?noise=0.2"],
            "rubric.author": ["own", "sim:cautious"],
        },
    )
    plan, prepared = lab.runs.estimate(path)
    assert len(plan.experiments) == 6  # of 8 points; raw with either editor is one
    assert len(prepared.sweep.duplicates) == 2
    for tag, other in prepared.sweep.duplicates.items():
        assert "evidence.view=raw" in tag
        assert tag not in plan.experiments
        assert other in plan.experiments
    skipped = prepared.sweep.skipped_swaps
    assert len(skipped) == 3
    assert set(skipped) == {tag for tag in plan.experiments if "rubric.author=sim:cautious" in tag}


@pytest.mark.parametrize(
    ("judge", "costs"), [("openai:gpt-5.2", True), ("openai:no-such-model-at-all", False)]
)
def test_a_plan_prices_models_that_it_cannot_call_and_says_where_a_price_is_unknown(
    lab: Lab, study: WriteStudy, judge: str, costs: bool
) -> None:
    plan, _ = lab.runs.estimate(study(judges=[judge]))
    for stage in ("rubricer", "scorer", "prober"):
        usd = plan.stages[stage].usd
        assert (usd is not None and usd > 0) if costs else usd is None
    assert plan.stages["neutralizer"].usd == plan.stages["critic"].usd == 0.0
    total = plan.total().usd
    if costs:
        parts = [stage.usd or 0.0 for stage in plan.stages.values()]
        assert total == pytest.approx(sum(parts))
        scorer = plan.stages["scorer"]
        tokens = Usage(input_tokens=scorer.input_tokens, output_tokens=scorer.output_tokens)
        published = calc_price(tokens, model_ref="gpt-5.2", provider_id="openai").total_price
        assert scorer.usd == pytest.approx(float(published))
    else:
        assert total is None


def test_the_duration_of_a_plan_comes_from_each_endpoints_earlier_calls(
    lab: Lab, write_study: WriteStudy
) -> None:
    """Answers of 30 s, two at a time, make 15 s for each further call."""
    study = write_study(judges=["sim:balanced"], samples=4, probe=False)
    before = lab.runs.plan(study)
    assert [row["basis"] for row in before["endpoints"]] == ["typical"]
    lab.runs.run(study)
    ended = 0
    with lab.store.database.begin() as connection:
        calls = connection.scalars(sa.select(t.calls.c.id).order_by(t.calls.c.id)).all()
        assert len(calls) >= 10
        for number, call in enumerate(calls):
            ended = 30 * (number // 2 + 1)
            at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=ended)
            change = sa.update(t.attempts).where(t.attempts.c.call_id == call)
            connection.execute(change.values(at=at, seconds=30.0))
    plan = lab.runs.plan(study, samples=8)
    [endpoint] = plan["endpoints"]
    assert (endpoint["endpoint"], endpoint["basis"]) == ("sim", "measured")
    assert endpoint["to_pay"] == plan["stages"]["all"]["to_pay"] > 0
    assert endpoint["seconds"] == pytest.approx(endpoint["to_pay"] * ended / len(calls))
    assert plan["stages"]["all"]["seconds"] == endpoint["seconds"]


def test_models_at_one_endpoint_share_what_it_answered_at_once(
    lab: Lab, write_study: WriteStudy
) -> None:
    """Two judges had one call each in flight: together their calls take as long as they took."""
    judges = ["sim:balanced", "sim:strict"]
    study = write_study(judges=judges, samples=4, probe=False)
    lab.runs.run(study)
    with lab.store.database.begin() as connection:
        for judge in judges:
            model = sa.select(t.calls.c.id).where(t.calls.c.model == judge)
            for number, call in enumerate(connection.scalars(model.order_by(t.calls.c.id)), 1):
                at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=20 * number)
                change = sa.update(t.attempts).where(t.attempts.c.call_id == call)
                connection.execute(change.values(at=at, seconds=20.0))
        others = sa.select(t.calls.c.id).where(t.calls.c.model.not_in(judges))
        old = sa.update(t.attempts).where(t.attempts.c.call_id.in_(others))
        connection.execute(old.values(at=datetime(2025, 1, 1, tzinfo=UTC)))
    [endpoint] = lab.runs.plan(study, samples=8)["endpoints"]
    assert (endpoint["to_pay"], endpoint["basis"]) == (24, "measured")
    assert endpoint["seconds"] == pytest.approx(12 * 20)


def test_limits_that_a_user_gives_are_what_an_estimate_is_bound_by(
    write_study: WriteStudy, tmp_path: Path
) -> None:
    study = write_study(probe=False)
    with Lab.open(blank(tmp_path / "limited.db"), limits=Limits(rpm=30)) as limited:
        [endpoint] = limited.runs.plan(study)["endpoints"]
        assert endpoint["basis"] == "limits"
        assert endpoint["seconds"] == pytest.approx(2 * endpoint["to_pay"])


# --- what a plan says beside its numbers ---------------------------------------------------------


def test_changed_evidence_says_how_many_calls_it_makes_new(
    lab: Lab, study: WriteStudy, tmp_path: Path
) -> None:
    path = study(judges=["sim:balanced"], probe=False)
    lab.runs.run(path)
    assert not [note for note in lab.runs.plan(path)["warnings"] if "new because" in note]
    file = tmp_path / "evidence.jsonl"
    file.write_text(file.read_text().replace("on paper", "on the web"))
    plan = lab.runs.plan(path)
    calls = plan["stages"]["all"]["to_pay"]
    note = f"{calls} calls are new because evidence 'here' changed since the last run"
    assert note in plan["warnings"] and calls == 1 + SAMPLES, "one view, and its scores"
    result = lab.runs.run(path)
    assert note in result.warnings and sum(run.calls for run in result.runs) == calls
    assert not [note for note in lab.runs.plan(path)["warnings"] if "new because" in note]


def test_a_changed_rubric_says_how_many_calls_it_makes_new(
    lab: Lab, study: WriteStudy, tmp_path: Path
) -> None:
    stages = [{"label": f"S{n}", "criteria": [f"criterion {n}"]} for n in range(1, 5)]
    rubric = {"kind": "ordinal", "stages": stages}
    (tmp_path / "rubric.json").write_text(json.dumps(rubric))
    task = {"type": "benchmark", "concept": "fascism", "evidence": "here", "rubric": "rubric.json"}
    path = study(judges=["sim:balanced"], probe=False, tasks=[task], design={})
    lab.runs.run(path)
    stages[0]["criteria"] = ["another criterion"]
    (tmp_path / "rubric.json").write_text(json.dumps(rubric))
    note = f"{ITEMS * SAMPLES} calls are new because rubric.json changed since the last run"
    assert note in lab.runs.plan(path)["warnings"]


def test_simulated_judges_say_that_they_cannot_read_the_material(
    lab: Lab, write_study: WriteStudy, tmp_path: Path
) -> None:
    path = write_study(judges=["sim:balanced"])
    assert not [note for note in lab.runs.plan(path)["warnings"] if "can read nothing" in note]
    texts = ["The loop is off by one.", "The variable has no good name."]
    lines = [json.dumps({"title": text, "text": text}) for text in texts]
    (tmp_path / "evidence.jsonl").write_text("\n".join(lines))
    notes = lab.runs.plan(path)["warnings"]
    [note] = [note for note in notes if "can read nothing" in note]
    assert "2 of 2 items of 'here'" in note
