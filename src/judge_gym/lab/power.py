"""The size of a study, as its tests see it."""

from typing import TYPE_CHECKING

from judge_gym.axes import CONTESTED
from judge_gym.lab.prepare import PreparedStudy

if TYPE_CHECKING:
    from judge_gym.analysis.planning.components import Size
    from judge_gym.studies.sweep import Experiment


def study_sizes(prepared: PreparedStudy) -> "dict[str, Size]":
    """Returns how much a study plans to ask, by endpoint that it can test.

    Differences of setups are tested task by task: the size is that of the smallest task.
    Hypotheses are tested on the items of all tasks.
    """
    from judge_gym.analysis.planning.components import Size
    from judge_gym.analysis.planning.power import MIN_CONCEPTS

    experiments = prepared.sweep.experiments
    targets = [prepared.targets[one.tag] for one in experiments]
    repeats = min(one.samples for one in targets)
    probed = any(one.probe for one in targets)
    tasks = {_task(one): one for one in experiments}
    smallest = min(tasks.values(), key=_items)
    labelled = [one for one in tasks.values() if any(_truths(one))]
    sizes = {}
    if len({(one.design.judge.model, one.tag) for one in experiments}) > len(tasks):
        size = Size(_items(smallest), _clusters(smallest), repeats)
        sizes = {"stage": size, "abstention": size}
        if labelled:
            known = min(labelled, key=_items)
            sizes["accuracy"] = Size(_items(known), _clusters(known), repeats)
        elif prepared.labels:
            sizes["agreement"] = size
        if probed:
            sizes["probability"] = size
        if any(one.design.verdict.method == "subset" for one in experiments):
            sizes["subset_size"] = size
        if repeats > 1:
            sizes["entropy"] = size
    if smallest.task.protocol != CONTESTED:
        return sizes
    every = list(tasks.values())
    whole = Size(sum(map(_items, every)), sum(map(_clusters, every)), repeats)
    kinds = [[one for one in every if one.task.type == kind] for kind in ("ecc", "control")]
    concepts = [len({one.task.concept for one in kind}) for kind in kinds]
    if least := min(concepts):
        tested = sum(map(_items, [*kinds[0], *kinds[1]]))
        sizes["H1 entrenchment"] = Size(tested, tested, repeats, least, arms=2)
        if least < MIN_CONCEPTS:
            sizes["H1 on these concepts"] = Size(tested, tested, repeats, arms=2)
    if probed:
        sizes["H2 consensus hallucination"] = whole
    if probed and any(one.rivals for one in targets):
        sizes["H3 framework sensitivity"] = whole
    if {"single", "subset"} <= {one.design.verdict.method for one in experiments}:
        sizes["H4 forced-choice inflation"] = whole
    return sizes


def _task(experiment: "Experiment") -> tuple[str, str, str]:
    task = experiment.task
    return task.concept, str(task.type), task.pool_name


def _items(experiment: "Experiment") -> int:
    return len(experiment.task.pool.items)


def _clusters(experiment: "Experiment") -> int:
    items = experiment.task.pool.items
    return len({item.cluster or f"item {place}" for place, item in enumerate(items)})


def _truths(experiment: "Experiment") -> list[object]:
    return [item.truth for item in experiment.task.pool.items if item.truth is not None]
