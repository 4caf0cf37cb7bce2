"""What a reader of recorded verdicts returns, whatever the format, and the samples made of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import JUDGE, NAMES_APART, knob_columns

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
it; otherwise they are empty. `truth` is a label. Further columns are fields of the item.
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

`repeat` counts from 0. `label` is empty without a score; of a pair it names the response by its
identity, also where `flipped` says that the pair was shown in reverse. `prompt` is the JSON list of
messages, `answer` what the judge wrote, `rationale` the reasons it gave, where they were recorded.
`call` names the call, if several verdicts share one. `read_status` and `read_label` are our reading
of `answer`, beside the recorded verdict; empty where it was not read again. Further columns are
knobs: a path of a design such as `judge.temperature`, or `foreign.NAME`.
"""
LABEL_COLUMNS: Mapping[str, Any] = {"item": "", "rater": "", "label": ""}
"""The columns of people's labels."""


class LabelScale(NamedTuple):
    """The labels of a question, which verdicts and people share."""

    kind: Literal["binary", "ordinal", "nominal"]
    labels: tuple[str, ...]
    """Their names; of ordered ones from the lowest."""
    positive: str | None = None
    """The positive one of two labels; None if it is neither declared nor known."""

    @property
    def ordered(self) -> bool:
        """Whether labels are stages of an ordinal rubric; two labels are."""
        return self.kind != "nominal"


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


def as_samples(recording: Recording) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Makes the samples of a recording, for `analysis.frames.tidy`, and people's labels of them.

    Labels have the columns tag, evidence, rater and stage, as `judge_table` takes them.
    """
    scale = recording.scale
    stages = {label: number for number, label in enumerate(scale.labels, 1)}
    rows = recording.verdicts.merge(recording.items, on="item", how="left", validate="m:1")
    samples = pd.DataFrame(
        {
            JUDGE: rows["judge"],
            "evidence": rows["item"],
            "evidence_title": rows["title"].where(rows["title"] != "", rows["item"]),
            "concept": recording.question,
            "replicate": rows["repeat"],
            "status": rows["status"],
            "stages": rows["label"].map(stages).astype("Int64").astype("string").fillna(""),
            "n_stages": len(scale.labels),
            "stage_names": NAMES_APART.join(scale.labels),
            "rubric_kind": "ordinal" if scale.ordered else "nominal",
            "truth": rows["truth"].map(stages),
            "cluster": rows["cluster"],
            "length": rows["length"],
            "pair": rows["response_a"] != "",
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
