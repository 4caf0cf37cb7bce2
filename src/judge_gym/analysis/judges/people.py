"""Judges compared with people, and estimates from few labels and many verdicts.

Labels have columns tag, evidence, rater and stage. A judge's rating of an item summarises its
replicates; swaps are left out.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from scipy import special

from judge_gym.analysis.frames import CELL, ITEM, OrdinalFrame, cluster_codes
from judge_gym.analysis.stats.agreement import ratings, stage_shares
from judge_gym.analysis.stats.clusters import (
    MIN_FREEDOM,
    Codes,
    cluster_sums,
    grouped_codes,
    mean_error,
)
from judge_gym.analysis.stats.intervals import (
    LEVEL,
    SHARE,
    UNBOUNDED,
    Estimate,
    Floats,
    estimate,
    item_error,
    t_quantile,
    undefined,
)
from judge_gym.errors import DesignError, unknown

COLUMNS = ("tag", "evidence", "rater", "stage")
Annotators = Literal["experts", "skilled", "crowd"]
EPSILON: dict[Annotators, float] = {"experts": 0.2, "skilled": 0.15, "crowd": 0.1}
"""How much better a rater may be than the judge that replaces it; more for expensive raters."""
FALSE_DISCOVERIES = 0.05
WINNING_RATE = 0.5
MIN_ITEMS = 30
MIN_RATERS = 3


def labelled(frame: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Returns people's stages with the cells that judged the same items.

    A stage outside the scale of its experiment is refused. Columns: CELL, evidence, rater, stage,
    n_stages, cluster.
    """
    for column in COLUMNS:
        if column not in labels:
            raise DesignError(
                f"labels have no column {column!r}; they need {', '.join(COLUMNS)}", choices=COLUMNS
            )
    cells = frame.groupby(["tag", *CELL], observed=True)["n_stages"].max().reset_index()
    found = labels.merge(cells, on="tag")
    outside = found[(found["stage"] < 1) | (found["stage"] > found["n_stages"])]
    if len(outside):
        row = outside.iloc[0]
        raise DesignError(
            f"stage {row['stage']} by rater {row['rater']!r}; choose 1 to {row['n_stages']}"
        )
    clusters = frame[["task", "evidence", "cluster"]].drop_duplicates()
    found = found.drop_duplicates([*ITEM, "rater"]).merge(clusters, on=["task", "evidence"])
    return found[[*ITEM, "rater", "stage", "n_stages", "cluster"]]


