"""Suite runs on the engine: where their suite is on this machine, and what their shards do.

A shard is a few evals, each named by its path and replicate. Each answer is generated through the
ledger, run through the suite's steps in a sandbox, and written as a row.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from judge_gym.engine.calls.ask import Asker
from judge_gym.engine.calls.circuit_breaker import EndpointDown
from judge_gym.engine.calls.progress import RunProgress
from judge_gym.engine.orders import EVALS, GENERATION, SuiteWork, WorkOrder, study_of
from judge_gym.engine.steps import Shard
from judge_gym.errors import BudgetError, DesignError, NotFoundError, RateLimitError
from judge_gym.records import EvalResult, Inconclusive, Request, SuiteRun
from judge_gym.records.outcomes import search_step
from judge_gym.records.searches import split_searches
from judge_gym.store import Answer, Payer, Store
from judge_gym.suites import (
    SHIPPED,
    CodeTask,
    Condition,
    Interrupted,
    Sandbox,
    Suite,
    load_suite,
    open_sandbox,
    requests,
    run_reply,
)

EVALS_PER_SHARD = 4


class SuiteMissing(DesignError):
    """This machine lacks the suite of a run at its version, or a tool that the suite needs."""


class SuiteFinder:
    """Finds the suites of runs on this machine, each at the version that its run needs."""

    def __init__(self) -> None:
        self._found: dict[str, Suite] = {}

    def add(self, suite: Suite) -> None:
        """Notes a suite that is loaded already."""
        self._found[suite.version] = suite

    def find(self, run: SuiteRun, work: SuiteWork) -> tuple[Suite, Sandbox]:
        """Returns the suite of a run and a sandbox for its steps.

        Raises:
            SuiteMissing: with the reason.
        """
        try:
            sandbox = open_sandbox(allow_unisolated=work.allow_unisolated)
            if run.version not in self._found:
                self._found[run.version] = self._load(run, work)
        except DesignError as error:
            raise SuiteMissing(error.message) from error
        return self._found[run.version], sandbox

    def _load(self, run: SuiteRun, work: SuiteWork) -> Suite:
        other_versions = []
        local_folders = sorted(file.parent for file in Path().glob("*/suite.toml"))
        for folder in ([Path(work.folder)] if work.folder else []) + [SHIPPED, *local_folders]:
            try:
                suite = load_suite(folder)
            except (DesignError, NotFoundError):  # another suite that is broken, or none
                continue
            if suite.name == run.suite:
                if suite.version == run.version:
                    return suite
                other_versions.append(suite.version)
        if other_versions:
            raise SuiteMissing(
                f"the suite {run.suite!r} is here at version {other_versions[0]}, and the run is "
                f"of version {run.version}: its files, or the tools that grade, differ"
            )
        raise SuiteMissing(
            f"the suite {run.suite!r} is not here; start judge-gym in the folder that holds it"
        )


@dataclass(frozen=True, slots=True)
class SuiteSteps:
    """The evals of one suite run, as one workflow executes them."""

    store: Store
    asker: Asker
    run: SuiteRun
    suite: Suite
    sandbox: Sandbox
    sandboxes: ThreadPoolExecutor
    order: WorkOrder
    progress: RunProgress

    @property
    def names(self) -> list[str]:
        """The one step: generate and grade."""
        return [EVALS]

    def announce(self) -> None:
        """Sets the number of targets."""
        missing = len(self._missing())
        assert self.progress.whole is not None
        self.progress.whole.targets = {GENERATION: missing, EVALS: missing}
        self.progress.whole.asked = {GENERATION: self.run.model}

    def shards(self, step: str) -> list[Shard]:
        """Returns the evals without a settled result, in shards."""
        missing = [list(target) for target in self._missing()]
        size = EVALS_PER_SHARD
        return [missing[start : start + size] for start in range(0, len(missing), size)]

    async def generate_and_grade(self, shard: Shard) -> None:
        """Executes one shard; all of its evals end, even if one fails."""
        missing = self._missing()
        work = (self._one_eval(*target) for target in missing if [*target] in shard)
        ended = await asyncio.gather(*work, return_exceptions=True)
        errors = [error for error in ended if error is not None]
        # A budget is only the reason where nothing else is: answers that came are graded.
        for error in sorted(errors, key=lambda error: isinstance(error, BudgetError)):
            raise error

    def finish(self, step: str) -> None:
        """Raises why calls were not made, where a worker is to try their endpoint again."""
        if self.progress.down is not None:
            raise self.progress.down

    def _missing(self) -> list[tuple[str, int]]:
        assert self.order.suite is not None
        return self.store.suites.missing(self.run, self.order.suite.selection)

    async def _one_eval(self, path: str, replicate: int) -> None:
        task = self.suite.find(path)
        request = self._request(task, replicate)
        tag = f"{self.run.suite}/{self.run.model}/{self.run.condition}"
        payer = Payer(self.run.payer, study_of(self.run.suite), tag, GENERATION)
        try:
            [answer] = await self.asker.ask([request], payer, self.progress)
        except EndpointDown as error:
            limited = isinstance(error.__cause__, RateLimitError)
            outcome = Inconclusive(
                "rate_limit" if limited else "infrastructure", error.message, GENERATION
            )
            result = EvalResult(task.category, task.name, outcome, replicate=replicate)
            self.store.suites.save_result(self.run, result)
            if error.trial is not None:
                self.progress.down = error
        else:
            self.progress.advance(GENERATION, 1)
            self._refuse_to_grade()
            loop = asyncio.get_running_loop()
            try:
                result = await loop.run_in_executor(
                    self.sandboxes, self._grade, task, request, answer
                )
            except Interrupted:
                self._refuse_to_grade()
                raise
        self.progress.count_outcome(result.outcome.kind)
        self.progress.advance(EVALS, 1)

    def _refuse_to_grade(self) -> None:
        """Raises why the run was stopped; a budget stops calls only."""
        error = self.asker.error or self.asker.held(self.run.payer)
        if error is not None and not isinstance(error, BudgetError):
            raise error

    def _request(self, task: CodeTask, replicate: int) -> Request:
        settings = {**self.run.settings, "without": tuple(self.run.settings.get("without", ()))}
        return requests(
            self.suite,
            [task],
            self.run.model,
            condition=Condition(self.run.condition, **settings),
            series=self.run.series,
            replicates=replicate + 1,
        )[replicate]

    def _grade(self, task: CodeTask, request: Request, answer: Answer) -> EvalResult:
        """Runs an answer through the suite's steps, and stores the result."""
        call = self.store.suites.generation(answer.call_id)
        if answer.completion is None:
            outcome = Inconclusive("infrastructure", call.error, GENERATION)
            result = EvalResult(task.category, task.name, outcome)
        else:
            text = answer.completion.text
            searches, text = split_searches(text) if request.web_search else ((), text)
            result = run_reply(self.suite, task, text, self.sandbox)
            if request.web_search:
                result = replace(result, steps=(search_step(searches), *result.steps))
        result = replace(
            result,
            replicate=request.draw.index,
            call_id=answer.call_id,
            seconds=call.seconds,
            usd=answer.completion.usd if answer.completion else call.usd,
        )
        self.store.suites.save_result(self.run, result)
        return result
