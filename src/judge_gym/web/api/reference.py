"""What the lab is: its version, who asks, its axes and models."""

from dataclasses import asdict
from importlib import metadata
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from judge_gym.axes import Design
from judge_gym.models import ModelCard
from judge_gym.web.api.answers import Name, OpenLab, shows
from judge_gym.web.middleware import Json
from judge_gym.web.security import Caller

public = APIRouter(tags=["reference"])
router = APIRouter(tags=["reference"])

KNOB = ("path", "levels", "open", "default", "question", "cite")


@public.get("/health", responses=shows({"status": "ok", "version": "0.1.0"}))
def health() -> Response:
    """Whether the server answers; needs no token."""
    return Json({"status": "ok", "version": metadata.version("judge-gym")})


@router.get("/session", responses=shows({"name": "local", "scope": "write", "csrf": None}))
def session(request: Request) -> Response:
    """Who asks, and what a browser must repeat in X-CSRF-Token when it writes."""
    caller: Caller = request.state.caller
    return Json(asdict(caller))


@router.get(
    "/axes",
    responses=shows(
        {
            "knobs": [{"path": "verdict.method", "levels": ["single", "subset"]}],
            "schema": {"title": "Design"},
        }
    ),
)
def axes() -> Response:
    """Every knob with its levels and its question, and the JSON Schema of a design."""
    knobs = [{name: getattr(knob, name) for name in KNOB} for knob in Design.knobs().values()]
    return Json({"knobs": knobs, "schema": Design.model_json_schema()})


@router.get(
    "/models",
    responses=shows(
        {
            "providers": [{"provider": "openai", "key": "OPENAI_API_KEY", "key is set": False}],
            "models": [{"id": "openai:gpt-4.1", "context": 1047576}],
        }
    ),
)
def models(
    lab: OpenLab,
    provider: Annotated[Name | None, Query(description="All its models with a price.")] = None,
) -> Response:
    """Providers with what they need, and the models that are named; or those of a provider."""
    cards = [_card(card) for card in lab.admin.model_cards(provider)]
    return Json({"providers": lab.admin.providers(), "models": cards})


@router.get(
    "/models/{id:path}", responses=shows({"id": "openai:gpt-4.1", "family": "gpt", "usd": 2.0})
)
def model(lab: OpenLab, id: Name) -> Response:
    """What is known of a model."""
    return Json(_card(lab.admin.model_card(id)))


def _card(card: ModelCard) -> dict[str, Any]:
    prices = card.tariff()
    fields = "id kind provider name family context dated version structured deadline".split()
    return {
        **{name: getattr(card, name) for name in fields},
        "endpoint": card.endpoint or None,
        "takes_temperature": card.takes_temperature,
        "takes_seed": card.takes_seed,
        "input_usd": prices.input if prices else None,
        "cached_usd": prices.cached if prices else None,
        "output_usd": prices.output if prices else None,
        "limits": asdict(card.limits),
    }
