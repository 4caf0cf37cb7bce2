"""Traces of MLflow with assessments: feedback of judges and people, and expectations."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.recorded.contents import LogContents, as_number, as_text
from judge_gym.recorded.files import first_row, parse_record, rows_of
from judge_gym.recorded.recording import Recording

ABOUT = "MLflow: exported traces (.json, .jsonl) with assessments"
_ROWS = ((), ("traces",))
_REFERENCES = ("expected_response", "expected_output", "expected_facts", "guidelines")
"""Expectations that say what a good answer holds, in words."""


def detect(path: Path) -> bool:
    """Whether a file holds traces of MLflow."""
    return path.is_file() and bool(_info(first_row(path, *_ROWS)))


def read(path: Path) -> Sequence[Recording]:
    """Reads the feedback of each name; expectations of the same name are the truth."""
    contents = LogContents(path.name, "mlflow")
    seen = set()
    for number, row in enumerate(rows_of(path, *_ROWS), 1):
        info = _info(row)
        if not info:
            raise DesignError(f"{path.name}: row {number} is no trace with an id")
        name = as_text(info["trace_id"])
        if name in seen:
            raise DesignError(f"{path.name}: trace {name} occurs twice")
        seen.add(name)
        _read_trace(name, row, info, contents)
    return contents.recordings()


def _info(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns what a trace says of itself, as `Trace.to_dict` or a frame of traces writes it."""
    info = row.get("info", row)
    if not isinstance(info, dict) or not info.get("trace_id"):
        return {}
    known = ("assessments", "trace_location", "trace_metadata", "request_preview")
    return info if any(name in info for name in known) else {}


def _read_trace(
    name: str, row: Mapping[str, Any], info: Mapping[str, Any], contents: LogContents
) -> None:
    assessments = info.get("assessments") or []
    if not isinstance(assessments, list):
        raise DesignError(f"{contents.source}: the assessments of trace {name} are no list")
    overridden = {each.get("overrides") for each in assessments if isinstance(each, dict)}
    current = [
        each
        for each in assessments
        if each.get("valid") is not False and each.get("assessment_id") not in overridden
    ]
    if len(current) < len(assessments):
        contents.note("Assessments that were corrected later are left out.")
    expectations = {
        as_text(each.get("assessment_name") or each.get("name")): _plain(each["expectation"])
        for each in current
        if each.get("expectation")
    }
    given, output = _texts(row, info)
    item = contents.add_item(
        name,
        output,
        input=given,
        reference="\n".join(
            as_text(expectations[key]) for key in _REFERENCES if key in expectations
        ),
    )
    names = set()
    for assessment in current:
        if "feedback" in assessment:
            names.add(_read_feedback(item, assessment, contents))
    for key, value in expectations.items():
        if key in names:
            contents.set_truth(key, item, value if not isinstance(value, list | dict) else None)
        elif key not in _REFERENCES:
            contents.skip(f"expectations {key}, of which there is no feedback")


def _read_feedback(item: int, assessment: Mapping[str, Any], contents: LogContents) -> str:
    """Reads a judge's or a person's feedback, and returns its name."""
    question = as_text(assessment.get("assessment_name") or assessment.get("name"))
    source = assessment.get("source") or {}
    kind, judge = as_text(source.get("source_type")), as_text(source.get("source_id"))
    feedback = assessment.get("feedback") or {}
    value = _plain(feedback)
    if isinstance(value, list | dict):
        contents.skip(f"feedback {question} that is a list or an object")
        return question
    if kind == "HUMAN":
        contents.add_label(question, item, judge or "annotator", value)
        return question
    metadata = assessment.get("metadata") or {}
    error = feedback.get("error")
    contents.add_verdict(
        question,
        item,
        judge if judge and judge != "default" else f"{question} ({kind})",
        None if error else value,
        {"foreign.source_type": kind},
        **({"status": "provider_error"} if error else {}),
        score=as_number(value),
        usd=as_number(metadata.get("mlflow.assessment.judgeCost")),
        rationale=as_text(assessment.get("rationale")),
    )
    return question


def _plain(part: Mapping[str, Any]) -> Any:
    """Returns the value of feedback or an expectation."""
    serialized = part.get("serialized_value")
    if isinstance(serialized, dict):
        return parse_record(as_text(serialized.get("value")).encode(), "an expectation")
    return part.get("value")


def _texts(row: Mapping[str, Any], info: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the input and the output of a trace: whole from its first span, or previews."""
    data = row.get("data")
    spans = data.get("spans") if isinstance(data, dict) else None
    attributes = spans[0].get("attributes") or {} if spans else {}
    given = attributes.get("mlflow.spanInputs") or row.get("request") or info.get("request_preview")
    output = (
        attributes.get("mlflow.spanOutputs") or row.get("response") or info.get("response_preview")
    )
    return _unquoted(given), _unquoted(output)


def _unquoted(value: Any) -> str:
    """Returns a text that was written as JSON; of an object with one text, that text."""
    text = as_text(value)
    if not text.startswith(('"', "{")):
        return text
    try:
        parsed = parse_record(text.encode(), "a span")
    except DesignError:  # a preview that was cut off
        return text
    if isinstance(parsed, dict) and len(parsed) == 1:
        parsed = next(iter(parsed.values()))
    return parsed if isinstance(parsed, str) else text
