"""Checks a recording before it is stored: every verdict and label must fit items and scale."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from judge_gym.axes import RECORDED
from judge_gym.errors import DesignError, unknown
from judge_gym.recorded.recording import (
    ITEM_COLUMNS,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    Recording,
    complete_columns,
)
from judge_gym.recorded.scales import pair_place
from judge_gym.records import STATUSES, storable

LONG = ("text", "response_a", "response_b", "prompt", "answer", "rationale")
"""Texts that differ from row to row; the store makes them storable, a page at a time."""
MOST_LABELS = 26
"""The labels of the longest scale, which judges are shown as letters."""


def checked(recording: Recording) -> Recording:
    """Returns a recording as any database takes it; refuses one that contradicts itself."""
    labels = _texts(recording.labels, LABEL_COLUMNS)
    scale = recording.scale
    clean = replace(
        recording,
        source=storable(recording.source),
        question=storable(recording.question),
        scale=scale._replace(labels=tuple(map(storable, scale.labels))),
        items=_texts(recording.items, ITEM_COLUMNS),
        verdicts=_texts(recording.verdicts, VERDICT_COLUMNS),
        labels=labels[labels["label"] != ""].reset_index(drop=True),
    )
    refuse_unfit(clean)
    return clean


def _texts(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Returns a frame whose columns of texts hold storable texts and nothing else."""
    texts = {name for name, usual in columns.items() if usual == ""}
    complete = complete_columns(frame, columns)
    return complete.assign(**{name: _storable(complete[name]) for name in texts})


def _storable(column: pd.Series) -> pd.Series:
    if column.name in LONG:
        return column.where(column.notna(), "") if column.isna().any() else column
    known = {
        value: "" if value is None or value != value else storable(str(value))
        for value in column.unique()
    }
    return column.map(known).astype(object)


def refuse_unfit(recording: Recording) -> None:
    """Refuses a recording that contradicts itself; the message names the user's own ids."""
    source, scale = recording.source, recording.scale
    items, verdicts, labels = recording.items, recording.verdicts, recording.labels
    if verdicts.empty:
        raise DesignError(f"{source}: no verdict of a judge on {recording.question!r}")
    if not 2 <= len(scale.labels) <= MOST_LABELS:
        raise DesignError(
            f"{source}: {recording.question!r} has {len(scale.labels)} labels; a scale has 2 to "
            f"{MOST_LABELS}, so merge them or name a threshold, such as score>=4"
        )
    if RECORDED in verdicts:
        raise DesignError(f"{source}: the column {RECORDED!r} is ours; name it otherwise")
    twice = items["item"].duplicated()
    if twice.any():
        raise DesignError(f"{source}: {_some('the item', items['item'][twice])} stands there twice")
    _refuse_mixed_pairs(recording)
    _refuse_unknown(source, "item", verdicts["item"], items["item"], "verdict")
    _refuse_unknown(source, "item", labels["item"], items["item"], "label of a person")
    _refuse_unknown(source, "status", verdicts["status"], STATUSES, "verdict")
    scored = verdicts["status"] == "scored"
    _refuse_unknown(source, "label", verdicts["label"][scored], scale.labels, "verdict", verdicts)
    _refuse_unknown(source, "label", labels["label"], scale.labels, "label of a person", labels)
    truths = items["truth"][items["truth"] != ""]
    _refuse_unknown(source, "label", truths, scale.labels, "known answer", items)
    for column, who in (("judge", "judge"), ("rater", "person")):
        rows = verdicts if column == "judge" else labels
        nameless = rows[rows[column] == ""]
        if len(nameless):
            about = _some("item", nameless["item"])
            raise DesignError(f"{source}: no {who} is named for {about}")
    given = labels.drop_duplicates()
    conflict = given[given.duplicated(["item", "rater"], keep=False)]
    if len(conflict):
        first = conflict[(conflict["item"] == conflict.iloc[0]["item"])]
        first = first[first["rater"] == conflict.iloc[0]["rater"]]
        raise DesignError(
            f"{source}: {first.iloc[0]['rater']} labels {first.iloc[0]['item']!r} as "
            f"{' and '.join(map(repr, first['label']))}"
            f"{_more(conflict.drop_duplicates(['item', 'rater']))}"
        )


def _refuse_mixed_pairs(recording: Recording) -> None:
    """Refuses items of which only some are pairs, and pairs on a scale of more than three."""
    if not recording.paired:
        turned = recording.verdicts[recording.verdicts["flipped"].astype(bool)]
        if len(turned):
            raise DesignError(
                f"{recording.source}: {_some('the item', turned['item'])} is no pair, and has a "
                "verdict in reverse order"
            )
        return
    items, labels = recording.items, recording.scale.labels
    single = items[(items["response_a"] == "") | (items["response_b"] == "")]
    if len(single):
        raise DesignError(
            f"{recording.source}: {_some('the item', single['item'])} is no pair, and others are"
        )
    strange = [label for label in labels if pair_place(label) is None]
    if strange:
        raise DesignError(
            f"{recording.source}: {', '.join(map(repr, strange))} "
            f"{'name' if len(strange) > 1 else 'names'} no response of a pair; say which with "
            "--same LABEL=first, second or tie",
            choices=labels,
        )
    if len(labels) > 3:
        raise DesignError(
            f"{recording.source}: a pair has the labels first, second and, optionally, neither; "
            f"this scale has {', '.join(labels)}"
        )


def _refuse_unknown(
    source: str,
    what: str,
    values: pd.Series,
    choices: Collection[str],
    of: str,
    rows: pd.DataFrame | None = None,
) -> None:
    """Refuses values that are not among the choices, and says of which items they are."""
    wrong = values[~values.isin(list(choices))]
    if wrong.empty:
        return
    value = wrong.iloc[0]
    few = list(choices) if len(choices) <= MOST_LABELS else []
    about = "" if rows is None else f" of {rows.loc[wrong.index[0], 'item']!r}"
    message = unknown(f"{what} of a {of}", value, few)
    raise DesignError(f"{source}:{about and f'{about}:'} {message}{_more(wrong)}", choices=few)


def _some(what: str, names: pd.Series) -> str:
    return f"{what} {names.iloc[0]!r}{_more(names)}"


def _more(rows: pd.Series | pd.DataFrame) -> str:
    return f" (and {len(rows) - 1:,} more)" if len(rows) > 1 else ""
