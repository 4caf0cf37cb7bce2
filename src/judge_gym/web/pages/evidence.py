"""Items of the lab: the sets that studies judge, frozen pools, searches, and each text."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.lab import Lab
from judge_gym.stages.fidelity import needs_review, split_at_flags
from judge_gym.store import Page
from judge_gym.web.api.parameters import LARGEST, Cursor, Id, Name, OpenLab
from judge_gym.web.rendering import render

router = APIRouter()
ROWS = 50
LONGEST = 100_000
"""Characters of a text that a page shows; the API has all of it."""
COMPARABLE = 20_000_000
"""Pairs of words up to which two texts are compared word by word."""
WORD = re.compile(r"\s*\S+|\s+$")
Place = Annotated[int, Query(ge=0, le=LARGEST)]
Piece = tuple[str, bool]
"""Some text, and whether to mark it."""


class View(NamedTuple):
    """A view to be shown beside the original text."""

    editor: str
    status: str
    call: int
    checks: Mapping[str, Any]
    flagged: bool
    text: list[Piece]
    source: list[Piece]
    """The original text with what the view leaves out marked; empty if not compared by word."""


@router.get("/evidence")
def evidence(
    request: Request,
    lab: OpenLab,
    before: Annotated[int, Query(ge=1, le=LARGEST)] = LARGEST,
    after: Cursor = "",
) -> Response:
    """Shows the sets that were judged, frozen pools by name, and windows, newest first."""
    every = lab.evidence.list_windows()
    windows = [row for row in reversed(every) if row["window"] < before and row["items"]]
    pools = [row for row in lab.evidence.list_pools() if row["name"] > (after or "")]
    return render(
        request,
        "evidence.html.j2",
        judged=_sets(lab.pages.judged_pools(limit=ROWS)),
        all_windows=every[::-1],
        rows=ROWS,
        windows=windows[:ROWS],
        older=windows[ROWS - 1]["window"] if len(windows) > ROWS else None,
        pools=pools[:ROWS],
        more=pools[ROWS - 1]["name"] if len(pools) > ROWS else None,
    )


def _sets(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the sets of items that were judged, each with the studies that judge it."""
    sets: dict[int, dict[str, Any]] = {}
    for row in rows:
        entry = sets.setdefault(row["pool_id"], {**row, "studies": {}, "concepts": {}})
        entry["studies"][row["study"]] = None
        entry["concepts"] |= dict.fromkeys(row["concepts"])
    return [*sets.values()]


@router.get("/windows/{id}")
def window(request: Request, lab: OpenLab, id: Id, after: Place = 0) -> Response:
    """Shows the items of a window."""
    page = lab.pages.evidence_page(window_id=id, after=after, limit=ROWS)
    window_row, collections = lab.pages.find_window(id)
    title = " · ".join(filter(None, (window_row.country, window_row.search)))
    facts = {"window": id, "dates": (window_row.start, window_row.end), "collections": collections}
    return _items(request, title, page, after, **facts)


@router.get("/pools/{name:path}")
def pool(
    request: Request,
    lab: OpenLab,
    name: Name,
    after: Place = 0,
    against: Annotated[Name | None, Query(description="Another pool, to compare with.")] = None,
) -> Response:
    """Shows the items of a frozen pool, and optionally how it differs from another."""
    page = lab.pages.evidence_page(pool=name, after=after, limit=ROWS)
    pools = {row["name"]: row for row in lab.evidence.list_pools()}
    other_pools = [other for other in pools if other != name]
    difference = _difference(lab, against, name) if against else None
    facts = {"pool": pools[name], "others": other_pools, "difference": difference}
    return _items(request, name, page, after, **facts)


@router.get("/pools")
def experiment_pool(
    request: Request,
    lab: OpenLab,
    experiment: Annotated[Name, Query(description="Its tag.")],
    after: Place = 0,
) -> Response:
    """Shows the items that an experiment judges, whether the pool has a name or not."""
    page = lab.pages.evidence_page(tag=experiment, after=after, limit=ROWS)
    return _items(request, experiment, page, after)


def _items(request: Request, title: str, page: Page, after: int, **facts: Any) -> Response:
    """Shows a page of items with the facts of their window or pool, if they have one."""
    facts = {"window": None, "pool": None, **facts, "rows": page.rows, "next": page.next}
    return render(request, "evidence_items.html.j2", title=title, after=after, **facts)


@router.get("/evidence/{id}")
def item(
    request: Request, lab: OpenLab, id: Id, compare: Literal["flags", "words"] = "flags"
) -> Response:
    """Shows a text beside its views, with what the checks flag or every differing word marked."""
    detail: dict[str, Any] = {**lab.evidence.show(id)}
    cut = max(map(len, (detail["text"], *detail["responses"]))) > LONGEST
    detail |= {
        "text": detail["text"][:LONGEST],
        "responses": [response[:LONGEST] for response in detail["responses"]],
    }
    views = [_view(view, detail["text"], compare) for view in detail.pop("views")]
    return render(
        request,
        "evidence_item.html.j2",
        item=detail,
        views=views,
        holders=lab.pages.holders(id),
        compare=compare,
        cut=cut,
        # A link with another scheme, such as javascript:, could run code.
        linked=detail["url"].startswith(("http://", "https://")),
    )


def _difference(lab: Lab, before: str, after: str) -> dict[str, Any]:
    pool_difference: dict[str, Any] = {**lab.evidence.diff_pools(before, after)}
    counts = {name: len(pool_difference[name]) for name in ("added", "removed", "truths_changed")}
    return {
        **pool_difference,
        **{name: pool_difference[name][:ROWS] for name in counts},
        "counts": counts,
    }


def _view(view: Mapping[str, Any], source: str, compare: str) -> View:
    text, checks = (view["text"] or "")[:LONGEST], view["checks"]
    parts: tuple[list[Piece], list[Piece]] = ([(text, False)], [])
    if checks:
        parts = (split_at_flags(text, checks), [])
    if compare == "words":
        parts = word_differences(source, text) or parts
    return View(
        view["editor"],
        view["status"],
        view["call_id"],
        checks or {},
        bool(checks) and needs_review(checks),
        *parts,
    )


def word_differences(source: str, text: str) -> tuple[list[Piece], list[Piece]] | None:
    """Returns a text and its source with differing words marked, or None if they are too long."""
    new, old = WORD.findall(text), WORD.findall(source)
    if len(new) * len(old) > COMPARABLE:
        return None
    before, after = ([word.strip().casefold() for word in words] for words in (old, new))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    for kind, *bounds in matcher.get_opcodes():
        start, end, begin, stop = bounds
        for side, words in zip(sides, (new[begin:stop], old[start:end]), strict=True):
            if words:
                side.append(("".join(words), kind != "equal"))
    return sides
