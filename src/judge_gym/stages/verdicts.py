"""Parses the verdict in a judge's answer; an unclear one is `parse_failed`, never guessed."""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from judge_gym.records import Verdict
from judge_gym.stages.reading import (
    LabelledLine,
    adjacent_lines,
    clean_lines,
    labelled_lines,
)

Method = Literal["single", "subset"]

MISSES = 50
"""The number of braces without an object after which the search ends, so that it stays linear."""
FAILED = Verdict("parse_failed")
ABSTAINED = Verdict("abstained")
ABSTAIN = "abstain"

# Words that may introduce a label: "Stage B", "Options B and D", "\boxed{B}".
NOUNS = frozenset(
    "stage stages option options label labels letter letters level category choice boxed".split()
)
JOINERS = frozenset({"and", "or", "plus"})
# Words that make the label after them a vote, even within a comment.
VOTING = frozenset("actually answer choose chose final is pick rather select verdict".split())
# A word keeps its inner hyphens and apostrophes: "A-level" and "A's" are not the label A.
WORD = re.compile(r"[^\W_]+(?>(?:[-'’‑][^\W_]+)*)")
# What may stand between two labels of a list, and nothing else: "B, D", "[B]/[D]", "**B** & **D**".
LISTED = re.compile(r"[\s,;/&+|•·*_`\"'“”‘’\[\](){}<>$\\]*+\Z")
ASIDE = re.compile(r"[*_`\])}]*+\s*+(?:\([^)]*+\)?+|\[[^\]]*+\]?+|(?<=\s)[\"“][^\"”]*+[\"”]?+)")


def parse_verdict(
    text: str, labels: Sequence[str], *, method: Method = "single", abstain: bool = True
) -> Verdict:
    r"""Parses the verdict line at the end of a free-text answer.

    >>> parse_verdict("The criteria of B fit best.\nVERDICT: **B** (moderate)", "ABCD")
    Verdict(status='scored', labels=('B',))
    >>> parse_verdict("VERDICT: D and B", "ABCD", method="subset").labels
    ('B', 'D')
    >>> parse_verdict("VERDICT: A court ruled on it.", "ABCD").status
    'parse_failed'
    """
    together = {verdict for _, verdict in _deciding_readings(text, labels, method, abstain)}
    return together.pop() if len(together) == 1 else FAILED


def deciding_lines(
    text: str, labels: Sequence[str], *, method: Method = "single", abstain: bool = True
) -> tuple[int, ...]:
    r"""Returns the lines, from 0, by which `parse_verdict` decides; several if they differ.

    >>> deciding_lines("B fits.\nVERDICT: B\nYet C fits better.\nVERDICT: C", "ABCD")
    (3,)
    """
    return tuple(sorted(line.line for line, _ in _deciding_readings(text, labels, method, abstain)))


def _deciding_readings(
    text: str, labels: Sequence[str], method: Method, abstain: bool
) -> list[tuple[LabelledLine, Verdict]]:
    """Returns the last verdict line and those adjacent to it, each with its verdict."""
    lines = clean_lines(text)
    readings = {}
    for line in labelled_lines(lines, "verdict"):
        verdict = _read(line.payload, labels, method, abstain)
        if not (line.heading and verdict is FAILED):
            readings[line] = verdict
    return [(line, readings[line]) for line in adjacent_lines(lines, list(readings))]


def parse_json_verdict(
    text: str, labels: Sequence[str], *, method: Method = "single", abstain: bool = True
) -> Verdict:
    """Parses the verdict of an answer that was requested as a JSON object.

    >>> parse_json_verdict('{"reasoning": "...", "verdict": ["D", "B"]}', "ABCD", method="subset")
    Verdict(status='scored', labels=('B', 'D'))
    """
    value = _verdict_field(text)
    match value:
        case str():
            return _read(" ".join(clean_lines(value)), labels, method, abstain)
        case [str(), *_] if all(isinstance(item, str) for item in value):
            # Each item must be one label: ["B", "D"], not ["B because D"].
            singles = [
                _read(" ".join(clean_lines(item)), labels, "single", abstain) for item in value
            ]
            if any(verdict.status != "scored" for verdict in singles):
                return ABSTAINED if singles == [ABSTAINED] else FAILED
            return _chosen([verdict.labels[0] for verdict in singles], labels, method)
        case _:
            return FAILED


