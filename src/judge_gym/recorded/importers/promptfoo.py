"""Results of promptfoo: the verdicts of its model-graded assertions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_gym.errors import DesignError
from judge_gym.recorded.contents import LogContents, as_number, as_text, messages_json
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

ABOUT = "promptfoo: results (.json, .jsonl) with llm-rubric and other model-graded assertions"
MODEL_GRADED = (
    *("agent-rubric", "answer-relevance", "context-faithfulness", "context-recall"),
    *("context-relevance", "conversation-relevance", "factuality", "g-eval", "llm-rubric"),
    *("model-graded-closedqa", "model-graded-factuality", "pi", "search-rubric"),
)
"""The assertions that ask a model whether an output is good."""
_ROWS = (("results", "results"), ("results",))
_HUMAN = "human"
"""The assertion that promptfoo adds for a rating given in its viewer."""
_UNREADABLE = ("Could not extract JSON", "Could not parse", "No output", "Invalid")


def detect(path: Path) -> bool:
    """Whether a file holds results of promptfoo."""
    return path.is_file() and some_file(path, _is_results, ".json", ".jsonl")


def read(path: Path) -> Sequence[Recording]:
    """Reads the verdicts of each model-graded assertion, by its metric or type."""
    contents = LogContents(path.name, "promptfoo")
    ids = set()
    for number, row in enumerate(rows_of(path, *_ROWS), 1):
        with errors_of(f"{path.name}: result {number}"):
            if "testCase" not in row or "promptIdx" not in row:
                raise DesignError("it has no testCase and promptIdx")
            if (name := as_text(row.get("id"))) and name in ids:
                raise DesignError(f"its id {name} occurs twice")
            ids.add(name)
            _read_result(row, contents)
    return contents.recordings()


def _is_results(file: Path) -> bool:
    row = first_row(file, *_ROWS)
    return "testCase" in row and "promptIdx" in row


def _read_result(row: Mapping[str, Any], contents: LogContents) -> None:
    grading = as_mapping(row.get("gradingResult"))
    components = list(map(as_mapping, as_list(grading.get("componentResults"))))
    if not components:
        contents.skip("results without assertions, most often failed calls")
        return
    case = as_mapping(row["testCase"])
    prompt = as_mapping(row.get("prompt"))
    variables = as_mapping(row.get("vars"))
    item = contents.add_item(
        as_text(row.get("testIdx")) or as_text(case.get("description")) or "test",
        as_text(as_mapping(row.get("response")).get("output")),
        (_provider_name(row.get("provider")), as_text(prompt.get("label"))),
        title=as_text(case.get("description")),
        input=as_text(prompt.get("raw")),
        context=as_text(variables.get("context")),
    )
    people = [each for each in components if _type(each) == _HUMAN]
    names: Counter[str] = Counter()
    for component in components:
        kind = _type(component)
        if kind == _HUMAN:
            continue
        if kind.removeprefix("not-") not in MODEL_GRADED:
            contents.skip(f"results of {kind or 'combined'} assertions, which are code")
            continue
        assertion = component["assertion"]
        name = as_text(assertion.get("metric")) or kind
        names[name] += 1
        name += f" {names[name]}" if names[name] > 1 else ""
        _read_verdict(name, item, component, case, contents)
        for rating in people:
            contents.add_label(name, item, "promptfoo viewer", _pass(rating))
            contents.note(
                "Ratings of promptfoo's viewer are of a whole output; they stand as labels beside "
                "each assertion."
            )


def _read_verdict(
    name: str,
    item: int,
    component: Mapping[str, Any],
    case: Mapping[str, Any],
    contents: LogContents,
) -> None:
    assertion = component["assertion"]
    metadata = as_mapping(component.get("metadata"))
    reason = as_text(component.get("reason"))
    grader = assertion.get("provider") or as_mapping(case.get("options")).get("provider")
    judge = _provider_name(grader)
    if not judge:
        judge = "default grader"
        contents.note("Where results do not name their grader, it is called default grader.")
    config = grader.get("config") if isinstance(grader, dict) else None
    knobs: dict[str, Any] = {
        f"judge.{key}": as_number(config.get(key)) if isinstance(config, dict) else None
        for key in ("temperature", "max_tokens")
    }
    # The rubric is no knob: most tests have their own, and each would be a setup of one item.
    knobs |= {f"foreign.{key}": assertion.get(key) for key in ("type", "threshold")}
    failed = metadata.get("graderError") is True or reason.startswith(_UNREADABLE)
    contents.add_verdict(
        name,
        item,
        judge,
        None if failed else _pass(component),
        knobs,
        score=as_number(component.get("score")),
        prompt=_messages(as_text(metadata.get("renderedGradingPrompt"))),
        rationale=reason,
    )


def _type(component: Mapping[str, Any]) -> str:
    assertion = component.get("assertion")
    return as_text(assertion.get("type")) if isinstance(assertion, dict) else ""


def _pass(component: Mapping[str, Any]) -> str | None:
    passed = component.get("pass")
    return None if not isinstance(passed, bool) else "pass" if passed else "fail"


def _messages(prompt: str) -> str:
    """Writes a rendered prompt, which is a text or the JSON list of its messages, as messages."""
    if not prompt:
        return ""
    try:
        messages = [as_mapping(each) for each in as_list(parse_record(prompt.encode(), "prompt"))]
    except DesignError:
        return messages_json([("user", prompt)])
    return messages_json(
        (as_text(each.get("role")), as_text(each.get("content"))) for each in messages
    )


def _provider_name(provider: Any) -> str:
    if isinstance(provider, dict):
        return as_text(provider.get("label") or provider.get("id"))
    return as_text(provider)
