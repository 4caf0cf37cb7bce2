"""The size of a study, as its tests see it."""

from typing import TYPE_CHECKING

from judge_gym.axes import CONTESTED
from judge_gym.lab.prepare import PreparedStudy

if TYPE_CHECKING:
    from judge_gym.analysis.planning.components import Size
    from judge_gym.studies.sweep import Experiment


def study_sizes(prepared: PreparedStudy) -> "dict[str, Size]":
    """Counts how much a study plans to ask, by endpoint that it can test.

    Differences of setups are tested task by task: the size is that of the smallest task.
    Hypotheses are tested on the items of all tasks.
    """
    from judge_gym.analysis.planning.components import Size
    from judge_gym.analysis.planning.power import MIN_CONCEPTS

    experiments = prepared.sweep.experiments
    targets = [prepared.targets[experiment.tag] for experiment in experiments]
    repeats = min(target.samples for target in targets)
    probed = any(target.probe for target in targets)
    tasks = {_task(experiment): experiment for experiment in experiments}
    smallest = min(tasks.values(), key=_items)
    labelled = [task for task in tasks.values() if any(_truths(task))]
    sizes = {}
    if len({(experiment.design.judge.model, experiment.tag) for experiment in experiments}) > len(
        tasks
    ):
        size = Size(_items(smallest), _clusters(smallest), repeats)
        sizes = {"stage": size, "abstention": size}
        if labelled:
            fewest = min(labelled, key=_items)
            sizes["accuracy"] = Size(_items(fewest), _clusters(fewest), repeats)
        elif prepared.labels:
            sizes["agreement"] = size
        if probed:
            sizes["probability"] = size
        if any(experiment.design.verdict.method == "subset" for experiment in experiments):
            sizes["subset_size"] = size
        if repeats > 1:
            sizes["entropy"] = size
    if smallest.task.protocol != CONTESTED:
        return sizes
    every = list(tasks.values())
    total = Size(sum(map(_items, every)), sum(map(_clusters, every)), repeats)
    kinds = [
        [experiment for experiment in every if experiment.task.type == kind]
        for kind in ("ecc", "control")
    ]
    concepts = [len({experiment.task.concept for experiment in kind}) for kind in kinds]
    if least := min(concepts):
        tested = sum(map(_items, [*kinds[0], *kinds[1]]))
        sizes["H1 entrenchment"] = Size(tested, tested, repeats, concepts=least, arms=2)
        if least < MIN_CONCEPTS:
            sizes["H1 on these concepts"] = Size(tested, tested, repeats, arms=2)
    if probed:
        sizes["H2 consensus hallucination"] = total
    if probed and any(target.rivals for target in targets):
        sizes["H3 framework sensitivity"] = total
    if {"single", "subset"} <= {experiment.design.verdict.method for experiment in experiments}:
        sizes["H4 forced-choice inflation"] = total
    return sizes


def _task(experiment: "Experiment") -> tuple[str, str, str]:
    task = experiment.task
    return task.concept, str(task.type), task.pool_name


def _items(experiment: "Experiment") -> int:
    return len(experiment.task.pool.items)


def _clusters(experiment: "Experiment") -> int:
    items = experiment.task.pool.items
    return len({item.cluster or f"item {index}" for index, item in enumerate(items)})


def _truths(experiment: "Experiment") -> list[object]:
    return [item.truth for item in experiment.task.pool.items if item.truth is not None]
