"""Verdicts, and the displays that judges were shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal["scored", "abstained", "refused", "truncated", "parse_failed", "provider_error"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A parsed answer: labels in display order, empty unless scored."""

    status: Status
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Display:
    """The labels that a judge was shown, in order, and the stage of each."""

    labels: tuple[str, ...]
    stages: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> "Display":
        """Parses a display from the text as which it is stored.

        >>> Display.parse("C=2 A=3")
        Display(labels=('C', 'A'), stages=(2, 3))
        """
        pairs = [pair.split("=") for pair in text.split()]
        return Display(tuple(label for label, _ in pairs), tuple(int(stage) for _, stage in pairs))

    def decode(self, labels: Sequence[str]) -> tuple[int, ...]:
        """Decodes labels to stages, in ascending order.

        >>> Display(("C", "A", "B"), (2, 3, 1)).decode(["C", "B"])
        (1, 2)
        """
        stage_of = dict(zip(self.labels, self.stages, strict=True))
        return tuple(sorted(stage_of[label] for label in labels))

    def flipped(self) -> "Display":
        """The display of a pair in reverse order: first and second are exchanged.

        >>> Display(("C", "A", "B"), (2, 3, 1)).flipped().stages
        (1, 3, 2)
        """
        return Display(self.labels, tuple({1: 2, 2: 1}.get(stage, stage) for stage in self.stages))
