"""How the rubric is shown: its labels, its order, and whether it precedes the evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from judge_gym.axes._knobs import OWN_PROMPT, TASK, Axes, knob

LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
# Names without rank: no vowel, so no word, and no alphabetical sequence.
OPAQUE = tuple(
    "QX VK ZN RJ WM HC PF GD LS BT KZ TW XG NP MR DQ SV JH CL FK YB LQ GX PZ HW DN".split()
)


@dataclass(frozen=True, slots=True)
class PresentationStrategy:
    """How a rubric is displayed."""

    names: Sequence[str]
    """The label names; the first n of them name n stages."""
    shuffle_labels: bool
    shuffle_order: bool
    rubric_first: bool
    flips: tuple[bool, ...]
    """For a pair of responses: as given, reversed, or both."""


class PresentationAxes(Axes):
    """Labels, order, and what comes first."""

    aliases = {
        "randomizeLabels": {
            True: {"presentation.labels": "shuffled", "presentation.order": "shuffled"},
            False: {"presentation.labels": "fixed", "presentation.order": "fixed"},
        },
        "promptOrdering": {
            "rubric-first": {"presentation.first": "rubric"},
            "evidence-first": {"presentation.first": "evidence"},
        },
    }

    labels: Literal["shuffled", "fixed", "opaque"] = knob(
        "shuffled",
        question="Do judges prefer a label whatever it stands for, or read A to D as a rank?",
        cite="Zheng et al. 2023 (MT-Bench)",
        inactive=OWN_PROMPT,
    )
    order: Literal["shuffled", "fixed"] = knob(
        "shuffled",
        question="Do judges prefer a position in the list?",
        cite="Zheng et al. 2023 (MT-Bench); Shi et al. 2025",
        inactive=OWN_PROMPT,
    )
    first: Literal["rubric", "evidence"] = knob(
        "rubric",
        question="Does what is read first anchor the verdict?",
        cite="Wei et al. 2024",
        inactive=OWN_PROMPT,
    )
    pair_order: Literal["both", "given", "swapped"] = knob(
        "both",
        question="Does the first response of a pair win because it is first?",
        cite="Zheng et al. 2023 (MT-Bench); Tan et al. 2024 (JudgeBench)",
        inactive={TASK: ("single texts",)},
    )

    def resolve(self) -> PresentationStrategy:
        """Builds the strategy of a display."""
        return PresentationStrategy(
            names=OPAQUE if self.labels == "opaque" else LETTERS,
            shuffle_labels=self.labels != "fixed",
            shuffle_order=self.order == "shuffled",
            rubric_first=self.first == "rubric",
            flips={"both": (False, True), "given": (False,), "swapped": (True,)}[self.pair_order],
        )
