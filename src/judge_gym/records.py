"""What the stages pass on: plain frozen values, with the hashes that give them their identity.

`id` is the row of a record in the store, 0 until it has one; everything else is content.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any, Literal, get_args
from urllib.parse import urlsplit, urlunsplit

from judge_gym.errors import DesignError, unknown

Status = Literal["scored", "abstained", "refused", "truncated", "parse_failed", "provider_error"]
STATUSES: tuple[Status, ...] = get_args(Status)
Finish = Literal["stop", "length", "refusal"]
Role = Literal["system", "user", "assistant"]
TaskType = Literal["ecc", "control", "benchmark"]
StageName = Literal["neutralizer", "rubricer", "critic", "scorer", "prober"]
STAGES: tuple[StageName, ...] = ("neutralizer", "rubricer", "critic", "scorer", "prober")


def content_hash(text: str) -> str:
    """The identity of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def proper(text: str) -> str:
    """A text that any database takes: half a surrogate becomes `?`, a zero character `\ufffd`."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


def digest(value: Any) -> str:
    """The identity of a JSON value, whatever the order of its keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return content_hash(json.dumps(value, sort_keys=True, separators=(",", ":")))


def bare_endpoint(url: str) -> str:
    """An endpoint without what may be secret: no user, no password, no query.

    >>> bare_endpoint("https://user:key@host:8000/v1?key=secret")
    'https://host:8000/v1'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


# --- the ledger's unit ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Draw:
    """Which of the possible answers to one question: (series, index, ask)."""

    series: str
    index: int = 0
    ask: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    It is kept in parts, so that a long text which many requests share (an article, a task) is
    stored once; only their concatenation is sent and hashed.
    """

    role: Role
    parts: tuple[str, ...]

    @property
    def content(self) -> str:
        """What the model is sent."""
        return "".join(self.parts)


