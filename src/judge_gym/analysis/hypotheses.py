"""The hypotheses of the contested-concepts protocol, and the rule that decides on their outcomes.

Holm's two-sided p over all hypotheses below .05 makes a hypothesis supported or, if the effect has
the opposite sign, contradicted. Otherwise it is equivalent if the study declared a margin and two
one-sided tests place the effect within it, and else undecided: a missing effect is never concluded
from a large p. A hypothesis without data counts as p = 1 in the family.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.frames import JUDGE, PANEL, once_per_call, select_rows, varied_knobs
from judge_gym.analysis.metrics.polarization import excess_by_item, panel_null
from judge_gym.analysis.metrics.stated_agreement import (
    difference_by_item,
    probed_verdicts,
    verdicts_without_draws,
)
from judge_gym.analysis.metrics.swap_sensitivity import swap_pairs
from judge_gym.analysis.panels import (
    COLUMNS,
    Dataset,
    Samples,
    common_rubrics,
    distances_without_draws,
    item_distances,
    row_means,
)
from judge_gym.analysis.stats.clusters import ErrorPart
from judge_gym.analysis.stats.intervals import (
    MANY_DRAWS,
    Estimate,
    Floats,
    draw_part,
    half_width,
    p_value,
    pseudo_values,
    student,
    undefined,
)
from judge_gym.analysis.stats.paired_tests import holm

ALPHA = 0.05
MIN_ITEMS = 5
SIDE = ["rubric_draw", "evidence", JUDGE, "rubric_author"]
MIN_CONCEPTS = 4
"""The number of concepts per arm from which a claim is about concepts in general."""
RULE = (
    f"supported or contradicted if Holm's two-sided p over all hypotheses is below {ALPHA:g}; else "
    "equivalent if the study declared a margin and the effect lies within it by two one-sided "
    f"tests; else undecided; at least {MIN_ITEMS} items"
)


class HypothesisResult(NamedTuple):
    """An estimate, the p-value that corresponds to its interval, and a note for the reader."""

    estimate: Estimate
    p: float
    note: str
    parts: tuple[ErrorPart, ...] = ()
    """The components of the estimate's error."""


def hypotheses(samples: Samples, margin: float | None = None) -> pd.DataFrame:
    """Tests the hypotheses: each is supported, contradicted, equivalent, undecided, or lacks data.

    Effects smaller than the margin are negligible; without one, none is shown to be.
    """
    data = Dataset.of(samples)
    results = [
        contested_distance(data.frame),
        overstated_agreement(data),
        confidence_in_own_rubric(data.compute(swap_pairs)),
        _forced_choice(data),
    ]
    known = [
        one.p if one.estimate.known and one.estimate.n >= MIN_ITEMS else np.nan for one in results
    ]
    corrected = holm(np.nan_to_num(known, nan=1.0))
    within = [
        equivalence_p(one, margin) if margin and np.isfinite(p) else 1.0
        for one, p in zip(results, known, strict=True)
    ]
    rows = []
    for (name, claim, estimand), one, p, adjusted, equivalent in zip(
        HYPOTHESES, results, known, corrected, holm(np.array(within)), strict=True
    ):
        tested = np.isfinite(p)
        rows.append(
            {
                "hypothesis": name,
                "claim": claim,
                "estimand": estimand,
                "rule": RULE,
                **one.estimate.named("value", "low", "high", "items"),
                "p": p,
                "holm": adjusted if tested else np.nan,
                "outcome": _outcome(one, adjusted, equivalent, margin) if tested else "no data",
                "note": one.note,
            }
        )
    return pd.DataFrame(rows)


def equivalence_p(result: HypothesisResult, margin: float) -> float:
    """Returns the p-value of two one-sided tests that an effect lies within the margin."""
    sides = []
    for inside in (margin + result.estimate.value, margin - result.estimate.value):
        p = p_value(inside, result.parts) / 2
        sides.append(p if inside > 0 else 1 - p)
    return max(sides)


def _outcome(
    result: HypothesisResult, adjusted: float, equivalent: float, margin: float | None
) -> str:
    """Returns the outcome of a tested hypothesis, whose claim is an effect above 0."""
    value = result.estimate.value
    if adjusted < ALPHA:
        negligible = margin and abs(value) + half_width(result.parts, 1 - 2 * ALPHA) < margin
        decided = "supported" if value > 0 else "contradicted"
        return f"{decided}, negligible" if negligible else decided
    return "equivalent" if margin and equivalent < ALPHA else "undecided"


