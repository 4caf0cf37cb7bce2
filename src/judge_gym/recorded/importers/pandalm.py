"""PandaLM's test set: three annotators' labels of pairs, and the results of judges.

A folder has a file of pairs with labels (Wang et al. 2023, arXiv:2306.05087), and for each judge a
file with its result by the number of the pair.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judge_gym.analysis.measures.confusion import UNSCORED, macro_f1
from judge_gym.errors import DesignError, unknown
from judge_gym.recorded.documents import (
    MOST_TOGETHER,
    check_together,
    clean_text,
    consume,
    list_of,
    mapping_of,
    read_head,
    read_json,
    shorten,
    text_of,
)
from judge_gym.recorded.pairs import (
    FIRST,
    PAIR_CRITERIA,
    PAIR_SCALE,
    SECOND,
    TIE,
    items_table,
    response_text,
)
from judge_gym.recorded.recording import (
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    Recording,
    complete_columns,
)

ABOUT = "PandaLM: a folder with the labelled test set and the results of judges (JSON)"
QUESTION = "the better response"
LABELS = {"1": FIRST, "2": SECOND, "0": TIE, "tie": TIE}
"""The labels of annotators and judges; any other word of a judge could not be read."""
ANNOTATOR = re.compile(r"annotator\w*")
RESULT = "_result"


def detect(path: Path) -> bool:
    """Whether a path is the labelled test set, or a folder with it and results of judges."""
    if path.is_dir():
        return any(_is_labelled(file) for file in islice(sorted(path.glob("*.json")), 20))
    return _is_labelled(path)


def _is_labelled(path: Path) -> bool:
    head = read_head(path) if path.suffix == ".json" else ""
    keys = ("idx", "instruction", "response1", "response2", "annotator1")
    return head.startswith("[") and all(f'"{key}"' in head for key in keys)


def _is_result(path: Path) -> bool:
    head = read_head(path)[:4096]
    return head.startswith("[") and '"idx"' in head and f'{RESULT}"' in head


def read(path: Path) -> Sequence[Recording]:
    """Reads the test set of a folder, with the labels of all annotators and every judge."""
    folder = path if path.is_dir() else path.parent
    labelled = [file for file in sorted(folder.glob("*.json")) if _is_labelled(file)]
    labelled = labelled if path.is_dir() else [path]
    if len(labelled) != 1:
        names = ", ".join(file.name for file in labelled) or "none"
        raise DesignError(f"{folder} has {names} as labelled test set; name the file")
    judges = [file for file in sorted(folder.glob("*.json")) if _is_result(file)]
    if not judges:
        raise DesignError(f"{folder} has no results of a judge, with 'idx' and '..._result'")
    check_together([labelled[0], *judges], MOST_TOGETHER)
    items, labels = _items(labelled[0])
    rows: list[dict[str, Any]] = []
    for file in judges:
        rows += _results(file, labelled[0].stem, set(items["item"]))
    recording = Recording(
        source=path.resolve().name,
        format="pandalm",
        question=QUESTION,
        scale=PAIR_SCALE,
        items=items,
        verdicts=complete_columns(pd.DataFrame(rows), VERDICT_COLUMNS),
        labels=labels,
        criteria=PAIR_CRITERIA,
    )
    return [replace(recording, notes=tuple(_notes(recording)))]


def _items(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Reads the pairs, and the labels of every annotator."""
    items: dict[str, dict[str, Any]] = {}
    labels: list[dict[str, Any]] = []
    for number, row in consume(list_of(read_json(path), str(path))):
        where = f"{path}: pair {number}"
        fields = mapping_of(row, where)
        id = _number(fields, where)
        if id in items:
            raise DesignError(f"{where}: 'idx' {id} is there twice")
        material = text_of(fields, "input", where, empty=True)
        question = "\n\n".join(filter(None, [text_of(fields, "instruction", where), material]))
        items[id] = {
            "item": id,
            "text": clean_text(question),
            "response_a": _response(fields, "response1", where),
            "response_b": _response(fields, "response2", where),
            "category": clean_text(str(fields.get("motivation_app") or "")),
            "systems": clean_text(str(fields.get("cmp_key") or "")),
        }
        for name in filter(ANNOTATOR.fullmatch, fields):
            label = LABELS.get(str(fields[name]))
            if label is None:
                raise DesignError(
                    f"{where}: {unknown(name, fields[name], ('1', '2', '0'))}",
                    choices=("1", "2", "0"),
                )
            labels.append({"item": id, "rater": name, "label": label})
    table = items_table(items)
    return table, complete_columns(pd.DataFrame(labels), LABEL_COLUMNS)


