"""The view of an item that judges read: its own text, or a clinical summary."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import field_validator

from judge_gym.axes._knobs import OWN_PROMPT, TASK, Axes, Conditions, knob
from judge_gym.errors import DesignError
from judge_gym.records import FIELD_NAMES

ALL_FIELDS = "all"

UNEDITED: Conditions = {"evidence.view": ("raw",), TASK: ("pairs",)}
"""When no editor is asked: a summary of two responses would be a third response."""


@dataclass(frozen=True, slots=True)
class EvidenceStrategy:
    """Which text is shown, and which model writes it."""

    editor: str | None
    """The model that neutralizes; None if the raw text is shown."""
    fields: tuple[str, ...] = FIELD_NAMES
    """The named parts that are shown of an item that has some."""

    def shown(self, fields: Mapping[str, str]) -> dict[str, str]:
        """Selects the named parts to show, none where the judge reads one text."""
        if self.editor is not None:
            return {}
        return {name: text for name, text in fields.items() if name in self.fields}


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

    fields: str = knob(
        ALL_FIELDS,
        question="What does a judge need to see: does a reference answer, or the context, change "
        "its verdict? Names are joined by a plus.",
        cite="Zheng et al. 2023 (MT-Bench)",
        examples=(ALL_FIELDS, "input+output"),
        inactive={
            TASK: ("pairs", "no named parts"),
            "evidence.view": ("neutralized",),
            **OWN_PROMPT,
        },
    )

    @field_validator("fields", mode="before")
    @classmethod
    def _known_fields(cls, level: Any) -> Any:
        """Orders the names in the level as they are shown."""
        names = level.split("+") if isinstance(level, str) else level
        if level == ALL_FIELDS or not isinstance(names, list):
            return level
        names = [str(name).strip() for name in names]
        if not names or set(names) - set(FIELD_NAMES):
            raise ValueError(f"{ALL_FIELDS}, or names among {', '.join(FIELD_NAMES)}")
        return "+".join(name for name in FIELD_NAMES if name in names)

    def resolve(self) -> EvidenceStrategy:
        """Builds the strategy of the evidence stage."""
        if self.view == "raw":
            fields = FIELD_NAMES if self.fields == ALL_FIELDS else tuple(self.fields.split("+"))
            return EvidenceStrategy(editor=None, fields=fields)
        if self.editor is None:
            raise DesignError("evidence.view neutralized needs an evidence.editor")
        return EvidenceStrategy(editor=self.editor)