def contested_distance(frame: pd.DataFrame) -> HypothesisResult:
    """Tests the distance under a third party's rubric, contested concepts minus controls.

    From four concepts per arm on, concepts are the sample, and the claim is about concepts in
    general; with fewer, items are, and it holds for these concepts, pools and rubrics only.
    """
    kinds = select_rows(frame, frame["task_type"].isin(["ecc", "control"]))
    if kinds["task_type"].nunique() < 2:
        return _lacking("needs tasks of type ecc and of type control")
    shared = common_rubrics(kinds)
    if shared.empty:
        return _lacking("no rubric by a third party; name one in the study's swap: ['*', author]")
    by = ["task_type", "concept", "variant", "task", "rubric", "rubric_draw"]
    distances = item_distances(once_per_call(shared, [JUDGE]), by)
    concepts = distances.groupby(["task_type", "concept", "evidence"], observed=True)["distance"]
    means = concepts.mean().groupby(level=["task_type", "concept"], observed=True).mean().dropna()
    arms = [means[kind].to_numpy() for kind in ("ecc", "control") if kind in means.index]
    counts = [len(arm) for arm in arms]
    if len(arms) == 2 and min(counts) >= MIN_CONCEPTS:
        note = f"over {counts[0]} contested and {counts[1]} control concepts"
        return two_samples(*arms)._replace(note=note)
    contested, plain = (
        _by_draw(part.groupby(["rubric_draw", "evidence"], observed=True)["distance"].mean())
        for part in (distances[distances["task_type"] == kind] for kind in ("ecc", "control"))
    )
    found = two_samples(contested, plain)
    draws = min(len(contested), len(plain))
    rubrics = ", pools and rubrics" if draws < MANY_DRAWS else " and pools"
    few = f"on these concepts{rubrics}: {counts[0]} contested, {counts[-1]} control"
    return found._replace(note=found.note or few)


def overstated_agreement(samples: Samples) -> HypothesisResult:
    """Tests the stated probability of expert agreement minus its reference."""
    data = Dataset.of(samples)
    verdicts = data.compute(probed_verdicts), *data.compute(verdicts_without_draws)
    gaps, *lacking = (difference_by_item(part) for part in verdicts)
    if gaps.empty:
        return _lacking("needs probes, and three verdicts of other judges on other displays")
    return one_sample(gaps, _drawn(gaps, lacking))


def confidence_in_own_rubric(pairs: pd.DataFrame) -> HypothesisResult:
    """Tests the stated probability under the own rubric minus under a rival's."""
    rivals = pairs[pairs["role"] == "rival"]
    if rivals.empty:
        return _lacking("needs probed samples under own and under rivals' rubrics (swap)")
    calls = rivals[["own_call", "other_call"]]
    rivals = rivals[calls.isna().any(axis=1) | ~calls.duplicated()]
    gaps = (rivals["own"] - rivals["other"]).groupby([rivals[name] for name in SIDE]).mean()
    table = _by_draw(gaps.groupby(level=["rubric_draw", "evidence"]).mean())
    return one_sample(row_means(table.T), table, mean_over_draws=True)


def _forced_choice(data: Dataset) -> HypothesisResult:
    """Returns `forced_choice_distance` with the same difference in P above chance as a note."""
    found = forced_choice_distance(data.frame)
    return found._replace(note=_forced_divergence(data)) if found.estimate.known else found


def forced_choice_distance(frame: pd.DataFrame) -> HypothesisResult:
    """Tests the distance of judges with single verdicts minus with subsets, on the same items."""
    if "verdict.method" not in frame or frame["verdict.method"].nunique() < 2:
        return _lacking("needs verdict.method single and subset")
    kept = (~frame["is_swap"] & frame["verdict.method"].isin(["single", "subset"])).to_numpy()
    by = ["task", "verdict.method", *_matched_knobs(frame[kept])]
    own = frame.loc[kept, [name for name in dict.fromkeys([*by, *COLUMNS]) if name in frame]]
    own = once_per_call(own.assign(**{k: own[k].astype(str) for k in by[1:]}), [JUDGE])
    key = [column for column in by if column != "verdict.method"] + ["judge", "other"]
    gaps = _single_minus_subset(item_distances(own, by), key, "distance")
    if gaps.empty:
        return _lacking("no item has two scored replicates of two judges under both methods")
    lacking = [
        _single_minus_subset(part, key, "distance") for part in distances_without_draws(own, by)
    ]
    return one_sample(gaps, _drawn(gaps, lacking))


def _single_minus_subset(found: pd.DataFrame, key: Sequence[str], value: str) -> pd.Series:
    """Returns the difference on each item, averaged over all matched designs."""
    wide = found.pivot_table(index=[*key, "evidence"], columns="verdict.method", values=value)
    wide = wide.reindex(columns=["single", "subset"])
    return (wide["single"] - wide["subset"]).dropna().groupby(level="evidence").mean()


