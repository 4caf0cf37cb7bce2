"""What a reader of recorded verdicts returns, whatever the format, and the samples made of it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import JUDGE, NAMES_APART, knob_columns
from judge_gym.errors import DesignError
from judge_gym.records.evidence import FIELD_NAMES, render_messages

ITEM_COLUMNS: Mapping[str, Any] = {
    "item": "",
    "text": "",
    "title": "",
    "response_a": "",
    "response_b": "",
    "truth": "",
    "cluster": "",
    "length": np.nan,
}
"""The columns of items, with the value of a column that a format does not have.

`item` is the user's own id. Of a pair, `text` is the question and the two responses stand beside
it; otherwise they are empty. `truth` is a label. Further columns are fields of the item; `output`
or `messages` among them make it one of named parts, of which `text` is the one that is judged.
"""
VERDICT_COLUMNS: Mapping[str, Any] = {
    "judge": "",
    "item": "",
    "repeat": 0,
    "status": "scored",
    "label": "",
    "flipped": False,
    "usd": np.nan,
    "seconds": np.nan,
    "prompt": "",
    "answer": "",
    "rationale": "",
    "call": "",
    "read_status": "",
    "read_label": "",
}
"""The columns of verdicts, with the value of a column that a format does not have.

`repeat` counts from 0. `label` is empty without a score; several are joined by " | ". Of a pair it
names the response by its identity, also where `flipped` says that the pair was shown in reverse.
`prompt` is the JSON list of messages, `answer` what the judge wrote, `rationale` the reasons it
gave, where they were recorded. `call` names the call, if several verdicts share one. `read_status`
and `read_label` are our reading of `answer`, beside the recorded verdict; empty where it was not
read again. Further columns are knobs: a path of a design such as `judge.temperature`, or
`foreign.NAME`.
"""
LABEL_COLUMNS: Mapping[str, Any] = {"item": "", "rater": "", "label": ""}
"""The columns of people's labels."""


def item_parts(item: "Mapping[Any, Any] | pd.Series") -> dict[str, str]:
    """Returns the named parts of an item, such as its input and output, as they are written.

    An item without an output or a transcript is one text, whatever else is known of it.
    """
    if not (item.get("output") or item.get("messages")):
        return {}
    return {name: str(item[name]) for name in FIELD_NAMES if item.get(name)}


def readable_parts(parts: Mapping[str, str]) -> dict[str, str]:
    """Returns named parts with the transcript as readable text."""
    return {
        name: (transcript_text(part) if name == "messages" else "") or part
        for name, part in parts.items()
    }


def transcript_text(cell: str) -> str:
    """Returns the readable text of a cell with the JSON of messages; empty if it holds none.

    >>> print(transcript_text('[{"role": "user", "content": "Hi"}]'), transcript_text("[1]") == "")
    user:
      Hi True
    """
    if not cell.startswith(("[{", "[ {")) or '"role"' not in cell:
        return ""
    try:
        return render_messages(json.loads(cell))
    except (ValueError, RecursionError, DesignError):
        return ""


class LabelScale(NamedTuple):
    """The labels of a question, which verdicts and people share."""

    kind: Literal["binary", "ordinal", "nominal"]
    labels: tuple[str, ...]
    """Their names; of ordered ones from the lowest."""
    positive: str | None = None
    """The positive one of two labels; None if it is neither declared nor known."""

    @property
    def ordered(self) -> bool:
        """Whether labels are stages of an ordinal rubric; two are if one of them is positive."""
        return self.kind == "ordinal" or (self.kind == "binary" and self.positive is not None)


@dataclass(frozen=True, eq=False)
class Recording:
    """Verdicts of judges on items about one question, with people's labels of these items."""

    source: str
    """What was read, as users know it: a file's name."""
    format: str
    """The reader: `file`, `inspect`, `llmbar`."""
    question: str
    """What is judged, such as a scorer's name; the concept of a study."""
    scale: LabelScale
    items: pd.DataFrame
    verdicts: pd.DataFrame
    labels: pd.DataFrame
    notes: tuple[str, ...] = ()
    """What could not be mapped, or was taken for granted, in sentences."""
    criteria: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What each label means, where the source says it."""

    @property
    def paired(self) -> bool:
        """Whether items are pairs of responses."""
        return bool((self.items["response_a"] != "").any())


def complete_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Adds the columns that a frame lacks, with their usual value, in a fixed order."""
    missing = {name: value for name, value in columns.items() if name not in frame}
    others = [name for name in frame if name not in columns]
    return frame.assign(**missing)[[*columns, *others]].reset_index(drop=True)


def _stage_numbers(labels: Iterable[str], stages: Mapping[str, int]) -> dict[str, str]:
    """Returns the stages of each label as samples have them; a verdict may name several labels."""
    return {
        label: " ".join(
            str(stages[name])
            for name in ([label] if label in stages else label.split(NAMES_APART))
            if name in stages
        )
        for label in labels
    }


def as_samples(recording: Recording) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Makes the samples of a recording, for `analysis.frames.tidy`, and people's labels of them.

    Labels have the columns tag, evidence, rater and stage, as `judge_table` takes them.
    """
    scale = recording.scale
    stages = {label: number for number, label in enumerate(scale.labels, 1)}
    facts = recording.items[["item", "title", "truth", "cluster", "length"]]
    rows = recording.verdicts.merge(facts, on="item", how="left", validate="m:1")
    samples = pd.DataFrame(
        {
            JUDGE: rows["judge"],
            "evidence": rows["item"],
            "evidence_title": rows["title"].where(rows["title"] != "", rows["item"]),
            "concept": recording.question,
            "replicate": rows["repeat"],
            "status": rows["status"],
            "stages": rows["label"].map(_stage_numbers(rows["label"].unique(), stages)),
            "n_stages": len(scale.labels),
            "stage_names": NAMES_APART.join(scale.labels),
            "rubric_kind": "ordinal" if scale.ordered else "nominal",
            "truth": rows["truth"].map(stages),
            "cluster": rows["cluster"],
            "length": rows["length"],
            "pair": recording.paired,
            "flipped": rows["flipped"],
            "usd": rows["usd"],
            "seconds": rows["seconds"],
            "answer": rows["answer"],
        }
    )
    calls = pd.factorize(rows["call"].where(rows["call"] != ""))[0]
    samples["call_id"] = np.where(calls < 0, np.nan, calls + 1.0)
    samples = pd.concat([samples, rows[knob_columns(rows)]], axis=1)
    labels = recording.labels
    people = pd.DataFrame(
        {
            "tag": "",
            "evidence": labels["item"],
            "rater": labels["rater"],
            "stage": labels["label"].map(stages),
        }
    )
    return samples, people[people["stage"].notna()].astype({"stage": "int64"})
