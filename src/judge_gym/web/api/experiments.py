"""What was judged and how: experiments, rubrics, samples, probes, calls, spend, reports."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field
from starlette.responses import Response

from judge_gym.errors import DesignError
from judge_gym.lab import Lab
from judge_gym.records import TaskType
from judge_gym.store import USAGE_BY
from judge_gym.web import tables, uploads
from judge_gym.web.api.answers import (
    LARGEST,
    PILOT,
    PILOT_TAG,
    Body,
    Cursor,
    Limit,
    Name,
    OpenLab,
    Wanted,
    number,
    page,
    shows,
    shows_rows,
    table,
)
from judge_gym.web.middleware import Json

if TYPE_CHECKING:
    import pandas as pd

router = APIRouter(tags=["experiments"])
Tag = Annotated[Name, Query(description="An experiment's tag.")]
Target = Annotated[Name, Query(description="A study's name or an experiment's tag.")]
VerdictStatus = Literal[
    "scored", "abstained", "refused", "truncated", "parse_failed", "provider_error"
]
PROBE = ("sample", "evidence", "replicate", "is_swap", "stages", "probe", "probe_status")
EXPERIMENT = {"tag": PILOT_TAG, "task_type": "ecc", "concept": "fascism", "judge": "sim:balanced"}
FEW = 20
"""Tags of a study that are named where one of them is wanted."""
SAMPLE = {"sample": 7, "evidence": 3, "replicate": 1, "status": "scored", "stages": "2 3"}


class NewExperiment(Body):
    """One point of the design space."""

    experiment_tag: Name
    window_id: Annotated[int, Field(ge=1, le=LARGEST)]
    model_id: Name
    task_type: TaskType
    concept: Name
    config: dict[str, Any] = {}
    ground_truth: dict[str, Any] | None = None
    seed: Annotated[int, Field(ge=0, le=LARGEST)] = 0
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "experiment_tag": "pilot",
                    "window_id": 1,
                    "model_id": "sim:balanced",
                    "task_type": "ecc",
                    "concept": "fascism",
                    "config": {"rubric.scale": 4, "evidence.view": "raw"},
                }
            ]
        }
    )


class GivenRubric(Body):
    """A benchmark's rubric."""

    experiment_tag: Name
    rubric: dict[str, Any]
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "experiment_tag": "severity",
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