def _read(payload: str, labels: Sequence[str], method: Method, abstain: bool) -> Verdict:
    """Parses the text after `VERDICT:`: labels, then nothing, or punctuation and a comment."""
    known = {label.casefold(): label for label in labels}
    chosen: list[str] = []
    end = 0  # of the last thing understood
    joined = ""  # a joiner that waits for its label
    words = list(WORD.finditer(payload))
    for number, match in enumerate(words):
        if match.start() < end:
            continue  # inside an aside
        word, gap = match[0].casefold(), payload[end : match.start()]
        listed = LISTED.match(gap) is not None
        votes = listed and _stands_alone(payload, words, number, known)
        if listed and word in NOUNS:
            end = match.end()
        elif listed and word in JOINERS and chosen:
            joined, end = word, match.end()
        elif votes and (word in known or word == ABSTAIN):
            if joined == "or":
                return FAILED  # "B or C" chooses neither
            chosen.append(known.get(word, ABSTAIN))
            aside = ASIDE.match(payload, match.end())
            joined, end = "", match.end()
            if aside and not _only_labels(aside[0], known):
                end = aside.end()
        elif not chosen or joined or not gap.strip() or (votes and _label_like(match[0], known)):
            return FAILED
        elif _votes_again(payload[match.start() :], known) or (
            method == "subset" and _names_more(payload[match.start() :], known)
        ):
            return FAILED
        else:
            break  # a comment
    if joined:
        return FAILED
    if ABSTAIN in chosen:
        return ABSTAINED if abstain and set(chosen) == {ABSTAIN} else FAILED
    return _chosen(chosen, labels, method)


def _chosen(chosen: Sequence[str], labels: Sequence[str], method: Method) -> Verdict:
    """Returns the distinct labels in display order; a single verdict must have exactly one."""
    kept = tuple(label for label in labels if label in chosen)
    if not kept or (method == "single" and len(kept) > 1):
        return FAILED
    return Verdict("scored", kept)


def _stands_alone(
    payload: str, words: list[re.Match[str]], number: int, known: dict[str, str]
) -> bool:
    """Returns whether a label does not start a sentence, such as "A court ruled"."""
    if number + 1 == len(words):
        return True
    here, after = words[number], words[number + 1]
    if payload[here.end() : after.start()].strip():
        return True
    following = after[0]
    if following.casefold() in JOINERS and number + 2 < len(words):
        following = words[number + 2][0]
    return _label_like(following, known) or following.casefold() in {*known, *NOUNS, ABSTAIN}


def _label_like(word: str, known: dict[str, str]) -> bool:
    """Returns whether a word looks like a label: `B, E` is a list with an unknown label."""
    return word.isupper() and any(len(word) == len(label) for label in known)


def _only_labels(text: str, known: dict[str, str]) -> bool:
    """Returns whether brackets contain further labels, as in `[B] [D]`, and not a comment."""
    words = {word.casefold() for word in WORD.findall(text)}
    return bool(words & known.keys()) and words <= known.keys() | NOUNS | JOINERS


def _votes_again(comment: str, known: dict[str, str]) -> bool:
    """Returns whether a comment is, or ends in, another vote: `B -> C`, `B. Final answer: C`."""
    words = list(WORD.finditer(comment))
    first, last = words[0], words[-1]
    if _label_like(first[0], known) and (
        first is last or not _directly_followed(comment, first, words[1])
    ):
        return True
    if len(words) < 2 or last[0] not in known.values():
        return False
    before = words[-2]
    gap = comment[before.end() : last.start()]
    return before[0].casefold() in VOTING or not set(gap).isdisjoint(":=>→")


def _directly_followed(text: str, word: re.Match[str], after: re.Match[str]) -> bool:
    return not text[word.end() : after.start()].strip()


def _names_more(comment: str, known: dict[str, str]) -> bool:
    """Returns whether a comment continues the list: `B - minor, D - severe` is not B alone."""
    words = list(WORD.finditer(comment))
    for before, match in zip([None, *words], words, strict=False):
        if match[0] not in known.values():
            continue
        gap = comment[before.end() : match.start()] if before else ""
        joined = bool(re.search(r"[,;/&|]", gap)) or (before is not None and before[0] in JOINERS)
        rest = comment[match.end() : match.end() + 3].strip()
        if joined and (not rest or not rest[0].isalnum()):
            return True
    return False


def _verdict_field(text: str) -> Any:
    """Returns the `verdict` of the last JSON object in an answer; None if there is none.

    Two that differ without a word between them decide nothing.
    """
    cleaned = "\n".join(clean_lines(text))
    decoder = json.JSONDecoder(strict=False)
    verdicts: list[Any] = []
    start, end, misses = cleaned.find("{"), 0, 0
    while start >= 0 and misses < MISSES:
        try:
            value, stop = decoder.raw_decode(cleaned, start)
        except (ValueError, RecursionError):
            misses, stop = misses + 1, start + 1
        else:
            fields = {str(name).strip().lower(): item for name, item in value.items()}
            if "verdict" in fields:
                if WORD.search(cleaned, end, start):  # earlier objects were part of the reasoning
                    verdicts.clear()
                verdicts.append(fields["verdict"])
                end = stop
        start = cleaned.find("{", stop)
    return (
        verdicts[-1] if all(verdict == verdicts[-1] for verdict in verdicts) and verdicts else None
    )
