"""Test runs of DeepEval: the verdicts of its model-graded metrics."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.recorded.contents import LogContents, as_number, as_text
from judge_gym.recorded.files import (
    as_list,
    as_mapping,
    errors_of,
    files_of,
    first_row,
    rows_of,
    some_file,
    top_level,
)
from judge_gym.recorded.recording import Recording

ABOUT = "DeepEval: test runs (.json) with metrics that a model grades"
_ROWS = (("testCases",), ("conversationalTestCases",), ("test_results",))
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def detect(path: Path) -> bool:
    """Whether a file, or a file of a folder, is a test run of DeepEval."""
    return some_file(path, _is_run, ".json")


def read(path: Path) -> Sequence[Recording]:
    """Reads the verdicts of each metric that names its model."""
    contents = LogContents(path.name, "deepeval")
    files = files_of(path, _is_run, ".json")
    for file in files:
        system = _system(file) if len(files) > 1 else ""
        for number, row in enumerate(rows_of(file, *_ROWS), 1):
            with errors_of(f"{file.name}: test case {number}"):
                _read_case(_snake_case(row), number, system, contents)
    return contents.recordings()


def _is_run(file: Path) -> bool:
    row = _snake_case(first_row(file, *_ROWS))
    return "metrics_data" in row and "success" in row


def _system(file: Path) -> str:
    """Names what was tested by the hyperparameters of its run."""
    parameters = top_level(file, "hyperparameters").get("hyperparameters")
    if not isinstance(parameters, dict) or not parameters:
        return file.stem
    return ", ".join(f"{name} {as_text(value)}" for name, value in parameters.items())


def _read_case(case: Mapping[str, Any], number: int, system: str, contents: LogContents) -> None:
    passages = as_list(case.get("retrieval_context") or case.get("context"))
    item = contents.add_item(
        as_text(case.get("name")) or f"test case {number}",
        as_text(case.get("actual_output")) or _transcript(case.get("turns")),
        (system,),
        input=as_text(case.get("input") or case.get("scenario")),
        reference=as_text(case.get("expected_output") or case.get("expected_outcome")),
        context="\n\n".join(map(as_text, passages)),
    )
    for metric in as_list(case.get("metrics_data")):
        _read_metric(_snake_case(metric), item, contents)


def _read_metric(metric: Mapping[str, Any], item: int, contents: LogContents) -> None:
    name, judge = as_text(metric.get("name")), metric.get("evaluation_model")
    if not judge:
        contents.skip(f"results of {name}, which names no model")
        return
    success = metric.get("success")
    error = as_text(metric.get("error"))
    value = "pass" if success is True else "fail" if success is False else None
    contents.add_verdict(
        name,
        item,
        as_text(judge),
        None if error else value,
        {
            "foreign.threshold": metric.get("threshold"),
            "foreign.strict_mode": metric.get("strict_mode"),
        },
        **({"status": "provider_error"} if error else {}),
        score=as_number(metric.get("score")),
        usd=as_number(metric.get("evaluation_cost")),
        rationale=as_text(metric.get("reason")) or error,
    )


def _transcript(turns: Any) -> str:
    spoken = map(as_mapping, as_list(turns))
    return "\n\n".join(
        f"{as_text(turn.get('role'))}: {as_text(turn.get('content'))}" for turn in spoken
    )


def _snake_case(row: Any) -> dict[str, Any]:
    """Writes keys as the Python objects do; files have camel case."""
    return {_CAPITAL.sub("_", key).lower(): value for key, value in as_mapping(row).items()}
