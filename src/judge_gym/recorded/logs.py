"""Reads any file with recorded verdicts: the log of a tool that we know, or else a table."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd

from judge_gym.errors import DesignError
from judge_gym.recorded.checks import checked
from judge_gym.recorded.file import DEFAULTS, read_file, with_labels
from judge_gym.recorded.importers import TABLE, importers
from judge_gym.recorded.options import FileOptions, FileReading, ValueCount
from judge_gym.recorded.recording import Recording
from judge_gym.records.numbers import plural

ROWS = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".xlsm")
"""Files that are read as a table, also if a tool exported them: their columns have names."""
LISTED = 5


def read_verdicts(
    source: Path | pd.DataFrame | str, options: FileOptions = DEFAULTS
) -> FileReading:
    """Reads the log of a tool that we know, or any table of verdicts and labels.

    A log has its roles and scale by its format; options about columns have it read as a table.

    Raises:
        DesignError: if it cannot be read, or if a log judges several questions.
    """
    if isinstance(source, pd.DataFrame):
        return read_file(source, options)
    path = Path(source)
    of_log = FileOptions(labels=options.labels, positive=options.positive, accept=options.accept)
    format = _format_of(path) if options == of_log else None
    if format is None:
        return read_file(path, options)
    reading = _as_reading(format, path, positive=options.positive)
    return reading if options.labels is None else with_labels(reading, options)


def _format_of(path: Path) -> str | None:
    """Returns the format of a log, or None for a table and for what does not exist."""
    if not path.exists() or path.suffix.lower() in ROWS:
        return None
    fitting = [
        name for name, reader in importers().items() if name != TABLE and reader.detect(path)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _as_reading(format: str, path: Path, *, positive: str | None) -> FileReading:
    """Reads a log that judges one question."""
    recordings = [recording for recording in importers()[format].read(path)]
    if len(recordings) != 1:
        listed = ", ".join(repr(recording.question) for recording in recordings[:LISTED])
        more = f" and {len(recordings) - LISTED} more" if len(recordings) > LISTED else ""
        about = f"judges {plural(len(recordings), 'question')}: {listed}{more}"
        raise DesignError(
            f"{path.name} is a log of {format}, which {about if recordings else 'judges nothing'}; "
            f"judge-gym import {format} {path} --study NAME, then judge-gym judges NAME"
        )
    recording = checked(recordings[0])
    if positive is not None and positive in recording.scale.labels:
        recording = replace(recording, scale=recording.scale._replace(positive=positive))
    judges = ", ".join(map(str, recording.verdicts["judge"].unique()[:LISTED]))
    people = ", ".join(map(str, recording.labels["rater"].unique()[:LISTED]))
    about = (
        f"A log of {format} about {recording.question!r}: verdicts of {judges}"
        f"{f', labels of {people}' if people else ''}; {plural(len(recording.items), 'item')}."
    )
    return FileReading(
        replace(recording, notes=(about, *recording.notes)),
        roles=(),
        values=_value_counts(recording),
    )


def _value_counts(recording: Recording) -> tuple[ValueCount, ...]:
    """Counts the verdicts, labels and known answers of each label."""
    verdicts = Counter(recording.verdicts["label"])
    labels, truths = Counter(recording.labels["label"]), Counter(recording.items["truth"])
    return tuple(
        ValueCount(label, verdicts[label], labels[label], label, truths[label])
        for label in recording.scale.labels
    )
