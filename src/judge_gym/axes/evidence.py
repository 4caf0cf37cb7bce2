"""The view of an item that judges read: its own text, or a clinical summary."""

from dataclasses import dataclass
from typing import Literal

from judge_gym.axes._knobs import Axes, knob


@dataclass(frozen=True, slots=True)
class EvidenceStrategy:
    """Which text is shown, and which model writes it."""

    editor: str | None
    """The model that neutralizes; None if the raw text is shown."""


class EvidenceAxes(Axes):
    """The evidence view."""

    aliases = {
        "neutralizeEvidence": {
            True: {"evidence.view": "neutralized"},
            False: {"evidence.view": "raw"},
        }
    }

    view: Literal["neutralized", "raw"] = knob(
        "neutralized",
        question="Does the tone of a text change the verdict, or only its content?",
        cite="Wu & Aji 2023; Stureborg et al. 2024",
    )
    editor: str = knob(
        "openai:gpt-4.1-mini",
        question="Does it matter which model writes the neutral summary?",
        examples=("sim:editor",),
        min_length=1,
    )

    def resolve(self) -> EvidenceStrategy:
        """Returns the strategy of the evidence stage."""
        return EvidenceStrategy(editor=self.editor if self.view == "neutralized" else None)
