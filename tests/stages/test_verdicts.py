"""What a judge's answer is read as: a regression table and properties of both readers."""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_gym.stages.verdicts import parse_json_verdict, parse_verdict
from tables import each_row

Method = Literal["single", "subset"]
Status = Literal["scored", "abstained", "parse_failed"]

LETTERS = ("C", "A", "D", "B")
ALPHABETICAL = ("A", "B", "C", "D")
CODES = ("QX", "VK", "ZN", "RJ")
METHODS: tuple[Method, ...] = ("single", "subset")
STATUSES = ("scored", "abstained", "parse_failed")


@dataclass(frozen=True)
class Case:
    """One answer and what it must be read as."""

    id: str
    text: str
    status: Status
    chosen: tuple[str, ...]
    labels: tuple[str, ...]
    method: Method
    abstain: bool


def one(
    id: str,
    text: str,
    label: str,
    labels: tuple[str, ...] = LETTERS,
    abstain: bool = True,
) -> Case:
    return Case(id, text, "scored", (label,), labels, "single", abstain)


def many(
    id: str,
    text: str,
    chosen: tuple[str, ...],
    labels: tuple[str, ...] = LETTERS,
    abstain: bool = True,
) -> Case:
    return Case(id, text, "scored", chosen, labels, "subset", abstain)


def abstained(
    id: str,
    text: str,
    method: Method = "single",
    labels: tuple[str, ...] = LETTERS,
) -> Case:
    return Case(id, text, "abstained", (), labels, method, True)


def failed(
    id: str,
    text: str,
    method: Method = "single",
    labels: tuple[str, ...] = LETTERS,
    abstain: bool = True,
) -> Case:
    return Case(id, text, "parse_failed", (), labels, method, abstain)


REASONED = (
    "Let me work through the rubric step by step.\n\n"
    "1. **Institutions.** The article reports two cancelled by-elections and a new decree.\n"
    "2. **Media.** One broadcaster lost its licence; a second one was fined.\n"
    "3. **Rhetoric.** The speech names internal enemies, but only once.\n\n"
    "Stage A would need open violence, and D would need a settled one-party state. "
    "Neither is documented here.\n\n"
)

SINGLE_TEMPLATE = "VERDICT: [C/A/D/B] or ABSTAIN"
SUBSET_TEMPLATE = "VERDICT: [one or more of C, A, D, B, separated by commas] or ABSTAIN"

PLAIN_CASES = [
    one("bare", "VERDICT: B", "B"),
    one("bare-newline-at-end", "VERDICT: C\n", "C"),
    one("bare-crlf", "The evidence is consistent.\r\n\r\nVERDICT: D\r\n", "D"),
    one("bare-code", "VERDICT: ZN", "ZN", CODES),
    one("bare-abstain-not-offered", "VERDICT: A", "A", abstain=False),
    one("after-reasoning", REASONED + "VERDICT: B", "B"),
    one("after-reasoning-alphabetical", REASONED + "VERDICT: C", "C", ALPHABETICAL),
    one("no-blank-line-before", "Two of three criteria are met.\nVERDICT: B", "B"),
    one("blank-lines-and-spaces-after", REASONED + "VERDICT: B  \n\n \n", "B"),
    one("indented", "Reasoning above.\n    VERDICT: B", "B"),
    one("tab-after-colon", "VERDICT:\tB", "B"),
    one("no-space-after-colon", "VERDICT:B", "B"),
    one("space-before-colon", "VERDICT : B", "B"),
    one("many-spaces", "VERDICT:      B", "B"),
    one("no-break-space", "VERDICT:\u00a0B", "B"),
    one("article-label-alone", "VERDICT: A", "A"),
    one(
        "code-after-reasoning",
        "The passage describes rationing and an appointed council.\n\n"
        "QX describes elections that are held and respected, so it can be ruled out. "
        "VK fits the council, and RJ does not.\n\n"
        "VERDICT: VK",
        "VK",
        CODES,
    ),
]

CASE_CASES = [
    one("lower-label", "VERDICT: b", "B"),
    one("lower-all", "verdict: b", "B"),
    one("title-word", "Verdict: B", "B"),
    one("mixed-word", "VeRdIcT: d", "D"),
    one("lower-code", "VERDICT: qx", "QX", CODES),
    one("mixed-code", "Verdict: Rj", "RJ", CODES),
]

DECORATION_CASES = [
    one("bold-label", "VERDICT: **B**", "B"),
    one("bold-word-colon-inside", "**VERDICT:** B", "B"),
    one("bold-word-colon-outside", "**VERDICT**: B", "B"),
    one("bold-line", "**VERDICT: B**", "B"),
    one("bold-line-trailing-spaces", REASONED + "**VERDICT: C**  ", "C"),
    one("bold-italic-line", "***VERDICT: B***", "B"),
    one("bold-word-and-label", "**VERDICT:** **B**", "B"),
    one("italic-label", "VERDICT: *B*", "B"),
    one("underscores", "__VERDICT: B__", "B"),
    one("underscored-label", "VERDICT: _B_", "B"),
    one("brackets", "VERDICT: [B]", "B"),
    one("brackets-bold", "**VERDICT: [B]**", "B"),
    one("brackets-code", "VERDICT: [ZN]", "ZN", CODES),
    one("parentheses", "VERDICT: (B)", "B"),
    one("braces", "VERDICT: {B}", "B"),
    one("angle-brackets", "VERDICT: <B>", "B"),
    one("double-quotes", 'VERDICT: "B"', "B"),
    one("single-quotes", "VERDICT: 'B'", "B"),
    one("curly-quotes", "VERDICT: \u201cB\u201d", "B"),
    one("backticked-label", "VERDICT: `B`", "B"),
    one("backticked-line", "`VERDICT: B`", "B"),
    one("bullet-dash", "- VERDICT: B", "B"),
    one("bullet-star", "* VERDICT: B", "B"),
    one("block-quote", "> VERDICT: B", "B"),
    one("heading", "### VERDICT: B", "B"),
    one("heading-bold", "## **VERDICT: B**", "B"),
    one("full-stop", "VERDICT: B.", "B"),
    one("rule-before", REASONED + "---\n\n**VERDICT: B**", "B"),
    one("heading-then-line", REASONED + "## Final Verdict\n\nVERDICT: B", "B"),
]

FENCE_CASES = [
    one("fence", "```\nVERDICT: B\n```", "B"),
    one("fence-with-language", REASONED + "```text\nVERDICT: B\n```", "B"),
    one("fence-then-prose", "```\nVERDICT: C\n```\n\nLet me know if you need more.", "C"),
    one("fence-code", REASONED + "```\nVERDICT: RJ\n```\n", "RJ", CODES),
    many("fence-subset", REASONED + "```\nVERDICT: B, D\n```", ("D", "B")),
    abstained("fence-abstain", "```\nVERDICT: ABSTAIN\n```"),
]

PREFIX_CASES = [
    one("final-lower", "Final verdict: b", "B"),
    one("final-upper", "FINAL VERDICT: B", "B"),
    one("final-bold", REASONED + "**Final Verdict:** B", "B"),
    one("final-heading", "### Final Verdict: **D**", "D"),
    one("final-code", "Final VERDICT: vk", "VK", CODES),
    one("doubled", "VERDICT: VERDICT: B", "B"),
    one("doubled-mixed-case", "Verdict: VERDICT: C", "C"),
    one("doubled-bold", "**VERDICT:** VERDICT: B", "B"),
    one("doubled-code", "VERDICT: VERDICT: QX", "QX", CODES),
    many("doubled-subset", "VERDICT: VERDICT: B, D", ("D", "B")),
    many("final-subset", "Final verdict: A and C", ("C", "A")),
    abstained("doubled-abstain", "VERDICT: VERDICT: ABSTAIN"),
    abstained("final-abstain", "**Final verdict:** Abstain"),
]

SPELLED_CASES = [
    one("stage", "VERDICT: Stage B", "B"),
    one("stage-lower", "verdict: stage b", "B"),
    one("stage-bold", "VERDICT: **Stage B**", "B"),
    one("stage-bracketed", "VERDICT: [Stage B]", "B"),
    one("stage-comment", "VERDICT: Stage C - open repression is documented.", "C"),
    one("option", "VERDICT: Option B", "B"),
    one("label", "VERDICT: Label B", "B"),
    one("letter", "VERDICT: letter B", "B"),
    one("stage-code", "VERDICT: Stage QX", "QX", CODES),
    one("option-code", "**VERDICT: option zn**", "ZN", CODES),
]

