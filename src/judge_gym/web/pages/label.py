"""The pages on which a rater labels items; the token of a rater's link opens nothing else.

What they show and answer holds the item and the rater's own labels: no judge's name, verdict or
other person's label before the last item has one.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from judge_gym.errors import ScopeError
from judge_gym.lab.labelling import CONFIDENCES
from judge_gym.records.inputs import LARGEST
from judge_gym.records.requests import Name, Short
from judge_gym.web.api.parameters import Id, OpenLab
from judge_gym.web.rendering import render

router = APIRouter(prefix="/label")
Position = Annotated[int | None, Query(ge=1, le=LARGEST)]


@router.get("")
def label(request: Request, lab: OpenLab, item: Position = None) -> Response:
    """Shows an item of the rater's queue, by default the next one without a label."""
    queue, rater = _rater(request)
    page = lab.labelling.page(queue, rater, item)
    if page is None:
        return RedirectResponse("/label/done", 303)
    return render(request, "label.html.j2", page=page, confidences=CONFIDENCES)


@router.post("/answers")
def answer(
    request: Request,
    lab: OpenLab,
    position: Annotated[int, Body(ge=1, le=LARGEST)],
    stage: Annotated[Name | None, Body()] = None,
    confidence: Annotated[Name | None, Body()] = None,
    note: Annotated[Short, Body()] = "",
) -> dict[str, Any]:
    """Saves a label, and says where the next item without one is."""
    queue, rater = _rater(request)
    following = lab.labelling.give(queue, rater, position, stage, confidence=confidence, note=note)
    return {"next": following}


@router.get("/done")
def done(request: Request, lab: OpenLab) -> Response:
    """Ends a queue, and shows judges' verdicts to a rater who wants to see them."""
    queue, rater = _rater(request)
    if lab.labelling.page(queue, rater) is not None:
        return RedirectResponse("/label", 303)
    reveal = "reveal" in request.query_params
    rows = lab.labelling.reveal(queue, rater) if reveal else None
    last = lab.labelling.page(queue, rater, 1)
    return render(request, "label_done.html.j2", rows=rows, page=last)


@router.post("/reviews/{sample}")
def review(
    request: Request, lab: OpenLab, sample: Id, sound: Annotated[bool, Body(embed=True)]
) -> dict[str, Any]:
    """Records whether a rater finds the reasoning behind a judge's verdict sound."""
    queue, rater = _rater(request)
    lab.labelling.review(queue, rater, sample, sound=sound)
    return {}


def _rater(request: Request) -> tuple[int, str]:
    """Returns the queue and the rater that the link of the caller is for."""
    caller = request.state.caller
    if caller.queue is None or caller.rater is None:
        raise ScopeError("only a rater's link opens this page; 'judge-gym label' makes one")
    return caller.queue, caller.rater
