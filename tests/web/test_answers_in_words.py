"""Answers in words: labels become names, verdict lines move out, transcripts and code are read."""

import pytest

from documents import parse, text
from judge_gym.web.answers import in_words, label_names, without_verdict
from judge_gym.web.markdown import rich_text

NAMES = {"A": "fails", "B": "passes", "I": "unclear"}
HOSTILE = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[read](javascript:x)"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("VERDICT: B", "VERDICT: “passes”"),
        ("The criteria of A are met, not (B).", "The criteria of “fails” are met, not (“passes”)."),
        ("A reply is here. I think B fits.", "A reply is here. I think “passes” fits."),
        ("- A clear case", "- A clear case"),
        ("The AB test, B-side, A's", "The AB test, “passes”-side, A's"),
        ('{"verdict": "A"}', '{"verdict": "“fails”"}'),
    ],
)
def test_labels_become_names_and_articles_stay(written: str, shown: str) -> None:
    assert in_words(written, NAMES) == shown


def test_labels_are_those_that_this_answer_was_shown() -> None:
    assert label_names("B=1 A=2", ["fails", "passes"]) == {"B": "fails", "A": "passes"}
    assert label_names("", ["fails", "passes"]) == {}
    assert in_words("VERDICT: B", {}) == "VERDICT: B"


@pytest.mark.parametrize("line", ["VERDICT: B", "**Verdict:** B", "```\nVERDICT: B\n```"])
def test_a_verdict_at_the_end_is_left_out_and_only_there(line: str) -> None:
    assert without_verdict(f"It fits.\n\n{line}\n") == "It fits."
    assert without_verdict(f"{line}\nYet C fits.") == f"{line}\nYet C fits."


@pytest.mark.parametrize(
    "written",
    [
        "User: Hi **you**.\nAssistant: Hello.",
        '[{"role": "User", "content": "Hi **you**."}, {"role": "Assistant", "content": "Hello."}]',
    ],
)
def test_a_transcript_is_shown_by_turns(written: str) -> None:
    shown = parse(str(rich_text(written)))
    turns = [(text(turn.find("h4")), text(turn.find("p"))) for turn in shown.iter("section")]
    assert [(role, "".join(said.split())) for role, said in turns] == [
        ("User", "Hiyou."),
        ("Assistant", "Hello."),
    ]
    assert shown.find(".//strong") is not None


def test_a_text_that_names_one_speaker_is_no_transcript() -> None:
    assert parse(str(rich_text("User: Hi."))).find(".//section") is None
    assert parse(str(rich_text("He said.\nUser: Hi.\nAssistant: Yes."))).find(".//section") is None


def test_code_and_differences_are_coloured_by_classes() -> None:
    code = parse(str(rich_text("Use:\n\n```python\ndef back(x):\n    return x\n```")))
    assert {mark.get("class") for mark in code.iter("span")} >= {"k-k", "k-nf"}
    assert text(code.find(".//pre")).startswith("def back")
    change = parse(str(rich_text("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new")))
    assert {mark.get("class") for mark in change.iter("span")} >= {"k-gd", "k-gi"}


@pytest.mark.parametrize("written", HOSTILE)
@pytest.mark.parametrize(
    "around",
    ["{}", "User: {}\nAssistant: ok", "```python\n{}\n```", "```{}\nx\n```", "--- a\n+++ b\n-{}"],
)
def test_no_markup_comes_from_a_text(written: str, around: str) -> None:
    shown = parse(str(rich_text(around.format(written))))
    assert not [mark for mark in shown.iter() if mark.tag in ("script", "img", "a")]
