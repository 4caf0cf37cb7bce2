"""Annotations exported from Phoenix: those of models and code, and those of people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.recorded.contents import LogContents, Value, as_number, as_text
from judge_gym.recorded.files import as_mapping, errors_of, files_of, first_row, rows_of, some_file
from judge_gym.recorded.recording import Recording

ABOUT = "Phoenix: exported annotations (.json, .jsonl, .csv) of spans, traces and sessions"
_ROWS = ((), ("data",), ("annotations",))
_SUFFIXES = (".csv", ".json", ".jsonl")
_KINDS = ("CODE", "HUMAN", "LLM")
_SUBJECTS = ("span_id", "trace_id", "session_id")


def detect(path: Path) -> bool:
    """Whether a file, or a file of a folder, holds annotations of Phoenix."""
    return some_file(path, _has_annotations, *_SUFFIXES)


def read(path: Path) -> Sequence[Recording]:
    """Reads the annotations of each name; in a folder, exported spans add the texts."""
    contents = LogContents(path.name, "phoenix")
    files = files_of(path, _has_annotations, *_SUFFIXES)
    texts: dict[str, tuple[str, str]] = {}
    if path.is_dir() and some_file(path, _has_spans, *_SUFFIXES):
        for file in files_of(path, _has_spans, *_SUFFIXES):
            for row in rows_of(file, *_ROWS):
                given, output = texts[_span_id(row)] = _texts(row)
                contents.count(given, output)
    seen: set[str] = set()
    for file in files:
        for number, row in enumerate(rows_of(file, *_ROWS), 1):
            with errors_of(f"{file.name}: annotation {number}"):
                if not _is_annotation(row):
                    raise DesignError("it lacks a name or an annotator_kind")
                if (name := as_text(row.get("id"))) and name in seen:
                    raise DesignError(f"its id {name} occurs twice")
                seen.add(name)
                _read_annotation(row, texts, contents)
    if not texts:
        contents.note("Annotations are without texts; a folder with exported spans adds them.")
    return contents.recordings()


def _has_annotations(file: Path) -> bool:
    return _is_annotation(first_row(file, *_ROWS))


def _has_spans(file: Path) -> bool:
    return _span_id(first_row(file, *_ROWS)) != ""


def _is_annotation(row: Mapping[str, Any]) -> bool:
    named = "name" in row or "annotation_name" in row
    return row.get("annotator_kind") in _KINDS and named


def _span_id(row: Mapping[str, Any]) -> str:
    """Returns the id of a span, as spans or frames of them write it; of anything else, none."""
    context = row.get("context")
    if "annotator_kind" in row:
        return ""
    return as_text(
        context.get("span_id") if isinstance(context, dict) else row.get("context.span_id")
    )


def _texts(span: Mapping[str, Any]) -> tuple[str, str]:
    flat = as_mapping(span.get("attributes"))
    texts = []
    for name in ("input", "output"):
        nested = flat.get(name)
        value = nested.get("value") if isinstance(nested, dict) else flat.get(f"{name}.value")
        texts.append(as_text(value or span.get(f"attributes.{name}.value")))
    return texts[0], texts[1]


def _read_annotation(
    row: Mapping[str, Any], texts: Mapping[str, tuple[str, str]], contents: LogContents
) -> None:
    question = as_text(row.get("annotation_name") or row.get("name"))
    case = next((as_text(row[name]) for name in _SUBJECTS if row.get(name)), "")
    if not case:
        contents.skip(f"annotations of {question} that are of no span, trace or session")
        return
    position = as_text(row.get("document_position"))
    given, output = texts.get(case, ("", ""))
    name = f"{case}, document {position}" if position else case
    item = contents.add_item(name, output, input=given)
    label, score = _result(row, "label"), as_number(_result(row, "score"))
    value: Value = as_text(label) or score
    identifier = as_text(row.get("identifier"))
    if row["annotator_kind"] == "HUMAN":
        person = as_text(row.get("user_id")) or identifier or "annotator"
        contents.add_label(question, item, person, value, as_text(row.get("updated_at")))
        return
    metadata = row.get("metadata")
    model = as_text(metadata.get("model")) if isinstance(metadata, dict) else ""
    judge = model or identifier or f"{question} ({row['annotator_kind']})"
    contents.add_verdict(
        question,
        item,
        judge,
        value,
        {"foreign.annotator_kind": row["annotator_kind"]},
        score=score,
        rationale=as_text(_result(row, "explanation")),
    )


def _result(row: Mapping[str, Any], name: str) -> Any:
    """Returns a part of a result: nested, in columns of a frame, or flat."""
    result = row.get("result")
    if isinstance(result, dict):
        return result.get(name)
    return row.get(f"result.{name}", row.get(name))
