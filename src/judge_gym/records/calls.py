"""Calls: a request to a model, and its completion."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from judge_gym.records.hashes import bare_endpoint, digest, storable

Finish = Literal["stop", "length", "refusal"]
Role = Literal["system", "user", "assistant"]
StageName = Literal["neutralizer", "rubricer", "critic", "scorer", "prober"]
STAGES: tuple[StageName, ...] = get_args(StageName)


@dataclass(frozen=True, slots=True)
class Draw:
    """Identifies one of the possible answers to a request: (series, index, ask)."""

    series: str
    index: int = 0
    ask: int = 0

    @property
    def seed(self) -> int:
        """The draw as a seed of 31 bits. Without every part a second ask would repeat the first.

        >>> Draw("7").seed == Draw("7", 0, 0).seed != Draw("7", 0, 1).seed
        True
        """
        return _seed(self.series, self.index, self.ask)


@lru_cache(1024)  # all items of a replicate have the same
def _seed(series: str, index: int, ask: int) -> int:
    return int(digest([series, index, ask])[:8], 16) >> 1


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    It has parts, so that a long text that many requests share, such as an article, is stored once;
    only their concatenation is sent and hashed.
    """

    role: Role
    parts: tuple[str, ...]

    @property
    def content(self) -> str:
        """The text that is sent."""
        return "".join(self.parts)


@dataclass(frozen=True, slots=True)
class Request:
    """Exactly what a model is asked."""

    model: str
    messages: tuple[Message, ...]
    draw: Draw
    temperature: float | None = None
    max_tokens: int = 2048
    schema: Mapping[str, Any] | None = None
    web_search: bool = False
    """Whether the model may search the web; the answer then begins with its searches."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters, `web_search` only if it is set, so that older keys stay the same."""
        parameters = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return {**parameters, "web_search": True} if self.web_search else parameters

    def key(self, endpoint: str = "") -> str:
        """Computes the ledger's key: a hash of request, model and endpoint.

        The endpoint of a local model is the hash of its file, which stands for its name.
        """
        provider, _, name = self.model.partition(":")
        if endpoint.startswith("sha256:"):
            name = ""
        return digest(
            {
                "provider": provider,
                "endpoint": bare_endpoint(endpoint),
                "model": name,
                "messages": [
                    [message.role, storable(message.content)] for message in self.messages
                ],
                "parameters": self.parameters,
                "schema": self.schema,
                "draw": [self.draw.series, self.draw.index, self.draw.ask],
            }
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A completed response of a provider, which the ledger reuses."""

    text: str
    finish: Finish
    model: str
    """The model as the provider reports it."""
    input_tokens: int
    output_tokens: int
    usd: float | None
    """None if the price is unknown."""
    cached_tokens: int = 0
    """Input tokens that came from the provider's cache."""
