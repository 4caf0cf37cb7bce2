"""Pages for whoever runs the lab: models, schedule, tokens, queries, and the API's reference."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, cast
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.errors import JudgeGymError
from judge_gym.lab import Lab
from judge_gym.lab.nouns import describe, request_model
from judge_gym.store import SCOPES, Scope
from judge_gym.verbs import VERBS, Verb
from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.pages.filters import Text
from judge_gym.web.rendering import render

router = APIRouter()
SOON = timedelta(days=90)
"""Before a model's end, the time in which a page warns of it."""
LONGEST_QUERY = 10_000
ROWS = 200
"""Rows of a query that a page shows."""


async def form_fields(request: Request) -> Mapping[str, str]:
    """Reads the fields of a form, which htmx sends as a browser does."""
    return dict(parse_qsl((await request.body()).decode("utf-8", "replace")))


Fields = Annotated[Mapping[str, str], Depends(form_fields)]


# --- models ---------------------------------------------------------------------------------------


@router.get("/models")
def models(request: Request, lab: OpenLab, provider: Text = None) -> Response:
    """Shows providers, which keys are set, and models with their prices and their ends."""
    listed = lab.admin.models(provider=provider)
    today = datetime.now(UTC).date()
    return render(
        request,
        "models.html.j2",
        provider=provider,
        providers=listed["providers"],
        models=[{**model, "end": _end(model["retires"], today)} for model in listed["models"]],
        simulated=[model for model in listed["simulated"] if model["kind"] == "judge"],
    )


def _end(retires: date | None, today: date) -> str:
    """Says how near a model's end is: past, soon, later, or empty."""
    if retires is None:
        return ""
    return "past" if retires <= today else "soon" if retires - today <= SOON else "later"


@router.post("/models/check")
def check_model(request: Request, lab: OpenLab, fields: Fields) -> Response:
    """Makes one small call to a model, and returns a part of the page: what came of it."""
    try:
        check = lab.admin.check_model(fields.get("id", "").strip())
    except JudgeGymError as error:
        return render(request, "_model_check.html.j2", check=None, error=error.message)
    return render(request, "_model_check.html.j2", check=check, error="")


# --- schedule -------------------------------------------------------------------------------------


@router.get("/schedule")
def schedule(request: Request, lab: OpenLab) -> Response:
    """Shows which models are due for another run of each suite."""
    suites = dict.fromkeys(report.run.suite for report in lab.suites.reports())
    rows = {suite: lab.suites.due(suite) for suite in (suites or ["python"])}
    return render(request, "schedule.html.j2", suites=rows)


# --- tokens ---------------------------------------------------------------------------------------


@router.get("/tokens")
def tokens(request: Request, lab: OpenLab) -> Response:
    """Shows the tokens for use of the lab over HTTP; secrets are not stored."""
    return render(request, "tokens.html.j2", **_tokens(lab))


@router.post("/tokens")
def create_token(request: Request, lab: OpenLab, fields: Fields) -> Response:
    """Creates a token, and returns the part of the page that shows it once."""
    name, scope = fields.get("name", "").strip(), fields.get("scope", "read")
    try:
        secret = lab.tokens.create(name, cast("Scope", scope))[1]
    except JudgeGymError as error:
        return render(request, "_tokens.html.j2", **_tokens(lab), error=error.message)
    return render(request, "_tokens.html.j2", **_tokens(lab), created=name, secret=secret)


@router.post("/tokens/revoked")
def revoke_token(request: Request, lab: OpenLab, fields: Fields) -> Response:
    """Makes a token invalid, and returns the part of the page that lists them."""
    lab.tokens.revoke(fields.get("name", ""))
    return render(request, "_tokens.html.j2", **_tokens(lab))


def _tokens(lab: Lab) -> dict[str, Any]:
    return {"tokens": lab.tokens.list()[::-1], "scopes": SCOPES}


# --- queries --------------------------------------------------------------------------------------


@router.get("/query")
def query(
    request: Request,
    lab: OpenLab,
    sql: Annotated[str, Query(max_length=LONGEST_QUERY)] = "",
) -> Response:
    """Shows the result of one SELECT, and the tables that it may read."""
    result, error = None, ""
    if sql.strip():
        try:
            result = lab.admin.query(sql, limit=ROWS)
        except JudgeGymError as refused:
            error = refused.message
    tables = lab.admin.tables()
    return render(request, "query.html.j2", sql=sql, result=result, error=error, tables=tables)


# --- the API --------------------------------------------------------------------------------------


@router.get("/reference")
def reference(request: Request, noun: Name | None = None) -> Response:
    """Shows every verb with its address, its arguments and its effect."""
    nouns: dict[str, list[dict[str, Any]]] = {}
    for verb in VERBS:
        nouns.setdefault(verb.noun, []).append(_described(verb))
    return render(request, "reference.html.j2", nouns=nouns)


def _described(verb: Verb) -> dict[str, Any]:
    model: type[BaseModel] = request_model(verb)
    schema = model.model_json_schema()
    required = schema.get("required", ())
    return {
        "verb": verb,
        "about": describe(verb),
        "arguments": [
            {
                "name": name,
                "place": verb.place(name),
                "type": _type(field),
                "required": name in required,
                "default": field.get("default"),
                "about": field.get("description", ""),
            }
            for name, field in schema.get("properties", {}).items()
        ],
    }


def _type(field: Mapping[str, Any]) -> str:
    """Writes the type of an argument as its schema has it."""
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    if "const" in field:
        return str(field["const"])
    if "anyOf" in field:
        return " | ".join(_type(each) for each in field["anyOf"] if each.get("type") != "null")
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    return str(field.get("type", "any"))
