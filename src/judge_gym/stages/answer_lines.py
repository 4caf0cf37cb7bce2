"""Finds labelled lines in free text, in time linear in its length.

An answer ends in a line such as `VERDICT: B`. The last such line decides. Reasoning between two of
them means that the later one supersedes the earlier; adjacent ones that differ decide nothing.
What follows the end of the model's turn is not its answer.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

INVISIBLE = dict.fromkeys(
    [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF, 0xAD, 0x180E]
)
# Markup that may surround a line: quotes, bullets, headings, emphasis, fences, brackets, numbers.
DECORATION = r"\s>*_#`~•+|\"'“”‘’\[\](){}<$\\"
BARE = re.compile(rf"[{DECORATION}\-–—=.:!,;/&]*+\Z")


# Tokens of chat templates that begin or end a turn; some servers send them as text.
TURN_TOKEN = re.compile(
    r"<[|｜](?:im_start|im_end|endoftext|end_of_text|eot_id|eom_id|end|return|start_header_id|user"
    r"|system|assistant|begin▁of▁sentence|end▁of▁sentence)[|｜]>"
    r"|<(?:start|end)_of_turn>|<[be]os>|</?s>|\[/?INST\]",
    re.I,
)
# Where reasoning that a server sends with the answer begins and ends, in the tags of many models.
_THINKS = r"(?:think|thinking|thought|reasoning|reflection|analysis|scratchpad)"
THOUGHT = re.compile(
    rf"^[ \t]*+(?:<[\w:]*{_THINKS}\s*>|\[THINK\]|◁think▷|<unused94>thought"
    r"|<\|(?:begin_of_thought|start_thinking)\|>|<\|channel\|>analysis<\|message\|>)",
    re.I | re.MULTILINE,
)
THOUGHT_END = re.compile(
    rf"</[\w:]*{_THINKS}\s*>|\[/THINK\]|◁/think▷|<\|(?:end_of_thought|end_thinking)\|>"
    r"|<unused95>|<\|channel\|>final<\|message\|>",
    re.I,
)
# A line in quotation marks may be the judge's own, or repeat the material.
QUOTED = re.compile(r"\s*+(?:>|[\"“„«`].*[\"”“»`]\W*+\Z)", re.S)
QUOTES = (('"', '"'), ("`", "`"), ("“", "”"), ("„", "“"), ("«", "»"))
QUOTATION = 1000
"""Characters beside a token in which its quotation marks are searched for."""
MOST_QUOTED = 50
"""Tokens in quotations; more are the loop of a model."""
SPEAKER = re.compile(r"\s*+(?:(?:assistant|model)\s*+)?")
# Lines with which a model goes on to the next item, or writes the user's next message.
NEXT_TURN = re.compile(
    r"""^[ \t#*_\[]*+(?:
        RUBRIC\ for\ ["“] | (?:EVIDENCE|TASK)[ \t:*_]*+$ | </?evidence-[0-9a-f]{12}>
      | (?i:(?:user|human|assistant|instruction|input|response)[ \t*_\]]*+:)
      | (?i:(?:user|human|assistant)[ \t*_\]]*+$)
      | (?i:(?:next|new|another)\ (?:item|text|evidence|example|case|document|sample)\b)
      | (?i:(?:item|text|evidence|example|case|document|sample)\ \#?(?:[2-9]|\d\d)
        [ \t*_]*+(?:[:.)]|$))
    )""",
    re.MULTILINE | re.VERBOSE,
)


class LabelledLine(NamedTuple):
    """A labelled line: its number, the text after the label, and whether a heading labels it."""

    line: int
    payload: str
    heading: bool = False


def split_turn(text: str) -> tuple[str, str]:
    r"""Splits an answer into the model's own turn, whose lines keep their numbers, and the rest.

    >>> split_turn("Both fit.\nVERDICT: B<|im_end|>\n<|im_start|>user\nVERDICT: C")
    ('Both fit.\nVERDICT: B', '\n<|im_start|>user\nVERDICT: C')
    """
    # Every token below, and every mark of reasoning, has one of these characters.
    if "<" not in text and "[" not in text and "◁" not in text:
        return text, ""
    text = _after_thought(text)
    start = quoted = 0
    rest = ""
    for token in TURN_TOKEN.finditer(text):
        if SPEAKER.fullmatch(text, start, token.start()):  # before the model's first word
            start = token.end()
        elif token[0] == "<s>" or (token[0] == "</s>" and "<s>" in text[: token.start()]):
            continue  # <s>...</s> is HTML
        elif quoted < MOST_QUOTED and _is_quoted(text, token):
            quoted += 1  # an echo of the material ends nothing
        else:
            text, rest = text[: token.start()], text[token.end() :]
            break
    return "\n" * text.count("\n", 0, start) + text[start:], rest


def _after_thought(text: str) -> str:
    """Removes the reasoning before an answer, even one that was cut off, but no lines."""
    ends = [end.end() for end in THOUGHT_END.finditer(text) if not _is_quoted(text, end)]
    start = ends[-1] if ends else 0
    begins = (begin for begin in THOUGHT.finditer(text, start) if not _is_quoted(text, begin))
    end = next((begin.start() for begin in begins), len(text))
    return "\n" * text.count("\n", 0, start) + text[start:end]


def _is_quoted(text: str, token: re.Match[str]) -> bool:
    """Whether quotation marks in its paragraph enclose a token, or `>` starts its line."""
    before = text[max(0, token.start() - QUOTATION) : token.start()].rpartition("\n\n")[2]
    after = text[token.end() : token.end() + QUOTATION].partition("\n\n")[0]
    if before.rpartition("\n")[2].lstrip().startswith(">"):
        return True
    return any(
        (
            before.count(opened) % 2
            if opened == closed
            else before.rfind(opened) > before.rfind(closed)
        )
        and closed in after
        for opened, closed in QUOTES
    )


def echoes_turn(line: str) -> bool:
    """Whether a line of the model's own turn quotes a token that ends a turn."""
    if "<" not in line and "[" not in line:
        return False
    return any(token[0].lower() not in ("<s>", "</s>") for token in TURN_TOKEN.finditer(line))


