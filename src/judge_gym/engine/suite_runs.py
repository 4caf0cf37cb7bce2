"""Carrying out suite runs: each eval is generated through the ledger, judged, and written down.

The ledger keeps every answer and each result is a row, so a loop over what has no row yet is as
durable as a queue would be: whoever gives the same command again goes on where it ended.
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from judge_gym.engine.calls.ask import Asker, EndpointDown, Models, Stopped
from judge_gym.engine.calls.budget import refuse_unpriced
from judge_gym.engine.calls.meters import Meters
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.runs.follower import first_interrupt, run_in_loop
from judge_gym.engine.runs.locks import lab_lock
from judge_gym.errors import BudgetError, JudgeGymError, RateLimitError
from judge_gym.models.cards import Limits
from judge_gym.records import Request
from judge_gym.records.outcomes import EvalResult, Inconclusive, search_step
from judge_gym.records.searches import split_searches
from judge_gym.store import Answer, Payer, Store, SuiteRun
from judge_gym.studies import BudgetSpec
from judge_gym.suites import Bench, CodeTask, Condition, Interrupted, Suite, requests, run_reply

GENERATION = "generation"
"""The step of a result whose model brought no answer."""
JOBS = 8
"""Evals in sandboxes at once."""


@dataclass(frozen=True, slots=True)
class SuiteExecution:
    """What one command did for a suite run."""

    run: SuiteRun
    tally: RunProgress
    stopped: JudgeGymError | None = None
    """Why it ended early: interrupted, or over budget."""


def study_of(suite: str) -> str:
    """The name under which a suite's calls are paid, and its budget is kept."""
    return f"suite {suite}"


class SuiteRunner:
    """Carries out suite runs on a lab.

    Args:
        store: where they are.
        models: whom to ask.
        limits: what is given here stands in the place of what the registry states.
    """

    def __init__(self, store: Store, models: Models, limits: Limits | None = None) -> None:
        self._store = store
        self._models = models
        self._limits = limits or Limits()

    def execute(
        self,
        run: SuiteRun,
        suite: Suite,
        condition: Condition,
        on: Bench,
        *,
        jobs: int = JOBS,
        watch: Callable[[Sequence[RunProgress]], None] = lambda tallies: None,
    ) -> SuiteExecution:
        """Bring a run to its end, or as far as it comes; what is there is not made again.

        Args:
            run: whose targets are to be met.
            suite: of the version that the run is of.
            condition: what the model is given besides the tasks.
            on: where evals are run.
            jobs: evals in sandboxes at once.
            watch: called once with the tally, before the work; it changes under its eyes.
        """
        budget = self._store.studies.budget(study_of(run.suite))
        card = self._models.card(run.model)
        refuse_unpriced(BudgetSpec.model_validate(budget), [card], searches=condition.web_search)
        work = _Work(self._store, run, on)
        watch([work.tally])
        if not work.missing(suite, condition):
            return SuiteExecution(run, work.tally)
        name = f"suite run {run.id}"
        with lab_lock(self._store.database, name):
            missing = work.missing(suite, condition)  # another may have been at it until now
            leases = self._store.leases(f"{name} {uuid.uuid4().hex[:12]}")
            try:
                asker = Asker(
                    self._store.ledger,
                    self._models,
                    Meters(self._store, leases),
                    limits=self._limits,
                    leases=leases,
                )
                done = work.carry_out(asker, suite, missing, jobs)
                stopped = run_in_loop(done, on.stop.set)
            finally:
                if leases is not None:
                    leases.leave()
        return SuiteExecution(run, work.tally, stopped)


Target = tuple[CodeTask, Request]


