"""The four hypotheses, each one row whose rule was fixed before the data.

A hypothesis is supported where its 95 % interval excludes 0 in the stated direction and Holm's p
over the four is below .05. One that the data cannot speak to has no p, and counts as 1 in Holm's
family, which is always the four.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from judge_gym.analysis.distances import common_rubrics, item_distances, per_item
from judge_gym.analysis.expertise import probed_verdicts
from judge_gym.analysis.frames import JUDGE, varied_knobs
from judge_gym.analysis.intervals import LEVEL, Estimate, undefined
from judge_gym.analysis.permutations import holm
from judge_gym.analysis.swapping import swap_pairs

ALPHA = 0.05
MIN_ITEMS = 5
SIDE = ["evidence", JUDGE, "rubric_author"]
RULE = f"95 % interval above 0, Holm's p over the four below {ALPHA:g}; at least {MIN_ITEMS} items"


class Tested(NamedTuple):
    """An estimate, the p-value that belongs to its interval, and what a reader must know."""

    estimate: Estimate
    p: float
    note: str


def hypotheses(
    frame: pd.DataFrame, verdicts: pd.DataFrame | None = None, pairs: pd.DataFrame | None = None
) -> pd.DataFrame:
    """H1 to H4 on a tidy frame.

    Args:
        frame: the samples.
        verdicts: their `probed_verdicts`, where these are at hand.
        pairs: their `swap_pairs`, where these are at hand.

    Returns:
        A row each: hypothesis, claim, estimand, rule, value, low, high, items, p, holm, verdict
        (supported, not supported, insufficient data), note.
    """
    rows = []
    verdicts = probed_verdicts(frame) if verdicts is None else verdicts
    pairs = swap_pairs(frame) if pairs is None else pairs
    tested = [
        contested_distance(frame),
        overstated_agreement(verdicts),
        confidence_in_own_rubric(pairs),
        forced_choice_distance(frame),
    ]
    known = [
        one.p if one.estimate.known and one.estimate.n >= MIN_ITEMS else np.nan for one in tested
    ]
    corrected = holm(np.nan_to_num(known, nan=1.0))
    for (name, claim, estimand), one, p, adjusted in zip(
        HYPOTHESES, tested, known, corrected, strict=True
    ):
        value, low, high, items = one.estimate
        told = np.isfinite(p)
        supported = told and low > 0 and adjusted < ALPHA
        verdict = "supported" if supported else "not supported" if told else "insufficient data"
        rows.append(
            {
                "hypothesis": name,
                "claim": claim,
                "estimand": estimand,
                "rule": RULE,
                "value": value,
                "low": low,
                "high": high,
                "items": items,
                "p": p,
                "holm": adjusted if told else np.nan,
                "verdict": verdict,
                "note": one.note,
            }
        )
    return pd.DataFrame(rows)


def contested_distance(frame: pd.DataFrame) -> Tested:
    """Distance under a third party's rubric: contested concepts minus controls."""
    kinds = frame[frame["task_type"].isin(["ecc", "control"])]
    if kinds["task_type"].nunique() < 2:
        return _lacking("needs tasks of type ecc and of type control")
    shared = common_rubrics(kinds)
    if shared.empty:
        return _lacking("no rubric by a third party; name one in the study's swap: ['*', author]")
    found = per_item(
        item_distances(shared, ["task_type", "variant", "task", "rubric"]), ["task_type"]
    )
    contested, plain = (
        found.xs(kind, level="task_type").to_numpy() if kind in found.index else np.empty(0)
        for kind in ("ecc", "control")
    )
    draws = int(shared["rubric_draw"].nunique())
    note = "" if draws >= 5 else f"conditional on the rubrics drawn ({draws} per author)"
    return two_samples(contested, plain)._replace(note=note)


