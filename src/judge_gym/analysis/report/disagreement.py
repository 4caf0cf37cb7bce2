"""Sections on the disagreement of judges, and on the beliefs of a panel."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis import figures
from judge_gym.analysis.belief.rules import rule_sensitivity
from judge_gym.analysis.frames import JUDGE, OrdinalFrame, scored_rows
from judge_gym.analysis.metrics.polarization import pairwise, polarization
from judge_gym.analysis.metrics.uncertainty import uncertainty
from judge_gym.analysis.panels import Panel, item_distances, per_item
from judge_gym.analysis.report.page import (
    Chart,
    ReportInput,
    Section,
    Table,
    section,
)
from judge_gym.analysis.stats.agreement import nominal_agreement, ordinal_agreement
from judge_gym.protocols.conflict import conflict
from judge_gym.protocols.entrenchment import entrenchment

POLARIZATION = (
    "Raw P is biased upward with few samples: `null` is what identical judges would give here, "
    "`above` the difference, with its interval for this number of samples. The squared distance is "
    "unbiased. P is divided by log2 of judges or stages, whichever are fewer; not every panel can "
    "reach 1."
)
OWN_RUBRICS = " Judges used their own rubrics, so it measures judge and rubric together."


def disagreement(given: ReportInput) -> Section | None:
    """Shows polarization, pairs of judges, conflict, agreement and entrenchment."""
    data = given.data.without_pairs
    if not data.scored or scored_rows(data.own).groupby("task")[JUDGE].nunique().max() < 2:
        return None
    p, pairs = polarization(data), pairwise(data)
    note = POLARIZATION + (OWN_RUBRICS if (p["measures"] == "judge and rubric").any() else "")
    agreement = [nominal_agreement(data.frame)]
    if len(ordered := data.ordinal.own):
        agreement.append(ordinal_agreement(OrdinalFrame(ordered)))
    return section(
        "How much do judges disagree?",
        figures.polarization_figure.finding(p)
        if figures.polarization_figure.has_data(p)
        else "No item was scored by two judges.",
        tables=[
            Table("Polarization", note, p),
            Table("Pairs of judges", "Polarization of every two judges.", pairs),
            Table(
                "Conflict",
                "Dempster's k between judges, beside the distance: an inconsistent judge conflicts "
                "with itself (`own`), so k alone is not a distance; `joint` grows with the number "
                "of judges (`fan_in`).",
                conflict(data),
            ),
            Table(
                "Agreement",
                "Between all judges of a task; intervals over items.",
                pd.concat(agreement),
            ),
            Table(
                "Entrenchment",
                "A judge's divergence from the others above chance, times its stated probability "
                "that experts agree.",
                entrenchment(data) if data.own["probe"].notna().any() else pd.DataFrame(),
            ),
        ],
        charts=[
            Chart("Polarization by task", figures.polarization_figure, p),
            Chart("Pairs of judges against chance", figures.pair_figure, pairs),
            Chart("Single against subset", figures.method_figure, _methods(data.own)),
        ],
    )


def _methods(own: pd.DataFrame) -> pd.DataFrame:
    """Returns the distance on each item with single verdicts and with subsets."""
    if "verdict.method" not in own or own["verdict.method"].nunique() < 2:
        return pd.DataFrame()
    by = ["task", "verdict.method"]
    found = per_item(item_distances(own, by), by)
    wide = found.unstack("verdict.method").reindex(columns=["single", "subset"]).dropna()
    return wide.reset_index().rename(columns={"evidence": "item"})


def decisiveness(given: ReportInput) -> Section | None:
    """Shows belief and plausibility of each stage, and the effect of the combination rule."""
    data = given.data.without_pairs
    if not data.scored:
        return None
    beliefs, rules = _beliefs(data.panels), _rules(data.panels)
    return section(
        "How decisive are the verdicts?",
        _rules_sentence(rules),
        tables=[
            Table(
                "Belief and plausibility",
                "Of each stage, mean over items: belief counts verdicts that name it alone, "
                "plausibility those that name it at all. Abstentions are left out; the open "
                "columns count them as verdicts that name every stage.",
                beliefs,
            ),
            Table(
                "Sensitivity to the aggregation rule",
                "The judges of each item combined by each rule, after discounting by 0.1: the "
                "number of items with total conflict or tied stages, the share with a leading "
                "stage other than that of the average, the remaining gap between plausibility and "
                "belief, and the share whose leading stage changes if abstentions count as "
                "verdicts that name every stage.",
                rules,
            ),
            Table(
                "Uncertainty",
                "The gap between plausibility and belief, mean over stages, and the number of "
                "stages that a verdict names.",
                uncertainty(data),
            ),
        ],
        charts=[Chart("Belief and plausibility by stage", figures.belief_figure, beliefs)],
    )


def _beliefs(panels: Sequence[Panel]) -> pd.DataFrame:
    """Returns belief, pignistic probability and plausibility by judge and stage, over items."""
    rows = []
    for panel in panels:
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


def _rules(panels: Sequence[Panel]) -> pd.DataFrame:
    """Returns the result of each combination rule over the items of each panel."""
    rows: list[dict[str, Any]] = []
    for panel in panels:
        items, judges = panel.size
        if judges < 2:
            continue
        group = np.repeat(np.arange(items), judges)
        effects = opened = rule_sensitivity(panel.masses, group, groups=items)
        if panel.abstained.any():
            opened = rule_sensitivity(panel.open_masses, group, groups=items)
        for effect, other in zip(effects, opened, strict=True):
            clear = (effect.winners > 0) & (other.winners > 0)
            changed = (effect.winners != other.winners)[clear]
            rows.append(
                {
                    **panel.key,
                    "rule": effect.rule,
                    "items": effect.groups,
                    "total conflict": effect.total_conflict,
                    "tied": effect.tied,
                    "other leading stage": effect.differs,
                    "gap": effect.gap,
                    "changed by abstentions": float(changed.mean()) if len(changed) else None,
                    "note": effect.reason,
                }
            )
    return pd.DataFrame(rows)


def _rules_sentence(rules: pd.DataFrame) -> str:
    if rules.empty or rules["other leading stage"].isna().all():
        return "Belief functions, from how often each set of stages was chosen."
    known = rules.dropna(subset="other leading stage")
    worst: Any = known.sort_values("other leading stage", kind="stable").iloc[-1]
    if worst["other leading stage"] == 0:
        return "The combination rule does not change the leading stage of any item without a tie."
    variant = "" if worst["variant"] == "base" else f", {worst['variant']}"
    return (
        f"The combination rule matters: the leading stage under {worst['rule']} differs from that "
        f"of the average on {worst['other leading stage']:.0%} of the items without a tie, "
        f"{worst['task']}{variant}."
    )
