"""Calibration of the judges' stated probability that most experts would agree with a verdict.

A judge states a probability p that a majority of three experts would choose a stage in its set. The
reference y is the chance that most of three others' verdicts on the item fall into it: those of
people where three of them labelled the item, else of the other judges. How far other judges agree
is not how far experts do.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from judge_gym.analysis.belief.masses import matched
from judge_gym.analysis.frames import (
    CELL,
    JUDGE,
    PANEL,
    cluster_codes,
    first_rows,
    once_per_call,
)
from judge_gym.analysis.stats.clusters import infers
from judge_gym.analysis.stats.intervals import (
    DISTANCE,
    LEVEL,
    SHARE,
    Estimate,
    Floats,
    Scale,
    bootstrap_sums,
    difference,
    estimate,
    t_quantile,
    undefined,
    without_each_draw,
)
from judge_gym.analysis.verdicts import Dataset, Samples, ratio

CONFIDENT = 0.8
CONTRADICTED = 0.5
BINS = 10
CLEAR = 2.0
"""The standard errors between a bin's gap and 0 from which its sign is taken as known."""
OUTCOMES = ("probed", "abstained", "unread", "probe_unread", "unprobed")
"""The outcomes of a sample; the last three are an unreadable verdict, an unreadable probe, and a
scored verdict that was never probed."""
_Ints = npt.NDArray[np.int64]


PEOPLE, SAME_RUBRIC, OWN_RUBRICS = "people", "judges, same rubric", "judges, own rubrics"
REFERENCES = (PEOPLE, SAME_RUBRIC, OWN_RUBRICS)
"""Whose verdicts a reference is made of, the most telling first."""
MIN_ITEMS = 5
"""The number of items from which a kind of reference is used alone."""


def probed_verdicts(frame: pd.DataFrame, people: pd.DataFrame | None = None) -> pd.DataFrame:
    """Puts the stated probability and the reference beside every verdict.

    The pool of a verdict is the labels of people, if three of them labelled the item. Else it is
    the other judges' scored verdicts on the item under the same rubric, which they share or
    used in a swap; with fewer than three of these, their verdicts under the rubrics of their own
    designs. Verdicts of the same replicate, which saw the same display, are in no pool.

    Returns:
        A row per sample, with CELL, evidence, cluster, replicate, probe_call_id, outcome
        (`OUTCOMES`), size (of the set; 0 without one), p, y (NaN with fewer than three verdicts in
        the pool), pool (its size), reference (`REFERENCES`).
    """
    frame = once_per_call(frame, CELL)
    mask = frame["mask"].to_numpy(np.int64)
    without_swaps = ~frame["is_swap"].to_numpy(dtype=bool)
    judge, replicate = _numbered(frame, [JUDGE]), _numbered(frame, ["replicate"])
    item = ["task", "variant", "evidence"]
    every = np.ones(len(frame), dtype=bool)
    sums = _pool_sums(_numbered(frame, item), judge, replicate, mask, without_swaps)
    same = _pool_sums(_numbered(frame, [*item, "rubric"]), judge, replicate, mask, every)
    reference = np.full(len(frame), OWN_RUBRICS, dtype=object)
    for kind, other_sums in ((SAME_RUBRIC, same), (PEOPLE, _label_sums(frame, mask, people))):
        enough = other_sums[:, 0] > 2.5
        sums[enough], reference[enough] = other_sums[enough], kind
    columns = frame[[*CELL, "evidence", "cluster", "replicate", "probe_call_id"]]
    outcome = _outcome(frame)
    probed = (outcome == "probed").to_numpy()
    return columns.assign(
        outcome=outcome,
        size=np.bitwise_count(mask).astype(np.int64),
        p=frame["probe"].where(probed).astype(float),
        y=np.where(probed, majority_of_three(sums), np.nan).round(12),
        pool=sums[:, 0].round().astype(np.int64),
        reference=reference,
    )


