"""New study: a form in steps, with every axis of `Design`, and an estimate of the cost."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, get_args

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from judge_gym.axes import CONTESTED, PROTOCOLS, Design, Knob
from judge_gym.lab import Lab
from judge_gym.models.simulated import ASSISTANTS, JUDGES
from judge_gym.recorded.pasted import read_pasted
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


class Preset(NamedTuple):
    """A usual aim of a study, and the fields of the form that it sets."""

    name: str
    title: str
    about: str
    sets: Mapping[str, Any]


STUDY_PRESETS = (
    Preset(
        "compare",
        "Compare models",
        "Which model judges best, and at what price? Choose two or more judges.",
        {"samples": 3, "probe": False},
    ),
    Preset(
        "position",
        "Test position bias",
        "Do judges prefer what stands first? Pairs are shown in both orders; on single texts, the "
        "order of the answers varies.",
        {"samples": 3, "probe": False, "vary:presentation.order": True, "sweep": "ablate"},
    ),
    Preset(
        "labels",
        "Validate against labels",
        "How often do judges agree with people? Paste a table with a column of labels per person.",
        {"samples": 3, "probe": False},
    ),
    Preset(
        "contested",
        "Contested concepts",
        "The research protocol: judges write rubrics, use each other's, and say whether experts "
        "would agree.",
        {"protocol": CONTESTED, "task.type": "ecc", "swap": "all", "samples": 5, "probe": True},
    ),
)


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
        presets=STUDY_PRESETS,
        studies=[row["study"] for row in lab.experiments.list_studies()],
        caps=list(Caps.model_fields),
        defaults=defaults,
    )


class PastedBody(BaseModel):
    """Texts that were pasted into the form, and what the user says about them."""

    texts: str
    table: bool | None = None
    roles: dict[str, str] | None = None
    accept: bool = False


@router.post("/new/texts")
def read_texts(body: PastedBody) -> dict[str, Any]:
    """Reads pasted texts as the command `init` reads a file."""
    pasted = read_pasted(body.texts, table=body.table, roles=body.roles, accept=body.accept)
    return {**pasted._asdict(), "columns": [column._asdict() for column in pasted.columns]}


def groups(model: type[BaseModel] = Design, path: str = "") -> Iterator[Group]:
    """Yields the groups of `Design` in order, each with its description and its own knobs."""
    all_knobs = Design.knobs()
    group_knobs = [
        all_knobs[f"{path}{name}"] for name in model.model_fields if f"{path}{name}" in all_knobs
    ]
    free = tuple(knob for knob in group_knobs if knob.path != JUDGE)
    if free:
        yield Group(path.rstrip("."), str(model.__doc__).splitlines()[0], free)
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from groups(field.annotation, f"{path}{name}.")


def models(lab: Lab) -> dict[str, dict[str, Any]]:
    """Returns the models to choose from by provider, with the key that is not set, if any.

    `ids` are offered as judges, `assistants` for the other roles alone.
    """
    missing = {
        row["provider"]: row["key"] for row in lab.pages.providers() if not row["key is set"]
    }
    providers: dict[str, dict[str, Any]] = {}
    for id in [*(f"sim:{name}" for name in JUDGES), *lab.pages.named_models()]:
        provider = id.partition(":")[0]
        unset = missing.get(provider)
        provided = providers.setdefault(provider, {"missing": unset, "ids": [], "assistants": []})
        provided["ids"].append(id)
    providers["sim"]["assistants"] = [f"sim:{name}" for name in ASSISTANTS]
    return providers
