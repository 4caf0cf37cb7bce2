"""A budget holds whatever is in flight; what was paid for is kept, and a larger one goes on."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from conftest import Scripted
from engines import replace_engine
from judge_gym.cli import main
from judge_gym.engine import Engine
from judge_gym.engine.calls import ask, budget, retry
from judge_gym.engine.calls.budget import Spend, enough, input_tokens
from judge_gym.errors import (
    Bill,
    BudgetError,
    DesignError,
    ProviderError,
    RateLimitError,
    RejectedError,
)
from judge_gym.lab import Lab
from judge_gym.models import ModelCard
from judge_gym.models.simulated import SimulatedModel
from judge_gym.records import Completion, Request
from judge_gym.store import tables as t
from judge_gym.studies import BudgetSpec

WriteStudy = Callable[..., Path]
MANY = {"judges": ["sim:balanced?abstain=0", "sim:strict?abstain=0"], "samples": 20}
"""3 views, 2 rubrics, 2 critiques, 120 scores and 120 probes: 247 calls."""
ALL = 247


class Costly(Scripted):
    """Judges that always take their worst case: every token that they may, at a real price."""

    def __init__(
        self, *, down: bool = False, model: str = "gpt-5.2", seconds: float = 0.002
    ) -> None:
        super().__init__(lambda request: "")
        self.down, self.model, self.seconds = down, model, seconds
        self.flying = self.most_flying = 0

    def card(self, id: str) -> ModelCard:
        return ModelCard(
            id, "openai", self.model, family="openai", simulated=False, priced_as="openai"
        )

    async def complete(self, request: Request) -> Completion:
        self.flying += 1
        self.most_flying = max(self.flying, self.most_flying)
        await asyncio.sleep(self.seconds)
        self.flying -= 1
        if self.down:
            raise ProviderError("down")
        said = await SimulatedModel(request.model).complete(request)
        tokens = input_tokens(request), request.max_tokens
        usd = self.card(request.model).price(*tokens)
        return Completion(said.text, said.finish, said.model, *tokens, usd)


def use(lab: Lab, models: Costly) -> Costly:
    replace_engine(lab, Engine(lab.store, models))
    return models


def spent(lab: Lab, study: str = "small") -> dict[str, float]:
    usage = lab.reports.usage(study)
    return {
        "calls": sum(row["attempts"] for row in usage),
        "tokens": sum((r["input_tokens"] or 0) + (r["output_tokens"] or 0) for r in usage),
        "usd": sum(row["usd"] or 0.0 for row in usage),
    }


def paid(result: Any) -> int:
    return sum(run.calls for run in result.runs)


@pytest.mark.parametrize("limit", [1, 6, 100, ALL - 1])
def test_no_more_calls_than_the_budget_whatever_is_in_flight(
    lab: Lab, write_study: WriteStudy, limit: int
) -> None:
    models = use(lab, Costly())
    stopped = lab.runs.run(write_study(**MANY, budget={"calls": limit}))
    assert isinstance(stopped.stopped, BudgetError)
    assert f"{limit} calls" in stopped.stopped.message
    assert spent(lab)["calls"] == paid(stopped) == limit
    if limit >= 100:
        assert 32 < models.most_flying <= 64


def test_a_spent_budget_pays_nothing_more_and_a_larger_one_pays_the_rest(
    lab: Lab, write_study: WriteStudy
) -> None:
    use(lab, Costly())
    lab.runs.run(write_study(**MANY, budget={"calls": 100}))
    again = lab.runs.run(write_study(**MANY, budget={"calls": 100}))
    assert (paid(again), type(again.stopped)) == (0, BudgetError)
    assert again.status not in ("complete", "complete-with-failures")
    rest = lab.runs.run(write_study(**MANY, budget={"calls": ALL}))
    assert (paid(rest), rest.stopped, rest.status) == (ALL - 100, None, "complete")
    assert len(lab.experiments.samples("small")) == 120
    assert paid(lab.runs.run(write_study(**MANY, budget={"calls": ALL}))) == 0


def test_failed_attempts_count_in_the_budget(lab: Lab, write_study: WriteStudy) -> None:
    path = write_study(**MANY, budget={"calls": 4})
    use(lab, Costly(down=True))
    for turn in range(3):  # a provider that is down is not hammered beyond the budget
        result = lab.runs.run(path)
        assert spent(lab)["calls"] == 4
        assert (paid(result) == 0) == (turn > 0)


@pytest.mark.parametrize(("name", "limit"), [("tokens", 60_000), ("usd", 0.4)])
def test_tokens_and_money_stay_within_the_budget_in_the_worst_case(
    lab: Lab, write_study: WriteStudy, name: str, limit: float
) -> None:
    """A call may take more than a twentieth of these budgets, so 64 at once would break them."""
    use(lab, Costly())
    stopped = lab.runs.run(write_study(**MANY, budget={name: limit}))
    assert isinstance(stopped.stopped, BudgetError)
    assert name in stopped.stopped.message
    assert 0.8 * limit < spent(lab)[name] <= limit
    assert sum(run.usd for run in stopped.runs) == pytest.approx(spent(lab)["usd"])
    before = spent(lab)["calls"]
    more = lab.runs.run(write_study(**MANY, budget={name: limit * 100}))
    assert more.status == "complete"
    assert spent(lab)["calls"] == ALL
    assert paid(more) == ALL - before


def test_a_call_that_alone_breaks_the_budget_is_never_made(
    lab: Lab, write_study: WriteStudy
) -> None:
    models = use(lab, Costly())
    stopped = lab.runs.run(write_study(**MANY, budget={"tokens": 500}))
    assert isinstance(stopped.stopped, BudgetError)
    assert models.most_flying == 0


class Late(Costly):
    """Judges that take a minute for each call, on a clock that only they move."""

    now = 0.0

    async def complete(self, request: Request) -> Completion:
        self.now += 60
        return await super().complete(request)

    def monotonic(self) -> float:
        return self.now


def test_minutes_end_a_run_and_the_next_has_its_own(
    lab: Lab, write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges = Late()
    use(lab, judges)
    monkeypatch.setattr(budget, "time", judges)
    path = write_study(**MANY, budget={"minutes": 10})
    for _ in range(2):
        before = spent(lab)["calls"]
        result = lab.runs.run(path, concurrency=4)
        assert isinstance(result.stopped, BudgetError)
        assert "10 minutes" in result.stopped.message
        assert 10 <= paid(result) <= 10 + 4
        assert spent(lab)["calls"] == before + paid(result)


def test_money_cannot_be_promised_where_a_price_is_unknown(
    lab: Lab, write_study: WriteStudy
) -> None:
    models = use(lab, Costly(model="no-such-model-at-all"))
    with pytest.raises(DesignError, match=r"price of sim:\w+") as refusal:
        lab.runs.run(write_study(budget={"usd": 20}))
    assert "budget.usd" in refusal.value.message
    assert models.most_flying == 0
    assert lab.runs.run(write_study(budget={"calls": 500})).status == "complete"


def test_each_study_has_its_own_budget(lab: Lab, write_study: WriteStudy) -> None:
    use(lab, Costly())
    lab.runs.run(write_study(study="first", seed=1))
    limit = int(spent(lab, "first")["calls"])
    second = lab.runs.run(write_study("two.yaml", study="second", seed=2, budget={"calls": limit}))
    assert second.stopped is None
    assert spent(lab, "second")["calls"] <= limit


def test_on_the_command_line_a_reached_budget_is_exit_3_and_says_how_to_go_on(
    write_study: WriteStudy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JUDGE_GYM_DATABASE_URL", raising=False)
    words = ["run", str(write_study(budget={"calls": 10}))]
    monkeypatch.setattr("sys.argv", ["judge-gym", *words])
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 3
    said = capsys.readouterr().err
    assert "10 calls" in said
    assert f"judge-gym run {words[1]}" in said
    write_study(budget={"calls": 1000})
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0


def test_a_runs_own_budget_pauses_that_run_alone_and_says_what_is_left(
    lab: Lab, write_study: WriteStudy
) -> None:
    """Each judge has 1 rubric, 1 critique, 60 scores and 60 probes; the views are shared."""
    use(lab, Costly())
    stopped = lab.runs.run(write_study(**MANY, budget={"run": {"calls": 123}}))
    assert isinstance(stopped.stopped, BudgetError)
    assert "1 of 2 runs" in stopped.stopped.message and "123 calls" in stopped.stopped.message
    assert sorted(run.calls for run in stopped.runs) == [122, 123]  # one pays for a view or more
    assert sorted(run.status for run in stopped.runs) == ["complete", "over-budget"]
    assert stopped.left is not None and stopped.left.to_pay == ALL - 245
    assert stopped.left.usd is not None and stopped.left.usd > 0
    rest = lab.runs.run(write_study(**MANY))
    assert (paid(rest), rest.status) == (ALL - 245, "complete")


def test_a_question_that_another_run_may_not_pay_for_is_paid_by_the_run_that_may(
    lab: Lab, write_study: WriteStudy
) -> None:
    """Both variants share views, rubric and critique, and each has scores and probes of its own."""
    use(lab, Costly())
    both = {"judges": ["sim:balanced?abstain=0"], "vary": {"verdict.method": ["single", "subset"]}}
    spare = {"run": {"calls": 13}}
    result = lab.runs.run(write_study(**both, samples=2, budget=spare))
    for run in result.runs:
        assert run.calls <= 13
        assert run.status == "complete" or run.calls == 13, "it stopped for another's budget"


def test_what_was_spent_by_a_run_counts_when_it_goes_on(lab: Lab, write_study: WriteStudy) -> None:
    use(lab, Costly())
    one = {**MANY, "judges": ["sim:balanced?abstain=0"]}
    lab.runs.run(write_study(**one, budget={"calls": 50}))
    more = lab.runs.run(write_study(**one), budget={"run.calls": 70})
    assert paid(more) == 20
    assert paid(lab.runs.run(write_study(**one), budget={"run.calls": 70})) == 0


def test_a_budget_from_the_command_stands_over_the_studys(
    lab: Lab, write_study: WriteStudy
) -> None:
    use(lab, Costly())
    path = write_study(**MANY, budget={"calls": 10})
    assert paid(lab.runs.run(path, budget={"calls": 30})) == 30
    for bad, said in (
        ({"cals": 3}, "unknown limit 'cals'"),
        ({"calls": 0}, r"budget\.calls.*not 0"),
        ({"run.usd": "much"}, r"budget\.run\.usd.*not 'much'"),
    ):
        with pytest.raises(DesignError, match=said):
            lab.runs.run(path, budget=bad)


def test_a_failed_attempt_that_was_billed_is_paid_for(lab: Lab, write_study: WriteStudy) -> None:
    class Billed(Costly):
        """A provider that charges for answers that nobody can read."""

        async def complete(self, request: Request) -> Completion:
            raise RejectedError("half an answer", bill=Bill(1000, 10, 0, 0.01))

    use(lab, Billed())
    result = lab.runs.run(write_study(samples=1))
    assert paid(result) == spent(lab)["calls"] > 0
    assert spent(lab)["usd"] == pytest.approx(0.01 * paid(result))
    assert spent(lab)["tokens"] == 1010 * paid(result)
    use(lab, Billed())
    once = lab.runs.run(write_study("b.yaml", study="b", seed=5), budget={"usd": 0.1})
    assert isinstance(once.stopped, BudgetError)
    assert spent(lab, "b")["usd"] <= 0.1


def test_a_provider_that_asks_to_wait_takes_nothing_from_the_budget(
    lab: Lab, write_study: WriteStudy
) -> None:
    class Busy(Costly):
        """Asks every call to wait once."""

        waited: set[str] = set()

        async def complete(self, request: Request) -> Completion:
            if request.key() not in self.waited:
                self.waited.add(request.key())
                raise RateLimitError("wait", wait=0.001)
            return await super().complete(request)

    use(lab, Busy())
    done = lab.runs.run(write_study(**MANY, budget={"calls": ALL}))
    assert (done.stopped, done.status, paid(done)) == (None, "complete", ALL)


def test_what_is_reused_costs_nothing_and_shows_as_saved(lab: Lab, write_study: WriteStudy) -> None:
    use(lab, Costly())
    lab.runs.run(write_study(**MANY))
    again = lab.runs.run(write_study(**MANY), new_run=True)
    assert (paid(again), sum(run.usd for run in again.runs)) == (0, 0)
    # Views and rubrics are there as records; the others are asked of the ledger.
    once = {row["stage"]: row["usd"] or 0 for row in lab.reports.usage("small", by=["stage"])}
    saved = sum(run.saved for run in again.runs)
    assert saved == pytest.approx(once["critic"] + once["scorer"] + once["prober"])
    assert again.to_json()["runs"][0]["saved"] == again.runs[0].saved


def test_a_call_that_its_adapter_lets_hang_ends_in_due_time(
    lab: Lab, write_study: WriteStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging(Costly):
        """Never answers."""

        def card(self, id: str) -> ModelCard:
            return replace(super().card(id), deadline=0.01)

        async def complete(self, request: Request) -> Completion:
            await asyncio.sleep(3600)
            raise AssertionError

    monkeypatch.setattr(ask, "GRACE", 0.01)
    monkeypatch.setattr(retry, "BACKOFF", 0.001)
    use(lab, Hanging())
    lab.runs.run(write_study(samples=1, judges=["sim:balanced"]))
    with lab.store.database.read() as connection:
        errors = connection.scalars(sa.select(t.attempts.c.error)).all()
    assert errors and all("took over 0.01 s" in error for error in errors)


def test_limits_that_would_be_enough_are_named_where_they_are_not() -> None:
    budget = BudgetSpec.model_validate({"calls": 10, "usd": 5, "run": {"calls": 4}})
    study, run = Spend(calls=47, tokens=9000, usd=0.4), Spend(calls=20)
    assert enough(budget, study, run) == {"calls": 47, "run.calls": 20}
    assert enough(budget, Spend(calls=3, usd=4.9)) == {"usd": 5.9}, "a call reserves its worst case"
    assert enough(BudgetSpec(), study, run) == {}
