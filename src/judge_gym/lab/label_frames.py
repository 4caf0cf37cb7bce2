"""People's labels of the items of experiments, as a table for the analysis."""

from collections.abc import Collection, Mapping, Sequence
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

    labels = store.labels.all()
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
            if label["evidence"] in items
            and label["concept"] in ("", task.concept)
            and label["study"] in ("", row["study"])
        ]
        unknown = [label for label in about if label["stage"] not in numbers]
        elsewhere = {label["rater"] for label in unknown} if nominal else set()
        labelled += [
            {"tag": row["tag"], "evidence": label["evidence"], "rater": label["rater"]}
            | {"stage": numbers[label["stage"]]}
            for label in about
            if label["stage"] in numbers and label["rater"] not in elsewhere
        ]
    people = pd.DataFrame(labelled, columns=["tag", "evidence", "rater", "stage"])
    return people if people.empty else _weighted(people, store, {str(row["study"]) for row in rows})


def _weighted(people: "pd.DataFrame", store: Store, studies: Collection[str]) -> "pd.DataFrame":
    """Leaves out labels of items that were not drawn by chance, and weights the others.

    Items of a queue that were added because they are disputed enter no estimate. Where chances
    differ, labels of items that no queue drew have no known chance, and are left out too.
    """
    chances: dict[int, float | None] = {}
    for study in studies:
        chances |= store.label_queues.probabilities(study)
    if not chances:
        return people
    chance = people["evidence"].map(chances)
    drawn = chance.notna()
    differ = {value for value in chances.values() if value is not None}
    if len(differ) > 1:
        return people[drawn].assign(weight=1 / chance[drawn].astype(float))
    disputed = {item for item, value in chances.items() if value is None}
    return people[~people["evidence"].isin(disputed)]


def pair_label(label: str, rubric: Mapping[str, Any]) -> str:
    """Turns the label of a response of a pair into that of the other one; a tie stays a tie.

    A pair that is shown in reverse is labelled by the order in which it is shown.
    """
    first, second, *_ = (stage[0] for stage in rubric["stages"])
    return str({first: second, second: first}.get(label, label))