def _label_sums(frame: pd.DataFrame, mask: _Ints, people: pd.DataFrame | None) -> Floats:
    """Returns how many people labelled each verdict's item, and how many gave a stage in its set.

    A label is one stage, so that the sums of all powers of agreement are equal. A label is given
    under the rubric of the design: a swapped verdict has none.
    """
    sums = np.zeros((len(frame), 4))
    if people is None or people.empty:
        return sums
    key = ["tag", "evidence"]
    votes = people.drop_duplicates([*key, "rater"]).groupby([*key, "stage"], observed=True).size()
    without_swaps = ~frame["is_swap"].to_numpy(dtype=bool)
    items = pd.MultiIndex.from_frame(frame[key])
    for stage, counts in votes.groupby(level="stage"):
        n = counts.droplevel("stage").reindex(items).fillna(0).to_numpy(float) * without_swaps
        sums[:, 0] += n
        sums[:, 1:] += (n * (mask >> (int(str(stage)) - 1) & 1))[:, None]
    return sums


def stated_agreement(
    samples: Samples, people: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, tuple[pd.DataFrame, ...]]:
    """Returns the probed verdicts of all samples, and without each draw of rubrics in turn."""
    data = Dataset.of(samples)
    if people is None or people.empty:
        return data.compute(probed_verdicts), data.compute(verdicts_without_draws)
    return probed_verdicts(data.frame, people), verdicts_without_draws(data.frame, people)


def most_telling(verdicts: pd.DataFrame) -> str:
    """Returns the kind of reference to compare with: the first that enough items have."""
    items = _with_answer(verdicts).groupby("reference")["evidence"].nunique()
    enough = [kind for kind in REFERENCES if items.get(kind, 0) >= MIN_ITEMS]
    return enough[0] if enough else str(items.idxmax()) if len(items) else OWN_RUBRICS


def majority_of_three(sums: Floats) -> Floats:
    """Returns the mean over distinct triples of the chance that most of the three agree.

    For three distinct verdicts with agreement a, b and c, the chance is ab + ac + bc - 2abc. Its
    mean over triples is 3 mean(ab) - 2 mean(abc), which power sums give without listing triples.

    Args:
        sums: a row per verdict: the size of its pool, and the sums of a, of a^2 and of a^3.

    >>> majority_of_three(np.array([[4.0, 3.0, 3.0, 3.0]])).round(6).tolist()
    [1.0]
    >>> majority_of_three(np.array([[2.0, 2.0, 2.0, 2.0]])).tolist()
    [nan]
    """
    n, first, second, third = np.moveaxis(sums, -1, 0)
    pairs = first**2 - second
    triples = first**3 - 3 * first * second + 2 * third
    with np.errstate(divide="ignore", invalid="ignore"):
        y = 3 * pairs / (n * (n - 1)) - 2 * triples / (n * (n - 1) * (n - 2))
    majority: Floats = np.where(n > 2.5, y, np.nan)
    return majority


def _pool_sums(
    item: _Ints, judge: _Ints, replicate: _Ints, mask: _Ints, pooled: npt.NDArray[np.bool_]
) -> Floats:
    """Returns the size of each verdict's pool, and the sums of the powers of agreement.

    By inclusion and exclusion: all verdicts on the item, minus those of the judge, minus those of
    the replicate, plus those of both.
    """
    judges, replicates = (int(number.max(initial=0)) + 1 for number in (judge, replicate))
    by_judge = item * judges + judge
    by_replicate = item * replicates + replicate
    both = by_judge * replicates + replicate
    code = 2 * mask + pooled
    return (
        _agreement_sums(item, code)
        - _agreement_sums(by_judge, code)
        - _agreement_sums(by_replicate, code)
        + _agreement_sums(both, code)
    )


def _agreement_sums(group: _Ints, held: _Ints) -> Floats:
    """Returns the number of pooled verdicts of each verdict's group, and sums of a, a^2 and a^3.

    Agreement depends on the chosen sets alone, so only distinct pairs of sets are compared. `held`
    is the set of each verdict, and in the lowest bit whether it is in the pool.
    """
    sets, code = np.unique(held, return_inverse=True)
    distinct, of, size = np.unique(
        group * len(sets) + code, return_inverse=True, return_counts=True
    )
    owner, kind = distinct // len(sets), sets[distinct % len(sets)]
    subset = kind >> 1
    scored = np.flatnonzero((subset > 0) & (kind & 1 > 0))
    ours, partner = matched(owner, owner[scored])
    theirs = scored[partner]
    a = np.bitwise_count(subset[ours] & subset[theirs]) / np.bitwise_count(subset[theirs])
    sums: list[Floats] = []
    powers: Floats = size[theirs].astype(float)
    for _ in range(4):
        sums.append(np.bincount(ours, powers, len(distinct)).astype(float))
        powers = powers * a
    return np.stack(sums, axis=1)[of].astype(float)


