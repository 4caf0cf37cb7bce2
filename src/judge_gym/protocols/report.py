"""The report of a study under the protocol: hypotheses, validity checks, beliefs, probes, swaps.

Its questions are those of every report, with the protocol's sections among their answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis import report
from judge_gym.analysis.belief.rules import rule_sensitivity
from judge_gym.analysis.declared import contrast_tests
from judge_gym.analysis.endpoints import expected_stage
from judge_gym.analysis.frames import CELL, JUDGE, ordinal
from judge_gym.analysis.measures import Measure
from judge_gym.analysis.measures.uncertainty import uncertainty
from judge_gym.analysis.report import disagreement
from judge_gym.analysis.report import findings as ordinary
from judge_gym.analysis.report.page import Chart, ReportInput, Section, SectionOf, Table, section
from judge_gym.analysis.stats.intervals import Estimate
from judge_gym.analysis.verdicts import Dataset, Verdicts, item_distances, per_item
from judge_gym.axes import CONTESTED
from judge_gym.protocols import figures
from judge_gym.protocols.conflict import CONFLICT, conflict
from judge_gym.protocols.entrenchment import ENTRENCHMENT, entrenchment
from judge_gym.protocols.hypotheses import (
    AGAINST,
    confidence_in_own_rubric,
    overstated_agreement,
    protocol_tests,
)
from judge_gym.protocols.reference_values import REFERENCE_ERROR, reference_errors
from judge_gym.protocols.regressions import regressions
from judge_gym.protocols.stated_agreement import (
    calibration,
    most_telling,
    reliability,
    stated_agreement,
)
from judge_gym.protocols.swap_sensitivity import SWAP_SENSITIVITY, swap_pairs, swap_sensitivity
from judge_gym.protocols.validity import (
    DEFAULTS,
    LACKING,
    TOO_FEW,
    UNDECIDED,
    Thresholds,
    control_descriptions,
    validity,
)
from judge_gym.records.numbers import percent, signed_hundredths

METRICS: tuple[Measure, ...] = (ENTRENCHMENT, SWAP_SENSITIVITY, REFERENCE_ERROR, CONFLICT)
"""The protocol's metrics, beside those of every study."""


def questions(thresholds: Thresholds = DEFAULTS) -> report.Questions:
    """Lists the questions of a report under the protocol, with the sections that answer them.

    Args:
        thresholds: the limits at which validity checks pass.
    """
    more: Mapping[str, report.Sections] = {
        report.QUALITY: (reference_values,),
        report.BIASES: (fold_text(overconfidence),),
        report.DETAILS: (rubric_author, conflicts, decisiveness),
    }
    instead: Mapping[SectionOf, SectionOf] = {
        ordinary.findings: partial(findings, thresholds=thresholds),
        ordinary.limitations: limitations,
    }
    return {
        title: (*(instead.get(part, part) for part in sections), *more.get(title, ()))
        for title, sections in report.QUESTIONS.items()
    }


def fold_text(part: SectionOf) -> SectionOf:
    """Returns a section whose tables are shown when a reader opens them."""

    def folded_section(given: ReportInput) -> Section | None:
        made = part(given)
        if made is None:
            return None
        return replace(made, tables=tuple(replace(one, folded=True) for one in made.tables))

    return folded_section


def appendix() -> Mapping[str, SectionOf]:
    """Returns the sections of further tables under the protocol, by the title of each table."""
    return {
        **report.APPENDIX,
        "Metrics": partial(ordinary.metrics, more=METRICS),
        "Regressions": regressions_of_scores,
    }


def findings(given: ReportInput, thresholds: Thresholds = DEFAULTS) -> Section | None:
    """Shows hypotheses, declared contrasts and validity checks."""
    contested = _under_protocol(given.data)
    tests = [
        *protocol_tests(contested, given.declared, given.people),
        *contrast_tests(given.data, given.declared.contrasts),
    ]
    lead, tables = "", []
    if tests:
        lead, table = ordinary.outcomes_of_tests(given, tests)
        tables = [table]
    checks = validity(contested.frame, thresholds)
    counted = f"Validity checks: {_counted(checks['result'], CHECK_RESULTS)}."
    described = control_descriptions(contested.frame)
    return section(
        "Findings",
        f"{lead} {counted}".strip(),
        tables=[
            *tables,
            Table("Validity of the instrument", CHECK_RULE, checks),
            Table("Controls, described", DESCRIBED, described),
        ],
    )


def _under_protocol(data: Dataset) -> Dataset:
    """Selects the samples under the protocol."""
    under = data.frame["protocol"] == CONTESTED
    return data if under.all() else Dataset(data.frame[under].reset_index(drop=True))


CHECK_RESULTS = {
    "pass": "passed",
    "fail": "failed",
    UNDECIDED: UNDECIDED,
    TOO_FEW: "with too few items",
    LACKING: "without data",
}
"""The results of checks in the order in which they are counted, in words."""
CHECK_RULE = (
    "A check passes if its whole interval is on the right side of its threshold, fails if it is on "
    "the wrong side, and is undecided if the interval contains the threshold."
)
DESCRIBED = "Shown beside the checks; neither passes nor fails."


