"""The size of a study, as its tests see it, and their power in a sentence."""

from typing import TYPE_CHECKING

from judge_gym.axes import CONTESTED
from judge_gym.lab.prepare import PreparedStudy

if TYPE_CHECKING:
    import pandas as pd

    from judge_gym.analysis.stats.power import StudySize
    from judge_gym.studies.sweep import Experiment


def study_sizes(prepared: PreparedStudy) -> "dict[str, StudySize]":
    """Returns how much a study plans to ask, by endpoint that it can test.

    Differences of setups are tested task by task: the size is that of the smallest task.
    Hypotheses are tested on the items of all tasks.
    """
    from judge_gym.analysis.stats.power import MIN_CONCEPTS, StudySize

    experiments = prepared.sweep.experiments
    targets = [prepared.targets[one.tag] for one in experiments]
    repeats = min(one.samples for one in targets)
    probed = any(one.probe for one in targets)
    tasks = {_task(one): one for one in experiments}
    smallest = min(tasks.values(), key=_items)
    labelled = [one for one in tasks.values() if any(_truths(one))]
    sizes = {}
    if len({(one.design.judge.model, one.tag) for one in experiments}) > len(tasks):
        size = StudySize(_items(smallest), _clusters(smallest), repeats)
        sizes = {"stage": size, "abstention": size}
        if labelled:
            known = min(labelled, key=_items)
            sizes["accuracy"] = StudySize(_items(known), _clusters(known), repeats)
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
    whole = StudySize(sum(map(_items, every)), sum(map(_clusters, every)), repeats)
    kinds = [[one for one in every if one.task.type == kind] for kind in ("ecc", "control")]
    concepts = [len({one.task.concept for one in kind}) for kind in kinds]
    if least := min(concepts):
        tested = sum(map(_items, [*kinds[0], *kinds[1]]))
        sizes["H1 entrenchment"] = StudySize(tested, tested, repeats, least, arms=2)
        if least < MIN_CONCEPTS:
            sizes["H1 on these concepts"] = StudySize(tested, tested, repeats, arms=2)
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


def power_sentence(table: "pd.DataFrame") -> str:
    """Returns in a sentence how likely the tests are to find the effect."""
    if table.empty:
        return "Nothing is compared: a test needs two judges or two levels of a knob."
    tested = table[table["power"].notna()]
    if tested.empty:
        return "Too few items for any test: five are needed."
    weak = tested[tested["power"] < 0.8]
    effect = float(table["effect"].iloc[0])
    if weak.empty:
        return f"Every test finds an effect of {effect:g} in at least 80 % of studies."
    first = weak.sort_values("power").iloc[0]
    need = first["needed_80"]
    more = "more than can be planned" if need != need else f"{int(need):,} {first['unit']}"
    return (
        f"{len(tested) - len(weak)} of {len(tested)} tests find an effect of {effect:g} in at "
        f"least 80 % of studies; the weakest, {first['endpoint']}, in {first['power']:.0%}: it has "
        f"{int(first['planned']):,} {first['unit']} and needs {more}."
    )
