"""Research protocols, which a study selects by name. Neutral defaults hold without one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

ProtocolName = Literal["contested-concepts"]
CONTESTED: ProtocolName = "contested-concepts"
"""The blueprint's protocol: contested concepts of political science in news reporting.

Its tasks have a type and a country, a critic rates each rubric, and its report tests the
blueprint's hypotheses and checks the validity of the instrument."""

BLUEPRINT_KNOBS = ("verdict.method", "rubric.scale", "evidence.view")
"""The knobs that the blueprint's regressions name, also where they do not vary."""

PROTOCOLS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "": {},
        CONTESTED: {
            "evidence.view": "neutralized",
            "prompt.slots.neutralizer.material": "news article",
            "prompt.slots.rubricer.persona": "a political scientist",
            "prompt.slots.rubricer.material": "news reporting",
            "prompt.slots.critic.material": "news reporting",
            "prompt.slots.scorer.persona": "an expert political scientist",
            "prompt.slots.prober.persona": "an expert political scientist",
            "prompt.slots.prober.panel": "political science experts",
        },
    }
)
"""By protocol, the levels that replace defaults of knobs; the empty name stands for none."""
