"""How far judges lie apart, and what a panel believes together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.belief import rule_sensitivity
from judge_gym.analysis.frames import JUDGE, only, ordinal
from judge_gym.analysis.metrics import conflict, entrenchment, uncertainty
from judge_gym.analysis.metrics.distances import item_distances, per_item
from judge_gym.analysis.metrics.polarization import pairwise, polarization
from judge_gym.analysis.panels import Panel
from judge_gym.analysis.report.material import Material
from judge_gym.analysis.report.page import Section, Table, section
from judge_gym.analysis.stats.agreement import nominal_agreement, ordinal_agreement

NULL = (
    "Raw P is biased upward at few samples: `null` is what identical judges would give here, "
    "`above` the difference with its interval for this number of samples. The squared distance is "
    "unbiased. P is divided by log2 of judges or stages, whichever are fewer; not every panel can "
    "reach 1."
)
OWN_RUBRICS = " Judges used their own rubrics, so it measures judge and rubric together."


def how_far_apart(made: Material) -> Section | None:
    """Polarization, pairs, conflict, agreement."""
    own, judged = made.own, made.own_panels
    scored = only(own, own["status"] == "scored")
    if scored.empty or scored.groupby("task")[JUDGE].nunique().max() < 2:
        return None
    p, pairs = polarization(judged), pairwise(judged)
    drawn = figures.polarization_figure(p)
    note = NULL + (OWN_RUBRICS if (p["measures"] == "judge and rubric").any() else "")
    ordered = only(own, own["rubric_kind"] == "ordinal")
    agreed = [nominal_agreement(own)]
    if len(ordered):
        agreed.append(ordinal_agreement(ordinal(ordered)))
    return section(
        "How far judges lie apart",
        figures.polarization_finding(p)
        if drawn is not None
        else "No item was scored by two judges.",
        tables=[
            Table("Polarization", note, p),
            Table("Pairs of judges", "As above, for every two judges.", pairs),
            Table(
                "Conflict",
                "Dempster's k between judges, beside the distance: a judge who is torn conflicts "
                "with itself (`own`), so k alone is no distance; `joint` grows with the fan-in.",
                conflict(judged),
            ),
            Table(
                "Agreement",
                "Between all judges of a task; intervals over items.",
                pd.concat(agreed),
            ),
            Table(
                "Entrenchment",
                "How far a judge lies from the others above chance, times how sure it is that "
                "experts agree.",
                entrenchment(judged) if own["probe"].notna().any() else pd.DataFrame(),
            ),
        ],
        charts=[
            ("Polarization by task", drawn),
            ("Pairs of judges against chance", figures.pair_figure(pairs)),
            ("Single against subset", figures.method_figure(_methods(own))),
        ],
    )


def _methods(own: pd.DataFrame) -> pd.DataFrame:
    """The distance on each item with single verdicts and with subsets."""
    columns = ["task", "item", "single", "subset"]
    if "verdict.method" not in own or own["verdict.method"].nunique() < 2:
        return pd.DataFrame(columns=columns)
    found = per_item(item_distances(own, ["task", "verdict.method"]), ["task", "verdict.method"])
    wide = found.unstack("verdict.method").reindex(columns=["single", "subset"]).dropna()
    return wide.reset_index().rename(columns={"evidence": "item"})


def what_is_believed(made: Material) -> Section | None:
    """Belief and plausibility of each stage, and what the rule of combination does."""
    own, judged = made.own, made.own_panels
    scored = only(own, own["status"] == "scored")
    if scored.empty:
        return None
    beliefs, rules = _beliefs(judged), _rules(judged)
    return section(
        "What is believed",
        _said_of_rules(rules),
        tables=[
            Table(
                "Belief and plausibility",
                "Of each stage, mean over items: belief counts verdicts that name it alone, "
                "plausibility those that name it at all. Abstentions are left out; the open ones "
                "take them for verdicts that name every stage.",
                beliefs,
            ),
            Table(
                "Sensitivity to the aggregation rule",
                "The judges of each item combined by each rule, after discounting by 0.1: in how "
                "many items sources conflict totally or stages tie, in what share the leading "
                "stage is not that of the average, what the rule leaves open, and in what share "
                "another stage leads if abstentions are taken for verdicts that name every stage.",
                rules,
            ),
            Table(
                "Uncertainty",
                "The gap between plausibility and belief, mean over stages, and how many stages a "
                "verdict names.",
                uncertainty(judged),
            ),
        ],
        charts=[("Belief and plausibility by stage", figures.belief_figure(beliefs))],
    )


def _beliefs(judged: Sequence[Panel]) -> pd.DataFrame:
    """Bel, BetP and Pl of each stage by each judge, mean over items."""
    rows = []
    for panel in judged:
        shape = (*panel.size, panel.n_stages)
        masses, opened = panel.masses, panel.open_masses
        held = {
            "belief": masses.belief(),
            "pignistic": masses.pignistic(),
            "plausibility": masses.plausibility(),
            "open belief": opened.belief(),
            "open plausibility": opened.plausibility(),
        }
        for place, judge in enumerate(panel.judges):
            known = panel.scored[:, place] > 0
            if not known.any():
                continue
            means = {
                name: of.reshape(shape)[known, place].mean(axis=0) for name, of in held.items()
            }
            for stage in range(panel.n_stages):
                named = {**panel.key, JUDGE: judge, "stage": stage + 1}
                rows.append(named | {name: float(of[stage]) for name, of in means.items()})
    return pd.DataFrame(rows)


def _rules(judged: Sequence[Panel]) -> pd.DataFrame:
    """What each rule makes of the judges of each item."""
    rows: list[dict[str, Any]] = []
    for panel in judged:
        items, judges = panel.size
        if judges < 2:
            continue
        group = np.repeat(np.arange(items), judges)
        effects, opened = (
            rule_sensitivity(masses, group, groups=items)
            for masses in (panel.masses, panel.open_masses)
        )
        for effect, other in zip(effects, opened, strict=True):
            clear = (effect.winners > 0) & (other.winners > 0)
            moved = (effect.winners != other.winners)[clear]
            rows.append(
                {
                    **panel.key,
                    "rule": effect.rule,
                    "items": effect.groups,
                    "total conflict": effect.total_conflict,
                    "tied": effect.tied,
                    "leads elsewhere": effect.differs,
                    "gap": effect.gap,
                    "moved by abstentions": float(moved.mean()) if len(moved) else None,
                    "note": effect.reason,
                }
            )
    return pd.DataFrame(rows)


def _said_of_rules(rules: pd.DataFrame) -> str:
    if rules.empty or rules["leads elsewhere"].isna().all():
        return "Belief functions, from how often each set of stages was chosen."
    known = rules.dropna(subset="leads elsewhere")
    worst: Any = known.sort_values("leads elsewhere", kind="stable").iloc[-1]
    if worst["leads elsewhere"] == 0:
        return "The rule of combination changes the leading stage of no item."
    return (
        f"The rule of combination matters: {worst['rule']} puts another stage first than the "
        f"average in {worst['leads elsewhere']:.0%} of the items of {worst['task']}."
    )