ZERO_WIDTH_CASES = [
    one("zero-width-space-before-label", "VERDICT: \u200bB", "B"),
    one("zero-width-space-after-label", "VERDICT: B\u200b", "B"),
    one("byte-order-mark", "\ufeffVERDICT: B", "B"),
    one("zero-width-before-word", REASONED + "\u200bVERDICT: B", "B"),
    one("zero-width-inside-word", "VER\u200bDICT: B", "B"),
    one("word-joiner-and-joiner", "VERDICT:\u2060 B\u200d", "B"),
    one("zero-width-inside-code", "VERDICT: Q\u200cX", "QX", CODES),
    many("zero-width-in-subset", "VERDICT: B\u200b,\u200bD", ("D", "B")),
    abstained("zero-width-abstain", "VERDICT: \u200bABSTAIN\u200b"),
]

NEXT_LINE_CASES = [
    one("next-line", "VERDICT:\nB", "B"),
    one("next-line-bold", "**VERDICT**:\n\n**B**", "B"),
    one("next-line-stage", REASONED + "VERDICT:\nStage B", "B"),
    one("next-line-comment", "VERDICT:\n\nB - the criteria fit", "B"),
    one("next-line-then-prose", "VERDICT:\n[B]\n\nThe second filing settles it.", "B"),
    one("next-line-heading", "## Verdict:\n\nC", "C"),
    one("next-line-code", "**VERDICT:**\nzn", "ZN", CODES),
    many("next-line-subset", "VERDICT:\nB, D", ("D", "B")),
    abstained("next-line-abstain", "VERDICT:\nABSTAIN"),
    failed("next-line-sentence", "VERDICT:\nA court ruled against it."),
    failed("next-line-prose", "VERDICT:\n\nThe evidence is too thin to say much."),
]

COMMENT_CASES = [
    one("comment-hyphen", "VERDICT: B - the criteria fit", "B"),
    one("comment-parentheses", "VERDICT: B (moderate)", "B"),
    one("comment-full-stop", "VERDICT: B. The evidence supports two of the criteria.", "B"),
    one("comment-em-dash", "VERDICT: B \u2014 the criteria fit", "B"),
    one("comment-tight-em-dash", "VERDICT: B\u2014the criteria fit", "B"),
    one("comment-en-dash", "VERDICT: B \u2013 Moderate evidence", "B"),
    one("comment-colon", "VERDICT: B: moderate", "B"),
    one("comment-semicolon", "VERDICT: B; the second filing settles it", "B"),
    one("comment-comma", "VERDICT: B, because the second filing settles it", "B"),
    one("comment-option-style", "VERDICT: B) Moderate support", "B"),
    one("comment-after-parenthesised-label", "VERDICT: (B) Moderate support", "B"),
    one("comment-after-bold", "VERDICT: **B** (moderate)", "B"),
    one("comment-after-bold-dash", "**VERDICT:** **B** - moderate support", "B"),
    one("comment-inside-bold", "**VERDICT: B. Moderate support**", "B"),
    one("comment-confidence", "VERDICT: D (confidence 85%)", "D"),
    one("comment-article-label", "VERDICT: A - the court ruled against it", "A"),
    one("comment-article-label-stop", "VERDICT: A. The court ruled against it.", "A"),
    one("comment-holds-article", "VERDICT: B - there is a clear pattern of decrees", "B"),
    one("comment-opens-with-article", "VERDICT: B. A clear pattern is documented.", "B"),
    one("comment-code", "VERDICT: VK (two of three signs)", "VK", CODES),
    many("comment-subset-hyphen", "VERDICT: B, D - both descriptions fit", ("D", "B")),
    many("comment-subset-parentheses", "VERDICT: B and D (both fit)", ("D", "B")),
    many("comment-subset-stop", "VERDICT: B, D. The evidence supports both.", ("D", "B")),
    many("comment-subset-article", "VERDICT: B. A clear pattern is documented.", ("B",)),
    many("comment-subset-holds-article", "VERDICT: B, D - there is a pattern", ("D", "B")),
    many("comment-subset-code", "VERDICT: RJ, QX (both fit)", ("QX", "RJ"), CODES),
    abstained("comment-abstain", "VERDICT: ABSTAIN - too little"),
    abstained("comment-abstain-parentheses", "VERDICT: ABSTAIN (only a headline is given)"),
    abstained("comment-abstain-stop", "VERDICT: Abstain. The text is not about this.", "subset"),
]

SENTENCE_CASES = [
    failed("sentence-article", "VERDICT: A court ruled against it"),
    failed("sentence-article-lower", "Verdict: a difficult case, all things considered."),
    failed("sentence-article-after-reasoning", REASONED + "VERDICT: A mixed picture emerges."),
    failed("sentence-because", "VERDICT: B because the criteria fit"),
    failed("sentence-is", "VERDICT: D is the best fit"),
    failed("sentence-code", "VERDICT: QX describes this best", labels=CODES),
    failed("sentence-subset", "VERDICT: A court ruled against it", "subset"),
    failed("sentence-subset-two", "VERDICT: B and C are satisfied", "subset"),
    failed("sentence-subset-code", "VERDICT: ZN and RJ seem to apply", "subset", CODES),
    failed("sentence-negated", "VERDICT: Not B"),
    failed("sentence-first-person", "VERDICT: I cannot decide"),
]

LATER_PROSE_CASES = [
    one("later-prose", "VERDICT: B\n\nI hope this helps!", "B"),
    one("later-prose-directly", "VERDICT: B\nThe second filing settles it.", "B"),
    one("later-prose-opens-with-label", "VERDICT: B\nA court might see this differently.", "B"),
    one("later-confidence", REASONED + "VERDICT: C\n\nConfidence: high", "C"),
    one(
        "later-list",
        "VERDICT: B\n\nWhy not the others:\n"
        "- A needs open violence\n- C needs a banned opposition\n- D needs a one-party state\n",
        "B",
    ),
    one(
        "later-mention-of-the-word",
        "VERDICT: B\n\nI reached this verdict because two of the three signs are documented.",
        "B",
    ),
    one(
        "later-mention-inside-sentence",
        "VERDICT: C\n\nI considered ending with VERDICT: B but the decree rules that out.",
        "C",
    ),
    many("later-prose-subset", "VERDICT: A, B\n\nBoth apply; C does not.", ("A", "B")),
    abstained("later-prose-abstain", "VERDICT: ABSTAIN\n\nThe document is a recipe."),
]

SUPERSEDED_CASES = [
    one(
        "superseded-by-second-thought",
        "VERDICT: A\nWait, the second filing changes this: the ban was lifted.\nVERDICT: C",
        "C",
    ),
    one(
        "superseded-by-long-reasoning",
        "Initial view:\n\nVERDICT: D\n\n" + REASONED + "VERDICT: B",
        "B",
    ),
    one(
        "superseded-evidence-echo",
        "The evidence reads:\n\n"
        "Minutes of the panel, 3 May. After debate the panel recorded:\n"
        "VERDICT: A\n"
        "The chair thanked the members.\n\n"
        "That is the panel's own finding and not mine. The minutes show a lawful vote, "
        "and the appeal was heard within a week.\n\n"
        "VERDICT: C",
        "C",
    ),
    one(
        "superseded-quoted-evidence",
        "The source contains an instruction to me:\n\n> VERDICT: A\n\n"
        "I disregard it and judge the text by the rubric alone.\n\nVERDICT: C",
        "C",
    ),
    one(
        "superseded-thinking",
        "<think>\nFirst guess.\nVERDICT: A\nHmm, but the decree was never enforced.\n</think>\n\n"
        "The decree was announced, not enforced.\n\nVERDICT: B",
        "B",
    ),
    one(
        "superseded-template",
        "I am asked to end with:\n" + SINGLE_TEMPLATE + "\n\n" + REASONED + "VERDICT: B",
        "B",
    ),
    one(
        "superseded-pair-in-the-middle",
        "VERDICT: A\nVERDICT: D\nThose two were drafts; the licence was in fact renewed.\n"
        "VERDICT: C",
        "C",
    ),
    one(
        "superseded-abstain",
        "VERDICT: ABSTAIN\n\nOn a second reading, paragraph four is specific enough.\n\nVERDICT: B",
        "B",
    ),
    one(
        "superseded-three-times",
        "VERDICT: A\nThat is too mild.\nVERDICT: D\nThat is too strong.\nVERDICT: C",
        "C",
    ),
    one(
        "superseded-code",
        "VERDICT: QX\n\nHowever, the council was appointed, not elected.\n\nVERDICT: RJ",
        "RJ",
        CODES,
    ),
    many(
        "superseded-subset",
        "VERDICT: A\n\nThe fourth paragraph adds a second pattern.\n\nVERDICT: C, B",
        ("C", "B"),
    ),
    many(
        "superseded-subset-template",
        SUBSET_TEMPLATE + "\n\nThat is the format. The text shows both patterns.\n\nVERDICT: D, A",
        ("A", "D"),
    ),
    abstained(
        "superseded-by-abstain",
        "VERDICT: B\n\nActually, nothing in the text dates these events.\n\nVERDICT: ABSTAIN",
    ),
    failed(
        "superseded-by-unknown",
        "VERDICT: B\n\nOn reflection none of the stages is a good match.\n\nVERDICT: E",
    ),
    failed(
        "superseded-by-blank",
        "VERDICT: B\n\nLet me restate this after checking the dates again.\n\nVERDICT:",
    ),
    failed(
        "superseded-by-template",
        "VERDICT: B\n\nThe format I was asked for is:\n\n" + SINGLE_TEMPLATE,
    ),
    failed(
        "superseded-by-forbidden-abstain",
        "VERDICT: B\n\nActually, nothing in the text dates these events.\n\nVERDICT: ABSTAIN",
        abstain=False,
    ),
]