def overstated_agreement(verdicts: pd.DataFrame) -> Tested:
    """Stated probability of expert agreement minus what the other verdicts warrant."""
    known = verdicts.dropna(subset=["p", "y"])
    if known.empty:
        return _lacking("needs probes, and three verdicts of other judges on other displays")
    return one_sample((known["p"] - known["y"]).groupby(known["evidence"]).mean())


def confidence_in_own_rubric(pairs: pd.DataFrame) -> Tested:
    """Stated probability under the own rubric minus under a rival's."""
    rivals = pairs[pairs["role"] == "rival"]
    if rivals.empty:
        return _lacking("needs probed samples under own and under rivals' rubrics (swap)")
    gaps = (rivals["own"] - rivals["other"]).groupby([rivals[name] for name in SIDE]).mean()
    return one_sample(gaps.groupby(level="evidence").mean())


def forced_choice_distance(frame: pd.DataFrame) -> Tested:
    """Distance between judges with single verdicts minus with subsets, on the same items."""
    if "verdict.method" not in frame or frame["verdict.method"].nunique() < 2:
        return _lacking("needs verdict.method single and subset")
    own = frame[~frame["is_swap"] & frame["verdict.method"].isin(["single", "subset"])]
    by = ["task", "verdict.method", *_matched_knobs(own)]
    found = item_distances(own.assign(**{k: own[k].astype(str) for k in by}), by)
    key = [column for column in by if column != "verdict.method"] + ["judge", "other", "evidence"]
    wide = found.pivot_table(index=key, columns="verdict.method", values="distance")
    if set(wide.columns) != {"single", "subset"}:
        return _lacking("no item has two scored replicates of two judges under both methods")
    difference = (wide["single"] - wide["subset"]).dropna()
    return one_sample(difference.groupby(level="evidence").mean())


def _matched_knobs(frame: pd.DataFrame) -> list[str]:
    knobs = [knob for knob in varied_knobs(frame) if knob != "verdict.method"]
    return [*knobs, *(["series"] if frame["series"].nunique() > 1 else [])]


HYPOTHESES = (
    (
        "H1 entrenchment",
        "Judges lie farther apart on contested concepts than on plain ones, whatever the rubric.",
        "squared distance of judges under a third party's rubric, ecc minus control",
    ),
    (
        "H2 consensus hallucination",
        "Judges overstate how far experts would agree with them.",
        "stated probability minus what other judges' verdicts warrant",
    ),
    (
        "H3 framework sensitivity",
        "Stated agreement drops under a rival's rubric.",
        "stated probability, own minus rival's rubric",
    ),
    (
        "H4 forced-choice inflation",
        "Some of the distance between point verdicts is forced choice.",
        "squared distance of judges, single minus subset, same items",
    ),
)


def one_sample(values: pd.Series) -> Tested:
    """The mean over items, by Student's t."""
    known = values.dropna().to_numpy()
    if len(known) < 2 or np.ptp(known) == 0:
        mean = float(known.mean()) if len(known) else np.nan
        return Tested(undefined(len(known), mean), np.nan, "too few items, or no variance")
    found = stats.ttest_1samp(known, 0.0)
    interval = found.confidence_interval(LEVEL)
    estimate = Estimate(float(known.mean()), float(interval.low), float(interval.high), len(known))
    return Tested(estimate, float(found.pvalue), "")


def two_samples(ours: np.ndarray, theirs: np.ndarray) -> Tested:
    """The difference of two means over different items, by Welch's t."""
    if min(len(ours), len(theirs)) < 2 or np.ptp(ours) + np.ptp(theirs) == 0:
        return Tested(undefined(len(ours) + len(theirs)), np.nan, "too few items, or no variance")
    found = stats.ttest_ind(ours, theirs, equal_var=False)
    interval = found.confidence_interval(LEVEL)
    value, items = float(ours.mean() - theirs.mean()), len(ours) + len(theirs)
    estimate = Estimate(value, float(interval.low), float(interval.high), items)
    return Tested(estimate, float(found.pvalue), "")


def _lacking(what: str) -> Tested:
    return Tested(undefined(), np.nan, what)
