"""Reads the stages that people gave to the items of a study, from columns of its files."""

import itertools
from collections.abc import Collection, Iterable
from typing import NamedTuple

from judge_gym.errors import DesignError, unknown
from judge_gym.records.judge_table import OTHER_RUBRIC
from judge_gym.studies import Experiment, Study, Sweep, errors_at


class PoolLabel(NamedTuple):
    """The stage that a person gave to an item of a pool."""

    text_hash: str
    concept: str
    rater: str
    stage: str


def pool_labels(study: Study, sweep: Sweep) -> tuple[PoolLabel, ...]:
    """Reads the labels in columns of pools, and refuses unknown columns and stages."""
    labels: dict[PoolLabel, None] = {}
    for name, spec in study.evidence.items():
        judged = [each for each in sweep.experiments if each.task.pool_name == name]
        if not spec.labels or not judged:
            continue
        with study.locate_errors(), errors_at(("evidence", name, "labels")):
            concepts = {each.task.concept for each in judged}
            if len(concepts) > 1:
                raise DesignError(
                    f"the labels of evidence {name!r} are about one concept, and it is judged for "
                    f"{' and '.join(sorted(concepts))}; name a pool for each"
                )
            stages = stage_names(judged)
            items = judged[0].task.pool.items
            columns = dict.fromkeys(column for item in items for column in item.metadata)
            for rater in spec.labels:
                if rater not in columns:
                    raise DesignError(unknown("column", rater, columns, name), choices=columns)
            for item, rater in itertools.product(items, spec.labels):
                label = item.metadata.get(rater)
                stage = "" if label is None else str(label).strip()
                if stage and stage not in stages:
                    raise DesignError(
                        f"{rater} gives {item.title!r} the stage {stage!r}; choose "
                        f"{', '.join(stages)}",
                        choices=stages,
                    )
                if stage:
                    labels[PoolLabel(item.hash, judged[0].task.concept, rater, stage)] = None
    return tuple(labels)


def other_rubric_warning(
    labels: Iterable[PoolLabel], labelled: Collection[int], experiments: Iterable[Experiment]
) -> list[str]:
    """Warns where people's labels will be compared with verdicts under rubrics of judges.

    Args:
        labels: those of the study's files.
        labelled: the numbers of the items that have a label in the lab.
        experiments: those of the study.
    """
    concepts = {label.concept for label in labels}
    for experiment in experiments:
        task = experiment.task
        stored = any(item.id in labelled for item in task.pool.items)
        if task.rubric is None and (task.concept in concepts or stored):
            return [f"{OTHER_RUBRIC}; name the rubric of people in the task: rubric: FILE"]
    return []


def stage_names(experiments: Iterable[Experiment]) -> list[str]:
    """Lists what a label may call a stage: its number and, under a given rubric, its name."""
    names: dict[str, None] = {}
    for experiment in experiments:
        rubric = experiment.task.rubric
        scale = rubric.scale if rubric else experiment.design.rubric.scale
        names |= dict.fromkeys(str(number) for number in range(1, scale + 1))
        names |= dict.fromkeys(stage.label for stage in rubric.stages) if rubric else {}
    return [*names]
