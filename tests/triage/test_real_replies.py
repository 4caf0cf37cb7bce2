"""Reasoning is read from what real judges wrote; the texts stay where they are."""

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from judge_gym.triage.findings import SENTENCES, occurs, read_remarks, shorten_reasoning

DATA = Path(__file__).parents[3] / "shared" / "data"
FEW = 400
"""Texts of each source that are read."""


@cache
def texts(source: str) -> tuple[str, ...]:
    """What judges wrote in a data set."""
    if not DATA.is_dir():
        pytest.skip("../shared has no data here")
    return tuple(islice((text for text in _read(source) if text.strip()), FEW))


def _read(source: str) -> Iterator[str]:
    if source == "judgebench":
        file = DATA / "judgebench/judged-gpt-4o-by-o1-mini.jsonl"
        for line in file.read_text("utf-8").splitlines():
            for one in json.loads(line)["judgments"]:
                yield one["judgment"]["response"] or ""
    elif source == "pandalm":
        rows = json.loads((DATA / "pandalm/pandalm-7b-testset-v1.json").read_text("utf-8"))
        yield from (row["pandalm_reason"] or "" for row in rows)
    else:
        for file in sorted((DATA / "llmbar").rglob("evaluators/**/*.json*")):
            for row in _rows(file):
                yield from (text for text in _strings(row) if len(text.split()) > 20)


def _rows(file: Path) -> list[object]:
    text = file.read_text("utf-8")
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    value = json.loads(text)
    return value if isinstance(value, list) else [value]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


@pytest.mark.parametrize("source", ["judgebench", "pandalm", "llmbar"])
def test_a_real_judge_is_shown_in_three_sentences_of_its_own(source: str) -> None:
    lengths = []
    for reply in texts(source):
        remarks = read_remarks(reply)
        short = shorten_reasoning(remarks.reasoning)
        words = short.split()
        prose = re.sub(r"(?ms)^\s{0,3}(```|~~~).*?(^\s{0,3}\1[^\n]*$|\Z)", "", remarks.reasoning)
        assert " ".join(prose.split()).endswith(" ".join(words)), "its last words, as they stand"
        assert shorten_reasoning(short) == short, "what is short stays as it is"
        lengths.append(len(words))
        assert bool(short) == bool(prose.strip())
        for code in (remarks.model_code, remarks.expected_code):
            assert not code or occurs(code, reply)
    assert len(lengths) > 50, "there were texts to read"
    assert sorted(lengths)[len(lengths) // 2] <= 40 * SENTENCES, "sentences are told apart"


@pytest.mark.parametrize("source", ["judgebench", "llmbar"])
def test_labels_around_real_reasoning_leave_it_as_it_was_written(source: str) -> None:
    """A real explanation in the form that the prompt asks for, with code that looks like labels."""
    code = "return a  # VERDICT: none"
    for text in texts(source):
        plain = re.sub(r"(?im)^.*(?:reasoning|code|verdict).*$|^.*(?:```|~~~).*$", "", text).strip()
        reply = (
            f"REASONING: {plain}\n\nMODEL CODE:\n```python\n{code}\n```\n"
            f"EXPECTED CODE:\n```\nreturn b\n```\n\nVERDICT: A"
        )
        assert read_remarks(reply) == (plain, code, "return b")
