"""Compares a summary with its source: its length, and numbers and names that the source lacks.

No model is called. A flag is a reason to look at a summary, not an error: a summary may shorten a
name or round a figure.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

# --- words that are numbers or months, or may start a sentence -----------------------------------

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
TENS = "thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
SMALL = {
    **{word: number for number, word in enumerate(ONES)},
    **{word: 10 * number for number, word in enumerate(TENS, 3)},
    **{word: number for number, word in enumerate(ORDINALS, 1)},
}
LARGE = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
MONTHS = (
    "January February March April May June July August September October November December".split()
)
MONTH = re.compile(rf"\b(?:{'|'.join(f'{m}|{m[:3]}|{m.upper()}' for m in MONTHS)}|Sept)\b")
CALENDAR = {
    *(month.casefold() for month in MONTHS),
    *(month[:3].casefold() for month in MONTHS),
    *"sept monday tuesday wednesday thursday friday saturday sunday".split(),
    *"mon tue wed thu fri sat sun".split(),
}
# Words that may start a sentence before a name: "The Senate", "Two Budapest courts", "But Norway".
OPENERS = frozenset(
    "a about according after again against all also although among an and another any as at "
    "because before between both but by despite during each earlier either even every few finally "
    "following for former four from he her here his how however i if in instead into it its last "
    "later many meanwhile more most much neither new next no none nor not now of officials on once "
    "one only or other our over per previously several she since some still such that the their "
    "then there these they this those though three through throughout to today together two under "
    "until we what when where whether which while who why with within without yesterday yet".split()
) | {*ONES, *TENS}

# --- patterns ------------------------------------------------------------------------------------

NUMBER = re.compile(r"\d+(?:[.,'’\u202f\u00a0]\d+)*")
THOUSANDS = re.compile(r"\d{1,3}(?:([.,'’\u202f\u00a0])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")
SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![.,]?\d)")
POINT_FIRST = re.compile(r"(?<![\w.])\.(?=\d)")  # .5
NUMBERING = re.compile(r"^[ \t>*•-]*+\d{1,2}[.)](?=\s)", re.M)
CHUNK = re.compile(r"\S+")
AROUND = "\"'“”‘’„«»()[]{}<>*_#.,;:!?…–—-"
CODE = re.compile(r"[^\W\d_]\w*(?:-\w+)*")  # with a digit in it: COVID-19, F-16, Q3
WORD = re.compile(r"(?<!\w)[^\W\d_]+(?>(?:[-'’.][^\W\d_]+)*)")
PARTS = re.compile(r"[-'.]")
CLOSED = r"[\"'“”’»)\]]*+(?>(?:\[\d+\])*)"
OPENING = re.compile(
    rf"(?:^|\n|[.!?:;…]{CLOSED}\s+|[,:]\s*(?=[\"'“„«‘]))(?>(?:[\s\"'“”‘’„«(\[*#•>-]|\d{{1,2}}[.)]\s)*)"
)
# Letters that do not decompose into a base letter and an accent, and other spellings of umlauts.
PLAIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "’": "'"})
SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa"})


def check_view(text: str, source: str, max_words: int) -> dict[str, Any]:
    """Counts a view's words, its length ratio, and the numbers and names it adds.

    >>> check_view("In Oslo 12 judges met.", "Twelve judges met in Bergen.", 150)["names"]
    ['Oslo']
    """
    words, of = len(text.split()), len(source.split())
    codes = {match.start(): match for match in _codes(text)}
    known_words, numbers = _known_words(source), _source_numbers(source)
    return {
        "words": words,
        "length_ratio": round(words / of, 4) if of else None,
        "too_long": words > max_words,
        "numbers": sorted(_view_numbers(text, codes, numbers) - numbers),
        "names": [
            *_unknown_names(text, codes, known_words),
            *_unknown_codes(codes.values(), source, known_words, numbers),
        ],
    }


def needs_review(checks: Mapping[str, Any]) -> bool:
    """Whether a view should be reviewed."""
    return bool(checks["too_long"] or checks["numbers"] or checks["names"])


def split_at_flags(text: str, checks: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Splits a view into pieces, each with whether it is a number or name that is flagged.

    >>> split_at_flags("In Oslo 1,200 met.", {"numbers": ["1200"], "names": ["Oslo"]})
    [('In ', False), ('Oslo', True), (' ', False), ('1,200', True), (' met.', False)]
    """
    names = sorted(checks["names"], key=len, reverse=True)
    words = "".join(rf"(?<!\w){re.escape(name)}(?!\w)|" for name in names)
    pieces: list[tuple[str, bool]] = []
    end = 0
    for match in re.finditer(words + NUMBER.pattern, text):
        stated = set(_digits_in(_latin_digits(match[0])))
        if match[0] in names or stated & set(checks["numbers"]):
            pieces += [(text[end : match.start()], False), (match[0], True)]
            end = match.end()
    return [piece for piece in [*pieces, (text[end:], False)] if piece[0]]


# --- numbers -------------------------------------------------------------------------------------


def _source_numbers(text: str) -> set[str]:
    """Collects every number of a text, however it is written, in a normalised form."""
    text = _latin_digits(text)
    numbers = set(_digits_in(text)) | {str(number) for number in _numbers_in_words(text)}
    numbers |= {_plain(match[0].replace(" ", "")) for match in SPACED.finditer(text)}
    months = [month[:3].casefold() for month in MONTHS]
    return numbers | {str(months.index(m[0][:3].casefold()) + 1) for m in MONTH.finditer(text)}


