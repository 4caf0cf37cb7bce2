"""A study file becomes experiments: tasks x judges x the points of a sweep."""

from judge_gym.studies.file import (
    SEARCHES,
    BudgetSpec,
    PoolSpec,
    Study,
    TaskSpec,
    TruthSpec,
    WindowSpec,
    check_pool,
    read_knobs,
    read_study,
    read_truth,
)
from judge_gym.studies.lines import at
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
    "SEARCHES",
    "BudgetSpec",
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