def _outcome(frame: pd.DataFrame) -> pd.Series:
    scored = frame["status"] == "scored"
    unread = scored & frame["probe"].isna() & frame["probe_status"].notna()
    cases = [~scored & (frame["status"] == "abstained"), ~scored, unread, frame["probe"].isna()]
    names = ["abstained", "unread", "probe_unread", "unprobed"]
    return pd.Series(np.select(cases, names, "probed"), index=frame.index)


def _numbered(frame: pd.DataFrame, columns: Sequence[str]) -> _Ints:
    numbers = frame.groupby(list(columns), observed=True, dropna=False).ngroup()
    return numbers.to_numpy().astype(np.int64)


_READ = ("evidence", "cluster", "p", "y", "probe_call_id")
"""The columns of verdicts that are averaged by item."""


class VerdictsByItem(NamedTuple):
    """Verdicts with a reference, by item."""

    names: npt.NDArray[Any]
    """The evidence of each item, sorted."""
    clusters: _Ints
    """The number of each item's cluster."""
    item: _Ints
    """The index of each verdict's item."""
    p: Floats
    y: Floats

    @staticmethod
    def of(verdicts: pd.DataFrame) -> "VerdictsByItem":
        """Returns the verdicts with a reference, sorted by item."""
        complete = _with_answer(verdicts[[name for name in _READ if name in verdicts]])
        item, names = pd.factorize(complete["evidence"], sort=True)
        order = np.argsort(item, kind="stable")
        return VerdictsByItem(
            np.asarray(names),
            cluster_codes(complete.iloc[first_rows(item)]),
            item[order].astype(np.int64),
            complete["p"].to_numpy(float)[order],
            complete["y"].to_numpy(float)[order],
        )

    def where(self, kept: npt.NDArray[np.bool_]) -> "VerdictsByItem":
        """Selects some of the verdicts. Items without any are left out."""
        items, item = np.unique(self.item[kept], return_inverse=True)
        clusters = pd.factorize(self.clusters[items])[0]
        return VerdictsByItem(self.names[items], clusters, item, self.p[kept], self.y[kept])

    def mean(self, values: Floats) -> Floats:
        """Returns the mean by item of a value of each verdict, ignoring missing values."""
        has_value, count = ~np.isnan(values), len(self.names)
        sums = np.bincount(self.item[has_value], values[has_value], count)
        return ratio(sums, np.bincount(self.item[has_value], minlength=count))

    @property
    def gaps(self) -> Floats:
        """The stated probability minus the reference of each verdict."""
        return self.p - self.y

    @property
    def bias(self) -> pd.Series:
        """The mean by item of the stated probability minus the reference."""
        return pd.Series(self.mean(self.gaps), pd.Index(self.names, name="evidence"))

    @property
    def mostly_equal(self) -> bool:
        """Whether most items have the same reference, as where nearly all verdicts are alike."""
        counts = np.unique(self.mean(self.y).round(9), return_counts=True)[1]
        return bool(counts.max(initial=0) > len(self.names) / 2)

    @property
    def bins(self) -> _Ints:
        """The bin of each stated probability, where 1 is in the last."""
        return np.minimum((self.p * BINS + 1e-9).astype(np.int64), BINS - 1)


# --- calibration ---------------------------------------------------------------------------------


def verdicts_without_draws(
    frame: pd.DataFrame, people: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, ...]:
    """Lists the probed verdicts without each draw of rubrics, if draws are many."""
    probed = partial(probed_verdicts, people=people)
    return tuple(without_each_draw(frame, PANEL, probed, keep_others=True).values())