def _counted(results: pd.Series, words: Mapping[str, str]) -> str:
    counts = results.value_counts()
    return ", ".join(f"{counts[name]} {word}" for name, word in words.items() if name in counts)


def reference_values(given: ReportInput) -> Section | None:
    """Shows how far mean verdicts are from reference values."""
    errors = reference_errors(given.data.own)
    return section(
        "How far are the judges from reference values?",
        "A reference value, such as an index, is about all items together.",
        tables=[
            Table(
                "Reference values",
                "The error of each judge: its mean stage minus a reference value from 0 to 1, "
                "which is about all items together. 95 % interval over items.",
                errors.rename(columns={"mean": "error"}),
            )
        ],
    )


def regressions_of_scores(given: ReportInput) -> Section | None:
    """Shows regressions of the score on judge, task and every knob."""
    data = given.data.without_pairs
    if not data.scored or not data.ordinal.scored:
        return None
    return section(
        "What do regressions say?",
        "Exploratory: the score by judge, by task, and by every knob at once.",
        tables=[
            Table(
                "Regressions",
                "On cells; the score from 0 to 1; errors clustered on evidence (CR2, t with "
                "Satterthwaite's degrees of freedom), with a random intercept and an ordered "
                "logit as sensitivity.",
                regressions(data.frame),
            )
        ],
    )


def rubric_author(given: ReportInput) -> Section | None:
    """Compares judges under their own and under other authors' rubrics."""
    if not given.frame["is_swap"].any():
        return None
    pairs = given.data.compute(swap_pairs)
    ordered = given.data.without_pairs.ordinal.frame
    whose = ordered["is_swap"].map({True: "another's", False: "own"})
    stages = pd.DataFrame()
    if (ordered["status"] == "scored").any():
        named = ordered.assign(**{"rubric used": whose})
        stages = expected_stage(ordinal(named), [*CELL, "rubric used"])
    rivals = pairs[pairs["role"] == "rival"].rename(columns={"other": "rival"})
    means = rivals.groupby(["task", JUDGE, "rubric_author"], observed=True)[["own", "rival"]].mean()
    lead = _lead(
        confidence_in_own_rubric(pairs).estimate,
        "Judges state more agreement under their own rubric than under a rival's",
        "Judges state less agreement under their own rubric than under a rival's",
        "Undecided whether judges state more agreement under their own rubric than under a rival's",
    )
    return section(
        "Does the rubric's author matter?",
        lead or "Too few verdicts were probed under both rubrics.",
        tables=[
            Table(
                "Swap sensitivity",
                "A swap lets a judge score under another author's rubric. Stated probability under "
                "the own rubric minus under another's, paired by item and replicate. A third "
                "party's rubric is the control.",
                swap_sensitivity(given.data),
            ),
            Table(
                "Expected stage by rubric author",
                "0 is the first stage, 1 the last; other authors' rubrics are pooled.",
                stages,
            ),
        ],
        charts=[Chart("Own and rivals' rubrics", figures.swap_figure, means.reset_index(), lead)],
    )


def conflicts(given: ReportInput) -> Section | None:
    """Shows conflict of beliefs, entrenchment, and single verdicts against subsets."""
    data = given.data.without_pairs
    if not disagreement.compares_judges(data):
        return None
    methods = _methods(data.own)
    lead = "Beliefs of judges about the same item, compared with each other."
    if figures.method_figure.has_data(methods):
        lead = f"{figures.method_figure.finding(methods)}."
    return section(
        "How far do beliefs conflict?",
        lead,
        tables=[
            Table(
                "Conflict",
                "Dempster's k between judges, beside the distance: an inconsistent judge conflicts "
                "with itself (`own`), so k alone is not a distance; `joint` grows with the number "
                "of judges (`fan_in`).",
                conflict(data),
            ),
            Table(
                "Entrenchment",
                "A judge's divergence from the others above chance, times its stated probability "
                "that experts agree.",
                entrenchment(data) if data.own["probe"].notna().any() else pd.DataFrame(),
            ),
        ],
        charts=[Chart("Single against subset", figures.method_figure, methods)],
    )


def _methods(own: pd.DataFrame) -> pd.DataFrame:
    """Returns the distance on each item with single verdicts and with subsets."""
    if "verdict.method" not in own or own["verdict.method"].nunique() < 2:
        return pd.DataFrame()
    by = ["task", "verdict.method"]
    distances = per_item(item_distances(own, by), by)
    wide = distances.unstack("verdict.method").reindex(columns=["single", "subset"]).dropna()
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
    )


def _beliefs(panels: Sequence[Verdicts]) -> pd.DataFrame:
    """Returns belief, pignistic probability and plausibility by judge and stage, over items."""
    rows = []
    for panel in panels:
        shape = (*panel.size, panel.n_stages)
        masses, opened = panel.masses, panel.open_masses
        values = {
            "belief": masses.belief(),
            "pignistic": masses.pignistic(),
            "plausibility": masses.plausibility(),
            "open belief": opened.belief(),
            "open plausibility": opened.plausibility(),
        }
        for index, judge in enumerate(panel.setups):
            is_scored = panel.scored[:, index] > 0
            if not is_scored.any():
                continue
            means = {
                name: of.reshape(shape)[is_scored, index].mean(axis=0)
                for name, of in values.items()
            }
            for stage in range(panel.n_stages):
                named = {**panel.key, JUDGE: judge, "stage": stage + 1}
                rows.append(named | {name: float(of[stage]) for name, of in means.items()})
    return pd.DataFrame(rows)


