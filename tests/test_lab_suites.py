"""The lab's verbs over suites, in this process: targets, faults of writers, limits, schedule."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import postgres
from conftest import Scripted
from judge_gym.engine import Engine, SuiteWork
from judge_gym.errors import BudgetError, DesignError, NotFoundError, RateLimitError
from judge_gym.lab import Lab
from judge_gym.models.simulated.faults import Faults
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.records.outcomes import Failed, Inconclusive, Outcome, Passed
from judge_gym.records.responses import DueRow
from judge_gym.store.tables import attempts
from judge_gym.suites import CONDITIONS, load_suite
from stores import blank
from suite_folders import known_by, write_suite
from workers import write_entry


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.chdir(tmp_path)
    with Lab.open(blank(tmp_path / "lab.db")) as opened:
        yield opened


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "tiny", 4)


def perfect(suite: Path) -> str:
    return f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0)}"


def paid(lab: Lab) -> int:
    with lab.store.database.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(attempts)).scalar_one()


# --- targets -------------------------------------------------------------------------------------


def test_a_finished_run_is_found_again_and_asks_nothing(lab: Lab, suite: Path) -> None:
    first, again = (lab.suites.run(suite, perfect(suite)) for _ in range(2))
    assert (first.run.id, first.status, paid(lab)) == (again.run.id, "complete", 4)
    assert [row.id for row in again.results] == [row.id for row in first.results]


def test_more_replicates_and_evals_go_on_with_the_run(lab: Lab, suite: Path) -> None:
    part = lab.suites.run(suite, perfect(suite), evals=["/001-", "/002-"])
    assert (part.run.targets, part.whole, part.status) == (2, False, "complete")
    assert lab.suites.leaderboard() == [], "only whole runs are compared"
    whole = lab.suites.run(suite, perfect(suite), replicates=2)
    assert (whole.run.id, whole.run.targets, whole.whole, paid(lab)) == (part.run.id, 8, True, 8)
    [row] = lab.suites.leaderboard()
    assert (row["runs"], row["passed"], row["score"]) == (1, 8, 1.0)
    fewer = lab.suites.run(suite, perfect(suite))
    assert (len(fewer.results), paid(lab)) == (8, 8), "nothing is deleted"


def test_a_selection_asks_for_nothing_beyond_it(lab: Lab, suite: Path) -> None:
    model = perfect(suite)
    lab.suites.run(suite, model)
    more = lab.suites.run(suite, model, filter="/001-", replicates=3)
    assert (paid(lab), more.run.targets, more.status) == (4 + 2, 6, "complete")
    assert more.run.replicates_of["001-values/001-value"] == 3
    [row] = lab.suites.leaderboard()
    assert (row["runs"], row["passed"]) == (1, 4), "an eval that was asked more weighs no more"
    reports, effects = lab.suites.ablate(suite, model, filter="00[12]-value$")
    assert paid(lab) == 6 + 2 + 2 * 2 * 3, "the second eval thrice, and both in two conditions"
    assert [report.run.targets for report in reports] == [6, 6, 6]
    assert len(effects) == 2
    lab.suites.run(suite, model, failed_of=None, evals=["/003-"], limit=1, replicates=2)
    assert paid(lab) == 21


def test_a_selection_leaves_the_rest_of_an_unfinished_run(lab: Lab, suite: Path) -> None:
    model = perfect(suite)
    stopped = lab.suites.run(suite, model, budget={"calls": 1}, jobs=1)
    assert isinstance(stopped.stopped, BudgetError) and paid(lab) == 1
    done = {row.result.path for row in stopped.results}
    [first, *_] = [path for path in stopped.run.evals if path not in done]
    part = lab.suites.run(suite, model, evals=[first], budget={"calls": 100})
    assert (paid(lab), len(part.results), part.status) == (2, 2, "unfinished")
    assert lab.suites.resume(stopped.run.id).status == "complete", "resume takes up the rest"
    assert paid(lab) == 4


def test_a_plan_says_what_a_run_then_asks(lab: Lab, suite: Path) -> None:
    model = perfect(suite)
    lab.suites.run(suite, model, evals=["/001-"])
    lab.suites.run(suite, model, evals=["/002-"], condition="no_guidelines")
    options: dict[str, Any] = {"replicates": 2, "limit": 3}
    conditions = ("default", "no_guidelines")
    plan = lab.suites.plan("tiny", [model], conditions=conditions, **options)
    assert [(run["run"], run["targets"], run["missing"]) for run in plan["runs"]] == [
        (1, 6, 5), (2, 6, 5),
    ]  # fmt: skip
    assert (plan["calls"]["to_pay"], plan["calls"]["usd"]) == (10, 0)
    assert plan["calls"]["input_tokens"] > 0 and plan["uncallable"] == []
    before = paid(lab)
    lab.suites.run_each(suite, [model], conditions=conditions, **options)
    assert paid(lab) - before == 10
    again = lab.suites.plan("tiny", [model], conditions=conditions, **options)
    assert again["calls"]["to_pay"] == 0
    ablation = lab.suites.plan("tiny", [model], ablate=True, sections=["Colour"], evals=["/004-"])
    assert [run["missing"] for run in ablation["runs"]] == [3, 3]
    assert [run["run"] for run in ablation["runs"]] == [1, None]
    priced = lab.suites.plan("tiny", ["openai:gpt-5.2"])
    assert (priced["calls"]["usd"] or 0) > 0 and "OPENAI_API_KEY" in priced["uncallable"][0]
    assert len(lab.suites.list_runs()) == 2, "a plan stores nothing"


def test_another_series_asks_afresh(lab: Lab, suite: Path) -> None:
    runs = [lab.suites.run(suite, perfect(suite), series=name).run.id for name in ("a", "b")]
    assert len(set(runs)) == 2
    assert paid(lab) == 8
    [row] = lab.suites.leaderboard()
    assert row["runs"] == 2


def test_a_change_of_the_suite_is_another_run(lab: Lab, suite: Path) -> None:
    first = lab.suites.run(suite, perfect(suite))
    (suite / "001-values/001-value/GAPS.md").write_text("The grader reads one line only.\n")
    second = lab.suites.run(suite, perfect(suite))
    assert first.run.id != second.run.id
    assert paid(lab) == 4, "the tasks are the same, and so are the answers"
    assert {row["version"] for row in lab.suites.leaderboard()} == {
        first.run.version,
        second.run.version,
    }
    [old, new] = [lab.suites.show_eval(report.results[0].id)["gaps"] for report in (first, second)]
    assert (old, new) == ("", "The grader reads one line only.\n")


def test_a_run_can_be_looked_into_when_its_suite_is_gone(lab: Lab, suite: Path) -> None:
    report = lab.suites.run(suite, f"sim:{known_by(suite, 'coder-strong', logic=1, lint=0)}")
    shutil.rmtree(suite)
    rows = lab.suites.list_failed(report.run.id)
    assert {(row["outcome"], row["step"]) for row in rows} == {("failed", "tests")}
    found = lab.suites.show_eval(rows[0]["eval"])
    assert found["task"] == "Write value.py, which says: VALUE = 1000\n"
    assert found["answer"] == {"value.py": "VALUE = 1000\n"}
    assert found["files"]["value.py"] != found["answer"]["value.py"]
    assert "VALUE = 1000" in found["grader"]["check.sh"]
    tests = found["steps"][-1]
    assert (tests["name"], tests["tests_passed"], tests["tests_collected"]) == ("tests", 0, 1)


@pytest.mark.slow
def test_a_run_on_a_server_is_the_run_on_a_file(lab: Lab, suite: Path) -> None:
    model = f"sim:{known_by(suite)}"
    here = lab.suites.run(suite, model, replicates=2)
    with Lab.open(postgres.fresh_url()) as served:
        served.suites.run(suite, model, evals=["/001-"])
        there = served.suites.run(suite, model, replicates=2)
        assert paid(served) == 8
        rows = [served.suites.show_eval(row.id) for row in there.results]
        assert [row["path"] for row in rows] == [row.result.path for row in here.results]
        assert served.suites.due("tiny")[0]["model"] == model
    assert [row.result.outcome for row in there.results] == [
        row.result.outcome for row in here.results
    ]


# --- refused before money is spent ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "choice"),
    [
        ({"suite": "nowhere"}, NotFoundError, "python"),
        ({"model": "sim:coder-nobody"}, DesignError, "sim:coder-weak"),
        ({"condition": "defualt"}, DesignError, "no_guidelines"),
        ({"evals": ["999"]}, NotFoundError, "001-values/001-value"),
    ],
)
def test_what_is_not_there_is_refused_with_the_choices(
    lab: Lab, suite: Path, change: dict[str, Any], error: type[Exception], choice: str
) -> None:
    asked = {"suite": suite, "model": perfect(suite), **change}
    with pytest.raises(error) as refusal:
        lab.suites.run(**asked)
    assert choice in refusal.value.choices  # type: ignore[attr-defined]
    assert (lab.suites.list_runs(), paid(lab)) == ([], 0)


# --- what writers get wrong ----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("syntax", ("failed", "build")),
        ("logic", ("failed", "tests")),
        ("lint", ("failed", "lint")),
        ("missing", ("failed", "build")),
        ("prose", ("failed", "filesystem")),
        ("empty", ("inconclusive", "filesystem")),
    ],
)
def test_each_fault_of_a_writer_ends_where_it_should(
    lab: Lab, fault: str, expected: tuple[str, str]
) -> None:
    clean = "logic=0&lint=0&heed=0"
    model = f"sim:coder-strong?{clean.replace(f'{fault}=0', 'family=x')}&{fault}=1"
    report = lab.suites.run("python", model, evals=["003-roman"])
    [row] = report.results
    outcome: Outcome = row.result.outcome
    assert not isinstance(outcome, Passed)
    assert (outcome.kind, outcome.step) == expected
    if isinstance(outcome, Failed):
        assert (report.status, report.score.score, report.failed) == ("complete", 0.0, False)
    else:
        assert isinstance(outcome, Inconclusive)
        assert (report.status, report.score.score, report.failed) == ("inconclusive", None, True)
    assert row.result.isolation in ("bubblewrap", "namespaces")


def test_an_empty_reply_is_an_answer_and_not_asked_for_again(lab: Lab, suite: Path) -> None:
    model = f"sim:{known_by(suite, 'coder-strong', logic=0, lint=0, empty=1)}"
    first, again = (lab.suites.run(suite, model, evals=["/001-"]) for _ in range(2))
    assert first.score.inconclusive == {"infrastructure": 1}
    assert paid(lab) == 1
    assert again.results == first.results


# --- providers in trouble ------------------------------------------------------------------------


def test_rate_limits_are_waited_for_and_cost_no_attempt(
    lab: Lab, suite: Path, tmp_path: Path
) -> None:
    with serve(SimulatedServer(faults=Faults.parse("429@1"))) as url:
        write_entry(tmp_path, url)
        report = lab.suites.run(suite, f"lab:{known_by(suite)}")
    assert (report.status, len(report.results), paid(lab)) == ("complete", 4, 4)


def test_an_endpoint_that_is_down_is_inconclusive_until_it_is_back(
    lab: Lab, suite: Path, tmp_path: Path
) -> None:
    with serve(SimulatedServer()) as url:
        port = int(url.removesuffix("/v1").rpartition(":")[2])
    write_entry(tmp_path, url)  # nobody listens there now
    model = f"lab:{known_by(suite)}"
    down = lab.suites.run(suite, model)
    assert (down.status, down.score.score, down.failed) == ("inconclusive", None, True)
    assert down.score.inconclusive == {"infrastructure": 4}
    rows = lab.suites.list_failed(down.run.id)
    assert all(row["step"] == "generation" and row["reason"] for row in rows)
    [board] = lab.suites.leaderboard()
    assert (board["runs"], board["unscored"], board["inconclusive"]) == (0, 1, 4)
    with serve(SimulatedServer(), port=port):
        back = lab.suites.run(suite, model)
    assert (back.run.id, back.status, back.score.inconclusive) == (down.run.id, "complete", {})
    assert len(back.results) == 4


def test_a_limit_that_is_exhausted_is_inconclusive_by_its_own_reason(lab: Lab, suite: Path) -> None:
    model = perfect(suite)
    lab.suites.run(suite, model, evals=["/001-"])
    models = Scripted(lambda request: RateLimitError("come back tomorrow", wait=80_000))
    loaded = load_suite(suite)
    whole = [task.path for task in loaded.evals]
    default = CONDITIONS["default"]
    run = lab.store.suites.save_run(
        loaded.name, loaded.version, model, default.name, default.key, "0",
        replicates=1, evals=whole,
    )  # fmt: skip
    Engine(lab.store, models).execute_suites([run], SuiteWork(loaded.version), suite=loaded)
    report = lab.suites.report(run.id)
    assert report.score.inconclusive == {"rate_limit": 3}
    assert (report.score.passed, report.score.score) == (1, 1.0)
    assert paid(lab) == 1, "waiting costs no attempt"


def test_a_budget_stops_a_run_and_more_of_it_goes_on(lab: Lab, suite: Path) -> None:
    stopped = lab.suites.run(suite, perfect(suite), budget={"calls": 2})
    assert isinstance(stopped.stopped, BudgetError)
    assert (stopped.status, paid(lab)) == ("over-budget", 2)
    assert len(stopped.results) == 2, "what was generated is judged all the same"
    assert lab.suites.run(suite, perfect(suite), budget={"calls": 100}).status == "complete"
    assert paid(lab) == 4


# --- conditions ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_taking_away_a_section_that_is_heeded_is_a_regression(lab: Lab, tmp_path: Path) -> None:
    """Only the section Style speaks of what the writer would do wrong."""
    suite = write_suite(tmp_path / "twelve", 12)
    toml = (suite / "suite.toml").read_text()
    lint = '[steps.lint]\ncommand = ["/bin/sh", "{kit}/look.sh"]\nseconds = 60\n'
    (suite / "suite.toml").write_text(toml + lint)
    (suite / "kit").mkdir()
    (suite / "kit/look.sh").write_text("! grep -q colorsys value.py\n")
    for file in suite.glob("*/*/eval.toml"):
        file.unlink()
    model = f"sim:{known_by(suite, 'coder-strong', logic=0, lint=1, heed=1)}"
    reports, effects = lab.suites.ablate(suite, model, replicates=1)
    assert [report.run.condition for report in reports] == [
        "default",
        "without Style",
        "without Colour",
    ]
    style, colour = effects
    assert (style.verdict, style.difference.value, len(style.regressions)) == (
        "regression",
        -1.0,
        12,
    )
    assert (colour.verdict, colour.changes and colour.difference.value) == ("no effect shown", 0.0)


# --- schedule ------------------------------------------------------------------------------------


def test_a_model_is_due_when_it_was_never_run_and_again_after_its_interval(
    lab: Lab, suite: Path
) -> None:
    model = perfect(suite)
    now = datetime.now(UTC)

    def due(days: float = 0) -> DueRow:
        [row] = lab.suites.schedule(suite, [model], now=now + timedelta(days=days))
        return row

    assert (due()["due"], due()["due_from"], due()["estimated"]) == (True, None, True)
    lab.suites.run(suite, model, series="check")
    lab.suites.run(suite, model, limit=3)
    lab.suites.run(suite, model, condition="no_guidelines")
    assert due()["due"], "neither a check, nor a part, nor another condition is an attempt"
    lab.suites.run(suite, model)
    fresh = due(0.04)
    assert (fresh["due"], fresh["usd"], fresh["estimated"]) == (False, 0, False)
    # Its age when it is due makes the interval a little longer than the day of a new one.
    assert due(2)["due"]


def test_the_draws_that_try_a_model_out_are_on_no_leaderboard(lab: Lab, suite: Path) -> None:
    whole = lab.suites.run(suite, perfect(suite), series="check")
    assert (whole.whole, lab.suites.leaderboard()) == (True, [])


def test_a_writer_that_names_no_suite_is_told_so(lab: Lab, suite: Path) -> None:
    with pytest.raises(DesignError, match=r"'nowhere' in .* is no suite"):
        lab.suites.run(suite, "sim:coder-strong?suite=nowhere")


def test_debug_says_how_an_answer_ended(lab: Lab, suite: Path) -> None:
    [row, *_] = lab.suites.run(suite, perfect(suite)).results
    assert lab.suites.show_eval(row.id)["finish"] == "stop"