def calibration(
    verdicts: pd.DataFrame, by: Sequence[str] = (), without: Sequence[pd.DataFrame] = ()
) -> pd.DataFrame:
    """Compares stated probabilities with their references, per group if `by` names any.

    It takes the results of `probed_verdicts` and `verdicts_without_draws`. Compare judges at equal
    set size: `by=[*CELL, "size"]`. Replicates are averaged per item, and items are the sample.

    Returns:
        Columns `by`; `OUTCOMES` (their counts); without_reference (probed, but with fewer than
        three in the pool); items; and the estimates bias (mean p - y), brier (mean of
        p^2 - 2py + y), error (expected calibration error) and hallucination (the share of verdicts
        with p above .8 that the others contradict, y below .5), each with _low and _high. A tie (y
        of exactly .5) is no contradiction; `hallucination_with_ties` counts it as one.
    """
    rows = []
    for key, part, items, without_draws in _groups(verdicts, by, without):
        bias_scale = difference(1, cautious=items.mostly_equal)
        estimates = {
            "bias": _estimated(bias_scale, lambda of: of.gaps, items, without_draws),
            "brier": _estimated(
                DISTANCE, lambda of: of.p**2 - 2 * of.p * of.y + of.y, items, without_draws
            ),
            "error": _calibration_error(items, key, without_draws),
            "hallucination": _estimated(SHARE, _contradicted, items, without_draws),
            "hallucination_with_ties": _estimated(SHARE, _not_confirmed, items, without_draws),
        }
        outcome = part["outcome"].to_numpy()
        rows.append(
            key
            | {name: int((outcome == name).sum()) for name in OUTCOMES}
            | {"without_reference": int((part["p"].notna() & part["y"].isna()).sum())}
            | {"items": len(items.names)}
            | {c: value for name, e in estimates.items() for c, value in e.columns(name).items()}
        )
    return pd.DataFrame(rows)


def reliability(
    verdicts: pd.DataFrame, by: Sequence[str] = (), without: Sequence[pd.DataFrame] = ()
) -> pd.DataFrame:
    """Returns the reliability curve: the reference by stated probability, in ten equal bins.

    It takes the results of `probed_verdicts` and `verdicts_without_draws`.

    Returns:
        Columns `by`, bin (its lower edge), verdicts, items, stated (mean p), and y with y_low and
        y_high over items. Empty bins have no row.
    """
    rows = []
    for key, _, items, without_draws in _groups(verdicts, by, without):
        for number in np.unique(items.bins).tolist():
            here, *without_draw = (of.where(of.bins == number) for of in (items, *without_draws))
            frequency = _estimated(SHARE, lambda of: of.y, here, without_draw)
            rows.append(
                key
                | {"bin": number / BINS, "verdicts": len(here.p), "items": frequency.n}
                | {"stated": float(here.mean(here.p).mean())}
                | frequency.columns("y")
            )
    columns = [*by, "bin", "verdicts", "items", "stated", "y", "y_low", "y_high"]
    return pd.DataFrame(rows, columns=columns)


_Group = tuple[dict[str, Any], pd.DataFrame, VerdictsByItem, list[VerdictsByItem]]
"""The key of a group, its verdicts, those with a reference, and these without each draw."""


def _groups(
    verdicts: pd.DataFrame, by: Sequence[str], without: Sequence[pd.DataFrame]
) -> Iterator[_Group]:
    if not by:
        yield (
            {},
            verdicts,
            VerdictsByItem.of(verdicts),
            [VerdictsByItem.of(table) for table in without],
        )
        return
    lacking = [dict(list(table.groupby(list(by), observed=True))) for table in without]
    for key, part in verdicts.groupby(list(by), observed=True):
        without_draws = [VerdictsByItem.of(table[key]) for table in lacking if key in table]
        yield dict(zip(by, key, strict=True)), part, VerdictsByItem.of(part), without_draws


def _estimated(
    scale: Scale,
    values: Callable[[VerdictsByItem], Floats],
    items: VerdictsByItem,
    without: Sequence[VerdictsByItem],
) -> Estimate:
    draw_means = [
        np.asarray(
            pd.Series(items_of_draw.mean(values(items_of_draw)), items_of_draw.names).reindex(
                items.names
            ),
            dtype=float,
        )
        for items_of_draw in without
    ]
    means = items.mean(values(items))
    return estimate(means, items.clusters, scale=scale, without=draw_means, mean_over_draws=False)


def _contradicted(of: VerdictsByItem) -> Floats:
    return np.where(of.p > CONFIDENT, of.y < CONTRADICTED, np.nan)


