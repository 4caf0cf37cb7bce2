"""What is judged: windows of evidence, frozen pools, people's labels."""

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field, StringConstraints, create_model, model_validator
from starlette.responses import Response

from judge_gym.records import Pool, search_origins
from judge_gym.studies import PoolSpec, WindowSpec
from judge_gym.web import uploads
from judge_gym.web.api.answers import (
    LARGEST,
    Body,
    Cursor,
    Limit,
    Name,
    OpenLab,
    Wanted,
    shows,
    shows_rows,
    table,
)
from judge_gym.web.middleware import Json

router = APIRouter(tags=["evidence"])
Id = Annotated[int, Path(ge=1, le=LARGEST)]
WINDOW = {"window": 1, "country": "Valdoria", "start": "2026-01-01", "end": "2026-01-31"}
ITEM = {"id": 3, "title": "A warning", "url": "", "words": 212, "truth": None, "dropped": False}
POOL = {"name": "january", "items": 12, "hash": "1f0c...", "window_id": 1}


class NewWindow(Body):
    """A window to be filled."""

    start_date: date
    end_date: date
    country: Name
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"start_date": "2026-01-01", "end_date": "2026-01-31", "country": "Valdoria"}
            ]
        }
    )


class Item(Body):
    """A text, or two responses to compare."""

    title: Name
    text: Annotated[str, StringConstraints(min_length=1)]
    url: str = ""
    date: Annotated[str, Field(description="YYYY-MM-DD")] = ""
    source: str = ""
    truth: int | str | None = None
    responses: list[str] | None = None
    metadata: dict[str, str] | None = None


class Items(Body):
    """Texts for a window."""

    items: Annotated[list[Item], Field(min_length=1, max_length=10_000)]
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"items": [{"title": "A warning", "text": "The regulator warned ..."}]}]
        }
    )


class BenchmarkItems(Body):
    """A benchmark's items with their known answers, or JudgeBench's pairs as published."""

    concept: Name = "the better response"
    items: Annotated[list[Item], Field(max_length=10_000)] = []
    rubric: dict[str, Any] = {}
    judgebench: Annotated[str | None, Field(description="The text of the published file.")] = None
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "concept": "severity",
                    "items": [{"title": "A typo", "text": "The comment ...", "truth": "minor"}],
                    "rubric": {
                        "kind": "ordinal",
                        "stages": [
                            {"label": "minor", "criteria": ["Style alone"]},
                            {"label": "major", "criteria": ["It breaks"]},
                        ],
                    },
                }
            ]
        }
    )


class _Search(NewWindow):
    """Where to look for texts; addresses of the server's own network are refused."""

    query: Annotated[
        str, Field(max_length=500, description="What articles of feeds must hold.")
    ] = ""
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "country": "Valdoria",
                    "start_date": "2026-01-01",
                    "end_date": "2026-01-31",
                    "gdelt": "press freedom",
                }
            ]
        }
    )

    @model_validator(mode="after")
    def _one(self) -> "_Search":
        if len(self.origins()) != 1:
            *names, last = search_origins()
            raise ValueError(f"give one of {', '.join(names)} and {last}")
        if self.start_date > self.end_date:
            raise ValueError("a window ends after it starts")
        return self

    def origins(self) -> dict[str, Any]:
        """Returns the searches that are asked for."""
        given = {name: getattr(self, name) for name in search_origins()}
        return {name: value for name, value in given.items() if value is not None}


_SEARCH_KEYS: dict[str, Any] = {
    "query": (Annotated[Name | None, Field(description="The query.")], None),
    "addresses": (Annotated[list[Name], Field(max_length=100)] | None, None),
}
if TYPE_CHECKING:
    Search = _Search
else:  # with a key for every search that there is
    Search = create_model(
        "Search",
        __base__=_Search,
        __doc__=_Search.__doc__,
        **{name: _SEARCH_KEYS[origin.takes] for name, origin in search_origins().items()},
    )


class Dropped(Body):
    """Items that are to be left out, or taken back."""

    ids: Annotated[
        list[Annotated[int, Field(ge=1, le=LARGEST)]], Field(min_length=1, max_length=10_000)
    ]
    undo: bool = False
    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [3], "undo": False}]})


class NewPool(Body):
    """A pool to be frozen."""

    name: Name
    window_id: Annotated[int, Field(ge=1, le=LARGEST)] | None = None
    experiment_tag: Annotated[Name | None, Field(description="Freeze what it judges.")] = None
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "january", "window_id": 1}]})


class Label(Body):
    """A person's stage of an item."""

    item: Name
    rater: Name
    stage: Name


class Labels(Body):
    """Labels to import, all or none."""

    labels: Annotated[list[Label], Field(min_length=1, max_length=100_000)]
    target: Name | None = None
    concept: str = ""
    replace: bool = False
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"labels": [{"item": "3", "rater": "ada", "stage": "2"}]}]}
    )


