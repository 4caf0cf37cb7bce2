"""Labels of people: who labelled the items of each study, how far they agree, split and import."""

import csv
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.analysis.judges.label_draws import after_more_labels
from judge_gym.errors import DesignError, JudgeGymError
from judge_gym.lab import Lab
from judge_gym.records.judge_table import JudgeTable
from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.pages.filters import Text
from judge_gym.web.pages.home import recent_studies
from judge_gym.web.pages.operators import Fields
from judge_gym.web.rendering import render

router = APIRouter()
COLUMNS = ("item", "rater", "stage")
MORE = 20
"""The number of further labels whose effect is predicted."""


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


@router.post("/label-splits")
def split(request: Request, lab: OpenLab, fields: Fields) -> Response:
    """Splits a study's items, and returns the part of the page that counts its parts."""
    shares = [_number(fields, name) for name in ("train", "dev", "test")]
    return _changed(
        request, lab, fields, lambda study: {"made": lab.labels.split(study, shares=shares)}
    )


@router.post("/label-queues")
def ask(request: Request, lab: OpenLab, fields: Fields) -> Response:
    """Draws items for raters, and returns the part of the page that lists the queues."""
    raters = [name.strip() for name in fields.get("raters", "").split(",") if name.strip()]

    def draw(study: str) -> dict[str, Any]:
        queue = lab.labels.ask(
            study,
            raters,
            items=int(_number(fields, "items")),
            by="disagreement" if "disputed" in fields else "random",
            overlap=_number(fields, "overlap") / 100 if len(raters) > 1 else 0.0,
        )
        return {"queue": queue}

    return _changed(request, lab, fields, draw)


@router.post("/label-links")
def link(request: Request, lab: OpenLab, fields: Fields) -> Response:
    """Makes the link of a rater, and returns the part of the page that shows it once."""

    def make(study: str) -> dict[str, Any]:
        rater = fields.get("rater", "")
        secret = lab.labelling.link(int(_number(fields, "queue")), rater)
        return {"rater": rater, "url": f"{request.base_url}label?token={secret}"}

    return _changed(request, lab, fields, make)


def _changed(
    request: Request,
    lab: Lab,
    fields: Mapping[str, str],
    change: Callable[[str], dict[str, Any]],
) -> Response:
    """Makes a change to a study's labels, and returns its part of the page, or why not."""
    study, error = fields.get("study", ""), ""
    values: dict[str, Any] = {}
    try:
        values = change(study)
    except JudgeGymError as refused:
        error = refused.message
    return render(
        request, "_labels.html.j2", study=study, refused=error, **values, **_page(lab, study)
    )


def _number(fields: Mapping[str, str], name: str) -> float:
    """Reads a number of a form."""
    text = fields.get(name, "").strip()
    try:
        return float(text)
    except ValueError:
        raise DesignError(f"{name} must be a number, not {text!r}") from None


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
    table = lab.results.stored_judges(study)
    return {
        "labels": lab.labels.status(study),
        "table": table,
        "bought": [] if table is None else [*_bought(table)],
    }


def _bought(table: JudgeTable) -> Iterator[dict[str, Any]]:
    """Predicts the intervals of the chosen setup's measures after more labels."""
    row = next((row for row in table["rows"] if row["setup"] == table["chosen"]), None)
    if row is None or table["kind"] != "agreement":
        return
    heads = {head["name"]: head for head in table["columns"]}
    for name in dict.fromkeys((table["columns"][0]["name"], "sensitivity", "specificity")):
        quantity = row["measures"].get(name)
        ends = None if quantity is None else after_more_labels(quantity, MORE)
        if quantity is not None and ends is not None:
            low, high = ends
            later = {**quantity, "low": low, "high": high}
            head = heads[name]
            yield {"title": head["title"], "unit": head["unit"], "now": quantity, "later": later}
    if table["rate"] is not None:
        now = table["rate"]["corrected"]
        ends = after_more_labels(now, MORE)
        if ends is not None:
            later = {**now, "low": ends[0], "high": ends[1]}
            quantity_name = table["rate"]["quantity"]
            yield {"title": quantity_name, "unit": "share", "now": now, "later": later}
