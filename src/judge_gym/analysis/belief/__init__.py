"""Belief functions over sets of stages: combination rules, conflict and distance.

`mappings` takes one mass function at a time, `masses` many, made from verdicts; `rules` combines
sources group by group, and `disagreement` has conflict and the squared distance.
"""

from judge_gym.analysis.belief.disagreement import (
    Verdicts,
    conflict,
    panel_conflict,
    replicate_conflict,
    squared_distances,
)
from judge_gym.analysis.belief.mappings import (
    Combined,
    TotalConflict,
    belief,
    combine,
    discount,
    jousselme,
    pignistic,
    plausibility,
)
from judge_gym.analysis.belief.masses import Masses, sources, stage_masks
from judge_gym.analysis.belief.rules import RULES, Rule, combine_groups, rule_sensitivity

__all__ = [
    "RULES",
    "Combined",
    "Masses",
    "Rule",
    "TotalConflict",
    "Verdicts",
    "belief",
    "combine",
    "combine_groups",
    "conflict",
    "discount",
    "jousselme",
    "panel_conflict",
    "pignistic",
    "plausibility",
    "replicate_conflict",
    "rule_sensitivity",
    "sources",
    "squared_distances",
    "stage_masks",
]