def clean_lines(text: str) -> list[str]:
    """Splits a text into lines, normalised and without invisible characters."""
    if not text.isascii():  # ASCII is normal, and visible
        text = unicodedata.normalize("NFKC", text.translate(INVISIBLE))
    return text.splitlines()


@lru_cache(maxsize=16)
def _label(word: str) -> re.Pattern[str]:
    """Matches a line that starts with the word and a separator, in linear time (possessive)."""
    inside = r"[\s*_`\"'\])]*+"
    separator = rf"(?>(?:\s+is\b)?){inside}(?:[:=]|(?<=\s)[-–—](?=\s))[\s*_`]*+"
    prefix = rf"(?>(?:(?:my|the|our|final|overall)\s++){{0,3}}){word}{separator}"
    return re.compile(rf"[{DECORATION}\-–—\d.:]*+(?>(?:{prefix})+)(?P<payload>.*)\Z", re.I | re.S)


@lru_cache(maxsize=16)
def _heading(word: str) -> re.Pattern[str]:
    return re.compile(rf"[{DECORATION}\d.]*+(?>(?:final\s++)?){word}[{DECORATION}]*+\Z", re.I)


def labelled_lines(lines: list[str], word: str) -> Iterator[LabelledLine]:
    """Yields every line that the word labels. An empty one stands for the next line.

    A bare heading (`## Verdict`) may label the line below it too; callers drop it if that line
    cannot be parsed.
    """
    label, heading = _label(word), _heading(word)
    below_taken = -1
    for number, line in enumerate(lines):
        if number == below_taken or _lacks(line, word):
            continue
        match = label.match(line)
        if match and not BARE.match(match["payload"]):
            yield LabelledLine(number, match["payload"])
        elif match or heading.match(line):
            below = next((i for i in range(number + 1, len(lines)) if not BARE.match(lines[i])), -1)
            if below > 0 and not label.match(lines[below]) and not heading.match(lines[below]):
                below_taken = below
                yield LabelledLine(below, lines[below], heading=match is None)
            elif match:
                yield LabelledLine(number, "")


def _lacks(line: str, word: str) -> bool:
    """Whether a line cannot contain a word; in other scripts, patterns fold the case."""
    return line.isascii() and word not in line.lower()


def mentions(lines: list[str], word: str) -> Iterator[str]:
    """Yields what follows the word in a line that is no quotation, as `So my verdict is C` does."""
    for line in lines:
        matches = list(_mention(word).finditer(line))
        if matches and not QUOTED.match(line):
            yield line[matches[-1].end() :]


