"""What readers of recorded verdicts on pairs of responses share."""

from collections.abc import Iterable

from judge_gym.analysis.judges.compared import PAIR_NAMES
from judge_gym.recorded.recording import LabelScale
from judge_gym.records import content_hash
from judge_gym.records.hashes import storable

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
    return storable(text) or " "


def question_clusters(questions: Iterable[str]) -> list[str]:
    """Names the cluster of each pair: its question, where several pairs have the same one."""
    asked = [content_hash(question)[:12] for question in questions]
    seen: set[str] = set()
    repeated: set[str] = set()
    for question in asked:
        (repeated if question in seen else seen).add(question)
    return [f"question {question}" if question in repeated else "" for question in asked]