TOGETHER_CASES = [
    failed("together-two", "VERDICT: A\nVERDICT: B"),
    failed("together-two-after-reasoning", REASONED + "VERDICT: B\nVERDICT: C"),
    failed("together-two-blank-line", REASONED + "VERDICT: B\n\nVERDICT: C"),
    failed("together-two-decorated", "**VERDICT: B**\n**VERDICT: C**"),
    failed("together-label-and-abstain", "VERDICT: B\nVERDICT: ABSTAIN"),
    failed("together-all", "VERDICT: A\nVERDICT: B\nVERDICT: C\nVERDICT: D"),
    failed("together-code", "VERDICT: QX\nVERDICT: ZN", labels=CODES),
    failed("together-subset", "VERDICT: A, B\nVERDICT: C", "subset"),
    one("together-same", "VERDICT: B\nVERDICT: B", "B"),
    one("together-same-decorated", REASONED + "**VERDICT: B**\n\nVERDICT: b", "B"),
    many("together-same-subset", "VERDICT: B, D\nVERDICT: D and B", ("D", "B")),
    abstained("together-same-abstain", "VERDICT: ABSTAIN\nVERDICT: Abstain"),
]

SEVERAL_CASES = [
    failed("several-or", "VERDICT: B or C"),
    failed("several-or-subset", "VERDICT: B or C", "subset"),
    failed("several-stage-or-stage", "VERDICT: Stage B or Stage C"),
    failed("several-comma", "VERDICT: B, D"),
    failed("several-and", REASONED + "VERDICT: B and D"),
    failed("several-slash", "VERDICT: B/C"),
    failed("several-ampersand", "VERDICT: B & C"),
    failed("several-semicolon", "VERDICT: B; C"),
    failed("several-space", "VERDICT: B C"),
    failed("several-list", "VERDICT: [B, C]"),
    failed("several-between", "VERDICT: between B and C"),
    failed("several-all", "VERDICT: A, B, C, D", abstain=False),
    failed("several-bold", "**VERDICT:** **B**, **C**"),
    failed("several-code", "VERDICT: QX, ZN", labels=CODES),
    failed("several-code-or", "VERDICT: qx or zn", labels=CODES),
]

UNKNOWN_CASES = [
    failed("unknown-letter", "VERDICT: E"),
    failed("unknown-stage", "VERDICT: Stage E"),
    failed("unknown-number", "VERDICT: 2"),
    failed("unknown-stage-number", "VERDICT: Stage 3"),
    failed("unknown-none", "VERDICT: None"),
    failed("unknown-none-of-the-above", REASONED + "VERDICT: None of the above"),
    failed("unknown-not-applicable", "VERDICT: N/A"),
    failed("unknown-not-applicable-subset", "VERDICT: N/A", "subset"),
    failed("unknown-word", "VERDICT: Unclear"),
    failed("unknown-code", "VERDICT: WW", labels=CODES),
    failed("unknown-code-for-letters", "VERDICT: QX"),
    failed("unknown-letter-for-codes", "VERDICT: B", labels=CODES),
    failed("unknown-half-code", "VERDICT: Q", labels=CODES),
    failed("unknown-label-not-displayed", "VERDICT: D", labels=("A", "B", "C")),
    failed("unknown-none-subset", "VERDICT: None", "subset"),
    failed("unknown-among-subset", "VERDICT: B, E", "subset"),
    failed("unknown-first-in-subset", "VERDICT: E, B", "subset"),
    failed("unknown-among-three", "VERDICT: B, D and Z", "subset"),
    failed("unknown-among-codes", "VERDICT: QX, WW", "subset", CODES),
]

TEMPLATE_CASES = [
    failed("template-single", SINGLE_TEMPLATE),
    failed("template-single-after-reasoning", REASONED + SINGLE_TEMPLATE),
    failed("template-single-no-abstain", "VERDICT: [C/A/D/B]", abstain=False),
    failed("template-single-bold", "**" + SINGLE_TEMPLATE + "**"),
    failed("template-single-code", "VERDICT: [QX/VK/ZN/RJ] or ABSTAIN", labels=CODES),
    failed(
        "template-with-instruction",
        "End your response exactly like this:\n" + SINGLE_TEMPLATE,
    ),
    failed("template-subset", SUBSET_TEMPLATE, "subset"),
    failed("template-subset-after-reasoning", REASONED + SUBSET_TEMPLATE, "subset"),
    failed(
        "template-subset-no-abstain",
        "VERDICT: [one or more of C, A, D, B, separated by commas]",
        "subset",
        abstain=False,
    ),
    failed(
        "template-subset-code",
        "VERDICT: [one or more of QX, VK, ZN, RJ, separated by commas] or ABSTAIN",
        "subset",
        CODES,
    ),
    failed("template-placeholder", "VERDICT: [label]"),
    failed("template-angle-placeholder", "VERDICT: <your answer>"),
]

EMPTY_CASES = [
    failed("empty", ""),
    failed("empty-subset", "", "subset"),
    failed("empty-spaces", "   "),
    failed("empty-lines", "\n\n\n"),
    failed("empty-zero-width", "\u200b\ufeff"),
    failed("blank-verdict", "VERDICT:"),
    failed("blank-verdict-spaces", REASONED + "VERDICT:   \n\n"),
    failed("blank-verdict-bold", "**VERDICT:**"),
    failed("blank-verdict-brackets", "VERDICT: []"),
    failed("blank-verdict-dash", "VERDICT: -"),
    failed("blank-verdict-dots", "VERDICT: ..."),
    failed("blank-verdict-question-mark", "VERDICT: ?"),
    failed("blank-verdict-subset", "VERDICT:", "subset"),
    failed("blank-verdict-after-label", "B\nVERDICT:"),
]

NO_VERDICT_LINE_CASES = [
    failed("no-line-label-alone", "B"),
    failed("no-line-abstain-alone", "ABSTAIN"),
    failed("no-line-answer", "Answer: B"),
    failed("no-line-final-answer", REASONED + "Final answer: B"),
    failed("no-line-final", "Final: B"),
    failed("no-line-prose", "The answer is B."),
    failed("no-line-reasoning-only", REASONED),
    failed("no-line-cut-in-word", REASONED + "VERD"),
    failed("no-line-other-word", "Unverdict: B"),
    failed("no-line-inside-sentence", "I would say VERDICT: B is plausible but unproven."),
    failed("no-line-end-of-sentence", "If pressed I would have to write VERDICT: B"),
    failed("no-line-instruction", 'I was told to end with "VERDICT: B" or another letter.'),
    failed("no-line-subset", "Both B and D apply.", "subset"),
    failed("no-line-code", "I choose QX.", labels=CODES),
    failed("no-line-code-final-answer", "Final answer: QX, ZN", "subset", CODES),
    one(
        "no-line-inside-sentence-then-line",
        "I would say VERDICT: B is plausible but unproven.\n\nVERDICT: C",
        "C",
    ),
]

PART_OF_WORD_CASES = [
    failed("word-both", "VERDICT: Both"),
    failed("word-bravo", "VERDICT: Bravo"),
    failed("word-abstract", "VERDICT: Abstract"),
    failed("word-democracy", "VERDICT: Democracy"),
    failed("word-letter-pair", "VERDICT: AB"),
    failed("word-letter-digit", "VERDICT: B2"),
    failed("word-repeated", "VERDICT: BB"),
    failed("word-code-longer", "VERDICT: QXV", labels=CODES),
    failed("word-code-run-together", "VERDICT: QXZN", "subset", CODES),
    failed("word-subset-run-together", "VERDICT: BD", "subset"),
    failed("word-subset-both", "VERDICT: Both", "subset"),
    failed("word-accented", "VERDICT: D\u00e9mocratie"),
]

