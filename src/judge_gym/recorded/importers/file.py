"""Reads a table of verdicts and labels: CSV, JSON, JSON Lines, parquet or an Excel sheet."""

from pathlib import Path

from judge_gym.recorded.file import read_file
from judge_gym.recorded.recording import Recording

ABOUT = "A table of verdicts and labels: CSV, JSON, JSONL, parquet or an Excel sheet."
SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xlsm")


def detect(path: Path) -> bool:
    """Whether a file may be a table, by its name; used if no other format fits."""
    return path.suffix.lower() in SUFFIXES and path.is_file()


def read(path: Path) -> tuple[Recording, ...]:
    """Reads a file whose roles are certain.

    Raises:
        DesignError: with all questions, if something about the file is uncertain, or if it has no
            verdicts.
    """
    reading = read_file(path)
    reading.refuse_open_questions()
    reading.refuse_without_verdicts()
    return (reading.recording,)
