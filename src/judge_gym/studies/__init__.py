"""A study file becomes experiments: tasks x judges x the points of a sweep."""

from judge_gym.studies.file import (
    BudgetSpec,
    PoolSpec,
    Study,
    TruthSpec,
    read_knobs,
    read_study,
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
    "TruthSpec",
    "experiments",
    "points",
    "read_knobs",
    "read_study",
    "refuse_roles",
    "settle",
]
