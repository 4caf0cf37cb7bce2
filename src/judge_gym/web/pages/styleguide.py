"""Style guide: every component of the pages, with made-up numbers."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.records import palette
from judge_gym.records.forest import axis_of
from judge_gym.records.judge_table import Quantity
from judge_gym.web.rendering import render

router = APIRouter()
STATES = (
    "complete",
    "running",
    "paused",
    "over-budget",
    "cancelled",
    "failed",
    "waiting",
    "scored",
    "abstained",
    "refused",
    "truncated",
    "parse_failed",
    "provider_error",
    "draft",
)


@router.get("/styleguide")
def styleguide(request: Request) -> Response:
    """Shows the components."""
    rows: list[tuple[str, list[str], Quantity]] = [
        ("balanced", ["labels fixed"], {"value": 0.75, "low": 0.58, "high": 0.86, "n": 24}),
        ("strict", [], {"value": 0.74, "low": 0.55, "high": 0.85, "n": 24}),
        ("hasty", ["may name several"], {"value": 0.41, "low": 0.26, "high": 0.58, "n": 24}),
    ]
    people: Quantity = {"value": 0.64, "low": 0.48, "high": 0.78, "n": 24}
    difference: Quantity = {"value": 0.33, "low": 0.09, "high": 0.46, "n": 24}
    shares = [[0.8, 0.2], [0.1, 0.9]]
    return render(
        request,
        "styleguide.html.j2",
        colours=list(palette.LIGHT),
        judges=palette.judge_colours(name for name, *_ in rows),
        states=STATES,
        rows=rows,
        people=people,
        axis=axis_of([], "share"),
        difference=difference,
        differences=axis_of([difference], "share", signed=True),
        crossed=[
            (label, [_cell(share, row == column) for column, share in enumerate(shares[row])])
            for row, label in enumerate(["fails", "passes"])
        ],
    )


def _cell(share: float, equal: bool) -> dict[str, object]:
    text = f"{share:.0%}"
    return {"share": share, "text": text, "title": text, "place": "#items", "equal": equal}
