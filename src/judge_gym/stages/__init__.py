"""How each stage asks (`requests`: targets become requests) and reads (`read`: answers, records).

In pipeline order: Neutralizer, Rubricer, Critic, Scorer, Prober. A target is what one request is
about; `read` gets the target and its completion, or None where no attempt brought one.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from judge_gym.records import Completion, Request
from judge_gym.stages.evidence import Neutralizer
from judge_gym.stages.probe import Prober, ProbeTarget
from judge_gym.stages.rubric import Critic, Rubricer, RubricTarget
from judge_gym.stages.scoring import Scorer, ScoreTarget
from judge_gym.stages.verdicts import parse_json_verdict, parse_verdict

Target = TypeVar("Target", contravariant=True)
Record = TypeVar("Record", covariant=True)


class Stage(Protocol[Target, Record]):
    """What every stage can do."""

    def requests(self, targets: Sequence[Target]) -> list[Request]:
        """One request per target."""
        ...

    def read(self, target: Target, completion: Completion | None) -> Record:
        """The record that an answer makes; None is a call that no attempt brought an answer to."""
        ...


__all__ = [
    "Critic",
    "Neutralizer",
    "ProbeTarget",
    "Prober",
    "RubricTarget",
    "Rubricer",
    "ScoreTarget",
    "Scorer",
    "Stage",
    "parse_json_verdict",
    "parse_verdict",
]
