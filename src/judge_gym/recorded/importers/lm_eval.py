"""Samples of lm-evaluation-harness: its metrics, each taken as a judge."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.recorded.contents import LogContents, as_number, as_text
from judge_gym.recorded.files import errors_of, files_of, first_row, rows_of, some_file
from judge_gym.recorded.recording import Recording

ABOUT = "lm-evaluation-harness: samples (samples_*.jsonl), each metric taken as a judge"
_NAME = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d{2}-\d{2}T[\d.-]+)?$")
_NEEDED = ("doc_id", "doc", "target", "resps")


def detect(path: Path) -> bool:
    """Whether a file, or a file of a folder, holds samples of the harness."""
    return some_file(path, _is_samples, ".jsonl")


def read(path: Path) -> Sequence[Recording]:
    """Reads the values of each metric of each task."""
    contents = LogContents(path.name, "lm-eval")
    files = files_of(path, _is_samples, ".jsonl")
    tasks = [_task(file) for file in files]
    several = len(set(tasks)) > 1
    models = [file.parent.name if path.is_dir() and file.parent != path else "" for file in files]
    for file, task, model in zip(files, tasks, models, strict=True):
        prefix = f"{task} " if several else ""
        seen = set()
        for number, row in enumerate(rows_of(file), 1):
            with errors_of(f"{file.name}: sample {number}"):
                if any(name not in row for name in _NEEDED):
                    raise DesignError(f"it lacks one of {', '.join(_NEEDED)}")
                key = (as_text(row["doc_id"]), as_text(row.get("filter")))
                if key in seen:
                    raise DesignError(f"document {key[0]} occurs twice")
                seen.add(key)
                _read_sample(row, prefix, model, contents)
    contents.note(
        "The judge is the metric: a rule in code, unless its task asks a model; samples do not say "
        "which."
    )
    return contents.recordings()


def _is_samples(file: Path) -> bool:
    row = first_row(file)
    return all(name in row for name in _NEEDED) and "filtered_resps" in row


def _task(file: Path) -> str:
    match = _NAME.match(file.stem)
    return match["task"] if match else file.stem


def _read_sample(row: Mapping[str, Any], prefix: str, model: str, contents: LogContents) -> None:
    metrics = row.get("metrics")
    if not isinstance(metrics, list):
        # Versions before 0.4.8 do not list them; what is no field of a sample is a metric.
        metrics = [name for name in row if name not in _FIELDS]
    item = contents.add_item(
        f"{prefix}{as_text(row['doc_id'])}",
        _response(row["resps"]),
        (model,),
        input=_prompt(row.get("arguments")),
        reference=as_text(row["target"]),
    )
    for metric in map(as_text, metrics):
        value = row.get(metric)
        number = float(value) if isinstance(value, bool) else as_number(value)
        if number is None:
            contents.skip(f"values of {metric} that are no numbers")
            continue
        knobs = {"foreign.filter": row.get("filter")}
        contents.add_verdict(f"{prefix}{metric}", item, metric, number, knobs, score=number)


_FIELDS = (
    *_NEEDED,
    *("arguments", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash"),
    *("target_hash", "schema"),
)


def _response(responses: Any) -> str:
    """Returns what the model wrote; of a choice by likelihood, the numbers as they are."""
    while isinstance(responses, list) and len(responses) == 1:
        responses = responses[0]
    return as_text(responses)


def _prompt(arguments: Any) -> str:
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    while isinstance(arguments, list | dict) and arguments:
        arguments = next(iter(arguments.values() if isinstance(arguments, dict) else arguments))
    return as_text(arguments)
