"""A laboratory for LLM judges.

The map, in the order of the data:

- `records`: what packages pass to each other: evidence, rubrics, verdicts, outcomes of suites.
- `axes`: what may vary; `Design` holds one value per knob.
- `studies`: a study file becomes experiments.
- `stages`: how each stage asks and reads (pure).
- `analysis`: frames in; numbers, figures and a report out (pure).
- `recorded`: verdicts that others recorded, and `check`, which says how good their judges are.
- `triage`: the failures of a suite run as a task for judges (pure).
- `models`: the only package that calls an LLM; simulated judges are there, too.
- `store`: the only package that uses SQL; the ledger of calls.
- `sources`: where evidence and benchmarks come from.
- `suites`: coding tasks for models: load, sandbox, steps, scores.
- `engine`: executes runs over the ledger.
- `lab`: `Lab`, composed of nouns, whose methods every user interface calls.
- `cli`, `web`, `mcp`: user interfaces for a shell, over HTTP and for agents.
- `client`: the same nouns for a lab on another machine.

The public names load when they are used, so that importing the package stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judge_gym.axes import Design
    from judge_gym.errors import JudgeGymError
    from judge_gym.lab import Lab
    from judge_gym.lab.sample_frames import pull_experiment, pull_study, read_samples
    from judge_gym.models.simulated import verdict_distribution
    from judge_gym.recorded.check import check
    from judge_gym.records import Verdict
    from judge_gym.stages.verdicts import parse_json_verdict, parse_verdict
    from judge_gym.studies import Study, read_study

__version__ = "0.1.0"

_HOMES = {
    "Design": "axes",
    "JudgeGymError": "errors",
    "Lab": "lab",
    "Study": "studies",
    "Verdict": "records",
    "check": "recorded.check",
    "parse_json_verdict": "stages.verdicts",
    "parse_verdict": "stages.verdicts",
    "pull_experiment": "lab.sample_frames",
    "pull_study": "lab.sample_frames",
    "read_samples": "lab.sample_frames",
    "read_study": "studies",
    "verdict_distribution": "models.simulated",
}

__all__ = [
    "Design",
    "JudgeGymError",
    "Lab",
    "Study",
    "Verdict",
    "check",
    "parse_json_verdict",
    "parse_verdict",
    "pull_experiment",
    "pull_study",
    "read_samples",
    "read_study",
    "verdict_distribution",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'judge_gym' has no attribute {name!r}")
    return getattr(import_module(f"judge_gym.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
