"""Reads the messages for a simulated judge, which gets nothing else, like an LLM."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from judge_gym.models.simulated.failures import Failure, failure_in
from judge_gym.models.simulated.lexicon import contested, strains, tones
from judge_gym.records import Message, content_hash

Kind = Literal["neutralize", "write_rubric", "improve", "criticize", "score", "probe"]

_TAGGED = re.compile(r"<(evidence-[0-9a-f]{12})>\n(?P<text>.*?)\n</\1>", re.S)
_STAGE = re.compile(
    r'^(?:Stage|Option) (?P<label>\S+): "(?P<title>.*)"\n(?P<criteria>(?:  - .*(?:\n|\Z))*)', re.M
)
_CONCEPT = re.compile(r'(?:RUBRIC for|reflects) "(?P<concept>[^"]+)"(?: in (?P<country>[^\n.]+))?')
_SCALE = re.compile(r"rubric of (?P<scale>\d+) stages")
# What a prompt of a study's own may show: stages with their criteria, and a list of answers such as
# `"good" or "bad"`, `PASS/FAIL`, `one of good, fair, bad`.
_OWN_STAGE = re.compile(r"^(?P<title>\S.*)\n(?P<criteria>(?:  - .*(?:\n|\Z))+)", re.M)
_CHOICE = r"(?:[\"'`]\w[^\"'`\n,]{0,60}[\"'`](?!\s*:)|\b[A-Z][A-Z_-]+\b)"
_OWN_LIST = re.compile(rf"{_CHOICE}(?:(?:\s*(?:[,/|]|\bor\b))+\s*{_CHOICE})+")
_ONE_OF = re.compile(r"\bone of:?\s+(?P<choices>[^.;\n]+)", re.I)
_JSON_KEY = re.compile(r"\"(?P<key>\w+)\"\s*:")
_BAD = re.compile(
    r"\b(?:bad|fail\w*|false|incorrect|no|not|poor|unhelpful|unsafe|worse|wrong)\b", re.I
)
_REVIEWED = re.compile(r"^VERDICT UNDER REVIEW\n(?P<stages>.*)$", re.M)
# Only words outside material and rubric tell what is asked; the first match decides.
_KINDS: tuple[tuple[str, Kind], ...] = (
    ("PEOPLE SAY:", "improve"),
    ("PROBABILITY:", "probe"),
    ("OBSERVABILITY:", "criticize"),
    ("STAGE 1:", "write_rubric"),
    ("clinical summary", "neutralize"),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A conversation as a simulated judge understands it."""

    kind: Kind
    text: str
    """The material, raw or neutral, with all parts that are shown; empty without any."""
    pair: tuple[str, str] | None
    """The two responses of a pair in the order shown."""
    stages: Mapping[str, float]
    """The strain of each displayed stage by label, in display order."""
    titles: Mapping[str, str]
    """The title of each displayed stage by label."""
    failure: Failure | None
    """The failed coding eval that the material shows, if it shows one."""
    concept: str
    country: str
    scale: int
    subset: bool
    may_abstain: bool
    reviewed: tuple[str, ...]
    """The labels of the verdict that a probe asks about."""
    same_context: bool
    asked: str
    """The words of the last message outside material and rubric."""
    own_key: str | None = None
    """In a prompt of a study's own, the JSON key of the verdict, or empty for the last line; None
    in our prompts."""

    @property
    def contested(self) -> float:
        """How contested the concept is."""
        return contested(self.concept)

    @property
    def cues(self) -> tuple[float, ...]:
        """The strain of every cue in the material."""
        return strains(self.text) if self.failure is None else self.failure.cues

    @property
    def lead(self) -> float:
        """The lead of a pair's first response over the second, from 0 to 1; 0.5 is even."""
        assert self.pair is not None
        first, second = map(_strain, self.pair)
        return min(1.0, max(0.0, 0.5 + 2 * (first - second)))

    @property
    def tones(self) -> int:
        """The number of tone words in the material."""
        return tones(self.text)