@router.get("/windows", responses=shows_rows({**WINDOW, "items": 12, "dropped": 0}))
def list_windows(
    lab: OpenLab, format: Wanted = "json", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """Windows with what they hold and how they were filled."""
    rows = lab.evidence.list_windows()
    return table(rows, format, "windows", key="window", cursor=cursor, limit=limit)


@router.post("/windows", status_code=201, responses=shows({"window_id": 1}, status=201))
def create_window(lab: OpenLab, body: NewWindow) -> Response:
    """Make a window, or find the one that is there."""
    made = lab.evidence.create_window(
        body.start_date.isoformat(), body.end_date.isoformat(), body.country
    )
    return Json({"window_id": made}, 201)


@router.get("/windows/{window_id}/evidence", responses=shows_rows(ITEM))
def list_evidence(
    lab: OpenLab,
    window_id: Id,
    format: Wanted = "json",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """The items of a window."""
    rows = lab.evidence.list(window_id)
    return table(rows, format, "evidence", key="id", cursor=cursor, limit=limit)


@router.post(
    "/windows/{window_id}/evidence", status_code=201, responses=shows({"held": 12}, status=201)
)
def load_evidence(lab: OpenLab, window_id: Id, body: Items) -> Response:
    """Put texts into a window; how many it then holds. What it holds already is not added."""
    held = uploads.from_items(
        _given(body.items), lambda path: lab.evidence.load_files(window_id, str(path))
    )
    return Json({"held": held}, 201)


@router.post(
    "/windows/{window_id}/benchmark", status_code=201, responses=shows({"held": 12}, status=201)
)
def load_benchmark_evidence(lab: OpenLab, window_id: Id, body: BenchmarkItems) -> Response:
    """Put a benchmark's items into a window; how many it then holds."""
    if body.judgebench is not None:
        name = "pairs.jsonl"
        held = uploads.from_files(
            {name: body.judgebench},
            lambda folder: lab.evidence.load_benchmark(window_id, folder / name),
        )
    else:
        held = uploads.from_benchmark(
            body.concept,
            _given(body.items),
            body.rubric,
            lambda folder: lab.evidence.load_benchmark(window_id, folder),
        )
    return Json({"held": held}, 201)


@router.post(
    "/windows/search",
    responses=shows(
        {"window_id": 1, "added": 9, "held": 12, "left_out": {"no text": 3}, "notes": []}
    ),
)
def collect(lab: OpenLab, body: Search) -> Response:
    """Search for texts of a window and keep what is new, also what was found before a fault."""
    where: dict[str, Any] = {"query": body.query, "limit": body.limit, **body.origins()}
    window = WindowSpec(country=body.country, start=body.start_date, end=body.end_date)
    made = lab.evidence.collect(PoolSpec(**where, window=window))
    made.raise_error()
    told = {"window_id": made.window_id, "added": made.added, "held": made.held}
    return Json({**told, "left_out": dict(made.found.dropped), "notes": list(made.found.notes)})


@router.post("/windows/{window_id}/dropped", responses=shows({"changed": 1}))
def drop_evidence(lab: OpenLab, window_id: Id, body: Dropped) -> Response:
    """Take items out of a window, or put them back; frozen pools keep them."""
    changed = lab.evidence.drop(body.ids, window_id=window_id, undo=body.undo)
    return Json({"changed": changed})


@router.get("/evidence/{id}", responses=shows({**ITEM, "text": "The regulator ...", "views": []}))
def show_evidence(lab: OpenLab, id: Id) -> Response:
    """An item with its text and all its views."""
    return Json(lab.evidence.show(id))


@router.get("/pools", responses=shows_rows(POOL))
def list_pools(
    lab: OpenLab, format: Wanted = "json", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """The frozen pools."""
    rows = lab.evidence.list_pools()
    return table(rows, format, "pools", key="name", cursor=cursor, limit=limit)


@router.post(
    "/pools", status_code=201, responses=shows({"name": "january", "items": 12}, status=201)
)
def freeze_pool(lab: OpenLab, body: NewPool) -> Response:
    """Freeze what a window holds now or an experiment judges, under a name that stays."""
    frozen = lab.evidence.freeze_pool(
        body.name, window_id=body.window_id, experiment_tag=body.experiment_tag
    )
    return Json(_pool(body.name, frozen), 201)


@router.get(
    "/pools/difference",
    responses=shows({"same": False, "shared": 11, "added": [ITEM], "removed": []}),
)
def diff_pools(lab: OpenLab, before: Name, after: Name) -> Response:
    """What one frozen pool has and the other has not."""
    return Json(lab.evidence.diff_pools(before, after))


@router.get("/pools/items", responses=shows_rows(ITEM))
def list_pool(
    lab: OpenLab, name: Name, format: Wanted = "json", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """The items of a frozen pool, in its order."""
    return table(
        lab.evidence.list_pool_items(name), format, "pool", key="id", cursor=cursor, limit=limit
    )


@router.get(
    "/labels", responses=shows_rows({"label": 1, "evidence": 3, "rater": "ada", "stage": "2"})
)
def list_labels(
    lab: OpenLab, format: Wanted = "json", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """People's stages, in the order in which they were given."""
    rows = [{"label": number, **row} for number, row in enumerate(lab.labels.list(), 1)]
    return table(rows, format, "labels", key="label", cursor=cursor, limit=limit)


@router.post("/labels", status_code=201, responses=shows({"added": 1, "same": 0}, status=201))
def import_labels(lab: OpenLab, body: Labels) -> Response:
    """Import people's stages, all or none."""
    target = uploads.named(body.target) if body.target else None
    counts = uploads.from_rows(
        [label.model_dump() for label in body.labels],
        lambda path: lab.labels.import_file(
            path, target=target, concept=body.concept, replace=body.replace
        ),
    )
    return Json(counts, 201)


def _given(items: list[Item]) -> list[dict[str, Any]]:
    return [item.model_dump(exclude_defaults=True) for item in items]


def _pool(name: str, pool: Pool) -> dict[str, Any]:
    return {"name": name, "items": len(pool.items), "hash": pool.hash}