def majority_agreement(frame: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Returns the share of a judge's weight on the stage that most raters gave.

    Returns:
        Columns CELL, value, low, high, items, tied (items on which raters tie, left out), raters.
    """
    people = labelled(frame, labels)
    by = [*ITEM, "cluster", "stage"]
    votes = people.groupby(by, observed=True).size().rename("votes").reset_index()
    top = votes[votes["votes"] == votes.groupby(ITEM, observed=True)["votes"].transform("max")]
    judged = stage_shares(frame).melt(ignore_index=False, var_name="stage", value_name="share")
    judged = judged.reset_index().astype({"stage": int})
    items = top.merge(judged, on=[*ITEM, "stage"])
    items = items.assign(tied=items.duplicated(ITEM, keep=False))
    rows = []
    for key, part in items.groupby(CELL, observed=True):
        clear = part[~part["tied"]]
        found = estimate(clear["share"], cluster_codes(clear), scale=SHARE)
        raters = people.loc[(people[CELL] == list(key)).all(axis=1), "rater"].nunique()
        tied = part.loc[part["tied"], "evidence"].nunique()
        rows.append([*key, *found[:4], tied, raters])
    return pd.DataFrame(rows, columns=[*CELL, "value", "low", "high", "items", "tied", "raters"])


# --- the alternative annotator test (Calderon, Reichart and Dror 2025) ---------------------------


def alt_test(
    frame: pd.DataFrame, labels: pd.DataFrame, annotators: Annotators = "experts"
) -> pd.DataFrame:
    """Tests whether a judge represents the raters as well as most of them represent each other.

    Returns:
        Columns CELL, epsilon, raters (with enough items), omega (the share of them that the judge
        beats), advantage (how often it is at least as close to the others as a rater), passed, and
        missing: what the test lacks, in words. In that case omega, advantage and passed are null.
    """
    each = alt_test_raters(frame, labels, annotators)
    rows = []
    for key, part in each.groupby(CELL, observed=True):
        tested = part[part["p"].notna()]
        row = {**dict(zip(CELL, key, strict=True)), "epsilon": EPSILON[annotators]}
        row |= {"raters": len(tested), "omega": np.nan, "advantage": np.nan, "passed": None}
        if len(tested) < MIN_RATERS:
            row["missing"] = (
                f"{len(tested)} raters share at least {MIN_ITEMS} judged items with another; "
                f"{MIN_RATERS} are needed"
            )
        else:
            omega = float(tested["beaten"].astype(bool).mean())
            advantage = float(tested["advantage"].mean())
            row |= {"omega": omega, "advantage": advantage, "passed": omega >= WINNING_RATE}
            row["missing"] = ""
        rows.append(row)
    columns = ["epsilon", "raters", "omega", "advantage", "passed", "missing"]
    return pd.DataFrame(rows, columns=[*CELL, *columns])


def alt_test_raters(
    frame: pd.DataFrame, labels: pd.DataFrame, annotators: Annotators = "experts"
) -> pd.DataFrame:
    """Runs the alternative annotator test for each rater, left out in turn.

    Whichever of judge and rater is closer to the remaining raters wins an item; both win a tie. On
    ordinal rubrics closeness is the root mean squared distance, on nominal ones the share of equal
    stages; the judge's rating is its median or its most frequent stage.

    Returns:
        Columns CELL, rater, items, advantage (the judge's mean win), difference (the rater's mean
        win minus the judge's), p (one-sided, difference below epsilon), adjusted (Benjamini and
        Yekutieli), beaten. The last three are null with fewer than 30 items or too few clusters.
    """
    if annotators not in EPSILON:
        choices = get_args(Annotators)
        raise DesignError(unknown("annotators", annotators, choices), choices=choices)
    judged = ratings(frame)
    kinds = frame.groupby(CELL, observed=True)["rubric_kind"].first().to_dict()
    rows = []
    for key, people in labelled(frame, labels).groupby(CELL, observed=True):
        ordered = kinds[key] != "nominal"
        here = judged[(judged[CELL] == list(key)).all(axis=1)].set_index("evidence")
        stage = here["median" if ordered else "most"].dropna()
        given = people.pivot(index="evidence", columns="rater", values="stage")
        both = given.index.intersection(stage.index)
        wins = _wins(
            given.loc[both].to_numpy(float), stage.loc[both].to_numpy(float)[:, None], ordered
        )
        items = people.drop_duplicates("evidence").set_index("evidence", drop=False).loc[both]
        codes = cluster_codes(items)
        tests = [_test(one, EPSILON[annotators], codes) for one in np.moveaxis(wins, 1, 0)]
        p = np.array([test.p for test in tests])
        adjusted = np.full(len(p), np.nan)
        if (known := ~np.isnan(p)).any():
            from scipy import stats

            adjusted[known] = stats.false_discovery_control(p[known], method="by")
        for rater, test, value in zip(given.columns, tests, adjusted, strict=True):
            beaten = None if np.isnan(value) else bool(value <= FALSE_DISCOVERIES)
            rows.append([*key, rater, *test, value, beaten])
    columns = ["rater", "items", "advantage", "difference", "p", "adjusted", "beaten"]
    return pd.DataFrame(rows, columns=[*CELL, *columns])


class _Test(NamedTuple):
    items: int
    advantage: float
    difference: float
    p: float


def _wins(given: Floats, judge: Floats, ordered: bool) -> Floats:
    """Returns wins by item and rater: the rater's win, then the judge's.

    They are NaN if the rater gave no stage, or no other rater did.
    """
    other = given[:, None, :]  # items, the rater left out, the remaining raters
    remain = ~np.isnan(other) & ~np.eye(given.shape[1], dtype=bool)

    def loss(stage: Floats) -> Floats:
        apart = stage[:, :, None] - other
        each = apart**2 if ordered else (apart != 0).astype(float)
        lost: Floats = np.where(remain, each, 0.0).sum(axis=-1)
        return lost

    rater, judged = loss(given), loss(np.broadcast_to(judge, given.shape))
    won = np.stack([rater <= judged, judged <= rater], axis=-1).astype(float)
    defined = ~np.isnan(given) & remain.any(axis=-1)
    return np.where(defined[..., None], won, np.nan)


def _test(wins: Floats, epsilon: float, clusters: Codes) -> _Test:
    known = ~np.isnan(wins[:, 0])
    rater, judge = wins[known].T
    gap = rater - judge
    if not len(gap):
        return _Test(0, np.nan, np.nan, np.nan)
    if len(gap) < MIN_ITEMS:
        p = np.nan
    elif np.ptp(gap) == 0:  # without variance t is infinite, and p its limit
        p = 0.0 if gap[0] < epsilon else 1.0
    else:
        error, freedom = item_error(gap, grouped_codes(clusters, known))
        p = float(special.stdtr(freedom, (gap.mean() - epsilon) / error))
    return _Test(len(gap), float(judge.mean()), float(gap.mean()), p)


# --- few labels, many verdicts -------------------------------------------------------------------


def prediction_powered(frame: OrdinalFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Estimates people's mean stage on all items from few labels and a judge's verdicts.

    Stages are normalised: 0 is the first, 1 the last. The labelled items must be a random sample.

    Returns:
        Columns CELL, value, low, high, weight (of the judge, 0 to 1), labelled, unlabelled (items),
        people, people_low, people_high (the mean of the labels alone), judge (the judge's own mean
        over all items).
    """
    people = labelled(frame, labels)
    people = people.assign(y=(people["stage"] - 1) / (people["n_stages"] - 1))
    y = people.groupby(ITEM, observed=True)["y"].mean().rename("y").reset_index()
    scales = frame.groupby(CELL, observed=True)["n_stages"].max().rename("n_stages").reset_index()
    judged = ratings(frame).merge(scales, on=CELL).merge(y, on=ITEM, how="left")
    judged = judged.assign(f=(judged["expected"] - 1) / (judged["n_stages"] - 1))
    clusters = frame[["task", "evidence", "cluster"]].drop_duplicates()
    judged = judged.merge(clusters, on=["task", "evidence"])
    rows = []
    for key, part in judged.groupby(CELL, observed=True):
        known = part["y"].notna().to_numpy()
        if known.any():
            f, truth = part["f"].to_numpy(float), part["y"].to_numpy(float)[known]
            codes = cluster_codes(part)
            found, weight = prediction_powered_mean(
                truth, f[known], f[~known], np.concatenate([codes[known], codes[~known]])
            )
            on_scale = np.clip(
                [*found[:3], *estimate(truth, codes[known], scale=UNBOUNDED)[:3]], 0, 1
            )
            counts = [found.n, int((~known).sum())]
            rows.append([*key, *on_scale[:3], weight, *counts, *on_scale[3:], f.mean()])
    columns = ["value", "low", "high", "weight", "labelled", "unlabelled"]
    columns += ["people", "people_low", "people_high", "judge"]
    return pd.DataFrame(rows, columns=[*CELL, *columns])


def prediction_powered_mean(
    truth: Floats, predicted: Floats, elsewhere: Floats, clusters: Codes | None = None
) -> tuple[Estimate, float]:
    """Returns the prediction-powered mean, and the weight of the predictions in it.

    `predicted` is for the labelled items, `elsewhere` for the others; `clusters` has the clusters
    of both, in this order. The weight minimises the
    width of the interval, so that useless predictions cost nothing (Angelopoulos, Duchi and Zrnic
    2023). Because it is estimated, one more degree of freedom is lost.
    """
    n, others = len(truth), len(elsewhere)
    spread = float(np.concatenate([predicted, elsewhere]).var(ddof=1)) if n + others > 1 else 0.0
    if n < 4 or others < 2 or spread <= 1e-12:
        return estimate(truth, None if clusters is None else clusters[:n], scale=UNBOUNDED), 0.0
    covariance = float(np.cov(truth, predicted)[0, 1])
    weight = float(np.clip(covariance / ((1 + n / others) * spread), 0.0, 1.0))
    rest = truth - weight * predicted
    value = weight * float(elsewhere.mean()) + float(rest.mean())
    error, freedom = weight**2 * elsewhere.var(ddof=1) / others + rest.var(ddof=2) / n, n - 2.0
    codes = grouped_codes(clusters, np.full(n + others, True))
    if codes is not None:
        gaps = [(rest - rest.mean()) / n, weight * (elsewhere - elsewhere.mean()) / others]
        sums = cluster_sums(np.concatenate(gaps), codes)
        error = max(error, float(sums @ sums) * len(sums) / (len(sums) - 1))
        freedom = mean_error(rest, codes[:n]).freedom - 1
    if not error > 0 or (codes is not None and freedom < MIN_FREEDOM):
        return undefined(n, value), weight
    half = float(t_quantile(freedom) * np.sqrt(error))
    return Estimate(value, value - half, value + half, n, n), weight


def rogan_gladen(called: Floats, right_yes: Floats, right_no: Floats) -> Estimate:
    """Returns a prevalence corrected for error rates that were estimated on other items.

    The estimate is Rogan and Gladen's, the interval Lang and Reiczigel's (2014), for shares per
    item as well as for plain decisions: pseudo-items are added, so that no variance is 0. `called`
    has the share of positive calls on items of unknown truth, `right_yes` and `right_no` the shares
    of right calls on positive and on negative items.
    """
    if not (len(called) and len(right_yes) and len(right_no)):
        return undefined(len(called))
    sharpness = float(right_yes.mean() + right_no.mean()) - 1
    if sharpness <= 0:
        return undefined(len(called))
    value = float(np.clip((called.mean() + right_no.mean() - 1) / sharpness, 0, 1))
    z = float(special.ndtri((1 + LEVEL) / 2))
    p, p_error = _padded(called, z**2)
    yes, yes_error = _padded(right_yes, 2)
    no, no_error = _padded(right_no, 2)
    if yes + no <= 1:  # too few items to distinguish it from chance
        return undefined(len(called), value)
    middle = (p + no - 1) / (yes + no - 1)
    error = np.sqrt(p_error + yes_error * middle**2 + no_error * (1 - middle) ** 2)
    error = error / (yes + no - 1)
    middle += 2 * z**2 * (middle * yes_error - (1 - middle) * no_error)
    low, high = np.clip([middle - z * error, middle + z * error], 0, 1)
    return Estimate(value, float(low), float(high), len(called), len(called))


def _padded(values: Floats, items: float) -> tuple[float, float]:
    """Returns the mean with pseudo-items, half of them 0 and half 1, and its squared error."""
    n = len(values) + items
    mean = (values.sum() + items / 2) / n
    variance = ((values**2).sum() + items / 2) / n - mean**2
    return float(mean), float(variance / n)
