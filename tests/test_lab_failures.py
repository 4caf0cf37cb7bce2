"""The lab's analysis of suite runs: which run, facts from rows, who may judge, what is written."""

import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from aiohttp import web

from judge_gym.errors import ConflictError, DesignError, NotFoundError
from judge_gym.lab import Lab, failures
from judge_gym.lab.failures import Analysis, write_once
from judge_gym.lab.suite_schedule import CHECK
from judge_gym.models.simulated.server import SimulatedServer, serve
from judge_gym.store.tables import attempts, calls
from judge_gym.suites import Interrupted
from judge_gym.triage import lint_report, read_report
from stores import blank
from suite_folders import add_lint, known_by, write_suite
from workers import write_entry

WRONG = {"logic": 1, "lint": 0}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.chdir(tmp_path)
    with Lab.open(blank(tmp_path / "lab.db")) as opened:
        yield opened


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "tiny", 3)


def wrong(suite: Path, **shares: float) -> str:
    return f"sim:{known_by(suite, 'coder-strong', **{**WRONG, **shares})}"


def ran(lab: Lab, suite: Path, model: str | None = None) -> int:
    return lab.suites.run(suite, model or wrong(suite)).run.id


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"overrides": {"verdict.method": "singel"}}, "'singel'"),
        ({"overrides": {"verdict.methd": "single"}}, "verdict.methd"),
        ({"budget": {"usd": -1}}, "usd"),
        ({"budget": {"dollars": 1}}, "'dollars'"),
        ({"samples": 0}, "samples"),
        ({"judges": ["openai:gpt-5.2"]}, "openai:gpt-5.2"),
        ({"reports": Path("taken")}, "taken"),
    ],
)
def test_bad_options_are_refused_before_anything_is_run(
    lab: Lab, suite: Path, given: Any, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("taken").write_text("a file")
    number, before = ran(lab, suite), paid(lab)
    monkeypatch.setattr(
        failures, "check_answers", lambda *_, **__: pytest.fail("answers were tried")
    )
    with pytest.raises(DesignError, match=complaint):
        lab.failures.analyze(number, **given)
    assert paid(lab) == before


def asked(lab: Lab) -> list[str]:
    """What judges were shown, call by call."""
    with lab.store.database.read() as connection:
        judges = calls.c.model.not_like("%coder%")
        ids = connection.scalars(sa.select(calls.c.id).where(judges)).all()
    made = [lab.store.ledger.transcript(id)[0] for id in ids]
    return ["\n".join(message.content for message in messages) for messages in made]


def paid(lab: Lab) -> int:
    with lab.store.database.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(attempts)).scalar_one()


def written(made: Analysis) -> str:
    assert made.report is not None
    return made.report.read_text(encoding="utf-8")


# --- which run -----------------------------------------------------------------------------------


def test_a_run_is_found_by_number_key_and_page(lab: Lab, suite: Path) -> None:
    numbers = [ran(lab, suite), ran(lab, suite, wrong(suite, logic=0))]
    run = lab.store.suites.find_run(numbers[1])
    page = f"http://127.0.0.1:8000/experiment/default/run/{run.id}"
    with pytest.raises(DesignError, match=r"127.0.0.1:8000 may be another run.*its number"):
        lab.suites.find_run(page)
    lab.addresses.add("127.0.0.1:8000")  # it is served there
    for name in (run.id, str(run.id), run.key[:8], run.key.upper(), page, f"{page}/?x=1#evals"):
        assert lab.suites.find_run(name) == run
    assert lab.suites.find_run(f"/experiment/default/run/{run.key[:8]}/001-values/002-value") == run


def test_what_names_no_run_or_two_is_refused_with_the_choices(lab: Lab) -> None:
    runs = [
        lab.store.suites.save_run("s", "v", f"sim:{n}", "default", {}, "0", replicates=1, evals=[])
        for n in range(60)
    ]
    first = [run.key[0] for run in runs]  # of a few letters, so two begin alike
    letter = next(one for one in first if one.isalpha() and first.count(one) > 1)
    with pytest.raises(ConflictError, match=f"keys of {first.count(letter)} runs") as refusal:
        lab.suites.find_run(letter)
    assert len(refusal.value.choices) == first.count(letter)
    for name in ("99", "zebra", "/models", ""):
        with pytest.raises(NotFoundError):
            lab.suites.find_run(name)