def _rules(panels: Sequence[Verdicts]) -> pd.DataFrame:
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
    shares = rules.dropna(subset="other leading stage")
    worst: Any = shares.sort_values("other leading stage", kind="stable").iloc[-1]
    if worst["other leading stage"] == 0:
        return "The combination rule does not change the leading stage of any item without a tie."
    variant = "" if worst["variant"] == "base" else f", {worst['variant']}"
    return (
        f"The leading stage under {worst['rule']} differs from that of the average on "
        f"{percent(worst['other leading stage'])} of the items without a tie on "
        f"{worst['task']}{variant}: the largest of {len(shares)} shares, by rule, task and design."
    )


def overconfidence(given: ReportInput) -> Section | None:
    """Shows the calibration of the stated probability that most of three experts would agree."""
    frame, data = given.frame, given.data
    if not frame["probe"].notna().any():
        return None
    verdicts, without = stated_agreement(data, given.people)
    kind = most_telling(verdicts)
    alike, *without_draws = (part[part["reference"] == kind] for part in (verdicts, *without))
    curve = reliability(alike, [JUDGE], without_draws)
    bins = curve.rename(
        columns={"y": "reference", "y_low": "low", "y_high": "high", "verdicts": "n"}
    )
    # The lead is that of the second hypothesis; verdicts pooled by bin may give another.
    test = overstated_agreement(data, given.people)
    lead = _lead(
        test.estimate,
        "Judges are overconfident: they state more agreement than is found",
        "Judges are underconfident: they state less agreement than is found",
        "Undecided whether judges state more or less agreement than is found",
    )
    lead = lead and f"{lead}, {AGAINST[kind]}"
    return section(
        "Are judges overconfident?",
        lead or "Too few verdicts have a reference.",
        tables=[
            Table(
                "Calibration",
                "The reference is the chance that most of three others' verdicts on the item fall "
                "into the chosen set: those of people where three labelled it, else of other "
                "judges on other displays, under the same rubric where swaps have it. Bias is "
                "stated minus reference. Hallucination is the share of verdicts stated above 0.8 "
                "that others contradict (reference below 0.5); with ties, it also counts "
                "references of exactly 0.5.",
                calibration(verdicts, [*CELL, "reference"], without),
            ),
            Table(
                "Calibration by set size",
                f"Wider sets are easier to agree with: compare at equal size. References: {kind}.",
                calibration(alike, [JUDGE, "size"], without_draws),
            ),
            Table("Reliability", "By stated probability, in ten bins.", curve),
        ],
        charts=[
            Chart("Reliability by judge", figures.reliability_figure, bins, lead),
            Chart("Stated expert agreement", figures.probe_figure, _stated(frame)),
        ],
    )


def _lead(found: Estimate, more: str, less: str, unclear: str) -> str | None:
    """Chooses the sentence that fits an estimate, with its interval. None if it is unknown."""
    if not found.known:
        return None
    value, low, high = map(signed_hundredths, found[:3])
    interval = f"({value} [{low}, {high}])"
    if found.low <= 0 <= found.high:
        return f"{unclear} {interval}"
    return f"{more if found.value > 0 else less} {interval}"


def _stated(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns stated probabilities, each call once, with the author of the rubric used."""
    probed = frame[frame["probe"].notna()]
    seen = probed.duplicated(["task", "probe_call_id"]) & probed["probe_call_id"].notna()
    probed = probed[~seen]
    judging = pd.MultiIndex.from_frame(frame[["task", JUDGE]].drop_duplicates())
    author = probed["rubric_author"]
    used = np.select(
        [
            author == "provided",
            (author == probed[JUDGE]) | (author == "own"),
            pd.MultiIndex.from_frame(probed[["task", "rubric_author"]]).isin(judging),
        ],
        ["given", "own", "rival's"],
        "third party's",
    )
    return probed.assign(**{"rubric used": used})[["task", JUDGE, "probe", "rubric used"]]


def limitations(given: ReportInput) -> Section | None:
    """Lists what these data cannot show, stated agreement without a reference among it."""
    verdicts, _ = stated_agreement(given.data, given.people)
    probed = verdicts[verdicts["outcome"] == "probed"]
    references = probed.groupby(["task", JUDGE], observed=True)["y"].count()
    judges: dict[str, list[str]] = {}
    for task, judge in references[references == 0].index:
        judges.setdefault(str(task), []).append(str(judge))
    return ordinary.limitations(
        given,
        more={
            task: [
                f"{', '.join(names)}: fewer than three verdicts of other judges on other displays, "
                "so stated agreement has no reference"
            ]
            for task, names in judges.items()
        },
    )