def _number(fields: Mapping[str, Any], where: str) -> str:
    number = fields.get("idx")
    if isinstance(number, bool) or not isinstance(number, int | str) or number == "":
        raise DesignError(f"{where}: 'idx' is a number, not {shorten(number)}")
    return str(number)


def _response(fields: Mapping[str, Any], name: str, where: str) -> str:
    """Returns a response; a spreadsheet turned some that say true or false into booleans."""
    value = fields.get(name)
    if isinstance(value, bool | int | float):
        return str(value)
    return response_text(text_of(fields, name, where, empty=True))


def _results(path: Path, test_set: str, known: set[str]) -> Iterator[dict[str, Any]]:
    """Yields the verdicts of a judge, whose name is that of its file."""
    judge = path.stem.removesuffix(f"-{test_set}")
    seen: set[str] = set()
    for number, row in consume(list_of(read_json(path), str(path))):
        where = f"{path}: result {number}"
        fields = mapping_of(row, where)
        id = _number(fields, where)
        if id in seen:
            raise DesignError(f"{where}: 'idx' {id} is there twice")
        if id not in known:
            raise DesignError(f"{where}: 'idx' {id} is no pair of the test set")
        seen.add(id)
        names = [name for name in fields if name.endswith(RESULT)]
        if len(names) != 1:
            raise DesignError(f"{where}: expected one field '..._result', not {len(names)}")
        prefix = names[0].removesuffix(RESULT)
        label = LABELS.get(str(fields[names[0]]).casefold(), "")
        yield {
            "judge": judge,
            "item": id,
            "status": "scored" if label else "parse_failed",
            "label": label,
            "answer": clean_text(str(fields[names[0]])),
            "rationale": clean_text(str(fields.get(f"{prefix}_reason") or "")),
        }


# --- the published figures -----------------------------------------------------------------------


def majority_labels(recording: Recording) -> pd.Series:
    """Returns the label that most annotators gave, by item; items without one are left out."""
    counts = pd.crosstab(recording.labels["item"], recording.labels["label"])
    most = counts.max(axis=1)
    clear = counts.eq(most, axis=0).sum(axis=1) == 1
    majority: pd.Series = counts[clear].idxmax(axis=1)
    return majority


def published_scores(
    recording: Recording, *, unreadable_are_ties: bool
) -> Mapping[str, tuple[float, float]]:
    """Computes each judge's accuracy and macro F1 against the majority of annotators.

    The publication counts an answer that could not be read as a tie; otherwise it is wrong. A
    judge of no pair with a majority has none.
    """
    majority, names = majority_labels(recording), list(PAIR_SCALE.labels)
    scores: dict[str, tuple[float, float]] = {}
    for judge, rows in recording.verdicts.groupby("judge"):
        rows = rows[rows["item"].isin(majority.index)]
        if rows.empty:
            continue
        unreadable = TIE if unreadable_are_ties else rows["status"]
        labels = rows["label"].where(rows["label"] != "", unreadable)
        table = pd.crosstab(labels, rows["item"].map(majority))
        table = table.reindex(index=[*names, *UNSCORED], columns=names, fill_value=0)
        matrix = table.to_numpy(dtype=float)
        f1 = float(macro_f1(len(names))(matrix))
        scores[str(judge)] = (float(np.trace(matrix) / matrix.sum()), f1)
    return scores


def _notes(recording: Recording) -> Iterator[str]:
    """Yields what was taken for granted, and what differs from the publication."""
    majority = majority_labels(recording)
    counts = Counter(majority)
    yield (
        f"Most annotators chose a tie in {counts[TIE]}, the first response in {counts[FIRST]} and "
        f"the second in {counts[SECOND]} pairs; in {len(recording.items) - len(majority)} there "
        "is no majority."
    )
    as_ties = published_scores(recording, unreadable_are_ties=True)
    as_wrong = published_scores(recording, unreadable_are_ties=False)
    for judge, rows in recording.verdicts.groupby("judge"):
        if str(judge) not in as_wrong:
            continue
        unreadable = int((rows["label"] == "").sum())
        accuracy, f1 = as_wrong[str(judge)]
        sentence = f"{judge} agrees with the majority in {100 * accuracy:.2f} %"
        sentence += f", macro F1 {100 * f1:.2f}"
        if unreadable:
            accuracy, f1 = as_ties[str(judge)]
            sentence += (
                f"; as published, where its {unreadable} unreadable answers count as ties, in "
                f"{100 * accuracy:.2f} %, macro F1 {100 * f1:.2f}"
            )
        yield f"{sentence}."
    yield "Each pair was judged in one order, so that the effect of the order is unknown."
