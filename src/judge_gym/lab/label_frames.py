"""People's labels of the items of experiments, as a table for the analysis."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge_gym.axes import Design
from judge_gym.store import Store

if TYPE_CHECKING:
    import pandas as pd


def label_frame(store: Store, rows: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """Makes a table of raters' stages of items of experiments: tag, evidence, rater, stage.

    Of options without an order, a rater with any other label answered another question: the number
    2 of a scale is then no second option.
    """
    import pandas as pd

    labels = store.evidence.labels()
    labelled = []
    for row in rows if labels else []:
        task = store.experiments.find(row["tag"])[0].task
        items = {item.id for item in task.pool.items}
        stages = task.rubric.stages if task.rubric else ()
        nominal = task.rubric is not None and task.rubric.kind == "nominal"
        scale = len(stages) or Design.of(row["design"]).rubric.scale
        numbers = {str(number): number for number in range(1, scale + 1)}
        numbers |= {stage.label: number for number, stage in enumerate(stages, 1)}
        about = [
            label
            for label in labels
            if label["evidence"] in items and label["concept"] in ("", task.concept)
        ]
        unknown = [label for label in about if label["stage"] not in numbers]
        elsewhere = {label["rater"] for label in unknown} if nominal else set()
        labelled += [
            {"tag": row["tag"], "evidence": label["evidence"], "rater": label["rater"]}
            | {"stage": numbers[label["stage"]]}
            for label in about
            if label["stage"] in numbers and label["rater"] not in elsewhere
        ]
    return pd.DataFrame(labelled, columns=["tag", "evidence", "rater", "stage"])
