"""Reads samples that this product exported, with their knobs and with people's labels."""

import numpy as np
import pandas as pd

from judge_gym.analysis.frames import (
    JUDGE,
    NAMES_APART,
    NEEDED,
    knob_columns,
    number_truths,
    tidy,
)
from judge_gym.errors import DesignError
from judge_gym.recorded.options import FileOptions, FileReading, Role, RoleName, ValueCount
from judge_gym.recorded.recording import (
    ITEM_COLUMNS,
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    LabelScale,
    Recording,
    complete_columns,
)
from judge_gym.recorded.roles import PERSON_PREFIX
from judge_gym.recorded.scales import positive_of
from judge_gym.recorded.tables import Table

FURTHER: tuple[RoleName, ...] = ("text", "truth", "cluster", "length", "usd", "seconds")
"""Columns of an export that are used where they are filled."""
SINGLE_OPTIONS = (
    *("item", "text", "responses", "truth", "repeat", "cluster", "score", "length", "usd"),
    *("seconds", "system", "rationale"),
)


def is_export(table: Table) -> bool:
    """Whether a table has the columns of an export, as docs/frames.md describes them."""
    return set(NEEDED) <= set(table.frame)


def read_export(table: Table, options: FileOptions) -> FileReading:
    """Reads an export: its knobs are kept, and its columns `label.RATER` are people's labels.

    Raises:
        DesignError: if its cells contradict each other, or it is about several questions.
    """
    _refuse_options(options, table.name)
    samples = table.frame.replace("", np.nan)
    if "truth" in samples:
        said = {**options.same, **dict.fromkeys(options.missing, np.nan)}
        samples["truth"] = samples["truth"].replace(said)
    if table.frame["evidence"].str.fullmatch(r"\d{1,15}").all():
        samples["evidence"] = samples["evidence"].astype("int64")
    frame = number_truths(tidy(samples, source=table.name), table.name)
    notes = [*table.notes]
    if frame["is_swap"].any():
        number = int(frame["is_swap"].sum())
        notes.append(f"{number:,} verdicts under another judge's rubric are left out.")
        frame = frame[~frame["is_swap"]].reset_index(drop=True)
    questions = sorted(frame["task"].unique())
    if len(questions) > 1:
        raise DesignError(
            f"{table.name} has verdicts about {len(questions)} questions ({', '.join(questions)}); "
            "export one of them: judge-gym export TAG",
            choices=questions,
        )
    names = _stage_names(frame, table.name)
    positive = options.positive or (positive_of(names) if len(names) == 2 else None)
    nominal = (frame["rubric_kind"] == "nominal").any()
    kind = "nominal" if nominal else "binary" if len(names) == 2 else "ordinal"
    scale = LabelScale(kind, names, positive)  # type: ignore[arg-type]  # one of its words
    stages = {text: _labels_of(text, names) for text in frame["stages"].unique()}
    verdicts = pd.DataFrame(
        {
            "judge": frame[JUDGE],
            "item": frame["evidence"].astype(str),
            "repeat": frame["replicate"],
            "status": frame["status"],
            "label": frame["stages"].map(stages),
            "flipped": frame["flipped"],
            "usd": frame["usd"],
            "seconds": frame["seconds"],
            "answer": frame["answer"],
            "call": frame["call_id"].map(lambda call: "" if pd.isna(call) else str(int(call))),
            **{name: frame[name] for name in knob_columns(frame) if name != JUDGE},
        }
    )
    if frame["series"].nunique() > 1:
        verdicts["foreign.series"] = frame["series"]
    items = _items(frame, names)
    labels, unread = _labels(frame, names)
    if unread:
        raise DesignError(
            f"{table.name}: labels {', '.join(map(repr, unread[:5]))} are none of "
            f"{', '.join(names)}",
            choices=names,
        )
    roles = [
        Role(JUDGE, "judge", "an export of judge-gym", True, f"--judge {JUDGE}"),
        Role("evidence", "item", "an export of judge-gym", True, "--item evidence"),
        Role("stages", "verdict", "an export of judge-gym", True, f"--judge {JUDGE}"),
        *(
            Role(name, "person", "people's labels in an export", True, f"--human {name}")
            for name in map(str, frame)
            if name.startswith(PERSON_PREFIX)
        ),
        *(
            Role(name, name, "an export of judge-gym", True, f"--{name} {name}")
            for name in FURTHER
            if name in table.frame and (table.frame[name] != "").any()
        ),
    ]
    recording = Recording(
        source=table.name,
        format="file",
        question=frame["concept"].iloc[0] or questions[0],
        scale=scale,
        items=complete_columns(items, ITEM_COLUMNS),
        verdicts=complete_columns(verdicts, VERDICT_COLUMNS),
        labels=complete_columns(labels, LABEL_COLUMNS),
        notes=tuple(notes),
    )
    truths = items["truth"].value_counts()
    values = tuple(
        ValueCount(
            name,
            int((verdicts["label"] == name).sum()),
            int((labels["label"] == name).sum()),
            name,
            int(truths.get(name, 0)),
        )
        for name in names
    )
    return FileReading(recording, tuple(roles), values, export=True)


