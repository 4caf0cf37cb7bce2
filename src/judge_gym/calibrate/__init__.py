"""Answers whether the intervals of a judge table hold at the size of one study.

`profile` measures the study, `panels` draws studies like it whose truth is known, `truths` computes
that truth without the estimators of `analysis`, and `coverage` compares it with real judge tables.
"""

from judge_gym.calibrate.coverage import check_coverage, false_worse, quantity_coverage
from judge_gym.calibrate.profile import SetupProfile, StudyProfile, measure_study

__all__ = [
    "SetupProfile",
    "StudyProfile",
    "check_coverage",
    "false_worse",
    "measure_study",
    "quantity_coverage",
]