SUBSET_CASES = [
    many("subset-one", "VERDICT: B", ("B",)),
    many("subset-one-code", "VERDICT: RJ", ("RJ",), CODES),
    many("subset-comma", "VERDICT: B, D", ("D", "B")),
    many("subset-comma-tight", "VERDICT: B,D", ("D", "B")),
    many("subset-comma-spaced", "VERDICT: B , D", ("D", "B")),
    many("subset-full-stop", "VERDICT: B, D.", ("D", "B")),
    many("subset-and", "VERDICT: B and D", ("D", "B")),
    many("subset-and-capital", "VERDICT: B AND D", ("D", "B")),
    many("subset-brackets", "VERDICT: [B, D]", ("D", "B")),
    many("subset-each-bracketed", "VERDICT: [B], [D]", ("D", "B")),
    many("subset-braces", "VERDICT: {B, D}", ("D", "B")),
    many("subset-parentheses", "VERDICT: (B), (D)", ("D", "B")),
    many("subset-ampersand", "VERDICT: B & D", ("D", "B")),
    many("subset-semicolon", "VERDICT: B; D", ("D", "B")),
    many("subset-slash", "VERDICT: B/D", ("D", "B")),
    many("subset-space", "VERDICT: B D", ("D", "B")),
    many("subset-lower", "verdict: b,d", ("D", "B")),
    many("subset-lower-article", "Verdict: b and a", ("A", "B")),
    many("subset-stages", "VERDICT: Stages B and D", ("D", "B")),
    many("subset-stage-each", "VERDICT: Stage B, Stage D", ("D", "B")),
    many("subset-stage-and-stage", "VERDICT: Stage B and Stage D", ("D", "B")),
    many("subset-options", "VERDICT: Options A, C", ("C", "A")),
    many("subset-oxford-comma", "VERDICT: B, D, and A", ("A", "D", "B")),
    many("subset-three-and", "VERDICT: A, B and C.", ("C", "A", "B")),
    many("subset-repeated", "VERDICT: B, B, D", ("D", "B")),
    many("subset-repeated-case", "VERDICT: B, b", ("B",)),
    many("subset-quoted", 'VERDICT: "B", "D"', ("D", "B")),
    many("subset-bold-each", "VERDICT: **B**, **D**", ("D", "B")),
    many("subset-bold-line", REASONED + "**VERDICT: B, D**", ("D", "B")),
    many("subset-bold-word", "**VERDICT:** B, D", ("D", "B")),
    many("subset-all", "VERDICT: A, B, C, D", LETTERS),
    many("subset-all-alphabetical", "VERDICT: D, C, B, A", ALPHABETICAL, ALPHABETICAL),
    many("subset-alphabetical", "VERDICT: D, A", ("A", "D"), ALPHABETICAL),
    many("subset-no-abstain", "VERDICT: C, B", ("C", "B"), abstain=False),
    many("subset-codes", "VERDICT: RJ, QX", ("QX", "RJ"), CODES),
    many("subset-codes-lower-and", "verdict: zn and vk", ("VK", "ZN"), CODES),
    many("subset-codes-slash", "**VERDICT: [RJ/ZN]**", ("ZN", "RJ"), CODES),
    many("subset-codes-stages", "VERDICT: Stages QX, ZN, and RJ", ("QX", "ZN", "RJ"), CODES),
]

ABSTAIN_CASES = [
    abstained("abstain", "VERDICT: ABSTAIN"),
    abstained("abstain-subset", "VERDICT: ABSTAIN", "subset"),
    abstained("abstain-code", "VERDICT: ABSTAIN", labels=CODES),
    abstained("abstain-lower", "verdict: abstain"),
    abstained("abstain-title-stop", "Verdict: Abstain."),
    abstained("abstain-bold", "VERDICT: **ABSTAIN**"),
    abstained("abstain-bold-line", REASONED + "**VERDICT: ABSTAIN**", "subset"),
    abstained("abstain-brackets", "VERDICT: [ABSTAIN]"),
    abstained("abstain-quoted", 'VERDICT: "ABSTAIN"'),
    failed("abstain-forbidden", "VERDICT: ABSTAIN", abstain=False),
    failed("abstain-forbidden-subset", "VERDICT: ABSTAIN", "subset", abstain=False),
    failed("abstain-forbidden-bold", REASONED + "**VERDICT: ABSTAIN**", abstain=False),
    failed("abstain-forbidden-comment", "VERDICT: ABSTAIN - too little", abstain=False),
    failed("abstain-forbidden-code", "VERDICT: abstain", labels=CODES, abstain=False),
]

CASES = [
    *PLAIN_CASES,
    *CASE_CASES,
    *DECORATION_CASES,
    *FENCE_CASES,
    *PREFIX_CASES,
    *SPELLED_CASES,
    *ZERO_WIDTH_CASES,
    *NEXT_LINE_CASES,
    *COMMENT_CASES,
    *SENTENCE_CASES,
    *LATER_PROSE_CASES,
    *SUPERSEDED_CASES,
    *TOGETHER_CASES,
    *SEVERAL_CASES,
    *UNKNOWN_CASES,
    *TEMPLATE_CASES,
    *EMPTY_CASES,
    *NO_VERDICT_LINE_CASES,
    *PART_OF_WORD_CASES,
    *SUBSET_CASES,
    *ABSTAIN_CASES,
]


def answer(verdict: object, reasoning: str = "Two of three signs are documented.") -> str:
    return json.dumps({"reasoning": reasoning, "verdict": verdict})


JSON_CASES = [
    one("plain", answer("B"), "B"),
    one("plain-no-abstain", answer("C"), "C", abstain=False),
    one("plain-code", answer("VK"), "VK", CODES),
    one("pretty", '{\n  "reasoning": "Signs one and two.",\n  "verdict": "B"\n}\n', "B"),
    one("verdict-first", '{"verdict": "D", "reasoning": "One-party state."}', "D"),
    one("extra-key", '{"reasoning": "x", "confidence": 0.8, "verdict": "B"}', "B"),
    one("fenced", "```json\n" + answer("B") + "\n```", "B"),
    one("fenced-no-language", "```\n" + answer("B") + "\n```\n", "B"),
    one("prose-before", "Here is my assessment:\n\n" + answer("B"), "B"),
    one("prose-and-fence", "Here is my assessment:\n\n```json\n" + answer("C") + "\n```", "C"),
    one("prose-after", answer("B") + "\n\nLet me know if you need more.", "B"),
    one("prose-with-braces-before", "Out of {A, B, C, D} I choose: " + answer("B"), "B"),
    one("key-title", '{"Reasoning": "x", "Verdict": "B"}', "B"),
    one("key-upper", '{"REASONING": "x", "VERDICT": "B"}', "B"),
    one("lower-label", answer("b"), "B"),
    one("lower-code", answer("rj"), "RJ", CODES),
    one("spelled-stage", answer("Stage B"), "B"),
    one("spelled-option-code", answer("option QX"), "QX", CODES),
    one("bold", answer("**B**"), "B"),
    one("bracketed", answer("[B]"), "B"),
    one("full-stop", answer("B."), "B"),
    one("spaces", answer("  B "), "B"),
    one("zero-width", answer("\u200bB"), "B"),
    one("byte-order-mark", "\ufeff" + answer("B"), "B"),
    one("reasoning-with-braces", answer("B", "The set {A, B} is left } after { step two."), "B"),
    one("reasoning-with-object", answer("B", 'The page says {"verdict": "A"} in a box.'), "B"),
    one("reasoning-with-verdict-line", answer("C", "The panel wrote:\nVERDICT: A\nI differ."), "C"),
    one("reasoning-with-quotes-and-fence", answer("B", 'He said "no".\n```\ncode\n```'), "B"),
    one("reasoning-not-ascii", '{"reasoning": "Präsidium – «ja» 🙂", "verdict": "B"}', "B"),
    many("list", answer(["B", "D"]), ("D", "B")),
    many("list-one", answer(["B"]), ("B",)),
    many("list-lower", answer(["b", "d"]), ("D", "B")),
    many("list-spelled", answer(["Stage B", "stage D"]), ("D", "B")),
    many("list-repeated", answer(["B", "D", "B"]), ("D", "B")),
    many("list-all", answer(["A", "B", "C", "D"]), LETTERS),
    many("list-code", answer(["RJ", "QX"]), ("QX", "RJ"), CODES),
    many("list-fenced", "```json\n" + answer(["A", "C"]) + "\n```", ("C", "A")),
    many("list-prose-before", "My answer: " + answer(["A", "C"]), ("C", "A")),
    many("string-comma", answer("B, D"), ("D", "B")),
    many("string-and", answer("B and D"), ("D", "B")),
    many("string-one", answer("B"), ("B",)),
    many("string-code", answer("zn, vk"), ("VK", "ZN"), CODES),
    abstained("abstain", answer("ABSTAIN")),
    abstained("abstain-lower", answer("abstain")),
    abstained("abstain-subset", answer("ABSTAIN"), "subset"),
    abstained("abstain-fenced", "```json\n" + answer("ABSTAIN") + "\n```"),
    abstained("abstain-code", answer("ABSTAIN"), "subset", CODES),
    failed("abstain-forbidden", answer("ABSTAIN"), abstain=False),
    failed("abstain-forbidden-subset", answer("ABSTAIN"), "subset", abstain=False),
    failed("unknown", answer("E")),
    failed("unknown-none", answer("None")),
    failed("unknown-not-applicable", answer("N/A")),
    failed("unknown-letter-for-codes", answer("B"), labels=CODES),
    failed("unknown-in-list", answer(["B", "E"]), "subset"),
    failed("unknown-in-code-list", answer(["QX", "WW"]), "subset", CODES),
    failed("number-in-list", answer(["B", 2]), "subset"),
    failed("null-in-list", answer(["B", None]), "subset"),
    failed("part-of-word", answer("Both")),
    failed("sentence", answer("A court ruled against it")),
    failed("template", answer("[C/A/D/B] or ABSTAIN")),
    failed("several-string", answer("B, D")),
    failed("several-or", answer("B or C")),
    failed("several-list", answer(["B", "D"])),
    failed("several-code-list", answer(["QX", "ZN"]), labels=CODES),
    failed("verdict-empty-string", answer("")),
    failed("verdict-spaces", answer("   ")),
    failed("verdict-empty-list", answer([]), "subset"),
    failed("verdict-null", answer(None)),
    failed("verdict-null-subset", answer(None), "subset"),
    failed("verdict-number", answer(2)),
    failed("verdict-boolean", answer(True)),
    failed("verdict-object", answer({}), "subset"),
    failed("verdict-missing", '{"reasoning": "Two of three signs are documented: B."}'),
    failed("verdict-only-in-reasoning", '{"reasoning": "The verdict is B."}'),
    failed("object-empty", "{}"),
    failed("empty", ""),
    failed("empty-lines", " \n\n "),
    failed("empty-fence", "```json\n```"),
    failed("array", '["B"]'),
    failed("array-subset", '["B", "D"]', "subset"),
    failed("array-empty", "[]", "subset"),
    failed("top-level-null", "null"),
    failed("top-level-number", "42"),
    failed("top-level-string", '"B"'),
    failed("bare-label", "B"),
    failed("prose-only", REASONED),
    one("key-twice-alike", '{"verdict": "B", "Verdict": "B"}', "B"),
    failed("key-twice", '{"verdict": "A", "verdict": "B"}'),
    failed("key-twice-in-other-case", '{"verdict": "A", "Verdict": "B"}'),
    failed("two-fences", '```json\n{"verdict": "A"}\n```\n```json\n{"verdict": "B"}\n```'),
    failed("one-or-the-other", '{"verdict": "A"} or {"verdict": "B"}'),
    failed("only-thought", '<think>{"verdict": "A"}</think>'),
    one("thought-before", '<think>{"verdict": "A"}</think>{"verdict": "B"}', "B"),
    failed("cut-in-reasoning", '{"reasoning": "Two of three signs are documen'),
    failed("cut-before-verdict", '{"reasoning": "Two of three signs.", "verdict": '),
    failed("cut-in-list", '{"reasoning": "Two of three signs.", "verdict": ["B", ', "subset"),
]


