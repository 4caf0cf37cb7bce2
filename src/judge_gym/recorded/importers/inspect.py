"""Logs of Inspect AI: `.eval` archives, `.json` files, and folders of them."""

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.recorded.contents import LogContents, as_text, messages_json
from judge_gym.recorded.files import (
    Archive,
    JsonReader,
    files_of,
    open_file,
    parse_record,
    top_level,
)
from judge_gym.recorded.recording import Recording

ABOUT = "Inspect AI: logs (.eval, .json) of tasks with model-graded scorers"
VERSIONS = (1, 2)
_CODE_SCORERS = (
    *("answer", "cascade", "choice", "exact", "f1", "includes", "match", "math", "pattern"),
    *("perplexity", "precomputed_scores", "target_perplexity"),
)
"""Scorers of Inspect that ask no model."""
_UNREAD_GRADE = "Grade not found in model output"
"""How explanations of verdicts begin that were not found; older versions counted them as wrong."""
_CRITERIA = {
    "C": ("The answer is correct.",),
    "P": ("The answer is partially correct.",),
    "I": ("The answer is incorrect.",),
    "N": ("There is no answer.",),
}
_SAMPLE = ("id", "epoch", "input", "target", "output", "scores", "attachments")
_ATTACHMENT = "attachment://"


def detect(path: Path) -> bool:
    """Whether a file, or a file of a folder, is a log of Inspect."""
    return any(_is_log(file) for file in files_of(path, ".eval", ".json"))


def read(path: Path) -> Sequence[Recording]:
    """Reads the verdicts of each scorer that is not plain code."""
    contents = LogContents(path.name, "inspect")
    files = [file for file in files_of(path, ".eval", ".json") if _is_log(file)]
    if not files:
        raise DesignError(f"{path} is no log of Inspect, or cut off")
    headers = [_header(file) for file in files]
    several = len({header.get("task") for header in headers}) > 1
    runs = set()
    for file, header in zip(files, headers, strict=True):
        run = header.get("eval_id", str(file))
        if run in runs:
            contents.note(f"{file.name} holds a run that another file holds, and is left out.")
            continue
        runs.add(run)
        _read_log(file, header, f"{header.get('task')} " if several else "", contents)
    return contents.recordings(_CRITERIA)


def _is_log(file: Path) -> bool:
    if file.suffix.lower() == ".eval":
        return True
    task = top_level(file, "eval").get("eval")
    return isinstance(task, dict) and "task" in task and "model" in task


def _header(file: Path) -> dict[str, Any]:
    """Returns what a log says of its run."""
    if file.suffix.lower() == ".eval":
        with Archive(file) as archive:
            unfinished = "header.json" not in archive.names
            name = "_journal/start.json" if unfinished else "header.json"
            header = parse_record(archive.read(name), f"{file.name}: {name}")
    else:
        header = top_level(file, "version", "eval")
    version = header.get("version") if isinstance(header, dict) else None
    if version not in VERSIONS:
        raise DesignError(
            f"{file.name}: version {version!r} of logs is not read", choices=("1", "2")
        )
    task = header.get("eval")
    if not isinstance(task, dict):
        raise DesignError(f"{file.name} does not say what was evaluated")
    return task


def _samples(file: Path) -> Iterator[dict[str, Any]]:
    if file.suffix.lower() == ".eval":
        with Archive(file) as archive:
            for name in archive.names:
                if name.startswith("samples/") and name.endswith(".json"):
                    data = archive.read(name)
                    yield _sample(JsonReader(io.BytesIO(data), f"{file.name}: {name}"))
        return
    with open_file(file) as opened:
        reader = JsonReader(opened, file.name)
        for key in reader.keys():
            if key == "samples" and reader.peek() == "[":
                for _ in reader.elements():
                    yield reader.value()
            else:
                reader.skip()
        reader.finish()


def _sample(reader: JsonReader) -> dict[str, Any]:
    """Reads what is needed of a sample, and not its events, which are most of it."""
    sample: dict[str, Any] = {}
    for key in reader.keys():
        if key in _SAMPLE:
            sample[key] = reader.value()
            if key == "scores" and _ATTACHMENT not in str(sample):
                break
        else:
            reader.skip()
    return sample


def _read_log(file: Path, header: Mapping[str, Any], prefix: str, contents: LogContents) -> None:
    seen = set()
    for sample in _samples(file):
        if not isinstance(sample, dict) or "id" not in sample:
            raise DesignError(f"{file.name}: a sample has no id")
        key = (str(sample["id"]), sample.get("epoch", 1))
        if key in seen:
            raise DesignError(f"{file.name}: sample {key[0]!r} occurs twice in epoch {key[1]}")
        seen.add(key)
        _read_sample(sample, header, prefix, contents)


