"""JudgeBench's outputs of judges (Tan et al. 2024, arXiv:2410.12784).

A line is a pair of responses, of which one is objectively correct, with the judgments of one judge:
in the given order, and with the responses in reverse.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from judge_gym.errors import DesignError, unknown
from judge_gym.recorded.documents import (
    MOST_LINES,
    check_together,
    clean_text,
    json_lines,
    read_head,
    text_of,
)
from judge_gym.recorded.pairs import (
    FIRST,
    OPPOSITE,
    PAIR_CRITERIA,
    PAIR_SCALE,
    SECOND,
    TIE,
    items_table,
)
from judge_gym.recorded.readings import reading_note
from judge_gym.recorded.recording import (
    LABEL_COLUMNS,
    VERDICT_COLUMNS,
    Recording,
    complete_columns,
)
from judge_gym.stages.answer_lines import LabelledLine, adjacent_lines, clean_lines

ABOUT = "JudgeBench: outputs of judges, one pair a line with its judgments (JSON Lines)"
QUESTION = "the better response"
Decision = Literal["A>B", "B>A", "A=B"]
"""Which of the responses is better, by the place in which it was shown."""
LABELS: Mapping[Decision, str] = {"A>B": FIRST, "B>A": SECOND, "A=B": TIE}
TRUTHS: tuple[Decision, ...] = ("A>B", "B>A")
CATEGORIES = {
    "livebench-reasoning": "reasoning",
    "livebench-math": "math",
    "livecodebench": "coding",
}
PROMPT = "foreign.prompt"
"""The published name of a judge is that of its prompt; the model is another field."""
COMPARED = re.compile(r"\s*([AB])\s*(>>?|<<?|==?)\s*([AB])\s*")
TAG = re.compile(r"\[\[([^\[\]]*)\]\]")


@dataclass(frozen=True, slots=True)
class Judgment:
    """A judgment of a pair in one order."""

    judge: str
    """The model; empty if it is not recorded."""
    prompt_name: str
    failed: bool
    """Whether nothing was recorded, because the call failed."""
    decision: Decision | None
    """As recorded, which ties A to the response shown first."""
    text: str | None
    """What the judge wrote, if that was recorded."""
    prompt: str
    flipped: bool
    """Whether the responses were shown in reverse."""


def detect(path: Path) -> bool:
    """Whether a path is an output of a judge, or a folder with some."""
    if path.is_dir():
        return any(_is_judged(file) for file in islice(sorted(path.glob("*.jsonl")), 20))
    return _is_judged(path)


def _is_judged(path: Path) -> bool:
    head = read_head(path)
    return head.startswith("{") and all(
        f'"{key}"' in head for key in ("pair_id", "response_A", "response_B", "judgments")
    )


def read(path: Path) -> Sequence[Recording]:
    """Reads the output of a judge, or those in a folder, as one recording."""
    files = [path]
    if path.is_dir():
        files = [file for file in sorted(path.glob("*.jsonl")) if _is_judged(file)]
        if not files:
            raise DesignError(f"{path} has no output of a judge; {ABOUT}")
        check_together(files, MOST_LINES)
    items: dict[str, dict[str, Any]] = {}
    verdicts: list[pd.DataFrame] = []
    for file in files:
        verdicts.append(_verdicts(file, items))
    rows = complete_columns(pd.concat(verdicts, ignore_index=True), VERDICT_COLUMNS)
    repeated = rows.duplicated(["judge", PROMPT, "item", "flipped"])
    if repeated.any():
        row = rows[repeated].iloc[0]
        raise DesignError(f"{path}: {row['judge']} judged {row['item']!r} in two files")
    recording = Recording(
        source=path.resolve().name,
        format="judgebench",
        question=QUESTION,
        scale=PAIR_SCALE,
        items=items_table(items),
        verdicts=rows,
        labels=complete_columns(pd.DataFrame(columns=[*LABEL_COLUMNS]), LABEL_COLUMNS),
        criteria=PAIR_CRITERIA,
    )
    note = reading_note(recording)
    return [replace(recording, notes=(note,) if note else ())]


def _verdicts(file: Path, items: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Reads the verdicts of a file, whose judge is the same throughout; adds its pairs to items."""
    rows, judge, name = [], "", ""
    for row, where in judged_rows(file, ("question", "response_A", "response_B")):
        item = _item(row, where)
        if items.setdefault(row["pair_id"], item) != item:
            raise DesignError(f"{where}: pair {row['pair_id']!r} differs from another file's")
        for judgment in judgments_of(row, where):
            judge, name = judge or judgment.judge, name or judgment.prompt_name
            rows.append({"item": row["pair_id"], **_verdict(judgment)})
    return pd.DataFrame(rows).assign(judge=judge or name or file.stem)


def _item(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        "item": row["pair_id"],
        "title": clean_text(f"{row['source']} {row.get('original_id') or row['pair_id'][:8]}"),
        "text": clean_text(row["question"]),
        "response_a": clean_text(row["response_A"]),
        "response_b": clean_text(row["response_B"]),
        "truth": LABELS[truth_of(row, where)],
        "category": category(row["source"]),
        "response_model": clean_text(str(row.get("response_model") or "")),
    }


def _verdict(judgment: Judgment) -> dict[str, Any]:
    """Makes a verdict, which names a response whichever was shown first."""

    def named(decision: Decision | None) -> str:
        label = LABELS[decision] if decision else ""
        return OPPOSITE[label] if judgment.flipped else label

    text = judgment.text or ""
    read_label = named(read_decision(text)) if text else ""
    unscored = "provider_error" if judgment.failed else "parse_failed"
    messages = [{"role": "user", "content": clean_text(judgment.prompt)}]
    return {
        "flipped": judgment.flipped,
        "status": "scored" if judgment.decision else unscored,
        "label": named(judgment.decision),
        "answer": clean_text(text),
        "prompt": json.dumps(messages, ensure_ascii=False) if judgment.prompt else "",
        "read_status": ("scored" if read_label else "parse_failed") if text else "",
        "read_label": read_label,
        PROMPT: judgment.prompt_name,
    }


