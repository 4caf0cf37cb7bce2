"""Turns a study file into experiments: tasks x judges x the points of a sweep."""

from judge_gym.studies.declarations import (
    ContrastSpec,
    Declaration,
    Declarations,
    StudyVersion,
    declarations,
)
from judge_gym.studies.file import (
    SIMULATED_ASSISTANT,
    BudgetSpec,
    Caps,
    Study,
    TaskSpec,
    read_knobs,
    read_study,
    read_truth,
)
from judge_gym.studies.origins import PoolSpec, TruthSpec, WindowSpec, check_pool
from judge_gym.studies.sweep import (
    Experiment,
    Sweep,
    Task,
    check_roles,
    experiment_tag,
    experiments,
    points,
    resolve_design,
    study_tags,
    with_rubric,
)
from judge_gym.studies.yaml_lines import errors_at

__all__ = [
    "SIMULATED_ASSISTANT",
    "BudgetSpec",
    "Caps",
    "ContrastSpec",
    "Declaration",
    "Declarations",
    "Experiment",
    "PoolSpec",
    "Study",
    "StudyVersion",
    "Sweep",
    "Task",
    "TaskSpec",
    "TruthSpec",
    "WindowSpec",
    "check_pool",
    "check_roles",
    "declarations",
    "errors_at",
    "experiment_tag",
    "experiments",
    "points",
    "read_knobs",
    "read_study",
    "read_truth",
    "resolve_design",
    "study_tags",
    "with_rubric",
]