@router.get("/experiments", responses=shows_rows({**EXPERIMENT, "status": "complete", "runs": []}))
def list_experiments(
    lab: OpenLab,
    study: Name | None = None,
    task_type: TaskType | None = None,
    format: Wanted = "json",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Experiments with the status of their newest run."""
    if format != "json":
        rows = lab.experiments.list(study=study, task_type=task_type)
        return tables.of_rows(rows, format, "experiments")
    found = lab.experiments.page(study=study, task_type=task_type, after=cursor, limit=limit)
    return page(found.rows, found.next)


@router.post("/experiments", status_code=201, responses=shows({"digest": "9b1c..."}, status=201))
def create_experiment(lab: OpenLab, body: NewExperiment) -> Response:
    """Make an experiment on the evidence that its window holds now."""
    return Json({"digest": lab.experiments.create(**body.model_dump())}, 201)


@router.get(
    "/experiments/{tag:path}", responses=shows({**EXPERIMENT, "status": "complete", "runs": []})
)
def get_experiment_summary(lab: OpenLab, tag: Name) -> Response:
    """What an experiment is, how far its runs are, and why targets failed."""
    return Json(lab.experiments.show(tag))


@router.delete("/experiments/{tag:path}", responses=shows({"runs": 1, "samples": 60}))
def cleanup(lab: OpenLab, tag: Name, ledger: bool = False, force: bool = False) -> Response:
    """Forget an experiment's runs; with `ledger` also the answers that only it rests on."""
    return Json(lab.experiments.cleanup(tag, ledger=ledger, force=force))


@router.get("/studies", responses=shows_rows({"study": PILOT, "experiments": 4, "file": True}))
def list_studies(
    lab: OpenLab, format: Wanted = "json", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """Studies with their number of experiments, and whether their file is kept."""
    rows = lab.experiments.list_studies()
    return table(rows, format, "studies", key="study", cursor=cursor, limit=limit)


@router.get(
    "/studies/{name:path}", responses=shows({"study": PILOT, "text": "study: ...", "budget": {}})
)
def show_study(lab: OpenLab, name: Name) -> Response:
    """A study file as it was last run, and the budget as it is now."""
    return Json(lab.experiments.show_study(name))


@router.get("/rubrics", responses=shows_rows({"id": 2, "author": "sim:balanced", "scale": 4}))
def list_experiment_rubrics(
    lab: OpenLab, target: Tag, format: Wanted = "json", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """Rubrics of an experiment with the critic's scores."""
    _refuse_study(lab, target)
    rows = lab.experiments.list_rubrics(target)
    return table(rows, format, "rubrics", key="id", cursor=cursor, limit=limit)


@router.post("/rubrics", status_code=201, responses=shows({"digest": "4c77..."}, status=201))
def load_benchmark_rubric(lab: OpenLab, body: GivenRubric) -> Response:
    """Give a benchmark its rubric, and its known answers their stages."""
    name = "rubric.json"
    digest = uploads.from_files(
        {name: json.dumps(body.rubric)},
        lambda folder: lab.experiments.load_rubric(body.experiment_tag, folder / name),
    )
    return Json({"digest": digest}, 201)


@router.get("/samples", responses=shows_rows(SAMPLE))
def list_experiment_samples(
    lab: OpenLab,
    target: Annotated[
        list[Name] | None,
        Query(max_length=1000, description="A tag; for files any tags and studies, or none."),
    ] = None,
    status: VerdictStatus | None = None,
    evidence: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
    format: Wanted = "json",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Samples with decoded stages: a page of one experiment's, or a file with a column a knob."""
    if format != "json":
        if status is not None or evidence is not None:
            raise DesignError("status and evidence choose rows of a page; a file holds all of them")
        return tables.sent(
            lab.experiments.sample_parts(*map(uploads.named, target or [])), format, "samples"
        )
    if target is None or len(target) != 1:
        raise DesignError("a page is of one experiment: target=TAG; a file may hold several")
    _refuse_study(lab, target[0])
    found = lab.experiments.page_samples(
        target[0], status=status, evidence=evidence, after=number(cursor), limit=limit
    )
    return page(found.rows, found.next)


@router.get("/probes", responses=shows_rows({"sample": 7, "stages": "2 3", "probe": 0.8}))
def list_experiment_probes(
    lab: OpenLab, target: Tag, format: Wanted = "json", cursor: Cursor = None, limit: Limit = 100
) -> Response:
    """Probabilities of expert agreement; a page may hold less than its limit."""
    _refuse_study(lab, target)
    lab.experiments.show(target)
    if format != "json":
        return tables.sent(_probes(lab.experiments.sample_parts(target)), format, "probes")
    found = lab.experiments.page_samples(target, after=number(cursor), limit=limit)
    rows = [{name: row[name] for name in PROBE} for row in found.rows if row["probe_status"]]
    return page(rows, found.next)


def _refuse_study(lab: Lab, target: str) -> None:
    """Say of a study's name that a page is of one experiment; it is no tag that is missing."""
    few = lab.experiments.page_tags(study=target, limit=FEW)
    if few.rows:
        tags = [row["tag"] for row in few.rows]
        raise DesignError(
            f"{target!r} is a study, and a page is of one of its experiments: target=TAG, such as "
            f"{tags[0]!r}; format=csv or format=parquet brings all of them in a file",
            choices=tags,
        )


def _probes(parts: "Iterator[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
    for part in parts:
        yield part.loc[part["probe_status"].notna(), list(PROBE)]


@router.get(
    "/calls/{id}",
    responses=shows(
        {"call": 7, "messages": [{"role": "user", "content": "..."}], "attempts": [{"id": 9}]}
    ),
)
def show_call(lab: OpenLab, id: Annotated[int, Path(ge=1, le=LARGEST)]) -> Response:
    """What was asked in a call, and every attempt at an answer."""
    messages, attempts = lab.admin.transcript(id)
    asked = [{"role": message.role, "content": message.content} for message in messages]
    return Json({"call": id, "messages": asked, "attempts": attempts})


@router.get("/usage", responses=shows_rows({"study": PILOT, "calls": 60, "usd": 0.12}))
def usage(
    lab: OpenLab,
    target: Annotated[Name | None, Query(description="A study's name or a tag.")] = None,
    by: Annotated[
        list[Literal["study", "tag", "stage", "model", "day"]] | None, Query(max_length=5)
    ] = None,
    format: Wanted = "json",
) -> Response:
    """What was paid, in sums; imported calls apart."""
    rows = lab.reports.usage(
        uploads.named(target) if target else None, by=list(dict.fromkeys(by or USAGE_BY))
    )
    return page(rows) if format == "json" else tables.of_rows(rows, format, "usage")


@router.get(
    "/report",
    responses=shows(
        {"title": PILOT, "facts": {}, "warnings": [], "tables": []}, "text/html", "text/markdown"
    ),
)
def report(
    lab: OpenLab, target: Target, format: Literal["json", "html", "markdown"] = "json"
) -> Response:
    """The report on a study or an experiment: its tables, its text, or the page to download."""
    made = lab.reports.build(uploads.named(target))
    if format == "html":
        attached = {"Content-Disposition": 'attachment; filename="report.html"'}
        return Response(made.html(), media_type="text/html", headers=attached)
    if format == "markdown":
        return Response(made.markdown(), media_type="text/markdown")
    shown = ("title", "banner", "facts", "warnings")
    told = [
        {"title": one.title, "note": one.note, "rows": one.frame.to_dict("records")}
        for one in made.tables
    ]
    return Json({**{name: getattr(made, name) for name in shown}, "tables": told})
