"""Does a summary keep to its source? Length, and numbers and names that the source does not hold.

No model is asked: these are facts about two texts. A flag is a reason to look, not a verdict: a
summary may write out "12" or shorten a name.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

# A number with its separators: 1,200 and 3.5; a word may not run into it, so B-52 and Q3 are names.
NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,\u202f\u00a0]\d+)*(?![\w-])")
WORD = re.compile(r"[^\W\d_]+(?:[-'’.][^\W\d_]+)*|\w*\d\w*(?:-\w+)*")
# Where a sentence begins, a capital says nothing.
OPENING = re.compile(r"(?:^|[.!?:;]\s+|\n)[\s\"'“”‘’(\[*#•-]*")
SMALL = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}
TENS = {
    word: str(10 * number)
    for number, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), 3)
}
WORDS = {**SMALL, **TENS, "hundred": "100", "thousand": "1000", "dozen": "12"}
MONTHS = (
    "january february march april may june july august september october november december".split()
)
# Letters that do not come apart into a plain one and its mark.
PLAIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "’": "'"})
# Words that open a sentence before a name: "The Senate", "In Oslo".
OPENERS = frozenset(
    "a after an and as at before by for from he her his if in it its no of on our she some that "
    "the their then these they this those to under while with".split()
)
CALENDAR = {*MONTHS, *"monday tuesday wednesday thursday friday saturday sunday".split()}


def check_view(text: str, source: str, max_words: int) -> dict[str, Any]:
    """What is to be known of a view beside its text.

    >>> check_view("In Oslo 12 judges met.", "Twelve judges met in Bergen.", 150)["names"]
    ['Oslo']
    """
    words, of = len(text.split()), len(source.split())
    return {
        "words": words,
        "length_ratio": round(words / of, 4) if of else None,
        "too_long": words > max_words,
        "numbers": sorted(_numbers(text) - _numbers(source, spelled=True)),
        "names": _strange_names(text, source),
    }


def flagged(checks: Mapping[str, Any]) -> bool:
    """Whether a view gives a reason to look."""
    return bool(checks["too_long"] or checks["numbers"] or checks["names"])


def _numbers(text: str, *, spelled: bool = False) -> set[str]:
    """The numbers of a text in one form; with `spelled`, those in words and months too."""
    found = {_plain(match[0]) for match in NUMBER.finditer(text)}
    if spelled:
        found |= {part for number in found for part in number.split(".")}
        found |= {_plain(digits) for digits in re.findall(r"\d+", text)}
        words = re.findall(r"[a-z]+", text.casefold())
        found |= {WORDS[word] for word in words if word in WORDS}
        found |= {str(MONTHS.index(word) + 1) for word in words if word in MONTHS}
    return found


def _plain(number: str) -> str:
    """A number without the marks of thousands.

    >>> _plain("1,200"), _plain("3.50"), _plain("05"), _plain("0")
    ('1200', '3.5', '5', '0')
    """
    whole = re.sub(r"[,.\u202f\u00a0](?=\d{3}(?!\d))", "", number).replace(",", ".")
    before, point, after = whole.partition(".")
    after = after.rstrip("0")
    return (before.lstrip("0") or "0") + (point + after if after else "")


def _strange_names(text: str, source: str) -> list[str]:
    """Capitalised words of a view whose letters stand nowhere in its source."""
    known = {_folded(word) for word in WORD.findall(source)}
    known |= {part for word in known for part in re.split(r"[-'.]", word)}
    starts = {match.end() for match in OPENING.finditer(text)}
    found: dict[str, None] = {}
    words = list(WORD.finditer(text))
    for number, match in enumerate(words):
        following = words[number + 1][0] if number + 1 < len(words) else ""
        if not match[0][:1].isupper() or match[0].casefold() in CALENDAR:
            continue
        # "Viktor said" at the start is a word like any other; "Viktor Orban said" is a name.
        if match.start() in starts and not match[0].isupper():
            if match[0].casefold() in OPENERS or not following[:1].isupper():
                continue
        if len(match[0]) > 1 and not _stands_in(_folded(match[0]), known):
            found.setdefault(match[0])
    return list(found)


def _stands_in(word: str, known: set[str]) -> bool:
    """Whether a word is in the source, as it is or with its genitive or plural off."""
    stems = {word, re.sub(r"(?:'s|s)$", "", word)}
    return any(stem in known or f"{stem}s" in known for stem in stems) or all(
        part in known for part in re.split(r"[-'.]", word)
    )


def _folded(word: str) -> str:
    """A word without case, accents and typographic apostrophes."""
    plain = unicodedata.normalize("NFKD", word).casefold().translate(PLAIN)
    return "".join(char for char in plain if not unicodedata.combining(char))
