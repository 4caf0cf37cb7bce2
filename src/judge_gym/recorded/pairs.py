"""What readers of recorded verdicts on pairs of responses share."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from judge_gym.analysis.judges.compared import PAIR_NAMES
from judge_gym.recorded.documents import clean_text
from judge_gym.recorded.recording import ITEM_COLUMNS, LabelScale, complete_columns
from judge_gym.records import content_hash

FIRST, SECOND, TIE = PAIR_NAMES
PAIR_SCALE = LabelScale("nominal", PAIR_NAMES)
"""Which response is better; both may be equally good."""
PAIR_CRITERIA = {
    FIRST: ("The first response is better",),
    SECOND: ("The second response is better",),
    TIE: ("Neither is better",),
}
OPPOSITE = {FIRST: SECOND, SECOND: FIRST, TIE: TIE, "": ""}
"""Of a label that names a response by its place: the label when both change places."""


def response_text(text: str) -> str:
    """Returns a response of a pair; an empty one as a space, since an item without is no pair."""
    return clean_text(text) or " "


def question_clusters(questions: Iterable[str]) -> list[str]:
    """Names the cluster of each pair: its question, where several pairs have the same one."""
    hashes = [content_hash(question)[:12] for question in questions]
    seen: set[str] = set()
    repeated: set[str] = set()
    for question in hashes:
        (repeated if question in seen else seen).add(question)
    return [f"question {question}" if question in repeated else "" for question in hashes]


def items_table(items: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Makes the table of pairs, in clusters of one question; empties what it is made of."""
    table = pd.DataFrame([*items.values()])
    items.clear()
    table["cluster"] = question_clusters(table["text"])
    return complete_columns(table, ITEM_COLUMNS)
