"""The parameters of simulated judges, and the named presets."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judge_gym.errors import DesignError, unknown

T = TypeVar("T", bound=BaseModel)


class JudgeProfile(BaseModel):
    """The parameters of the latent-trait model of a simulated judge.

    A judge reads the strain of the evidence, shifts it by its bias (in proportion to how contested
    the concept is), and chooses among the displayed stages with weights
    `exp(-(perceived - stage)^2 / (2 noise^2) + position [shown first] + label [named first])`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    family: str = Field("sim", description="maker; judges of one family share their bias")
    bias: float = Field(
        0.0, ge=-1, le=1, description="shift of perceived strain, times contestedness"
    )
    noise: float = Field(0.12, ge=0.01, le=2, description="spread of the choice among stages")
    abstain: float = Field(
        0.25, ge=0, le=1, description="information below which it tends to abstain"
    )
    width: float = Field(
        0.4, ge=0, le=1, description="how readily a subset takes in further stages"
    )
    position: float = Field(
        0.0, ge=0, le=5, description="log-odds for the stage that is shown first"
    )
    label: float = Field(0.0, ge=0, le=5, description="log-odds for the label that is named first")
    tone: float = Field(0.03, ge=0, le=1, description="perceived strain per word of mere tone")
    overconfidence: float = Field(0.5, ge=-5, le=5, description="log-odds added to its probes")
    sloppy: float = Field(0.1, ge=0, le=1, description="share of odd but readable formats")
    garble: float = Field(
        0.0, ge=0, le=1, description="share of answers without a readable verdict"
    )
    refuse: float = Field(0.0, ge=0, le=1, description="share of refusals, times contestedness")
    truncate: float = Field(0.0, ge=0, le=1, description="share of answers that are cut off")
    fail: float = Field(0.0, ge=0, le=1, description="share of calls without a completion")


JUDGES: dict[str, JudgeProfile] = {
    "judge": JudgeProfile(),
    "balanced": JudgeProfile(family="sim-meadow", noise=0.13, overconfidence=0.3),
    "strict": JudgeProfile(
        family="sim-granite", bias=-0.7, noise=0.1, width=0.2, overconfidence=1.2
    ),
    "alarmist": JudgeProfile(
        family="sim-ember", bias=0.8, noise=0.12, tone=0.06, overconfidence=1.5
    ),
    "cautious": JudgeProfile(
        family="sim-harbor", bias=0.1, noise=0.15, abstain=0.6, width=0.75, overconfidence=-0.4
    ),
    "hasty": JudgeProfile(
        family="sim-rapids",
        noise=0.25,
        position=1.0,
        label=0.6,
        abstain=0.0,
        overconfidence=2.0,
        sloppy=0.3,
    ),
    "sloppy": JudgeProfile(
        family="sim-thicket", noise=0.18, sloppy=0.8, garble=0.06, truncate=0.03, refuse=0.08
    ),
}
ASSISTANTS: dict[str, JudgeProfile] = {
    "assistant": JudgeProfile(family="sim-office"),
    "editor": JudgeProfile(family="sim-desk"),
    "critic": JudgeProfile(family="sim-bench"),
}
"""Presets that edit and criticise; they are not offered as judges."""
PRESETS = {**JUDGES, **ASSISTANTS}


@lru_cache(maxsize=1024)
def judge_profile(name: str) -> JudgeProfile:
    """Returns the profile of `preset` or `preset?parameter=value&...`.

    >>> judge_profile("strict?noise=0.3").noise
    0.3
    """
    return read_preset(name, PRESETS, JudgeProfile, "judge")


def read_preset(name: str, presets: Mapping[str, T], kind: type[T], what: str) -> T:
    """Returns a preset with the parameters of `preset?parameter=value&...` replaced."""
    preset, _, query = name.partition("?")
    if preset not in presets:
        raise DesignError(
            unknown(f"simulated {what}", f"sim:{name}", [f"sim:{p}" for p in presets]),
            choices=[f"sim:{p}" for p in presets],
        )
    pairs = parse_qsl(query, keep_blank_values=True)
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise DesignError(
            f"sim:{name} gives a parameter twice: {', '.join(key for key, _ in pairs)}"
        )
    for parameter in parameters:
        if parameter not in kind.model_fields:
            raise DesignError(
                unknown("parameter", parameter, kind.model_fields, f"sim:{name}"),
                choices=kind.model_fields,
            )
    if query and not re.fullmatch(r"[^=&]+=[^=&]+(&[^=&]+=[^=&]+)*", query):
        raise DesignError(f"sim:{name} is not sim:NAME?parameter=value&parameter=value")
    try:
        return kind.model_validate({**presets[preset].model_dump(), **parameters})
    except ValidationError as invalid:
        error = invalid.errors()[0]
        if not error["loc"]:  # of several parameters together
            raise DesignError(f"sim:{name}: {error['ctx']['error']}") from invalid
        raise DesignError(
            f"sim:{name}: {error['loc'][0]} cannot be {error['input']!r}: {error['msg'].lower()}"
        ) from invalid
