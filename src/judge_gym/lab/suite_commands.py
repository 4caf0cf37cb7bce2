"""What a command asks of models on a suite, checked before it is stored, planned or paid."""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judge_gym.engine import SuiteWork
from judge_gym.records import Request
from judge_gym.records.responses import PlannedSuiteRun
from judge_gym.studies import BudgetSpec
from judge_gym.suites import CodeTask, Condition, Suite, requests

if TYPE_CHECKING:
    from judge_gym.engine.planner import Planner

Target = tuple[str, int]
"""An eval by its path, and a replicate."""


@dataclass(frozen=True, slots=True)
class SuiteCommand:
    """Evals of a suite, and the models and conditions that are to answer them."""

    suite: Suite
    tasks: tuple[CodeTask, ...]
    points: tuple[tuple[str, Condition], ...]
    """Each model under each condition, by model."""
    series: str
    replicates: int
    limits: Mapping[str, Any]
    """What it changes of the suite's budget."""
    budget: BudgetSpec
    """The budget after that."""
    jobs: int
    """Evals in sandboxes at once."""
    allow_unisolated: bool

    @property
    def targets(self) -> list[Target]:
        """Every answer that it asks for."""
        paths = (task.path for task in self.tasks)
        return list(itertools.product(paths, range(self.replicates)))

    @property
    def work(self) -> SuiteWork:
        """What a process needs to execute it, and nothing beyond its evals."""
        return SuiteWork(
            self.suite.version,
            str(self.suite.folder.resolve()),
            self.jobs,
            self.allow_unisolated,
            {task.path: self.replicates for task in self.tasks},
        )

    def identity(
        self, model: str, condition: Condition
    ) -> tuple[str, str, str, str, Mapping[str, Any], str]:
        """The values that make two runs the same run."""
        suite = self.suite
        return suite.name, suite.version, model, condition.name, condition.key, self.series

    def requests(
        self, model: str, condition: Condition, targets: Collection[Target]
    ) -> list[Request]:
        """Builds the requests for some of its targets."""
        written = requests(
            self.suite,
            self.tasks,
            model,
            condition=condition,
            series=self.series,
            replicates=self.replicates,
        )
        pairs = zip(self.targets, written, strict=True)
        return [request for target, request in pairs if target in targets]

    def plan(
        self,
        planner: "Planner",
        model: str,
        condition: Condition,
        run: int | None,
        missing: Collection[Target],
    ) -> PlannedSuiteRun:
        """Adds what it asks of a model under a condition to a plan, and returns that part.

        Args:
            planner: holds the plan.
            model: its id.
            condition: what the model is given.
            run: the number of the run that it continues.
            missing: targets without a result there.
        """
        tag = f"{model}, {condition.name}"
        planner.add_generations(tag, self.requests(model, condition, missing))
        counts = planner.plan.experiments[tag]
        return {
            "run": run,
            "model": model,
            "condition": condition.name,
            "series": self.series,
            "targets": len(self.targets),
            "missing": len(missing),
            "in_ledger": counts["in_ledger"],
            "shared": counts["shared"],
            "to_pay": counts["to_pay"],
        }
