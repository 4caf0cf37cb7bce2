"""The context in which a judge is asked whether experts would agree with it."""

from dataclasses import dataclass
from typing import Literal

from judge_gym.axes._knobs import OWN_PROMPT, Axes, knob


@dataclass(frozen=True, slots=True)
class ProbeStrategy:
    """Whether the probe continues the conversation of the verdict."""

    same_context: bool


class ProbeAxes(Axes):
    """The probe's context."""

    aliases = {
        "freshWindowProbe": {True: {"probe.context": "fresh"}, False: {"probe.context": "same"}}
    }

    context: Literal["fresh", "same"] = knob(
        "fresh",
        question="Is a judge more certain of a verdict when it sees its own reasoning?",
        cite="Kadavath et al. 2022; Stureborg et al. 2024",
        inactive=OWN_PROMPT,
    )

    def resolve(self) -> ProbeStrategy:
        """Builds the strategy of the probe stage."""
        return ProbeStrategy(same_context=self.context == "same")
