"""Sensitivity to the combination rule: the same sources under every rule."""

from dataclasses import dataclass

import numpy as np

from judge_gym.analysis.belief.masses import FloatArray, IntArray, Masses
from judge_gym.analysis.belief.rules import RULES, Rule, combine_groups
from judge_gym.errors import DesignError

ALPHA = 0.1
"""The default discount of sources before combination."""


@dataclass(frozen=True, slots=True, eq=False)
class RuleEffect:
    """The results of one rule over all groups."""

    rule: Rule
    groups: int
    """The number of groups with a result."""
    total_conflict: int
    """The number of groups without a result because of total conflict."""
    tied: int
    """The number of groups in which several stages lead."""
    differs: float | None
    """The share of groups whose leading stage differs from that of `average`, among those where
    both rules have a unique one; None without any."""
    gap: float | None
    """Plausibility minus belief, mean over stages and groups."""
    winners: IntArray
    """The leading stage of each group; 0 if it is not unique."""
    reason: str = ""
    """The reason why the rule was not applied."""


def rule_sensitivity(
    masses: Masses, group: IntArray, *, groups: int, alpha: float = ALPHA
) -> tuple[RuleEffect, ...]:
    """Combines the masses of each group by every rule, after discounting them by alpha."""
    discounted = masses.discounted(alpha)
    average = combine_groups(discounted, group, rule="average", groups=groups)
    reference = leading_stages(average.masses.pignistic())
    return tuple(_effect(discounted, group, rule, reference) for rule in RULES)


def leading_stages(pignistic: FloatArray) -> IntArray:
    """Returns the most probable stage of each row; 0 if it is undefined or tied.

    >>> leading_stages(np.array([[0.2, 0.8], [0.5, 0.5], [np.nan, np.nan]])).tolist()
    [2, 0, 0]
    """
    filled = np.nan_to_num(pignistic, nan=0.0)
    # Sums that differ only by rounding are tied.
    leads = filled >= filled.max(axis=1, initial=0.0)[:, None] - 1e-9
    return np.where(leads.sum(axis=1) == 1, leads.argmax(axis=1) + 1, 0)


def _effect(masses: Masses, group: IntArray, rule: Rule, reference: IntArray) -> RuleEffect:
    try:
        found = combine_groups(masses, group, rule=rule, groups=len(reference))
    except DesignError as error:  # more tuples than the rule can visit
        none = np.zeros_like(reference)
        return RuleEffect(rule, 0, 0, 0, None, None, none, reason=error.message)
    defined = found.masses.defined
    winners = leading_stages(found.masses.pignistic())
    clear = (winners > 0) & (reference > 0)
    gap = found.masses.uncertainty_gap()[defined]
    return RuleEffect(
        rule=rule,
        groups=int(defined.sum()),
        total_conflict=int((found.total & ~defined).sum()),
        tied=int((defined & (winners == 0)).sum()),
        differs=float((winners != reference)[clear].mean()) if clear.any() else None,
        gap=float(gap.mean()) if len(gap) else None,
        winners=winners,
    )