def _forced_divergence(data: Dataset) -> str:
    """Describes the difference of single and subset verdicts in P above chance."""
    knobs = _matched_knobs(data.frame)
    columns = [*PANEL, "verdict.method", *knobs]
    levels = data.frame.drop_duplicates(PANEL)[columns].astype(str).set_index(PANEL)
    parts = []
    for panel in data.panels:
        above = excess_by_item(panel, panel_null(panel), "p")
        task, variant = str(panel.key["task"]), str(panel.key["variant"])
        named = levels.loc[[(task, variant)]].iloc[0].to_dict()
        values = {"task": task, "evidence": panel.evidence, "above": above, **named}
        parts.append(pd.DataFrame(values))
    gaps = _single_minus_subset(pd.concat(parts), ["task", *knobs], "above")
    found = student(gaps)
    return f"P above chance: {found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _matched_knobs(frame: pd.DataFrame) -> list[str]:
    knobs = [knob for knob in varied_knobs(frame) if knob != "verdict.method"]
    return [*knobs, *(["series"] if frame["series"].nunique() > 1 else [])]


HYPOTHESES = (
    (
        "H1 entrenchment",
        "Judges disagree more on contested concepts than on controls, whatever the rubric.",
        "squared distance of judges under a third party's rubric, ecc minus control",
    ),
    (
        "H2 consensus hallucination",
        "Judges overstate how far the other judges agree with them.",
        "stated probability minus the reference from the other judges' verdicts",
    ),
    (
        "H3 framework sensitivity",
        "Stated agreement drops under a rival's rubric.",
        "stated probability, own minus rival's rubric",
    ),
    (
        "H4 forced-choice inflation",
        "Some of the distance between single-stage verdicts comes from forced choice.",
        "squared distance of judges, single minus subset, same items",
    ),
)


def _by_draw(values: pd.Series) -> Floats:
    """Returns values by draw of the rubric and item as a table; missing ones are NaN."""
    return values.unstack("evidence").dropna(axis=1, how="all").to_numpy(dtype=float)


def _drawn(whole: pd.Series, without: Sequence[pd.Series]) -> Floats | None:
    """Returns pseudo-values by draw and item; None if draws are few."""
    if not without:
        return None
    return pseudo_values(whole, np.stack([one.reindex(whole.index) for one in without]))


def one_sample(
    values: npt.ArrayLike, draws: npt.ArrayLike | None = None, *, mean_over_draws: bool = False
) -> HypothesisResult:
    """Tests a mean over items by Student's t, from five draws of rubrics on of draws too.

    `draws` are the contributions of draws of rubrics, by draw and item.
    """
    return _tested([np.asarray(values, dtype=float)], [draws], mean_over_draws)


def two_samples(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> HypothesisResult:
    """Tests the difference of two means over different items by Welch's t, and of draws too.

    A side is one value per item, or a table of draws by items.
    """
    tables = [np.atleast_2d(np.asarray(side, dtype=float)) for side in (ours, theirs)]
    return _tested([row_means(table.T) for table in tables], tables, True)


def _tested(
    sides: Sequence[Floats], draws: Sequence[npt.ArrayLike | None], mean_over_draws: bool
) -> HypothesisResult:
    """Tests the mean of the first side, minus that of a second if there is one."""
    means = [values[~np.isnan(values)] for values in sides]
    counts = [len(values) for values in means]
    known = min(counts) > 0
    value = float(means[0].mean() - sum(other.mean() for other in means[1:])) if known else np.nan
    if min(counts) < 2 or all(np.ptp(values) == 0 for values in means):
        return HypothesisResult(
            undefined(sum(counts), value), np.nan, "too few items, or no variance"
        )
    squares = [float(values.var(ddof=1)) / len(values) for values in means]
    # Welch's degrees of freedom; for one side, its number of items minus one.
    lost = sum(square**2 / (n - 1) for square, n in zip(squares, counts, strict=True))
    parts = [ErrorPart(float(np.sqrt(sum(squares))), sum(squares) ** 2 / lost)]
    tables = [np.asarray(table, dtype=float) for table in draws if table is not None]
    parts += [
        draw_part(table, mean_over_draws=mean_over_draws)
        for table in tables
        if len(table) >= MANY_DRAWS
    ]
    half = half_width(parts)
    estimate = Estimate(value, value - half, value + half, sum(counts))
    return HypothesisResult(estimate, p_value(value, parts), "", tuple(parts))


def _lacking(what: str) -> HypothesisResult:
    return HypothesisResult(undefined(), np.nan, what)
