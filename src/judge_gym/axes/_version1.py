"""The frozen defaults of the first version's knobs, on which digests and stored designs depend."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

V1_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "judge.temperature": None,
        "judge.max_tokens": 2048,
        "evidence.view": "neutralized",
        "evidence.editor": "openai:gpt-4.1-mini",
        "rubric.scale": 4,
        "rubric.author": "own",
        "rubric.draws": 1,
        "rubric.critic": "openai:gpt-4.1-mini",
        "presentation.labels": "shuffled",
        "presentation.order": "shuffled",
        "presentation.first": "rubric",
        "presentation.pair_order": "both",
        "verdict.method": "single",
        "verdict.output": "suffix",
        "verdict.abstain": True,
        "probe.context": "fresh",
        "prompt.slots.neutralizer.persona": "a clinical editor",
        "prompt.slots.neutralizer.material": "news article",
        "prompt.slots.neutralizer.language": "",
        "prompt.slots.neutralizer.framing": "",
        "prompt.slots.rubricer.persona": "a political scientist",
        "prompt.slots.rubricer.material": "news reporting",
        "prompt.slots.rubricer.language": "",
        "prompt.slots.rubricer.framing": "",
        "prompt.slots.critic.persona": "an auditor of measurement quality",
        "prompt.slots.critic.material": "news reporting",
        "prompt.slots.critic.language": "",
        "prompt.slots.critic.framing": "",
        "prompt.slots.scorer.persona": "an expert political scientist",
        "prompt.slots.scorer.language": "",
        "prompt.slots.scorer.framing": "",
        "prompt.slots.prober.persona": "an expert political scientist",
        "prompt.slots.prober.panel": "political science experts",
        "prompt.slots.prober.language": "",
        "prompt.slots.prober.framing": "",
    }
)
"""Never edited, even if a default changes. A knob that is added later states its own value for
stored designs, as `knob(..., before=LEVEL)`."""
