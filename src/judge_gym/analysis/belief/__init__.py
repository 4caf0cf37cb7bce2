"""Belief functions over sets of stages: combination rules, conflict and distance.

`mappings` takes one mass function at a time, `masses` many, made from verdicts; `rules` combines
sources group by group, and `disagreement` has conflict and the squared distance.
"""

from judge_gym.analysis.belief.mappings import Combined as Combined
from judge_gym.analysis.belief.mappings import TotalConflict as TotalConflict
from judge_gym.analysis.belief.mappings import belief as belief
from judge_gym.analysis.belief.mappings import combine as combine
from judge_gym.analysis.belief.mappings import discount as discount
from judge_gym.analysis.belief.mappings import jousselme as jousselme
from judge_gym.analysis.belief.mappings import pignistic as pignistic
from judge_gym.analysis.belief.mappings import plausibility as plausibility
from judge_gym.analysis.belief.rules import RULES as RULES
from judge_gym.analysis.belief.rules import Rule as Rule