@lru_cache(maxsize=16)
def _mention(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\"'“‘„«`])\b{word}\b(?:\s+is\b)?[\s:=*_`]*+", re.I)


def adjacent_lines(lines: list[str], found: list[LabelledLine]) -> list[LabelledLine]:
    """Finds the last labelled line, and those before it with nothing but markup between."""
    together = found[-1:]
    for earlier in reversed(found[:-1]):
        between = lines[earlier.line + 1 : together[-1].line]
        if not all(BARE.match(line) for line in between):
            break
        together.append(earlier)
    return together


# --- probabilities -------------------------------------------------------------------------------

# A comma is a decimal separator only after a zero: "0,85", not "1,000".
_NUMBER = r"(?:0?\.\d{1,12}|0,\d{1,12}|\d{1,6}(?:\.\d{1,12})?)"
_VALUE = re.compile(
    rf"""[\s*_`"'(\[]*+(?>(?:(?:about|approximately|approx\.?|roughly|around|ca\.?)\s++|[~≈]\s*+)?)
    (?P<number>{_NUMBER})(?>(?:\s*+(?P<percent>%|percent\b|per\s+cent\b)|
    \s*+(?:/|⁄|out\s+of\b|in\b)\s*+(?P<whole>\d{{1,6}})(?![\d.,]\d))?)
    (?P<rest>.*)\Z""",
    re.I | re.X | re.S,
)
# After the number: nothing, or punctuation and a comment that does not begin with a number, nor
# with the end of a range: "1 (of 10)", "0 (to 1)".
_REST = re.compile(
    r"(?!\W*+(?:out\s+of|of|to)\s+\d)[\s*_`\"')\]]*+(?:\.?+\s*+\Z|[.;,(–—-]++\s*+[^\s\d.<>=~].*\Z|\([^)]*+\)\.?\s*+\Z)",
    re.S,
)
# A second probability in the comment: a decimal fraction or a percentage; "2 of 3 fit" is none.
_SHARE = re.compile(
    r"(?<![\d.,])(?P<share>\d{1,3}(?:[.,]\d{1,12})?(?=\s*+(?:%|per))|0?[.,]\d{1,12})"
    r"\s*+(?P<percent>%|percent\b|per\s+cent\b)?",
    re.I,
)


def read_probability(text: str, name: str = "probability") -> float | None:
    r"""Reads the last line that the name labels. None means an unclear probability.

    >>> read_probability("Stages are close.\nPROBABILITY: 85%")
    0.85
    >>> read_probability("PROBABILITY: 7 out of 10"), read_probability("I would say 0.7")
    (0.7, None)
    >>> read_probability("PROBABILITY: 0.0 to 1.0 scale: 0.75") is None
    True
    """
    lines = clean_lines(split_turn(text)[0])
    labelled = [line for line in labelled_lines(lines, name) if not line.heading]
    if not labelled:
        return None
    turns = (n for n, line in enumerate(lines) if n > labelled[0].line and NEXT_TURN.match(line))
    end = next(turns, len(lines))
    deciding = adjacent_lines(lines, [line for line in labelled if line.line < end])
    values = {_value(line.payload) for line in deciding}
    later = map(_value, mentions(lines[deciding[0].line + 1 : end], name))
    values |= {value for value in later if value is not None}
    return values.pop() if len(values) == 1 else None


def _value(payload: str) -> float | None:
    match = _VALUE.match(payload)
    if match is None or not _REST.match(match["rest"]):
        return None
    value = float(match["number"].replace(",", "."))
    if match["whole"] and value + int(match["whole"]) == 100:
        return None  # "50/50" and "40/60" are odds, not fractions
    scale = 100 if match["percent"] else int(match["whole"] or 1)
    if scale == 0 or value > scale:
        return None
    share = value / scale
    # "0.8 (80%)" says it twice, "0.8 (or 0.3)" says something else.
    other_shares = (_share(number) for number in _SHARE.finditer(match["rest"]))
    return share if all(abs(other - share) < 0.01 for other in other_shares) else None


def _share(number: re.Match[str]) -> float:
    return float(number["share"].replace(",", ".")) / (100 if number["percent"] else 1)