# --- the lines of a file -------------------------------------------------------------------------


def category(source: str) -> str:
    """Returns the benchmark's category of a source; an unknown source is its own category.

    >>> category("mmlu-pro-computer science"), category("livecodebench"), category("mine")
    ('knowledge', 'coding', 'mine')
    """
    return "knowledge" if source.startswith("mmlu-pro-") else CATEGORIES.get(source, source)


def checked_rows(path: Path, needed: Sequence[str] = ()) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the checked lines of a file of pairs, judged or not, with their places."""
    seen: dict[str, int] = {}
    for number, row in json_lines(path):
        where = f"{path}:{number}"
        if not isinstance(row, dict):
            raise DesignError(f"{where}: a line is an object, not {row!r}")
        for field in ("pair_id", "source", "label", *needed):
            text_of(row, field, where)
        if (first := seen.setdefault(row["pair_id"], number)) != number:
            raise DesignError(f"{where}: pair_id {row['pair_id']!r} is on line {first} already")
        yield row, where
    if not seen:
        raise DesignError(f"{path} has no pairs")


def judged_rows(path: Path, needed: Sequence[str] = ()) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the lines of one judge's output, and refuses a second judge in the file."""
    judge: dict[str, str] = {}
    for row, where in checked_rows(path, needed):
        _same_judge(judge, row, "judge_name", where)
        for judgment in _entries(row, where):
            _same_judge(judge, _details(judgment), "judge_model", where)
        yield row, where


def judgments_of(row: Mapping[str, Any], where: str) -> Iterator[Judgment]:
    """Yields the judgments of a line, in the given order and reversed."""
    for flipped, entry in enumerate(_entries(row, where)):
        details = _details(entry)
        model, name = details.get("judge_model"), row.get("judge_name")
        text, prompt = details.get("response"), details.get("prompt")
        yield Judgment(
            judge=model if isinstance(model, str) else "",
            prompt_name=name if isinstance(name, str) else "",
            failed=not entry,
            decision=_recorded(entry.get("decision"), where),
            text=text if isinstance(text, str) else None,
            prompt=prompt if isinstance(prompt, str) else "",
            flipped=bool(flipped),
        )


def truth_of(row: Mapping[str, Any], where: str) -> Decision:
    """Returns which response of a line is correct."""
    label = row["label"]
    if label not in TRUTHS:
        raise DesignError(f"{where}: {unknown('label', label, TRUTHS)}", choices=TRUTHS)
    decision: Decision = label
    return decision


def _entries(row: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """Returns the judgments of a line, in the given order and reversed; a failed one is empty."""
    entries = row.get("judgments")
    if not isinstance(entries, list) or not 1 <= len(entries) <= 2:
        raise DesignError(f"{where}: 'judgments' is a list of one or two, in the order shown")
    for entry in entries:
        if not isinstance(entry, dict | None):
            raise DesignError(f"{where}: a judgment is null or an object, not {entry!r}")
    return [entry or {} for entry in entries]


def _details(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    judgment = entry.get("judgment")
    return judgment if isinstance(judgment, dict) else {"response": judgment}


def _same_judge(judge: dict[str, str], fields: Mapping[str, Any], name: str, where: str) -> None:
    """Records the judge's name or model, and refuses a second judge in a file."""
    value = fields.get(name)
    if isinstance(value, str) and judge.setdefault(name, value) != value:
        raise DesignError(f"{where}: {name} is {value!r} and was {judge[name]!r} above")


def _recorded(decision: object, where: str) -> Decision | None:
    normal = _decision(decision) if isinstance(decision, str) else None
    if normal is None and decision is not None:
        raise DesignError(f"{where}: {unknown('decision', decision, LABELS)}", choices=LABELS)
    return normal


# --- the words of an answer ----------------------------------------------------------------------


def read_decision(text: str) -> Decision | None:
    r"""Returns the decision of an answer that ends in a verdict such as `[[A>>B]]`, if it is clear.

    The last verdict decides; adjacent verdicts that differ decide nothing. (The published reader
    finds no decision in an answer with different verdicts.)

    >>> read_decision("At first [[A>B]].\nBut B alone is right.\nMy final verdict is: [[B>>A]]")
    'B>A'
    >>> read_decision("[[A>B]] or [[B>A]]")
    """
    lines = clean_lines(text)
    verdicts = decision_lines(lines)
    if not verdicts:
        return None
    together = {_decision(verdict.payload) for verdict in adjacent_lines(lines, verdicts)}
    return together.pop() if len(together) == 1 else None


def decision_lines(lines: list[str]) -> list[LabelledLine]:
    """Lists the verdicts such as `[[A>B]]` in the lines of an answer."""
    return [
        LabelledLine(number, tag)
        for number, line in enumerate(lines)
        for tag in TAG.findall(line)
        if _decision(tag)
    ]


def _decision(text: str) -> Decision | None:
    """Returns the decision of a comparison such as `A>>B` or `B<A`, if it is one."""
    match = COMPARED.fullmatch(text)
    if not match or match[1] == match[3]:
        return None
    if "=" in match[2]:
        return "A=B"
    better = match[1] if ">" in match[2] else match[3]
    return "A>B" if better == "A" else "B>A"
