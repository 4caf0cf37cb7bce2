"""Rows of a plan, as studies and suites return them."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from judge_gym.records.responses import PlannedEndpoint, PlannedStage, as_record

if TYPE_CHECKING:
    from judge_gym.engine.planner import Plan, StagePlan


def planned_stage(stage: "StagePlan") -> PlannedStage:
    """Converts the planned calls of a stage, or of all stages, to a response."""
    return as_record(PlannedStage, {**asdict(stage), "to_pay": stage.to_pay})


def planned_endpoints(plan: "Plan") -> list[PlannedEndpoint]:
    """Converts the planned calls at each endpoint to responses."""
    return [
        as_record(PlannedEndpoint, {"endpoint": name, **asdict(endpoint)})
        for name, endpoint in plan.endpoints.items()
    ]