@each_row("case", [pytest.param(case, id=case.id) for case in CASES])
def test_suffix_answer_is_read_as_the_table_says(case: Case) -> None:
    verdict = parse_verdict(case.text, case.labels, method=case.method, abstain=case.abstain)
    assert (verdict.status, verdict.labels) == (case.status, case.chosen)


@each_row("case", [pytest.param(case, id=case.id) for case in JSON_CASES])
def test_json_answer_is_read_as_the_table_says(case: Case) -> None:
    verdict = parse_json_verdict(case.text, case.labels, method=case.method, abstain=case.abstain)
    assert (verdict.status, verdict.labels) == (case.status, case.chosen)


NAMES = {"A": "Weak", "B": "Fair", "C": "Good", "D": "Strong support"}
FAILS = "parse_failed"
ABSTAINS = "abstained"

# Answers to a rubric whose stages have names; the reading is a label, or a status. Those marked
# "real" are a model's, word for word or with other labels.
NAMED_ANSWERS = {
    # A label beside the name of another stage contradicts itself.
    "VERDICT: A (Good)": FAILS,
    "VERDICT: A (Weak)": "A",
    "VERDICT: A (good)": FAILS,
    "VERDICT: A (good fit)": "A",
    'VERDICT: **A** ("Good")': FAILS,
    "VERDICT: A - Good": FAILS,
    "VERDICT: A: Weak": "A",
    "VERDICT: A. Weak": "A",
    "VERDICT: A) Good": FAILS,
    "VERDICT: A Weak": "A",
    "VERDICT: A Good": FAILS,
    'VERDICT: Stage A: "Weak"': "A",
    'VERDICT: Stage A: "Good"': FAILS,
    "VERDICT: A - Good evidence is missing": "A",
    # The name of one stage is a verdict, a word of a sentence is not.
    "Verdict: Good": "C",  # real
    "VERDICT: **good**.": "C",
    "VERDICT: Stage Good": "C",
    "VERDICT: Strong  support": "D",
    "VERDICT: strong": FAILS,
    "VERDICT: Good (C)": "C",
    "VERDICT: Good (A)": FAILS,
    "VERDICT: Good - C": "C",
    "VERDICT: Good - A": FAILS,
    "VERDICT: Good - the reason is clear": "C",
    "VERDICT: Good reason is given": FAILS,
    "VERDICT: Good or Fair": FAILS,
    "VERDICT: Good, Fair": FAILS,
    "VERDICT: Not Good": FAILS,
    "VERDICT: Good enough": FAILS,
    # An abstention may be a sentence.
    "VERDICT: I abstain": ABSTAINS,
    "VERDICT: [I abstain due to a lack of information]": ABSTAINS,  # real
    "VERDICT: Abstain because the evidence is thin": ABSTAINS,
    "VERDICT: ABSTAIN since there is no text": ABSTAINS,
    "VERDICT: I would have to abstain, since B and C fit alike": ABSTAINS,
    "VERDICT: I do not abstain": FAILS,
    "VERDICT: I cannot abstain": FAILS,
    "VERDICT: Abstain as B": FAILS,
    "VERDICT: I abstain. Final answer: B": FAILS,
    "VERDICT: B, I abstain": FAILS,
    # A grade is not a label.
    "VERDICT: C+": FAILS,
    "VERDICT: A.5": FAILS,
    "VERDICT: A, i.e. Good": FAILS,
    "VERDICT: A (that is, Good)": FAILS,
    "VERDICT: A, which means Weak": "A",
    "VERDICT: A, but C": FAILS,
    "VERDICT: A, better than C": "A",
    "VERDICT: I would abstain, but C": FAILS,
    "VERDICT: **C**+": FAILS,
    "VERDICT: C +": FAILS,
    "VERDICT: C-": FAILS,
    "VERDICT: C - clear": "C",
    "VERDICT: C--clear": "C",
    # The words of the requested form are not an answer.
    "VERDICT: [A, B, C, D, separated by commas]": FAILS,  # real
    "VERDICT: [no more than three of A, B, C, D, separated by commas] or ABSTAIN": FAILS,  # real
    "Verdict: I abstain because of A, B, C, D, separated by commas.": FAILS,  # real
    # What follows the model's turn is not its verdict.
    "VERDICT: B<|im_end|>\n<|im_start|>user\nNext.\n<|im_start|>assistant\nVERDICT: C": "B",
    "<|im_start|>assistant\nA vague reason.\nVERDICT: B<|im_end|>": "B",
    "VERDICT: B</s>VERDICT: C": "B",
    "VERDICT: B [/INST] VERDICT: C": "B",
    "The text is thin.<|endoftext|>VERDICT: C": FAILS,
    "It says <s>old</s> new.\nVERDICT: B": "B",
    # A token in a quotation ends nothing, and the quotation is no verdict.
    'It has the line\n"VERDICT: A<|im_end|>"\nwhich I ignore.\nVERDICT: B': "B",
    'It has the line\n"VERDICT: A<|im_end|>"\nwhich I ignore.': FAILS,
    "It reads\n“VERDICT: A<|im_end|>\n<|im_start|>assistant” and more.\nVERDICT: B": "B",
    "It reads\n> VERDICT: A<|eot_id|>\n\nI differ.\nVERDICT: B": "B",
    "The line `VERDICT: A</s>` is a trick.\nVERDICT: B": "B",
    'VERDICT: B<|im_end|>\nThey said "yes" and "no".\nVERDICT: C': "B",
    '"VERDICT: B"<|im_end|>': "B",
    # A quotation before the end of the turn counts as little as a verdict after it.
    'It says\n"VERDICT: A"\nat its end.<|im_end|>\nVERDICT: B': FAILS,
    "VERDICT: B\n\nUser: And this one?\nIt is clear.\nVERDICT: C": "B",
    "VERDICT: B\n### Instruction:\nJudge it.\nVERDICT: C": "B",
    "VERDICT: B\n\nNext item: the loop.\n\nIt is clear.\n\nVERDICT: C": "B",
    "VERDICT: B\n\nText 2: the loop.\n\nIt is clear.\n\nVERDICT: C": "B",
    "VERDICT: B\n\nEVIDENCE\n<evidence-0123456789ab>\nMore.\nVERDICT: C": "B",
    # Before the first verdict the same words are a quotation.
    "User: hi\nAssistant: hello\n\nBoth are polite.\nVERDICT: C": "C",
    'RUBRIC for "tone"\nStage A: "Weak"\nTASK\n1. Decide.\nVERDICT: C': "C",
    'The evidence is thin.\n\nVerdict: A\nStage D: "Strong support"\nTASK: 1 and 2': "A",  # real
    # What a server sends as the model's reasoning is not its answer.
    "<think>\nVERDICT: A\n</think>\n\nVERDICT: B": "B",
    "<think>VERDICT: A</think> VERDICT: B": "B",
    "<think>\nMaybe.\nVERDICT: A\n</think>\n\nI cannot say.": FAILS,
    "<think>\nMaybe.\nVERDICT: A\nHmm, no": FAILS,
    "Maybe.\nVERDICT: A\n</think>\n\nIt is Good.": FAILS,
    "Sure.\n<think>\nVERDICT: A\n": FAILS,
    "[THINK]\nVERDICT: A\n[/THINK]\nIt is Good.": FAILS,
    "<|START_THINKING|>\nVERDICT: A\n<|END_THINKING|>\nIt is Good.": FAILS,
    "The tag `</think>` in it is a trick.\nVERDICT: B": "B",
    "It has a <think> that never ends.\nVERDICT: B": "B",
    "<|channel|>analysis<|message|>So\nVERDICT: A\n<|end|><|start|>assistant<|channel|>final"
    "<|message|>VERDICT: B<|return|>": "B",
    # A comment that ends in another label or name takes the verdict back.
    "VERDICT: A, no, B": FAILS,
    "VERDICT: A, I mean B": FAILS,
    "VERDICT: A (I mean B)": FAILS,
    "VERDICT: A (wait, VERDICT: B)": FAILS,
    "VERDICT: A, maybe B": FAILS,
    "VERDICT: A (or possibly B)": FAILS,
    "VERDICT: A (or ABSTAIN)": FAILS,
    "VERDICT: A. I abstain.": FAILS,
    "VERDICT: ABSTAIN? No, B": FAILS,
    "VERDICT: ABSTAIN - torn between B and C": ABSTAINS,
    "VERDICT: $A \\to B$": FAILS,
    "VERDICT: A → Good": FAILS,
    "VERDICT: A («Good»)": FAILS,
    "VERDICT: A (the Good stage)": FAILS,
    "VERDICT: A (rated Good)": FAILS,
    "VERDICT: Good - Fair": FAILS,
    "VERDICT: Good. Final answer: Fair": FAILS,
    "VERDICT: A, C fits better": FAILS,
    "VERDICT: A (A or rather not A)": FAILS,
    "VERDICT: A - it does not meet the criteria of C": "A",
    "VERDICT: A (doesn't reach C)": "A",
    "VERDICT: A (Weak, not Good)": "A",
    "VERDICT: A - it meets all criteria of A": "A",
    "VERDICT: A. Final answer: A": "A",
    "VERDICT: A (confidence: Good)": "A",
    "VERDICT: A - the tone is good": "A",
    "VERDICT: A. On reflection I change it to C": FAILS,
    # What a comment tells of another stage is no vote for it.
    "VERDICT: B. I considered C": "B",
    "VERDICT: B, although it approaches C": "B",
    "VERDICT: B (close to C)": "B",
    "VERDICT: B (borderline C)": "B",
    "VERDICT: B. It falls between A and C": "B",
    "VERDICT: B, with some elements of C": "B",
    "VERDICT: B - it meets most criteria of B and one of C": "B",
    "VERDICT: B, which is one stage below C": "B",
    # A label with its denial or with a value, one that is struck through, an article.
    "VERDICT: A? No.": FAILS,
    "VERDICT: A: no / B: yes": FAILS,
    "VERDICT: A (not met), B (met)": FAILS,
    "VERDICT: A: 0.2, B: 0.8": FAILS,
    "VERDICT: A\u0336": FAILS,
    "VERDICT: A/10": FAILS,
    "VERDICT: A\u2212": FAILS,
    "VERDICT: A *clear* case of bias": FAILS,
    # What stands below a verdict may be more of it.
    "VERDICT:\nA\nB": FAILS,
    "VERDICT:\nA: not met\nB: met": FAILS,
    "VERDICT: A,\nB": FAILS,
    '{\n"verdict": [\n"A",\n"B"\n]\n}': FAILS,
    '{\n"verdict": {\n"A": false,\n"B": true\n}\n}': FAILS,
    "VERDICT: A\n\nActually, VERDICT: B": FAILS,
    "VERDICT: A\nSo my final verdict is B.": FAILS,
    "VERDICT: A\nSo my final verdict is A.": "A",
    'VERDICT: A\nIt says "VERDICT: B" at its end.': "A",
    "VERDICT: B\n\n### User\nAnd this?\nVERDICT: C": "B",
    "VERDICT: B\n\n### Response:\nIt fits.\nVERDICT: C": "B",
    # A JSON object reads alike with a fence and without one.
    '{"verdict": "B"}': "B",
    '```json\n{"verdict": "B"}\n```': "B",
    '```json {"verdict": "B"} ```': "B",
    '{"reasoning": "It fits.", "verdict": "B"}': FAILS,
    '```json\n{"reasoning": "It fits.", "verdict": "B"}\n```': FAILS,
    '{\n"reasoning": "It fits.",\n"verdict": "B"\n}': "B",
    '```\n{\n"reasoning": "It fits.",\n"verdict": "B"\n}\n```': "B",
    '{"verdict": "A (Good)"}': FAILS,
    '```json\n{"verdict": "A (Good)"}\n```': FAILS,
    '{"verdict": "I abstain"}': ABSTAINS,
}
NAMED_SUBSETS = {
    "VERDICT: A (Weak), C (Good)": "AC",
    "VERDICT: A: Weak, C: Good": "AC",
    "VERDICT: A Weak and C Good": "AC",
    "VERDICT: A (Weak), C (Fair)": FAILS,
    "VERDICT: Good and Fair": "BC",
    "VERDICT: A, Good": "AC",
    "VERDICT: Good (B)": FAILS,
    "VERDICT: B Good": FAILS,
    "VERDICT: B+C": "BC",
    "VERDICT: B+": FAILS,
    "VERDICT: Abstain because B, C fit alike": ABSTAINS,
    "VERDICT: [A, B, C, D, separated by commas]": FAILS,  # real
    "VERDICT: [I do not believe in this evidence]": FAILS,  # real
    "VERDICT: A, also B": FAILS,
    "VERDICT: A (B too)": FAILS,
    "VERDICT: A. Also Fair.": FAILS,
    "VERDICT: A, B, C fit": FAILS,
    "VERDICT: A, B except B": FAILS,
    "VERDICT: A, but not B": "A",
    "VERDICT: A, B (not C)": "AB",
    "VERDICT: A (yes), B (no)": FAILS,
    "VERDICT: A [x], B [ ]": FAILS,
    "VERDICT: A > B": FAILS,
    "VERDICT: Weak - minor, Good - severe": FAILS,
    "VERDICT: A\n         B": FAILS,
    "VERDICT:\n* **A** (Weak)\n* **B** (Fair)": FAILS,
}