class _Work:
    """One command's part of a run."""

    def __init__(self, store: Store, run: SuiteRun, on: Bench) -> None:
        self._store = store
        self._run = run
        self._on = on
        self._payer = Payer(
            run.payer,
            study_of(run.suite),
            f"{run.suite}/{run.model}/{run.experiment}",
            GENERATION,
        )
        self.tally = RunProgress()

    def missing(self, suite: Suite, condition: Condition) -> list[Target]:
        """The evals that have no result that stays, replicate by replicate."""
        run = self._run
        tasks = [task for task in suite.evals if task.path in run.evals]
        asked = requests(
            suite,
            tasks,
            run.model,
            condition=condition,
            series=run.series,
            replicates=run.replicates,
        )
        every = [task for task in tasks for _ in range(run.replicates)]
        rows = self._store.suites.results(run.id).get(run.id, [])
        there = {(row.result.path, row.result.replicate) for row in rows if row.result.settled}
        found = [
            (task, request)
            for task, request in zip(every, asked, strict=True)
            if (task.path, request.draw.index) not in there
        ]
        self.tally.wanted = {GENERATION: len(found), "evals": len(found)}
        return found

    async def carry_out(
        self, asker: Asker, suite: Suite, targets: Sequence[Target], jobs: int
    ) -> JudgeGymError | None:
        """Work through targets; why it ended early, if it did."""

        def stop() -> None:
            asker.stop(Stopped("interrupted"))
            self._on.stop.set()

        with ThreadPoolExecutor(jobs, thread_name_prefix="eval") as pool:
            try:
                with first_interrupt(stop):
                    each = (self._one(asker, suite, target, pool) for target in targets)
                    ended = await asyncio.gather(*each, return_exceptions=True)
            except asyncio.CancelledError:  # the second Ctrl-C waits for no call
                return Stopped("interrupted")
        faults = [fault for fault in ended if fault is not None]
        for fault in faults:
            if not isinstance(fault, Stopped | BudgetError | Interrupted):
                raise fault
        over = next((fault for fault in faults if isinstance(fault, BudgetError)), None)
        return over or (Stopped("interrupted") if faults else None)

    async def _one(
        self, asker: Asker, suite: Suite, target: Target, pool: ThreadPoolExecutor
    ) -> None:
        try:
            await self._generate_and_judge(asker, suite, target, pool)
        except BudgetError:  # what was generated is judged all the same
            raise
        except Exception as fault:  # whatever it is, it is raised in the end, and nothing begins
            asker.stop(fault)
            self._on.stop.set()
            raise
        self.tally.advance("evals", 1)

    async def _generate_and_judge(
        self, asker: Asker, suite: Suite, target: Target, pool: ThreadPoolExecutor
    ) -> None:
        task, request = target
        try:
            [answer] = await asker.ask([request], self._payer, self.tally)
        except EndpointDown as fault:
            limited = isinstance(fault.__cause__, RateLimitError)
            why = Inconclusive(
                "rate_limit" if limited else "infrastructure", fault.message, GENERATION
            )
            unanswered = EvalResult(task.category, task.name, why, replicate=request.draw.index)
            self._store.suites.save_result(self._run, unanswered)
        else:
            self.tally.advance(GENERATION, 1)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(pool, self._judge, suite, target, answer)

    def _judge(self, suite: Suite, target: Target, answer: Answer) -> None:
        """Run an answer through the steps, and write down what became of it."""
        task, request = target
        took = self._store.suites.generation(answer.call_id)
        if answer.completion is None:
            why = Inconclusive("infrastructure", took.error, GENERATION)
            result = EvalResult(task.category, task.name, why)
        else:
            text = answer.completion.text
            found, text = split_searches(text) if request.web_search else ((), text)
            result = run_reply(suite, task, text, self._on)
            if request.web_search:
                result = replace(result, steps=(search_step(found), *result.steps))
        result = replace(
            result,
            replicate=request.draw.index,
            call_id=answer.call_id,
            seconds=took.seconds,
            usd=answer.completion.usd if answer.completion else took.usd,
        )
        self._store.suites.save_result(self._run, result)
