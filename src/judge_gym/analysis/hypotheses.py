"""The four hypotheses, each one row whose rule was fixed before the data.

A hypothesis is supported where its 95 % interval excludes 0 in the stated direction and Holm's p
over the four is below .05. One that the data cannot speak to has no p, and counts as 1 in Holm's
family, which is always the four.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.distances import common_rubrics, item_distances
from judge_gym.analysis.expertise import probed_verdicts
from judge_gym.analysis.frames import JUDGE, only, varied_knobs
from judge_gym.analysis.intervals import (
    Estimate,
    Floats,
    Part,
    draw_part,
    half_width,
    p_of,
    undefined,
)
from judge_gym.analysis.panels import DRAWS_FOR_BLOCKS, row_means
from judge_gym.analysis.permutations import holm
from judge_gym.analysis.swapping import swap_pairs

ALPHA = 0.05
MIN_ITEMS = 5
SIDE = ["rubric_draw", "evidence", JUDGE, "rubric_author"]
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
    kinds = only(frame, frame["task_type"].isin(["ecc", "control"]))
    if kinds["task_type"].nunique() < 2:
        return _lacking("needs tasks of type ecc and of type control")
    shared = common_rubrics(kinds)
    if shared.empty:
        return _lacking("no rubric by a third party; name one in the study's swap: ['*', author]")
    by = ["task_type", "variant", "task", "rubric", "rubric_draw"]
    distances = item_distances(shared, by)
    contested, plain = (
        _by_draw(part.groupby(["rubric_draw", "evidence"], observed=True)["distance"].mean())
        for part in (distances[distances["task_type"] == kind] for kind in ("ecc", "control"))
    )
    found = two_samples(contested, plain)
    draws = min(len(contested), len(plain))
    few = f"conditional on the rubrics drawn ({draws} per author)"
    return found._replace(note=found.note or (few if draws < DRAWS_FOR_BLOCKS else ""))


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
    return one_sample(_by_draw(gaps.groupby(level=["rubric_draw", "evidence"]).mean()))


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


def _by_draw(values: pd.Series) -> Floats:
    """Values by draw of the rubric and item as a table; not a number where there is none."""
    return values.unstack("evidence").dropna(axis=1, how="all").to_numpy(dtype=float)


def one_sample(values: npt.ArrayLike) -> Tested:
    """The mean over items, by Student's t; in a table of many draws by items, of draws too."""
    return _tested([np.atleast_2d(np.asarray(values, dtype=float))])


def two_samples(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> Tested:
    """The difference of two means over different items, by Welch's t; of draws too, as above."""
    return _tested([np.atleast_2d(np.asarray(side, dtype=float)) for side in (ours, theirs)])


def _tested(sides: Sequence[Floats]) -> Tested:
    """The mean of the first side, minus that of a second; a side is draws by items."""
    means = [row_means(side.T) for side in sides]
    means = [values[~np.isnan(values)] for values in means]
    counts = [len(values) for values in means]
    told = min(counts) > 0
    value = float(means[0].mean() - sum(other.mean() for other in means[1:])) if told else np.nan
    if min(counts) < 2 or all(np.ptp(values) == 0 for values in means):
        return Tested(undefined(sum(counts), value), np.nan, "too few items, or no variance")
    squares = [float(values.var(ddof=1)) / len(values) for values in means]
    # Welch's degrees of freedom; of one side, its items less one.
    lost = sum(square**2 / (n - 1) for square, n in zip(squares, counts, strict=True))
    parts = [Part(float(np.sqrt(sum(squares))), sum(squares) ** 2 / lost)]
    parts += [draw_part(side) for side in sides if len(side) >= DRAWS_FOR_BLOCKS]
    half = half_width(parts)
    estimate = Estimate(value, value - half, value + half, sum(counts))
    return Tested(estimate, p_of(value, parts), "")


def _lacking(what: str) -> Tested:
    return Tested(undefined(), np.nan, what)
