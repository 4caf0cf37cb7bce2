"""Test runs of DeepEval: the verdicts of its model-graded metrics."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.recorded.contents import LogContents, as_number, as_text
from judge_gym.recorded.files import files_of, first_row, rows_of, top_level
from judge_gym.recorded.recording import Recording

ABOUT = "DeepEval: test runs (.json) with metrics that a model grades"
_ROWS = (("testCases",), ("conversationalTestCases",), ("test_results",))
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def detect(path: Path) -> bool:
    """Whether a file, or a file of a folder, is a test run of DeepEval."""
    return any(_is_run(file) for file in files_of(path, ".json"))


def read(path: Path) -> Sequence[Recording]:
    """Reads the verdicts of each metric that names its model."""
    contents = LogContents(path.name, "deepeval")
    files = [file for file in files_of(path, ".json") if _is_run(file)]
    if not files:
        raise DesignError(f"{path} is no test run of DeepEval, or cut off")
    for file in files:
        system = _system(file) if len(files) > 1 else ""
        for number, row in enumerate(rows_of(file, *_ROWS)):
            case = _snake_case(row)
            metrics = case.get("metrics_data")
            if not isinstance(metrics, list) and metrics is not None:
                raise DesignError(f"{file.name}: the metrics of test case {number + 1} are no list")
            item = contents.add_item(
                as_text(case.get("name")) or f"test case {number}",
                as_text(case.get("actual_output")) or _transcript(case.get("turns")),
                (system,),
                input=as_text(case.get("input") or case.get("scenario")),
                reference=as_text(case.get("expected_output") or case.get("expected_outcome")),
                context="\n\n".join(
                    as_text(part)
                    for part in case.get("retrieval_context") or case.get("context") or []
                ),
            )
            for metric in metrics or []:
                _read_metric(_snake_case(metric), item, contents)
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
    if not isinstance(turns, list):
        return ""
    spoken = [turn for turn in turns if isinstance(turn, dict)]
    return "\n\n".join(f"{turn.get('role', '')}: {as_text(turn.get('content'))}" for turn in spoken)


def _snake_case(row: Any) -> dict[str, Any]:
    """Writes keys as the Python objects do; files have camel case."""
    if not isinstance(row, dict):
        raise DesignError(f"{str(row)[:40]!r} is no object")
    return {_CAPITAL.sub("_", str(key)).lower(): value for key, value in row.items()}