def understand(messages: Sequence[Message]) -> Reading:
    """Read a conversation."""
    prompt = "\n\n".join(message.content for message in messages if message.role != "assistant")
    material = [match["text"] for match in _TAGGED.finditer(prompt)]
    pair = (material[1], material[2]) if "SECOND RESPONSE" in prompt and len(material) > 2 else None
    outside = _TAGGED.sub("", prompt)
    instruction = _STAGE.sub("", _TAGGED.sub("", messages[-1].content))
    words = _STAGE.sub("", outside)
    kind: Kind = next((kind for word, kind in _KINDS if word in instruction), "score")
    stages = {
        match["label"]: _side(match["title"])
        if pair
        else _strain(match["title"] + "\n" + match["criteria"])
        for match in _STAGE.finditer(outside)
    }
    if kind == "score" and not stages and not material and (own_stages := _own_stages(prompt)):
        return _own_reading(prompt, own_stages)
    concept = _CONCEPT.search(outside)
    scale = _SCALE.search(outside)
    reviewed = _REVIEWED.search(instruction)
    return Reading(
        kind=kind,
        text=material[0] if pair else "\n\n".join(material),
        pair=pair,
        stages=stages,
        titles={match["label"]: match["title"] for match in _STAGE.finditer(outside)},
        failure=failure_in(material[0]) if material else None,
        concept=concept["concept"] if concept else "",
        country=(concept["country"] or "") if concept else "",
        scale=int(scale["scale"]) if scale else len(stages),
        subset="one or more of" in words,
        may_abstain="ABSTAIN" in words,
        reviewed=tuple(re.findall(r"(?:Stage|Option) (\S+) \(", reviewed["stages"]))
        if reviewed
        else (),
        same_context=any(message.role == "assistant" for message in messages),
        asked=instruction,
    )


def _own_stages(prompt: str) -> dict[str, float]:
    """Returns the answers that a prompt of a study's own asks for, with their strain."""
    stages = [(match["title"], match["criteria"]) for match in _OWN_STAGE.finditer(prompt)]
    if stages:
        return {title: _strain(f"{title}\n{criteria}") for title, criteria in stages}
    listed = re.findall(_CHOICE, match[0]) if (match := _OWN_LIST.search(prompt)) else []
    if match is None and (one_of := _ONE_OF.search(prompt)):
        listed = re.split(r",\s*(?:or\s+)?|\s+or\s+", one_of["choices"])
    words = [word.strip(" \"'`") for word in listed]
    words = list(dict.fromkeys(word for word in words if word and word.casefold() != "abstain"))
    return {word: float(bool(_BAD.search(word))) for word in words} if len(words) > 1 else {}


def _own_reading(prompt: str, stages: Mapping[str, float]) -> Reading:
    """Reads a prompt of a study's own, all of which but the rubric may be material."""
    keys = _JSON_KEY.findall(prompt) if "json" in prompt.casefold() else []
    return Reading(
        kind="score",
        text=_OWN_STAGE.sub("", prompt),
        pair=None,
        stages=stages,
        titles={label: label for label in stages},
        failure=None,
        concept="",
        country="",
        scale=len(stages),
        subset=False,
        may_abstain="abstain" in prompt.casefold(),
        reviewed=(),
        same_context=False,
        asked=prompt,
        own_key=keys[-1] if keys else "",
    )


def _side(title: str) -> float:
    """Returns the place of a pair's option between the second response (0) and the first (1)."""
    named = [side for word, side in (("first", 1.0), ("second", 0.0)) if word in title.casefold()]
    return named[0] if len(named) == 1 else 0.5


def _strain(text: str) -> float:
    """Returns the strain of a stage; a text without cues gets a fixed pseudo-random one."""
    cues = strains(text)
    return sum(cues) / len(cues) if cues else int(content_hash(text)[:8], 16) / 0xFFFFFFFF
