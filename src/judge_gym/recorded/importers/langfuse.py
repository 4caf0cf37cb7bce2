"""Scores exported from Langfuse: those of evaluators, and those that people annotate."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.recorded.contents import LogContents, Value, as_number, as_text
from judge_gym.recorded.files import (
    as_mapping,
    errors_of,
    files_of,
    first_row,
    parse_record,
    rows_of,
    some_file,
)
from judge_gym.recorded.recording import Recording

ABOUT = "Langfuse: exported scores (.json, .jsonl, .csv) of evaluators and annotations"
_ROWS = ((), ("data",), ("scores",))
_SUFFIXES = (".csv", ".json", ".jsonl")
_SOURCES = ("ANNOTATION", "API", "EVAL")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SUBJECTS = ("observation_id", "trace_id", "session_id", "dataset_run_id")
"""What a score may be of; the first that it names is the item."""


def detect(path: Path) -> bool:
    """Whether a file, or a file of a folder, holds scores of Langfuse."""
    return some_file(path, _has_scores, *_SUFFIXES)


def read(path: Path) -> Sequence[Recording]:
    """Reads the scores of each name; in a folder, exported traces add the texts."""
    contents = LogContents(path.name, "langfuse")
    files = files_of(path, _has_scores, *_SUFFIXES)
    texts: dict[str, tuple[str, str]] = {}
    if path.is_dir() and some_file(path, _has_traces, *_SUFFIXES):
        for file in files_of(path, _has_traces, *_SUFFIXES):
            for row in map(_snake_case, rows_of(file, *_ROWS)):
                given, output = as_text(row.get("input")), as_text(row.get("output"))
                texts[as_text(row.get("id"))] = given, output
                contents.count(given, output)
    seen: set[str] = set()
    for file in files:
        for number, row in enumerate(map(_snake_case, rows_of(file, *_ROWS)), 1):
            with errors_of(f"{file.name}: score {number}"):
                if not _is_score(row):
                    raise DesignError("it lacks a name, a value, a source or what it is of")
                if (name := as_text(row.get("id"))) and name in seen:
                    raise DesignError(f"its id {name} occurs twice")
                seen.add(name)
                _read_score(row, texts, contents)
    if not texts:
        contents.note("Scores are without texts; a folder with exported traces adds them.")
    return contents.recordings()


def _has_scores(file: Path) -> bool:
    return _is_score(_snake_case(first_row(file, *_ROWS)))


def _has_traces(file: Path) -> bool:
    row = _snake_case(first_row(file, *_ROWS))
    return "id" in row and "input" in row and "output" in row and "source" not in row


def _is_score(row: Mapping[str, Any]) -> bool:
    return (
        row.get("source") in _SOURCES
        and "name" in row
        and "value" in row
        and ("trace_id" in row or "subject" in row)
    )


def _read_score(
    row: Mapping[str, Any], texts: Mapping[str, tuple[str, str]], contents: LogContents
) -> None:
    question, source = as_text(row["name"]), row["source"]
    guessed = "CATEGORICAL" if row.get("string_value") else "NUMERIC"
    kind = as_text(row.get("data_type")) or guessed
    if kind in ("TEXT", "CORRECTION"):
        contents.skip(f"scores of {question} that are free text")
        return
    subject = as_mapping(row.get("subject"))
    names = [*(as_text(row.get(name)) for name in _SUBJECTS), as_text(subject.get("id"))]
    case = next((name for name in names if name), "")
    if not case:
        contents.skip(f"scores of {question} that are of no trace, observation or session")
        return
    given, output = texts.get(case, ("", ""))
    item = contents.add_item(case, output, input=given)
    value, comment = _value(row, kind), as_text(row.get("comment"))
    if source == "ANNOTATION":
        person = as_text(row.get("author_user_id") or row.get("author_user_name")) or "annotator"
        contents.add_label(question, item, person, value, as_text(row.get("updated_at")))
        return
    if source == "API":
        contents.note(
            "Scores with source API are taken for a judge's; they may be users' feedback."
        )
    metadata = _metadata(row.get("metadata"))
    judge = metadata.get("model") or row.get("evaluator_id") or f"{question} ({source})"
    contents.add_verdict(
        question,
        item,
        as_text(judge),
        value,
        {"judge.temperature": as_number(metadata.get("temperature"))},
        score=as_number(row["value"]),
        rationale=comment,
        call=as_text(row.get("execution_trace_id")),
    )


def _value(row: Mapping[str, Any], kind: str) -> Value:
    """Returns a score as its type has it; version 3 writes flags and words as values."""
    value, word = row["value"], as_text(row.get("string_value"))
    match kind:
        case "BOOLEAN":
            number = as_number(value)
            return number == 1 if number is not None else as_text(value).lower() or None
        case "CATEGORICAL":
            return word or as_text(value)
        case _:
            return as_number(value)


def _metadata(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and value.startswith("{"):
        value = parse_record(value.encode(), "metadata")
    return value if isinstance(value, dict) else {}


def _snake_case(row: Mapping[str, Any]) -> dict[str, Any]:
    """Writes keys as files of the blob export do; those of the API have camel case."""
    return {_CAPITAL.sub("_", key).lower(): value for key, value in row.items()}
