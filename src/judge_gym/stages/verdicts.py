"""Parses the verdict in a judge's answer. An unclear one is `parse_failed`, never guessed."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Literal

from judge_gym.records import Verdict
from judge_gym.stages.answer_lines import (
    NEXT_TURN,
    QUOTED,
    LabelledLine,
    adjacent_lines,
    clean_lines,
    echoes_turn,
    labelled_lines,
    mentions,
    split_turn,
)

Method = Literal["single", "subset"]

MISSES = 50
"""The number of braces without an object after which the search ends, so that it stays linear."""
MOST_LABELS = 60
"""Labels of a verdict, with repeats; more are the loop of a model, and would take long to parse."""
FAILED = Verdict("parse_failed")
ABSTAINED = Verdict("abstained")
ABSTAIN = "abstain"

# Words that may introduce a label: "Stage B", "Options B and D", "\boxed{B}".
NOUNS = frozenset(
    "stage stages option options label labels letter letters level category choice boxed".split()
)
JOINERS = frozenset({"and", "or", "plus"})
# Words that make the label after them a vote, even within a comment.
VOTING = frozenset(
    "actually answer but choose chose final hence instead is pick rather select so thus therefore"
    " verdict".split()
)
# A clause of nothing but such words makes the label at its end a vote: "B (or possibly C)", "B, no,
# C". Any other clause tells of that label, as "B, close to C" does.
HEDGING = VOTING | JOINERS | NOUNS
HEDGING |= frozenset(
    "a also an as be called classified could even i i'd i'm it it's its likely may maybe me mean"
    " might more my no oh oops perhaps possibly probably rated say should sorry that that's the"
    " this to too wait well would yes".split()
)
# One such word is enough: "B. On reflection I change it to C".
CHANGING = frozenset("change changed changing correct corrected correction revise revised".split())
# Words that make a label at the end of their clause no vote: "B, or rather not B".
DENYING = frozenset("cannot except excluding neither never no nor not without".split())
# Words between two JSON objects that are no reasoning.
BETWEEN = JOINERS | DENYING | {"json", "of"}
CLAUSE = re.compile(r"[.,;:()\[\]!?…–—]|\s-\s")
# Words after the last label of a comment that change nothing: "the stage C too".
TRAILING = NOUNS | {"also", "though", "too"}
# Words before a label or a name that say what else it is: "confidence: High", "runner-up: C".
OTHERWISE = frozenset({"certainty", "confidence", "runner-up"})
# A word keeps its inner hyphens and apostrophes: "A-level" and "A's" are not the label A.
WORD = re.compile(r"[^\W_]+(?>(?:[-'’‑][^\W_]+)*)")
# What may stand between two labels of a list, and nothing else: "B, D", "[B]/[D]", "**B** & **D**".
LISTED = re.compile(r"(?!.*\s[<>]\s)[\s,;/&+|•·*_`\"'“”‘’\[\](){}<>$\\]*+\Z", re.S)
# The start of a code fence on the line of its content: "```json {".
FENCE = re.compile(r"^[ \t>]*+```\w*+[ \t]++(?=\S)", re.MULTILINE)
# The start of emphasis: "A *clear* case" begins a sentence, too.
OPENED = re.compile(r"\s+[*_`]+")
# A grade such as "C+", "B-", "A.5" or "A/10" is not a label, nor is one that is struck through.
GRADE = re.compile(
    r"[\u0300-\u036f]|[*_`]*+(?:\.\d|\s*+/\s*+\d|\s*+\+(?!\s*+[\w\[(*_`\"'])"
    r"|[-−](?=[\s.,;:)\]*_`]|\Z))"
)
# A label with its denial: "A: no, B: yes", "A (not met)", "A? No."; or a box that is not ticked.
DENIED = re.compile(
    r"[\s*_`\"'\])?]*+[:=|(\[–—\s-]*+(?:no|false|wrong|incorrect|rejected|excluded|unsupported"
    r"|not\s+(?:applicable|fulfilled|met|present|really|satisfied|shown|supported))"
    r"[\s*_`\"']*+(?:\Z|[.,;)\]/|])",
    re.I,
)
UNTICKED = re.compile(r"\[ +\]|[☐✗✘❌]")
# Words of the requested form: a model that repeats them has chosen nothing.
TEMPLATE = re.compile(r"\bseparated\s+by\s+commas\b", re.I)
# "I abstain", "We would have to abstain"; the reason may follow.
ABSTAINING = re.compile(
    r"[\s*_`\"'\[(]*+(?:(?:i|we)\b(?>(?:['’](?:d|ll|m|ve)\b|\s+(?:must|will|would|should|shall|have"
    r"|need|choose|chose|prefer|decide|decided|am|are|to|therefore|going)\b)*)\s+)?abstain(?:ing)?\b",
    re.I,
)
REASON = re.compile(r"\s+(?:because|since|as|due|given|owing|from|for|here)\b(?=\s+\S+\s+\S)", re.I)
ASIDE = re.compile(r"[*_`\])}]*+\s*+(?:\([^)]*+\)?+|\[[^\]]*+\]?+|(?<=\s)[\"“][^\"”]*+[\"”]?+)")


@dataclass(frozen=True)
class Choices:
    """What a verdict may name: labels, and the stages behind them where these are given."""

    labels: tuple[str, ...]
    named: Mapping[str, str]
    """Each stage name that only one label has, to that label."""
    words: re.Pattern[str]
    """Matches a stage name, or a word."""
    gloss: re.Pattern[str] | None
    """Matches the stage name beside a label: `B (Good)`, `B: Good`."""
    key: re.Pattern[str]
    """Matches the label beside a stage name: `Good (B)`."""
    names: Mapping[str, str]
    """The stage name of each label."""
    shown: Mapping[str, str]
    """Each label, and each stage name as it was shown, to the label."""

    @cached_property
    def alone(self) -> dict[str, str]:
        """The labels that are a verdict where a payload is nothing but one of them."""
        words = [label for label in self.labels if label.isascii() and WORD.fullmatch(label)]
        return {
            label: self.known[label.casefold()]
            for label in words
            if label.casefold() not in NOUNS | JOINERS | {ABSTAIN}
        }

    @cached_property
    def known(self) -> dict[str, str]:
        """Every label and stage name in lower case, to the label."""
        return {**self.named, **{label.casefold(): label for label in self.labels}}


def _choices(labels: Sequence[str], names: Mapping[str, str] | None) -> Choices:
    return _cached_choices(tuple(labels), tuple((names or {}).items()))


@lru_cache(maxsize=1024)
def _cached_choices(labels: tuple[str, ...], pairs: tuple[tuple[str, str], ...]) -> Choices:
    names = {label: _plain(name) for label, name in pairs if label in labels}
    taken = {label.casefold() for label in labels} | NOUNS | JOINERS | {ABSTAIN, ""}
    spoken = [name for name in names.values() if name not in taken]
    unique = {
        name: label
        for label, name in names.items()
        if name not in taken and spoken.count(name) == 1
    }
    words_shown = {" ".join(name.split()): label for label, name in pairs if _plain(name) in unique}
    words_shown |= {label: label for label in labels}
    words, gloss, key = _patterns(frozenset(labels), frozenset(spoken))
    return Choices(labels, unique, words, gloss, key, names, words_shown)


@lru_cache(maxsize=256)  # apart, since labels and names are the same in every order of a display
def _patterns(
    labels: frozenset[str], spoken: frozenset[str]
) -> tuple[re.Pattern[str], re.Pattern[str] | None, re.Pattern[str]]:
    """Compiles the patterns `words`, `gloss` and `key` of choices."""
    keys = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    noun = rf"(?:(?:{'|'.join(sorted(NOUNS))})\s+)?"
    closed = r"[\"'”’)\]*_`]*+(?=\s*+(?:\Z|[^\w\s]|(?:and|plus)\b))"
    key = rf"[\"'”’*_`]*+\s*+[(\[:=–—-][\s(\[*_`\"'“]*+{noun}(?P<label>{keys})(?![\w+]){closed}"
    if not spoken:
        return WORD, None, re.compile(key, re.I)
    ordered = sorted(spoken, key=len, reverse=True)
    any_name = "|".join(r"\s+".join(map(re.escape, name.split())) for name in ordered)
    words = rf"(?<![\w-])(?:{any_name})(?![\w-])|{WORD.pattern}"
    meaning = r"[\s,;(\[]*+(?:i\.?e\b\.?|that is|which (?:is|means)|meaning|means|namely)[,:]?"
    opened = rf"[*_`\])}}\"'”]*+\s*+(?:{meaning}|[.:=–—-])?[\s(\[*_`\"'“]*+"
    gloss = rf"{opened}{noun}(?P<name>{any_name})(?![\w-]){closed}"
    return re.compile(words, re.I), re.compile(gloss, re.I), re.compile(key, re.I)


def _plain(name: str) -> str:
    """Lowers the case of a stage name and joins its words by single spaces."""
    return " ".join(" ".join(clean_lines(name)).casefold().split())


def parse_verdict(
    text: str,
    labels: Sequence[str],
    *,
    method: Method = "single",
    abstain: bool = True,
    names: Mapping[str, str] | None = None,
) -> Verdict:
    r"""Parses the verdict line at the end of a free-text answer.

    Args:
        text: the answer.
        labels: the labels that were shown, in their order.
        method: whether one label was asked for, or any number.
        abstain: whether abstaining was allowed.
        names: the stage name that was shown with each label. A verdict may then name the stage,
            and one that contradicts itself, as `B (Good)` where B is weak, is not read.

    >>> parse_verdict("The criteria of B fit best.\nVERDICT: **B** (moderate)", "ABCD")
    Verdict(status='scored', labels=('B',))
    >>> parse_verdict("VERDICT: D and B", "ABCD", method="subset").labels
    ('B', 'D')
    >>> parse_verdict("VERDICT: A court ruled on it.", "ABCD").status
    'parse_failed'
    >>> parse_verdict("VERDICT: Good", "AB", names={"A": "Good", "B": "Weak"}).labels
    ('A',)
    """
    readings = _deciding_readings(text, _choices(labels, names), method, abstain)
    together = {verdict for _, verdict in readings}
    return together.pop() if len(together) == 1 else FAILED


def deciding_lines(
    text: str,
    labels: Sequence[str],
    *,
    method: Method = "single",
    abstain: bool = True,
    names: Mapping[str, str] | None = None,
) -> tuple[int, ...]:
    r"""Lists the lines, from 0, by which `parse_verdict` decides, several if they differ.

    >>> deciding_lines("B fits.\nVERDICT: B\nYet C fits better.\nVERDICT: C", "ABCD")
    (3,)
    """
    readings = _deciding_readings(text, _choices(labels, names), method, abstain)
    return tuple(sorted(line.line for line, _ in readings))


def verdict_line(
    text: str,
    labels: Sequence[str],
    *,
    json_output: bool = False,
    method: Method = "single",
    abstain: bool = True,
    names: Mapping[str, str] | None = None,
) -> str | None:
    r"""Finds the words of an answer by which its verdict is decided, None if it has none.

    Of free text these are the lines that decide, as they stand; of a JSON object its `verdict`. The
    other arguments are those of `parse_verdict`.

    >>> verdict_line("B fits.\n**VERDICT:** B, or maybe C", "ABCD")
    '**VERDICT:** B, or maybe C'
    >>> verdict_line('{"verdict": ["B", "D"]}', "ABCD", json_output=True)
    '["B", "D"]'
    """
    if json_output:
        value = last_json_field(split_turn(text)[0])
        return value if value is None or isinstance(value, str) else json.dumps(value)
    deciding = deciding_lines(text, labels, method=method, abstain=abstain, names=names)
    lines = text.splitlines()
    return "\n".join(lines[n].strip() for n in deciding if n < len(lines)) or None


def _deciding_readings(
    text: str, choices: Choices, method: Method, abstain: bool
) -> list[tuple[LabelledLine, Verdict]]:
    """Reads the last verdict line and those adjacent to it."""
    turn, rest = split_turn(text)
    lines = clean_lines(FENCE.sub("", turn) if "```" in turn else turn)
    read = partial(_read, choices=choices, method=method, abstain=abstain)
    readings: dict[LabelledLine, Verdict] = {}
    first: int | None = None  # the first line with a verdict; what comes next belongs to another
    searched = 0  # the lines from `first` to before this one begin no other turn
    for line in labelled_lines(lines, "verdict"):
        if first is not None:
            if _next_turn(lines, searched, line.line + 1) is not None:
                break
            searched = line.line + 1  # each line is searched once, or it would take quadratic time
        if echoes_turn(lines[line.line]):
            continue
        verdict = read(line.payload)
        if not (line.heading and verdict is FAILED):
            readings[line] = verdict
        if first is None and verdict is not FAILED:
            first, searched = line.line, line.line + 1
    deciding = adjacent_lines(lines, list(readings))
    if deciding:
        last = deciding[0].line
        end = _next_turn(lines, last + 1, len(lines)) or len(lines)
        later = map(read, _later(lines, last, end, choices))
        if any(verdict not in (FAILED, readings[deciding[0]]) for verdict in later):
            return [(line, FAILED) for line in deciding]
    if rest and all(QUOTED.match(lines[line.line]) for line in deciding):
        if any(labelled_lines(clean_lines(rest), "verdict")):
            return []  # a quotation, and a verdict outside of the turn: neither counts
    return [(line, readings[line]) for line in deciding]


def _next_turn(lines: list[str], begin: int, end: int) -> int | None:
    """Returns the first line from `begin` until `end` with which another turn begins."""
    return next((number for number in range(begin, end) if NEXT_TURN.match(lines[number])), None)


def _later(lines: list[str], last: int, end: int, choices: Choices) -> list[str]:
    """Lists what may be another verdict after the last verdict line, without its label.

    The line below it may continue a list, and a later one may end in `Actually, VERDICT: C`.
    """
    if last + 1 == end:
        return []
    later = list(mentions(lines[last + 1 : end], "verdict"))
    below = lines[last + 1]
    words = set(WORD.findall(below))
    if "verdict" not in lines[last].casefold() or words <= {*choices.labels, *NOUNS, *JOINERS}:
        later.append(below.rstrip(" ,"))
    return later


def parse_json_verdict(
    text: str,
    labels: Sequence[str],
    *,
    method: Method = "single",
    abstain: bool = True,
    names: Mapping[str, str] | None = None,
) -> Verdict:
    """Parses the verdict of an answer that was requested as a JSON object.

    The arguments are those of `parse_verdict`.

    >>> parse_json_verdict('{"reasoning": "...", "verdict": ["D", "B"]}', "ABCD", method="subset")
    Verdict(status='scored', labels=('B', 'D'))
    """
    return _read_value(
        last_json_field(split_turn(text)[0]), _choices(labels, names), method, abstain
    )


def _read_value(value: Any, choices: Choices, method: Method, abstain: bool) -> Verdict:
    """Parses the `verdict` of a JSON object: a text, or a list of labels."""
    match value:
        case str():
            return _read(" ".join(clean_lines(value)), choices, method, abstain)
        case [str(), *_] if all(isinstance(item, str) for item in value):
            # Each item must be one label: ["B", "D"], not ["B because D"].
            singles = [
                _read(" ".join(clean_lines(item)), choices, "single", abstain) for item in value
            ]
            if any(verdict.status != "scored" for verdict in singles):
                return ABSTAINED if singles == [ABSTAINED] else FAILED
            return _verdict_of([verdict.labels[0] for verdict in singles], choices.labels, method)
        case _:
            return FAILED


def _read(payload: str, choices: Choices, method: Method, abstain: bool) -> Verdict:
    """Parses the text after `VERDICT:`: labels, then nothing, or punctuation and a comment."""
    if payload in choices.alone:  # most answers: none of what follows can apply
        return Verdict("scored", (choices.alone[payload],))
    meanings = choices.known
    if TEMPLATE.search(payload) or UNTICKED.search(payload):
        return FAILED
    if sentence := ABSTAINING.match(payload):
        reason = REASON.match(payload, sentence.end())
        payload = f"{ABSTAIN}{',' * bool(reason)}{payload[sentence.end() :]}"
    labels: list[str] = []
    end = 0  # of the last thing understood
    joined = ""  # a joiner that waits for its label
    words = list(choices.words.finditer(payload))
    for number, match in enumerate(words):
        if match.start() < end:
            continue  # inside an aside
        word, gap = _plain(match[0]), payload[end : match.start()]
        listed = LISTED.match(gap) is not None
        votes = listed and _stands_alone(payload, words, number, meanings)
        if listed and word in NOUNS:
            end = match.end()
        elif listed and word in JOINERS and labels:
            joined, end = word, match.end()
        elif votes and (word in meanings or word == ABSTAIN):
            if joined == "or":
                return FAILED  # "B or C" chooses neither
            if GRADE.match(payload, match.end()) or len(labels) == MOST_LABELS:
                return FAILED
            label = meanings.get(word, ABSTAIN)
            labels.append(label)
            joined, end = "", match.end()
            beside = _beside(payload, match, label, choices)
            if beside is not None:
                if not beside[0]:
                    return FAILED  # "B (Good)" where B is not good
                end = beside[1]
                continue
            if DENIED.match(payload, match.end()):
                return FAILED
            aside = ASIDE.match(payload, match.end())
            if aside and not _only_labels(aside[0], meanings):
                if _votes_again(aside[0], labels, choices):
                    return FAILED
                end = aside.end()
        elif not labels or joined or not gap.strip() or (votes and _label_like(match[0], meanings)):
            return FAILED
        elif listed and match[0] in choices.labels:
            return FAILED  # "B, C fit" goes on with the list
        elif _votes_again(payload[match.start() :], labels, choices) or (
            ABSTAIN not in labels and _names_more(payload[match.start() :], choices, method)
        ):
            return FAILED
        else:
            break  # a comment
    if joined:
        return FAILED
    if ABSTAIN in labels:
        return ABSTAINED if abstain and set(labels) == {ABSTAIN} else FAILED
    return _verdict_of(labels, choices.labels, method)


def _beside(
    payload: str, match: re.Match[str], label: str, choices: Choices
) -> tuple[bool, int] | None:
    """Whether the stage name beside a label agrees with it, or the label beside a name.

    With it, where that ends; None if there is none.
    """
    if _plain(match[0]) in choices.named:
        key = choices.key.match(payload, match.end())
        return (key["label"].casefold() == label.casefold(), key.end()) if key else None
    gloss = choices.gloss.match(payload, match.end()) if choices.gloss else None
    if gloss is None or label not in choices.names:
        return None
    return _plain(gloss["name"]) == choices.names[label], gloss.end()


def _verdict_of(chosen: Sequence[str], labels: Sequence[str], method: Method) -> Verdict:
    """Orders distinct labels as displayed. A single verdict must have exactly one."""
    ordered = tuple(label for label in labels if label in chosen)
    if not ordered or (method == "single" and len(ordered) > 1):
        return FAILED
    return Verdict("scored", ordered)


def _stands_alone(
    payload: str, words: list[re.Match[str]], number: int, known: dict[str, str]
) -> bool:
    """Whether a label does not start a sentence, such as "A court ruled"."""
    if number + 1 == len(words):
        return True
    here, after = words[number], words[number + 1]
    gap = payload[here.end() : after.start()]
    if gap.strip() and not OPENED.fullmatch(gap):
        return True
    following = after[0]
    if following.casefold() in JOINERS and number + 2 < len(words):
        following = words[number + 2][0]
    return _label_like(following, known) or following.casefold() in {*known, *NOUNS, ABSTAIN}


def _label_like(word: str, known: dict[str, str]) -> bool:
    """Whether a word looks like a label: `B, E` is a list with an unknown label."""
    return word.isupper() and any(len(word) == len(label) for label in known)


def _only_labels(text: str, known: dict[str, str]) -> bool:
    """Whether brackets contain further labels, as in `[B] [D]`, and not a comment."""
    words = _words(text)
    return bool(words & known.keys()) and words <= known.keys() | NOUNS | JOINERS


def _votes_again(comment: str, chosen: Sequence[str], choices: Choices) -> bool:
    """Whether a comment votes for something else, or against what was chosen.

    So do `B -> C`, `B (or maybe C)` and `B, no, C`; `B, not C` does not.
    """
    # It would be simpler to fail on any other label. That would lose the borderline verdicts, such
    # as "B, with some elements of C", and a rate or a mean of the others would be biased.
    words = list(choices.words.finditer(comment))
    if not words:
        return False
    first = words[0]
    if _label_like(first[0], choices.known) and (
        len(words) == 1 or not _directly_followed(comment, first, words[1])
    ):
        return True
    while words and words[-1][0].casefold() in TRAILING:
        words.pop()
    vote = _vote(words[-1][0], choices) if words else None
    if vote is None:
        return False
    start, before = words[-1].start(), words[-2] if len(words) > 1 else None
    gap = comment[before.end() : start] if before else ""
    if before and before[0].casefold() in OTHERWISE:
        return False
    introduced = before is not None and before[0].casefold() in VOTING
    if introduced or not set(gap).isdisjoint(":=>→"):
        return vote not in chosen
    if ABSTAIN in chosen:
        return False  # "torn between B and C"
    begin = max((end.end() for end in CLAUSE.finditer(comment, 0, start)), default=0)
    clause = _words(comment[begin:start])
    denied = any(word in DENYING or word.endswith(("n't", "n’t")) for word in clause)
    if vote in chosen:
        return denied
    return clause <= HEDGING or (not denied and bool(clause & CHANGING))


def _vote(word: str, choices: Choices) -> str | None:
    """The label that a word of a comment means, a label itself or a name as it was shown."""
    if word.casefold() == ABSTAIN:
        return ABSTAIN
    return choices.shown.get(" ".join(word.split()))


def _directly_followed(text: str, word: re.Match[str], after: re.Match[str]) -> bool:
    return not text[word.end() : after.start()].strip()


def _names_more(comment: str, choices: Choices, method: Method) -> bool:
    """Whether a comment continues a list: `B - minor, D - severe`, `B: 0.2, D: 0.8`.

    Of the two, only the second one is not a single B.
    """
    words = list(choices.words.finditer(comment))
    for before, match in zip([None, *words], words, strict=False):
        if _vote(match[0], choices) is None:
            continue
        gap = comment[before.end() : match.start()] if before else ""
        joined = bool(re.search(r"[,;/&|]", gap)) or (before is not None and before[0] in JOINERS)
        rest = comment[match.end() : match.end() + 3].lstrip("\"'*_`").strip()
        goes_on = (
            not rest or not rest[0].isalnum() if method == "subset" else rest[:1] in (":", "=")
        )
        if joined and goes_on:
            return True
    return False


def last_json_field(text: str, key: str = "verdict") -> Any:
    """Finds the `key` of the last JSON object with one in an answer, None if there is none.

    Two that differ without a word between them decide nothing.
    """
    cleaned = "\n".join(clean_lines(text))
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=partial(_object, key=key))
    verdicts: list[Any] = []
    start, end, misses = cleaned.find("{"), 0, 0
    while start >= 0 and misses < MISSES:
        try:
            value, stop = decoder.raw_decode(cleaned, start)
        except (ValueError, RecursionError):
            misses, stop = misses + 1, start + 1
        else:
            if key in value:
                if verdicts and NEXT_TURN.search(cleaned, end, start):
                    break
                if not _words(cleaned[end:start]) <= BETWEEN:  # the earlier ones were reasoning
                    verdicts.clear()
                verdicts.append(value[key])
                end = stop
        start = cleaned.find("{", stop)
    return (
        verdicts[-1] if all(verdict == verdicts[-1] for verdict in verdicts) and verdicts else None
    )


def _object(pairs: Sequence[tuple[str, Any]], key: str) -> dict[str, Any]:
    """Builds a JSON object. A key that stands in it with several values has None."""
    verdicts = [item for name, item in pairs if name.strip().lower() == key.lower()]
    same = all(verdict == verdicts[0] for verdict in verdicts)
    return {**dict(pairs), **({key: verdicts[0] if same else None} if verdicts else {})}


def _words(text: str) -> set[str]:
    return {word.casefold() for word in WORD.findall(text)}