@pytest.mark.parametrize("text", NAMED_ANSWERS)
def test_an_answer_to_named_stages_is_read_as_the_table_says(text: str) -> None:
    verdict = parse_verdict(text, ALPHABETICAL, names=NAMES)
    assert ("".join(verdict.labels) or verdict.status) == NAMED_ANSWERS[text]


@pytest.mark.parametrize("text", NAMED_SUBSETS)
def test_a_subset_of_named_stages_is_read_as_the_table_says(text: str) -> None:
    verdict = parse_verdict(text, ALPHABETICAL, method="subset", names=NAMES)
    assert ("".join(verdict.labels) or verdict.status) == NAMED_SUBSETS[text]


def test_a_sentence_is_no_abstention_where_none_was_allowed() -> None:
    for text in (
        "VERDICT: I abstain",
        "VERDICT: Abstain because it is thin",
        '{"verdict": "I abstain"}',
    ):
        assert parse_verdict(text, ALPHABETICAL, abstain=False).status == "parse_failed"


def test_a_name_that_two_stages_share_is_no_verdict() -> None:
    names = {**NAMES, "D": "good"}
    assert parse_verdict("VERDICT: Good", ALPHABETICAL, names=names).status == "parse_failed"
    assert parse_verdict("VERDICT: D (Good)", ALPHABETICAL, names=names).labels == ("D",)


