"""Prints what plans of studies and of suites have in common."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge_gym.cli import display

if TYPE_CHECKING:
    from judge_gym.records.responses import PlannedEndpoint, PlannedStage


ESTIMATED_FROM = {
    "measured": "earlier calls",
    "limits": "declared limits",
    "typical": "models in general: never measured here",
}


def planned_cost(endpoints: "Sequence[PlannedEndpoint]", total: "PlannedStage") -> str:
    """Says how many calls a plan needs at most, their price and their duration."""
    usd = "an unknown price" if total["usd"] is None else f"${total['usd']:,.2f}"
    calls = display.plural(total["to_pay"], "new call")
    typical = any(row["basis"] == "typical" for row in endpoints if not _is_simulated(row))
    guess = " if its models are as fast as most: none was measured here" * typical
    return f"at most {calls}, {usd}, {display.duration(total['seconds'])}{guess}"


def show_endpoints(endpoints: "Sequence[PlannedEndpoint]") -> None:
    """Prints the calls to pay at each endpoint."""
    display.table(
        "by endpoint",
        [
            {
                "endpoint": endpoint["endpoint"],
                "to_pay": endpoint["to_pay"],
                "duration": display.duration(endpoint["seconds"]),
                "from": "simulated"
                if _is_simulated(endpoint)
                else ESTIMATED_FROM[endpoint["basis"]],
            }
            for endpoint in endpoints
        ],
        note="Endpoints are asked at the same time: the slowest one determines the duration.",
    )


def _is_simulated(endpoint: "PlannedEndpoint") -> bool:
    return endpoint["endpoint"] == "sim"


def exceeded_limits(total: "PlannedStage", budget: Mapping[str, Any]) -> list[str]:
    """Lists the limits of a budget that a plan, with every possible probe, exceeds."""
    planned = {
        "calls": total["to_pay"],
        "tokens": total["input_tokens"] + total["output_tokens"],
        "usd": total["usd"] or 0.0,
        "minutes": total["seconds"] / 60,
    }
    return [
        f"budget: {budget[name]:g} {name}, the plan needs up to {planned[name]:,.4g}"
        for name in planned
        if name in budget and planned[name] > budget[name]
    ]