def test_an_earlier_run_is_listed_once_by_its_newest_report(lab: Lab, suite: Path) -> None:
    number = ran(lab, suite)
    older = lab.failures.analyze(number, date="2026-03-02")
    assert older.report is not None
    action = "Stated the value in the task of 001-value."
    lab.failures.record_action(older.report.as_posix(), action)
    newer = lab.failures.analyze(number, samples=1, date="2026-03-03")
    assert "None on this model." in written(newer), "a report on this run is none of an earlier one"
    again = lab.suites.run(suite, lab.store.suites.find_run(number).model, series="again")
    found = lab.failures.analyze(again.run.id, date="2026-03-04")
    listed = [line for line in written(found).splitlines() if line.startswith("| `reports/")]
    assert len(listed) == 1 and str(newer.report) in listed[0]
    assert [fix.action for fix in found.fixes] == [action], "what an older report records counts"


def test_another_text_among_the_reports_is_noted_and_not_listed(lab: Lab, suite: Path) -> None:
    number = ran(lab, suite)
    first = lab.failures.analyze(number, samples=1)
    assert first.report is not None
    first.report.with_name("notes.md").write_text("# Mine\n\n## Run\n\n| Failed | 3 |\n")
    again = lab.failures.analyze(number, samples=1)
    assert [note for note in again.notes if "notes.md cannot be read" in note]
    listed = [row["path"] for row in lab.failures.list_reports()]
    assert listed == [first.report.as_posix()]


# --- the report ----------------------------------------------------------------------------------


def test_a_run_is_analysed_once_and_the_second_time_costs_nothing(
    lab: Lab, suite: Path, tmp_path: Path
) -> None:
    run = lab.store.suites.find_run(ran(lab, suite))
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    first = lab.failures.analyze(run.id, date="2026-03-02")
    assert first.judging is not None and first.judging.status == "complete"
    assert sum(one.calls for one in first.judging.runs) == 3 * 2 * 3, "evals, judges, samples"
    assert first.report is not None and first.report.name == f"{run.key[:8]}_2026-03-02.md"
    assert first.report.parts[:2] == ("reports", "sim")
    text, calls_made = written(first), paid(lab)
    assert lint_report(text) == []
    rows = [row["path"] for row in lab.suites.list_failed(run.id)]
    assert [told.path for told in read_report(text, "x").failures] == rows
    samples = lab.experiments.samples(f"analyze-{run.key[:8]}")
    for one in first.findings:
        mine = samples[samples["evidence_title"] == one.case.result.path]
        assert dict(one.counts.statuses) == mine["status"].value_counts().to_dict()
    again = lab.failures.analyze(run.key[:8], date="2026-03-02")
    assert (again.report, written(again), paid(lab)) == (first.report, text, calls_made)
    new = {path for path in tmp_path.rglob("*.*") if path.is_file()} - before
    made = {path for path in new if "lab.db" not in path.name and ".judge-gym" not in path.parts}
    assert made == {tmp_path / first.report}, "nothing but the report"


def test_a_queued_analysis_is_performed_by_a_worker_and_costs_the_same(
    lab: Lab, suite: Path
) -> None:
    number = ran(lab, suite)
    queued = lab.failures.start(str(number))
    assert (queued["status"], queued["target"]) == ("in progress", "analysis:1")
    [state] = lab.runs.status("analysis:1")["runs"]
    assert state["in_progress"] and "no worker is running" in state["message"]
    assert not lab.engine.idle()
    stop = threading.Event()
    stop.set()
    with pytest.raises(Interrupted):
        lab.failures.perform(1, stop)
    assert lab.failures.show(1)["status"] == "in progress", "another worker continues it"
    lab.workers.execute(until_idle=True)
    assert lab.engine.idle()
    shown = lab.failures.show(1)
    assert (shown["status"], shown["message"]) == ("complete", "")
    assert shown["counts"] == {"passed": 0, "failed": 3, "inconclusive": 0}
    assert shown["report"] is not None and shown["bytes"] == Path(shown["report"]).stat().st_size
    assert shown["ask_user"] is not None and shown["ask_user"].endswith("in more detail?")
    calls_made = paid(lab)
    made = lab.failures.analyze(number)
    assert (str(made.report), made.rows()) == (shown["report"], shown["findings"])
    assert paid(lab) == calls_made, "the command reads what the worker paid for"
    [state] = lab.runs.wait("analysis:1", timeout=0)["runs"]
    assert state["done"] == state["targets"] == {"score": 18}
    [row] = lab.failures.list_reports(model=shown["model"])
    assert (row["path"], row["failures"], row["actions"]) == (shown["report"], 3, [])


