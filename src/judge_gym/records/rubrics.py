"""Rubrics: stages with criteria, and a critic's scores of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judge_gym.errors import DesignError, unknown
from judge_gym.records.evidence import Evidence
from judge_gym.records.hashes import digest
from judge_gym.records.verdicts import Status


@dataclass(frozen=True, slots=True)
class RubricStage:
    """One stage (of an ordinal rubric) or option (of a nominal one)."""

    label: str
    criteria: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rubric:
    """Stages with criteria, numbered from 1 in the author's order."""

    stages: tuple[RubricStage, ...]
    author: str
    concept: str
    country: str
    draw: int = 0
    reasoning: str = ""
    id: int = 0
    call_id: int | None = None

    @property
    def scale(self) -> int:
        """The number of stages."""
        return len(self.stages)

    @property
    def hash(self) -> str:
        """The hash of what a judge can read of it."""
        return digest([self.kind, [[stage.label, *stage.criteria] for stage in self.stages]])

    @property
    def kind(self) -> Literal["ordinal", "nominal"]:
        """Whether the stages are ordered."""
        raise TypeError("a rubric is an OrdinalRubric or a NominalRubric")


class OrdinalRubric(Rubric):
    """Stages in rising order."""

    __slots__ = ()
    kind: Literal["ordinal"] = "ordinal"

    @property
    def midpoint(self) -> int | None:
        """The stage in the middle of a scale, which an even scale lacks."""
        return (self.scale + 1) // 2 if self.scale % 2 else None


class NominalRubric(Rubric):
    """Options without order: no midpoint, no expected stage."""

    __slots__ = ()
    kind: Literal["nominal"] = "nominal"


RUBRIC_KINDS: dict[str, type[OrdinalRubric] | type[NominalRubric]] = {
    "ordinal": OrdinalRubric,
    "nominal": NominalRubric,
}


def provided_rubric(data: Any, concept: str, country: str) -> OrdinalRubric | NominalRubric:
    """Reads a rubric from JSON that a user provides.

    A list has the stages of an ordinal rubric, each `label` or `label: criterion`.
    """
    shape = 'a rubric is {"kind": ..., "stages": [{"label": ..., "criteria": [...]}, ...]}'
    if isinstance(data, list) and data and all(isinstance(stage, str) for stage in data):
        named = [stage.partition(":") for stage in data]
        data = {
            "stages": [
                {"label": label.strip(), "criteria": [criterion.strip() or label.strip()]}
                for label, _, criterion in named
            ]
        }
    if not isinstance(data, dict) or not isinstance(data.get("stages"), list):
        raise DesignError(shape)
    kind = data.get("kind", "ordinal")
    if kind not in RUBRIC_KINDS:
        raise DesignError(unknown("kind of rubric", kind, RUBRIC_KINDS), choices=RUBRIC_KINDS)
    stages = []
    for number, stage in enumerate(data["stages"], 1):
        label = stage.get("label") if isinstance(stage, dict) else None
        criteria = stage.get("criteria") if isinstance(stage, dict) else None
        texts = [label, *criteria] if isinstance(criteria, list) and criteria else [None]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise DesignError(f"stage {number} needs a label and a list of criteria: {shape}")
        stages.append(RubricStage(str(label), tuple(criteria or ())))
    if not 2 <= len(stages) <= 26:
        raise DesignError(f"a rubric has 2 to 26 stages; this one has {len(stages)}")
    if len({stage.label for stage in stages}) < len(stages):
        raise DesignError("two stages of the rubric have the same label")
    return RUBRIC_KINDS[kind](
        stages=tuple(stages), author="provided", concept=concept, country=country
    )


def grade_items(items: Sequence[Evidence], rubric: Rubric) -> tuple[Evidence, ...]:
    """Converts the truths of items, numbers or labels, to stage numbers of a rubric."""
    numbers = {stage.label: number for number, stage in enumerate(rubric.stages, 1)}
    number_of = {str(number): number for number in numbers.values()} | numbers
    graded_items = []
    for item in items:
        truth = None
        if item.truth is not None:
            truth = None if isinstance(item.truth, bool) else number_of.get(str(item.truth))
            if truth is None:
                raise DesignError(
                    unknown("truth", item.truth, number_of, item.title), choices=number_of
                )
        graded_items.append(item if truth == item.truth else replace(item, truth=truth))
    return tuple(graded_items)


@dataclass(frozen=True, slots=True)
class Critique:
    """A critic's scores of a rubric, None if the critic's answer could not be read."""

    rubric: Rubric
    critic: str
    status: Status
    observability: float | None
    discriminability: float | None
    call_id: int | None = None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Items with known answers, the rubric to judge them with, and design settings."""

    name: str
    concept: str
    items: tuple[Evidence, ...]
    rubric: Rubric
    description: str = ""
    design: Mapping[str, Any] = field(default_factory=dict)
    """Knobs that differ from their defaults; a study may override them."""