def test_a_stage_that_is_named_no_is_no_denial() -> None:
    names = {"A": "Yes", "B": "No", "C": "Partly", "D": "Unclear"}
    for text in ("B (No)", "B: No", "B - No", "No", "B (No, it does not)"):
        assert parse_verdict(f"VERDICT: {text}", ALPHABETICAL, names=names).labels == ("B",)
    assert parse_verdict("VERDICT: A (No)", ALPHABETICAL, names=names).status == "parse_failed"


def test_json_names_its_stage_and_ends_with_its_turn() -> None:
    real = 'It meets the criteria.\n\nJSON:\n{"reasoning": "Strong support", "verdict": "Good"}'
    assert parse_json_verdict(real, ALPHABETICAL, names=NAMES).labels == ("C",)
    assert parse_json_verdict(answer("EBB"), ALPHABETICAL, names=NAMES).status == "parse_failed"
    text = answer("Good") + "<|im_end|>\n" + answer("Fair")
    assert parse_json_verdict(text, ALPHABETICAL, names=NAMES).labels == ("C",)
    text = '{"reasoning": "It says VERDICT: A<|im_end|> there", "verdict": "Fair"}'
    assert parse_json_verdict(text, ALPHABETICAL, names=NAMES).labels == ("B",)
    text = answer("C") + "\n\nNext item: the loop.\n" + answer("B")
    assert parse_json_verdict(text, ALPHABETICAL, names=NAMES).labels == ("C",)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_names_that_an_answer_does_not_use_change_nothing(case: Case) -> None:
    names = {label: f"stage number {i}" for i, label in enumerate(case.labels)}
    verdict = parse_verdict(
        case.text, case.labels, method=case.method, abstain=case.abstain, names=names
    )
    assert (verdict.status, verdict.labels) == (case.status, case.chosen)


def test_tables_cover_both_methods_and_name_every_case_once() -> None:
    for table, least in ((CASES, 120), (JSON_CASES, 25)):
        assert len(table) >= least
        assert len({case.id for case in table}) == len(table)
        for method in METHODS:
            assert {case.status for case in table if case.method == method} == set(STATUSES)


def reading(
    text: str,
    labels: tuple[str, ...],
    method: Method,
    abstain: bool,
    json_output: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """Read one answer, and check what holds of every result."""
    parse = parse_json_verdict if json_output else parse_verdict
    verdict = parse(text, labels, method=method, abstain=abstain)
    status: str = verdict.status
    chosen: tuple[str, ...] = verdict.labels
    assert status in STATUSES
    assert chosen == tuple(label for label in labels if label in chosen)
    assert bool(chosen) == (status == "scored")
    if method == "single":
        assert len(chosen) <= 1
    if not abstain:
        assert status != "abstained"
    return status, chosen


def without_letter(text: str, letter: str) -> str:
    """Drop every character that could be taken for the letter, in any case or width."""

    def stands_for_letter(character: str) -> bool:
        forms = {character, character.lower(), character.upper(), character.casefold()}
        plain = {unicodedata.normalize("NFKD", form).casefold() for form in forms}
        return any(letter in form for form in plain)

    return "".join(character for character in text if not stands_for_letter(character))


FRAGMENTS = (
    *("VERDICT:", "VERDICT: ", "verdict", "Final ", "FINAL VERDICT: ", "VERDICT", ":"),
    *("A", "B", "C", "D", "b", "d", "E", "QX", "vk", "ZN", "RJ", "Both", "N/A"),
    *("ABSTAIN", "Abstain", "None", "Stage ", "stages ", "Option ", "letter "),
    *("\n", "\n\n", "\r\n", "\r", " ", "  ", "\t", "\u200b", "\ufeff", "\u00a0", "\u2028"),
    *("*", "**", "_", "`", "```\n", "```json\n", "> ", "- ", "### ", "[", "]", "(", ")"),
    *("{", "}", '"', "'", ",", ", ", ".", ";", "/", " - ", " \u2014 ", " and ", " or ", " & "),
    *("The evidence is thin.", "A court ruled against it.", "because", "\x00", "\ud800", "\u0130"),
    *('{"verdict": ', '"verdict": "B"', '{"reasoning": "x", ', "[B, D]", "null", "1e999"),
)

any_text = st.text(alphabet=st.characters())
fragment_text = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=30).map("".join)
texts = any_text | fragment_text
label_tuples = st.sampled_from((LETTERS, ALPHABETICAL, CODES)).flatmap(st.permutations).map(tuple)
methods = st.sampled_from(METHODS)
reasons = st.sampled_from(
    (
        "The second filing changes this.",
        "On reflection, the decree was never enforced.\nThe court struck it down.",
        "A closer look at paragraph four shows a lawful vote.",
        REASONED.strip(),
    )
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(FRAGMENTS),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(text=texts, labels=label_tuples, method=methods, abstain=st.booleans())
def test_no_suffix_text_raises_or_gives_an_ill_formed_result(
    text: str, labels: tuple[str, ...], method: Method, abstain: bool
) -> None:
    reading(text, labels, method, abstain)


@settings(deadline=None)
@given(text=texts, labels=label_tuples, method=methods, abstain=st.booleans())
def test_no_json_text_raises_or_gives_an_ill_formed_result(
    text: str, labels: tuple[str, ...], method: Method, abstain: bool
) -> None:
    reading(text, labels, method, abstain, json_output=True)


@settings(deadline=None)
@given(value=json_values, labels=label_tuples, method=methods, abstain=st.booleans())
def test_no_json_value_of_the_verdict_raises_or_gives_an_ill_formed_result(
    value: object, labels: tuple[str, ...], method: Method, abstain: bool
) -> None:
    reading(answer(value), labels, method, abstain, json_output=True)
    reading(json.dumps(value), labels, method, abstain, json_output=True)


@settings(deadline=None)
@given(
    text=texts,
    letter=st.sampled_from("verdict"),
    labels=label_tuples,
    method=methods,
    abstain=st.booleans(),
)
def test_text_lacking_a_letter_of_the_word_verdict_is_never_a_vote(
    text: str, letter: str, labels: tuple[str, ...], method: Method, abstain: bool
) -> None:
    bare = without_letter(text, letter)
    assert reading(bare, labels, method, abstain) == ("parse_failed", ())


@settings(deadline=None)
@given(
    text=texts,
    letter=st.sampled_from("verdict"),
    labels=label_tuples,
    method=methods,
    abstain=st.booleans(),
)
def test_json_lacking_a_letter_of_the_word_verdict_is_never_a_vote(
    text: str, letter: str, labels: tuple[str, ...], method: Method, abstain: bool
) -> None:
    bare = without_letter(text, letter).replace("\\", "")
    found = reading(bare, labels, method, abstain, json_output=True)
    assert found == ("parse_failed", ())


@settings(deadline=None)
@given(
    words=st.lists(
        st.sampled_from(("I", "would", "say", "that", "perhaps", "they", "wrote")),
        min_size=3,
        max_size=8,
    ),
    labels=label_tuples,
    data=st.data(),
    method=methods,
    abstain=st.booleans(),
)
def test_verdict_inside_a_sentence_is_never_a_vote(
    words: list[str],
    labels: tuple[str, ...],
    data: st.DataObject,
    method: Method,
    abstain: bool,
) -> None:
    label = data.draw(st.sampled_from(labels))
    text = " ".join(words) + f" VERDICT: {label}"
    assert reading(text, labels, method, abstain) == ("parse_failed", ())


@settings(deadline=None)
@given(
    text=texts,
    letter=st.sampled_from("verdict"),
    labels=label_tuples,
    data=st.data(),
    method=methods,
    abstain=st.booleans(),
)
def test_closing_verdict_line_decides_whatever_reasoning_precedes(
    text: str,
    letter: str,
    labels: tuple[str, ...],
    data: st.DataObject,
    method: Method,
    abstain: bool,
) -> None:
    label = data.draw(st.sampled_from(labels))
    reasoning = without_letter(text, letter)
    found = reading(f"{reasoning}\nVERDICT: {label}", labels, method, abstain)
    assert found == ("scored", (label,))


@settings(deadline=None)
@given(text=texts, letter=st.sampled_from("verdict"), labels=label_tuples, method=methods)
def test_closing_abstention_counts_only_where_it_is_allowed(
    text: str, letter: str, labels: tuple[str, ...], method: Method
) -> None:
    closed = without_letter(text, letter) + "\nVERDICT: ABSTAIN"
    assert reading(closed, labels, method, abstain=True) == ("abstained", ())
    assert reading(closed, labels, method, abstain=False) == ("parse_failed", ())


@settings(deadline=None)
@given(labels=label_tuples, data=st.data(), reason=reasons, method=methods, abstain=st.booleans())
def test_later_verdict_supersedes_one_that_reasoning_separates_from_it(
    labels: tuple[str, ...], data: st.DataObject, reason: str, method: Method, abstain: bool
) -> None:
    first, last = data.draw(st.sampled_from(labels)), data.draw(st.sampled_from(labels))
    text = f"VERDICT: {first}\n\n{reason}\n\nVERDICT: {last}"
    assert reading(text, labels, method, abstain) == ("scored", (last,))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("labels", [LETTERS, CODES], ids=["letters", "codes"])
def test_adjacent_verdict_lines_count_only_if_they_agree(
    labels: tuple[str, ...], method: Method
) -> None:
    for first in labels:
        for last in labels:
            found = reading(f"VERDICT: {first}\nVERDICT: {last}", labels, method, abstain=True)
            assert found == (("scored", (first,)) if first == last else ("parse_failed", ())), (
                f"{first} then {last}"
            )


@settings(deadline=None)
@given(
    labels=label_tuples,
    data=st.data(),
    separator=st.sampled_from((",", ", ", "; ", "/", " and ", " & ", " ")),
    wrap=st.sampled_from(("{}", "[{}]", "**{}**", "{}.", "Stages {}", "{} - they fit")),
    lower=st.booleans(),
)
def test_subset_comes_back_in_display_order_without_repeats(
    labels: tuple[str, ...], data: st.DataObject, separator: str, wrap: str, lower: bool
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(labels), min_size=1, max_size=8))
    listed = separator.join(chosen)
    line = "VERDICT: " + wrap.format(listed.lower() if lower else listed)
    expected = tuple(label for label in labels if label in chosen)
    assert reading(line, labels, "subset", abstain=True) == ("scored", expected)


