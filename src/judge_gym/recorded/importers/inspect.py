"""Logs of Inspect AI: `.eval` archives, `.json` files, and folders of them."""

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.recorded.contents import LogContents, as_number, as_text, as_value, messages_json
from judge_gym.recorded.files import (
    Archive,
    JsonReader,
    as_list,
    as_mapping,
    errors_of,
    files_of,
    open_file,
    parse_record,
    some_file,
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
_EDITED = (
    "Scores that people edited are labels. People edit what they find wrong, so agreement with "
    "these labels alone says little of the judge."
)
_CRITERIA = {
    "C": ("The answer is correct.",),
    "P": ("The answer is partially correct.",),
    "I": ("The answer is incorrect.",),
    "N": ("There is no answer.",),
}
_SAMPLE = ("id", "epoch", "input", "target", "output", "scores", "attachments")
_PANEL = " + "
"""What stands between the names of several graders, of which one verdict is made."""
_ATTACHMENT = "attachment://"


def detect(path: Path) -> bool:
    """Whether a file, or a file of a folder, is a log of Inspect."""
    return some_file(path, _is_log, ".eval", ".json")


def read(path: Path) -> Sequence[Recording]:
    """Reads the verdicts of each scorer that is not plain code."""
    contents = LogContents(path.name, "inspect")
    files = files_of(path, _is_log, ".eval", ".json")
    headers = [_header(file) for file in files]
    runs = [as_mapping(header.get("eval")) for header in headers]
    several = len({as_text(run.get("task")) for run in runs}) > 1
    known = set()
    for file, header, run in zip(files, headers, runs, strict=True):
        name = as_text(run.get("eval_id")) or str(file)
        if name in known:
            contents.note(f"{file.name} holds a run that another file holds, and is left out.")
            continue
        known.add(name)
        if (status := header.get("status")) != "success":
            contents.note(f"The run of {file.name} did not end ({status}); what it has is read.")
        _read_log(file, run, f"{as_text(run.get('task'))} " if several else "", contents)
    return contents.recordings(_CRITERIA)


def _is_log(file: Path) -> bool:
    if file.suffix.lower() == ".eval":
        return True
    task = top_level(file, "eval").get("eval")
    return isinstance(task, dict) and "task" in task and "model" in task


def _header(file: Path) -> dict[str, Any]:
    """Returns what a log says of itself, if its version is one that is read."""
    if file.suffix.lower() == ".eval":
        with Archive(file) as archive:
            unfinished = "header.json" not in archive.names
            name = "_journal/start.json" if unfinished else "header.json"
            header = parse_record(archive.read(name), f"{file.name}: {name}")
    else:
        header = top_level(file, "version", "status", "eval")
        if "eval" not in header:
            raise DesignError(f"{file.name} is no log of Inspect, or cut off")
    version = as_mapping(header).get("version")
    if version not in VERSIONS:
        raise DesignError(
            f"{file.name}: version {version!r} of logs is not read", choices=("1", "2")
        )
    return dict(header)


def _samples(file: Path) -> Iterator[dict[str, Any]]:
    if file.suffix.lower() == ".eval":
        with Archive(file) as archive:
            for name in archive.names:
                if name.startswith("samples/") and name.endswith(".json"):
                    data = archive.read(name)
                    reader = JsonReader(io.BytesIO(data), f"{file.name}: {name}")
                    yield _sample(reader, _ATTACHMENT.encode() in data)
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


def _sample(reader: JsonReader, attached: bool) -> dict[str, Any]:
    """Reads a sample up to its scores; events, which are most of it, follow, and attachments."""
    sample: dict[str, Any] = {}
    for key in reader.keys():
        if key in _SAMPLE:
            sample[key] = reader.value()
            if key == "scores" and not attached:
                break
        else:
            reader.skip()
    return sample


def _read_log(file: Path, run: Mapping[str, Any], prefix: str, contents: LogContents) -> None:
    seen = set()
    for number, sample in enumerate(_samples(file), 1):
        with errors_of(f"{file.name}: sample {number}"):
            if as_mapping(sample).get("id") is None:
                raise DesignError("it has no id")
            key = (as_text(sample["id"]), as_text(sample.get("epoch")))
            if key in seen:
                raise DesignError(f"{key[0]!r} occurs twice in epoch {key[1]}")
            seen.add(key)
            _read_sample(sample, run, prefix, contents)


def _read_sample(
    sample: Mapping[str, Any], run: Mapping[str, Any], prefix: str, contents: LogContents
) -> None:
    attachments = as_mapping(sample.get("attachments"))
    scores = as_mapping(sample.get("scores"))
    if not scores:
        contents.skip("samples without a score")
    for scorer, score in ((name, as_mapping(score)) for name, score in scores.items()):
        if scorer.rstrip("0123456789") in _CODE_SCORERS:
            contents.skip(f"scores of {scorer}, which is code")
            continue
        output = _output(sample.get("output")) or as_text(score.get("answer"))
        item = contents.add_item(
            as_text(sample["id"]),
            _resolved(output, attachments),
            (as_text(run.get("model")),),
            input=_resolved(_transcript(sample.get("input")), attachments),
            reference=_target(sample.get("target")),
        )
        _read_score(f"{prefix}{scorer}", scorer, score, item, run, attachments, contents)


def _read_score(
    question: str,
    scorer: str,
    score: Mapping[str, Any],
    item: int,
    run: Mapping[str, Any],
    attachments: Mapping[str, Any],
    contents: LogContents,
) -> None:
    original, *edits = map(as_mapping, as_list(score.get("history")) or [score])
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
    judge, knobs = _setup(scorer, run, score)
    if judge == scorer:
        contents.note(f"{scorer} does not say which model it asks, if any; it is the judge.")
    values = value if isinstance(value, dict) else {"": value}
    for part, single in values.items():
        name = f"{question} {part}".strip()
        contents.add_verdict(
            name,
            item,
            judge,
            None if unread else as_value(single),
            knobs,
            score=as_number(single),
            prompt=messages_json(grading[:-1]) if grading else "",
            answer=answer if _PANEL not in judge else "",  # of one of them
            rationale=explanation,
        )
        for edit in edits:
            person = as_text(as_mapping(edit.get("provenance")).get("author"))
            changed = edit.get("value")
            changed = changed.get(part) if isinstance(changed, dict) else changed
            if person and changed != "UNCHANGED":
                contents.add_label(name, item, person, as_value(changed))
                contents.note(_EDITED)


def _setup(
    scorer: str, run: Mapping[str, Any], score: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Returns the judge of a scorer, and the choices in its setup."""
    options: Mapping[str, Any] = {}
    for each in map(as_mapping, as_list(run.get("scorers"))):
        if each.get("name") == scorer:
            options = as_mapping(each.get("options"))
    model = options.get("model")
    if as_mapping(score.get("metadata")).get("grading") or scorer.startswith("model_graded"):
        role = as_text(options.get("model_role")) or "grader"
        # Without a grader, the model grades itself.
        model = model or as_mapping(run.get("model_roles")).get(role) or run.get("model")
    graders = model if isinstance(model, list) else [model] if model else []
    names = [as_text(each.get("model") if isinstance(each, dict) else each) for each in graders]
    knobs = {
        f"foreign.{name}": value
        for name, value in options.items()
        if name not in ("model", "model_role") and value is not None
    }
    if len(graders) == 1 and isinstance(graders[0], dict):
        for source in ("args", "config"):
            config = as_mapping(graders[0].get(source))
            for name in ("temperature", "max_tokens"):
                if (number := as_number(config.get(name))) is not None:
                    knobs[f"judge.{name}"] = number
    return _PANEL.join(names) or scorer, knobs


def _grading(score: Mapping[str, Any], attachments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the roles and texts of what the judge was asked and answered."""
    messages = as_list(as_mapping(score.get("metadata")).get("grading"))
    return [
        (as_text(message.get("role")), _resolved(_content(message), attachments))
        for message in map(as_mapping, messages)
    ]


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        texts = [as_text(as_mapping(part).get("text")) for part in content]
        return "\n".join(text for text in texts if text)
    return as_text(content)


def _transcript(given: Any) -> str:
    """Returns an input as text; of several messages, each with its role."""
    if not isinstance(given, list):
        return as_text(given)
    messages = list(map(as_mapping, given))
    if len(messages) == 1:
        return _content(messages[0])
    return "\n\n".join(f"{as_text(each.get('role'))}: {_content(each)}" for each in messages)


def _output(output: Any) -> str:
    parts = as_mapping(output)
    if completion := as_text(parts.get("completion")):
        return completion
    choices = as_list(parts.get("choices"))
    return _content(as_mapping(as_mapping(choices[0]).get("message"))) if choices else ""


def _target(target: Any) -> str:
    return "\n".join(map(as_text, target)) if isinstance(target, list) else as_text(target)


def _resolved(text: str, attachments: Mapping[str, Any]) -> str:
    """Returns a text, if it is kept apart from where it stands."""
    if text.startswith(_ATTACHMENT):
        return as_text(attachments.get(text.removeprefix(_ATTACHMENT))) or text
    return text
