"""The columns that an export has on request: people's labels, the item's text, the judge's words.

They are left out otherwise because they repeat what is long for every sample.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from judge_gym.errors import DesignError, unknown
from judge_gym.lab.items import stage_number
from judge_gym.records.requests import ExportColumn
from judge_gym.store import Store

if TYPE_CHECKING:
    import pandas as pd

CHOICES: tuple[ExportColumn, ...] = get_args(ExportColumn)
LABEL = "label."
"""Before the name of a rater: the column of that person's labels."""
PAIR_COLUMNS = ("response_a", "response_b")


class ExportColumns(NamedTuple):
    """The requested columns, which are the same in all parts of an export."""

    raters: Sequence[str] = ()
    texts: Sequence[str] = ()
    """`text`, and where items are pairs the two responses."""
    answer: bool = False


def requested_columns(
    store: Store, rows: Sequence[Mapping[str, Any]], include: Collection[str]
) -> ExportColumns:
    """Resolves the words of a request to the columns of an export of experiments."""
    for name in include:
        if name not in CHOICES:
            raise DesignError(unknown("column", name, CHOICES), choices=CHOICES)
    pools = {row["pool_id"] for row in rows}
    texts: list[str] = []
    if "text" in include:
        texts = ["text", *(PAIR_COLUMNS if store.items.has_pairs(pools) else ())]
    studies = {row["study"] for row in rows}
    raters = store.items.raters(studies, pools) if "labels" in include else []
    return ExportColumns(raters, texts, "answer" in include)


def add_columns(
    store: Store,
    frame: "pd.DataFrame",
    rows: Sequence[Mapping[str, Any]],
    columns: ExportColumns,
) -> "pd.DataFrame":
    """Adds the requested columns to the samples of experiments."""
    import pandas as pd

    added: dict[str, Any] = {}
    codes, items = pd.MultiIndex.from_frame(frame[["tag", "evidence"]]).factorize()
    if columns.raters:
        labels = _labels(store, rows)
        for rater in columns.raters:
            words = [labels.get((tag, evidence, rater), "") for tag, evidence in items]
            added[LABEL + rater] = pd.Series(words, dtype="str").astype("category").take(codes)
    if columns.texts:
        bodies = store.items.texts([*{int(evidence) for _, evidence in items}])
        for number, name in enumerate(columns.texts):
            parts = [bodies[evidence][number:] for _, evidence in items]
            texts = [_with_unix_lines(part[0]) if part else "" for part in parts]
            added[name] = pd.Series(texts, dtype="str").astype("category").take(codes)
    if columns.answer:
        answers = store.samples.answer_texts([int(call) for call in frame["call_id"]])
        added["answer"] = pd.Series(
            [answers.get(int(call)) for call in frame["call_id"]], dtype="str"
        )
    return frame.assign(**{name: column.to_numpy() for name, column in added.items()})


def _with_unix_lines(text: str) -> str:
    """Ends each line with a line feed, because a lone carriage return would end a CSV row."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _labels(store: Store, rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int, str], str]:
    """Reads the words of people's labels by tag, item and rater."""
    names = store.items.given_stages([row["tag"] for row in rows])
    labels = {}
    for study, concept in {(row["study"], row["concept"]) for row in rows}:
        about = [row for row in rows if (row["study"], row["concept"]) == (study, concept)]
        of_concept = store.items.labels(study, {row["pool_id"] for row in about}, concept)
        for row in about:
            stages = names.get(row["tag"], [])
            scale = len(stages) or int(row["design"]["rubric.scale"])
            for evidence, rater, stage in of_concept:
                number = stage_number(stage, stages, scale)
                if number:
                    word = stages[number - 1] if stages else stage
                    labels[row["tag"], evidence, rater] = word
    return labels
