"""The view of an item that judges read: its own text, or a clinical summary."""

from dataclasses import dataclass
from typing import Literal

from judge_gym.axes._knobs import TASK, Axes, Conditions, knob
from judge_gym.errors import DesignError

UNEDITED: Conditions = {"evidence.view": ("raw",), TASK: ("pairs",)}
"""When no editor is asked: a summary of two responses would be a third response."""


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

    view: Literal["raw", "neutralized"] = knob(
        "raw",
        question="Does the tone of a text change the verdict, or only its content?",
        cite="Wu & Aji 2023; Stureborg et al. 2024",
        inactive={TASK: ("pairs",)},
    )
    editor: str | None = knob(
        None,
        question="Does it matter which model writes the neutral summary? "
        "Unset is the study's assistant.",
        examples=("sim:editor",),
        inactive=UNEDITED,
        min_length=1,
    )

    def resolve(self) -> EvidenceStrategy:
        """Returns the strategy of the evidence stage."""
        if self.view == "raw":
            return EvidenceStrategy(editor=None)
        if self.editor is None:
            raise DesignError("evidence.view neutralized needs an evidence.editor")
        return EvidenceStrategy(editor=self.editor)
