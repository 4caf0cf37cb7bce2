"""The annotations of the alternative annotator test (Calderon et al. 2025, arXiv:2501.10970).

A folder has `human_annotations.json`, with labels by annotator and item, `llm_annotations.json`,
with labels by model and item, and sometimes `prompts.json`, with the prompt of each item.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from judge_gym.analysis.measures.scales import propose_positive
from judge_gym.errors import DesignError
from judge_gym.recorded.documents import clean_text, mapping_of, read_head, read_json, shorten
from judge_gym.recorded.recording import (
    ITEM_COLUMNS,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    LabelScale,
    Recording,
    complete_columns,
)

ABOUT = "alt-test: a folder with human_annotations.json and llm_annotations.json"
PEOPLE, MODELS, PROMPTS = "human_annotations.json", "llm_annotations.json", "prompts.json"
MOST_LABELS = 26
"""The number of labels that a rubric has at most."""
Annotations = Mapping[str, Mapping[str, str]]
"""Labels by annotator or model, and by item."""


def detect(path: Path) -> bool:
    """Whether a path is a folder with both files, or one of them beside the other."""
    folder = path if path.is_dir() else path.parent
    if not path.is_dir() and path.name not in (PEOPLE, MODELS):
        return False
    return all(read_head(folder / name)[:1] == "{" for name in (PEOPLE, MODELS))


def read(path: Path) -> Sequence[Recording]:
    """Reads the labels of all annotators and models as one recording."""
    folder = path if path.is_dir() else path.parent
    people, unlabelled = _annotations(folder / PEOPLE)
    models, unread = _annotations(folder / MODELS)
    scale, order = _scale([people, models], folder)
    prompts = _prompts(folder / PROMPTS)
    names = dict.fromkeys(
        item for by in (models, people) for labels in by.values() for item in labels
    )
    items = pd.DataFrame({"item": [*names]})
    items["text"] = [prompts[item][0] if item in prompts else "" for item in names]
    items["cluster"] = _clusters([prompts[item][1] if item in prompts else "" for item in names])
    rows = [
        {
            "judge": model,
            "item": item,
            "status": "scored" if label else "parse_failed",
            "label": label,
            "answer": label,
            "prompt": prompts[item][2] if item in prompts else "",
        }
        for model, labels in models.items()
        for item, label in labels.items()
    ]
    labels = [
        {"item": item, "rater": rater, "label": label}
        for rater, rated in people.items()
        for item, label in rated.items()
        if label
    ]
    return [
        Recording(
            source=folder.resolve().name,
            format="alt-test",
            question=folder.resolve().name,
            scale=scale,
            items=complete_columns(items, ITEM_COLUMNS),
            verdicts=complete_columns(pd.DataFrame(rows), VERDICT_COLUMNS),
            labels=complete_columns(pd.DataFrame(labels), LABEL_COLUMNS),
            notes=tuple(_notes(order, unlabelled, unread, has_texts=bool(prompts))),
        )
    ]


def _annotations(path: Path) -> tuple[Annotations, int]:
    """Reads labels as texts, and counts the items whose label is null."""
    annotators = mapping_of(read_json(path), str(path))
    if not annotators:
        raise DesignError(f"{path} has no annotations")
    labels: dict[str, dict[str, str]] = {}
    missing = 0
    for name, annotations in annotators.items():
        where = f"{path}: {shorten(name)}"
        by_item = mapping_of(annotations, where)
        labels[_key(name, where)] = {
            _key(item, where): _label(value, f"{where}: {shorten(item)}")
            for item, value in by_item.items()
        }
        missing += sum(value is None for value in by_item.values())
    if not any(labels.values()):
        raise DesignError(f"{path} has no annotations")
    return labels, missing


def _key(name: str, where: str) -> str:
    if not name.strip():
        raise DesignError(f"{where}: a name is empty")
    return clean_text(name)


def _label(value: Any, where: str) -> str:
    """Writes a label as a text; numbers that are whole have no decimals."""
    if value is None or value != value:  # not a number
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        raise DesignError(f"{where}: a label is a text or a number, not {shorten(value)}")
    return clean_text(str(value).strip())


def _scale(annotations: Sequence[Annotations], folder: Path) -> tuple[LabelScale, str]:
    """Describes the labels that anybody gave, and says why they are ordered or not.

    Whole numbers close to each other are stages; any other labels have no order.
    """
    labels = {
        label for by in annotations for items in by.values() for label in items.values() if label
    }
    if len(labels) < 2:
        raise DesignError(f"{folder}: all labels are {shorten(', '.join(labels))}; nothing differs")
    whole = all(re.fullmatch(r"-?[0-9]{1,6}", label) for label in labels)
    numbers = sorted(map(int, labels)) if whole else []
    if whole and len(labels) > 2 and numbers[-1] - numbers[0] < MOST_LABELS:
        stages = tuple(map(str, range(numbers[0], numbers[-1] + 1)))
        return LabelScale("ordinal", stages), (
            f"Labels are whole numbers, and read as stages from {stages[0]} to {stages[-1]}."
        )
    if len(labels) > MOST_LABELS:
        examples = ", ".join(sorted(labels)[:3])
        raise DesignError(
            f"{folder} has {len(labels)} different labels, such as {shorten(examples)}: free "
            f"texts, or a scale that is too fine; at most {MOST_LABELS} are compared"
        )
    names = tuple(map(str, numbers)) if whole else tuple(sorted(labels))
    if len(names) > 2:
        return LabelScale("nominal", names), "Labels are words, and read as without order."
    positive = propose_positive(names)
    names = tuple(sorted(names, key=lambda name: name == positive)) if positive else names
    reason = f"The positive label is {positive}." if positive else "No label is known as positive."
    return LabelScale("binary", names, positive), reason


def _prompts(path: Path) -> dict[str, tuple[str, str, str]]:
    """Reads by item the text of its prompt, what it belongs to, and the messages as JSON."""
    if not path.is_file():
        return {}
    prompts = {}
    for item, prompt in mapping_of(read_json(path), str(path)).items():
        fields = mapping_of(prompt, f"{path}: {shorten(item)}")
        chat = fields.get("chat_prompt")
        messages = chat if isinstance(chat, list) else []
        readable = [
            {"role": str(message.get("role", "user")), "content": clean_text(message["content"])}
            for message in messages
            if isinstance(message, dict) and isinstance(message.get("content"), str)
        ]
        whole = str(fields.get("str_prompt") or "")
        text = readable[-1]["content"] if readable else clean_text(whole)
        complete = len(readable) == len(messages) > 0
        stored = json.dumps(readable, ensure_ascii=False) if complete else ""
        prompts[clean_text(item)] = (text, clean_text(str(fields.get("text_id") or "")), stored)
    return prompts


def _clusters(texts: Sequence[str]) -> list[str]:
    """Names the text that several items ask about; an item with a text of its own has no name."""
    counts = pd.Series(texts).value_counts()
    return [text if text and counts[text] > 1 else "" for text in texts]


def _notes(order: str, unlabelled: int, unread: int, *, has_texts: bool) -> Iterator[str]:
    yield order
    if unlabelled:
        yield f"Empty annotations of people, which are no labels: {unlabelled}."
    if unread:
        yield f"Empty annotations of models, which count as unreadable: {unread}."
    if not has_texts:
        yield f"There is no {PROMPTS}: texts are unknown, and items of one text seem independent."
