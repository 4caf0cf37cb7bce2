"""Draws panels: studies of the size of a profile, from distributions that are known exactly.

Dependence comes from copying, which changes no distribution: an item takes its cluster's draw in
place of its own, a setup that of all setups, a repeat that of the setup. Two items that copy with
the chance sqrt(r) each have the correlation r.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_gym.analysis.frames import JUDGE, tidy
from judge_gym.calibrate.profile import Codes, Floats, StudyProfile
from judge_gym.records import digest

UNREAD = -1
"""The code of an unreadable verdict; stages count from 0, and an abstention follows the last."""


class Panel(NamedTuple):
    """A simulated study."""

    cluster: Codes
    label: Codes
    ratings: Codes
    """Labels of raters: items by raters."""
    verdicts: Codes
    """Setups by items by orders by repeats."""


def generator(*key: object) -> np.random.Generator:
    """Returns a random generator whose seed depends on the key alone."""
    return np.random.default_rng(int(digest(list(key))[:16], 16))


def draw_panel(profile: StudyProfile, rng: np.random.Generator) -> Panel:
    """Draws the labels and verdicts of a panel."""
    items, clusters = profile.items, len(profile.cluster_sizes)
    cluster = np.repeat(np.arange(clusters), profile.cluster_sizes)

    def copies(correlation: float, *shape: int) -> npt.NDArray[np.bool_]:
        return np.asarray(rng.random(shape) < np.sqrt(correlation))

    labels, chances = np.arange(profile.scale), profile.prevalence
    of_cluster = rng.choice(labels, clusters, p=chances)[cluster]
    independent = rng.choice(labels, items, p=chances)
    label = np.where(copies(profile.label_correlation, items), of_cluster, independent)
    random_labels = rng.choice(labels, (items, profile.raters), p=chances)
    correct = rng.random(random_labels.shape) < profile.rater_accuracy
    ratings = np.where(correct, label[:, None], random_labels)

    together = copies(profile.error_correlation, items)
    shared = np.where(together, rng.random(clusters)[cluster], rng.random(items))
    verdicts = []
    for setup in profile.setups:
        alone = np.where(together, rng.random(clusters)[cluster], rng.random(items))
        # A cluster's draw is shared by setups as a whole, or it would be none of the cluster's.
        joins = np.where(
            together,
            copies(profile.setup_correlation, clusters)[cluster],
            copies(profile.setup_correlation, items),
        )
        level = np.where(joins, shared, alone)
        for_order = []
        for by_label in setup.by_order(profile.orders):
            usual = _outcome(by_label, label, level[:, None])
            anew = _outcome(by_label, label, rng.random((items, profile.repeats)))
            persists = rng.random(anew.shape) < setup.persistence
            verdict = np.where(persists, usual, anew)
            for_order.append(np.where(rng.random(anew.shape) < setup.unreadable, UNREAD, verdict))
        verdicts.append(np.stack(for_order, axis=1))
    return Panel(cluster, label, ratings, np.stack(verdicts))


def _outcome(by_label: Floats, label: Codes, level: Floats) -> Codes:
    """Looks up the verdict at each level from 0 to 1. The lowest levels are right verdicts."""
    stages, verdicts = by_label.shape
    order = np.array([[n, *(v for v in range(verdicts) if v != n)] for n in range(stages)])
    below = np.take_along_axis(by_label, order, axis=1).cumsum(axis=1)[:, :-1]
    rank = (level[..., None] > below[label][:, None]).sum(axis=-1)
    outcomes: Codes = order[label[:, None], rank]
    return outcomes


def panel_frames(
    profile: StudyProfile, panel: Panel, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Returns the tidy samples of a panel, and the labels of its raters."""
    setup, item, order, repeat = (axis.ravel() for axis in np.indices(panel.verdicts.shape))
    verdict = panel.verdicts.ravel()
    scored = (verdict >= 0) & (verdict < profile.scale)
    labelled = np.zeros(profile.items, dtype=bool)
    labelled[rng.permutation(profile.items)[: profile.labelled]] = True
    answers = np.where(labelled & (profile.labels == "answers"), panel.label + 1.0, np.nan)
    sizes = np.array(profile.cluster_sizes)[panel.cluster]
    names = np.where(sizes > 1, panel.cluster.astype(str), "")
    stages = np.array([*map(str, range(1, profile.scale + 1)), "", ""])
    frame = pd.DataFrame(
        {
            JUDGE: np.array([setup_profile.name for setup_profile in profile.setups])[setup],
            "tag": "panel",
            "concept": "simulated",
            "evidence": item,
            "cluster": names[item],
            "replicate": repeat,
            "pair": profile.pair,
            "flipped": order == 1,
            "n_stages": profile.scale,
            "rubric_kind": "ordinal" if profile.ordered or profile.pair else "nominal",
            "status": np.where(
                scored, "scored", np.where(verdict == UNREAD, "parse_failed", "abstained")
            ),
            "stages": stages[verdict],
            "truth": answers[item],
            "call_id": np.arange(len(verdict)),
        }
    )
    if profile.labels != "raters":
        return tidy(frame), None
    rated, rater = (axis.ravel() for axis in np.indices(panel.ratings.shape))
    keep = labelled[rated]
    people = pd.DataFrame(
        {
            "tag": "panel",
            "evidence": rated[keep],
            "rater": np.char.add("rater ", rater[keep].astype(str)),
            "stage": panel.ratings.ravel()[keep] + 1,
        }
    )
    return tidy(frame), people
