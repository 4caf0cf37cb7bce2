"""Research protocols, which a study selects by name; without one every default is neutral."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from judge_gym.axes._version1 import V1_DEFAULTS

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
            "evidence.view": V1_DEFAULTS["evidence.view"],
            **{
                path: level
                for path, level in V1_DEFAULTS.items()
                if path.startswith("prompt.slots.")
            },
        },
    }
)
"""By protocol, the levels that replace defaults of knobs; the empty name stands for none."""
