"""New study: a form in steps, with every axis of `Design`, and an estimate of the cost."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, NamedTuple, get_args
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from judge_gym.axes import CONTESTED, PROTOCOLS, Design, Knob
from judge_gym.errors import JudgeGymError
from judge_gym.lab import Lab
from judge_gym.models.simulated import ASSISTANTS, JUDGES
from judge_gym.records import TaskType
from judge_gym.records.responses import ModelInfo
from judge_gym.studies import Study
from judge_gym.studies.file import MODEL_KNOBS, Caps
from judge_gym.web.api.parameters import Name, OpenLab
from judge_gym.web.rendering import render, usd
from judge_gym.web.study_form import KINDS, STEPS, StudyForm, header_of

router = APIRouter()
JUDGE = "judge.model"
"""The knob that the list of judges sets."""
ROLES = {
    "": "not used",
    "text": "the text that is judged",
    "part": "a named part, such as the input",
    "response_a": "first response of a pair",
    "response_b": "second response of a pair",
    "person": "a person's labels",
    "truth": "known answers",
    "item": "names the item",
    "cluster": "what makes items dependent",
}
"""What a column may be taken for; the server proposes, the user corrects."""
NOTES = 20
PLANNED = 50
"""Experiments that an estimate lists."""


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
    form = StudyForm(())
    return render(
        request,
        "new_study.html.j2",
        file=lab.experiments.show_study(origin)["text"] if origin else "",
        groups=list(groups()),
        kind=lambda knob: KINDS.get(knob.type, "text"),
        pools=lab.evidence.list_pools(),
        types=get_args(TaskType),
        protocols=PROTOCOLS,
        presets=STUDY_PRESETS,
        caps=list(Caps.model_fields),
        defaults={name: field.default for name, field in Study.model_fields.items()},
        model_knobs=MODEL_KNOBS,
        **_parts(lab, form),
        **NO_PLAN,
    )


async def read_form(request: Request) -> StudyForm:
    """Reads the form as a browser sends it."""
    with suppress(ClientDisconnect):  # whoever types on asks anew
        body = (await request.body()).decode("utf-8", "replace")
        return StudyForm(parse_qsl(body, keep_blank_values=True))
    return StudyForm(())


@router.post("/new/plan")
def plan(
    request: Request, lab: OpenLab, form: Annotated[StudyForm, Depends(read_form)]
) -> Response:
    """Returns the parts of the page that follow from the form: what was read, file, estimate."""
    parts = _parts(lab, form)
    if form.by_hand or not parts["lacking"]:
        parts |= _estimate(lab, parts["file_text"], form)
    return render(request, "_new_plan.html.j2", **{**NO_PLAN, **parts})


NO_PLAN: Mapping[str, Any] = {"estimate": None, "refused": "", "refused_step": ""}


def _parts(lab: Lab, form: StudyForm) -> dict[str, Any]:
    provided = models(lab)
    taken = [row["study"] for row in lab.experiments.list_studies()]
    proposed = {
        "study": form.propose_name(taken),
        "assistant": form.propose_assistant(provided),
        "task.stages": form.propose_stages(),
    }
    followed = [name for name in proposed if form.followed(name)]
    swapped = [name for name in followed if form.get(name) != proposed[name]]
    if form.needs_assistant != form.has("assistant shown") and "assistant" in followed:
        swapped.append("assistant")
    for name in followed:
        form.propose(name, proposed[name])
    return {
        "form": form,
        "models": provided,
        "roles": ROLES,
        "steps": STEPS,
        "proposed": proposed,
        "swapped": swapped,
        "lacking": {} if form.by_hand else form.lacking(),
        "missing_key": "" if form.by_hand else form.missing_key(provided),
        "file_text": form.text() if form.by_hand or form.has("study") else "",
        "header": header_of(form.get("texts")),
    }


def _estimate(lab: Lab, text: str, form: StudyForm) -> dict[str, Any]:
    """Plans the study; where it is refused, returns why and in which step."""
    try:
        estimate = lab.runs.plan(study=text)
    except JudgeGymError as error:
        line = re.match(r"study:(\d+): ", error.message)
        if line is None:
            return {"refused": error.message}
        step = form.step_of(int(line[1]))
        message = error.message[line.end() :]
        return {"refused": message if step else f"line {line[1]}: {message}", "refused_step": step}
    every = estimate["stages"]["all"]
    notes = [
        *(note for note in estimate["warnings"] if note not in estimate["uncallable"]),
        *(f"{tag} is the same as {same}" for tag, same in estimate["duplicates"].items()),
        *(f"no swap for {tag}" for tag in estimate["skipped_swaps"]),
    ]
    return {
        "estimate": estimate,
        "all": every,
        "time": timedelta(seconds=every["seconds"]),
        "notes": notes[:NOTES],
        "planned": estimate["experiments"][:PLANNED],
    }


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
    """Returns the models to choose from by provider, with prices and the key that is not set.

    `ids` are offered as judges, `assistants` for the other roles alone. An endpoint of the user's
    stands there even if none of its models is named.
    """
    listed = lab.admin.models()
    rows = {row["provider"]: row for row in listed["providers"]}
    own = {name for name in rows if rows[name]["base url"]}
    providers: dict[str, dict[str, Any]] = {}
    for provider in ("sim", *rows):
        row = rows.get(provider, {})
        missing = None if row.get("key is set", True) else row["key"]
        providers[provider] = {"missing": missing, "ids": {}, "assistants": []}
    providers["sim"]["ids"] = {f"sim:{name}": "free" for name in JUDGES}
    providers["sim"]["assistants"] = [f"sim:{name}" for name in ASSISTANTS]
    offered = {*lab.pages.named_models()}
    for model in listed["models"]:
        if model["id"] in offered:
            providers[model["id"].partition(":")[0]]["ids"][model["id"]] = _price(model)
    return {name: entry for name, entry in providers.items() if entry["ids"] or name in own}


def _price(model: ModelInfo) -> str:
    """Says what a million tokens cost, in and out."""
    price_in, price_out = model["input_usd"], model["output_usd"]
    if price_in is None or price_out is None:
        return "price unknown"
    return f"{usd(price_in)} in, {usd(price_out)} out" if price_in or price_out else "free"
