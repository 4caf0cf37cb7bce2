"""A study file becomes experiments: tasks x judges x the points of a sweep."""

from judge_gym.studies.file import (
    BudgetSpec,
    PoolSpec,
    Study,
    read_knobs,
    read_study,
    read_truth,
)
from judge_gym.studies.sweep import (
    Experiment,
    Sweep,
    Task,
    experiments,
    points,
    refuse_roles,
    settle,
)

__all__ = [
    "BudgetSpec",
    "Experiment",
    "PoolSpec",
    "Study",
    "Sweep",
    "Task",
    "experiments",
    "points",
    "read_knobs",
    "read_study",
    "read_truth",
    "refuse_roles",
    "settle",
]
