"""Belief functions: what verdicts that name several stages say, and how far judges lie apart.

- `mappings`: one mass function at a time, as a mapping from sets of stages to mass.
- `masses`: many at a time, from verdicts to masses, and what is read off them.
- `rules`: how sources are combined, group by group, with `redistribution` for the PCR rules.
- `sensitivity`: what the choice of a rule does.
- `disagreement`: conflict, and the squared distance that is tested.
- `sets`: bit masks, and what is refused.
"""

from judge_gym.analysis.belief.disagreement import (
    PanelConflict,
    Verdicts,
    conflict,
    panel_conflict,
    replicate_conflict,
    squared_distance,
    squared_distances,
    squared_jousselme,
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
    weights_of_evidence,
)
from judge_gym.analysis.belief.masses import Masses, Sources, sources, stage_masks
from judge_gym.analysis.belief.rules import RULES, CombinedGroups, Rule, combine_groups
from judge_gym.analysis.belief.sensitivity import RuleEffect, leading_stages, rule_sensitivity
from judge_gym.analysis.belief.sets import Mass

__all__ = [
    "RULES",
    "Combined",
    "CombinedGroups",
    "Mass",
    "Masses",
    "PanelConflict",
    "Rule",
    "RuleEffect",
    "Sources",
    "TotalConflict",
    "Verdicts",
    "belief",
    "combine",
    "combine_groups",
    "conflict",
    "discount",
    "jousselme",
    "leading_stages",
    "panel_conflict",
    "pignistic",
    "plausibility",
    "replicate_conflict",
    "rule_sensitivity",
    "sources",
    "squared_distance",
    "squared_distances",
    "squared_jousselme",
    "stage_masks",
    "weights_of_evidence",
]
