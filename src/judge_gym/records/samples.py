"""Samples and probes: a judge's verdicts on items, and its estimates of agreement."""

from dataclasses import dataclass

from judge_gym.records.evidence import Evidence
from judge_gym.records.rubrics import Rubric
from judge_gym.records.verdicts import Display, Status


@dataclass(frozen=True, slots=True)
class Sample:
    """One verdict of a judge on one item with one rubric."""

    rubric: Rubric
    evidence: Evidence
    replicate: int
    display: Display
    status: Status
    stages: tuple[int, ...] = ()
    flipped: bool = False
    is_swap: bool = False
    call_id: int | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """The judge's probability that a majority of three experts agrees with a sample."""

    sample: Sample
    status: Status
    probability: float | None
    call_id: int | None = None