def test_a_queued_analysis_that_fails_says_why(lab: Lab, suite: Path) -> None:
    number = lab.suites.run(suite, wrong(suite), limit=1).run.id
    lab.failures.start(str(number), budget={"calls": 2})
    lab.workers.execute(until_idle=True)
    shown = lab.failures.show(1)
    assert shown["status"] == "failed" and "over-budget" in shown["message"]
    assert (shown["report"], shown["ask_user"]) == (None, None)
    lab.failures.start(str(number), budget={"calls": 100})
    lab.workers.execute(until_idle=True)
    assert lab.failures.show(2)["status"] == "complete"
    lab.suites.save_tasks("s", "1", [{"category": "a", "name": "b", "task": "Write b."}])
    good = lab.suites.save_run("s", "1", "sim:coder-strong", ["a/b"])
    lab.suites.save_eval(good, "a", "b", {"kind": "passed"}, datetime.now(UTC))
    passed = lab.failures.show(lab.failures.start(str(good))["analysis"])
    assert (passed["status"], passed["counts"]["failed"]) == ("complete", 0), "nothing is queued"
    assert passed["ask_user"] is None, "there is nothing to recommend"
    with pytest.raises(NotFoundError, match="there is no analysis 9; there are 1, 2, 3"):
        lab.failures.show(9)


def test_a_report_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "r" / "aaaa_2026-03-02.md"
    text = "# R\n\n## Run\n\n## Actions taken\n\nNone.\n"
    assert write_once(path, text) == path
    acted = text.replace("None.", "- Mended the grader.")
    path.write_text(acted)
    assert write_once(path, text) == path
    assert path.read_text() == acted, "what people wrote under actions stays"
    other = text.replace("# R", "# S")
    second = write_once(path, other)
    assert (second.name, second.read_text()) == ("aaaa_2026-03-02_2.md", other)
    assert (write_once(path, other), path.read_text()) == (second, acted)


# --- facts ---------------------------------------------------------------------------------------


def test_facts_come_from_the_steps_and_from_other_models_rows(lab: Lab, suite: Path) -> None:
    (suite / "001-values/002-value/answer/value.py").write_text("VALUE = 1\n")
    number = ran(lab, suite)
    for n, share in enumerate((0.0, 0.0, 1.0)):
        ran(lab, suite, f"{wrong(suite, logic=share)}&family=f{n}")
    facts = {one.case.result.name: one.case.facts for one in lab.failures.analyze(number).findings}
    broken = {name: one.reference_failed for name, one in facts.items()}
    assert broken == {"001-value": (), "002-value": ("tests",), "003-value": ()}
    failed = {name: (len(one.others_failed), one.others) for name, one in facts.items()}
    # The writers copy the answer, and one that is wrong fails for all of them.
    assert failed == {"001-value": (1, 3), "002-value": (3, 3), "003-value": (1, 3)}


def test_other_models_count_by_all_replicates_and_not_by_their_check(lab: Lab, suite: Path) -> None:
    number = ran(lab, suite)
    lab.suites.run(suite, f"{wrong(suite)}&family=checked", series=CHECK)
    other = f"{wrong(suite, logic=0.5)}&family=torn"
    report = lab.suites.run(suite, other, replicates=4)
    by_eval = {
        path: [r.result.outcome.kind for r in report.results if r.result.path == path]
        for path in report.run.evals
    }
    assert any(len(set(kinds)) > 1 for kinds in by_eval.values()), "or nothing is shown"
    for one in lab.failures.analyze(number).findings:
        kinds, facts = by_eval[one.case.result.path], one.case.facts
        assert (facts.others, len(facts.others_failed)) == (1, int("failed" in kinds))
        assert (facts.other_failures, facts.other_results) == (kinds.count("failed"), 4)


def test_judges_and_report_see_every_failed_step(lab: Lab, suite: Path) -> None:
    add_lint(suite)
    (suite / "kit/look.sh").write_text("echo 'value.py:1:8: F401 unused import'\nexit 1\n")
    made = lab.failures.analyze(ran(lab, suite))
    for one in made.findings:
        facts = one.case.facts
        assert (facts.reference_failed, facts.own_steps) == (("lint",), ("tests",))
        assert {"--- lint ---", "--- tests ---"} <= {*one.case.parts["error"].splitlines()}
        assert "F401" in one.case.parts["error"] and "1 tests failed" in one.case.parts["error"]
    text = written(made)
    assert text.count("Fails at `tests` too:") == len(made.findings) == 3
    assert "3 of 3 failures had a further one" in text
    assert lint_report(text) == []


