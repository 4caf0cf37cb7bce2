"""A study file becomes experiments: tasks x judges x the points of a sweep."""

from judge_gym.studies.file import (
    BudgetSpec,
    Caps,
    Study,
    TaskSpec,
    read_knobs,
    read_study,
    read_truth,
)
from judge_gym.studies.lines import at
from judge_gym.studies.origins import PoolSpec, TruthSpec, WindowSpec, check_pool
from judge_gym.studies.sweep import (
    Experiment,
    Sweep,
    Task,
    experiments,
    points,
    refuse_roles,
    settle,
    with_rubric,
)

__all__ = [
    "BudgetSpec",
    "Caps",
    "Experiment",
    "PoolSpec",
    "Study",
    "Sweep",
    "Task",
    "TaskSpec",
    "TruthSpec",
    "WindowSpec",
    "at",
    "check_pool",
    "experiments",
    "points",
    "read_knobs",
    "read_study",
    "read_truth",
    "refuse_roles",
    "settle",
    "with_rubric",
]
