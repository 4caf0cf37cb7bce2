"""What the choice of a rule does: the same sources under each, side by side."""

from dataclasses import dataclass

import numpy as np

from judge_gym.analysis.belief.masses import FloatArray, IntArray, Masses
from judge_gym.analysis.belief.rules import RULES, CombinedGroups, Rule, combine_groups
from judge_gym.errors import DesignError

ALPHA = 0.1
"""By how much sources are discounted before they are combined, unless something else is said."""


@dataclass(frozen=True, slots=True, eq=False)
class RuleEffect:
    """A row of the table: what one rule makes of every group."""

    rule: Rule
    groups: int
    """Groups with a result."""
    total_conflict: int
    """Groups without one because their sources cannot all be true at once."""
    tied: int
    """Groups with a result in which several stages lead."""
    differs: float | None
    """The share of groups whose leading stage is not that of `average`, among those where both
    rules have one that leads alone; null without any."""
    pignistic: tuple[float, ...] | None
    """The probability of each stage, mean over groups."""
    gap: float | None
    """Pl - Bel, mean over stages and groups: how much the rule leaves open."""
    winners: IntArray
    """The stage that leads in each group; 0 where none leads alone."""
    reason: str = ""
    """Why the rule was not applied."""


def rule_sensitivity(
    masses: Masses, group: IntArray, *, groups: int, alpha: float = ALPHA
) -> tuple[RuleEffect, ...]:
    """Combine the discounted masses of each group by every rule.

    Args:
        masses: a row per source, undiscounted.
        group: the group of each row, 0 to `groups` - 1.
        groups: how many groups there are.
        alpha: the share of each mass that is moved to the whole frame.
    """
    discounted = masses.discounted(alpha)
    average = combine_groups(discounted, group, rule="average", groups=groups)
    reference = leading_stages(average.masses.pignistic())
    return tuple(_effect(discounted, group, rule, reference) for rule in RULES)


def leading_stages(pignistic: FloatArray) -> IntArray:
    """The most probable stage of each row, 0 where it is undefined or shared.

    >>> leading_stages(np.array([[0.2, 0.8], [0.5, 0.5], [np.nan, np.nan]])).tolist()
    [2, 0, 0]
    """
    filled = np.nan_to_num(pignistic, nan=0.0)
    # Sums that are equal but for rounding share the lead.
    leads = filled >= filled.max(axis=1, initial=0.0)[:, None] - 1e-9
    return np.where(leads.sum(axis=1) == 1, leads.argmax(axis=1) + 1, 0)


def _effect(masses: Masses, group: IntArray, rule: Rule, reference: IntArray) -> RuleEffect:
    try:
        found = combine_groups(masses, group, rule=rule, groups=len(reference))
    except DesignError as error:  # more tuples than the rule can visit
        nobody = np.zeros_like(reference)
        return RuleEffect(rule, 0, 0, 0, None, None, None, nobody, reason=error.message)
    return _described(rule, found, reference)


def _described(rule: Rule, found: CombinedGroups, reference: IntArray) -> RuleEffect:
    defined = found.masses.defined
    pignistic = found.masses.pignistic()
    winners = leading_stages(pignistic)
    clear = (winners > 0) & (reference > 0)
    known = bool(defined.any())
    return RuleEffect(
        rule=rule,
        groups=int(defined.sum()),
        total_conflict=int((found.total & ~defined).sum()),
        tied=int((defined & (winners == 0)).sum()),
        differs=float((winners != reference)[clear].mean()) if clear.any() else None,
        pignistic=tuple(pignistic[defined].mean(axis=0).tolist()) if known else None,
        gap=float(found.masses.uncertainty_gap()[defined].mean()) if known else None,
        winners=winners,
    )
