"""The ledger's unit: what is asked of a model, and what it answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from judge_gym.records.hashes import bare_endpoint, digest, proper

Finish = Literal["stop", "length", "refusal"]
Role = Literal["system", "user", "assistant"]
StageName = Literal["neutralizer", "rubricer", "critic", "scorer", "prober"]
STAGES: tuple[StageName, ...] = ("neutralizer", "rubricer", "critic", "scorer", "prober")


@dataclass(frozen=True, slots=True)
class Draw:
    """Which of the possible answers to one question: (series, index, ask)."""

    series: str
    index: int = 0
    ask: int = 0

    @property
    def seed(self) -> int:
        """The draw as a seed of 31 bits; every part counts, or a second ask would repeat the first.

        >>> Draw("7").seed == Draw("7", 0, 0).seed != Draw("7", 0, 1).seed
        True
        """
        return int(digest([self.series, self.index, self.ask])[:8], 16) >> 1


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