def _view_numbers(text: str, codes: Mapping[int, re.Match[str]], known: set[str]) -> set[str]:
    """Collects the numbers written in digits, without those of names and of lists."""
    parts = []
    end = 0
    for start, match in sorted(codes.items()):
        parts += [text[end:start], " "]
        end = match.end()
    plain = NUMBERING.sub(" ", _latin_digits("".join([*parts, text[end:]])))
    joined = SPACED.sub(lambda m: " " if _plain(m[0].replace(" ", "")) in known else m[0], plain)
    return set(_digits_in(joined))


def _digits_in(text: str) -> Iterator[str]:
    for match in NUMBER.finditer(POINT_FIRST.sub("0.", text)):
        marks = re.findall(r"\D", match[0])
        if len(marks) > 1 and not THOUSANDS.fullmatch(match[0]):  # a date: 03.05.2024
            yield from map(_plain, re.findall(r"\d+", match[0]))
        elif marks and marks[0] in "'’\u202f\u00a0" and not THOUSANDS.fullmatch(match[0]):
            yield from map(_plain, re.findall(r"\d+", match[0]))
        else:
            yield _plain(match[0])


def _plain(number: str) -> str:
    """Removes thousands separators and superfluous zeros from a number.

    >>> [_plain(n) for n in ("1,200", "1.234.567,89", "3.50", "05", "0", "1'200")]
    ['1200', '1234567.89', '3.5', '5', '0', '1200']
    """
    grouped = THOUSANDS.fullmatch(number)
    if grouped:
        number = number.replace(grouped[1], "")
    before, _, after = number.replace(",", ".").partition(".")
    after = after.rstrip("0")
    return (before.lstrip("0") or "0") + (f".{after}" if after else "")


def _numbers_in_words(text: str) -> Iterator[int]:
    """Yields the numbers that a text writes in words: two hundred and fifty."""
    total = current = 0
    open_ = False
    for word in [*re.findall(r"[a-z]+|[^\sa-z-]", text.casefold()), "."]:
        if word in SMALL:
            if open_ and current % 100 and not (current % 10 == 0 and SMALL[word] < 10):
                yield total + current  # "five six" is two numbers
                total = current = 0
            current, open_ = current + SMALL[word], True
        elif word in LARGE:
            current, open_ = (current or 1) * LARGE[word], True
            if LARGE[word] >= 1000:
                total, current = total + current, 0
        elif open_ and word != "and":
            yield total + current
            total, current, open_ = 0, 0, False


def _latin_digits(text: str) -> str:
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


# --- names ---------------------------------------------------------------------------------------


def _codes(text: str) -> Iterator[re.Match[str]]:
    """Yields the names that contain digits, such as COVID-19."""
    for chunk in CHUNK.finditer(text):
        match = CODE.match(text, chunk.start() + len(chunk[0]) - len(chunk[0].lstrip(AROUND)))
        word = chunk[0].strip(AROUND)
        if match and match[0] == word and re.search(r"\d", word) and word != word.lower():
            yield match


def _unknown_codes(
    codes: Iterable[re.Match[str]], source: str, known: set[str], numbers: set[str]
) -> list[str]:
    chunks = {_fold(chunk.strip(AROUND)) for chunk in source.split()}
    codes_found: dict[str, None] = {}
    for match in codes:
        parts = re.findall(r"\d+|[^\W\d_]+", _latin_digits(match[0]))
        apart = all(
            _plain(part) in numbers if part.isdecimal() else _occurs_in(part, known)
            for part in parts
        )
        if _fold(match[0]) not in chunks and not apart:
            codes_found.setdefault(match[0])
    return list(codes_found)


def _unknown_names(text: str, codes: Mapping[int, re.Match[str]], known: set[str]) -> list[str]:
    """Lists the capitalised words of a view that do not occur in its source."""
    starts = {match.end() for match in OPENING.finditer(text)}
    words = [match for match in WORD.finditer(text) if match.start() not in codes]
    names: dict[str, None] = {}
    for match, after in zip(words, [*words[1:], None], strict=False):
        parts = [part for part in re.split(r"[-'’]", match[0]) if part[:1].isupper()]
        if not parts or len(match[0]) < 2 or match[0].casefold() in CALENDAR:
            continue
        # "Viktor said" at the start is a word like any other; "Viktor Orban said" is a name.
        opens = match.start() in starts and match[0][:1].isupper() and not match[0].isupper()
        if opens and (match[0].casefold() in OPENERS or not _continues_name(text, match, after)):
            continue
        if not _occurs_in(match[0], known) and not all(_occurs_in(part, known) for part in parts):
            names.setdefault(match[0])
    return list(names)


def _continues_name(text: str, word: re.Match[str], after: re.Match[str] | None) -> bool:
    """Whether the next word follows directly and is capitalised too."""
    return (
        after is not None
        and after[0][:1].isupper()
        and not text[word.end() : after.start()].strip(" \u00a0")
    )


def _known_words(source: str) -> set[str]:
    words = {form for match in WORD.finditer(source) for form in _forms(match[0])}
    return words | {part for word in words for part in PARTS.split(word)}


def _occurs_in(word: str, known: set[str]) -> bool:
    """Whether a word is in the source, with or without a genitive or plural ending."""
    stems = {stem for form in _forms(word) for stem in (form, re.sub(r"(?:'s|s'?|')$", "", form))}
    return any({stem, f"{stem}s", f"{stem}es"} & known for stem in stems)


@lru_cache(maxsize=8192)
def _forms(word: str) -> frozenset[str]:
    """Lists the possible spellings of a word, without case, accents and dots."""
    spelled = _fold(unicodedata.normalize("NFC", word).casefold().translate(SPELLED))
    forms = {_fold(word), spelled}
    return frozenset(forms | {form.replace(".", "") for form in forms})


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    plain = unicodedata.normalize("NFKD", word).casefold().translate(PLAIN)
    return "".join(char for char in plain if not unicodedata.combining(char))