def _refuse_options(options: FileOptions, source: str) -> None:
    """Refuses what cannot be said about an export, whose columns have fixed names."""
    given = [
        f"--{name}"
        for name, value in {
            **{name: getattr(options, name) for name in SINGLE_OPTIONS},
            "judge": options.judges,
            "human": () if options.labels else options.people,
            "knob": options.knobs,
            "order": options.order,
        }.items()
        if value
    ]
    if given:
        raise DesignError(
            f"{source} is an export of judge-gym, whose columns have fixed names (docs/frames.md): "
            f"{', '.join(given)} cannot be given; rename columns, or add --labels FILE"
        )


def _stage_names(frame: pd.DataFrame, source: str) -> tuple[str, ...]:
    """Returns the names of the stages, or their numbers."""
    scales = sorted(frame["n_stages"].unique())
    if len(scales) > 1:
        listed = ", ".join(map(str, scales))
        raise DesignError(
            f"{source} has scales of {listed} stages; export the verdicts of one of them: "
            "judge-gym export TAG"
        )
    count = int(scales[0])
    named = [text for text in frame["stage_names"].unique() if text]
    names = tuple(named[0].split(NAMES_APART)) if len(named) == 1 else ()
    return names if len(names) == count else tuple(str(stage) for stage in range(1, count + 1))


def _labels_of(stages: str, names: tuple[str, ...]) -> str:
    """Returns the names of chosen stages."""
    return NAMES_APART.join(names[int(stage) - 1] for stage in stages.split())


def _items(frame: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    first = frame.drop_duplicates("evidence").reset_index(drop=True)
    numbers = pd.to_numeric(first["truth"], errors="coerce")
    truths = [
        names[int(number) - 1] if number == number else "" if pd.isna(text) else str(text)
        for number, text in zip(numbers, first["truth"], strict=True)
    ]
    texts = first["text"].fillna("") if "text" in first else ""
    return pd.DataFrame(
        {
            "item": first["evidence"].astype(str),
            "title": first["evidence_title"],
            "text": texts,
            "truth": truths,
            "cluster": first["cluster"],
            "length": first["length"],
        }
    )


def _labels(frame: pd.DataFrame, names: tuple[str, ...]) -> tuple[pd.DataFrame, list[str]]:
    """Returns people's labels, and those that are no stage."""
    numbers = {str(stage): name for stage, name in enumerate(names, 1)}
    parts = [pd.DataFrame(columns=["item", "rater", "label"])]
    for name in frame:
        if str(name).startswith(PERSON_PREFIX):
            rows = frame.loc[frame[name].notna(), ["evidence", name]].drop_duplicates("evidence")
            labels = rows[name].astype(str)
            parts.append(
                pd.DataFrame(
                    {
                        "item": rows["evidence"].astype(str),
                        "rater": str(name).removeprefix(PERSON_PREFIX),
                        "label": labels.where(labels.isin(names), labels.map(numbers)),
                        "written": labels,
                    }
                )
            )
    whole = pd.concat(parts, ignore_index=True)
    unread = (
        list(whole.loc[whole["label"].isna(), "written"].unique()) if "written" in whole else []
    )
    return whole[["item", "rater", "label"]], unread
