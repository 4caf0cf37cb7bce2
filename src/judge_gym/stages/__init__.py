"""The stages of the pipeline: each turns targets into requests, and completions into records.

In pipeline order: Neutralizer, Rubricer, Critic, Scorer, Prober; Improver revises rubrics and
prompts from labels. A target is what one request is about.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from judge_gym.records import Completion, Request
from judge_gym.stages.evidence import Neutralizer
from judge_gym.stages.improvement import ImprovementTarget, Improver, ItemDisagreement, Proposal
from judge_gym.stages.probe import Prober, ProbeTarget
from judge_gym.stages.rubric import Critic, Rubricer, RubricTarget
from judge_gym.stages.scoring import Scorer, ScoreTarget
from judge_gym.stages.verdicts import parse_json_verdict, parse_verdict

Target = TypeVar("Target", contravariant=True)
Record = TypeVar("Record", covariant=True)


class Stage(Protocol[Target, Record]):
    """The interface of every stage."""

    def requests(self, targets: Sequence[Target]) -> list[Request]:
        """Builds one request per target."""
        ...

    def read(self, target: Target, completion: Completion | None) -> Record:
        """Reads the record of a target's completion. None means that every attempt failed."""
        ...


__all__ = [
    "Critic",
    "ImprovementTarget",
    "Improver",
    "ItemDisagreement",
    "Neutralizer",
    "ProbeTarget",
    "Prober",
    "Proposal",
    "RubricTarget",
    "Rubricer",
    "ScoreTarget",
    "Scorer",
    "Stage",
    "parse_json_verdict",
    "parse_verdict",
]
