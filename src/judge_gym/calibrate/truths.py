"""The true values of a judge table's quantities on panels of a profile.

What is a function of the confusion matrix is computed from it; what depends on several draws at
once comes from one very large panel. Measures are named as in the rows of the table.
"""

from collections.abc import Mapping

import numpy as np
from scipy import stats

from judge_gym.calibrate.panels import Panel, draw_panel, generator
from judge_gym.calibrate.profile import Codes, Floats, SetupProfile, StudyProfile

MANY = 40_000
"""The number of items of the large panel: its error is a tenth of an interval's at 400 items."""
POSITIVE = 1
"""The place of the positive one of two labels."""
Truths = Mapping[str, float]


def true_values(profile: StudyProfile, seed: int) -> dict[str, Truths]:
    """Computes the true value of each setup's quantities, where "" has those of the table."""
    panel = draw_panel(profile.with_items(MANY), generator("truth", seed))
    truths: dict[str, Truths] = {
        setup.name: _from_confusion(profile, setup) | _from_panel(profile, panel, index)
        for index, setup in enumerate(profile.setups)
    }
    by_chance = float((profile.prevalence**2).sum())
    copied = profile.rater_accuracy**2
    return truths | {"": {"people_with_each_other": copied + (1 - copied) * by_chance}}


def joint_matrix(profile: StudyProfile, setup: SetupProfile) -> Floats:
    """Returns the chance of each label and verdict: stages by stages, abstained, unreadable."""
    by_label = setup.by_order(profile.orders).mean(axis=0)
    if profile.labels == "raters":  # a rater's label is not always the item's
        accuracy, any_label = profile.rater_accuracy, profile.prevalence @ by_label
        by_label = accuracy * by_label + (1 - accuracy) * any_label
    joint = profile.prevalence[:, None] * by_label * (1 - setup.unreadable)
    return np.column_stack([joint, profile.prevalence * setup.unreadable])


def _from_confusion(profile: StudyProfile, setup: SetupProfile) -> dict[str, float]:
    scale, joint = profile.scale, joint_matrix(profile, setup)
    by_order = setup.by_order(profile.orders)
    by_chance = float(profile.prevalence @ (by_order**2).sum(axis=2).mean(axis=0))
    copied = setup.persistence**2
    decided = float(profile.prevalence @ by_order.mean(axis=0)[:, :scale].sum(axis=1))
    values = {
        "abstained": float(joint[:, scale].sum()),
        "unreadable": setup.unreadable,
        "consistency": copied + (1 - copied) * by_chance,
    }
    if profile.orders == 2:
        values["position_bias"] = setup.prefers_first / decided
    if profile.labels == "none":
        return values
    right = float(np.trace(joint[:, :scale]))
    if profile.pair and scale == 3 and not profile.prevalence[2]:
        right += float(joint[:, 2].sum()) / 2  # a tie is half right where no answer is one
    answered = float(joint[:, :scale].sum())
    values |= {"truth": right, "answered": answered, "right_of_answered": right / answered}
    return values | (measures(joint) if not profile.pair else {})


def measures(joint: Floats) -> dict[str, float]:
    """Returns the measures of a joint matrix of labels by stages, abstained and unreadable."""
    scale = len(joint)
    labels, verdicts = joint.sum(axis=1), joint.sum(axis=0)
    hits = np.diag(joint)
    right, by_chance = float(hits.sum()), float(labels @ verdicts[:scale])
    used = labels > 0
    recall = hits[used] / labels[used]
    either = used | (verdicts[:scale] > 0)
    f1 = 2 * hits[either] / (labels + verdicts[:scale])[either]
    far = np.subtract.outer(np.arange(scale), np.arange(scale)).astype(float)
    most = (far**2).max(axis=1, keepdims=True)  # the weight of a verdict without a score
    weights = np.column_stack([far**2, most, most])
    by_margins = float((weights * np.outer(labels, verdicts)).sum())
    scored = joint[:, :scale] / joint[:, :scale].sum()
    values = {
        "exact": right,
        "balanced": float(recall.mean()),
        "kappa": (right - by_chance) / (1 - by_chance),
        "weighted_kappa": 1 - float((weights * joint).sum()) / by_margins,
        "macro_f1": float(f1.mean()),
        "within_one": float(joint[:, :scale][np.abs(far) <= 1].sum()),
        "error": float((np.sqrt(weights) * joint).sum()),
        "bias": -float((far * scored).sum()),
    }
    if scale == 2 and used.all():
        values |= {"sensitivity": float(recall[POSITIVE]), "specificity": float(recall[0])}
    return values


def _from_panel(profile: StudyProfile, panel: Panel, place: int) -> dict[str, float]:
    """Returns what depends on several raters, repeats or setups at once."""
    scale, shares = profile.scale, [_shares(verdicts, profile.scale) for verdicts in panel.verdicts]
    setup_shares, values = shares.pop(place), {}
    scored = setup_shares.sum(axis=1) > 0
    if shares:
        others_scored = np.array([other.sum(axis=1) > 0 for other in shares])
        equal = np.array([(setup_shares * other).sum(axis=1) for other in shares])
        compared = scored & others_scored.any(axis=0)
        agreement = (equal * others_scored).sum(axis=0)[compared] / others_scored.sum(axis=0)[
            compared
        ]
        values["disagreement"] = 1 - float(agreement.mean())
    if profile.labels == "raters":
        counts = (panel.ratings[..., None] == np.arange(scale)).sum(axis=1)
        clear = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) == 1
        most = counts.argmax(axis=1)[clear]
        right = panel.verdicts[place][clear] == most[:, None, None]
        values["majority"] = float(right.mean())
    if profile.ordered and profile.labels != "none":
        people = panel.ratings.mean(axis=1) if profile.labels == "raters" else panel.label
        mean = setup_shares[scored] @ np.arange(scale)
        values["spearman"] = float(stats.spearmanr(mean, people[scored]).statistic)
        values["tau_b"] = float(stats.kendalltau(mean, people[scored]).statistic)
    return values


def _shares(verdicts: Codes, scale: int) -> Floats:
    """Computes how often an item has each stage among its scored verdicts, 0 without any."""
    counts = (verdicts[..., None] == np.arange(scale)).sum(axis=(1, 2)).astype(float)
    shares: Floats = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    return shares