@dataclass(frozen=True, slots=True)
class Request:
    """Exactly what is asked of a model."""

    model: str
    messages: tuple[Message, ...]
    draw: Draw
    temperature: float | None = None
    max_tokens: int = 2048
    schema: Mapping[str, Any] | None = None
    web_search: bool = False
    """Whether the model may search the web; its text then begins with what it searched."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What is set besides the words; a search only where there is one, so old keys stay."""
        set_ = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return {**set_, "web_search": True} if self.web_search else set_

    def key(self, endpoint: str = "") -> str:
        """The ledger's key: a hash of what is asked, of whom, and where."""
        provider, _, name = self.model.partition(":")
        return digest(
            {
                "provider": provider,
                "endpoint": bare_endpoint(endpoint),
                "model": name,
                "messages": [[message.role, proper(message.content)] for message in self.messages],
                "parameters": self.parameters,
                "schema": self.schema,
                "draw": [self.draw.series, self.draw.index, self.draw.ask],
            }
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """What a provider answered; any of these is an answer and is never asked for again."""

    text: str
    finish: Finish
    model: str
    """The model as the provider reports it."""
    input_tokens: int
    output_tokens: int
    usd: float | None
    """None where the price is unknown."""
    cached_tokens: int = 0
    """How many of the input came from the provider's cache."""


# --- evidence ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """Where and when evidence comes from, and the search that filled it."""

    country: str
    start: date | None = None
    end: date | None = None
    search: str = ""
    """Source and query in words; empty where files were loaded. Searches never mix."""


@dataclass(frozen=True)
class Evidence:
    """One text to judge. Truth and metadata are for analysis; no prompt ever holds them.

    A pair is a task with two responses to it, which a judge compares.
    """

    title: str
    text: str
    """Of a pair, the task that both responses answer."""
    url: str = ""
    date: str = ""
    source: str = ""
    truth: int | str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    responses: tuple[str, ...] = ()
    """Two for a pair, none otherwise."""

    @property
    def body(self) -> str:
        """All that a judge can read of it, as one text; a pair is a JSON list."""
        if not self.responses:
            return self.text
        return json.dumps([self.text, *self.responses], ensure_ascii=False)

    @cached_property
    def hash(self) -> str:
        """The identity of the raw text, whatever the view."""
        return content_hash(self.body)


@dataclass(frozen=True, slots=True)
class View:
    """A text derived from evidence for judges to read; `text` is None where making it failed."""

    evidence: Evidence
    text: str | None
    status: Status
    call_id: int | None = None
    checks: Mapping[str, Any] | None = None
    """How far it keeps to its source; None where there is no text."""


@dataclass(frozen=True)
class Pool:
    """A frozen, ordered set of evidence."""

    items: tuple[Evidence, ...]
    window: Window | None = None
    id: int = 0

    @cached_property
    def hash(self) -> str:
        """The identity of the texts in their order."""
        return digest([item.hash for item in self.items])

    @cached_property
    def paired(self) -> bool:
        """Whether its items are pairs."""
        return any(item.responses for item in self.items)


# --- rubrics -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RubricStage:
    """One stage (of an ordinal rubric) or option (of a nominal one)."""

    label: str
    criteria: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rubric:
    """Stages with criteria, numbered from 1 in the author's order."""

    stages: tuple[RubricStage, ...]
    author: str
    concept: str
    country: str
    draw: int = 0
    reasoning: str = ""
    id: int = 0
    call_id: int | None = None

    @property
    def scale(self) -> int:
        """The number of stages."""
        return len(self.stages)

    @property
    def hash(self) -> str:
        """The identity of what a judge can read of it."""
        return digest([self.kind, [[stage.label, *stage.criteria] for stage in self.stages]])

    @property
    def kind(self) -> Literal["ordinal", "nominal"]:
        """Whether the order of the stages means anything."""
        raise TypeError("a rubric is an OrdinalRubric or a NominalRubric")


class OrdinalRubric(Rubric):
    """Stages in rising order."""

    __slots__ = ()
    kind: Literal["ordinal"] = "ordinal"

    @property
    def midpoint(self) -> int | None:
        """The stage in the middle of an odd scale; an even scale has none."""
        return (self.scale + 1) // 2 if self.scale % 2 else None


class NominalRubric(Rubric):
    """Options without order: no midpoint, no expected stage."""

    __slots__ = ()
    kind: Literal["nominal"] = "nominal"


RUBRIC_KINDS: dict[str, type[OrdinalRubric] | type[NominalRubric]] = {
    "ordinal": OrdinalRubric,
    "nominal": NominalRubric,
}


def provided_rubric(data: Any, concept: str, country: str) -> OrdinalRubric | NominalRubric:
    """A rubric from the JSON that a user gives."""
    shape = 'a rubric is {"kind": ..., "stages": [{"label": ..., "criteria": [...]}, ...]}'
    if not isinstance(data, dict) or not isinstance(data.get("stages"), list):
        raise DesignError(shape)
    if data.get("kind") not in RUBRIC_KINDS:
        raise DesignError(unknown("kind", data.get("kind"), RUBRIC_KINDS), choices=RUBRIC_KINDS)
    stages = []
    for number, stage in enumerate(data["stages"], 1):
        label = stage.get("label") if isinstance(stage, dict) else None
        criteria = stage.get("criteria") if isinstance(stage, dict) else None
        texts = [label, *criteria] if isinstance(criteria, list) and criteria else [None]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise DesignError(f"stage {number} needs a label and a list of criteria: {shape}")
        stages.append(RubricStage(str(label), tuple(criteria or ())))
    if not 2 <= len(stages) <= 26:
        raise DesignError(f"a rubric has 2 to 26 stages; this one has {len(stages)}")
    if len({stage.label for stage in stages}) < len(stages):
        raise DesignError("two stages of the rubric have the same label")
    kind = RUBRIC_KINDS[data["kind"]]
    return kind(stages=tuple(stages), author="provided", concept=concept, country=country)


def graded(items: Sequence[Evidence], rubric: Rubric) -> tuple[Evidence, ...]:
    """Items whose truths are stage numbers of a rubric, from numbers or labels."""
    numbers = {stage.label: number for number, stage in enumerate(rubric.stages, 1)}
    known = {str(number): number for number in numbers.values()} | numbers
    made = []
    for item in items:
        truth = None
        if item.truth is not None:
            truth = None if isinstance(item.truth, bool) else known.get(str(item.truth))
            if truth is None:
                raise DesignError(unknown("truth", item.truth, known, item.title), choices=known)
        made.append(replace(item, truth=truth))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Items with known answers, the rubric that they are judged by, and how to ask."""

    name: str
    concept: str
    items: tuple[Evidence, ...]
    rubric: Rubric
    description: str = ""
    design: Mapping[str, Any] = field(default_factory=dict)
    """Knobs that this benchmark puts in the place of their defaults; a study overrules them."""


@dataclass(frozen=True, slots=True)
class Critique:
    """A critic's scores of a rubric; null where the critic's answer could not be read."""

    rubric: Rubric
    critic: str
    status: Status
    observability: float | None
    discriminability: float | None
    call_id: int | None = None


# --- verdicts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an answer was read: labels in display order, empty unless scored."""

    status: Status
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Display:
    """What a judge was shown: at each position a label and the stage behind it."""

    labels: tuple[str, ...]
    stages: tuple[int, ...]

    def decode(self, labels: Sequence[str]) -> tuple[int, ...]:
        """The stages behind labels, in rising order.

        >>> Display(("C", "A", "B"), (2, 3, 1)).decode(["C", "B"])
        (1, 2)
        """
        stage_of = dict(zip(self.labels, self.stages, strict=True))
        return tuple(sorted(stage_of[label] for label in labels))

    def flipped(self) -> "Display":
        """The display of a pair shown in reverse: first and second change places.

        >>> Display(("C", "A", "B"), (2, 3, 1)).flipped().stages
        (1, 3, 2)
        """
        return Display(self.labels, tuple({1: 2, 2: 1}.get(stage, stage) for stage in self.stages))


@dataclass(frozen=True, slots=True)
class Sample:
    """One verdict of a judge on one item under one rubric."""

    rubric: Rubric
    evidence: Evidence
    replicate: int
    display: Display
    status: Status
    stages: tuple[int, ...] = ()
    flipped: bool = False
    is_swap: bool = False
    call_id: int | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """How probable the judge holds it that a majority of three experts agree with a sample."""

    sample: Sample
    status: Status
    probability: float | None
    call_id: int | None = None
