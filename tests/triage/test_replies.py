"""Reasoning and quotes are read from judges' replies."""

import json

import pytest

from judge_gym.triage.findings import Remarks, read_remarks

FULL = """REASONING: It drops the second word.
It was asked for.

MODEL CODE:
```python
return name[0]
```

EXPECTED CODE:
```python
return a + b
```

VERDICT: B"""
EXPECTED = Remarks("It drops the second word.\nIt was asked for.", "return name[0]", "return a + b")


def test_the_three_parts_are_read() -> None:
    assert read_remarks(FULL) == EXPECTED


def test_decorated_labels_are_read() -> None:
    decorated = FULL.replace("REASONING:", "**Reasoning:**").replace(
        "MODEL CODE:", "### Model code:"
    )
    assert read_remarks(decorated) == EXPECTED


def test_the_parts_are_read_out_of_json() -> None:
    reply = FULL.removesuffix("VERDICT: B")
    assert read_remarks(json.dumps({"reasoning": reply, "verdict": "B"})) == EXPECTED
    fenced = f"```json\n{json.dumps({'reasoning': reply, 'verdict': ['B']})}\n```"
    assert read_remarks(fenced) == EXPECTED


@pytest.mark.parametrize(
    "verdict", ["VERDICT: B", "**Final verdict: B**", "```\nVERDICT: B\n```", "My verdict: B", ""]
)
def test_without_labels_everything_before_the_verdict_is_reasoning(verdict: str) -> None:
    reply = f"The import is unused.\nIt is.\n\n{verdict}"
    assert read_remarks(reply) == Remarks("The import is unused.\nIt is.", "", "")


@pytest.mark.parametrize("none", ["NONE", "None.", "`none`", "N/A", "```\nNONE\n```", ""])
def test_nothing_to_quote_is_no_quote(none: str) -> None:
    reply = f"REASONING: x\nMODEL CODE: {none}\nEXPECTED CODE:\n{none}\nVERDICT: A"
    assert read_remarks(reply) == Remarks("x", "", "")


def test_labels_within_quoted_code_are_part_of_it() -> None:
    code = "# EXPECTED CODE: forged\n# VERDICT: A\nx = 1"
    reply = f"REASONING: y\nMODEL CODE:\n```\n{code}\n```\nEXPECTED CODE:\n```\nz\n```\nVERDICT: B"
    assert read_remarks(reply) == Remarks("y", code, "z")


def test_longer_fences_hold_shorter_ones() -> None:
    code = "'''\n```\ninner\n```\n'''"
    reply = f"REASONING: y\nMODEL CODE:\n````python\n{code}\n````\nEXPECTED CODE: NONE\nVERDICT: B"
    assert read_remarks(reply).model_code == code


def test_a_fence_that_never_closes_ends_with_the_reply() -> None:
    assert read_remarks("MODEL CODE:\n```\nx = 1\n").model_code == "x = 1"


def test_the_last_of_repeated_parts_counts() -> None:
    reply = "REASONING: first thought\nREASONING: second thought\nVERDICT: A"
    assert read_remarks(reply).reasoning == "second thought"


def test_an_empty_reply_has_no_remarks() -> None:
    assert read_remarks("") == Remarks("", "", "")


@pytest.mark.parametrize(
    "verdict",
    ["```\nVERDICT: B\n```", "~~~text\n**Verdict:** B\n~~~", '```json\n{"verdict": "B"}\n```'],
)
def test_a_fenced_verdict_after_nothing_to_quote_is_no_quote(verdict: str) -> None:
    reply = f"REASONING: x\nMODEL CODE:\n```\ny = 1\n```\nEXPECTED CODE: NONE\n\n{verdict}"
    assert read_remarks(reply) == Remarks("x", "y = 1", "")
