"""Simulated editors, rubric authors and critics: they write what simulated judges can read."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from judge_gym.models.simulated.lexicon import (
    PUBLIC_AFFAIRS,
    SOFTWARE,
    STRAIN,
    SUPPORT,
    cue_places,
    cues,
    strains,
    upright,
    without_tone,
)
from judge_gym.models.simulated.profiles import JudgeProfile
from judge_gym.models.simulated.prompts import Reading
from judge_gym.records import Message

FIELDS = {
    r"\b(code|software|review)\b": SOFTWARE,
    r"\b(customers?|helpful\w*|repl(y|ies)|support)\b": SUPPORT,
}
"""The cues of a field by how its concepts are recognized; others are public affairs."""
CUE_WORDS = max(len(cue.split()) for cue in STRAIN)
AUTHOR_SHIFT = 0.25
"""How far an author's bias moves the thresholds of its rubric on a fully contested concept."""

TITLES = (
    "No Visible Signs",
    "Faint Early Signs",
    "Occasional Visible Signs",
    "Recurring Visible Signs",
    "Frequent Clear Signs",
    "Widespread Clear Signs",
    "Pervasive Dominant Signs",
)
CRITERIA = (
    'Accounts describe conduct or changes as "{cue}"',
    'Two or more sources use terms such as "{cue}"',
    'The main event reported can be summed up as "{cue}"',
)


def summary(reading: Reading, max_words: int = 150) -> str:
    """Returns a neutral summary: the opening and every sentence with a cue, without tone words."""
    sentences = re.split(r"(?<=[.!?])\s+", without_tone(reading.text.strip()))
    with_cues = [sentence for sentence in sentences if strains(sentence)]
    opening = sentences[:1] if sentences[0] not in with_cues else []
    for selection in ([*opening, *with_cues], with_cues):
        if len(" ".join(selection).split()) <= max_words and selection:
            return " ".join(selection)
    return _around_cues(" ".join(with_cues or sentences), max_words)


def _around_cues(text: str, max_words: int) -> str:
    """Returns the cues with as many words around them as fit."""
    words = text.split()
    starts = {len(text[:at].split()) for at in cue_places(text)}
    for reach in range(max_words, -1, -1):
        near = {i for at in starts for i in range(at - reach, at + CUE_WORDS + reach)}
        positions = sorted(near & set(range(len(words)))) if starts else list(range(max_words))
        gaps = [" ... " if b - a > 1 else " " for a, b in pairwise(positions)]
        fitted = "".join(words[i] + gap for i, gap in zip(positions, [*gaps, ""], strict=True))
        if len(fitted.split()) <= max_words:
            return fitted
    return " ".join(words[:max_words])


def rubric(profile: JudgeProfile, reading: Reading, rng: random.Random) -> str:
    """Returns a rubric whose stages differ in strain; a biased author moves its thresholds."""
    about = f"{reading.concept} {reading.asked}".lower()
    field = next((cues for words, cues in FIELDS.items() if re.search(words, about)), None)
    words = [cue for cue in STRAIN if cue in (field or PUBLIC_AFFAIRS)]
    shift = AUTHOR_SHIFT * profile.bias * reading.contested
    stages = []
    for number in range(1, reading.scale + 1):
        target = (number - 0.5) / reading.scale
        target = (1 - target if upright(reading.concept) else target) - shift
        nearest = sorted(words, key=lambda cue: abs(STRAIN[cue] - target))[:5]
        cues = rng.sample(nearest, len(CRITERIA))
        lines = [f"- {form.format(cue=cue)}" for form, cue in zip(CRITERIA, cues, strict=True)]
        stages.append("\n".join([f"STAGE {number}: {_title(number, reading.scale)}", *lines]))
    reasons = f"REASONING: The stages rise evenly in how plainly {reading.concept} shows."
    return "\n".join([*stages, reasons])


_DISAGREEMENT = re.compile(
    r"<(evidence-[0-9a-f]{12})>\n(?P<text>.*?)\n</\1>\nPEOPLE SAY: (?P<label>[^(\n]+)", re.S
)
_RUBRIC_STAGE = re.compile(r'^Stage \S+: "(?P<title>.*)"\n(?P<criteria>(?:  - .*(?:\n|\Z))*)', re.M)
_PROMPT = re.compile(r"<(prompt-[0-9a-f]{12})>\n(?P<text>.*?)\n</\1>", re.S)


def improvement(profile: JudgeProfile, messages: Sequence[Message], rng: random.Random) -> str:
    """Returns a rubric or prompt whose criteria name the cues of items that people label alike.

    A stage that people gave to none of the disputed items keeps its criteria.
    """
    if rng.random() < profile.garble:
        return "The rubric is ambiguous. I would make its criteria clearer."
    text = messages[-1].content
    seen: dict[str, Counter[str]] = {}
    for match in _DISAGREEMENT.finditer(text):
        seen.setdefault(match["label"].strip(), Counter()).update(cues(match["text"]))
    stages = []
    for match in _RUBRIC_STAGE.finditer(_DISAGREEMENT.sub("", text)):
        usual = [cue for cue, _ in seen.get(match["title"], Counter()).most_common(8)]
        forms = (f'The text says something like "{cue}"' for cue in usual)
        before = (line.removeprefix("  - ") for line in match["criteria"].splitlines())
        stages.append((match["title"], [*forms] or [*before]))
    if prompt := _PROMPT.search(text):
        blocks = ["\n".join([title, *(f"  - {each}" for each in own)]) for title, own in stages]
        revised = "\n".join([prompt["text"], "", *blocks])
        return f"Labels lacked criteria.\n<revised-prompt>\n{revised}\n</revised-prompt>"
    lines = [
        "\n".join([f"STAGE {number}: {title}", *(f"- {each}" for each in own)])
        for number, (title, own) in enumerate(stages, 1)
    ]
    return "\n".join([*lines, "REASONING: Stages now name what people go by."])


def _title(number: int, scale: int) -> str:
    if scale % 2 and number == scale // 2 + 1:
        return "Ambiguous / Mixed Evidence"
    index = round((number - 1) / max(1, scale - 1) * (len(TITLES) - 1))
    return TITLES[index] if scale <= len(TITLES) else f"{TITLES[index]} ({number} of {scale})"


def critique(reading: Reading, rng: random.Random) -> str:
    """Returns scores of a rubric: lower where neighbouring stages are close together."""
    values = list(reading.stages.values())
    gaps = [abs(a - b) for a, b in pairwise(values)] or [0.0]
    apart = min(1.0, max(0.05, 0.35 + 3 * min(gaps) + rng.gauss(0, 0.04)))
    observable = min(1.0, max(0.05, rng.gauss(0.82, 0.06)))
    return (
        "The criteria can mostly be checked. Some neighbouring stages share words.\n"
        f"OBSERVABILITY: {observable:.2f}\nDISCRIMINABILITY: {apart:.2f}"
    )