def test_a_run_can_be_analysed_when_its_suite_is_gone_or_changed(lab: Lab, suite: Path) -> None:
    number = ran(lab, suite)
    shutil.move(suite, suite.parent / "away" / "tiny")
    gone = lab.failures.analyze(number)
    assert "reference answers were not tried" in gone.notes[0]
    assert {one.case.facts.reference_failed for one in gone.findings} == {None}
    named = lab.failures.analyze(number, suite=suite.parent / "away" / "tiny")
    assert {one.case.facts.reference_failed for one in named.findings} == {()}
    (suite.parent / "away/tiny/001-values/001-value/TASK.md").write_text("Write another.\n")
    with pytest.raises(NotFoundError, match="of version"):
        lab.failures.analyze(number, suite=suite.parent / "away" / "tiny")


def test_an_unfinished_run_is_said_to_be_one(lab: Lab, suite: Path) -> None:
    report = lab.suites.run(suite, wrong(suite), budget={"calls": 2})
    assert lab.failures.analyze(report.run.id).notes == ("run 1 is unfinished: 1 of 3 missing",)


def test_a_second_run_is_compared_with_the_report_on_the_first(lab: Lab, suite: Path) -> None:
    first = lab.failures.analyze(ran(lab, suite), date="2026-03-02")
    assert first.report is not None
    fixes = ("Mended the grader of `001-value`.", "Stated the format in 003-value.")
    for action in fixes:
        recorded = lab.failures.record_action(str(first.report), action)
    assert recorded["actions"] == [fix.replace("`", "") for fix in fixes]
    with pytest.raises(DesignError, match=r"names no eval of .*; choose 001-values/001-value or"):
        lab.failures.record_action(str(first.report), "Mended the grader.")
    assert lint_report(written(first)) == []
    gaps = suite / "001-values/001-value/GAPS.md"
    gaps.write_text("- The value must stand alone.\n")
    second = lab.failures.analyze(ran(lab, suite), date="2026-03-09")
    earlier = {one.case.result.name: one.case.facts.earlier for one in second.findings}
    [repaired], [other] = earlier["001-value"], earlier["002-value"]
    assert repaired.report == first.report.as_posix()
    assert repaired.fix == "Mended the grader of 001-value." and repaired.version_changed
    assert other.fix is None
    text = written(second)
    assert "a fix is recorded there, GAPS changed since, and the eval still fails" in text
    assert "but no file of this eval has changed since" in text, "003-value"
    assert [fix.benchmark_changed for fix in second.fixes] == [True, True]
    assert "| changed | 001-values/003-value failed |" in text
    assert lint_report(text) == []
    gaps.unlink()
    calls_made = paid(lab)
    lab.failures.analyze(first.run.id, date="2026-03-09")
    assert paid(lab) == calls_made, "a later report tells nothing of an earlier run"


# --- who judges ----------------------------------------------------------------------------------


def test_what_is_inconclusive_reaches_no_judge(lab: Lab, suite: Path) -> None:
    model = f"sim:{known_by(suite, 'coder-strong', logic=0.5, lint=0, empty=0.5, heed=0)}"
    number = next(
        report.run.id
        for series in "abcdefgh"
        if (report := lab.suites.run(suite, model, series=series)).score.failed
        and report.score.inconclusive
    )
    made = lab.failures.analyze(number)
    lost = {one.path for one in made.results.inconclusive}
    judged = {one.path for one in made.results.failed}
    shown = asked(lab)
    assert shown and lost and judged
    assert all(sum(path in text for text in shown) == 0 for path in lost)
    assert all(sum(path in text for text in shown) == 2 * 3 for path in judged)
    assert "## Inconclusive" in written(made)


def test_judges_of_a_real_model_are_named_and_never_chosen(
    lab: Lab, suite: Path, tmp_path: Path
) -> None:
    class Counting(SimulatedServer):
        now = most = 0

        async def chat(self, request: web.Request) -> web.StreamResponse:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                return await super().chat(request)
            finally:
                self.now -= 1

    server = Counting()
    with serve(server) as url:
        write_entry(tmp_path, url)
        model = f"lab:{known_by(suite, 'coder-strong', **WRONG)}"
        number = ran(lab, suite, model)
        before = paid(lab)
        with pytest.raises(DesignError, match="name one or more judges"):
            lab.failures.analyze(number)
        with pytest.raises(DesignError, match="would judge its own failures"):
            lab.failures.analyze(number, judges=["sim:strict", model])
        assert paid(lab) == before
        server.latency, server.most = 0.1, 0
        judges = ["lab:balanced", model]
        made = lab.failures.analyze(number, judges=judges, samples=8, allow_self=True)
    assert made.report is not None and made.report.parts[1] == "lab"
    assert 1 < server.most <= 4, "at most four calls at once"
    [own] = {one.judges[model].statuses["parse_failed"] for one in made.findings}
    assert own == 8, "a writer is no judge, and what it says is counted"