def _not_confirmed(of: VerdictsByItem) -> Floats:
    return np.where(of.p > CONFIDENT, of.y <= CONTRADICTED, np.nan)


def _with_answer(part: pd.DataFrame) -> pd.DataFrame:
    """Selects verdicts with a reference, and counts a probe shared by variants once.

    Its reference is the mean over the variants, whose pools differ.
    """
    complete = part[part["p"].notna() & part["y"].notna()]
    if "probe_call_id" not in complete or complete["probe_call_id"].is_unique:
        return complete
    call = ["evidence", "probe_call_id"]
    mean = complete.groupby(call)["y"].transform("mean")
    repeated = complete.duplicated(call) & complete["probe_call_id"].notna()
    return complete.assign(y=mean.fillna(complete["y"]))[~repeated]


def _calibration_error(
    items: VerdictsByItem, key: dict[str, Any], without: Sequence[VerdictsByItem]
) -> Estimate:
    """Returns the expected calibration error: the mean distance of p from y over bins.

    Chance alone makes it larger than 0, so compare it at equal n. In a bin with a clear sign,
    chance moves the error up and down, in the others only up. The lower end of the interval takes
    that into account; a plain bootstrap would exclude 0 for calibrated judges.
    """
    gaps, counts = _binned(items)
    n = len(items.names)
    if len(gaps) < 3:
        return undefined(n)
    total, verdicts = gaps.sum(axis=0), counts.sum()
    value = float(np.abs(total).sum() / verdicts)
    sign = np.sign(total)
    # The contributions of items, and of draws, to the gap of a bin and to the distance.
    gaps_by = [(gaps - counts * (total / np.maximum(counts.sum(axis=0), 1.0))) / verdicts]
    sides_by = [(gaps * sign - counts * value) / verdicts]
    if without:
        gaps_by.append(_by_draw(without))
        sides_by.append(gaps_by[-1] * sign)
    clear = np.abs(total) / verdicts > CLEAR * np.hypot.reduce([_error(part) for part in gaps_by])
    change = np.zeros(1)
    for name, by_bin, sides in zip(("items", "draws"), gaps_by, sides_by, strict=False):
        columns = [sides[:, clear].sum(axis=1), sides.sum(axis=1), by_bin[:, ~clear]]
        change = change + _resampled_change(
            np.column_stack(columns), ["calibration error", name, key]
        )
    up = change[:, 0] + np.abs(change[:, 2:]).sum(axis=1)
    low = value - float(np.quantile(up, (1 + LEVEL) / 2))
    high = value - float(np.quantile(change[:, 1], (1 - LEVEL) / 2))
    if not high > low or (len(gaps) < n and not infers(items.clusters)):
        return undefined(n, value)
    return Estimate(value, max(0.0, low), high, n, len(gaps))


def _binned(items: VerdictsByItem) -> tuple[Floats, Floats]:
    """Returns the sum of p - y and the number of verdicts, by cluster of items and bin."""
    bin_of_cluster = items.clusters[items.item] * BINS + items.bins
    size = (int(items.clusters.max(initial=-1)) + 1) * BINS
    gaps, counts = (
        np.bincount(bin_of_cluster, weights, size).reshape(-1, BINS)
        for weights in (items.gaps, None)
    )
    return gaps.astype(float), counts.astype(float)


def _by_draw(without: Sequence[VerdictsByItem]) -> Floats:
    """Returns the contribution of each draw to the mean gap of each bin."""
    means = np.stack([gaps.sum(axis=0) / counts.sum() for gaps, counts in map(_binned, without)])
    added: Floats = (1 - 1 / len(means)) * (means.mean(axis=0) - means)
    return added


def _error(rows: Floats) -> Floats:
    """Returns the standard error of each column's sum."""
    error: Floats = np.sqrt(len(rows) / (len(rows) - 1) * (rows**2).sum(axis=0))
    return error


def _resampled_change(rows: Floats, key: Any) -> Floats:
    """Returns the changes of sums over resampled rows, widened for few rows by Student's t."""
    n = len(rows)
    widening = t_quantile(n - 1) / special.ndtri((1 + LEVEL) / 2)
    changes: Floats = bootstrap_sums(rows, key=key) - rows.sum(axis=0)
    changes *= float(widening * np.sqrt(n / (n - 1)))
    return changes
