"""A new study: the axes as a form that is made of `Design`, and a plan of what is chosen."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, get_args

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.axes import Design, Knob
from judge_gym.lab import Lab
from judge_gym.models.simulated import PRESETS
from judge_gym.records import TaskType
from judge_gym.studies import Study
from judge_gym.studies.file import MODEL_KNOBS, Caps
from judge_gym.web.api.answers import Name, OpenLab
from judge_gym.web.rendering import shown

router = APIRouter()
JUDGE = "judge.model"
"""The knob that the list of judges sets."""
KINDS = {"an integer": "number", "a number": "number", "true or false": "flag"}
"""How a value is written in a study file, by the type of its knob; else as text."""


class Group(NamedTuple):
    """Knobs that stand together."""

    path: str
    about: str
    knobs: tuple[Knob, ...]


@router.get("/new")
def new_study(
    request: Request, lab: OpenLab, origin: Annotated[Name | None, Query(alias="from")] = None
) -> Response:
    """The form; filled by its script from the address, or with the text of a study that is there.

    Args:
        request: of whoever looks.
        lab: what is served.
        origin: a study to begin with.
    """
    defaults = {name: field.default for name, field in Study.model_fields.items()}
    return shown(
        request,
        "newstudy.html.j2",
        file=lab.find_study(origin)["file"] if origin else "",
        groups=list(groups()),
        kind=lambda knob: KINDS.get(knob.type, "text"),
        models=models(lab),
        model_knobs=MODEL_KNOBS,
        pools=lab.list_pools(),
        types=get_args(TaskType),
        caps=list(Caps.model_fields),
        defaults=defaults,
    )


def groups(model: type[BaseModel] = Design, path: str = "") -> Iterator[Group]:
    """The groups of `Design` in its order, each with what it is about and its own knobs."""
    known = Design.knobs()
    own = [known[f"{path}{name}"] for name in model.model_fields if f"{path}{name}" in known]
    free = tuple(knob for knob in own if knob.path != JUDGE)
    if free:
        yield Group(path.rstrip("."), str(model.__doc__).splitlines()[0], free)
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from groups(field.annotation, f"{path}{name}.")


def models(lab: Lab) -> dict[str, dict[str, Any]]:
    """The models that can be ticked, by provider, with the key that is not set, if any."""
    missing = {
        row["provider"]: row["key"] for row in lab.models.providers() if not row["key is set"]
    }
    found: dict[str, dict[str, Any]] = {}
    for id in [*(f"sim:{name}" for name in PRESETS), *lab.models.entries.named]:
        provider = id.partition(":")[0]
        held = found.setdefault(provider, {"missing": missing.get(provider), "ids": []})
        held["ids"].append(id)
    return found
