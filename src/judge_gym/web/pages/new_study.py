"""New study: a form for every axis, derived from `Design`, with an estimate of the cost."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, get_args

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.axes import PROTOCOLS, Design, Knob
from judge_gym.lab import Lab
from judge_gym.models.simulated import PRESETS
from judge_gym.records import TaskType
from judge_gym.studies import Study
from judge_gym.studies.file import MODEL_KNOBS, Caps
from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.rendering import render

router = APIRouter()
JUDGE = "judge.model"
"""The knob that the list of judges sets."""
KINDS = {"an integer": "number", "a number": "number", "true or false": "flag"}
"""How a value is written in a study file, by the type of its knob; others are text."""


class Group(NamedTuple):
    """A group of knobs."""

    path: str
    about: str
    knobs: tuple[Knob, ...]


@router.get("/new")
def new_study(
    request: Request, lab: OpenLab, origin: Annotated[Name | None, Query(alias="from")] = None
) -> Response:
    """Shows the form, or the file of the study `origin`; the script fills the form from the URL."""
    defaults = {name: field.default for name, field in Study.model_fields.items()}
    return render(
        request,
        "new_study.html.j2",
        file=lab.experiments.show_study(origin)["text"] if origin else "",
        groups=list(groups()),
        kind=lambda knob: KINDS.get(knob.type, "text"),
        models=models(lab),
        model_knobs=MODEL_KNOBS,
        pools=lab.evidence.list_pools(),
        types=get_args(TaskType),
        protocols=PROTOCOLS,
        caps=list(Caps.model_fields),
        defaults=defaults,
    )


def groups(model: type[BaseModel] = Design, path: str = "") -> Iterator[Group]:
    """Yields the groups of `Design` in order, each with its description and its own knobs."""
    known = Design.knobs()
    own = [known[f"{path}{name}"] for name in model.model_fields if f"{path}{name}" in known]
    free = tuple(knob for knob in own if knob.path != JUDGE)
    if free:
        yield Group(path.rstrip("."), str(model.__doc__).splitlines()[0], free)
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from groups(field.annotation, f"{path}{name}.")


def models(lab: Lab) -> dict[str, dict[str, Any]]:
    """Returns the models to choose from by provider, with the key that is not set, if any."""
    missing = {
        row["provider"]: row["key"] for row in lab.admin.providers() if not row["key is set"]
    }
    found: dict[str, dict[str, Any]] = {}
    for id in [*(f"sim:{name}" for name in PRESETS), *lab.admin.named_models()]:
        provider = id.partition(":")[0]
        provided = found.setdefault(provider, {"missing": missing.get(provider), "ids": []})
        provided["ids"].append(id)
    return found