def _read_sample(
    sample: dict[str, Any], header: Mapping[str, Any], prefix: str, contents: LogContents
) -> None:
    attachments = sample.get("attachments") or {}
    scores = sample.get("scores") or {}
    if not scores:
        contents.skip("samples without a score")
    for scorer, score in scores.items():
        if scorer.rstrip("0123456789") in _CODE_SCORERS:
            contents.skip(f"scores of {scorer}, which is code")
            continue
        output = _output(sample.get("output")) or as_text(score.get("answer"))
        item = contents.add_item(
            str(sample["id"]),
            _resolved(output, attachments),
            (str(header.get("model", "")),),
            input=_resolved(_transcript(sample.get("input")), attachments),
            reference=_target(sample.get("target")),
        )
        _read_score(f"{prefix}{scorer}", scorer, score, item, header, attachments, contents)


def _read_score(
    question: str,
    scorer: str,
    score: dict[str, Any],
    item: int,
    header: Mapping[str, Any],
    attachments: Mapping[str, str],
    contents: LogContents,
) -> None:
    original, *edits = score.get("history") or [score]
    value = original.get("value")
    if isinstance(value, list):
        contents.skip(f"scores of {scorer} that are lists")
        return
    grading = _grading(score, attachments)
    answer = grading[-1][1] if grading else ""
    explanation = _resolved(as_text(original.get("explanation")), attachments)
    unread = explanation.startswith(_UNREAD_GRADE)
    if unread and value == "I":
        contents.note(
            "Verdicts whose grade was not found are unreadable here; Inspect counted them as I."
        )
    judge, knobs = _setup(scorer, header, score)
    values = value if isinstance(value, dict) else {"": value}
    for part, single in values.items():
        name = f"{question} {part}".strip()
        contents.add_verdict(
            name,
            item,
            judge,
            None if unread or _is_nan(single) else single,
            knobs,
            score=single if isinstance(single, float) and not _is_nan(single) else None,
            prompt=messages_json(grading[:-1]) if grading else "",
            answer=answer,
            rationale=explanation,
        )
        for edit in edits:
            person = (edit.get("provenance") or {}).get("author")
            changed = edit.get("value")
            changed = changed.get(part) if isinstance(changed, dict) else changed
            if person and changed != "UNCHANGED":
                contents.add_label(name, item, str(person), changed)


def _setup(
    scorer: str, header: Mapping[str, Any], score: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Returns the judge of a scorer, and the choices in its setup."""
    scorers = header.get("scorers") or []
    options = next(
        (each.get("options") or {} for each in scorers if each.get("name") == scorer), {}
    )
    role = (header.get("model_roles") or {}).get(options.get("model_role", "grader"))
    model = options.get("model") or role
    graders = model if isinstance(model, list) else [model] if model else []
    names = [each.get("model", "") if isinstance(each, dict) else str(each) for each in graders]
    if not names and _grading(score, {}):
        names = [str(header.get("model", ""))]  # without a grader, the model grades itself
    knobs = {
        f"foreign.{name}": value
        for name, value in options.items()
        if name not in ("model", "model_role") and value is not None
    }
    if len(graders) == 1 and isinstance(graders[0], dict):
        config = {**(graders[0].get("args") or {}), **(graders[0].get("config") or {})}
        for name in ("temperature", "max_tokens"):
            if config.get(name) is not None:
                knobs[f"judge.{name}"] = config[name]
    return " + ".join(names) or scorer, knobs


def _grading(score: Mapping[str, Any], attachments: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns the roles and texts of what the judge was asked and answered."""
    messages = (score.get("metadata") or {}).get("grading")
    if not isinstance(messages, list):
        return []
    return [
        (str(message.get("role", "user")), _resolved(_content(message), attachments))
        for message in messages
        if isinstance(message, dict)
    ]


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "\n".join(str(part["text"]) for part in parts if part.get("text"))
    return as_text(content)


def _transcript(given: Any) -> str:
    """Returns an input as text; of several messages, each with its role."""
    if not isinstance(given, list):
        return as_text(given)
    messages = [message for message in given if isinstance(message, dict)]
    if len(messages) == 1:
        return _content(messages[0])
    return "\n\n".join(f"{message.get('role', '')}: {_content(message)}" for message in messages)


def _output(output: Any) -> str:
    if not isinstance(output, dict):
        return ""
    if output.get("completion"):
        return str(output["completion"])
    choices = output.get("choices") or [{}]
    return _content(choices[0].get("message") or {})


def _target(target: Any) -> str:
    return "\n".join(map(str, target)) if isinstance(target, list) else as_text(target)


def _resolved(text: str, attachments: Mapping[str, str]) -> str:
    if text.startswith(_ATTACHMENT):
        return str(attachments.get(text.removeprefix(_ATTACHMENT), text))
    return text


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
