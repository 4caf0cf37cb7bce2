"""Makes of a file's texts, labels and known answers the items and stages of a study."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from judge_gym.errors import DesignError
from judge_gym.recorded.recording import LabelScale, Recording, item_parts, transcript_text
from judge_gym.recorded.scales import pair_place
from judge_gym.records.evidence import FIELD_NAMES

PAIR_STAGES = {
    "first": "The first response is better.",
    "second": "The second response is better.",
    "tie": "Both are equally good.",
}
"""The stages of pairs, with what each means; the place of a label is that of the response."""
PAIR_QUESTION = "Which response is better?"
"""The text of a pair without a question."""
LISTED = 8


class StudyItems(NamedTuple):
    """The items of a study, with the stages that people's labels name."""

    rows: list[dict[str, Any]]
    """Each as a study file has it; a rater's label is a field of the rater's name."""
    raters: list[str]
    stages: list[str]
    """The stages of a rubric, from the lowest; empty if nothing says them."""
    ordered: bool
    notes: tuple[str, ...]
    """What was left out or renamed."""


def study_items(recording: Recording, *, rubric: bool = False) -> StudyItems:
    """Returns the items of a file for a study; its verdicts are not used.

    Args:
        recording: what the file holds.
        rubric: whether the study has a rubric, so that labels stay as they are.

    Raises:
        DesignError: if an item has no text, or a label of a pair names no response.
    """
    _refuse_without_texts(recording)
    stages = {} if rubric else _stages(recording)
    rows, notes = _items(recording, stages)
    renamed = any(label != stage for label, stage in stages.items())
    if renamed and not recording.paired:
        listed = ", ".join(stages.values())
        notes += (f"The stages are called {listed}: a study reads the number 1 as the first one.",)
    if not recording.verdicts.empty:
        judges = ", ".join(sorted(recording.verdicts["judge"].unique()))
        notes += (f"Verdicts of {judges} are no part of the study; judge-gym check shows them.",)
    names = list(PAIR_STAGES) if recording.paired and not rubric else list(stages.values())
    ordered = recording.scale.ordered and not recording.paired
    return StudyItems(rows, sorted(recording.labels["rater"].unique()), names, ordered, notes)


def _refuse_without_texts(recording: Recording) -> None:
    items = recording.items
    parts = ["response_a", "response_b"] if recording.paired else ["text"]
    if (items[parts] == "").all(axis=None):
        raise DesignError(
            f"{recording.source} needs a column with the texts that are judged; name it with "
            "--text, or the two of a pair with --responses"
        )
    empty = list(items.loc[(items[parts] == "").any(axis=1), "item"])
    if empty:
        more = f" and {len(empty) - LISTED} more" if len(empty) > LISTED else ""
        raise DesignError(
            f"{recording.source}: the text is empty in {', '.join(empty[:LISTED])}{more}; fill or "
            "delete these rows"
        )


def _stages(recording: Recording) -> Mapping[str, str]:
    """Returns the stage of each label."""
    scale = recording.scale
    if not recording.paired:
        return dict(zip(scale.labels, _stage_names(scale), strict=True))
    places = {label: pair_place(label) for label in scale.labels}
    strange = [label for label, place in places.items() if place is None]
    if strange:
        raise DesignError(
            f"{recording.source}: {', '.join(map(repr, strange))} "
            f"{'name' if len(strange) > 1 else 'names'} no response of a pair; say which with "
            "--same LABEL=first, second or tie, or name a rubric with --rubric"
        )
    names = list(PAIR_STAGES)
    return {label: names[place] for label, place in places.items() if place is not None}


def _stage_names(scale: LabelScale) -> list[str]:
    """Returns the labels, where a number is that of its stage or says that it is a score.

    A study reads the label 1 as the first stage, which on a scale from 0 is another one.
    """
    numbered = [str(number) for number in range(1, len(scale.labels) + 1)]
    if list(scale.labels) == numbered or not any(label in numbered for label in scale.labels):
        return list(scale.labels)
    return [f"score {label}" for label in scale.labels]


def _items(
    recording: Recording, stages: Mapping[str, str]
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Returns the items with people's labels; the same text is one item."""
    items = recording.items
    parts = [name for name in FIELD_NAMES if name in items]
    contents = ["text", "response_a", "response_b", *parts]
    first = items.groupby(contents, sort=False)["item"].transform("first")
    same = dict(zip(items["item"], first, strict=True))
    labels = recording.labels.assign(item=recording.labels["item"].map(same))
    given = _agreed(labels.groupby(["item", "rater"], sort=False)["label"].unique())
    truths = items.assign(item=first)[items["truth"] != ""]
    known = _agreed(truths.groupby("item", sort=False)["truth"].unique())
    notes = []
    if repeated := len(items) - len(set(first)):
        many = "1 item repeats" if repeated == 1 else f"{repeated:,} items repeat"
        notes.append(f"{many} the text of another, and is one item with it.")
    for place in [place for place, label in (given | known).items() if label is None][:LISTED]:
        item = place[0] if isinstance(place, tuple) else place
        notes.append(f"The text of {item} has different labels: none of them is used.")
    of_item: dict[str, dict[str, str]] = {}
    for (item, rater), label in given.items():
        if label is not None:
            of_item.setdefault(item, {})[rater] = stages.get(label, label)
    rows = []
    for item in items.drop_duplicates(contents).to_dict("records"):
        row: dict[str, Any] = {"title": item["item"], **_content(item, paired=recording.paired)}
        if item["cluster"]:
            row["cluster"] = item["cluster"]
        if (truth := known.get(item["item"])) is not None:
            row["truth"] = stages.get(truth, truth)
        rows.append(row | of_item.get(item["item"], {}))
    return rows, tuple(notes)


def _content(item: Mapping[Any, Any], *, paired: bool) -> dict[str, Any]:
    """Returns what is judged: a text, named parts, or the question and responses of a pair."""
    text = item["text"] or PAIR_QUESTION
    if paired:
        return {"text": text, "responses": [item["response_a"], item["response_b"]]}
    parts: dict[str, Any] = {**item_parts(item)}
    if transcript_text(parts.get("messages", "")):
        parts["messages"] = json.loads(parts["messages"])
    return parts or {"text": text}


def _agreed(labels: Any) -> dict[Any, str | None]:
    """Returns the label of each key; None where there are several."""
    return {
        key: values[0] if len(values) == 1 else None for key, values in labels.to_dict().items()
    }
