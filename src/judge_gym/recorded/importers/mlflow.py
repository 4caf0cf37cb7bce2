"""Traces of MLflow with assessments: feedback of judges and people, and expectations."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.recorded.contents import LogContents, as_number, as_text, as_value
from judge_gym.recorded.files import (
    as_list,
    as_mapping,
    errors_of,
    first_row,
    parse_record,
    rows_of,
    some_file,
)
from judge_gym.recorded.recording import Recording

ABOUT = "MLflow: exported traces (.json, .jsonl) with assessments"
_ROWS = ((), ("traces",))
_REFERENCES = ("expected_response", "expected_output", "expected_facts", "guidelines")
"""Expectations that say what a good answer holds, in words."""

_CORRECTED = (
    "Where a person corrected a judge's feedback, the verdict is what the judge gave and the "
    "correction is a label. People correct what they find wrong, so agreement with these labels "
    "alone says little of the judge."
)


def detect(path: Path) -> bool:
    """Whether a file holds traces of MLflow."""
    return path.is_file() and some_file(path, _is_traces, ".json", ".jsonl")


def read(path: Path) -> Sequence[Recording]:
    """Reads the feedback of each name; expectations of the same name are the truth."""
    contents = LogContents(path.name, "mlflow")
    seen = set()
    for number, row in enumerate(rows_of(path, *_ROWS), 1):
        with errors_of(f"{path.name}: trace {number}"):
            info = _info(row)
            if not info:
                raise DesignError("it has no id")
            name = as_text(info["trace_id"])
            if name in seen:
                raise DesignError(f"its id {name} occurs twice")
            seen.add(name)
            _read_trace(name, row, info, contents)
    return contents.recordings()


def _is_traces(file: Path) -> bool:
    return bool(_info(first_row(file, *_ROWS)))


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
    assessments = list(map(as_mapping, as_list(info.get("assessments"))))
    correctors = {
        as_text(each["overrides"]): _kind(each) for each in assessments if each.get("overrides")
    }
    current = []
    for each in assessments:
        corrector = correctors.get(as_text(each.get("assessment_id")))
        if corrector == "HUMAN" != _kind(each):
            contents.note(_CORRECTED)
        elif corrector or each.get("valid") is False:
            contents.skip("assessments that were given anew later")
            continue
        current.append(each)
    expectations = {
        _name(each): _plain(as_mapping(each["expectation"]))
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
            contents.set_truth(key, item, as_value(value))
        elif key not in _REFERENCES:
            contents.skip(f"expectations {key}, of which there is no feedback")


def _read_feedback(item: int, assessment: Mapping[str, Any], contents: LogContents) -> str:
    """Reads a judge's or a person's feedback, and returns its name."""
    question = _name(assessment)
    kind = _kind(assessment)
    judge = as_text(as_mapping(assessment.get("source")).get("source_id"))
    feedback = as_mapping(assessment.get("feedback"))
    value = _plain(feedback)
    if isinstance(value, list | dict):
        contents.skip(f"feedback {question} that is a list or an object")
        return question
    if kind == "HUMAN":
        time = as_text(assessment.get("last_update_time"))
        contents.add_label(question, item, judge or "annotator", as_value(value), time)
        return question
    metadata = as_mapping(assessment.get("metadata"))
    error = feedback.get("error")
    contents.add_verdict(
        question,
        item,
        judge if judge and judge != "default" else f"{question} ({kind})",
        None if error else as_value(value),
        {"foreign.source_type": kind},
        **({"status": "provider_error"} if error else {}),
        score=as_number(value),
        usd=as_number(metadata.get("mlflow.assessment.judgeCost")),
        rationale=as_text(assessment.get("rationale")),
    )
    return question


def _name(assessment: Mapping[str, Any]) -> str:
    return as_text(assessment.get("assessment_name") or assessment.get("name"))


def _kind(assessment: Mapping[str, Any]) -> str:
    return as_text(as_mapping(assessment.get("source")).get("source_type"))


def _plain(part: Mapping[str, Any]) -> Any:
    """Returns the value of feedback or an expectation."""
    serialized = part.get("serialized_value")
    if isinstance(serialized, dict):
        return parse_record(as_text(serialized.get("value")).encode(), "an expectation")
    return part.get("value")


def _texts(row: Mapping[str, Any], info: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the input and the output of a trace: whole from its first span, or previews."""
    spans = as_list(as_mapping(row.get("data")).get("spans"))
    attributes = as_mapping(as_mapping(spans[0]).get("attributes") if spans else None)
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
