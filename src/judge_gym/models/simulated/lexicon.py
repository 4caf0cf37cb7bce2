"""The words that simulated judges can read: words that carry strain, words that only carry tone.

*Strain* runs from 0 (everything in order) to 1 (the gravest state). A judge compares the strain of
the evidence with the strain of each stage's criteria, so that it reads both, as an LLM would. The
words cover public affairs, software and customer support, for the example studies.
"""

import re
from functools import lru_cache

STRAIN: dict[str, float] = {
    # in order
    "as scheduled": 0.02,
    "unanimously": 0.05,
    "independent audit": 0.05,
    "published in full": 0.05,
    "peacefully": 0.05,
    "upheld": 0.08,
    "transparent": 0.08,
    "routine": 0.08,
    "observers confirmed": 0.05,
    "well tested": 0.05,
    "documented": 0.1,
    "by consensus": 0.08,
    # friction
    "cosmetic": 0.15,
    "typo": 0.15,
    "naming": 0.18,
    "isolated": 0.2,
    "minor": 0.2,
    "delayed": 0.22,
    "postponed": 0.25,
    "disputed": 0.25,
    "criticized": 0.25,
    "appealed": 0.22,
    "clarified": 0.18,
    # pressure
    "under review": 0.35,
    "warned": 0.38,
    "duplicated": 0.35,
    "inefficient": 0.4,
    "ambiguous": 0.45,
    "investigated": 0.4,
    "reassigned": 0.42,
    "narrowed": 0.42,
    "fined": 0.42,
    "restricted": 0.48,
    # breach
    "bypassed": 0.58,
    "decree": 0.6,
    "suspended": 0.6,
    "dismissed": 0.6,
    "barred": 0.62,
    "raided": 0.65,
    "revoked": 0.65,
    "race condition": 0.62,
    "incorrect result": 0.6,
    "repeated": 0.55,
    # rupture
    "detained": 0.75,
    "censored": 0.78,
    "banned": 0.8,
    "emergency powers": 0.82,
    "dissolved": 0.85,
    "crash": 0.8,
    "memory leak": 0.75,
    "systematic": 0.8,
    # gravest
    "outlawed": 0.92,
    "paramilitary": 0.95,
    "mass arrests": 0.96,
    "cancelled elections": 0.97,
    "one-party": 0.98,
    "abolished": 0.95,
    "data loss": 0.95,
    "injection": 0.93,
    "remote code execution": 0.98,
    # support replies, from helpful to not
    "exact steps": 0.05,
    "is fixed now": 0.06,
    "refunded": 0.08,
    "here is how": 0.1,
    "sorry for": 0.28,
    "clearing the cache": 0.32,
    "restart the app": 0.34,
    "might help": 0.38,
    "help center": 0.58,
    "try again later": 0.6,
    "as stated in": 0.62,
    "ticket was closed": 0.65,
    "cannot help": 0.88,
    "read the manual": 0.9,
    "not our problem": 0.95,
    "your own fault": 0.97,
}

SOFTWARE = frozenset(
    [
        "well tested",
        "documented",
        "cosmetic",
        "typo",
        "naming",
        "duplicated",
        "inefficient",
        "ambiguous",
        "race condition",
        "incorrect result",
        "crash",
        "memory leak",
        "data loss",
        "injection",
        "remote code execution",
    ]
)
"""Cues about software; a simulated author keeps to one field."""

SUPPORT = frozenset(
    [
        "exact steps",
        "is fixed now",
        "refunded",
        "here is how",
        "sorry for",
        "clearing the cache",
        "restart the app",
        "might help",
        "help center",
        "try again later",
        "as stated in",
        "ticket was closed",
        "cannot help",
        "read the manual",
        "not our problem",
        "your own fault",
    ]
)
"""Cues about replies to customers."""

PUBLIC_AFFAIRS = frozenset(STRAIN) - SOFTWARE - SUPPORT

TONE: tuple[str, ...] = (
    "alarming",
    "unprecedented",
    "shocking",
    "chilling",
    "outrageous",
    "disturbing",
    "brazen",
    "dramatic",
    "terrifying",
    "appalling",
)
"""Judgement without fact: a neutral summary leaves these out."""

CONTESTED: dict[str, float] = {
    "fascism": 1.0,
    "populism": 0.8,
    "authoritarianism": 0.8,
    "democratic backsliding": 0.5,
    "press freedom": 0.4,
    "democracy quality": 0.1,
    "judicial independence": 0.15,
    "severity": 0.2,
}
"""How contested a concept is; the bias of a family is multiplied by it."""

CONTESTED_ELSEWHERE = 0.3

UPRIGHT: tuple[str, ...] = ("quality", "independence", "freedom", "health", "helpful")
"""Words of concepts whose strongest stage is the one with the least strain."""

_STRAIN = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, STRAIN), key=len, reverse=True)) + r")\b", re.I
)
_TONE = re.compile(r"\b(" + "|".join(TONE) + r")\b", re.I)


@lru_cache(maxsize=4096)
def strains(text: str) -> tuple[float, ...]:
    """Returns the strain of every cue in the text, in order."""
    return tuple(STRAIN[cue.lower()] for cue in _STRAIN.findall(text))


def cues(text: str) -> list[str]:
    """Returns every cue in the text, in order."""
    return [cue.lower() for cue in _STRAIN.findall(text)]


def cue_places(text: str) -> list[int]:
    """Returns the position of each cue in the text."""
    return [match.start() for match in _STRAIN.finditer(text)]


@lru_cache(maxsize=4096)
def tones(text: str) -> int:
    """Returns the number of tone words in the text."""
    return len(_TONE.findall(text))


def without_tone(text: str) -> str:
    """Returns the text without tone words.

    >>> without_tone("An alarming decree.")
    'An decree.'
    """
    return re.sub(r"\s{2,}", " ", _TONE.sub("", text)).strip()


def contested(text: str) -> float:
    """Returns how contested the first known concept in the text is.

    >>> contested('the degree of "Fascism" in Valdoria')
    1.0
    """
    lowered = text.lower()
    return next((x for concept, x in CONTESTED.items() if concept in lowered), CONTESTED_ELSEWHERE)


def upright(concept: str) -> bool:
    """Tells whether more of the concept means less strain.

    >>> upright("democracy quality"), upright("fascism")
    (True, False)
    """
    return any(word in concept.lower() for word in UPRIGHT)
