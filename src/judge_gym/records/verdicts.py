"""Verdicts: how an answer was read, and what was shown to the judge that gave it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal["scored", "abstained", "refused", "truncated", "parse_failed", "provider_error"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an answer was read: labels in display order, empty unless scored."""

    status: Status
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Display:
    """What a judge was shown: at each position a label and the stage behind it."""

    labels: tuple[str, ...]
    stages: tuple[int, ...]

    def decode(self, labels: Sequence[str]) -> tuple[int, ...]:
        """The stages behind labels, in rising order.

        >>> Display(("C", "A", "B"), (2, 3, 1)).decode(["C", "B"])
        (1, 2)
        """
        stage_of = dict(zip(self.labels, self.stages, strict=True))
        return tuple(sorted(stage_of[label] for label in labels))

    def flipped(self) -> "Display":
        """The display of a pair shown in reverse: first and second change places.

        >>> Display(("C", "A", "B"), (2, 3, 1)).flipped().stages
        (1, 3, 2)
        """
        return Display(self.labels, tuple({1: 2, 2: 1}.get(stage, stage) for stage in self.stages))
