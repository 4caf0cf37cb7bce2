"""How each stage asks (`requests`: targets become requests) and reads (`read`: answers, records).

In pipeline order: Neutralizer, Rubricer, Critic, Scorer, Prober. A target is what one request is
about; `read` gets the target and its completion, or None where no attempt brought one.
"""

from judge_gym.stages.evidence import Neutralizer
from judge_gym.stages.probe import Prober, ProbeTarget
from judge_gym.stages.rubric import Critic, Rubricer, RubricTarget
from judge_gym.stages.scoring import Scorer, ScoreTarget
from judge_gym.stages.verdicts import parse_json_verdict, parse_verdict

__all__ = [
    "Critic",
    "Neutralizer",
    "ProbeTarget",
    "Prober",
    "RubricTarget",
    "Rubricer",
    "ScoreTarget",
    "Scorer",
    "parse_json_verdict",
    "parse_verdict",
]
