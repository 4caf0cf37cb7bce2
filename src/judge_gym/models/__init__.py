"""The only room that calls a model.

A `Model` answers requests; the registry knows what a model id means, what it costs, and opens it.
"""

from typing import Protocol

from judge_gym.models.cards import ModelCard
from judge_gym.models.registry import Registry
from judge_gym.records import Completion, Request

__all__ = ["Model", "ModelCard", "Registry"]


class Model(Protocol):
    """Anything that answers a request, or raises `ProviderError` where no completion came."""

    @property
    def id(self) -> str:
        """`provider:name`."""
        ...

    async def complete(self, request: Request) -> Completion:
        """The provider's answer."""
        ...