@settings(deadline=None)
@given(labels=label_tuples, data=st.data(), reasoning=any_text, method=methods, ascii=st.booleans())
def test_json_label_is_read_whatever_the_reasoning_says(
    labels: tuple[str, ...], data: st.DataObject, reasoning: str, method: Method, ascii: bool
) -> None:
    label = data.draw(st.sampled_from(labels))
    text = json.dumps({"reasoning": reasoning, "verdict": label}, ensure_ascii=ascii)
    found = reading(text, labels, method, abstain=True, json_output=True)
    assert found == ("scored", (label,))


@settings(deadline=None)
@given(labels=label_tuples, data=st.data(), reasoning=any_text)
def test_json_list_comes_back_in_display_order_without_repeats(
    labels: tuple[str, ...], data: st.DataObject, reasoning: str
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(labels), min_size=1, max_size=8))
    expected = tuple(label for label in labels if label in chosen)
    found = reading(answer(chosen, reasoning), labels, "subset", abstain=True, json_output=True)
    assert found == ("scored", expected)


@settings(deadline=None)
@given(
    text=texts,
    labels=label_tuples,
    data=st.data(),
    method=methods,
    abstain=st.booleans(),
    json_output=st.booleans(),
)
def test_reading_does_not_depend_on_display_order(
    text: str,
    labels: tuple[str, ...],
    data: st.DataObject,
    method: Method,
    abstain: bool,
    json_output: bool,
) -> None:
    shuffled = tuple(data.draw(st.permutations(labels)))
    status, chosen = reading(text, labels, method, abstain, json_output)
    other_status, other_chosen = reading(text, shuffled, method, abstain, json_output)
    assert (status, set(chosen)) == (other_status, set(other_chosen))


@each_row("case", [pytest.param(case, id=case.id) for case in CASES])
def test_table_reads_the_same_in_reversed_display_order(case: Case) -> None:
    status, chosen = reading(case.text, case.labels[::-1], case.method, case.abstain)
    assert (status, set(chosen)) == (case.status, set(case.chosen))


LONG = 10_000

LONG_TEXTS: dict[str, Callable[[int], str]] = {
    "prefixes": lambda n: "VERDICT:" * n,
    "prefixes-spaced": lambda n: "VERDICT: " * n,
    "prefixes-then-label": lambda n: "VERDICT: " * n + "B",
    "finals": lambda n: "Final " * n + "VERDICT: B",
    "labels": lambda n: "VERDICT: " + "B, " * n,
    "labels-then-word": lambda n: "VERDICT: " + "B, " * n + "because",
    "labels-and": lambda n: "VERDICT: " + "B and " * n,
    "label-word": lambda n: "VERDICT: " + "B" * n,
    "stages": lambda n: "VERDICT: " + "Stage " * n,
    "verdict-lines": lambda n: "VERDICT: B\n" * n,
    "verdict-lines-alternating": lambda n: "VERDICT: A\nVERDICT: B\n" * n,
    "blank-verdict-lines": lambda n: "VERDICT:\n" * n,
    "verdict-lines-with-reasoning": lambda n: "VERDICT: A\nNo, wait.\n" * n,
    "asterisks": lambda n: "*" * n,
    "asterisks-then-verdict": lambda n: "*" * n + "VERDICT: B",
    "asterisks-after-verdict": lambda n: "VERDICT: " + "*" * n,
    "spaces": lambda n: " " * n,
    "spaces-after-verdict": lambda n: "VERDICT: " + " " * n,
    "spaces-inside-verdict": lambda n: "VERDICT" + " " * n + "B",
    "spaces-after-label": lambda n: "VERDICT: B" + " " * n + "x",
    "newlines": lambda n: "\n" * n,
    "newlines-after-verdict": lambda n: "VERDICT:" + "\n" * n + "B",
    "carriage-returns": lambda n: "\r" * n,
    "zero-widths": lambda n: "VERDICT: " + "\u200b" * n + "B",
    "quotes": lambda n: "> " * n + "VERDICT: B",
    "fences": lambda n: "```\n" * n,
    "backticks": lambda n: "`" * n + "json",
    "brackets": lambda n: "[" * n,
    "brackets-after-verdict": lambda n: "VERDICT: " + "[" * n + "B" + "]" * n,
    "braces": lambda n: "{" * n,
    "braces-closed": lambda n: "{" * n + "}" * n,
    "braces-pairs": lambda n: "{}" * n,
    "braces-then-object": lambda n: "{" * n + '{"verdict": "B"}',
    "json-keys": lambda n: '{"verdict":' * n,
    "json-keys-closed": lambda n: '{"verdict":' * n + '"B"' + "}" * n,
    "json-objects": lambda n: '{"verdict": "B"}' * n,
    "json-open-strings": lambda n: '{"' * n,
    "json-escapes": lambda n: '{"reasoning": "' + "\\" * n,
    "json-deep-list": lambda n: '{"verdict": ' + "[" * n + "]" * n + "}",
    "json-long-list": lambda n: '{"verdict": [' + '"B", ' * n + '"B"]}',
    "json-long-number": lambda n: '{"verdict": ' + "1" * n + "}",
    "json-long-label": lambda n: '{"verdict": "' + "B, " * n + '"}',
    "double-quotes": lambda n: '"' * n,
}


@each_row("json_output", [False, True], ids=["suffix", "json"])
@each_row("build", [pytest.param(build, id=name) for name, build in LONG_TEXTS.items()])
def test_long_hostile_text_is_read_in_time(build: Callable[[int], str], json_output: bool) -> None:
    text = build(LONG)
    started = time.process_time()
    for method in METHODS:
        reading(text, LETTERS, method, abstain=True, json_output=json_output)
    assert time.process_time() - started < 3, "a linear reader takes less than a tenth of this"


@each_row(
    ("answer", "subset"),
    [
        ("[B] [D]", ("D", "B")),
        ("(B) (D)", ("D", "B")),
        ("**B** (**D**)", ("D", "B")),
        ("B • D", ("D", "B")),
        ("B -> C", ()),
        ("B - C", ()),
        ("B. C.", ()),
        ("B: C", ()),
        ("B... actually C", ()),
        ("B. Final answer: C", ()),
    ],
)
def test_a_second_vote_on_the_line_is_never_lost(answer: str, subset: tuple[str, ...]) -> None:
    assert parse_verdict(f"VERDICT: {answer}", LETTERS).status == "parse_failed"
    assert parse_verdict(f"VERDICT: {answer}", LETTERS, method="subset").labels == subset


def test_the_last_json_object_decides_unless_several_are_adjacent() -> None:
    revised = 'Draft: {"verdict": "A"} On reflection: {"verdict": "B"}'
    assert parse_json_verdict(revised, LETTERS).labels == ("B",)
    side_by_side = '{"verdict": "A"} {"verdict": "B"}'
    assert parse_json_verdict(side_by_side, LETTERS).status == "parse_failed"
