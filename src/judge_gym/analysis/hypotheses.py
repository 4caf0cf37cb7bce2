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

from judge_gym.analysis.frames import JUDGE, once_per_call, only, varied_knobs
from judge_gym.analysis.metrics.distances import (
    common_rubrics,
    distances_without_draws,
    item_distances,
)
from judge_gym.analysis.metrics.polarization import above_chance, panel_chance
from judge_gym.analysis.metrics.stated_agreement import (
    difference_by_item,
    probed_verdicts,
    verdicts_without_draws,
)
from judge_gym.analysis.metrics.swap_sensitivity import swap_pairs
from judge_gym.analysis.panels import COLUMNS, Judged, panels, row_means
from judge_gym.analysis.stats.intervals import Estimate, Floats, skewed, undefined
from judge_gym.analysis.stats.paired_tests import holm
from judge_gym.analysis.stats.rubric_draws import (
    DRAWS_FOR_BLOCKS,
    Part,
    draw_part,
    half_width,
    p_of,
    pseudo_values,
)

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
    frame: pd.DataFrame,
    verdicts: pd.DataFrame | None = None,
    pairs: pd.DataFrame | None = None,
    judged: Judged | None = None,
    without: Sequence[pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """H1 to H4 on a tidy frame.

    Args:
        frame: the samples.
        verdicts: their `probed_verdicts`, where these are at hand.
        pairs: their `swap_pairs`, where these are at hand.
        judged: their panels, where these are at hand.
        without: their `verdicts_without_draws`, where these are at hand.

    Returns:
        A row each: hypothesis, claim, estimand, rule, value, low, high, items, p, holm, verdict
        (supported, not supported, insufficient data), note.
    """
    rows = []
    verdicts = probed_verdicts(frame) if verdicts is None else verdicts
    pairs = swap_pairs(frame) if pairs is None else pairs
    without = verdicts_without_draws(frame) if without is None else without
    forced = forced_choice_distance(frame)
    if forced.estimate.known:
        forced = forced._replace(note=_forced_divergence(frame, judged))
    tested = [
        contested_distance(frame),
        overstated_agreement(verdicts, without),
        confidence_in_own_rubric(pairs),
        forced,
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
    distances = item_distances(once_per_call(shared, [JUDGE]), by)
    contested, plain = (
        _by_draw(part.groupby(["rubric_draw", "evidence"], observed=True)["distance"].mean())
        for part in (distances[distances["task_type"] == kind] for kind in ("ecc", "control"))
    )
    found = two_samples(contested, plain)
    draws = min(len(contested), len(plain))
    few = f"conditional on the rubrics drawn ({draws} per author)"
    return found._replace(note=found.note or (few if draws < DRAWS_FOR_BLOCKS else ""))


def overstated_agreement(verdicts: pd.DataFrame, without: Sequence[pd.DataFrame] = ()) -> Tested:
    """Stated probability of expert agreement minus what the other verdicts warrant."""
    gaps, *lacking = (difference_by_item(part) for part in (verdicts, *without))
    if gaps.empty:
        return _lacking("needs probes, and three verdicts of other judges on other displays")
    return one_sample(gaps, _drawn(gaps, lacking))


def confidence_in_own_rubric(pairs: pd.DataFrame) -> Tested:
    """Stated probability under the own rubric minus under a rival's."""
    rivals = pairs[pairs["role"] == "rival"]
    if rivals.empty:
        return _lacking("needs probed samples under own and under rivals' rubrics (swap)")
    calls = rivals[["own_call", "other_call"]]
    rivals = rivals[calls.isna().any(axis=1) | ~calls.duplicated()]
    gaps = (rivals["own"] - rivals["other"]).groupby([rivals[name] for name in SIDE]).mean()
    table = _by_draw(gaps.groupby(level=["rubric_draw", "evidence"]).mean())
    return one_sample(row_means(table.T), table, apart=True)


def forced_choice_distance(frame: pd.DataFrame) -> Tested:
    """Distance between judges with single verdicts minus with subsets, on the same items."""
    if "verdict.method" not in frame or frame["verdict.method"].nunique() < 2:
        return _lacking("needs verdict.method single and subset")
    wanted = (~frame["is_swap"] & frame["verdict.method"].isin(["single", "subset"])).to_numpy()
    by = ["task", "verdict.method", *_matched_knobs(frame[wanted])]
    own = frame.loc[wanted, [name for name in dict.fromkeys([*by, *COLUMNS]) if name in frame]]
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
    """The difference on each item, mean over what else is matched; empty without both."""
    wide = found.pivot_table(index=[*key, "evidence"], columns="verdict.method", values=value)
    wide = wide.reindex(columns=["single", "subset"])
    return (wide["single"] - wide["subset"]).dropna().groupby(level="evidence").mean()


def _forced_divergence(frame: pd.DataFrame, judged: Judged | None) -> str:
    """The same difference in P above chance, in words."""
    knobs = _matched_knobs(frame)
    columns = ["task", "variant", "verdict.method", *knobs]
    levels = frame.drop_duplicates(columns[:2])[columns].astype(str).set_index(columns[:2])
    parts = []
    for panel in panels(frame if judged is None else judged):
        above = above_chance(panel, panel_chance(panel), "p")
        task, variant = str(panel.key["task"]), str(panel.key["variant"])
        named = levels.loc[[(task, variant)]].iloc[0].to_dict()
        values = {"task": task, "evidence": panel.evidence, "above": above, **named}
        parts.append(pd.DataFrame(values))
    gaps = _single_minus_subset(pd.concat(parts), ["task", *knobs], "above")
    found = skewed(gaps)
    return f"P above chance: {found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


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


def _drawn(whole: pd.Series, without: Sequence[pd.Series]) -> Floats | None:
    """What each draw adds, by item, from the values without it; None where draws are few."""
    if not without:
        return None
    return pseudo_values(whole, np.stack([one.reindex(whole.index) for one in without]))


def one_sample(
    values: npt.ArrayLike, draws: npt.ArrayLike | None = None, *, apart: bool = False
) -> Tested:
    """The mean over items, by Student's t; from five draws on of draws too.

    Args:
        values: a value per item.
        draws: what draws of rubrics add to them: draws by items.
        apart: whether values are means over draws (`draws.estimated`).
    """
    return _tested([np.asarray(values, dtype=float)], [draws], apart=apart)


def two_samples(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> Tested:
    """The difference of two means over different items, by Welch's t; of draws too, as above.

    A side is a value per item, or a table of draws by items.
    """
    tables = [np.atleast_2d(np.asarray(side, dtype=float)) for side in (ours, theirs)]
    return _tested([row_means(table.T) for table in tables], tables, apart=True)


def _tested(
    sides: Sequence[Floats], draws: Sequence[npt.ArrayLike | None], *, apart: bool
) -> Tested:
    """The mean of the first side, minus that of a second."""
    means = [values[~np.isnan(values)] for values in sides]
    counts = [len(values) for values in means]
    told = min(counts) > 0
    value = float(means[0].mean() - sum(other.mean() for other in means[1:])) if told else np.nan
    if min(counts) < 2 or all(np.ptp(values) == 0 for values in means):
        return Tested(undefined(sum(counts), value), np.nan, "too few items, or no variance")
    squares = [float(values.var(ddof=1)) / len(values) for values in means]
    # Welch's degrees of freedom; of one side, its items less one.
    lost = sum(square**2 / (n - 1) for square, n in zip(squares, counts, strict=True))
    parts = [Part(float(np.sqrt(sum(squares))), sum(squares) ** 2 / lost)]
    tables = [np.asarray(table, dtype=float) for table in draws if table is not None]
    parts += [draw_part(table, apart=apart) for table in tables if len(table) >= DRAWS_FOR_BLOCKS]
    half = half_width(parts)
    estimate = Estimate(value, value - half, value + half, sum(counts))
    return Tested(estimate, p_of(value, parts), "")


def _lacking(what: str) -> Tested:
    return Tested(undefined(), np.nan, what)
