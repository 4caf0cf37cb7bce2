"""Answers of judges as readers see them: label letters replaced by the words they stood for."""

import re
from collections.abc import Mapping

from judge_gym.records import Display

ARTICLES = ("A", "I")
"""Letters that are words too."""
VERDICT_AT_END = re.compile(
    r"(^|\n)\s*(```\w*\s*\n)?\W*verdict\W[^\n]*(\n\s*```)?\Z", re.IGNORECASE
)
"""A last line that gives the verdict, also where it stands in a block of code."""


def label_names(display: str, names: list[str]) -> dict[str, str]:
    """Returns the name of the stage that each label stood for; empty where none was shown.

    >>> label_names("B=1 A=2", ["fails", "passes"])
    {'B': 'fails', 'A': 'passes'}
    """
    if not display:
        return {}
    shown = Display.parse(display)
    pairs = zip(shown.labels, shown.stages, strict=True)
    return {label: names[stage - 1] for label, stage in pairs if stage <= len(names)}


def in_words(text: str, names: Mapping[str, str]) -> str:
    r"""Returns an answer with the names of stages in place of their labels.

    A letter that is also a word stays where it begins a sentence of lower-case words.

    >>> in_words("A reply fits. That of A is far.\nVERDICT: B", {"A": "fails", "B": "passes"})
    'A reply fits. That of “fails” is far.\nVERDICT: “passes”'
    """
    labels = [label for label in names if label != names[label]]
    if not labels:
        return text
    longest_first = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w'’])({longest_first})(?![\w'’])")

    def name(match: re.Match[str]) -> str:
        label = match[0]
        before, after = text[: match.start()].rstrip(), text[match.end() : match.end() + 2]
        begins = not before or before[-1] in ".!?:>-*#" or text[match.start() - 1] == "\n"
        is_word = begins and re.fullmatch(r" [a-z]", after)
        if label in ARTICLES and (is_word or after.startswith(("'", "’"))):
            return label
        return f"“{names[label]}”"

    return pattern.sub(name, text)


def without_verdict(text: str) -> str:
    r"""Returns an answer without its last line if that only gives the verdict, as a title does.

    >>> without_verdict("It fits.\n\n**VERDICT:** B\n"), without_verdict("VERDICT: B")
    ('It fits.', '')
    """
    return VERDICT_AT_END.sub("", text.rstrip())
