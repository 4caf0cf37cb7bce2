"""Labels of people: who labelled the items of each study, how far they agree, split and import."""

import csv
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.errors import DesignError, JudgeGymError
from judge_gym.lab import Lab
from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.pages.filters import Text
from judge_gym.web.pages.home import recent_studies
from judge_gym.web.pages.operators import Fields
from judge_gym.web.rendering import render

router = APIRouter()
COLUMNS = ("item", "rater", "stage")


@router.get("/labels")
def labels(request: Request, lab: OpenLab, study: Text = None) -> Response:
    """Shows a study's labels, by default those of the newest study."""
    studies = recent_studies(lab)
    name = study or next(iter(studies), None)
    if name is not None:
        lab.studies.check_study(name)
    page = {} if name is None else _page(lab, name)
    return render(request, "labels.html.j2", studies=studies, study=name, **page)


@router.post("/labels/{study:path}")
def import_labels(request: Request, lab: OpenLab, study: Name, fields: Fields) -> Response:
    """Imports pasted labels, and returns the part of the page that counts them."""
    counts, error = None, ""
    try:
        counts = lab.labels.add(
            _rows(fields.get("labels", "")),
            target=study,
            concept=fields.get("concept", "").strip(),
            replace="replace" in fields,
        )
    except JudgeGymError as refused:
        error = refused.message
    return render(
        request, "_labels.html.j2", study=study, counts=counts, error=error, **_page(lab, study)
    )


def _rows(text: str) -> list[dict[str, str]]:
    """Reads labels from a table with a header: commas, semicolons or tabs between its columns."""
    head = text.strip().partition("\n")[0]
    mark = max(",;\t", key=head.count)
    reader = csv.DictReader(text.strip().splitlines(), delimiter=mark)
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise DesignError(
            f"the first line must name the columns item, rater and stage; {missing[0]} is missing"
        )
    return [{name: row[name] or "" for name in COLUMNS} for row in reader]


def _page(lab: Lab, study: str) -> dict[str, Any]:
    return {"labels": lab.labels.status(study), "table": lab.results.stored_judges(study)}
